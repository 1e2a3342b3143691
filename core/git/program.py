"""git, run as a program: it never runs what a checkout sets, nor takes longer than its caller waits."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, NamedTuple

from ..errors import SubdeckError
from ..text.plain import one_line
from . import configuration
from .configuration import Setting

OLDEST = (2, 31)
"""The first git with settings from its environment, where any filter name can be overridden."""
MERGING = (2, 38)
"""The first with `merge-tree --write-tree`."""
PATIENCE_S = 60.0

_KEPT = frozenset({
    "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_CEILING_DIRECTORIES", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
})  # fmt: skip
"""Variables with the user's identity and settings files; other `GIT_` variables belong to other calls of git."""
_FIXED = {
    "GIT_ADVICE": "0",
    # Empty allows none, despite the repository's settings: git before 2.39.4 ignores GIT_NO_LAZY_FETCH.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "",
}
COMING_S = 2.0
"""Seconds to retry while another git is adding a worktree, which blocks any listing of worktrees."""
_COMING = re.compile(r"failed to read .*worktrees/[^/]+/commondir")
"""git's message in that case: the file exists, but is not written yet."""
AT_WORK = "another git command is running, or was killed"
_LOCKED = re.compile(
    r"[Uu]nable to create '([^\n]+\.lock)': File exists|could not lock config file ([^\n]+): File exists"
)
"""git's message if the lock file of an index, a reference, HEAD, or settings exists."""
Given = bytes | IO[bytes] | None
"""A command's stdin: its content, or an open file."""
_CHUNK = 1 << 16
_MOST_STDERR = 1 << 16
"""Bytes of stderr to keep: the last ones."""


class GitError(SubdeckError):
    """git has refused or failed; `what` is its last message."""

    code = "git.failed"

    def __init__(self, what: str, *, where: str = "", hint: str = "", code: str = "", stderr: str = "") -> None:
        super().__init__(what, where=where, hint=hint, code=code)
        self.stderr = stderr
        """Its complete stderr, not fit for display."""


class GitMissing(GitError):
    """git is missing or too old."""

    code = "git.missing"


class GitTimeout(GitError):
    """A command took too long, and was killed with all its processes."""


class GitResult(NamedTuple):
    code: int
    output: bytes
    stderr: str
    """Its stderr."""


class Git:
    """git in a directory: in the repository found there, or in one of subdeck's (`git_dir`).

    Programs set by the repository are overridden; its settings are read before the first command. A repository of
    subdeck's (`is_own`) has only its own settings.
    """

    def __init__(
        self,
        directory: str,
        *,
        git_dir: str | None = None,
        work_tree: str | None = None,
        index: str | None = None,
        objects: str | None = None,
        alternates: Sequence[str] = (),
        settings: Sequence[Setting] = (),
        is_own: bool = False,
        patience: float = PATIENCE_S,
        memory: int = 0,
    ) -> None:
        """`memory` is a command's limit in bytes; 0 for no limit."""
        self.directory = directory
        self._memory = memory
        self.index = index or ""
        """The index file; empty for the repository's."""
        self.patience = patience
        """Seconds that a command may take."""
        self._settings: Sequence[Setting] | None = settings if is_own else None
        self._more = settings
        self._variables = {
            name: value
            for name, value in {
                "GIT_DIR": git_dir,
                "GIT_WORK_TREE": work_tree,
                "GIT_INDEX_FILE": index,
                "GIT_OBJECT_DIRECTORY": objects,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(quoted, alternates)),
                "GIT_OPTIONAL_LOCKS": "1" if is_own else None,
            }.items()
            if value
        }

    def run(self, *arguments: str | bytes, input: Given = None) -> bytes:  # noqa: A002 - as subprocess has it
        """Return a command's output. Raises GitError if it fails."""
        answer = self.ask(*arguments, input=input)
        if answer.code:
            raise failure(arguments, answer, self.directory)
        return answer.output

    def lines(self, *arguments: str | bytes, input: Given = None) -> list[bytes]:  # noqa: A002
        """Return the output lines of a command with null bytes at their ends (`-z`). Raises GitError."""
        return [line for line in self.run(*arguments, input=input).split(b"\0") if line]

    def ask(self, *arguments: str | bytes, input: Given = None) -> GitResult:  # noqa: A002
        """Return a command's exit code and output. Raises GitError if it cannot be run, takes too long, or is killed:
        that is not an answer of "no".
        """
        deadline = time.monotonic() + COMING_S
        while True:
            written: list[bytes] = []
            code, stderr = self.feed(written.append, *arguments, input=input)
            if code < 0:
                raise failure(arguments, GitResult(code, b"", stderr), self.directory)
            if not code or not _COMING.search(stderr) or time.monotonic() > deadline:
                return GitResult(code, b"".join(written), stderr)
            time.sleep(0.01)

    def feed(
        self,
        take: Callable[[bytes], object],
        *arguments: str | bytes,
        input: Given = None,  # noqa: A002
    ) -> tuple[int, str]:
        """Pass a command's output to `take` until that returns False; return its code and stderr.

        The code is 0 if `take` ended it. Raises GitError if it cannot be run, or takes too long.
        """
        check_version(OLDEST)
        if self._settings is None:
            self._settings = (*configuration.overrides(self.configured()), *self._more)
        return self._converse(take, arguments, (*configuration.FIXED, *self._settings), input)

    def configured(self) -> list[configuration.ConfigEntry]:
        """Return all effective settings with their scope; this runs no other program. Raises GitError."""
        check_version(OLDEST)
        written: list[bytes] = []
        code, stderr = self._converse(written.append, configuration.LISTING, configuration.FIXED, None)
        if code:
            raise failure(configuration.LISTING, GitResult(code, b"", stderr), self.directory)
        return configuration.parsed(b"".join(written))

    def trees(self, *names: str) -> list[str]:
        """Return the tree of each commit or tree, all by one command. Raises GitError, also for a missing one."""
        asked = "".join(f"{name}^{{tree}}\n" for name in names)
        found = os.fsdecode(self.run("cat-file", "--batch-check=%(objectname)", input=os.fsencode(asked))).splitlines()
        for name, tree in zip(names, found, strict=False):  # a line break in a name would ask for two
            if " " in tree or "\n" in name:
                raise GitError(f"git has no tree of {one_line(name, 80)}", where=one_line(self.directory))
        return found

    def _converse(
        self,
        take: Callable[[bytes], object],
        arguments: Sequence[str | bytes],
        settings: Sequence[Setting],
        content: Given,
    ) -> tuple[int, str]:
        argv = [*self._bound(), program(), "--no-pager", *arguments]
        environment = self._environment(settings)
        try:
            with _as_file(content) as stdin:
                process = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=self.directory,
                    env=environment,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise GitError(f"cannot start git: {reason}", where=one_line(self.directory)) from error
        is_done = False
        try:
            stderr = _heard(process, take, time.monotonic() + self.patience)
            is_done = stderr is not None
        except ChildProcessError:
            raise GitError(f"git {_name(arguments)}: its result is unknown", where=one_line(self.directory)) from None
        except TimeoutError:
            name = _name(arguments)
            raise GitTimeout(
                f"git {name} took longer than {self.patience:.0f} s", where=one_line(self.directory)
            ) from None
        finally:
            if not is_done:
                _kill(process)
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
            code = process.wait()
        return (0, "") if stderr is None else (code, stderr)

    def _bound(self) -> tuple[str, ...]:
        """Return the words that start a command with limited memory. Mapped files do not count.

        The user's own limit still applies if it is lower.
        """
        if not self._memory:
            return ()
        return ("/bin/sh", "-c", 'ulimit -d "$1" 2>/dev/null; shift; exec "$@"', "sh", str(self._memory // 1024))

    def _environment(self, settings: Sequence[Setting]) -> Mapping[str, str]:
        usual = {name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith("GIT_")}
        for unwanted in ("LANGUAGE", "SSH_ASKPASS_REQUIRE"):
            usual.pop(unwanted, None)
        numbered: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, setting in enumerate(settings):
            numbered[f"GIT_CONFIG_KEY_{number}"], numbered[f"GIT_CONFIG_VALUE_{number}"] = setting
        return usual | {"PATH": _search_path()} | _FIXED | numbered | self._variables


def program() -> str:
    """Return the path of git. Raises GitMissing.

    A relative entry of PATH would be looked up in the checkout.
    """
    return _program_on(_search_path())


def _search_path() -> str:
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))


@lru_cache
def _program_on(path: str) -> str:
    for directory in path.split(os.pathsep):
        name = os.path.join(directory, "git")
        if os.path.isfile(name) and os.access(name, os.X_OK):
            return name
    raise GitMissing("git is not on PATH", hint="install git with your system's package manager")


def version() -> tuple[int, ...]:
    """Return the version of git, such as `(2, 39, 5)`. Raises GitError."""
    return _version_of(program())


@lru_cache
def _version_of(path: str) -> tuple[int, ...]:
    try:
        result = subprocess.run((path, "version"), stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"cannot run git: {error}", where=path) from error
    match = re.match(rb"git version (\d+)\.(\d+)(?:\.(\d+))?", result.stdout)
    if not match:
        raise GitError("cannot read git's version", where=path)
    return tuple(int(number) for number in match.groups() if number)


def check_version(needed: tuple[int, ...], what_for: str = "") -> None:
    """Raise GitMissing if git is missing or older than `needed`; `what_for` is a clause such as `to apply changes`."""
    if (current := version()) < needed:
        needed_words, current_words = ".".join(map(str, needed)), ".".join(map(str, current))
        requirement = f"git {needed_words} or newer is needed{what_for and f' {what_for}'}"
        raise GitMissing(f"{requirement}, but this is {current_words}", where=program(), hint="install a newer git")


def failure(arguments: Sequence[str | bytes], answer: GitResult, where: str) -> GitError:
    """Return an error from a command's last message, or from its exit code."""
    if locked := _LOCKED.search(answer.stderr):
        path = os.path.normpath(os.path.join(where, locked[1] or f"{locked[2]}.lock"))
        what = f"{one_line(os.path.basename(path).removesuffix('.lock'))} is locked: {AT_WORK}"
        hint = f"if no git command is running, remove {one_line(path)}"
        return GitError(what, where=one_line(where), hint=hint, code="git.locked", stderr=answer.stderr)
    lines = [line for line in map(one_line, answer.stderr.splitlines()) if line]
    blamed = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    if blamed:
        what = blamed[-1].removeprefix("fatal: ").removeprefix("error: ")
    elif answer.code < 0:
        what = f"killed by signal {-answer.code}"
    else:
        what = f"exit code {answer.code}"
    return GitError(f"git {_name(arguments)}: {one_line(what, 300)}", where=one_line(where), stderr=answer.stderr)


def quoted(path: str) -> str:
    """Quote a path, if needed, for a list of object directories in a variable or a file."""
    if not re.search(r'["\\\n:#]', path):
        return path
    return '"{}"'.format(path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))


def _name(arguments: Sequence[str | bytes]) -> str:
    """Return the command name, without the settings before it."""
    words = iter(arguments)
    for word in words:
        if word != "-c":
            return one_line(os.fsdecode(word))
        next(words, None)
    return ""


@contextmanager
def _as_file(content: Given) -> Generator[int | IO[bytes]]:
    """Yield a command's stdin: a file from its beginning, or one in memory, so that nothing has to feed it."""
    if not content:
        yield subprocess.DEVNULL
        return
    if not isinstance(content, bytes):
        os.lseek(content.fileno(), 0, os.SEEK_SET)  # `seek` of a buffered file may not move its descriptor
        yield content
        return
    with open(os.memfd_create("stdin"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _heard(process: subprocess.Popen[bytes], take: Callable[[bytes], object], deadline: float) -> str | None:
    """Read a process's output and stderr until it ends; return its stderr, or None if `take` ended it.

    Raises TimeoutError. Its exit is not collected here, so its group can still be killed.
    """
    stderr = b""
    with selectors.DefaultSelector() as selector:
        for stream in filter(None, (process.stdout, process.stderr)):
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            remaining = deadline - time.monotonic()
            if remaining < 0 or not (ready := selector.select(remaining)):
                raise TimeoutError
            for key, _ in ready:
                if not (part := os.read(key.fd, _CHUNK)):
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    stderr = (stderr + part)[-_MOST_STDERR:]
                elif take(part) is False:
                    return None
    pause = 0.0002
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(pause)
        pause = min(0.02, pause * 2)
    return os.fsdecode(stderr)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all its processes. Until its exit is collected, no other group can have its id."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
