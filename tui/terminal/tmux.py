"""The tmux around the app: show another pane, or open a window beside the app's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from ...core.errors import reason

SECONDS = 5.0
"""Maximum seconds for a tmux command."""
_OURS = ("HOME", "PATH")
_OURS_BEGIN = ("XDG_", "SUBDECK_", "LC_", "LANG")
"""Variables that locate this user's files, for the program in the window; a window gets those of its server. They
contain no API keys.
"""


def window_command(name: str, argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that opens a window beside the app's; as argv, because tmux runs `#(…)` in a shell line."""
    socket = environment["TMUX"].partition(",")[0]
    ours = {key: value for key, value in environment.items() if key in _OURS or key.startswith(_OURS_BEGIN)}
    assignments = [f"{key}={value}" for key, value in ours.items()]
    tmux = (shutil.which("tmux") or "tmux", "-S", socket, "new-window", "-n", name)
    return (*tmux, "--", "env", *assignments, *argv)


def open_window(argv: Sequence[str]) -> str:
    """Open a window; return the error, or an empty string."""
    return _fault(argv, "tmux could not open a window")


def switch(argv: Sequence[str]) -> str:
    """Show the pane in the tmux around this app; return the error, or an empty string."""
    return _fault(argv, "tmux could not switch")


def _fault(argv: Sequence[str], failure: str) -> str:
    try:
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux failed: {reason(error)}"
    return f"{failure}: {done.stderr.strip()}" if done.returncode else ""
