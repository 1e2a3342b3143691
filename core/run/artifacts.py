"""Reading and writing the files of a run directory; what most of them hold is in `model`.

Annotations are evaluated here, as there.
"""

import errno
import os
import stat
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import LaunchError
from ..system import files
from ..system.directory import Directory, RefusedError, opened
from ..text.decoding import UNDECODABLE, decode, why
from . import own_copy, proven
from .mark import Verifier, marked
from .model import (
    SCHEMA_VERSION,
    STATUS_OF,
    LaunchedBy,
    LauncherKind,
    Pid,
    RunMeta,
    RunnerKind,
    RunReason,
    RunResult,
    RunStatus,
    StopRequest,
    Whole,
    newer_schema,
)
from .restoring import move_forged

T = TypeVar("T")
Record = TypeVar("Record", RunMeta, RunResult)
Version = tuple[int, int]
"""Of a run directory: when a name in it last changed, in ns, and its inode."""
NO_VERSION: Version = (0, 0)
"""Of a directory that is not there."""


_TMUX_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%-")
"""The characters of our own; anything else in a record is no place to send a command to."""
_LONGEST_TMUX_NAME = 200


class TmuxPlace(Struct, frozen=True):
    """Where the pane of a run is; `socket` is a name as for `tmux -L`."""

    socket: str
    session: str
    window: str
    pane: str = ""

    def __post_init__(self) -> None:
        for name in (self.socket, self.session, self.window, self.pane):
            if len(name) > _LONGEST_TMUX_NAME or not _TMUX_NAME.issuperset(name):
                raise ValueError("not a tmux name that subdeck uses")


class RunnerFacts(Struct, frozen=True, rename="camel"):
    """`runner.json`: which machine and which processes hold a run."""

    kind: RunnerKind
    host: str
    boot_id: str
    pid_namespace: str
    pid: Pid
    pid_started: Whole | None = None
    machine_id: str = ""
    """Empty where an earlier version wrote it."""
    child_pid: Pid | None = None
    child_pid_started: Whole | None = None
    tmux: TmuxPlace | None = None


class ActivityRecord(Struct, frozen=True):
    """`active/<run id>`: how far the events are, and the end of the sentence being written after that event."""

    seq: Whole = 0
    sentence: str = ""


class WrittenPiece(Struct, frozen=True):
    """A line of `.writing`: what the model wrote after the event of this number, from the piece before on."""

    seq: Whole = 0
    text: str = ""


class _Versioned(Struct, rename="camel"):
    """What is read of a record of any schema."""

    schema_version: Whole = SCHEMA_VERSION


_KINDS: dict[str, type[Struct]] = {
    paths.META: RunMeta,
    paths.RESULT: RunResult,
    paths.RUNNER: RunnerFacts,
    paths.STOP: StopRequest,
}

GIVEN_UP_BY = "operator"
"""Who signs the result of a run that was given up."""
RESERVE = ".result.reserved"
"""Space kept back by the wrapper, so that a full disk leaves room for the result."""
_RESERVED_BYTES = 64 * 1024
PREPARED = ".result"
"""The whole result, while the wrapper writes the last events: who finishes the run publishes it."""
_SHRINK = (None, 24_000, 1_000, 0)
"""Characters of the answer that are tried in turn when the result does not fit."""


def read_meta(run_dir: str, *, certain: bool = False) -> RunMeta | None:
    """Read `meta.json`; None when it is missing or broken. Of a newer schema only the id and the version are kept.

    A run goes by the name of its directory, whatever the record says. Where `certain`, as for each record here, one
    that cannot be read now raises OSError: it may well be there. Of an unfinished run the second copy is read.
    """
    return _meta(run_dir, _safe_record(run_dir, paths.META, certain=certain))


def read_owned_meta(run_dir: str, verifier: Verifier, *, certain: bool = False) -> tuple[RunMeta | None, bool]:
    """Read `meta.json` likewise, and whether the run is this user's, as `is_own` says."""
    record, is_own = _owned_record(run_dir, verifier, certain=certain)
    return _meta(run_dir, record), is_own


def is_own(run_dir: str, verifier: Verifier, *, certain: bool = False) -> bool:
    """Return whether this user's subdeck made a run: its directory is this user's, and its record has the mark."""
    return _owned_record(run_dir, verifier, certain=certain)[1]


def _owned_record(run_dir: str, verifier: Verifier, *, certain: bool = False) -> tuple[bytes, bool]:
    try:
        with opened(os.path.dirname(run_dir)) as runs:
            return owned_record(runs, os.path.basename(run_dir), verifier)
    except (FileNotFoundError, PermissionError, RefusedError):
        return _copied_record(run_dir, b"", verifier)
    except OSError:
        if certain:
            raise
        return b"", False


def owned_record(runs: Directory, run_id: str, verifier: Verifier) -> tuple[bytes, bool]:
    """Read `meta.json` as it stands in its file, and whether the run is this user's. Raises OSError.

    Where it is not, and the run has a second copy, that is read.
    """
    status, (record,) = runs.read_inside(run_id, paths.META)
    if verifier.is_own(run_id, record, status.st_uid):
        return record, True
    return _copied_record(f"{runs.path}/{run_id}", record, verifier)


def _copied_record(run_dir: str, record: bytes, verifier: Verifier) -> tuple[bytes, bool]:
    """Return the second copy of a record that is not this user's, and that it is; else what is there."""
    copied = own_copy.read(run_dir, paths.META)
    return (copied, True) if verifier.is_marked(os.path.basename(run_dir), copied) else (record, False)


def _safe_record(run_dir: str, name: str, *, certain: bool = False) -> bytes:
    """Read a record of an unfinished run from its second copy, as far as there is one."""
    return own_copy.read(run_dir, name) or read_record(run_dir, name, certain=certain)


def read_record(run_dir: str, name: str, *, certain: bool = False) -> bytes:
    """Read a record as it stands in its file; nothing where it is missing or cannot be read."""
    try:
        return files.read(f"{run_dir}/{name}")
    except (FileNotFoundError, RefusedError):
        return b""
    except OSError:
        if certain:
            raise
        return b""


def read_result(run_dir: str, *, certain: bool = False) -> RunResult | None:
    """Read `result.json` likewise; one whose status or reason nobody knows, or that is no end, is broken.

    None also for one that has no signature, where the run wants one.
    """
    return _sealed_result(run_dir, paths.RESULT, certain=certain)


def read_late_result(run_dir: str) -> RunResult | None:
    """Read how a run ended by the word of its host, which came after it had been given up."""
    return _sealed_result(run_dir, paths.LATE_RESULT)


def _sealed_result(run_dir: str, name: str, *, certain: bool = False) -> RunResult | None:
    record = read_record(run_dir, name, certain=certain)
    return _result(run_dir, record) if record and proven.counts(run_dir, name, record) else None


def version_of(status: os.stat_result) -> Version:
    """Return what changes when a file of a run comes, goes or is replaced: given the status of its directory."""
    return status.st_mtime_ns, status.st_ino


def read_finished(runs: Directory, run_id: str, verifier: Verifier) -> tuple[RunMeta, RunResult, bool, Version] | None:
    """Read a run with a result that can be read, whether it is this user's, and its version; None for any other.

    A meta that cannot be read says so itself. Raises OSError where it is not certain what is there.
    """
    status, (result_record, record) = runs.read_inside(run_id, paths.RESULT, paths.META)
    if not result_record:
        return None
    run_dir = f"{runs.path}/{run_id}"
    result = _result(run_dir, result_record)
    if result is None:
        return None
    is_own = verifier.is_own(run_id, record, status.st_uid)
    if not is_own and own_copy.exists(run_dir):
        return None  # it has not ended: what is there was spoiled
    meta = _meta(run_dir, record) or unreadable_meta(run_dir)
    if is_own and meta.result_signed and not proven.is_sealed(run_id, paths.RESULT, result_record, verifier):
        return None
    return meta, result, is_own, version_of(status)


def standing(runs: Directory, run_id: str, verifier: Verifier) -> tuple[bool, bool]:
    """Return of a run with a result whether it is foreign, and whether that result counts. Raises OSError."""
    status, (record, result) = runs.read_inside(run_id, paths.META, paths.RESULT)
    run_dir = f"{runs.path}/{run_id}"
    if not verifier.is_own(run_id, record, status.st_uid):
        is_copied = own_copy.exists(run_dir)
        return not is_copied, not is_copied
    return False, not proven.is_flagged(record) or proven.is_sealed(run_id, paths.RESULT, result, verifier)


def _is_end(result: RunResult) -> bool:
    return result.status is STATUS_OF.get(result.reason)


def is_newer(run_dir: str) -> bool:
    """Return whether a newer subdeck wrote a run's meta or its result. Raises OSError where that is not known."""
    records = (read_meta(run_dir, certain=True), read_result(run_dir, certain=True))
    return any(record is not None and record.schema_version > SCHEMA_VERSION for record in records)


def fault_of(run_dir: str, name: str) -> str:
    """Say what is wrong with a record that says nothing: `meta.json is missing`, `stop.json is broken: …`.

    Empty where it is in order, as it may be by now.
    """
    kind = _KINDS[name]
    try:
        record = decode(files.read(f"{run_dir}/{name}"), kind)
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"cannot read {name}: {error.strerror}"
    except UNDECODABLE as error:
        return f"{name} is damaged: {why(error)}"
    if isinstance(record, RunResult) and not _is_end(record):
        return f"{name} is damaged: impossible status and reason"
    return ""


def faults_of(run_dir: str, *names: str) -> tuple[str, ...]:
    """Say what is wrong with those of these records that are there."""
    there = (name for name in names if os.path.lexists(f"{run_dir}/{name}"))
    return tuple(filter(None, (fault_of(run_dir, name) for name in there)))


def unreadable_meta(run_dir: str, problem: str = "", schema_version: int = SCHEMA_VERSION) -> RunMeta:
    """Return what stands for a `meta.json` that cannot be read, so that the run can be seen and deleted."""
    return RunMeta(
        run_id=os.path.basename(run_dir),
        task=problem or f"({fault_of(run_dir, paths.META)})",
        cwd="",
        agent="",
        agent_command=(),
        runner=RunnerKind(""),
        created_at="",
        launched_by=LaunchedBy(session="", kind=LauncherKind("")),
        schema_version=schema_version,
    )


def unreadable_result(run_dir: str, problem: str = "", schema_version: int = SCHEMA_VERSION) -> RunResult:
    """Return what stands for a `result.json` that cannot be read."""
    return RunResult(
        run_id=os.path.basename(run_dir),
        status=RunStatus.FAILED,
        reason=RunReason.LOST,
        written_by="",
        schema_version=schema_version,
        error_message=problem or f"the run's result is unknown: {fault_of(run_dir, paths.RESULT)}",
    )


def read_stop(run_dir: str, *, certain: bool = False) -> StopRequest | None:
    """Read the request to stop; None also for one that has no signature, where the run wants one."""
    record = _safe_record(run_dir, paths.STOP, certain=certain)
    return _decoded(StopRequest, record) if record and proven.counts(run_dir, paths.STOP, record) else None


def read_runner(run_dir: str, *, certain: bool = False) -> RunnerFacts | None:
    return _decoded(RunnerFacts, _safe_record(run_dir, paths.RUNNER, certain=certain))


def read_prepared(run_dir: str, *, certain: bool = False) -> RunResult | None:
    """Read the result that a wrapper had written down before it died, but not published."""
    record = read_record(run_dir, PREPARED, certain=certain)
    result = _decoded(RunResult, record) if record and proven.counts(run_dir, paths.RESULT, record) else None
    return result if result and _is_end(result) else None


def read_writing(run_dir: str, since: int, *, certain: bool = False) -> str:
    """Return what the model was writing after the event `since`; empty where that message has ended."""
    lines = read_record(run_dir, paths.WRITING, certain=certain).split(b"\n")
    pieces = [piece for line in lines if (piece := _decoded(WrittenPiece, line))]
    return "".join(piece.text for piece in pieces) if pieces and pieces[-1].seq >= since else ""


def decode_activity(content: bytes) -> ActivityRecord | None:
    """Decode the content of an `active/` file, which is empty at first; None where it is torn or broken."""
    line = content.partition(b"\n")[0]
    return _decoded(ActivityRecord, line) if line else ActivityRecord()


def write_stop(run_dir: str, request: StopRequest) -> None:
    """Write a request to stop, into the second copy too. Raises OSError where it can be written to neither."""
    record = proven.sealed(run_dir, paths.STOP, _pretty(request))
    is_copied = own_copy.write(run_dir, paths.STOP, record)
    try:
        if is_copied:
            move_forged(run_dir, paths.STOP)
        files.write_whole(os.path.join(run_dir, paths.STOP), record)
    except OSError:
        if not is_copied:
            raise


def reserve_result(run_dir: str) -> None:
    """Keep disk space for the result; it is given back by `write_result`."""
    descriptor = files.open_private(os.path.join(run_dir, RESERVE), os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, _RESERVED_BYTES)
    finally:
        os.close(descriptor)


def write_result(run_dir: str, result: RunResult) -> bool:
    """Write `result.json`, with the signature, unless there is one that counts; False when another was first.

    One that does not count is moved aside: who writes an end holds the run's lock. Where there is too little room the
    answer is cut, and the result says so. Raises OSError when not even that fits.
    """
    while True:
        try:
            _write_fitting(files.write_new, run_dir, paths.RESULT, result)
        except FileExistsError:
            if not proven.reject_result(run_dir):
                return False
        else:
            own_copy.remove(run_dir)
            return True


def write_late_result(run_dir: str, result: RunResult) -> None:
    """Write what a host told after its run had been given up. Raises OSError."""
    record = proven.sealed(run_dir, paths.LATE_RESULT, _pretty(result))
    files.write_whole(os.path.join(run_dir, paths.LATE_RESULT), record, durable=True)


def prepare_result(run_dir: str, result: RunResult) -> None:
    """Write a result down for `publish_result` to give it its name. Raises OSError as `write_result` does."""
    _write_fitting(files.write_whole, run_dir, PREPARED, result)


def publish_result(run_dir: str) -> bool:
    """Make the prepared result the run's, unless it has one that counts, as `write_result` does; False when another was
    first. Raises OSError.
    """
    with opened(run_dir) as directory:
        while True:
            try:
                directory.publish(PREPARED, paths.RESULT)
            except FileExistsError:
                if not proven.reject_result(run_dir):
                    directory.discard(PREPARED)
                    return False
            else:
                own_copy.remove(run_dir)
                return True


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors after which a shorter record may still fit."""


def _write_fitting(write: Callable[..., None], run_dir: str, name: str, result: RunResult) -> None:
    files.remove(os.path.join(run_dir, RESERVE))
    for keep in _SHRINK:
        try:
            record = proven.sealed(run_dir, paths.RESULT, _pretty(_shortened(result, keep)))
            write(os.path.join(run_dir, name), record, durable=True)
            break
        except OSError as error:
            if keep == 0 or error.errno not in _NO_ROOM:
                raise


def create_run(runs: str, meta: RunMeta, prompt: str) -> int:
    """Make a run directory under a dot name, locked, and rename it into place; return the lock's descriptor.

    The descriptor holds the run (shared flock) until it is closed. Raises LaunchError when the disk says no, and
    SubdeckError where the run cannot be marked as this user's.
    """
    hidden = os.path.join(runs, f".{meta.run_id}")
    try:
        record = marked(meta.run_id, _pretty(meta))  # what can fail without the disk of the project comes first
        with opened(runs, make=True) as directory:
            directory.make(os.path.basename(hidden))
        lock = files.open_lock(os.path.join(hidden, paths.LOCK))
        try:
            files.lock(lock, shared=True)
            files.write_new(os.path.join(hidden, paths.PROMPT), prompt.encode("utf-8", "surrogateescape"))
            if meta.system_prompt is not None:
                text = meta.system_prompt.encode("utf-8", "surrogateescape")
                files.write_new(os.path.join(hidden, paths.SYSTEM_PROMPT), text)
            if meta.talk is not None:
                files.make_private_directory(os.path.join(hidden, paths.INBOX))
            files.write_new(os.path.join(hidden, paths.META), record)
            files.rename(hidden, os.path.join(runs, meta.run_id))
        except BaseException:
            os.close(lock)
            raise
        return lock
    except OSError as error:
        files.remove_tree(hidden)
        raise LaunchError(
            f"cannot write the run directory: {error.strerror}", where=hidden, hint="check disk space and permissions"
        ) from error
    except UnicodeError as error:
        files.remove_tree(hidden)
        raise LaunchError(
            "a path of the run is not UTF-8", where=ascii(meta.cwd), hint="rename that directory"
        ) from error
    except BaseException:  # an interruption
        files.remove_tree(hidden)
        raise


def rewrite_meta(run_dir: str, meta: RunMeta) -> None:
    """Write the record of a run anew, with this user's mark. Raises OSError, and SubdeckError without a key."""
    record = marked(meta.run_id, _pretty(meta))
    files.write_whole(os.path.join(run_dir, paths.META), record, durable=True)


def seal_results(run_dir: str) -> None:
    """Sign what is said of the end of a run that was somebody else's. Raises OSError."""
    for name in (paths.RESULT, paths.LATE_RESULT):
        result = _decoded(RunResult, read_record(run_dir, name, certain=True))
        if result is not None and result.schema_version <= SCHEMA_VERSION:
            record = proven.sealed(run_dir, name, _pretty(result))
            files.write_whole(os.path.join(run_dir, name), record, durable=True)


def run_ids(directory: str) -> list[str]:
    """Return the names in a directory that are run ids."""
    return list(filter(paths.is_run_id, files.names(directory)))


def present(run_dir: str) -> dict[str, str]:
    """Return the files of a run that exist, name to path."""
    try:
        with opened(run_dir) as directory:
            names = sorted(name for name, status in directory.entries() if stat.S_ISREG(status.st_mode))
    except OSError:
        return {}
    return {name: os.path.join(run_dir, name) for name in names if not name.startswith(".")}


def _pretty(record: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1)


def _shortened(result: RunResult, keep: int | None) -> RunResult:
    text = result.final_text
    if keep is None or text is None or len(text) <= keep:
        return result
    note = f"result.json: the answer was truncated to {keep} of {len(text)} characters, because the disk is full"
    return msgspec.structs.replace(
        result, final_text=text[:keep] or None, artifact_errors=(*result.artifact_errors, note)
    )


def _meta(run_dir: str, record: bytes) -> RunMeta | None:
    meta, version = _versioned(RunMeta, record)
    if version > SCHEMA_VERSION:
        return unreadable_meta(run_dir, newer_schema(version), version)
    if meta is None or run_dir.endswith(f"/{meta.run_id}"):
        return meta
    return msgspec.structs.replace(meta, run_id=os.path.basename(run_dir))


def _result(run_dir: str, record: bytes) -> RunResult | None:
    result, version = _versioned(RunResult, record)
    if version > SCHEMA_VERSION:
        return unreadable_result(run_dir, newer_schema(version), version)
    return result if result and _is_end(result) else None


def _versioned(kind: type[Record], content: bytes) -> tuple[Record | None, int]:
    """Return a record, None when it is missing or broken, and the version of its schema as far as that is known."""
    record = _decoded(kind, content)
    if record is not None:
        return record, record.schema_version
    versioned = _decoded(_Versioned, content)
    return None, versioned.schema_version if versioned else SCHEMA_VERSION


def _decoded(kind: type[T], content: bytes) -> T | None:
    try:
        return decode(content, kind)
    except UNDECODABLE:
        return None
