"""The tmux runner: a window for each run, on a socket of our own; the only module that knows libtmux."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import libtmux
from libtmux import Pane
from libtmux.common import tmux_cmd
from libtmux.exc import LibTmuxException, TmuxCommandNotFound

from .. import paths
from ..errors import LaunchError, RunnerUnavailable, SubdeckError
from ..paths import hex_digest
from ..run.artifacts import TmuxPlace
from ..run.model import RunnerKind
from ..system import files, processes
from .base import AttachInfo, WrapperCall

PREFIX_QUESTION = ("show-options", "-gv", "prefix", ";", "list-keys")
"""What to ask a tmux server for; its answer is what `KeyTable` reads."""

_MODIFIERS = {"C": "ctrl", "M": "alt", "S": "shift"}


class KeyTable:
    """The prefix of a tmux server and what its keys do, as `PREFIX_QUESTION` is answered."""

    def __init__(self, answer: Sequence[str]) -> None:
        """Read the answer; an empty one is that of a server without a configuration."""
        self.prefix = answer[0].strip() if answer else "C-b"
        self._bound = [bound for line in answer[1:] if (bound := _bound(line))]

    def keys_to(self, *command: str, usual: str) -> tuple[str, ...]:
        """Return the keys to press one after the other for a tmux command; `usual` is its key when nothing is bound.

        A key in the root table needs no prefix.
        """
        found = [(table, key) for table, key, words in self._bound if words == command]
        for table, key in sorted(found, key=lambda bound: (bound[0] != "prefix", bound[1] != usual)):
            if table == "prefix":
                return self.prefix, key
            if table == "root":
                return (key,)
        return self.prefix, usual


def in_words(keys: Iterable[str]) -> tuple[str, ...]:
    """Write tmux's key names as people do: `C-b` is `ctrl+b`."""
    return tuple(_in_words(key) for key in keys)


def through(outer: KeyTable, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to press where another tmux server sits before the one that shall get these keys."""
    if keys[0] != outer.prefix:
        return keys
    return (*outer.keys_to("send-prefix", usual=outer.prefix), *keys[1:])


def _in_words(key: str) -> str:
    *modifiers, name = key.split("-") if len(key) > 2 and key[1] == "-" else [key]
    if not name or not all(modifier in _MODIFIERS for modifier in modifiers):
        return key
    return "+".join((*(_MODIFIERS[modifier] for modifier in modifiers), name))


def _bound(line: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Read `bind-key [-r] -T prefix d detach-client`; None for any other line."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if "-T" not in words or words[0] != "bind-key":
        return None
    match words[words.index("-T") + 1 :]:
        case [table, key, *command]:
            return table, key, tuple(command)
        case _:
            return None


_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class TmuxRunner:
    """Starts wrappers as argv, never through a shell or a format: tmux runs `#(…)` in names and directories."""

    name = RunnerKind.TMUX

    def __init__(self, socket: str) -> None:
        self._socket = socket

    def check(self) -> None:
        if processes.find_program("tmux") is None:
            raise RunnerUnavailable(
                "tmux is not installed",
                where="runner tmux",
                hint="apt install tmux (or your system's package of that name), or choose the process runner",
            )

    def launch(self, call: WrapperCall) -> StartedPane:
        """Open a window with the wrapper in it; several launchers may open the tmux session at the same moment."""
        self.check()
        session, window = session_name(call.project), window_name(call.meta.title, call.meta.short_id)
        _leave_environment(call.run_dir, call.environment)
        # `remain-on-exit` comes in the same request as the window, so that its command cannot end in between.
        argv = (*call.argv, "--tmux", self._socket, session, window)
        rest = ("-P", "-F", "#{pane_pid}", "-n", window, "--", *argv)
        stay = (";", "set-option", "-w", "-t", f"={session}:={window}", "remain-on-exit", "on")
        in_session = ("new-window", "-d", "-t", f"={session}:", *rest, *stay)
        # Small: a window that grows for its client brings text back, one that shrinks puts it out of sight.
        with_session = ("new-session", "-d", "-s", session, "-x", "80", "-y", "24", *rest, *stay)
        complaint = "it gave no reason"
        for command in (in_session, with_session, in_session):
            answer = _tmux(self._socket, command)
            if answer.returncode == 0 and answer.stdout:
                return StartedPane(int(answer.stdout[0]))
            complaint = " ".join(answer.stderr) or complaint
        raise LaunchError(f"tmux could not open a window: {complaint}", where=f"tmux -L {self._socket}")


class StartedPane:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._started = processes.start_time(pid)

    def has_gone(self) -> bool:
        return self._started is None or not processes.is_alive(self._pid, self._started)


def session_name(project: str) -> str:
    """Name the tmux session of a project: the end of its path for people, six hex digits of the whole for certainty."""
    digits = hex_digest(os.fsencode(project), 6)
    return f"{_clean(os.path.basename(project)) or 'project'}-{digits}"


def window_name(title: str, short_id: str) -> str:
    return f"{_clean(title) or 'run'}-{short_id}"


def find_pane(place: TmuxPlace) -> Pane | None:
    """Find the pane of a run; None when it was closed, or its server has gone. Raises SubdeckError without tmux."""
    try:
        panes = libtmux.Server(socket_name=place.socket).panes
    except (TmuxCommandNotFound, OSError) as error:
        raise _cannot_run(place.socket, error) from error
    except LibTmuxException:
        return None  # no server, or one that is just ending
    return next(iter(panes.filter(session_name=place.session, window_name=place.window)), None)


def attach_command(place: TmuxPlace, environment: Mapping[str, str]) -> AttachInfo:
    """Return how to show a run's pane in the terminal of `environment`, and how to leave it; raises without a pane."""
    pane = find_pane(place)
    if pane is None:
        raise SubdeckError(
            "the tmux pane of this run is gone",
            where=f"tmux -L {place.socket}",
            hint="subdeck logs shows its transcript",
        )
    ours = (processes.find_program("tmux") or "tmux", "-L", place.socket)
    keys = KeyTable(_tmux(place.socket, PREFIX_QUESTION).stdout)
    leaving = keys.keys_to("detach-client", usual="d")
    around = environment.get("TMUX", "").partition(",")[0]
    if not around:
        return AttachInfo((*ours, "attach-session", "-t", f"{pane.pane_id}"), in_words(leaving))
    if os.path.basename(around) == place.socket:
        back = keys.keys_to("switch-client", "-l", usual="L")
        return AttachInfo((*ours, "switch-client", "-t", f"{pane.pane_id}"), in_words(back), switches=True)
    # Another server's client may hold this one when it does not know of it; that server takes its own keys first.
    outer = KeyTable(_ask(libtmux.Server(socket_path=around), PREFIX_QUESTION).stdout)
    argv = ("env", "-u", "TMUX", *ours, "attach-session", "-t", f"{pane.pane_id}")
    return AttachInfo(argv, in_words(through(outer, leaving)))


def close_pane(place: TmuxPlace) -> None:
    """Close the pane of a run that is being deleted, where it still stands."""
    if pane := find_pane(place):
        try:
            pane.kill()
        except LibTmuxException:
            return  # somebody else has


def _tmux(socket: str, command: Sequence[str]) -> tmux_cmd:
    return _ask(libtmux.Server(socket_name=socket), command)


def _ask(server: libtmux.Server, command: Sequence[str]) -> tmux_cmd:
    try:
        return server.cmd(*command)
    except (LibTmuxException, OSError) as error:
        raise _cannot_run(f"{server.socket_name or server.socket_path}", error) from error


def _cannot_run(socket: str, error: Exception) -> SubdeckError:
    return SubdeckError(f"tmux could not be run: {error}", where=f"tmux -L {socket}")


def _leave_environment(run_dir: str, environment: Mapping[str, str]) -> None:
    """Leave the launcher's environment where only this user and the wrapper, which unlinks it, can read it."""
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    files.write_new(os.path.join(run_dir, paths.ENVIRONMENT), block)


def _clean(name: str) -> str:
    return _NOT_IN_A_NAME.sub("-", name).strip("-")[:40]
