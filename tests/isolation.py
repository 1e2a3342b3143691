"""A world for one test: its own home, tmux and temporary files; only programs are the machine's."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

MARKER = "SUBDECK_TEST_ID"
"""Inherited by all processes of a test; any that still has it at the end was left behind."""

SHIMS = Path(__file__).parent / "shims"

AGENTS = ("pi", "claude", "codex")

KEPT = frozenset({
    "CI", "LOGNAME", "PATH", "SUBDECK_EVERY_STEP", "SUBDECK_FUZZ_EXAMPLES", "SUBDECK_SAMPLE",
    "SUBDECK_TEST_FILES", "SUBDECK_TEST_PI", "USER", "VIRTUAL_ENV",
})  # fmt: skip
KEPT_PREFIXES = ("COV_", "COVERAGE_", "PYTEST_", "PYTHON")
"""Prefixes of kept variables; all others (provider keys, proxies, TMUX, settings of pi and subdeck) are removed."""


TIME_ZONE = "UTC" if 2 <= datetime.now(UTC).hour < 22 else "ACROSS-12"
"""A time zone without midnight during the tests: UTC, or the one on the other side of the world. Chosen once."""


STARTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"})
"""Python's audit events for the start of a process."""

started: list[str] = []
"""The processes that this process has started since the last test began."""


connected: list[object] = []
"""The addresses that this process has connected to since the last test began."""


def note_start(event: str, arguments: tuple[object, ...]) -> None:
    """Record each start; an audit hook sees the starts of tests and libraries alike."""
    if event in STARTS:
        started.append(f"a process with {event}{arguments[:2]}"[:300])
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        connected.append(arguments[1])


PARTS = ("here", "home", "tmp")
"""The directories of a test's world: its working directory, and the ones named by `variables`."""

_spare: list[Path] = []
"""The last world, if its test has left it empty."""


def _files_of_tests() -> Path:
    """Return the directory for test files: in memory if that has room and can start programs, otherwise on disk.

    The program syncs most of its writes to disk, which took a third of the processor time of tests that write. Codex
    gives its programs an empty `/dev/shm`: for tests with real agents `SUBDECK_TEST_FILES` names another place.
    """
    if named := os.environ.get("SUBDECK_TEST_FILES"):
        return Path(named)
    memory = Path("/dev/shm")
    try:
        there = os.statvfs(memory)
    except OSError:
        return Path("/tmp")
    has_room = there.f_bavail * there.f_frsize > ROOM and os.access(memory, os.W_OK | os.X_OK)
    return memory if has_room and not there.f_flag & os.ST_NOEXEC else Path("/tmp")


ROOM = 4 << 30
"""Bytes that have to be free in memory."""

PLACE = _files_of_tests()


def new_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="sd-", dir=PLACE))


def new_world() -> Path:
    """Return a directory with the empty `PARTS`, private to a test, under a new name.

    A world that is still empty is renamed: making and removing four directories takes longer than most tests do.
    """
    if _spare:
        return _spare.pop().rename(PLACE / f"sd-{secrets.token_hex(4)}")
    root = new_root()
    for part in PARTS:
        (root / part).mkdir(0o755)
    return root


def end_world(root: Path) -> None:
    """Remove a world, or keep it for the next test if it is still empty."""
    if _is_as_new(root):
        _spare.append(root)
    else:
        shutil.rmtree(root, ignore_errors=True)


def end_spare_worlds() -> None:
    while _spare:
        shutil.rmtree(_spare.pop(), ignore_errors=True)


def _is_as_new(root: Path) -> bool:
    wanted = {root: (0o40700, [*PARTS])} | {root / part: (0o40755, []) for part in PARTS}
    try:
        return wanted == {place: (place.lstat().st_mode, sorted(os.listdir(place))) for place in wanted}
    except OSError:
        return False


def variables(root: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a world in a short directory (a socket's path has at most 107 bytes)."""
    kept = {name: value for name, value in environment.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise every process of every test compiles its imports
    home, temporary = f"{root}/home", f"{root}/tmp"
    for directory in (home, temporary):
        if not os.path.isdir(directory):
            os.mkdir(directory)
    return kept | {
        "HOME": home,
        "LANG": "C.UTF-8",
        "PI_CODING_AGENT_DIR": f"{home}/.pi/agent",
        "PI_OFFLINE": "1",
        "SHELL": "/bin/sh",
        "TERM": "xterm-256color",
        "TMPDIR": temporary,
        "TMUX_TMPDIR": str(root),
        "TZ": TIME_ZONE,
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_RUNTIME_DIR": temporary,
        "XDG_STATE_HOME": f"{home}/.local/state",
    }


def enter(environment: Mapping[str, str], now: Mapping[str, str] | None = None) -> None:
    """Replace the environment of this process, which is `now` if given. Only differences are set, because each test
    does this twice.
    """
    if now is None:
        now = dict(os.environ)
    for name in now.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if now.get(name) != value:
            os.environ[name] = value
    time.tzset()


def reset_signals() -> None:
    """Stop ignoring signals that a parent ignores, like a script's background jobs: programs inherit that.

    SIGHUP, which nohup ignores, still does not end the tests: a handler is not inherited by the programs they start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)


def search_path(path: str, links: Path) -> str:
    """Return a PATH without the machine's own agents and with fd under the name that pi needs.

    A directory with an agent is replaced by links, in `links`, to all its other files.
    """
    directories: list[str] = [str(SHIMS)] if shutil.which("fdfind", path=path) else []
    for number, directory in enumerate(path.split(os.pathsep)):
        if any(os.access(os.path.join(directory, agent), os.X_OK) for agent in AGENTS):
            stand_in = links / str(number)
            stand_in.mkdir(parents=True)
            for name in os.listdir(directory):
                if name not in AGENTS:
                    (stand_in / name).symlink_to(os.path.realpath(os.path.join(directory, name)))
            directories.append(str(stand_in))
        elif directory and directory != str(SHIMS):
            directories.append(directory)
    return os.pathsep.join(directories)


def end_tmux_servers(root: Path) -> None:
    """Kill every tmux server with a socket in the world."""
    for socket in root.glob("tmux-*/*"):
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, stdin=subprocess.DEVNULL)


def pids() -> frozenset[str]:
    """Return the machine's process ids, from /proc."""
    return frozenset(filter(str.isdigit, os.listdir("/proc")))


def carriers(test_id: str, others: frozenset[str] = frozenset()) -> dict[int, str]:
    """Return pid and command line of the living processes, besides `others`, that inherited a test's marker."""
    wanted = f"{MARKER}={test_id}\0".encode()
    found: dict[int, str] = {}
    for name in pids() - others:
        try:
            if wanted in Path("/proc", name, "environ").read_bytes():
                command = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").strip()
                found[int(name)] = command.decode(errors="replace") or "(no command line)"
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


def end_left_overs(test_id: str, others: frozenset[str] = frozenset(), patience: float = 3.0) -> list[str]:
    """Wait `patience` seconds for a test's processes to end, kill the others, and name them.

    `others` are processes that existed before the test.
    """
    deadline = time.monotonic() + patience
    while left := carriers(test_id, others):
        if time.monotonic() < deadline:
            time.sleep(0.02)
            continue
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return [f"{pid}: {command}" for pid, command in sorted(left.items())]
    return []
