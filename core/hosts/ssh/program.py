"""How a host is reached: the command line of ssh, and what it says when that does not work, in words for a person."""

from __future__ import annotations

from collections.abc import Sequence

from ...text.plain import one_line

REMOTE = ("subdeck", "hosts", "agent")
"""What the host's own shell is asked to run; nothing of ours or the operator's is ever added to it."""
OPTIONS = (
    "-T",  # no terminal
    "-a",  # no agent is forwarded
    "-x",  # no X11
    *("-o", "BatchMode=yes"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=2"),
    *("-o", "ControlMaster=no"),  # one that goes on in the background would keep our pipes
    *("-o", "LogLevel=INFO"),  # what is below it leaves out why a connection ended
)
NOT_FOUND = 127
"""What a shell exits with where it has no such program."""
OWN_FAILURE = 255
"""What ssh itself exits with."""
_MOST = 300
"""Characters of what is shown of the other side's words."""


def command(host: str) -> tuple[str, ...]:
    """Return what connects with a host, by the name that ssh knows it by."""
    return ("ssh", *OPTIONS, "--", host, *REMOTE)


_TOO_OLD = ('unknown command "hosts"', 'no command is called "hosts"', "No such command")
"""What versions of subdeck print that cannot serve as a host."""


def why_ended(host: str, code: int, stderr: bytes) -> str:
    """Say why a connection could not be made, or ended."""
    lines = [one_line(line, _MOST) for line in stderr.decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line]
    if code == OWN_FAILURE:
        return _of_ssh(host, said[-1] if said else "")
    if code == NOT_FOUND:
        return f"{host}: subdeck is not installed there, or not on the PATH of ssh commands (ssh {host} subdeck)"
    if any(known in line for line in said for known in _TOO_OLD):
        return f"{host}: subdeck is too old there to serve as a host; install the same version on both machines"
    if said:
        return _of_agent(host, said)
    return f"{host}: its subdeck process ended" + (f" with exit code {code}" if code else "")


def _of_ssh(host: str, line: str) -> str:
    name = host.rpartition("@")[2]
    if "Host key verification failed" in line:
        return f"{host}: its host key is unknown or has changed; run `ssh {host}` to check it"
    if not line:
        return f"{host}: ssh lost the connection"
    line = line.removeprefix("ssh: ")
    return line if name in line else f"{host}: {line}"


def _of_agent(host: str, lines: Sequence[str]) -> str:
    """Fold an error of a command of ours into one line: what is wrong, then where and what to do."""
    starts = [number for number, line in enumerate(lines) if line.startswith("subdeck: ")]
    words = lines[starts[-1] :] if starts else lines[-1:]
    parts = [line.removeprefix("subdeck: ").removeprefix("where: ").removeprefix("hint: ") for line in words]
    return one_line(f"{host}: {'; '.join(parts)}", _MOST)
