"""The only module that knows file and directory names.

Imports nothing heavy: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import os
import time

from .system.files import open_regular

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_IN_SESSION_IDS = str.maketrans(dict.fromkeys("_.:=+/@~-", "x"))

META = "meta.json"
PROMPT = "prompt.md"
SYSTEM_PROMPT = "system-prompt.md"
LOCK = "lock"
TAKEN = ".taken"
"""Created by a run's first wrapper; a second wrapper exits."""
STARTING = ".starting"
"""Created by the launcher before it starts a local wrapper, which leaves no other trace until it has loaded."""
WRITING = ".writing"
"""The text that the model is writing, in pieces; read only to finish the run of a killed wrapper."""
FAULT = ".fault"
"""Why the wrapper failed, in one line; read to finish the run."""
FAULT_WORDS = "[subdeck] its wrapper failed with "
"""Start of that line in `stderr.log` if the disk cannot take the file."""
RUNNER = "runner.json"
CHILDREN = ".children"
"""The wrapper's child processes, a line `PID START_TIME` each; only without a control group."""
PERMIT = "host.json"
"""The only spool in which a run for another machine may start."""
PLACE = "place.json"
"""Where a run on another machine is, as the relay knows it."""
CODE = "code.json"
"""Describes the files sent with a run to another machine. Only records outside the checkout are acted on."""
LATE_RESULT = "late-result.json"
"""The result that a host reported after its run had been abandoned."""
EVENTS = "events.jsonl"
TRANSCRIPT = "transcript.log"
STDOUT = "stdout.log"
STDERR = "stderr.log"
CHILD_SESSION = "child-session.jsonl"
STOP = "stop.json"
INBOX = "inbox"
"""Entries sent to a run and not settled yet, a file each."""
CLOSED_INBOX = ".inbox"
"""The inbox once the run accepts no more messages."""
HAND = ".hand"
"""Locked by `takeover` while a person has the conversation open in the agent; holds the agent's `PID START_TIME`."""
INVITATION = ".invitation"
"""How to start the agent for that; read and removed by `takeover`."""
RESULT = "result.json"
CHANGES_PATCH = "changes.patch"
"""The run's changes, as git writes them."""
SETUP_LOG = "setup.log"
"""Output of the setup command."""
CHECK_LOG = "check.log"
"""Output of the run's check."""
ANSWER = "answer.md"
"""Only the answer, for a client that was sent only a part of it."""
_GIT_FILE = b"gitdir:"
"""Start of a `.git` that is a file, as in a worktree."""
ENVIRONMENT = "environment"
"""The launcher's environment for an agent in tmux; read and removed by the wrapper."""
SLOTS = ".slots"
"""Locks and state of the queue, beside the runs."""
WORKS, WORKTREE = "work", "tree"
"""Directories outside checkouts: of all work, and of a run's worktree."""
AGENT_ENVIRONMENT = "SUBDECK_AGENT_ENVIRONMENT"
"""Passes a wrapper, as JSON, the variables that the settings add for its agent only."""


CHILD = "PI_SUBAGENTS_CHILD"
"""`1` in the environment of every agent."""


def is_child() -> bool:
    """Whether this process belongs to an agent. Agents never delegate, and cannot reply for the user."""
    return os.environ.get(CHILD) == "1"


DEMO = "SUBDECK_DEMO"
"""The directory of a demo, in the environment of the app that shows it."""


def is_demo() -> bool:
    """Whether this process shows a demo: it launches nothing and searches for no agent."""
    return bool(os.environ.get(DEMO))


def prompt_name(attempt: int) -> str:
    """Name of the agent's stdin file for an attempt, counted from 1."""
    return PROMPT if attempt == 1 else f"prompt-{attempt}.md"


class Project:
    """The directory an engine is opened on. Its files exist only after the first launch or saved preset."""

    __slots__ = (
        "active",
        "home",
        "hosts_file",
        "relay_lock",
        "relay_log",
        "root",
        "runs",
        "sessions",
        "settings_file",
        "slots",
        "trash",
    )

    def __init__(self, root: str) -> None:
        self.root = root
        self.home = os.path.join(root, ".pi", "subagents")
        self.runs = f"{self.home}/runs"
        self.slots = f"{self.runs}/{SLOTS}"
        """Slot locks: `<group id>/` and `project/`. The dot keeps them out of the list of runs."""
        self.active = f"{self.home}/active"
        self.sessions = f"{self.home}/sessions"
        self.trash = f"{self.home}/trash"
        self.settings_file = f"{self.home}/config.yaml"
        self.relay_lock = f"{self.runs}/.relay"
        """Held by the relay, which manages runs on other machines."""
        self.relay_log = f"{self.runs}/.relay.log"
        self.hosts_file = f"{self.runs}/.hosts.json"
        """The relay's view of the hosts."""

    def run_dir(self, run_id: str) -> str:
        return f"{self.runs}/{run_id}"

    def session_file(self, session: str) -> str:
        return f"{self.sessions}/{session}.jsonl"


def is_own(owner: int, _: str = "") -> bool:
    """Whether a user id is this user's, or that of the user who became root with sudo."""
    user_id = os.geteuid()
    return owner == user_id or (user_id == 0 and os.environ.get("SUDO_UID") == str(owner))


def find_project(cwd: str, is_trusted: Callable[[int, str], bool] = is_own) -> Project:
    """Find the project of a directory without starting git.

    The git root; outside git the nearest ancestor with `.pi/subagents`, never HOME or above it, or the directory
    itself. A `.git` or `.pi` of an untrusted user (`is_trusted` gets its owner and directory), or a `.git` that git
    would refuse, makes no project and ends the search upwards.
    """
    start = os.path.realpath(cwd)
    ancestors: list[str] = []
    directory = start
    demo = os.environ.get(DEMO)  # a temporary directory may be inside one of the user's repositories
    while directory != demo:
        ancestors.append(directory)
        if os.path.lexists(f"{directory}/.git"):
            if is_repository(directory, is_trusted):
                return Project(directory)
            break
        directory, former = os.path.dirname(directory), directory
        if directory == former:
            break
    home = os.path.realpath(os.path.expanduser("~"))
    for directory in ancestors:
        if home == directory or home.startswith(directory.rstrip("/") + "/"):
            break
        if owners := _owners(f"{directory}/.pi"):
            if not all(is_trusted(owner, directory) for owner in owners):
                break
            if os.path.isdir(f"{directory}/.pi/subagents"):
                return Project(directory)
    return Project(start)


def is_repository(directory: str, is_trusted: Callable[[int, str], bool]) -> bool:
    """Whether git would accept the `.git` of a directory: a repository, or a file that names one."""
    path = f"{directory}/.git"
    if not all(is_trusted(owner, directory) for owner in _owners(path)):
        return False
    if os.path.isdir(path):
        return os.path.lexists(f"{path}/HEAD")
    try:
        descriptor, _ = open_regular(path, follow=True)
    except OSError:
        return False
    try:
        return os.read(descriptor, len(_GIT_FILE)) == _GIT_FILE
    finally:
        os.close(descriptor)


def _owners(path: str) -> set[int]:
    """Return the owners of a path, and of its target if it is a link; empty if it is missing."""
    try:
        return {os.lstat(path).st_uid, os.stat(path).st_uid}
    except OSError:
        return set()


def at_home(path: str) -> str:
    """Return a path for display, with `~` for the home directory."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home.rstrip("/") + "/") else path


def agent_dir() -> str:
    """pi's own directory, with global presets and the list of models; `PI_CODING_AGENT_DIR` moves it."""
    named = os.environ.get("PI_CODING_AGENT_DIR")
    return os.path.expanduser(named) if named else os.path.join(os.path.expanduser("~"), ".pi", "agent")


def shared_sessions() -> str:
    """Return the directory of conversations shared by the runs of sticky presets."""
    return os.path.join(os.path.dirname(agent_dir()), "subagent-sessions")


def user_settings_file() -> str:
    return os.path.join(_own_dir("XDG_CONFIG_HOME", ".config"), "config.yaml")


def has_settings(project: Project) -> bool:
    """Whether a settings file exists, for the user or the project."""
    return any(map(os.path.lexists, (user_settings_file(), project.settings_file)))


def state_file(*names: str) -> str:
    """Return the path of a file kept between starts; it may not exist."""
    return os.path.join(_own_dir("XDG_STATE_HOME", ".local/state"), *names)


def spool_dir() -> str:
    """Return where this machine keeps other machines' runs by default; named by machine, since homes may be shared."""
    return state_file(f"spool-{os.uname().nodename}")


def key_file() -> str:
    """Return the path of the secret that signs this user's runs: one for all launchers, regardless of XDG."""
    return os.path.join(os.path.expanduser("~"), ".local", "state", "subdeck", "key")


def work_dir(project: Project, run_id: str) -> str:
    """Return the directory of a run's work outside its checkout: git objects, its worktree."""
    return os.path.join(works_dir(project), run_id)


def works_dir(project: Project) -> str:
    """Return the directory of all work of a project."""
    return state_file(WORKS, project_key(project.root))


def cache_dir() -> str:
    return _own_dir("XDG_CACHE_HOME", ".cache")


def _own_dir(variable: str, usual: str) -> str:
    base = os.environ.get(variable) or os.path.join(os.path.expanduser("~"), usual)
    return os.path.join(base, "subdeck")


def project_key(root: str) -> str:
    """Return a file name for one project: 16 hex digits, for a path of any length."""
    return hex_digest(os.fsencode(os.path.realpath(root)), 16)


def hex_digest(content: bytes, digits: int) -> str:
    """Return the first `digits` hex digits of the SHA-256: a short name for a long text."""
    sha256 = _sha256()
    return sha256(content).hexdigest()[:digits]


def _sha256() -> Callable[[bytes], Any]:
    """Return the same as in hashlib, which loads OpenSSL: 9 ms, and 4 MB in a process that stays."""
    for name in ("_sha2", "_sha256", "hashlib"):  # since Python 3.12, before, and where it was built without them
        try:
            return __import__(name).sha256
        except ImportError:
            pass
    raise ImportError("hashlib")


def new_run_id() -> str:
    """`YYYYMMDD-HHMMSS-xxxxxx` in UTC; the six random hex digits are the short id."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def is_run_id(name: str) -> bool:
    if len(name) != 22 or not name[8] == name[15] == "-":
        return False
    return name[:8].isdecimal() and name[9:15].isdecimal() and not name[16:].strip("0123456789abcdef")


def is_session_id(name: str) -> bool:
    """Whether an agent's conversation id is safe as an argument of its program: not an option, not a path that leads
    elsewhere, and not free text.
    """
    if not 0 < len(name) <= 200 or not name.isascii() or ".." in name:
        return False
    return (name[0].isalnum() or name[0] == "_") and name.translate(_IN_SESSION_IDS).isalnum()


def now_iso() -> str:
    """UTC with milliseconds, as in all our files."""
    return iso_time(time.time())


def iso_time(at: float) -> str:
    """Format seconds since 1970 as `now_iso` does."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at * 1000) % 1000:03d}Z"
