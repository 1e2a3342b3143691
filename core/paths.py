"""The only place that knows file and directory names.

Imports nothing heavy: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from .system.files import open_regular

_IN_SESSION_IDS = str.maketrans(dict.fromkeys("_.:=+/@~-", "x"))

META = "meta.json"
PROMPT = "prompt.md"
SYSTEM_PROMPT = "system-prompt.md"
LOCK = "lock"
TAKEN = ".taken"
"""Made by the first wrapper of a run; another one leaves again."""
STARTING = ".starting"
"""Made by the launcher before it starts a wrapper here, which says nothing of itself until it has loaded."""
WRITING = ".writing"
"""What the model is writing, in pieces; only who finishes the run of a killed wrapper reads it."""
FAULT = ".fault"
"""Why the wrapper failed, a line; left for who finishes the run."""
FAULT_WORDS = "[subdeck] its wrapper failed with "
"""Begin that line in `stderr.log`, where the disk takes no file for it."""
RUNNER = "runner.json"
CHILDREN = ".children"
"""What the wrapper had as children, a line `PID START_TIME` each; only where no control group tells that."""
PERMIT = "host.json"
"""The one spool in which a run of another machine may start."""
PLACE = "place.json"
"""Where a run of another machine is, as the relay knows it."""
CODE = "code.json"
"""Says of a run on another machine which files it takes along; what is acted on is kept outside of the checkout."""
LATE_RESULT = "late-result.json"
"""What a host told of a run's end after it had been given up."""
EVENTS = "events.jsonl"
TRANSCRIPT = "transcript.log"
STDOUT = "stdout.log"
STDERR = "stderr.log"
CHILD_SESSION = "child-session.jsonl"
STOP = "stop.json"
INBOX = "inbox"
"""What was sent to a run and is not settled yet, a file each."""
CLOSED_INBOX = ".inbox"
"""The same once the run takes nothing more."""
HAND = ".hand"
"""Locked for as long as a person has the conversation in hand, by what runs the agent's own program and by that."""
INVITATION = ".invitation"
"""How that program is started; read and unlinked by what starts it."""
RESULT = "result.json"
CHANGES_PATCH = "changes.patch"
SETUP_LOG = "setup.log"
"""What the run changed, as git writes it."""
CHECK_LOG = "check.log"
"""What the check of the run wrote."""
ANSWER = "answer.md"
"""The answer alone; only where a client could not be given all of it."""
_GIT_FILE = b"gitdir:"
"""How a `.git` begins that is a file, as in a worktree."""
ENVIRONMENT = "environment"
"""What a tmux child needs from its launcher's environment; read and unlinked by the wrapper."""
SLOTS = ".slots"
"""Beside the runs: the locks of their queue, and how the operator left it."""
WORKS, WORKTREE = "work", "tree"
"""Of the directories outside checkouts: of all work, and of the worktree of a run."""
AGENT_ENVIRONMENT = "SUBDECK_AGENT_ENVIRONMENT"
"""The variable in which a wrapper gets, as JSON, what the settings add to the environment of its child alone."""


CHILD = "PI_SUBAGENTS_CHILD"
"""`1` in the environment of every child."""


def is_child() -> bool:
    """Return whether this process belongs to a child agent: it never delegates, and answers for nobody."""
    return os.environ.get(CHILD) == "1"


DEMO = "SUBDECK_DEMO"
"""The directory of a demo, in the environment of whoever looks at it."""


def is_demo() -> bool:
    """Return whether this process looks at a demo: nothing is launched, and no agent is looked for."""
    return bool(os.environ.get(DEMO))


def prompt_name(attempt: int) -> str:
    """Name of what the child reads on stdin in its n-th attempt, counted from 1."""
    return PROMPT if attempt == 1 else f"prompt-{attempt}.md"


class Project:
    """The directory an engine is opened on; nothing in it exists before the first launch or saved preset."""

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
        """Slot locks: `<group id>/` and `project/`; the dot keeps them out of the list of runs."""
        self.active = f"{self.home}/active"
        self.sessions = f"{self.home}/sessions"
        self.trash = f"{self.home}/trash"
        self.settings_file = f"{self.home}/config.yaml"
        self.relay_lock = f"{self.runs}/.relay"
        """Held by the relay, which sees to runs on other machines."""
        self.relay_log = f"{self.runs}/.relay.log"
        self.hosts_file = f"{self.runs}/.hosts.json"
        """What the relay knows of the hosts."""

    def run_dir(self, run_id: str) -> str:
        return f"{self.runs}/{run_id}"

    def session_file(self, session: str) -> str:
        return f"{self.sessions}/{session}.jsonl"


def is_own(owner: int, _: str = "") -> bool:
    """Return whether a user id is this user's, or that of the user who has become root by sudo."""
    own = os.geteuid()
    return owner == own or (own == 0 and os.environ.get("SUDO_UID") == str(owner))


def find_project(cwd: str, is_trusted: Callable[[int, str], bool] = is_own) -> Project:
    """Find the project of a directory without starting git.

    The git root; outside git the nearest ancestor that has `.pi/subagents`, never HOME or what lies above it; else
    the directory itself. A `.git` or `.pi` that is another user's (`is_trusted` is asked with its owner and where it
    stands), or a `.git` that git would not take, makes no project, and nothing above it is looked at.
    """
    start = os.path.realpath(cwd)
    ancestors: list[str] = []
    directory = start
    demo = os.environ.get(DEMO)  # a temporary directory may be in a repository of the user's
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
    """Return whether git would take the `.git` of a directory: a repository, or a file that names one."""
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
    """Return the owners of what has that name, and of what it leads to where it is a link; none where it is missing."""
    try:
        return {os.lstat(path).st_uid, os.stat(path).st_uid}
    except OSError:
        return set()


def at_home(path: str) -> str:
    """Return a path with `~` for the home directory, to be read by a person."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home.rstrip("/") + "/") else path


def agent_dir() -> str:
    """pi's own directory, where global presets and the list of models live; `PI_CODING_AGENT_DIR` moves it."""
    named = os.environ.get("PI_CODING_AGENT_DIR")
    return os.path.expanduser(named) if named else os.path.join(os.path.expanduser("~"), ".pi", "agent")


def shared_sessions() -> str:
    """Return the directory of the conversations that the runs of a sticky preset share."""
    return os.path.join(os.path.dirname(agent_dir()), "subagent-sessions")


def user_settings_file() -> str:
    return os.path.join(_own_dir("XDG_CONFIG_HOME", ".config"), "config.yaml")


def has_settings(project: Project) -> bool:
    """Whether there is a file with settings, of the user or of the project."""
    return any(map(os.path.lexists, (user_settings_file(), project.settings_file)))


def state_file(*names: str) -> str:
    """Return the path of what is remembered from one start to the next; it may not be there."""
    return os.path.join(_own_dir("XDG_STATE_HOME", ".local/state"), *names)


def spool_dir() -> str:
    """Return where this machine keeps the runs of other machines, if nothing else is named; homes may be shared."""
    return state_file(f"spool-{os.uname().nodename}")


def key_file() -> str:
    """Return the path of the secret that marks this user's runs: one place for all launchers, whatever XDG says."""
    return os.path.join(os.path.expanduser("~"), ".local", "state", "subdeck", "key")


def work_dir(project: Project, run_id: str) -> str:
    """Return the directory of what is kept of a run's work outside its checkout: git objects, its worktree."""
    return os.path.join(works_dir(project), run_id)


def works_dir(project: Project) -> str:
    """Return the directory of the work of all runs of a project."""
    return state_file(WORKS, project_key(project.root))


def cache_dir() -> str:
    return _own_dir("XDG_CACHE_HOME", ".cache")


def _own_dir(variable: str, usual: str) -> str:
    base = os.environ.get(variable) or os.path.join(os.path.expanduser("~"), usual)
    return os.path.join(base, "subdeck")


def project_key(root: str) -> str:
    """Return the name of a file that is about one project: 16 hex digits, whatever the project's path is."""
    return hex_digest(os.fsencode(os.path.realpath(root)), 16)


def hex_digest(content: bytes, digits: int) -> str:
    """Return the first so many hexadecimal digits of the SHA-256: a short name for a long text."""
    import hashlib  # with it comes OpenSSL, which neither a launch nor the first paint waits for

    return hashlib.sha256(content).hexdigest()[:digits]


def new_run_id() -> str:
    """`YYYYMMDD-HHMMSS-xxxxxx` in UTC; the six hex digits are random and are the short id."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def is_run_id(name: str) -> bool:
    if len(name) != 22 or not name[8] == name[15] == "-":
        return False
    return name[:8].isdecimal() and name[9:15].isdecimal() and not name[16:].strip("0123456789abcdef")


def is_session_id(name: str) -> bool:
    """Return whether an id that an agent gave its conversation can be no option, no path that leads elsewhere, and no
    text: it becomes an argument of that agent's program.
    """
    if not 0 < len(name) <= 200 or not name.isascii() or ".." in name:
        return False
    return (name[0].isalnum() or name[0] == "_") and name.translate(_IN_SESSION_IDS).isalnum()


def now_iso() -> str:
    """UTC with milliseconds, as in every file of ours."""
    return iso_time(time.time())


def iso_time(at: float) -> str:
    """Write seconds since 1970 as `now_iso` does."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at * 1000) % 1000:03d}Z"
