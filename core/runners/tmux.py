"""The tmux runner: a window for each run, on a socket of our own; the only module that knows libtmux."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import libtmux
from libtmux.common import tmux_cmd
from libtmux.exc import LibTmuxException
from msgspec import Struct

from ..errors import LaunchError, SubdeckError
from ..paths import hex_digest
from ..run.artifacts import TmuxPlace
from ..system import processes

PREFIX_QUESTION = ("show-options", "-gv", "prefix", ";", "list-keys")
"""What to ask a tmux server for its keys; `keys_to` reads the answer."""

RUN_OPTION = "@subdeck_run"
"""Option of a window: the run that it was opened for."""
_PANE = f"#{{pane_id}} #{{{RUN_OPTION}}} #{{pane_pid}} #{{session_name}} #{{window_name}}"
"""What a server is asked of each pane."""

_BINDING = re.compile(r"bind-key\s+(?:-r\s+)?-T\s+(prefix|root)\s+(\S+)\s+(\S.*)")
_MODIFIERS = {"C": "ctrl", "M": "alt", "S": "shift"}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class AttachInfo(Struct, frozen=True):
    """How a person gets into the pane of a run, and out of it again."""

    argv: tuple[str, ...]
    """To be run in the terminal."""
    leave: tuple[str, ...]
    """The keys to press one after the other, as people write them: `("ctrl+b", "d")`."""
    switches: bool = False
    """True where the terminal is in the same tmux already: the command ends at once and another pane is shown."""


def keys_to(command: str, answer: Sequence[str], *, usual: str) -> tuple[str, ...]:
    """Return the keys to press one after the other for a command of the tmux server that gave this answer.

    A key in the root table needs no prefix. `usual` is the key when nothing is bound, as in an empty answer.
    """
    bound: dict[str, list[str]] = {"prefix": [], "root": []}
    for found in filter(None, map(_BINDING.fullmatch, answer[1:])):
        if found[3].split() == command.split():
            bound[found[1]].append(found[2].removeprefix("\\") or found[2])
    keys = bound["prefix"] or bound["root"] or [usual]
    key = usual if usual in keys else keys[0]
    return (key,) if bound["root"] and not bound["prefix"] else (_prefix(answer), key)


def through(outer: Sequence[str], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to press where another tmux server, which gave the answer `outer`, gets these keys first."""
    if keys[0] != _prefix(outer):
        return keys
    return (*keys_to("send-prefix", outer, usual=keys[0]), *keys[1:])


def in_words(key: str) -> str:
    """Write tmux's name of a key as people do: `C-b` is `ctrl+b`."""
    *modifiers, name = key.split("-")
    if not name or not all(modifier in _MODIFIERS for modifier in modifiers):
        return key
    return "+".join((*(_MODIFIERS[modifier] for modifier in modifiers), name))


def _prefix(answer: Sequence[str]) -> str:
    return answer[0].strip() if answer else "C-b"


def open_window(socket: str, session: str, window: str, run_id: str, argv: Sequence[str]) -> int:
    """Open a window for a run; return the pid of its command. Several launchers may open the session at once.

    The command goes as argv, never through a shell or a format: tmux runs `#(…)` in names and directories.
    """
    # `remain-on-exit` comes in the same request as the window, so that its command cannot end in between.
    rest = ("-P", "-F", "#{pane_pid}", "-n", window, "--", *argv)
    of_window = (";", "set-option", "-w", "-t", f"={session}:={window}")
    stay = (*of_window, "remain-on-exit", "on", *of_window, RUN_OPTION, run_id)
    in_session = ("new-window", "-d", "-t", f"={session}:", *rest, *stay)
    # Small: a window that grows for its client brings text back, one that shrinks puts it out of sight.
    with_session = ("new-session", "-d", "-s", session, "-x", "80", "-y", "24", *rest, *stay)
    complaint = "no reason given"
    for command in (in_session, with_session, in_session):
        answer = _tmux(socket, command)
        if answer.returncode == 0 and answer.stdout:
            return int(answer.stdout[0])
        if pid := _pid_in(socket, session, window):
            return pid  # the client died once the server had done what it was asked for
        complaint = " ".join(answer.stderr) or complaint
    raise LaunchError(f"tmux cannot open a window: {complaint}", where=f"tmux -L {socket}")


def _pid_in(socket: str, session: str, window: str) -> int | None:
    """Ask the server for the command of a window; None where there is no such window, or no server."""
    panes = _tmux(socket, ("list-panes", "-a", "-F", "#{pane_pid} #{session_name} #{window_name}")).stdout
    found = (pane.split(" ", 2) for pane in panes)
    return next((int(pid) for pid, *names in found if names == [session, window]), None)


def session_name(project: str) -> str:
    """Name the tmux session of a project: the end of its path for people, six hex digits of the whole for certainty."""
    digits = hex_digest(os.fsencode(project), 6)
    return f"{_clean(os.path.basename(project)) or 'project'}-{digits}"


def window_name(title: str, short_id: str) -> str:
    return f"{_clean(title) or 'run'}-{short_id}"


def find_pane(place: TmuxPlace, run_id: str, pid: int | None = None) -> str | None:
    """Find the pane of a run by what its server says, wherever `place` says that it is; return its id.

    None when it was closed, or its server has gone. A server that an earlier version opened the window on knows no run:
    there the pane has to be in that place, with the wrapper, `pid`, as its process. Raises SubdeckError without tmux.
    """
    answer = _tmux(place.socket, ("list-panes", "-a", "-F", _PANE))
    for line in answer.stdout:  # none without a server
        pane, known_run, known_pid, where = line.split(" ", 3)
        was_opened_before = not known_run and where == f"{place.session} {place.window}" and known_pid == str(pid)
        if known_run == run_id or was_opened_before:
            return pane
    return None


def attach_command(
    place: TmuxPlace, run_id: str, environment: Mapping[str, str], *, pid: int | None = None
) -> AttachInfo:
    """Return how to show a run's pane in the terminal of `environment`, and how to leave it; raises without a pane."""
    pane = find_pane(place, run_id, pid)
    if pane is None:
        raise SubdeckError(
            "the run's tmux pane no longer exists",
            where=f"tmux -L {place.socket}",
            hint="subdeck logs shows its transcript",
        )
    ours = (processes.find_program("tmux") or "tmux", "-L", place.socket)
    keys = _tmux(place.socket, PREFIX_QUESTION).stdout
    leave = keys_to("detach-client", keys, usual="d")
    around = environment.get("TMUX", "").partition(",")[0]
    inside = os.path.basename(around) == place.socket
    if inside:
        argv = (*ours, "switch-client", "-t", pane)
        leave = keys_to("switch-client -l", keys, usual="L")
    else:
        argv = (*ours, "attach-session", "-t", pane)
    if around and not inside:
        # Another server's client may hold this one when it does not know of it; that server takes its own keys first.
        argv = ("env", "-u", "TMUX", *argv)
        leave = through(_ask(libtmux.Server(socket_path=around), PREFIX_QUESTION).stdout, leave)
    return AttachInfo(argv, tuple(map(in_words, leave)), switches=inside)


def close_pane(place: TmuxPlace, run_id: str, pid: int | None = None) -> None:
    """Close the pane of a run that is being deleted, where it still stands."""
    if pane := find_pane(place, run_id, pid):
        _tmux(place.socket, ("kill-pane", "-t", pane))


def _tmux(socket: str, command: Sequence[str]) -> tmux_cmd:
    return _ask(libtmux.Server(socket_name=socket), command)


def _ask(server: libtmux.Server, command: Sequence[str]) -> tmux_cmd:
    try:
        return server.cmd(*command)
    except (LibTmuxException, OSError) as error:
        raise _cannot_run(f"{server.socket_name or server.socket_path}", error) from error


def _cannot_run(socket: str, error: Exception) -> SubdeckError:
    return SubdeckError(f"cannot run tmux: {error}", where=f"tmux -L {socket}")


def _clean(name: str) -> str:
    return _NOT_IN_A_NAME.sub("-", name).strip("-")[:40]
