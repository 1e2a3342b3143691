"""The tmux runner: one window per run, on a separate socket. The only module that uses libtmux."""

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
from ..run.artifacts import TmuxPane
from ..system import processes

PREFIX_QUESTION = ("show-options", "-gv", "prefix", ";", "list-keys")
"""Command that asks a tmux server for its keys; `keys_to` reads the answer."""

RUN_OPTION = "@subdeck_run"
"""Window option with the id of its run."""
_PANE = f"#{{pane_id}} #{{{RUN_OPTION}}} #{{pane_pid}} #{{session_name}} #{{window_name}}"
"""Format of each pane in `list-panes`."""

_BINDING = re.compile(r"bind-key\s+(?:-r\s+)?-T\s+(prefix|root)\s+(\S+)\s+(\S.*)")
_MODIFIERS = {"C": "ctrl", "M": "alt", "S": "shift"}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class AttachInfo(Struct, frozen=True):
    """How to attach to a run's pane and how to leave it."""

    argv: tuple[str, ...]
    """Command to run in the terminal."""
    leave: tuple[str, ...]
    """Keys to press in order, as people write them: `("ctrl+b", "d")`."""
    switches: bool = False
    """Whether the terminal is in the same tmux server: the command returns at once and another pane is shown."""


def keys_to(command: str, answer: Sequence[str], *, usual: str) -> tuple[str, ...]:
    """Return the keys to press for a command of the tmux server that gave this answer.

    A key in the root table needs no prefix. `usual` is the key if none is bound, as in an empty answer.
    """
    bound: dict[str, list[str]] = {"prefix": [], "root": []}
    for match in filter(None, map(_BINDING.fullmatch, answer[1:])):
        if match[3].split() == command.split():
            bound[match[1]].append(match[2].removeprefix("\\") or match[2])
    keys = bound["prefix"] or bound["root"] or [usual]
    key = usual if usual in keys else keys[0]
    return (key,) if bound["root"] and not bound["prefix"] else (_prefix(answer), key)


def through(outer: Sequence[str], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys to press if an outer tmux server, which gave the answer `outer`, receives them first."""
    if keys[0] != _prefix(outer):
        return keys
    return (*keys_to("send-prefix", outer, usual=keys[0]), *keys[1:])


def in_words(key: str) -> str:
    """Return tmux's name of a key as people write it: `C-b` is `ctrl+b`."""
    *modifiers, name = key.split("-")
    if not name or not all(modifier in _MODIFIERS for modifier in modifiers):
        return key
    return "+".join((*(_MODIFIERS[modifier] for modifier in modifiers), name))


def _prefix(answer: Sequence[str]) -> str:
    return answer[0].strip() if answer else "C-b"


def open_window(socket: str, session: str, window: str, run_id: str, argv: Sequence[str]) -> int:
    """Open a window for a run; return its command's pid.

    Several launchers may open the session at once. The command is passed as argv, never through a shell or format: tmux
    runs `#(…)` in names and directories.
    """
    # `remain-on-exit` is set in the same request, because the command could exit in between.
    window_arguments = ("-P", "-F", "#{pane_pid}", "-n", window, "--", *argv)
    of_window = (";", "set-option", "-w", "-t", f"={session}:={window}")
    stay = (*of_window, "remain-on-exit", "on", *of_window, RUN_OPTION, run_id)
    in_session = ("new-window", "-d", "-t", f"={session}:", *window_arguments, *stay)
    # Small: a window that grows for its client shows old text again, one that shrinks hides it.
    with_session = ("new-session", "-d", "-s", session, "-x", "80", "-y", "24", *window_arguments, *stay)
    complaint = "no reason given"
    for command in (in_session, with_session, in_session):
        answer = _tmux(socket, command)
        if answer.returncode == 0 and answer.stdout:
            return int(answer.stdout[0])
        if pid := _pid_in(socket, session, window):
            return pid  # the client died after the server had carried out the request
        complaint = " ".join(answer.stderr) or complaint
    raise LaunchError(f"tmux cannot open a window: {complaint}", where=f"tmux -L {socket}")


def _pid_in(socket: str, session: str, window: str) -> int | None:
    """Return the pid of a window's command; None if there is no such window or server."""
    panes = _tmux(socket, ("list-panes", "-a", "-F", "#{pane_pid} #{session_name} #{window_name}")).stdout
    fields = (pane.split(" ", 2) for pane in panes)
    return next((int(pid) for pid, *names in fields if names == [session, window]), None)


def session_name(project: str) -> str:
    """Name a project's tmux session: the end of its path for people, and six hex digits of a hash to make it unique."""
    digits = hex_digest(os.fsencode(project), 6)
    return f"{_clean(os.path.basename(project)) or 'project'}-{digits}"


def window_name(title: str, short_id: str) -> str:
    return f"{_clean(title) or 'run'}-{short_id}"


def find_pane(location: TmuxPane, run_id: str, pid: int | None = None) -> str | None:
    """Return the id of a run's pane as its server reports it, even if it was moved from `location`.

    Returns None if it was closed or its server is gone. Windows opened by an earlier version have no `RUN_OPTION`:
    their location and their process, the wrapper's `pid`, must match. Raises SubdeckError without tmux.
    """
    answer = _tmux(location.socket, ("list-panes", "-a", "-F", _PANE))
    for line in answer.stdout:  # empty without a server
        pane, pane_run, pane_pid, where = line.split(" ", 3)
        was_opened_before = not pane_run and where == f"{location.session} {location.window}" and pane_pid == str(pid)
        if pane_run == run_id or was_opened_before:
            return pane
    return None


def attach_command(
    location: TmuxPane, run_id: str, environment: Mapping[str, str], *, pid: int | None = None
) -> AttachInfo:
    """Return how to show a run's pane in `environment`'s terminal, and leave it. Raises SubdeckError without a pane."""
    pane = find_pane(location, run_id, pid)
    if pane is None:
        raise SubdeckError(
            "the run's tmux pane no longer exists",
            where=f"tmux -L {location.socket}",
            hint="subdeck logs shows its transcript",
        )
    ours = (processes.find_program("tmux") or "tmux", "-L", location.socket)
    keys = _tmux(location.socket, PREFIX_QUESTION).stdout
    leave = keys_to("detach-client", keys, usual="d")
    around = environment.get("TMUX", "").partition(",")[0]
    inside = os.path.basename(around) == location.socket
    if inside:
        argv = (*ours, "switch-client", "-t", pane)
        leave = keys_to("switch-client -l", keys, usual="L")
    else:
        argv = (*ours, "attach-session", "-t", pane)
    if around and not inside:
        # Another server's client may attach to this server if TMUX is unset; that server takes its own keys first.
        argv = ("env", "-u", "TMUX", *argv)
        leave = through(_ask(libtmux.Server(socket_path=around), PREFIX_QUESTION).stdout, leave)
    return AttachInfo(argv, tuple(map(in_words, leave)), switches=inside)


def close_pane(location: TmuxPane, run_id: str, pid: int | None = None) -> None:
    """Close the pane of a run that is being deleted, if it still exists."""
    if pane := find_pane(location, run_id, pid):
        _tmux(location.socket, ("kill-pane", "-t", pane))


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
