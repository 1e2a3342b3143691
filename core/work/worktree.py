"""Create a run's worktree, in a separate process: git's part, ignored but needed files, the setup command."""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, structs

from .. import paths
from ..errors import SubdeckError
from ..git import worktrees as in_git
from ..git.merges import commit
from ..git.program import Git, GitError
from ..git.repository import find
from ..git.snapshot import Store
from ..run.describe import size_text
from ..run.environment import for_command
from ..system import files
from ..system.log import log_fault
from ..text.plain import one_line, plain
from .records import Making, WorkRecord, read_making, read_record, tree_of, write_record

MAKING_S = 900.0
"""Seconds for everything but the setup command."""
MESSAGE = "Snapshot of the files after the setup command\n\nTaken by subdeck for the worktree of a run."
MOST_SAID = 1_000
"""Characters of a setup command's output in its error."""


class Made(Struct, frozen=True, rename="camel", omit_defaults=True):
    fault: str = ""
    """Why there is no usable worktree; empty on success."""
    notes: tuple[str, ...] = ()
    """What was done, a sentence each."""


def make(directory: str, log: str) -> Made:
    """Create the worktree recorded in a directory, with everything needed in it; `log` is the file for the setup
    command's output.
    """
    record, making = read_record(directory), read_making(directory)
    if record is None:
        return Made(f"the worktree's starting files are unknown: {directory} has no record of them")
    try:
        notes = _made(directory, record, making)
        if making.setup:
            notes.append(_set_up(_directory_in(tree_of(directory), record), record, making, log))
            notes.append(_begin_after_setup(directory, record))
    except SubdeckError as error:
        return Made(str(error))
    except OSError as error:
        return Made(f"cannot create its worktree: {error.strerror or error}: {one_line(str(error.filename or ''))}")
    return Made(notes=tuple(filter(None, notes)))


def _made(directory: str, record: WorkRecord, making: Making) -> list[str]:
    began = time.monotonic()
    tree = tree_of(directory)
    repository = find(record.root)
    if repository is None or repository.trouble:
        why = repository.trouble if repository else "it is no longer a git repository"
        raise SubdeckError(f"cannot create a worktree of it: {why}", where=record.root)
    if os.path.realpath(repository.common_dir) != os.path.realpath(record.common_dir):
        raise SubdeckError("a different repository is there now", where=record.root)
    locks = paths.state_file("work", ".locks")
    files.make_private_directory(locks)
    lock = files.open_lock(os.path.join(locks, paths.project_key(record.common_dir)))
    try:
        files.lock(lock)  # git also reads other worktrees' files that another git has only begun to write
        in_git.add(repository, tree, record.branch, record.base, is_new=False, checks_out=False)
    finally:
        os.close(lock)
    in_git.check_out(tree, patience=MAKING_S)
    working_directory = _directory_in(tree, record)
    if os.path.realpath(working_directory) != _directory_in(os.path.realpath(tree), record):
        raise SubdeckError("the run's directory is a link out of the worktree", where=working_directory)
    os.makedirs(working_directory, exist_ok=True)
    notes = [f"its worktree is ready: {record.branch}, {time.monotonic() - began:.1f} s"]
    if making.copy or making.link:
        notes += _along(record.root, tree, making)
    return notes


def _directory_in(root: str, record: WorkRecord) -> str:
    """Return the run's directory, or that of the launch, below a root."""
    return os.path.join(root, record.prefix) if record.prefix else root


def _along(root: str, tree: str, making: Making) -> list[str]:
    """Copy or link ignored but needed files; return notes on them."""
    began = time.monotonic()
    copying = Copying(root, tree)
    copied = copying.bring(making.copy, making.link)
    return [*_words(copied, time.monotonic() - began), *copied.troubles]


def _words(copied: Copied, seconds: float) -> list[str]:
    notes: list[str] = []
    if copied.names:
        count = "1 file" if copied.files == 1 else f"{copied.files:,} files"
        how = ", sharing their blocks" if copied.is_shared else ""
        listed = ", ".join(one_line(name, 60) for name in copied.names[:5])
        more = f" and {len(copied.names) - 5} more" if len(copied.names) > 5 else ""
        notes.append(f"copied {listed}{more}: {count}, {size_text(copied.size)}{how}, {seconds:.1f} s")
    if copied.linked:
        listed = ", ".join(one_line(name, 60) for name in copied.linked[:5])
        notes.append(f"linked {listed}: writes there change the project's own files")
    return notes


def _set_up(working_directory: str, record: WorkRecord, making: Making, log: str) -> str:
    """Run the setup command. On failure raise SubdeckError with the end of its output."""
    command = one_line(" ".join(making.setup), 80)
    began = time.monotonic()
    descriptor = files.open_private(log, os.O_RDWR | os.O_APPEND | os.O_TRUNC)
    try:
        try:
            process = subprocess.Popen(
                making.setup,
                cwd=working_directory,
                env=for_command(working_directory, {"SUBDECK_ORIGIN": _directory_in(record.root, record)}),
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise SubdeckError(f"cannot start the setup command: {why}", where=command) from error
        try:
            code = process.wait(making.setup_timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            what = f"the setup command took longer than {making.setup_timeout:g} s"
            raise SubdeckError(f"{what}{_end_of(descriptor)}", where=command) from None
    finally:
        os.close(descriptor)
    if code:
        how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
        raise SubdeckError(f"the setup command {how}{_end_of_log(log)}", where=command)
    return f"the setup command finished: {command}, {time.monotonic() - began:.1f} s"


def _begin_after_setup(directory: str, record: WorkRecord) -> str:
    """Start the run after the setup command's changes, so that they do not count as its work."""
    store = os.path.join(directory, "setup")
    try:
        repository = find(tree_of(directory))
        if repository is None or repository.trouble or repository.branch != record.branch:
            return "changes by the setup command count as the run's own"
        tree = Store(store).take(repository, into_repository=True).tree
        changed = repository.git.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", record.base, tree)
        if not changed:
            return ""
        base = commit(repository.git, tree, [record.head] if record.head else [], MESSAGE)
        write_record(directory, structs.replace(record, base=base))
        repository.git.run("reset", "-q", "--mixed", base)
    except GitError as error:
        return f"changes by the setup command count as the run's own: {one_line(error.what, 200)}"
    finally:
        files.remove_tree(store)
    count = "1 file" if len(changed) == 1 else f"{len(changed):,} files"
    return f"the setup command changed {count}: the run starts with them"


def _end_of(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    output = os.pread(descriptor, 4 * MOST_SAID, max(0, size - 4 * MOST_SAID))
    text = plain(output.decode("utf-8", "replace")).strip()[-MOST_SAID:]
    return f":\n{text}" if text else ""


def _end_of_log(log: str) -> str:
    descriptor, _ = files.open_regular(log)
    try:
        return _end_of(descriptor)
    finally:
        os.close(descriptor)


def take_back(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove worktree, branch and record of runs whose agents never worked there. Raises nothing."""
    for run_id in run_ids:
        directory = paths.work_dir(project, run_id)
        record = read_record(directory)
        try:
            if record is not None and not record.host:
                _forget(record, tree_of(directory))
        except (SubdeckError, OSError) as error:
            log_fault("removing a worktree", error)
            continue  # its record shows what is left
        files.remove_tree(directory)


def _forget(record: WorkRecord, tree: str) -> None:
    """Remove a worktree and its branch, if they exist. Raises SubdeckError and OSError."""
    repository = find(record.root)
    if repository is None or repository.trouble:
        raise SubdeckError("cannot use its repository", where=record.root)
    if any(os.path.realpath(worktree.path) == os.path.realpath(tree) for worktree in in_git.listed(repository)):
        in_git.remove(repository, tree)
    files.remove_tree(tree)
    if os.path.lexists(tree):
        raise SubdeckError("cannot remove the worktree", where=tree)
    in_git.delete_branch(repository, record.branch, record.base)


# --- ignored but needed files ----------------------------------------------------------------------------------------

_FICLONE = 0x40049409
_CHUNK = 1 << 20
_CANNOT = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV, errno.ENOSYS, errno.EPERM})


class Copied:
    """The result of copying."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.linked: list[str] = []
        self.files = 0
        self.size = 0
        self.is_shared = False
        """Whether the copy takes no extra disk space until it is changed."""
        self.troubles: list[str] = []


class Copying:
    """Copies files from a working tree to its worktree."""

    def __init__(self, root: str, tree: str) -> None:
        self._root = root
        self._tree = os.path.realpath(tree)
        self._copied = Copied()
        self._clones = True

    def bring(self, copy: Iterable[str], link: Iterable[str]) -> Copied:
        """Copy or link ignored files that match a list: a name anywhere, or a path from the root, with `*` and `?`.

        Raises GitError; unreadable or unwritable files are among the troubles.
        """
        ignored = self._ignored()
        linked = dict.fromkeys(_matching(ignored, link, self._root))
        copied = dict.fromkeys(_matching(ignored, copy, self._root))
        for name in linked:
            self._try(name, self._link)
        for name in copied:
            if not any(name == linked_name or name.startswith(f"{linked_name}/") for linked_name in linked):
                self._try(name, self._copy)
        return self._copied

    def _ignored(self) -> list[str]:
        """Return the files that git ignores, and the directories ignored as a whole."""
        lines = Git(self._root).lines("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        names = (os.fsdecode(name).rstrip("/") for name in lines)
        return [name for name in names if name != ".pi" and not name.startswith(".pi/")]  # runs belong to one place

    def _try(self, name: str, bring: Callable[[str, str], None]) -> None:
        try:
            target = self._target(name)
            if target is not None:
                bring(name, target)
        except OSError as error:
            self._trouble(name, error.strerror or str(error))

    def _trouble(self, name: str, why: str) -> None:
        self._copied.troubles.append(f"{one_line(name, 120)} was not copied or linked: {why}")

    def _target(self, name: str) -> str | None:
        """Return the target path; None if a link leads out of the worktree."""
        target = os.path.join(self._tree, name)
        above = os.path.dirname(target)
        if os.path.realpath(above) != above:
            self._trouble(name, "its path is a link out of the worktree")
            return None
        os.makedirs(above, exist_ok=True)
        return target

    def _link(self, name: str, target: str) -> None:
        if os.path.lexists(target):
            return
        os.symlink(os.path.join(self._root, name), target)
        if Git(self._tree).lines("ls-files", "--others", "--exclude-standard", "-z", "--", name):
            os.unlink(target)  # it would count as a change, and be applied as one
            self._trouble(
                name, 'it is ignored only as a directory: remove the "/" at the end of its ignore rule to link it'
            )
            return
        self._copied.linked.append(name)

    def _copy(self, name: str, target: str) -> None:
        source = os.path.join(self._root, name)
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode) and not self._stays_inside(source):
            self._trouble(name, "it is a link out of the project (use worktree.link for links)")
            return
        if not (stat.S_ISLNK(status.st_mode) or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            self._trouble(name, "not a regular file")
            return
        was_there, files = os.path.lexists(target), self._copied.files
        self._entry(source, target, status)
        if self._copied.files > files or (not was_there and os.path.lexists(target)):
            self._copied.names.append(name)

    def _entry(self, source: str, target: str, status: os.stat_result) -> None:
        """Copy one entry, a directory with its contents: existing files stay, and a failure does not affect other
        files.
        """
        is_merged = stat.S_ISDIR(status.st_mode) and _is_directory(target)  # part of it was linked or copied before
        if os.path.lexists(target) and not is_merged:
            return
        try:
            if stat.S_ISLNK(status.st_mode):
                os.symlink(self._link_target(os.readlink(source)), target)
            elif stat.S_ISREG(status.st_mode):
                self._file(source, target, status)
            elif stat.S_ISDIR(status.st_mode):
                if not is_merged:
                    os.mkdir(target, 0o700)
                with os.scandir(source) as entries:
                    for entry in entries:
                        below = os.path.join(target, entry.name)
                        self._entry(entry.path, below, entry.stat(follow_symlinks=False))
                os.chmod(target, stat.S_IMODE(status.st_mode) | 0o700)
        except OSError as error:
            self._trouble(os.path.relpath(source, self._root), error.strerror or str(error))

    def _link_target(self, leads_to: str) -> str:
        """Return the target of a copied link: inside the copy if it is an absolute path to the project's files."""
        return self._tree + leads_to[len(self._root) :] if f"{leads_to}/".startswith(f"{self._root}/") else leads_to

    def _stays_inside(self, source: str) -> bool:
        return f"{os.path.realpath(source)}/".startswith(f"{os.path.realpath(self._root)}/")

    def _file(self, source: str, target: str, status: os.stat_result) -> None:
        reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(reader).st_mode):
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            writer = os.open(target, flags, stat.S_IMODE(status.st_mode) | 0o200)
            try:
                self._content(reader, writer)
                os.fchmod(writer, stat.S_IMODE(status.st_mode))
                os.utime(writer, ns=(status.st_atime_ns, status.st_mtime_ns))
            except OSError:
                os.unlink(target)  # an agent would treat the half as complete
                raise
            finally:
                os.close(writer)
        finally:
            os.close(reader)
        self._copied.files += 1
        self._copied.size += status.st_size

    def _content(self, reader: int, writer: int) -> None:
        if self._clones:
            try:
                fcntl.ioctl(writer, _FICLONE, reader)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                self._clones = False
            else:
                self._copied.is_shared = True
                return
        self._copied.is_shared = False
        with open(reader, "rb", closefd=False) as source, open(writer, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target, _CHUNK)


def _matching(ignored: list[str], patterns: Iterable[str], root: str) -> Iterator[str]:
    """Yield the ignored names that a list selects: a name without a slash anywhere, or a path from the root."""
    for pattern in patterns:
        normal_pattern = os.path.normpath(pattern).strip("/")
        if not normal_pattern or normal_pattern.split("/")[0] in (os.curdir, os.pardir):
            continue
        is_path = "/" in pattern.rstrip("/")
        for name in ignored:
            compared = name if is_path else os.path.basename(name)
            if fnmatch.fnmatchcase(compared, normal_pattern):
                yield name
            elif (is_path and normal_pattern.startswith(f"{name}/")) and _is_there(root, normal_pattern):
                yield normal_pattern


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_there(root: str, name: str) -> bool:
    """Whether a path exists, without links on the way to it."""
    path = os.path.join(root, name)
    above = os.path.dirname(path)
    return os.path.lexists(path) and os.path.realpath(above) == os.path.join(
        os.path.realpath(root), os.path.dirname(name)
    )
