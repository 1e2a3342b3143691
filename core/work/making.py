"""Making the worktree of a run, in a process of its own: git's part, what is ignored and needed, the setup command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..errors import SubdeckError
from ..git import worktrees as in_git
from ..git.merges import commit
from ..git.program import GitError
from ..git.repository import find
from ..git.snapshot import Store
from ..run.describe import size_text
from ..system import files
from ..system.log import log_fault
from ..text.decoding import UNDECODABLE, decode
from ..text.plain import one_line, plain
from ._copying import Copied, Copying
from .record import WorkRecord, read_record, tree_of, write_record

FILE = "making.json"
MAKING_S = 900.0
"""Seconds that all but the setup command may take."""
SETUP_S = 600.0
MESSAGE = "Snapshot of the files after the setup command\n\nTaken by subdeck for the worktree of a run."
MOST_SAID = 1_000
"""Characters of what a setup command wrote that stand in the message of its failure."""


class Making(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the settings say of worktrees, as it was at the launch; beside the record of the run's work."""

    copy: tuple[str, ...] = ()
    """Ignored files and directories that are copied."""
    link: tuple[str, ...] = ()
    """Those that are linked: what a child writes there is written in the project."""
    setup: tuple[str, ...] = ()
    """A command that is run in it before the child is started."""
    setup_timeout: float = SETUP_S


class Made(Struct, frozen=True, rename="camel", omit_defaults=True):
    fault: str = ""
    """Why there is none, or none that is ready; empty where all is well."""
    notes: tuple[str, ...] = ()
    """What was done, a sentence each."""


def write_making(directory: str, making: Making) -> None:
    """Write it into the directory of a run's work. Raises OSError."""
    files.write_whole(os.path.join(directory, FILE), msgspec.json.encode(making))


def read_making(directory: str) -> Making:
    """Read it; without one nothing is copied or run."""
    try:
        return decode(files.read(os.path.join(directory, FILE)), Making)
    except (OSError, *UNDECODABLE):
        return Making()


def make(directory: str, log: str) -> Made:
    """Make the worktree that the record in a directory describes, and all that is needed in it; `log` is the file for
    what the setup command says.
    """
    record, making = read_record(directory), read_making(directory)
    if record is None:
        return Made(f"the worktree's starting files are unknown: {directory} has no record of them")
    try:
        notes = _made(directory, record, making)
        if making.setup:
            notes.append(_set_up(_place(tree_of(directory), record), record, making, log))
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
        files.lock(lock)  # git reads what it knows of the others, also what another one has only begun to write
        in_git.add(repository, tree, record.branch, record.base, is_new=False, checks_out=False)
    finally:
        os.close(lock)
    in_git.check_out(tree, patience=MAKING_S)
    place = _place(tree, record)
    if os.path.realpath(place) != _place(os.path.realpath(tree), record):
        raise SubdeckError("the run's directory is a link out of the worktree", where=place)
    os.makedirs(place, exist_ok=True)
    notes = [f"its worktree is ready: {record.branch}, {time.monotonic() - began:.1f} s"]
    if making.copy or making.link:
        notes += _along(record.root, tree, making)
    return notes


def _place(root: str, record: WorkRecord) -> str:
    """Return where the run works, or was launched, below a root."""
    return os.path.join(root, record.prefix) if record.prefix else root


def _along(root: str, tree: str, making: Making) -> list[str]:
    """Bring along what is ignored and needed; return what was brought."""
    began = time.monotonic()
    copying = Copying(root, tree)
    copied = copying.bring(making.copy, making.link)
    return [*_words(copied, time.monotonic() - began), *copied.troubles]


def _words(copied: Copied, seconds: float) -> list[str]:
    said: list[str] = []
    if copied.names:
        count = "1 file" if copied.files == 1 else f"{copied.files:,} files"
        how = ", sharing their blocks" if copied.is_shared else ""
        listed = ", ".join(one_line(name, 60) for name in copied.names[:5])
        more = f" and {len(copied.names) - 5} more" if len(copied.names) > 5 else ""
        said.append(f"copied {listed}{more}: {count}, {size_text(copied.size)}{how}, {seconds:.1f} s")
    if copied.linked:
        listed = ", ".join(one_line(name, 60) for name in copied.linked[:5])
        said.append(f"linked {listed}: writes there change the project's own files")
    return said


def _set_up(place: str, record: WorkRecord, making: Making, log: str) -> str:
    """Run the setup command. Raises SubdeckError where it fails, with the end of what it said."""
    command = one_line(" ".join(making.setup), 80)
    environment = {name: value for name, value in os.environ.items() if name != paths.AGENT_ENVIRONMENT}
    environment |= {"PWD": place, "SUBDECK_ORIGIN": _place(record.root, record)}
    began = time.monotonic()
    descriptor = files.open_private(log, os.O_RDWR | os.O_APPEND | os.O_TRUNC)
    try:
        try:
            process = subprocess.Popen(
                making.setup,
                cwd=place,
                env=environment,
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
        raise SubdeckError(f"the setup command {how}{_said(log)}", where=command)
    return f"the setup command finished: {command}, {time.monotonic() - began:.1f} s"


def _begin_after_setup(directory: str, record: WorkRecord) -> str:
    """Have the run begin with what the setup command has left, so that nobody takes that for the run's work."""
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
    said = os.pread(descriptor, 4 * MOST_SAID, max(0, size - 4 * MOST_SAID))
    text = plain(said.decode("utf-8", "replace")).strip()[-MOST_SAID:]
    return f":\n{text}" if text else ""


def _said(log: str) -> str:
    descriptor, _ = files.open_regular(log)
    try:
        return _end_of(descriptor)
    finally:
        os.close(descriptor)


def take_back(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove what was made for runs whose children never worked there: worktree, branch and record. Raises nothing."""
    for run_id in run_ids:
        directory = paths.work_dir(project, run_id)
        record = read_record(directory)
        try:
            if record is not None and not record.host:
                _forget(record, tree_of(directory))
        except (SubdeckError, OSError) as error:
            log_fault("removing a worktree", error)
            continue  # its record says what is left
        files.remove_tree(directory)


def _forget(record: WorkRecord, tree: str) -> None:
    """Remove a worktree and its branch, as far as they are there. Raises SubdeckError and OSError."""
    repository = find(record.root)
    if repository is None or repository.trouble:
        raise SubdeckError("cannot use its repository", where=record.root)
    if any(os.path.realpath(one.path) == os.path.realpath(tree) for one in in_git.listed(repository)):
        in_git.remove(repository, tree)
    files.remove_tree(tree)
    if os.path.lexists(tree):
        raise SubdeckError("cannot remove the worktree", where=tree)
    in_git.delete_branch(repository, record.branch, record.base)
