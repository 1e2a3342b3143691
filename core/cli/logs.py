"""`subdeck logs` and `replay`: print or follow the logs of a run, print its answer, or replay a recorded stream."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import click

from .. import paths
from ..agent_kinds import KINDS
from ..engine import Engine
from ..errors import RunDeleted, SubdeckError, UsageError
from ..run import artifacts
from ..run.model import RunnerKind, RunResult, RunStatus
from ..run.proven import has_result
from ..run.snapshot import RunSnapshot
from ..system.files import open_file
from ..system.line_file import LineFile, LineTail
from ._command import Document, command, is_json
from ._options import OneOf, Whole, run_argument, snapshot_of
from .output import EXIT_CODES, Output, Verbatim, exit_code, note, render, report, show

if TYPE_CHECKING:
    from ._answer import Answer

MARKDOWN = "markdown"
ANSWER = "answer"
"""Computed on demand; not files of the run."""

LOOK_AGAIN = 0.1
"""Seconds between two looks at the files: two `stat` calls cost less than a watch."""
PROVE = 1.0
"""Seconds between two checks that the run still exists."""
BATCH = 256 * 1024
"""Bytes that are printed in one write."""


class Log(Document, frozen=True):
    """A log of a run."""

    run_id: str
    status: RunStatus
    name: str
    """File name of the log, or `markdown`."""
    path: str | None
    """Null for markdown."""
    lines: tuple[str, ...]


class SessionLogs(Document, frozen=True):
    """With --session: the logs of all runs of an agent session."""

    session: str | None
    """Id of the agent session."""
    runs: tuple[Log, ...]


@command(
    "logs",
    "subdeck logs 4ae0bd",
    "subdeck logs -f 4ae0bd # until it ends",
    "subdeck logs 4ae0bd --answer --code 1 # only its first code block",
)
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the run until it ends.")
@click.option("--raw", "name", flag_value=paths.STDOUT, help="Print the agent's stdout.")
@click.option(
    "--events", "name", flag_value=paths.EVENTS, help="Print the normalized events, one JSON document per line."
)
@click.option("--stderr", "name", flag_value=paths.STDERR, help="Print the agent's stderr.")
@click.option("--answer", "name", flag_value=ANSWER, help="Print only the answer, exactly as the agent wrote it.")
@click.option("--code", "number", metavar="N", type=Whole(min=1), help="With --answer: print only its N-th code block.")
@click.option("--markdown", "name", flag_value=MARKDOWN, help="Print the whole run as a markdown document.")
@click.option("--session", is_flag=True, help="Print all runs of the same agent session in order, as one text.")
def logs(
    ref: str, follow: bool, name: str | None, number: int | None, session: bool
) -> Output[Log | SessionLogs | Answer] | int:
    """Print a run's transcript, its answer, or one of its other logs.

    With -f, the exit code is the run's; with --session, the last run is followed. With --answer, it is 1 if there is no
    answer: the run is still running, or it finished without one.

    With --json, print one document: {"runId", "status", "name", "path", "lines"}; with --session, {"session", "runs"},
    where "runs" has one such document per run; with --answer, {"runId", "status", "reason", "answer", "partial",
    "error", "code": [{"language", "text"}]}.
    """
    if number is not None and name != ANSWER:
        raise UsageError("--code requires --answer", where="--code", hint="add --answer")
    if name == ANSWER and session:
        raise UsageError("--answer and --session cannot be combined", where="logs", hint="use only one of them")
    if follow and (is_json() or name in (MARKDOWN, ANSWER)):
        option, hint = ("--json", "use -f --events") if is_json() else (f"--{name}", "use -f without it")
        raise UsageError(f"{option} prints one document and cannot follow a run", where="logs", hint=hint)
    engine = Engine.open()
    run_id = engine.find((ref,))[0]
    if name == ANSWER:
        from ._answer import answer

        return answer(engine, run_id, number)
    name = name or paths.TRANSCRIPT
    if session:
        run = snapshot_of(engine, run_id)
        runs = chain(run, engine.snapshots())
        if is_json():
            return Output(SessionLogs(run.child_session_id, tuple(_document(engine, member, name) for member in runs)))
        return _show_session(engine, runs, name, follow=follow)
    if is_json():
        return Output(_document(engine, snapshot_of(engine, run_id), name))
    return _show(engine, run_id, name, follow=follow)


def _show(engine: Engine, run_id: str, name: str, *, follow: bool) -> int:
    if name == MARKDOWN:
        show(piece.encode("utf-8", "replace") for piece in _markdown(engine, snapshot_of(engine, run_id)))
        return 0
    log = _LogFile(engine, run_id, name)
    if name == paths.TRANSCRIPT:
        _name_host(engine, run_id)
    if follow:
        return _follow(engine, run_id, log)
    show(log.new())
    show(log.rest())
    if not os.path.exists(log.path):
        note(f"{log.name} has not been written yet")
    return 0


def _name_host(engine: Engine, run_id: str) -> None:
    """Print the state of a run on another machine, and its host, above the transcript."""
    meta = artifacts.read_meta(engine.project.run_dir(run_id))
    if meta and meta.runner == RunnerKind.HOSTS:
        from ..run.describe import status_line

        for run in engine.snapshots((run_id,)):
            note(status_line(run))


def _show_session(engine: Engine, runs: Sequence[RunSnapshot], name: str, *, follow: bool) -> int:
    """Print the runs of an agent session in order; return the exit code of the last one if it is followed."""
    code = 0
    for number, run in enumerate(runs, 1):
        if name == paths.TRANSCRIPT and len(runs) > 1:
            before = "\n" if number > 1 else ""
            show((f"{before}-- {run.meta.short_id}, {number} of {len(runs)}, {run.status} --\n",))
        code = _show(engine, run.run_id, name, follow=follow and number == len(runs))
    return code


def _document(engine: Engine, run: RunSnapshot, name: str) -> Log:
    if name == MARKDOWN:
        lines = "".join(_markdown(engine, run)).rstrip("\n").split("\n")
        return Log(run.run_id, run.status, name, None, tuple(lines))
    log = _LogFile(engine, run.run_id, name)
    return Log(run.run_id, run.status, name, log.path, tuple(line.decode("utf-8", "replace") for line in log.whole()))


def _markdown(engine: Engine, run: RunSnapshot) -> Iterator[str]:
    from ..run.markdown import run_markdown

    return run_markdown(run, engine.events(run.run_id), engine.result(run.run_id))


class _LogFile:
    def __init__(self, engine: Engine, run_id: str, name: str) -> None:
        """Raise SubdeckError if the file exists and cannot be read."""
        self.name = name
        self.path = os.path.join(engine.project.run_dir(run_id), name)
        self._tail = LineTail(self.path)
        try:
            os.close(open_file(self.path, os.O_RDONLY))
        except FileNotFoundError:
            pass  # it is not written yet
        except OSError as error:
            raise SubdeckError(f"the file cannot be read: {error.strerror}", where=self.path) from error

    def whole(self) -> list[bytes]:
        lines = list(self._tail.lines())
        last_line = self._rest()
        return [*lines, last_line] if last_line else lines

    def new(self) -> Iterator[bytes]:
        """Yield the complete lines since the last call, in blocks."""
        while block := b"".join(line + b"\n" for line in self._tail.lines(BATCH)):
            yield block

    def rest(self) -> Iterator[bytes]:
        """Yield the text after the last newline, for a file that does not grow any more."""
        if last_line := self._rest():
            yield last_line + b"\n"

    def _rest(self) -> bytes:
        return LineFile(self.path).line_at(self._tail.offset)


def _follow(engine: Engine, run_id: str, log: _LogFile) -> int:
    """Print new lines until the run has ended, then the rest; return the run's exit code."""
    run_dir = engine.project.run_dir(run_id)
    proven = 0.0
    try:
        while not has_result(run_dir):
            if time.monotonic() - proven >= PROVE:
                if not engine.snapshots((run_id,)):
                    raise RunDeleted("while following it", where=run_dir)
                proven = time.monotonic()
            show(log.new())
            time.sleep(LOOK_AGAIN)
    except KeyboardInterrupt:
        note("stopped following; the run continues")
        raise
    show(log.new())
    show(log.rest())
    run = snapshot_of(engine, run_id)
    return exit_code(run.status, run.check)


@command(
    "replay",
    "subdeck replay stdout.log",
    "subdeck replay stdout.log.gz --agent claude --events",
)
@click.argument("file", metavar="FILE")
@click.option(
    "--agent",
    type=OneOf(list(KINDS)),
    help="Kind of the agent that wrote it (default: detected from its first lines).",
)
@click.option(
    "--exit-code",
    metavar="N",
    type=Whole(-64, 255),
    default=0,
    help="The agent's exit code; -15 means signal 15.",
)
@click.option("--stderr", metavar="FILE", help="File with the agent's stderr.")
@click.option("--events", is_flag=True, help="Print the normalized events, one JSON document per line.")
@click.option("--keep", is_flag=True, help="Keep the run directory and print its path.")
def replay(
    file: str, agent: str | None, exit_code: int, stderr: str | None, events: bool, keep: bool
) -> Annotated[int, RunResult]:
    """Create a run from FILE, an agent's recorded stdout in JSON mode (may be .gz), at full speed.

    Prints the transcript on stderr and the answer on stdout. Exit codes are those of `run`.
    """
    import shutil
    import tempfile

    from ..wrapper.replay import replay as record

    as_json = is_json()
    if events and as_json:
        raise UsageError("--events and --json cannot both go to stdout", where="replay", hint="use only one of them")

    def print_progress(piece: bytes) -> None:
        if not (events or as_json):
            report(piece.decode("utf-8", "replace"))

    directory = tempfile.mkdtemp(prefix="subdeck-replay-")
    is_kept = False
    try:
        result = record(file, directory, agent=agent, stderr=stderr, returncode=exit_code, show=print_progress)
        run_dir = os.path.join(directory, result.run_id)
        if events:
            with open(os.path.join(run_dir, paths.EVENTS), "rb") as lines:
                show(lines)
        else:
            render(Output(result, _answer(result)), as_json=as_json)
        is_kept = keep
    finally:
        if not is_kept:
            shutil.rmtree(directory, ignore_errors=True)
    if keep:
        note(f"kept in {run_dir}")
    return EXIT_CODES[result.status]


def _answer(result: RunResult) -> Iterator[Verbatim]:
    if result.status is RunStatus.COMPLETED and result.final_text:
        yield Verbatim(result.final_text)


# --- the runs of one agent session -----------------------------------------------------------------------------------


def chain(run: RunSnapshot, runs: Iterable[RunSnapshot]) -> tuple[RunSnapshot, ...]:
    """Return the runs of the same agent session among `runs`, and the run itself, in the order of their launch.

    A run belongs to the session whose id it was launched with, continued, or got from its agent. Ids of different
    agents are unrelated. The ids of an untrusted run may be false: it belongs to no session.
    """
    ids = _ids(run)
    if not ids or run.foreign:
        return (run,)
    candidates = {
        candidate.run_id: candidate
        for candidate in runs
        if not candidate.foreign and candidate.meta.agent == run.meta.agent and candidate.run_id != run.run_id
    }
    members = {run.run_id: run}
    while linked := [candidate for candidate in candidates.values() if not ids.isdisjoint(_ids(candidate))]:
        for candidate in linked:
            members[candidate.run_id] = candidates.pop(candidate.run_id)
            ids |= _ids(candidate)
    return tuple(
        sorted(members.values(), key=lambda member: (member.run_id[:15], member.meta.created_at, member.run_id))
    )


def _ids(run: RunSnapshot) -> set[str]:
    meta = run.meta
    resumed = meta.agent_session.resume if meta.agent_session else None
    return {name for name in (run.told_session, meta.child_session_id, resumed) if name}
