"""Play one trial: act on the project under load, and compare its decks with the disk at quiet points."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from subdeck.core.run.need import Need
from subdeck.core.system import processes

from tests.e2e.terminal import Terminal

from .. import arena
from .differences import current, differences
from .plan import Act, Plan, Step
from .view import View, read
from .world import ASKING, SUBDECK, World

SIZE, SMALL = (210, 70), (190, 66)
PATIENCE_S = 10.0
"""Maximum duration of a difference while nothing changes."""
OPEN_S = 30.0
"""Time for a deck to show its first figures."""
COMMANDS_S = 60.0
"""Time for commands to end."""
QUIET_S = 60.0
"""Time for runs to settle: each has a time limit."""
BURN = "while True: pass"
KEYS = ("j", "j", "k", "g", "G", "m", "Enter", "Escape")
RUNS_KEYS = "/ filter"
"""In the footer only while the runs have the focus."""
LOOKS_APART = 6
"""Looks at the screen between two keys."""
MOST_RUNS = 42
"""Above this the oldest are deleted, so that the list fits on the screen."""


class Difference(Exception):
    """The screen differs from the disk, or shows nothing."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Outcome(Struct, frozen=True):
    operations: int
    quiet_points: int
    runs: int
    kind: str = ""
    """Of the difference; empty for none."""
    detail: str = ""


class Deck:
    """An open app, and the process behind it."""

    def __init__(self, number: int, world: World) -> None:
        self._number = number
        self._world = world
        self._opened = 0
        self.terminal = self._open()

    def _open(self) -> Terminal:
        self._opened += 1
        terminal = Terminal(f"deck-{self._number}-{self._opened}", SUBDECK, self._world.directory, SIZE)
        deadline = time.monotonic() + OPEN_S
        while read(terminal.screen) is None:
            if time.monotonic() > deadline:
                raise Difference("did not open", terminal.screen)
            time.sleep(0.1)
        terminal.press("2")
        return terminal

    def reopen(self) -> None:
        self.close()
        self.terminal = self._open()

    def close(self) -> None:
        with self.terminal:
            processes.send(self.terminal.pid, signal.SIGKILL)

    @property
    def screen(self) -> str:
        return self.terminal.screen


class Trial:
    def __init__(self, plan: Plan, root: Path) -> None:
        self._plan = plan
        self._root = root
        self.world = World(root, plan.max_running)
        self.log: list[str] = []
        """Operations so far."""
        self._decks: list[Deck] = []
        self._burners: list[subprocess.Popen[bytes]] = []
        self._commands: list[subprocess.Popen[bytes]] = []
        self._waiters: list[subprocess.Popen[bytes]] = []
        """`subdeck run`, each until its run ends."""
        self._frozen: list[tuple[float, int]] = []
        """When which process continues."""
        self._crashed: set[Path] = set()
        """Runs whose wrapper was killed, and that an app has to finish."""
        self._deleted: list[str] = []
        self._quiet_points = 0
        self._operations = 0

    def play(self) -> Outcome:
        kind, detail = "", ""
        try:
            self._play()
        except Difference as difference:
            kind, detail = difference.kind, str(difference)
            self._keep_views(detail)
        runs = len(self.world.run_dirs())
        return Outcome(self._operations, self._quiet_points, runs, kind, detail)

    def _play(self) -> None:
        self._decks = [Deck(number, self.world) for number in range(self._plan.decks)]
        self._burners = [subprocess.Popen([sys.executable, "-I", "-S", "-c", BURN]) for _ in range(self._plan.burners)]
        for steps in self._plan.rounds:
            for burner in self._burners:
                burner.send_signal(signal.SIGCONT)
            for step in steps:
                self._operations += 1
                self._log(step.act, self._do(step))
                self._rest(step.pause)
            for burner in self._burners:
                burner.send_signal(signal.SIGSTOP)
            self._come_to_rest()
            self._compare()
        self._compare_with_new_deck()

    def _log(self, *words: object) -> None:
        self.log.append(" ".join((f"{time.strftime('%H:%M:%S')}", *(str(word) for word in words if word != ""))))

    # --- operations ----------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> str:
        """Carry out a step; return its target, or why there was none."""
        choice = step.choice
        if step.act in self._starts:
            return self._starts[step.act](choice)
        if step.act in self._words:
            return self._command(*self._words[step.act])
        targets: Sequence[Any] = self._decks
        act: Callable[[Any], str] = partial(self._act_on_deck, step.act, choice)
        if step.act in self._acts:
            find, act = self._acts[step.act]
            targets = find()
        return act(targets[int(choice * len(targets))]) if targets else "nothing to act on"

    @cached_property
    def _starts(self) -> Mapping[Act, Callable[[float], str]]:
        """Acts without a target, by a number between 0 and 1."""
        return {
            Act.START: lambda choice: self._command("bg", "scout", self.world.task_of_puppet(choice)),
            Act.START_ASKING: lambda _: self._command("bg", "asker", ASKING),
            Act.START_WAITED: self._start_waited,
            Act.START_GROUP: self._start_group,
            Act.CLEAN: lambda choice: self._command("rm", "--keep", str(8 + int(choice * 20)), "--yes"),
        }

    @cached_property
    def _words(self) -> Mapping[Act, tuple[str, ...]]:
        """Commands that need neither."""
        return {
            Act.UNDO: ("undo", "--yes"),
            Act.HOLD: ("queue", "--hold"),
            Act.RELEASE: ("queue", "--release"),
        }

    @cached_property
    def _acts(self) -> Mapping[Act, tuple[Callable[[], Sequence[Any]], Callable[[Any], str]]]:
        """Acts on one of the targets that a function finds."""
        world = self.world
        active = Path(world.project.active)
        return {
            Act.STOP: (world.unfinished, lambda path: self._command("stop", path.name)),
            Act.STOP_BY_FORCE: (world.unfinished, lambda path: self._command("stop", "--kill", path.name)),
            Act.INTERRUPT: (world.unfinished, lambda path: self._command("stop", "--turn", path.name)),
            Act.SEND: (world.unfinished, lambda path: self._command("send", path.name, "Where is the wick?")),
            Act.ALLOW: (self._asking, lambda path: self._command("reply", path.name, "allow")),
            Act.DENY: (self._asking, lambda path: self._command("reply", path.name, "deny")),
            Act.CRASH_WRAPPER: (world.unfinished, self._crash_wrapper),
            Act.CRASH_CHILD: (world.unfinished, _crash_child),
            Act.CRASH_WAITER: (self._living_waiters, partial(_signal, number=signal.SIGKILL)),
            Act.CANCEL_WAITER: (self._living_waiters, partial(_signal, number=signal.SIGINT)),
            Act.DELETE: (world.finished, self._delete),
            Act.RESTORE: (lambda: self._deleted, lambda run_id: self._command("rm", "--undo", run_id)),
            Act.LOSE_META: (world.finished, lambda path: _removed(path / "meta.json")),
            Act.LOSE_ACTIVITY: (world.unfinished, lambda path: _removed(active / path.name)),
            Act.LOSE_DIRECTORY: (world.finished, _removed_whole),
            Act.APPEAR: (world.finished, _copied),
            Act.TRUST: (world.run_dirs, lambda path: self._command("adopt", "--yes", path.name)),
        }

    def _command(self, *words: str) -> str:
        self._commands.append(self.world.command(*words))
        return " ".join(words)

    def _start_waited(self, choice: float) -> str:
        task = self.world.task_of_puppet(choice)
        self._waiters.append(self.world.command("run", "scout", task))
        return task

    def _start_group(self, choice: float) -> str:
        tasks = [self.world.task_of_puppet(abs(choice - part)) for part in (0.0, 0.3, 0.6)]
        self._commands.append(self.world.launch_group(tasks))
        return f"{len(tasks)} runs"

    def _asking(self) -> list[Path]:
        return [path for path in self.world.unfinished() if _asks(path)]

    def _living_waiters(self) -> list[subprocess.Popen[bytes]]:
        return [waiter for waiter in self._waiters if waiter.poll() is None]

    def _delete(self, path: Path) -> str:
        self._deleted.append(path.name)
        return self._command("rm", path.name)

    def _crash_wrapper(self, path: Path) -> str:
        if arena.kill(pid := arena.wrapper_of(path)):
            self._crashed.add(path)
        return f"{path.name} {pid}"

    def _act_on_deck(self, act: Act, choice: float, deck: Deck) -> str:
        match act:
            case Act.KEYS:
                keys = [KEYS[int(choice * 97 + number * 7) % len(KEYS)] for number in range(4)]
                deck.terminal.press(*keys)
                return " ".join(keys)
            case Act.FREEZE:
                pid = deck.terminal.pid
                seconds = 0.3 + choice * 3
                processes.send(pid, signal.SIGSTOP)
                self._frozen.append((time.monotonic() + seconds, pid))
                return f"{seconds:.1f} s"
            case Act.REOPEN:
                self._continue(float("inf"))
                deck.reopen()
                return ""
            case _:
                deck.terminal.resize(*(SMALL if choice < 0.5 else SIZE))
                return ""

    # --- rest ----------------------------------------------------------------------------------------------------

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            arena.reap()
            self._continue(time.monotonic())
            if time.monotonic() >= until:
                return
            time.sleep(0.02)

    def _continue(self, now: float) -> None:
        due = [one for one in self._frozen if one[0] <= now]
        self._frozen = [one for one in self._frozen if one not in due]
        for _, pid in due:
            processes.send(pid, signal.SIGCONT)

    def _come_to_rest(self) -> None:
        """Wait until all commands have ended and no process acts any more; runs may continue."""
        self._continue(float("inf"))
        self._wait(lambda: all(command.poll() is not None for command in self._commands), COMMANDS_S, "commands to end")
        self._commands.clear()
        if len(self.world.run_dirs()) > MOST_RUNS:
            self._log("clean", self._command("rm", "--keep", str(MOST_RUNS // 2), "--yes"))
            self._wait(lambda: self._commands[-1].poll() is not None, COMMANDS_S, "the cleaning to end")
        # No other process looks now: the apps have to find out themselves that these are lost.
        self._wait(lambda: not any(map(_is_lost, self._crashed)), PATIENCE_S, "an app to finish crashed runs")
        self._crashed.clear()

    def _wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Difference("not done", f"waited {seconds:g} s for {what}")
            arena.reap()
            time.sleep(0.05)

    # --- comparing -----------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        for deck in self._decks:
            self._give_runs_the_keys(deck)
        self._until_equal(self._decks)
        for keys in (("g",), ("j", "j", "j"), ("G",)):
            for deck in self._decks:
                deck.terminal.press(*keys)
            self._until_equal(self._decks)
        self._quiet_points += 1

    def _give_runs_the_keys(self, deck: Deck) -> None:
        """Leave other places and go to the runs, with pauses: a terminal joins Escape and a key right behind it."""
        turns = itertools.cycle((("Escape",), *[()] * LOOKS_APART, ("2",), *[()] * LOOKS_APART))

        def are_there() -> bool:
            keys = next(turns)
            if keys:
                deck.terminal.press(*keys)
            return not keys and RUNS_KEYS in deck.screen.rstrip("\n").rpartition("\n")[2]

        self._wait(are_there, PATIENCE_S, f"the runs of deck {self._decks.index(deck)} to have the keys")

    def _compare_with_new_deck(self) -> None:
        """Check whether an app that starts now counts the same runs as unread."""
        self._decks.append(Deck(len(self._decks), self.world))
        self._until_equal(self._decks)

    def _until_equal(self, decks: list[Deck]) -> None:
        """Wait until these decks match the disk; raise Difference if one does not while nothing changes."""
        runs = self.world.runs
        former: list[Any] | None = None
        quiet_since: float | None = None
        began = time.monotonic()
        while True:
            views = [read(deck.screen) for deck in decks]
            try:
                document = self.world.status()
            except (AssertionError, subprocess.SubprocessError, ValueError) as error:
                raise Difference("status failed", str(error)) from error
            now = current(document, runs)
            is_quiet = now == former
            former = now
            found = [
                f"deck {number}: {line}"
                for number, view in enumerate(views)
                for line in differences(view, document, runs)
            ]
            found += _differing_needs(views)
            if is_quiet and not found:
                return
            quiet_since = (quiet_since or time.monotonic()) if is_quiet else None
            if quiet_since is not None and time.monotonic() - quiet_since > PATIENCE_S:
                (self._root / "status.json").write_text(json.dumps(document, indent=1))
                raise Difference(self._kind(decks), "\n".join(found))
            if quiet_since is None and time.monotonic() - began > QUIET_S:
                raise Difference("never quiet", f"{now}")
            arena.reap()

    def _kind(self, decks: list[Deck]) -> str:
        """Find out by one more run whether a deck shows no news."""
        before = [read(deck.screen) for deck in decks]
        self._keep_views("")
        self.world.command("bg", "scout", self.world.task_of_puppet(0.0))
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            after = [read(deck.screen) for deck in decks]
            if all(old is None or new is None or old.rows != new.rows for old, new in zip(before, after, strict=True)):
                return "different"
            time.sleep(0.1)
        return "frozen"

    def _keep_views(self, detail: str) -> None:
        for number, deck in enumerate(self._decks):
            file = self._root / f"screen-{number}.txt"
            if not file.exists():
                file.write_text(deck.screen)
        (self._root / "operations.txt").write_text("\n".join(self.log) + "\n")
        (self._root / "difference.txt").write_text(detail + "\n")


def _differing_needs(views: list[View | None]) -> list[str]:
    """Compare between decks how many runs need you; idle times are known only to each app."""
    counted = [{need: count for need, count in view.needs.items() if need is not Need.SILENT} for view in views if view]
    if all(needs == counted[0] for needs in counted):
        return []
    return [f"the decks differ in what needs somebody: {' / '.join(map(str, counted))}"]


def _crash_child(path: Path) -> str:
    try:
        pid = json.loads((path / "runner.json").read_bytes()).get("childPid")
    except (OSError, ValueError):
        return f"{path.name} has none"
    is_ours = isinstance(pid, int) and pid in arena.below()
    return f"{path.name} {pid if is_ours and arena.kill(pid) else 'has none'}"


def _signal(waiter: subprocess.Popen[bytes], *, number: signal.Signals) -> str:
    waiter.send_signal(number)
    return str(waiter.pid)


def _copied(path: Path) -> str:
    """Make a run that this user's subdeck did not make."""
    other = path.with_name(f"{path.name[:-6]}{secrets.token_hex(3)}")
    half_made = path.with_name(f".{other.name}")
    try:
        shutil.copytree(path, half_made)
        meta = half_made / "meta.json"
        meta.write_text(meta.read_text().replace(path.name, other.name))
        half_made.rename(other)
    except (OSError, shutil.Error):
        return f"{path.name} has gone"
    return other.name


def _asks(path: Path) -> bool:
    try:
        return b'"request"' in (path / "events.jsonl").read_bytes()
    except OSError:
        return False


def _is_lost(path: Path) -> bool:
    return (path / "meta.json").exists() and not (path / "result.json").exists()


def _removed(path: Path) -> str:
    try:
        os.unlink(path)
    except OSError:
        return f"{path} had gone"
    return str(path)


def _removed_whole(path: Path) -> str:
    shutil.rmtree(path, ignore_errors=True)
    return path.name
