"""Reading and writing the files of a run directory; what each holds is in `runs`."""

from __future__ import annotations

import errno
import os
from typing import TypeVar

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import LaunchError
from .model import RunMeta, RunResult, StopRequest

T = TypeVar("T")


class TmuxPlace(Struct, frozen=True):
    """Where the pane of a run is; `socket` is a name as for `tmux -L`."""

    socket: str
    session: str
    window: str
    pane: str = ""


class RunnerFacts(Struct, frozen=True, rename="camel"):
    """`runner.json`: which machine and which processes hold a run."""

    kind: str
    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_started: int | None = None
    child_pid: int | None = None
    child_pid_started: int | None = None
    tmux: TmuxPlace | None = None


class ActivityRecord(Struct, frozen=True):
    """`active/<run id>`: how far the events are, and the end of the sentence being written after that event."""

    seq: int = 0
    sentence: str = ""


_encoder = msgspec.json.Encoder()
_meta = msgspec.json.Decoder(RunMeta)
_result = msgspec.json.Decoder(RunResult)
_stop = msgspec.json.Decoder(StopRequest)
_runner = msgspec.json.Decoder(RunnerFacts)
_activity_record = msgspec.json.Decoder(ActivityRecord)

RESERVE = ".result.reserved"
"""Space kept back by the wrapper, so that a full disk leaves room for the result."""

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""What FAT and some network file systems say to `link`."""

_RESERVED_BYTES = 64 * 1024
_USUAL_BYTES = 32 * 1024
_SHRINK = (None, 24_000, 1_000, 0)
"""Characters of the answer that are tried in turn when the result does not fit."""


def read_meta(run_dir: str) -> RunMeta | None:
    """Read `meta.json`; None when it is missing or broken."""
    return _decoded(_meta, f"{run_dir}/{paths.META}")


def read_result(run_dir: str) -> RunResult | None:
    return _decoded(_result, f"{run_dir}/{paths.RESULT}")


def read_stop(run_dir: str) -> StopRequest | None:
    return _decoded(_stop, os.path.join(run_dir, paths.STOP))


def read_runner(run_dir: str) -> RunnerFacts | None:
    return _decoded(_runner, os.path.join(run_dir, paths.RUNNER))


def read_activity(path: str) -> ActivityRecord:
    """Read an `active/` record; what is torn or missing says nothing."""
    try:
        with open(path, "rb") as file:
            return _activity_record.decode(file.read().partition(b"\n")[0])
    except (OSError, msgspec.DecodeError):
        return ActivityRecord()


def write_stop(run_dir: str, request: StopRequest) -> None:
    write_whole(os.path.join(run_dir, paths.STOP), _encoder.encode(request))


def write_runner(run_dir: str, facts: RunnerFacts) -> None:
    write_whole(os.path.join(run_dir, paths.RUNNER), _encoder.encode(facts))


def write_whole(path: str, content: bytes) -> None:
    """Write a file so that readers see the old one or the new one, never a part."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _write_new(temporary, content)
        os.replace(temporary, path)
    except OSError:
        _unlink(temporary)
        raise


def reserve_result(run_dir: str) -> None:
    """Keep disk space for the result; it is given back by `write_result`."""
    descriptor = os.open(os.path.join(run_dir, RESERVE), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _RESERVED_BYTES)
    finally:
        os.close(descriptor)


def write_result(run_dir: str, result: RunResult) -> bool:
    """Write `result.json` unless there is one; False when another was first.

    When the disk or a file size limit leaves too little room the answer is cut, and the result says so.
    Raises OSError when not even the shortest form could be written.
    """
    _unlink(os.path.join(run_dir, RESERVE))
    final = os.path.join(run_dir, paths.RESULT)
    temporary = f"{final}.{os.getpid()}.tmp"
    for keep in _SHRINK:
        try:
            _write_new(
                temporary, msgspec.json.format(_encoder.encode(_shortened(result, keep)), indent=1), durable=True
            )
            _publish(temporary, final)
            return True
        except FileExistsError:
            return False
        except OSError:
            if keep == 0:
                raise
        finally:
            _unlink(temporary)
    return False


def create_run(runs: str, meta: RunMeta, prompt: str) -> int:
    """Make a run directory under a dot name, locked, and rename it into place; return the lock's descriptor.

    The descriptor holds the run (shared flock) until it is closed. Raises LaunchError when the disk says no.
    """
    import fcntl

    hidden = os.path.join(runs, f".{meta.run_id}")
    try:
        os.makedirs(runs, mode=0o700, exist_ok=True)
        os.mkdir(hidden, 0o700)
        lock = os.open(os.path.join(hidden, paths.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            _write_new(os.path.join(hidden, paths.PROMPT), prompt.encode("utf-8", "surrogateescape"))
            if meta.system_prompt is not None:
                text = meta.system_prompt.encode("utf-8", "surrogateescape")
                _write_new(os.path.join(hidden, paths.SYSTEM_PROMPT), text)
            _write_new(os.path.join(hidden, paths.META), _pretty(meta))
            os.rename(hidden, os.path.join(runs, meta.run_id))
        except BaseException:
            os.close(lock)
            raise
        return lock
    except OSError as error:
        discard(hidden)
        raise LaunchError(
            f"the run directory cannot be written: {error.strerror}", where=hidden, hint="check disk space and rights"
        ) from error
    except UnicodeError as error:
        discard(hidden)
        raise LaunchError(
            "a path of the run has a name that is no UTF-8", where=ascii(meta.cwd), hint="rename that directory"
        ) from error


def discard(directory: str) -> None:
    """Remove a directory tree and what is in it, as far as that is allowed."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def present(run_dir: str) -> dict[str, str]:
    """Return the files of a run that exist, name to path."""
    try:
        names = sorted(
            entry.name for entry in os.scandir(run_dir) if not entry.name.startswith(".") and entry.is_file()
        )
    except OSError:
        return {}
    return {name: os.path.join(run_dir, name) for name in names if not name.endswith(".tmp")}


def _publish(temporary: str, final: str) -> None:
    """Give a file its name unless another has it: raises FileExistsError."""
    try:
        os.link(temporary, final)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without links there are two steps, between which only the run's lock keeps others out.
        if os.path.exists(final):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), final) from error
        os.rename(temporary, final)


def _pretty(record: Struct) -> bytes:
    return msgspec.json.format(_encoder.encode(record), indent=1)


def _shortened(result: RunResult, keep: int | None) -> RunResult:
    text = result.final_text
    if keep is None or text is None or len(text) <= keep:
        return result
    note = f"result.json: the answer was cut to {keep} of {len(text)} characters, the disk is full"
    return msgspec.structs.replace(
        result, final_text=text[:keep] or None, artifact_errors=(*result.artifact_errors, note)
    )


def _decoded(decoder: msgspec.json.Decoder[T], path: str) -> T | None:
    try:
        return decoder.decode(_content(path))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _content(path: str) -> bytes:
    """Read a whole file; half as long as with `open`, which a list of thousands of runs notices."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(descriptor, _USUAL_BYTES)
        if more := os.read(descriptor, _USUAL_BYTES):
            with open(descriptor, "rb", closefd=False) as file:
                content += more + file.read()
        return content
    finally:
        os.close(descriptor)


def _write_new(path: str, content: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
