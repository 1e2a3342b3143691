"""Read and write the files of a run directory; `model` defines most of their records.

Annotations are evaluated here, as in `model`.
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
from ..text.decoder import UNDECODABLE, decode, decoded, why
from . import proven, second_copy
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
from .repair import move_forged
from .signature import Verifier, with_signature

T = TypeVar("T")
Record = TypeVar("Record", RunMeta, RunResult)
Version = tuple[int, int]
"""Of a run directory: time of the last change to its names, in ns, and inode."""
NO_VERSION: Version = (0, 0)
"""Of a missing directory."""


_TMUX_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%-")
"""The characters that subdeck uses. A record with any other is never used to address a command."""
_LONGEST_TMUX_NAME = 200


class TmuxPane(Struct, frozen=True):
    """Location of a run's pane; `socket` is a name as for `tmux -L`."""

    socket: str
    session: str
    window: str
    pane: str = ""

    def __post_init__(self) -> None:
        for name in (self.socket, self.session, self.window, self.pane):
            if len(name) > _LONGEST_TMUX_NAME or not _TMUX_NAME.issuperset(name):
                raise ValueError("not a tmux name that subdeck uses")


class RunnerFacts(Struct, frozen=True, rename="camel"):
    """`runner.json`: the machine and the processes that hold a run."""

    kind: RunnerKind
    host: str
    boot_id: str
    pid_namespace: str
    pid: Pid
    pid_started: Whole | None = None
    machine_id: str = ""
    """Empty if an earlier version wrote it."""
    child_pid: Pid | None = None
    child_pid_started: Whole | None = None
    tmux: TmuxPane | None = None


class ActivityRecord(Struct, frozen=True):
    """`active/<run id>`: number of the last event, and the end of the sentence being written after it."""

    seq: Whole = 0
    sentence: str = ""


class WrittenPiece(Struct, frozen=True):
    """A line of `.writing`: the next piece of the text that the model writes after the event of this number."""

    seq: Whole = 0
    text: str = ""


class _Versioned(Struct, rename="camel"):
    """The field that is read from a record of any schema."""

    schema_version: Whole = SCHEMA_VERSION


_KINDS: dict[str, type[Struct]] = {
    paths.META: RunMeta,
    paths.RESULT: RunResult,
    paths.RUNNER: RunnerFacts,
    paths.STOP: StopRequest,
}

GIVEN_UP_BY = "operator"
"""`written_by` in the result of an abandoned run."""
RESERVE = ".result.reserved"
"""Disk space reserved by the wrapper, so that a full disk leaves room for the result."""
_RESERVED_BYTES = 64 * 1024
PREPARED = ".result"
"""The whole result, written before the last events; the process that finishes the run publishes it."""
_SHRINK = (None, 24_000, 1_000, 0)
"""Lengths of the answer that are tried in turn until the result fits on the disk."""


def read_meta(run_dir: str, *, certain: bool = False) -> RunMeta | None:
    """Read `meta.json`; None if it is missing or broken. Of a newer schema only the id and the version are kept.

    The run's id is always the name of its directory. With `certain`, here as in every reader below, an unreadable
    record raises OSError, because it may exist. An unfinished run is read from its second copy.
    """
    return _meta(run_dir, _safe_record(run_dir, paths.META, certain=certain))


def read_owned_meta(run_dir: str, verifier: Verifier, *, certain: bool = False) -> tuple[RunMeta | None, bool]:
    """Read `meta.json` in the same way, and return whether the run is this user's, as `is_own` does."""
    record, is_own = _owned_record(run_dir, verifier, certain=certain)
    return _meta(run_dir, record), is_own


def is_own(run_dir: str, verifier: Verifier, *, certain: bool = False) -> bool:
    """Return whether this user's subdeck made a run: this user owns its directory and signed its record."""
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
    """Read `meta.json` from its file, and return whether the run is this user's. Raises OSError.

    If it is not, and the run has a second copy, that copy is read.
    """
    status, (record,) = runs.read_inside(run_id, paths.META)
    if verifier.is_own(run_id, record, status.st_uid):
        return record, True
    return _copied_record(f"{runs.path}/{run_id}", record, verifier)


def _copied_record(run_dir: str, record: bytes, verifier: Verifier) -> tuple[bytes, bool]:
    """Return the second copy of a record if it is this user's, and True; otherwise the given record, and False."""
    copied = second_copy.read(run_dir, paths.META)
    return (copied, True) if verifier.is_record_signed(os.path.basename(run_dir), copied) else (record, False)


def _safe_record(run_dir: str, name: str, *, certain: bool = False) -> bytes:
    """Read a record of an unfinished run from its second copy if there is one, otherwise from its file."""
    return second_copy.read(run_dir, name) or read_bytes(run_dir, name, certain=certain)


def read_bytes(run_dir: str, name: str, *, certain: bool = False) -> bytes:
    """Read a record from its file; empty if it is missing or cannot be read."""
    try:
        return files.read(f"{run_dir}/{name}")
    except (FileNotFoundError, RefusedError):
        return b""
    except OSError:
        if certain:
            raise
        return b""


def read_result(run_dir: str, *, certain: bool = False) -> RunResult | None:
    """Read `result.json` in the same way; broken also means that status and reason are unknown or do not match.

    None also if the run requires a signature and the result has none.
    """
    return _sealed_result(run_dir, paths.RESULT, certain=certain)


def read_late_result(run_dir: str) -> RunResult | None:
    """Read the result that a host reported after the run had been abandoned."""
    return _sealed_result(run_dir, paths.LATE_RESULT)


def _sealed_result(run_dir: str, name: str, *, certain: bool = False) -> RunResult | None:
    record = read_bytes(run_dir, name, certain=certain)
    return _result(run_dir, record) if record and proven.counts(run_dir, name, record) else None


def version_of(status: os.stat_result) -> Version:
    """Return a value that changes when a file of a run is added, removed or replaced, from its directory's status."""
    return status.st_mtime_ns, status.st_ino


def read_finished(runs: Directory, run_id: str, verifier: Verifier) -> tuple[RunMeta, RunResult, bool, Version] | None:
    """Read a run with a readable result, whether it is this user's, and its version; None for any other run.

    An unreadable meta is replaced by one that names the fault. Raises OSError if the state is uncertain.
    """
    status, (result_record, record) = runs.read_inside(run_id, paths.RESULT, paths.META)
    if not result_record:
        return None
    run_dir = f"{runs.path}/{run_id}"
    result = _result(run_dir, result_record)
    if result is None:
        return None
    is_own = verifier.is_own(run_id, record, status.st_uid)
    if not is_own and second_copy.exists(run_dir):
        return None  # not finished: this result was tampered with
    meta = _meta(run_dir, record) or unreadable_meta(run_dir)
    if is_own and meta.result_signed and not proven.is_sealed(run_id, paths.RESULT, result_record, verifier):
        return None
    return meta, result, is_own, version_of(status)


def end_trust(runs: Directory, run_id: str, verifier: Verifier) -> tuple[bool, bool]:
    """Return whether a run with a result is untrusted, and whether that result counts. Raises OSError."""
    status, (record, result) = runs.read_inside(run_id, paths.META, paths.RESULT)
    run_dir = f"{runs.path}/{run_id}"
    if not verifier.is_own(run_id, record, status.st_uid):
        is_copied = second_copy.exists(run_dir)
        return not is_copied, not is_copied
    return False, not proven.is_flagged(record) or proven.is_sealed(run_id, paths.RESULT, result, verifier)


def _is_end(result: RunResult) -> bool:
    return result.status is STATUS_OF.get(result.reason)


def is_newer(run_dir: str) -> bool:
    """Return whether a newer subdeck wrote a run's meta or its result. Raises OSError if that is unknown."""
    records = (read_meta(run_dir, certain=True), read_result(run_dir, certain=True))
    return any(record is not None and record.schema_version > SCHEMA_VERSION for record in records)


def fault_of(run_dir: str, name: str) -> str:
    """Describe the fault of an unusable record: `meta.json is missing`, `stop.json is damaged: …`.

    Empty if the record is in order, as it may be by now.
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
    """Describe the faults of these records, except missing ones."""
    there = (name for name in names if os.path.lexists(f"{run_dir}/{name}"))
    return tuple(filter(None, (fault_of(run_dir, name) for name in there)))


def unreadable_meta(run_dir: str, problem: str = "", schema_version: int = SCHEMA_VERSION) -> RunMeta:
    """Return a stand-in for a `meta.json` that cannot be read, so that the run can be shown and deleted."""
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
    """Return a stand-in for a `result.json` that cannot be read."""
    return RunResult(
        run_id=os.path.basename(run_dir),
        status=RunStatus.FAILED,
        reason=RunReason.LOST,
        written_by="",
        schema_version=schema_version,
        error_message=problem or f"the run's result is unknown: {fault_of(run_dir, paths.RESULT)}",
    )


def bare_result(run_id: str, reason: RunReason, message: str, *, by: str, model: str = "") -> RunResult:
    """Return the result of a run that left nothing but the reason for its end, such as a failed launch."""
    return RunResult(
        run_id=run_id,
        status=STATUS_OF[reason],
        reason=reason,
        written_by=by,
        error_message=message,
        resolved_model=model,
        ended_at=paths.now_iso(),
    )


def fail_launch(
    meta: RunMeta, run_dir: str, lock: int, error: Exception, *, by: str, files_left: tuple[str, ...] = ()
) -> None:
    """Write the result of a run whose wrapper could not be started, remove the files left for it and release its lock.

    If the result cannot be written, the next reader finds that no process holds the run.
    """
    files.remove(f"{run_dir}/{paths.ENVIRONMENT}")
    message = getattr(error, "strerror", None) or str(error)
    result = bare_result(meta.run_id, RunReason.START_FAILED, message, by=by, model=meta.resolved_model)
    try:
        write_result(run_dir, result)
        for path in files_left:
            files.remove(path)
    except OSError:
        pass
    finally:
        os.close(lock)


def read_stop(run_dir: str, *, certain: bool = False) -> StopRequest | None:
    """Read the stop request; None also if the run requires a signature and the request has none."""
    record = _safe_record(run_dir, paths.STOP, certain=certain)
    return decoded(record, StopRequest) if record and proven.counts(run_dir, paths.STOP, record) else None


def read_runner(run_dir: str, *, certain: bool = False) -> RunnerFacts | None:
    return decoded(_safe_record(run_dir, paths.RUNNER, certain=certain), RunnerFacts)


def read_prepared(run_dir: str, *, certain: bool = False) -> RunResult | None:
    """Read the result that a wrapper wrote but did not publish before it died."""
    record = read_bytes(run_dir, PREPARED, certain=certain)
    result = decoded(record, RunResult) if record and proven.counts(run_dir, paths.RESULT, record) else None
    return result if result and _is_end(result) else None


def read_writing(run_dir: str, since: int, *, certain: bool = False) -> str:
    """Return the text that the model was writing after the event `since`; empty if that message has ended."""
    lines = read_bytes(run_dir, paths.WRITING, certain=certain).split(b"\n")
    pieces = [piece for line in lines if (piece := decoded(line, WrittenPiece))]
    return "".join(piece.text for piece in pieces) if pieces and pieces[-1].seq >= since else ""


def decode_activity(content: bytes) -> ActivityRecord | None:
    """Decode the content of an `active/` file, which is empty at first; None if it is torn or broken."""
    line = content.partition(b"\n")[0]
    return decoded(line, ActivityRecord) if line else ActivityRecord()


def write_stop(run_dir: str, request: StopRequest) -> None:
    """Write a stop request, also into the second copy. Raises OSError if neither can be written."""
    record = proven.sealed(run_dir, paths.STOP, _pretty(request))
    is_copied = second_copy.write(run_dir, paths.STOP, record)
    try:
        if is_copied:
            move_forged(run_dir, paths.STOP)
        files.write_whole(os.path.join(run_dir, paths.STOP), record)
    except OSError:
        if not is_copied:
            raise


def reserve_result(run_dir: str) -> None:
    """Reserve disk space for the result; `write_result` frees it."""
    descriptor = files.open_private(os.path.join(run_dir, RESERVE), os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, _RESERVED_BYTES)
    finally:
        os.close(descriptor)


def write_result(run_dir: str, result: RunResult) -> bool:
    """Write `result.json` with the signature, unless a result that counts exists; return False if one does.

    A result that does not count is moved aside: the caller holds the run's lock. If space is short the answer is cut,
    and the result reports it. Raises OSError if even that does not fit.
    """
    while True:
        try:
            _write_fitting(files.write_new, run_dir, paths.RESULT, result)
        except FileExistsError:
            if not proven.reject_result(run_dir):
                return False
        else:
            second_copy.remove(run_dir)
            return True


def write_late_result(run_dir: str, result: RunResult) -> None:
    """Write a result that a host reported after its run had been abandoned. Raises OSError."""
    record = proven.sealed(run_dir, paths.LATE_RESULT, _pretty(result))
    files.write_whole(os.path.join(run_dir, paths.LATE_RESULT), record, durable=True)


def prepare_result(run_dir: str, result: RunResult) -> None:
    """Write a result for `publish_result` to rename. Raises OSError as `write_result` does."""
    _write_fitting(files.write_whole, run_dir, PREPARED, result)


def publish_result(run_dir: str) -> bool:
    """Make the prepared result the run's, by the same rules as `write_result`; return False if another one counts.
    Raises OSError.
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
                second_copy.remove(run_dir)
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
    """Create a run directory under a dot name, locked, and rename it into place; return the lock's descriptor.

    The descriptor holds the run (shared flock) until it is closed. Raises LaunchError if the directory cannot be
    written, and SubdeckError if the record cannot be signed.
    """
    hidden = os.path.join(runs, f".{meta.run_id}")
    try:
        record = with_signature(
            meta.run_id, _pretty(meta)
        )  # first: this can fail before anything is written to the project
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
    """Rewrite the record of a run with this user's signature. Raises OSError, and SubdeckError without a key."""
    record = with_signature(meta.run_id, _pretty(meta))
    files.write_whole(os.path.join(run_dir, paths.META), record, durable=True)


def seal_results(run_dir: str) -> None:
    """Sign the results of a run that was not this user's. Raises OSError."""
    for name in (paths.RESULT, paths.LATE_RESULT):
        result = decoded(read_bytes(run_dir, name, certain=True), RunResult)
        if result is not None and result.schema_version <= SCHEMA_VERSION:
            record = proven.sealed(run_dir, name, _pretty(result))
            files.write_whole(os.path.join(run_dir, name), record, durable=True)


def run_ids(directory: str) -> list[str]:
    """Return the names in a directory that are run ids."""
    return list(filter(paths.is_run_id, files.names(directory)))


def present(run_dir: str) -> dict[str, str]:
    """Return the existing files of a run, name to path."""
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
    """Return a record, None if it is missing or broken, and the version of its schema if known."""
    record = decoded(content, kind)
    if record is not None:
        return record, record.schema_version
    versioned = decoded(content, _Versioned)
    return None, versioned.schema_version if versioned else SCHEMA_VERSION
