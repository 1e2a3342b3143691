"""`subdeck run` and `bg`: start a run and show what it does, or leave it in the background."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from ..engine import Engine
from ..errors import SubdeckError
from ..project.registry import count
from ..run import describe
from ..run.events import AssistantText, RunEnded
from ..run.model import RunResult, RunStatus, StopReason
from ..run.progress import ProgressFormatter
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line, plain
from .launch_options import EPILOG, launch_options, read_request
from .outcomes import DELETED_CODE, EXIT_CODES, worst
from .output import document, is_terminal, json_option, note, pass_on, say, show_error
from .stdio import Canceller

DELETED = "the run was deleted while it was waited for"


@click.command("run", epilog=EPILOG)
@launch_options
@json_option
def run(args: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Start a run, show its progress on stderr and print its answer on stdout.

    ctrl-C, TERM, HUP, or closing the pipe that reads the output cancels the run. If this command is killed with KILL,
    the run continues.
    """
    engine = Engine.open()
    request = read_request(engine, args, **options)
    with Canceller() as canceller:
        launched = engine.launch((request,), background=False)
        try:
            result = _watch(engine, launched, canceller)
        except (SubdeckError, OSError) as error:
            wrapped = error if isinstance(error, SubdeckError) else SubdeckError(str(error), where=engine.project.runs)
            show_error(wrapped, as_json=as_json)
            return DELETED_CODE
        try:
            if as_json:
                document(result)
            elif result.status is RunStatus.COMPLETED and result.final_text:
                pass_on(result.final_text)
        except OSError as error:
            what = f"the run has ended, but its answer could not be printed: {error.strerror}"
            hint = f"subdeck logs {result.run_id} shows it"
            show_error(SubdeckError(what, where="stdout", hint=hint), as_json=as_json)
        return EXIT_CODES[result.status]


@click.command("bg", epilog=EPILOG)
@launch_options
@json_option
def bg(args: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Start a run in the background and print its id. The run outlives this command and the terminal.

    The exit code is 0 once the run has started, or that of `run` if it has already ended by then.
    """
    engine = Engine.open()
    launched = engine.launch((read_request(engine, args, **options),), background=True)
    if not launched:
        deleted = SubdeckError("the run was deleted as soon as it had been started", where=engine.project.runs)
        show_error(deleted, as_json=as_json)
        return DELETED_CODE
    (started,) = launched
    try:
        _print_started(engine, started, as_json=as_json)
    except (SubdeckError, OSError) as error:
        what = f"the run {started.run_id} was started, but this could not be printed: {error}"
        hint = f"subdeck status {started.meta.short_id} shows it"
        show_error(SubdeckError(what, where="stdout", hint=hint), as_json=as_json)
    return worst(launched)


def _print_started(engine: Engine, run: RunSnapshot, *, as_json: bool) -> None:
    if as_json:
        counts = count(other for other in engine.snapshots() if other.meta.background)
        paths = engine.artifacts(run.run_id)
        document({"runId": run.run_id, "status": run.status, "counts": counts, "artifacts": paths})
        return
    say(run.run_id)
    if run.has_ended:
        note(one_line(f"{describe.state(run)}: {describe.doing(run)}"))
    elif is_terminal(sys.stdout):
        note(f"subdeck logs -f {run.meta.short_id} follows it, subdeck wait {run.meta.short_id} waits for it")


def _watch(engine: Engine, launched: Sequence[RunSnapshot], canceller: Canceller) -> RunResult:
    """Show a run until it has ended; return its result. Raises SubdeckError when its directory was deleted."""
    if not launched:
        raise SubdeckError(DELETED, where=engine.project.runs)
    (run,) = launched
    progress = _Progress(engine, run, canceller)
    progress.tell(_opening(run))
    ended = engine.wait((run.run_id,), on_update=lambda _: progress.show(), stop=canceller)
    if ended and not ended[0].has_ended:
        _cancel(engine, run, progress)
        ended = engine.wait((run.run_id,), on_update=lambda _: progress.show())
    result = engine.result(run.run_id)
    if result is None or not ended:
        raise SubdeckError(DELETED, where=engine.project.run_dir(run.run_id))
    progress.show()
    progress.end(ended[0], result)
    return result


def _cancel(engine: Engine, run: RunSnapshot, progress: _Progress) -> None:
    progress.tell(f"cancelling {run.meta.short_id} …")
    try:
        engine.stop((run.run_id,), reason=StopReason.CANCELLED)
    except (SubdeckError, OSError) as error:
        progress.tell(f"subdeck: it could not be cancelled: {error}")


class _Progress:
    """Shows events as they come; the last text is held back, because it may be the answer that goes to stdout."""

    def __init__(self, engine: Engine, run: RunSnapshot, canceller: Canceller) -> None:
        self._events = engine.events(run.run_id)
        self._canceller = canceller
        self._formatter = ProgressFormatter()
        self._held = ""
        self._broken = False

    def tell(self, text: str) -> None:
        """Print on stderr; when that has gone, so has who waits."""
        if self._broken:
            return
        try:
            note(text)
        except OSError:
            self._broken = True
            self._canceller.set()

    def show(self) -> None:
        for event in self._events.read():
            text = None if isinstance(event, RunEnded) else self._formatter.text(event)
            if text is None:
                continue
            self._release()
            if isinstance(event, AssistantText):
                self._held = text
            else:
                self.tell(text)

    def end(self, run: RunSnapshot, result: RunResult) -> None:
        is_answer = self._held.strip() == plain(result.final_text or "").strip()
        if result.status is not RunStatus.COMPLETED or not is_answer:
            self._release()
        self.tell("\n".join(_closing(run, result)))

    def _release(self) -> None:
        if self._held:
            self.tell(self._held)
            self._held = ""


def _opening(run: RunSnapshot) -> str:
    meta = run.meta
    where = f"{meta.agent} {meta.resolved_model}".rstrip()
    return one_line(f"{meta.run_id} · {meta.title} · {where} · {meta.runner}")


def _closing(run: RunSnapshot, result: RunResult) -> list[str]:
    tokens = f", {describe.tokens(run.usage.tokens)} tokens" if run.usage.tokens else ""
    elapsed = describe.elapsed(run, datetime.now(UTC))
    lines = [f"{describe.state(run)} ({result.reason}) {run.meta.short_id} after {elapsed}{tokens}"]
    if result.error_message:
        lines.append("  " + one_line(result.error_message, 2000))
    lines += [f"  not written: {one_line(trouble)}" for trouble in result.artifact_errors]
    if result.status is not RunStatus.COMPLETED:
        lines.append(f"  subdeck logs {run.meta.short_id} shows what it did")
    return lines
