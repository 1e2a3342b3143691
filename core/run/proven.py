"""Which records of a run count: those that this user's subdeck signed.

A child that may write files can write whatever it likes into the directory of its run, but not the user's signature.
`meta.json` has said so since `resultSigned` is in it: for such a run a result or a request to stop without the
signature never counts, and neither does an end in its events. Each is signed for its run and its purpose, so that none
passes for another. Older runs, and those of others, are read as they stand.

Only the standard library's lightest modules: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import errno
import os

from .. import paths
from ..errors import SubdeckError
from ..system import files
from ..system.directory import Directory, RefusedError, opened
from . import own_copy
from .mark import Verifier, marked, signature_of

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from .events import RunEnded
    from .model import RunResult

REJECTED = ".rejected-"
"""Follows the name of what was moved aside; a number follows it."""
_MOST_REJECTED = 20
_FLAG = b'\n "resultSigned": true'
"""As it stands in `meta.json`: no text in there has a newline of its own."""


def sealed(run_dir: str, name: str, record: bytes) -> bytes:
    """Return a record of a run with the user's signature for that file; as it is where there is no usable key."""
    try:
        return marked(_about(run_dir, name), record)
    except SubdeckError:
        return record


def seal_of_end(run_dir: str, result: RunResult) -> str:
    """Return the signature of the event that tells this end; empty where there is no usable key."""
    try:
        return signature_of(_about(run_dir, paths.EVENTS), _words(result))
    except SubdeckError:
        return ""


def is_sealed_end(run_dir: str, end: RunEnded) -> bool:
    """Return whether an end in the events of a run counts."""
    about = _about(run_dir, paths.EVENTS)
    return Verifier().is_signed(about, _words(end), end.mark) or not wants_seals(run_dir)


def _words(end: RunResult | RunEnded) -> bytes:
    return f"{end.status} {end.reason}".encode()


def wants_seals(run_dir: str, verifier: Verifier | None = None) -> bool:
    """Return whether records of a run count only with the signature."""
    meta = own_copy.read(run_dir, paths.META) or files.content(f"{run_dir}/{paths.META}")
    return is_flagged(meta) and (verifier or Verifier()).is_marked(os.path.basename(run_dir), meta)


def is_flagged(meta: bytes) -> bool:
    """Return whether a `meta.json` says that."""
    return _FLAG in meta


def is_sealed(run_id: str, name: str, record: bytes, verifier: Verifier) -> bool:
    """Return whether a record has this user's signature for that file of that run."""
    return verifier.is_marked(f"{run_id} {name}", record)


def counts(run_dir: str, name: str, record: bytes, verifier: Verifier | None = None) -> bool:
    """Return whether a record that was read counts."""
    verifier = verifier or Verifier()
    return is_sealed(os.path.basename(run_dir), name, record, verifier) or not wants_seals(run_dir, verifier)


def has_result(run_dir: str, *, certain: bool = False) -> bool:
    """Return whether a run has ended: there is a result that counts. Where `certain`, raise OSError if nobody knows."""
    return _has(run_dir, paths.RESULT, certain)


def has_stop(run_dir: str) -> bool:
    """Return whether somebody asked to stop a run."""
    return bool(own_copy.read(run_dir, paths.STOP)) or _has(run_dir, paths.STOP, False)


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
        if error.errno == errno.EACCES and own_copy.exists(run_dir):
            return False  # not ours: our result is readable, and the copy is removed with it
        if certain:
            raise
        return True
    return is_sealed(os.path.basename(run_dir), name, record, Verifier())


def set_aside(directory: Directory, name: str) -> str:
    """Move what has that name, itself and not what it leads to, to a name that says it was rejected; return that.

    Raises OSError.
    """
    names = (f"{name}{REJECTED}{number}" for number in range(1, _MOST_REJECTED + 1))
    aside = next((free for free in names if not directory.has(free)), "")
    if not aside:
        aside = f"{name}{REJECTED}{_MOST_REJECTED}"  # somebody does it again and again: the newest is kept
        directory.remove_tree(aside)
        if directory.has(aside):  # made so that it cannot be removed
            aside = f"{name}{REJECTED}{os.urandom(6).hex()}"
    directory.rename(name, directory, aside)
    return aside


def reject_result(run_dir: str) -> bool:
    """Move a result that does not count aside; return whether the place is free now. Raises OSError.

    For who holds the run's lock. What was moved is looked at again, so that one who does not cannot take away a result
    that came meanwhile.
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


def _about(run_dir: str, name: str) -> str:
    return f"{os.path.basename(run_dir)} {name}"
