"""Decide which records of a run count: only those signed by this user's subdeck.

An agent that may write files can write anything into its run's directory, except the user's signature. Since
`resultSigned` is in `meta.json`, it requires the signature: without it, a result or a stop request of such a run never
counts, and neither does an end in its events. Each record is signed for its run and its purpose, so that none passes
for another. Older runs, and those of other users, are read as they are.

Only the standard library's lightest modules: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import errno
import os

from .. import paths
from ..errors import SubdeckError
from ..system import files
from ..system.directory import Directory, RefusedError, opened
from . import second_copy
from .signature import Verifier, signature_of, with_signature

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from .events import RunEnded
    from .model import RunResult

REJECTED = ".rejected-"
"""Follows the name of a file that was moved aside, before a number."""
_MOST_REJECTED = 20
_FLAG = b'\n "resultSigned": true'
"""As written in `meta.json`, where no text contains a raw newline."""


def sealed(run_dir: str, name: str, record: bytes) -> bytes:
    """Return a record of a run, signed for that file; unchanged if there is no usable key."""
    try:
        return with_signature(_subject(run_dir, name), record)
    except SubdeckError:
        return record


def seal_of_end(run_dir: str, result: RunResult) -> str:
    """Return the signature of the event that reports this result; empty if there is no usable key."""
    try:
        return signature_of(_subject(run_dir, paths.EVENTS), _words(result))
    except SubdeckError:
        return ""


def is_sealed_end(run_dir: str, end: RunEnded) -> bool:
    """Return whether an end in the events of a run counts."""
    subject = _subject(run_dir, paths.EVENTS)
    return Verifier().is_signed(subject, _words(end), end.mark) or not wants_seals(run_dir)


def _words(end: RunResult | RunEnded) -> bytes:
    return f"{end.status} {end.reason}".encode()


def wants_seals(run_dir: str, verifier: Verifier | None = None) -> bool:
    """Return whether a run's records count only with the signature."""
    meta = second_copy.read(run_dir, paths.META) or files.content(f"{run_dir}/{paths.META}")
    return is_flagged(meta) and (verifier or Verifier()).is_record_signed(os.path.basename(run_dir), meta)


def is_flagged(meta: bytes) -> bool:
    """Return whether a `meta.json` requires the signature."""
    return _FLAG in meta


def is_sealed(run_id: str, name: str, record: bytes, verifier: Verifier) -> bool:
    """Return whether a record has this user's signature for that file of that run."""
    return verifier.is_record_signed(f"{run_id} {name}", record)


def counts(run_dir: str, name: str, record: bytes, verifier: Verifier | None = None) -> bool:
    """Return whether a record counts."""
    verifier = verifier or Verifier()
    return is_sealed(os.path.basename(run_dir), name, record, verifier) or not wants_seals(run_dir, verifier)


def has_result(run_dir: str, *, certain: bool = False) -> bool:
    """Return whether a run has a result that counts. With `certain`, raise OSError if that is unknown."""
    return _has(run_dir, paths.RESULT, certain)


def has_stop(run_dir: str) -> bool:
    """Return whether someone asked a run to stop."""
    return bool(second_copy.read(run_dir, paths.STOP)) or _has(run_dir, paths.STOP, False)


def _has(run_dir: str, name: str, certain: bool) -> bool:
    try:
        os.lstat(f"{run_dir}/{name}")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        if certain:
            raise
        return False
    if not wants_seals(run_dir):
        return True
    try:
        record = files.read(f"{run_dir}/{name}")
    except (FileNotFoundError, RefusedError):
        return False
    except OSError as error:
        if error.errno == errno.EACCES and second_copy.exists(run_dir):
            return False  # not subdeck's result: that is readable, and removes the copy
        if certain:
            raise
        return True
    return is_sealed(os.path.basename(run_dir), name, record, Verifier())


def set_aside(directory: Directory, name: str) -> str:
    """Move an entry, itself and not its link target, to a name that marks it as rejected; return that name.

    Raises OSError.
    """
    names = (f"{name}{REJECTED}{number}" for number in range(1, _MOST_REJECTED + 1))
    aside = next((free for free in names if not directory.has(free)), "")
    if not aside:
        aside = f"{name}{REJECTED}{_MOST_REJECTED}"  # repeated attempts: only the newest is kept
        directory.remove_tree(aside)
        if directory.has(aside):  # it was made so that it cannot be removed
            aside = f"{name}{REJECTED}{os.urandom(6).hex()}"
    directory.rename(name, directory, aside)
    return aside


def reject_result(run_dir: str) -> bool:
    """Move a result that does not count aside; return whether its name is free now. Raises OSError.

    The caller must hold the run's lock. The moved file is checked again, so that a caller without the lock cannot
    remove a result that was written in between.
    """
    if has_result(run_dir, certain=True):
        return False
    with opened(run_dir) as directory:
        try:
            aside = set_aside(directory, paths.RESULT)
        except FileNotFoundError:
            return True
        try:
            record = directory.read(aside)
        except OSError:
            return True
        if not is_sealed(os.path.basename(run_dir), paths.RESULT, record, Verifier()):
            return True
        directory.publish(aside, paths.RESULT)
        return False


def _subject(run_dir: str, name: str) -> str:
    return f"{os.path.basename(run_dir)} {name}"
