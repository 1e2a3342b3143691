"""`subdeck logs` and `replay`: print what a run did, follow it, or make one from a recorded stream."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click

from .. import paths
from ..agent_kinds import KINDS
from ..engine import Engine
from ..errors import RunDeleted, SubdeckError, UnknownRun, UsageError
from ..run import artifacts
from ..run.model import RunnerKind, RunStatus
from ..run.proven import has_result
from ..run.snapshot import RunSnapshot
from ..system.files import open_file
from ..system.line_file import LineFile, LineTail
from ._options import OneOf, Whole, json_option, run_argument
from .output import EXIT_CODES, document, exit_code, note, pass_bytes, pass_on, report, say

MARKDOWN = "markdown"
"""Made when it is asked for; not a file of the run."""

LOOK_AGAIN = 0.1
"""Seconds; a look is two `stat` calls, which is less than what a watch costs."""
PROVE = 1.0
"""Seconds between two proofs of life."""
BATCH = 256 * 1024
"""Bytes that are printed in one write."""


@click.command("logs")
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the run until it ends.")
@click.option("--raw", "name", flag_value=paths.STDOUT, help="Print the agent's stdout.")
@click.option(
    "--events", "name", flag_value=paths.EVENTS, help="Print the normalized events, one JSON document per line."
)
@click.option("--stderr", "name", flag_value=paths.STDERR, help="Print the agent's stderr.")
@click.option("--markdown", "name", flag_value=MARKDOWN, help="Print the whole run as a markdown document.")
@click.option("--session", is_flag=True, help="Print all runs of the same agent session in order, as one text.")
@json_option
def logs(ref: str, follow: bool, name: str | None, session: bool, as_json: bool) -> int:
    """Print a run's transcript, or one of its other logs.

    With --json, print one document: {"runId", "status", "name", "path", "lines"}; with --session, {"session", "runs"},
    where "runs" has one such document per run. With -f, the exit code is that of the run; with --session, the last run
    is followed.
    """
    if follow and (as_json or name == MARKDOWN):
        option, hint = ("--json", "use -f --events") if as_json else ("--markdown", "use -f without it")
        raise UsageError(f"{option} prints one document and cannot follow a run", where="logs", hint=hint)
    engine = Engine.open()
    run_id = engine.find((ref,))[0]
    name = name or paths.TRANSCRIPT
    if session:
        return _show_session(engine, _known(engine, run_id), name, follow=follow, as_json=as_json)
    if as_json:
        document(_log_document(engine, _known(engine, run_id), name))
        return 0
    return _show(engine, run_id, name, follow=follow)


def _show(engine: Engine, run_id: str, name: str, *, follow: bool) -> int:
    if name == MARKDOWN:
        for piece in _markdown(engine, _known(engine, run_id)):
            pass_bytes(piece.encode("utf-8", "replace"))
        return 0
    log = _Log(engine, run_id, name)
    if name == paths.TRANSCRIPT:
        _name_host(engine, run_id)
    if follow:
        return _follow(engine, run_id, log)
    log.print_new()
    log.print_rest()
    if not os.path.exists(log.path):
        note(f"{log.name} has not been written yet")
    return 0


def _name_host(engine: Engine, run_id: str) -> None:
    """Say above the transcript of a run of another machine how it stands, and where."""
    meta = artifacts.read_meta(engine.project.run_dir(run_id))
    if meta and meta.runner == RunnerKind.HOSTS:
        from ..run.describe import standing

        for run in engine.snapshots((run_id,)):
            note(standing(run))


def _show_session(engine: Engine, run: RunSnapshot, name: str, *, follow: bool, as_json: bool) -> int:
    """Print the runs of a conversation in their order; return the exit code of the last one where it is followed."""

    runs = chain(run, engine.snapshots())
    if as_json:
        documents = [_log_document(engine, one, name) for one in runs]
        document({"session": run.child_session_id, "runs": documents})
        return 0
    code = 0
    for number, one in enumerate(runs, 1):
        if name == paths.TRANSCRIPT and len(runs) > 1:
            before = "\n" if number > 1 else ""
            say(f"{before}-- {one.meta.short_id}, {number} of {len(runs)}, {one.status} --\n")
        code = _show(engine, one.run_id, name, follow=follow and number == len(runs))
    return code


def _log_document(engine: Engine, run: RunSnapshot, name: str) -> dict[str, Any]:
    if name == MARKDOWN:
        path, lines = None, "".join(_markdown(engine, run)).rstrip("\n").split("\n")
    else:
        log = _Log(engine, run.run_id, name)
        path, lines = log.path, [line.decode("utf-8", "replace") for line in log.whole()]
    return {"runId": run.run_id, "status": run.status, "name": name, "path": path, "lines": lines}


def _known(engine: Engine, run_id: str) -> RunSnapshot:
    for run in engine.snapshots((run_id,)):
        return run
    raise UnknownRun("not a run, or just deleted", where=engine.project.run_dir(run_id))


def _markdown(engine: Engine, run: RunSnapshot) -> Iterator[str]:
    from ..run.markdown import run_markdown

    return run_markdown(run, engine.events(run.run_id), engine.result(run.run_id))


class _Log:
    def __init__(self, engine: Engine, run_id: str, name: str) -> None:
        """Raise SubdeckError for what is there and cannot be read."""
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
        rest = self._rest()
        return [*lines, rest] if rest else lines

    def print_new(self) -> None:
        """Print the whole lines that came since the last time."""
        while block := b"".join(line + b"\n" for line in self._tail.lines(BATCH)):
            pass_bytes(block)

    def print_rest(self) -> None:
        """Print what stands after the last newline, where nobody will write it to its end."""
        if rest := self._rest():
            pass_bytes(rest + b"\n")

    def _rest(self) -> bytes:
        return LineFile(self.path).line_at(self._tail.offset)


def _follow(engine: Engine, run_id: str, log: _Log) -> int:
    """Print what is new until the run has ended, and then the rest; return the run's exit code."""
    run_dir = engine.project.run_dir(run_id)
    proven = 0.0
    try:
        while not has_result(run_dir):
            if time.monotonic() - proven >= PROVE:
                if not engine.snapshots((run_id,)):
                    raise RunDeleted("while following it", where=run_dir)
                proven = time.monotonic()
            log.print_new()
            time.sleep(LOOK_AGAIN)
    except KeyboardInterrupt:
        note("stopped following; the run continues")
        raise
    log.print_new()
    log.print_rest()
    run = _known(engine, run_id)
    return exit_code(run.status, run.check)


@click.command("replay")
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
@json_option
def replay(
    file: str, agent: str | None, exit_code: int, stderr: str | None, events: bool, keep: bool, as_json: bool
) -> int:
    """Create a run from FILE, an agent's recorded stdout in JSON mode (may be .gz), at full speed.

    Prints the transcript on stderr and the answer on stdout. Exit codes are those of `run`.
    """
    import shutil
    import tempfile

    from ..wrapper.replay import replay as record

    if events and as_json:
        raise UsageError("--events and --json cannot both go to stdout", where="replay", hint="use only one of them")

    def show(piece: bytes) -> None:
        if not (events or as_json):
            report(piece.decode("utf-8", "replace"))

    directory = tempfile.mkdtemp(prefix="subdeck-replay-")
    is_kept = False
    try:
        result = record(file, directory, agent=agent, stderr=stderr, returncode=exit_code, show=show)
        run_dir = os.path.join(directory, result.run_id)
        if events:
            with open(os.path.join(run_dir, paths.EVENTS), "rb") as lines:
                for line in lines:
                    pass_bytes(line)
        elif as_json:
            document(result)
        elif result.status is RunStatus.COMPLETED and result.final_text:
            pass_on(result.final_text)
        is_kept = keep
    finally:
        if not is_kept:
            shutil.rmtree(directory, ignore_errors=True)
    if keep:
        note(f"kept in {run_dir}")
    return EXIT_CODES[result.status]


# --- the runs of one child session -----------------------------------------------------------------------------------


def chain(run: RunSnapshot, runs: Iterable[RunSnapshot]) -> tuple[RunSnapshot, ...]:
    """Return the runs of the same conversation among `runs`, and the run itself, in the order of their launch.

    A run belongs to it by the id that it was launched with, went on with, or was told by its agent; an id means nothing
    to another agent. A foreign run says whatever it likes, and belongs to none.
    """
    ids = _ids(run)
    if not ids or run.foreign:
        return (run,)
    left = {
        other.run_id: other
        for other in runs
        if not other.foreign and other.meta.agent == run.meta.agent and other.run_id != run.run_id
    }
    found = {run.run_id: run}
    while linked := [other for other in left.values() if not ids.isdisjoint(_ids(other))]:
        for other in linked:
            found[other.run_id] = left.pop(other.run_id)
            ids |= _ids(other)
    return tuple(sorted(found.values(), key=lambda one: (one.run_id[:15], one.meta.created_at, one.run_id)))


def _ids(run: RunSnapshot) -> set[str]:
    meta = run.meta
    resumed = meta.agent_session.resume if meta.agent_session else None
    return {name for name in (run.told_session, meta.child_session_id, resumed) if name}
