"""Play one trial: launch, hit, wait until everything has ended, and report the hits and leftovers."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.system import processes

from . import arena, strace
from .arena import HERE, Arena
from .plan import Anchor, Disturbance, Kill, Mischief, Plan, Scene, Trap, Victim
from .records import Journal, told

LOOP_S = 0.004
GIVEN_UP_S = 300.0
"""After this a trial is abandoned."""
LEAVING_S = 15.0
"""Time for processes to end after their runs; less than the own lifetime of escaped ones."""
TELLING_S = 20.0
"""Time for a teller, which may have to be started first."""
STAGGER_S = 0.03
"""Between two launches."""


class Hit(Struct, frozen=True):
    """A hit that really happened."""

    victim: Victim
    run: int
    at: int
    """Nanoseconds (monotonic); of a trap only an upper bound."""
    error: str = ""
    """As `write EIO`; empty for a kill."""
    call: str = ""


class Outcome(Struct, frozen=True):
    """Observations during a trial; everything else is on disk."""

    hits: tuple[Hit, ...]
    left: tuple[str, ...]
    """Processes that should have ended."""
    called_lost: tuple[int, ...]
    """Runs that were called lost while their wrapper lived."""
    untold: tuple[str, ...]
    """Ids of background runs whose result the living teller has not reported."""
    is_given_up: bool
    disturbances: tuple[Disturbance, ...] = ()
    """Disturbances that really happened."""


def _each(log: Path) -> Path:
    """Return a log for each of the wrappers that a shell starts: the one on standby may not be the one used."""
    return Path(f"{log}.$$")


class Trial:
    def __init__(self, plan: Plan, root: Path) -> None:
        self._plan = plan
        self._arena = Arena(root, plan.scene, has_groups=plan.has_groups)
        self._hits: list[Hit] = []
        self._pending: list[Kill | Disturbance] = [*plan.kills, *plan.disturbances]
        self._disturbances: list[Disturbance] = []
        self._stopped: list[tuple[float, int]] = []
        """When which process continues."""
        self._trapped_lookers = self._traps(Victim.LOOKER)
        self._anchors: dict[tuple[int, Anchor], float] = {}
        self._launchers: dict[int, subprocess.Popen[bytes]] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self._teller: subprocess.Popen[bytes] | None = None
        self._teller_traps = self._traps(Victim.FOLLOWER)
        """They hit the first teller, not one that comes back or that is started when all is over."""
        self._teller_back = 0.0
        self._lookers: list[tuple[subprocess.Popen[bytes], Kill | None, float]] = []
        self._called_lost: list[int] = []
        self._stop = plan.stop
        self._dirs: dict[Path, int] = {}
        self._logs: dict[Trap, Path] = {trap: root / f"trap{number}.log" for number, trap in enumerate(plan.traps)}

    @property
    def arena(self) -> Arena:
        return self._arena

    def play(self) -> Outcome:
        began = time.monotonic()
        self._teller_back = began + self._plan.followed_from
        self._launch_all()
        while not self._is_over() and time.monotonic() - began < GIVEN_UP_S:
            self._turn(began)
        is_given_up = not self._is_over()
        self._continue(math.inf)
        for looker, _, _ in self._lookers:
            looker.kill()
        if self._server and self._server.stdin:
            self._server.stdin.close()
        untold = self._wait_until_told()
        left = self._wait_until_left()
        self._look_in_peace()
        called_lost, disturbances = tuple(self._called_lost), tuple(self._disturbances)
        return Outcome(self._all_hits(), left, called_lost, untold, is_given_up, disturbances)

    # --- starting -----------------------------------------------------------------------------------------------

    def _launch_all(self) -> None:
        runs = range(len(self._plan.behaviours))
        for trap in self._traps(Victim.TMUX_CLIENT):
            self._arena.tmux_shim(trap.run, strace.trapping(trap, self._logs[trap]))
        if self._plan.scene is Scene.MCP:
            self._serve()
            return
        for run in runs:
            self._launch(run)
            if self._plan.scene is Scene.STICKY and run == 0:
                self._wait_for_first()  # or each of them would begin its own conversation
            time.sleep(STAGGER_S)

    def _wait_for_first(self) -> None:
        deadline = time.monotonic() + TELLING_S
        while not self._arena.run_dirs() and time.monotonic() < deadline and self._launchers[0].poll() is None:
            time.sleep(LOOP_S)

    def _launch(self, run: int) -> None:
        words = ["run" if self.is_foreground(run) else "bg", "scout", self._task(run)]
        words += ["--runner", "tmux"] if self._plan.scene is Scene.TMUX else []
        command = self._program(run, *words)
        for trap in self._traps(Victim.LAUNCHER, run):
            command = [*strace.trapping(trap, self._logs[trap]), *command]
        self._anchors[run, Anchor.LAUNCHED] = time.monotonic()
        self._launchers[run] = self._arena.start(f"launcher{run}", command)

    def is_foreground(self, run: int) -> bool:
        """Return whether somebody waits for the run, so that its result is reported to no one else."""
        if self._plan.scene is Scene.MCP:
            return run == 1
        return self._plan.scene is Scene.ALONE and self._plan.number % 3 == 0

    def _task(self, run: int) -> str:
        return self._arena.task(run, self._plan.behaviours[run])

    def _program(self, run: int, *words: str) -> list[str]:
        python = sys.executable
        for trap in self._traps(Victim.WRAPPER, run):
            python = self._arena.shim(f"python{run}", strace.trapping(trap, _each(self._logs[trap])))
        if self._plan.is_slow_to_start:
            python = self._arena.shim(f"python{run}", strace.slow_exec(self._arena.root / f"slow{run}.log"))
        return [sys.executable, str(HERE / "launcher.py"), python, *words]

    def _serve(self) -> None:
        """Start the server; request a background run, and one that its client waits for."""
        command = self._program(0, "mcp")
        for trap in self._traps(Victim.MCP):
            command = [*strace.trapping(trap, self._logs[trap]), *command]
        self._server = self._arena.start("mcp", command, fed=True)
        now = time.monotonic()
        self._anchors |= {(run, Anchor.LAUNCHED): now for run in range(2)}
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "0"}}
        frames = [
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            *(self._call(run, tool) for run, tool in enumerate(("background_agent", "subagent"))),
        ]
        assert self._server.stdin
        try:
            for frame in frames:
                self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
                self._server.stdin.flush()
        except OSError:
            pass  # it was hit before it had read them

    def _call(self, run: int, tool: str) -> dict[str, object]:
        arguments = {"preset": "scout", "task": self._task(run)}
        return {"id": run + 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    def _look(self, before: list[str], hit: Kill | None) -> None:
        command = [*before, sys.executable, str(HERE / "launcher.py"), sys.executable, "status"]
        dies = time.monotonic() + (hit.life if hit else GIVEN_UP_S)
        self._lookers.append((self._arena.start("looker", command), hit, dies))

    def _tell(self) -> None:
        command = [sys.executable, str(HERE / "teller.py"), str(self._arena.directory), str(self._arena.told)]
        while self._teller_traps:
            trap = self._teller_traps.pop()
            command = [*strace.trapping(trap, self._logs[trap]), *command]
        self._teller = self._arena.start("teller", command)

    def _traps(self, victim: Victim, run: int | None = None) -> list[Trap]:
        return [trap for trap in self._plan.traps if trap.victim is victim and run in (None, trap.run)]

    # --- what happens meanwhile ---------------------------------------------------------------------------------

    def _turn(self, began: float) -> None:
        now = time.monotonic()
        arena.reap()
        self._look_around(now)
        self._continue(now)
        for hit in list(self._pending):
            at = self._anchors.get((hit.run, hit.anchor))
            if at is not None and at + hit.delay <= now:
                self._pending.remove(hit)
                if isinstance(hit, Kill):
                    self._carry_out(hit)
                else:
                    self._disturb(hit)
        for trap in list(self._trapped_lookers):
            at = self._anchors.get((trap.run, trap.anchor))
            if at is not None and at + trap.delay <= now:
                self._trapped_lookers.remove(trap)
                self._look(strace.trapping(trap, self._logs[trap]), None)
        for looker in list(self._lookers):
            process, kill, dies = looker
            if process.poll() is not None:
                self._lookers.remove(looker)
            elif kill and dies <= now:
                self._lookers.remove(looker)
                self._note(kill, arena.kill(process.pid))
        if (self._teller is None or self._teller.poll() is not None) and now >= self._teller_back:
            self._tell()
        if self._stop is not None and now - began >= self._stop and self._dirs:
            self._stop = None
            self._ask_to_stop()
        time.sleep(LOOP_S)

    def _look_around(self, now: float) -> None:
        # A launcher whose launch is refused removes the directory again.
        there = self._arena.run_dirs()
        self._dirs = {path: run for path in there if (run := self._number_of(path)) is not None}
        for run_dir, run in self._dirs.items():
            if (run, Anchor.ENDED) not in self._anchors and (run_dir / "result.json").exists():
                self._anchors[run, Anchor.ENDED] = now
                self._check_lost(run_dir, run)
        for run in range(len(self._plan.behaviours)):
            if (run, Anchor.ENDING) not in self._anchors:
                journal = Journal.read(self._arena.journal(run))
                for word, anchor in (("begun", Anchor.BEGUN), ("ending", Anchor.ENDING)):
                    if journal.has(word):
                        self._anchors.setdefault((run, anchor), now)

    def _number_of(self, run_dir: Path) -> int | None:
        if run_dir in self._dirs:
            return self._dirs[run_dir]
        try:
            return self._arena.number_of(run_dir)
        except FileNotFoundError:
            return None

    def _check_lost(self, run_dir: Path, run: int) -> None:
        """Check whether a run that was just called lost has a living wrapper."""
        written = (run_dir / "result.json").read_bytes()
        if b'"writtenBy": "wrapper"' in written or (first := arena.wrapper_of(run_dir)) is None:
            return
        time.sleep(0.5)
        if arena.wrapper_of(run_dir) == first:
            self._called_lost.append(run)

    def _carry_out(self, kill: Kill) -> None:
        if kill.victim is Victim.LOOKER:
            self._look([], kill)
            return
        if kill.victim in (Victim.FOLLOWER, Victim.ALL):
            self._teller_back = time.monotonic() + kill.life
        if kill.victim is Victim.ALL:
            self._note(kill, arena.kill_all())
        else:
            self._note(kill, arena.kill(self._find(kill.victim, kill.run)))

    def _find(self, victim: Victim, run: int) -> int | None:
        """Return the pid of a living victim."""
        match victim:
            case Victim.WRAPPER:
                run_dir = self._run_dir(run)
                return arena.wrapper_of(run_dir) if run_dir else None
            case Victim.CHILD:
                child = Journal.read(self._arena.journal(run)).child
                return child if child in arena.below() else None
            case Victim.TMUX_SERVER:
                return arena.tmux_server()
            case Victim.STANDBY:
                return arena.standby()
            case Victim.LAUNCHER | Victim.FOLLOWER | Victim.MCP:
                started = {Victim.LAUNCHER: self._launchers.get(run), Victim.FOLLOWER: self._teller}
                process = started.get(victim, self._server)
                return process.pid if process and process.poll() is None else None
            case Victim.LOOKER | Victim.TMUX_CLIENT | Victim.ALL:
                return None  # they live for too short a time, or are not one process

    def _run_dir(self, run: int) -> Path | None:
        return next((path for path, number in self._dirs.items() if number == run), None)

    def _disturb(self, disturbance: Disturbance) -> None:
        if disturbance.kind is Mischief.STOP:
            pid = self._find(disturbance.victim, disturbance.run)
            has_happened = pid is not None and processes.send(pid, signal.SIGSTOP)
            if pid is not None and has_happened:
                self._stopped.append((time.monotonic() + disturbance.length, pid))
        else:
            run_dir = self._run_dir(disturbance.run)
            has_happened = run_dir is not None and self._remove(disturbance.kind, run_dir)
        if has_happened:
            self._disturbances.append(disturbance)

    def _remove(self, kind: Mischief, run_dir: Path) -> bool:
        doorbell = Path(self._arena.project.active, run_dir.name)
        try:
            (run_dir / "lock" if kind is Mischief.NO_LOCK else doorbell).unlink()
        except FileNotFoundError:
            return False
        return True

    def _continue(self, now: float) -> None:
        """Continue processes that were stopped long enough."""
        due = [(until, pid) for until, pid in self._stopped if until <= now]
        self._stopped = [stopped for stopped in self._stopped if stopped not in due]
        for _, pid in due:
            processes.send(pid, signal.SIGCONT)

    def _note(self, kill: Kill, has_happened: bool) -> None:
        if has_happened:
            self._hits.append(Hit(kill.victim, kill.run, time.monotonic_ns()))

    def _ask_to_stop(self) -> None:
        run_dir, _ = min(self._dirs.items(), key=lambda item: item[1])
        try:
            Engine.open(str(self._arena.directory), session="soak").stop(
                [run_dir.name], force=self._plan.stops_by_force
            )
        except SubdeckError:
            return

    def _all_hits(self) -> tuple[Hit, ...]:
        now = time.monotonic_ns()
        trapped = [
            Hit(trap.victim, trap.run, now, f"{trap.call} {trap.error}" if trap.error else "", trap.call)
            for trap, log in self._logs.items()
            if strace.has_hit(log)
        ]
        return (*self._hits, *trapped)

    # --- how it ends --------------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        """Return whether every launcher has ended, every run has ended, and every kill has had its chance."""
        if any(launcher.poll() is None for launcher in self._launchers.values()):
            return False
        if self._plan.scene is Scene.MCP and not self._has_answered():
            return False
        if any((run, Anchor.ENDED) not in self._anchors for run in self._dirs.values()):
            return False
        if self._stopped or any(kill for _, kill, _ in self._lookers):
            return False
        now = time.monotonic()
        return not any(
            at + hit.delay > now
            for hit in self._pending
            if (at := self._anchors.get((hit.run, hit.anchor))) is not None
        )

    def _has_answered(self) -> bool:
        """Return whether the server has launched all requested runs, or never will."""
        assert self._server
        return len(self._dirs) == len(self._plan.behaviours) or self._server.poll() is not None

    def _wait_until_told(self) -> tuple[str, ...]:
        """Wait for the present teller; return the ids of the runs that it does not report."""
        wanted = {
            run_dir.name
            for run_dir, run in self._dirs.items()
            if not self.is_foreground(run) and (run_dir / "result.json").exists() and self._plan.scene is not Scene.MCP
        }
        session = Path(self._arena.project.session_file("operator"))
        self._teller_traps.clear()
        if self._teller and any(trap.error for trap in self._traps(Victim.FOLLOWER)):
            self._teller.kill()  # one that cannot write reports nothing
        deadline = time.monotonic() + TELLING_S
        while (untold := wanted - told(session).keys()) and time.monotonic() < deadline:
            arena.reap()
            if self._teller is None or self._teller.poll() is not None:
                self._tell()
            time.sleep(0.02)
        return tuple(sorted(untold))

    def _wait_until_left(self) -> tuple[str, ...]:
        """End the teller; return the other processes still there after a while, except a tmux server."""
        if self._teller:
            arena.kill(self._teller.pid)
        deadline = time.monotonic() + LEAVING_S
        while left := self._strangers():
            if time.monotonic() > deadline:
                break
            arena.reap()
            time.sleep(0.02)
        return tuple(f"{pid}: {command[:160]}" for pid, command in left.items())

    def _look_in_peace(self) -> None:
        """Read all runs once, which finishes those left by a crash."""
        try:
            Engine.open(str(self._arena.directory)).snapshots()
        except SubdeckError:
            return

    def _strangers(self) -> Mapping[int, str]:
        server = arena.tmux_server()
        below = arena.below()
        return {pid: command for pid, command in below.items() if pid != server and not command.startswith("strace ")}
