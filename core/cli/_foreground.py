"""Wait for a run: its events on stderr as they happen, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..engine import Engine
from ..errors import RunDeleted, SubdeckError, reason
from ..project.follower import Update
from ..run import describe
from ..run.events import AssistantText, RunEnded, RunQueued
from ..run.model import RunResult, RunStatus, StopReason
from ..run.progress import ProgressFormatter
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line, plain
from ._requests import Asking
from ._stdio import Canceller
from .output import as_typed, report


def watch(engine: Engine, launched: Sequence[RunSnapshot], canceller: Canceller) -> tuple[RunResult, bool]:
    """Show a run until it has ended; return its result, and whether its end could be printed.

    Raises SubdeckError if the run was deleted.
    """
    if not launched:
        raise RunDeleted(where=engine.project.runs)
    (run,) = launched
    progress = _Progress(engine, run, canceller)
    where = f"{run.meta.agent} {run.meta.resolved_model}".rstrip()
    progress.tell(one_line(f"{run.run_id} · {run.meta.title} · {where} · {run.meta.runner}"))
    ended = engine.wait((run.run_id,), on_update=progress.take, stop=canceller)
    if ended and not ended[0].has_ended:
        progress.tell(f"cancelling {run.meta.short_id} …")
        try:
            stopped_as = StopReason.UNREAD if canceller.is_unread else StopReason.CANCELLED
            engine.stop((run.run_id,), reason=stopped_as)
        except (SubdeckError, OSError) as error:
            progress.tell(f"subdeck: the run could not be cancelled: {reason(error)}")
        ended = engine.wait((run.run_id,), on_update=progress.take)
    result = engine.result(run.run_id)
    if result is None or not ended:
        raise RunDeleted(where=engine.project.run_dir(run.run_id))
    progress.show()
    return result, progress.end(ended[0], result)


class _Progress:
    """Prints events as they happen, except the last text: it may be the answer, which goes to stdout."""

    def __init__(self, engine: Engine, run: RunSnapshot, canceller: Canceller) -> None:
        self._events = engine.events(run.run_id)
        self._canceller = canceller
        self._formatter = ProgressFormatter()
        self._asking = Asking()
        self._held = ""
        self._place_line = ""
        """The last printed line about its host or queue."""
        self._broken = False

    def tell(self, text: str) -> None:
        """Print on stderr; if stderr is closed, cancel the run: its reader has gone."""
        if self._broken:
            return
        try:
            report(text + "\n")
        except OSError:
            self._broken = True
            self._canceller.set()
            self._canceller.is_unread = True

    def take(self, update: Update) -> None:
        """Print the run's place, its new events, and how to answer its requests."""
        for run in update.runs:
            self._show_place(run)
        self.show()
        for _, command in self._asking.new(update.runs):
            self._release()
            self.tell(f"  {command}")

    def _show_place(self, run: RunSnapshot) -> None:
        line = place_line(run)
        if line == self._place_line:
            return
        self._place_line = line
        if line:
            self._release()
            self.tell(line)

    def show(self) -> None:
        for event in self._events.read():
            text = None if isinstance(event, RunEnded) else self._formatter.text(event)
            if text is None or (text == self._place_line and isinstance(event, RunQueued)):
                continue
            self._release()
            if isinstance(event, AssistantText):
                self._held = text
            else:
                self.tell(text)

    def end(self, run: RunSnapshot, result: RunResult) -> bool:
        """Print the end of the run; return whether that was possible."""
        is_answer = self._held.strip() == plain(result.final_text or "").strip()
        if result.status is not RunStatus.COMPLETED or not is_answer:
            self._release()
        self.tell("\n".join(_closing(run, result)))
        return not self._broken

    def _release(self) -> None:
        if self._held:
            self.tell(self._held)
            self._held = ""


def place_line(run: RunSnapshot) -> str:
    """Return that the queue is paused, or the host of a run or why it waits for one; empty for any other run.

    The number of runs ahead is left out, because it changes often.
    """
    if describe.is_held(run):
        return describe.QUEUE_HELD
    whereabouts = describe.whereabouts(run).partition(" (")[0]
    if run.has_ended or not whereabouts:
        return ""
    is_there = run.place is not None and whereabouts == run.place.host
    return f"on {whereabouts}" if is_there else f"{describe.state(run)} · {whereabouts}"


def _closing(run: RunSnapshot, result: RunResult) -> list[str]:
    has_used = run.usage.tokens or run.usage.uncounted
    tokens = f", {describe.tokens_used(run.usage)} tokens" if has_used else ""
    elapsed = describe.elapsed(run, datetime.now(UTC))
    lines = [f"{describe.state(run)} ({result.reason}) {run.meta.short_id} after {elapsed}{tokens}"]
    if result.error_message:
        lines.append("  " + one_line(result.error_message, 2000))
    changes = result.changes
    if changes and (changes.files or changes.settings or changes.ignored):
        on_branch = f", on branch {one_line(result.branch, 80)}" if result.branch else ""
        lines.append(f"  changed {one_line(changes.words, 400)}{on_branch}")
    lines += [
        f"  not delivered ({one_line(message.reason)}): {one_line(message.text)}" for message in result.undelivered
    ]
    lines += [f"  not written: {one_line(trouble)}" for trouble in result.artifact_errors]
    lines += [f"  tampered with: {one_line(sentence)}" for sentence in result.tampered]
    lines += [f"  {still_running}"] if (still_running := describe.still_running(result.not_ended)) else []
    if result.status is not RunStatus.COMPLETED:
        lines.append(as_typed(f"  subdeck logs {run.meta.short_id} shows its transcript"))
    return lines
