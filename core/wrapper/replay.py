"""Make a run from a recorded stream: the supervision of a live agent, without a process and without waits."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import chain

from .. import paths
from ..agent_kinds import USUAL
from ..agents.loader import recorded_kind, running_side
from ..errors import UsageError
from ..run import artifacts
from ..run.model import LaunchedBy, LauncherKind, RunMeta, RunnerKind, RunResult
from ..run.outcome import ChildExit, decide
from ..text.plain import one_line
from ._intake import Intake
from .records import Records, header
from .supervise import conclude, result_of

CHUNK = 256 * 1024
GZIP = b"\x1f\x8b"
_FIRST_LINES = 20
"""Lines that identify the kind of a recording."""


def replay(
    stdout: str,
    directory: str,
    *,
    agent: str | None = None,
    stderr: str | None = None,
    returncode: int = 0,
    show: Callable[[bytes], None] = lambda piece: None,
) -> RunResult:
    """Replay an agent's output as a new run below `directory`; return its result.

    `agent` is the kind that wrote it; None detects it from the first lines. `stdout` and `stderr` are file paths, plain
    or gzipped; `returncode` is as in Popen; `show` gets each piece of transcript. Raises UsageError if a file cannot be
    read, or the result cannot be written.
    """
    chunks = _chunks(stdout)
    first = next(chunks, b"")  # report an unreadable file before anything exists
    complaints = b"".join(_chunks(stderr)) if stderr is not None else b""
    kind = agent or recorded_kind(first.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]) or USUAL
    meta = _meta(stdout, kind)
    run_dir = os.path.join(directory, meta.run_id)
    os.close(artifacts.create_run(directory, meta, meta.task))
    records = Records(run_dir, os.path.join(run_dir, ".activity"), caps=meta.log_caps, written=0, show=show)
    records.transcript(header(meta))
    started_at, started = paths.now_iso(), time.monotonic()
    child = running_side(kind)
    stream = child.stream()
    intake = Intake(stream, records)
    intake.stderr(complaints)
    for chunk in chain((first,), chunks):
        intake.stdout(chunk)
    intake.rest()
    explanation = child.explain(meta, intake.last_words) or intake.last_words
    outcome = decide(stream.facts, exit=ChildExit.of(returncode), stderr=explanation)
    duration_ms = round((time.monotonic() - started) * 1000)
    conclude(run_dir, records, result_of(meta, stream.facts, outcome, started=(started_at, duration_ms)))
    result = artifacts.read_result(run_dir)
    if result is None:
        raise UsageError("cannot write the result", where=run_dir, hint="check disk space and permissions")
    return result


def _meta(stdout: str, agent: str) -> RunMeta:
    return RunMeta(
        run_id=paths.new_run_id(),
        task=f"(a replay of {one_line(os.path.basename(stdout), 200)})",
        cwd=os.path.dirname(os.path.abspath(stdout)).encode("utf-8", "replace").decode(),
        agent=agent,
        agent_kind=agent,
        agent_command=(),
        runner=RunnerKind("replay"),
        created_at=paths.now_iso(),
        launched_by=LaunchedBy(session="replay", kind=LauncherKind.CLI),
    )


def _chunks(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as plain_file:
            packed = plain_file.read(len(GZIP)) == GZIP
            plain_file.seek(0)
            with gzip.open(plain_file) if packed else plain_file as file:
                while chunk := file.read(CHUNK):
                    yield chunk
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "not a complete gzip file"
        raise UsageError(
            f"cannot read the recording: {why}", where=one_line(path), hint="use an existing file"
        ) from error
