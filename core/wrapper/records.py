"""The files that the wrapper writes while the agent works; a failed write never stops a run."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from .. import paths
from ..agents.sentence import Sentence
from ..run import second_copy
from ..run.artifacts import ActivityRecord, WrittenPiece
from ..run.events import (
    AssistantText,
    Baseline,
    Check,
    Decision,
    Event,
    HandedBack,
    Interrupted,
    Message,
    Notice,
    Request,
    RunEnded,
    RunStarted,
    SessionTold,
    TakenOver,
    UnknownEvent,
    UsageReported,
    encode_event,
)
from ..run.model import LogCaps, NoticeLevel, RunMeta, Tools
from ..run.repair import restore
from ..system import files
from ..text.plain import one_line, plain
from ._event_file import AppendedFile, EventFile

if TYPE_CHECKING:
    from ..run.progress import ProgressFormatter

EVENT_INTERVAL_S = 1 / 50
"""Minimum seconds between two writes of the activity record for events."""
SENTENCE_INTERVAL_S = 1 / 4
"""Minimum seconds between two writes for the current sentence."""
PANE_PATIENCE = 500
"""Milliseconds that a pane may take to make room."""


LOOK_S = 0.65
"""Minimum seconds between two checks whether something else wrote to the records. It is less than
`queue.LOOK_FOR_STOP_S`, the interval at which a waiting wrapper wakes up: with equal values every second check would be
due just after the wake-up, and be skipped."""
GONE_S = 0.5
"""Seconds that a run's directory is missing before the run counts as deleted: a moved one may be put back or linked."""
MOST_TAMPERED = 50
_VITAL = RunStarted | Message | Request | Decision | Interrupted | TakenOver | HandedBack | Check
"""Events exempt from every cap."""
_KEPT = _VITAL | SessionTold | Baseline | UsageReported | Notice
"""Events that are written again if another process has damaged the file."""
_CUT = f"{paths.EVENTS} has reached its size limit: only the last text and the result follow"


class ActivityFile:
    """The `active/` record, which shows readers where to look: rewritten in place, as often as they can follow."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._record = ActivityRecord()
        self._written = ActivityRecord()
        self._last_touch = 0.0
        self._descriptor = -1
        try:
            self._descriptor = files.open_private(path, os.O_WRONLY)
        except OSError:
            pass  # readers also check the sizes of open runs

    def update(self, record: ActivityRecord) -> None:
        self._record = record

    def due(self) -> float | None:
        """Return when to write it, in monotonic seconds; None if it has not changed."""
        if self._record == self._written or self._descriptor < 0:
            return None
        new_events = self._record.seq != self._written.seq
        return self._last_touch + (EVENT_INTERVAL_S if new_events else SENTENCE_INTERVAL_S)

    def touch(self, now: float) -> bool:
        """Write it if it is due; return whether it was."""
        due = self.due()
        if due is None or due > now:
            return False
        try:
            os.pwrite(self._descriptor, msgspec.json.encode(self._record) + b"\n", 0)
        except OSError:
            pass  # the next change tries again
        self._written = self._record
        self._last_touch = now
        return True

    def remove(self) -> None:
        self._close()
        files.remove(self._path)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WritingFile:
    """The model's current text, piece by piece, so that it survives the wrapper; created with the first piece."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, paths.WRITING)
        self._descriptor = -1
        self._number = -1
        self._written = 0

    def write(self, seq: int, sentence: Sentence) -> None:
        """Append the new part of a sentence that follows the event `seq`; a new sentence restarts the file."""
        if sentence.number == self._number and sentence.length <= self._written:
            return
        try:
            if self._descriptor < 0:
                self._descriptor = files.open_private(self._path, os.O_WRONLY | os.O_APPEND)
            if sentence.number != self._number:
                os.ftruncate(self._descriptor, 0)
                self._number, self._written = sentence.number, 0
            piece = WrittenPiece(seq, sentence.text(self._written))
            line = msgspec.json.encode(piece) + b"\n"
            if os.write(self._descriptor, line) == len(line):
                self._written = sentence.length
            else:
                self._number = -1
        except OSError:
            self._number = -1  # write it in full the next time, as a part may be there

    def remove(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        files.remove(self._path)


class Records:
    """All growing files of one run, written together."""

    def __init__(
        self, run_dir: str, activity_file: str, *, caps: LogCaps, written: int, show: Callable[[bytes], None]
    ) -> None:
        """`written` counts events already in the file; `show` gets each piece of transcript for the pane."""
        self._run_dir = run_dir
        self.tampered: list[str] = []
        """Damage by other processes to the run's records, a sentence each."""
        self._look_at = 0.0
        self._gone_since: float | None = None
        self._troubles: dict[str, str] = {}
        self.seq = written
        self.started_at: str | None = None
        """Start time of the first agent, from its event; None before."""
        self.stdout = AppendedFile(run_dir, paths.STDOUT, self.note_trouble, caps.stdout)
        self.stderr = AppendedFile(run_dir, paths.STDERR, self.note_trouble, caps.stderr)
        self._events = EventFile(run_dir, self.note_trouble, caps.events)
        self._transcript = AppendedFile(run_dir, paths.TRANSCRIPT, self.note_trouble, caps.transcript)
        self._files = (self.stdout, self.stderr, self._events, self._transcript)
        self._cut_text: AssistantText | None = None
        """The agent's last message, if the cap of the events left it out."""
        self._cut_piece = b""
        """The same for the transcript."""
        self._is_ending = False
        self._show = show
        self.activity = ActivityFile(activity_file)
        self._writing = WritingFile(run_dir)
        self._sentence = Sentence()

    @cached_property
    def _formatter(self) -> ProgressFormatter:
        from ..run.progress import ProgressFormatter  # the first event is the agent's start

        return ProgressFormatter()

    def show_by(self, show: Callable[[bytes], None]) -> None:
        """Show further pieces of transcript with another function."""
        self._show = show

    def event(self, event: Event) -> None:
        """Write an event with the next number, and its progress text; gaps in the numbers show a cap's effect."""
        if isinstance(event, RunEnded):
            self._begin_end()
        elif isinstance(event, _VITAL):
            self._restore_events()
        numbered = self._numbered(event)
        self._append_event(numbered)
        if not isinstance(numbered, UnknownEvent) and (text := self._formatter.text(numbered)):
            self.transcript(text, is_agent_text=isinstance(event, AssistantText))
        self.activity.update(ActivityRecord(self.seq))

    def look(self) -> None:
        """Repair the run's records after damage by another process, with a warning."""
        restored = restore(self._run_dir)
        for sentence in (*second_copy.tampering(self._run_dir), *restored):
            self._say_tampered(sentence)
        self._restore_events()

    def are_gone(self, now: float) -> bool:
        """Whether the run's directory is missing for GONE_S and cannot be recreated: all runs were deleted."""
        if not os.path.exists(self._run_dir):
            self.look()
        if os.path.exists(self._run_dir):
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        return self._gone_since is not None and now - self._gone_since >= GONE_S

    @property
    def gone_due(self) -> float | None:
        """When a missing directory counts as deleted, in monotonic seconds; None while it exists."""
        return None if self._gone_since is None else self._gone_since + GONE_S

    def _restore_events(self) -> None:
        if sentence := self._events.restore():
            second_copy.note_tampering(self._run_dir, sentence)
            self._say_tampered(sentence)

    def _say_tampered(self, sentence: str) -> None:
        if sentence not in self.tampered and len(self.tampered) < MOST_TAMPERED:
            self.tampered.append(sentence)
            self.event(Notice(level=NoticeLevel.WARNING, text=sentence))

    def sentence(self, sentence: Sentence) -> None:
        """Set the model's current text; the rest of it is read when it is written."""
        self._sentence = sentence
        self.activity.update(ActivityRecord(self.seq, sentence.tail))

    def touch(self, now: float) -> None:
        """Write frequently changing files that are due, and check the records."""
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self.look()
        if self.activity.touch(now) and self._sentence.length:
            self._writing.write(self.seq, self._sentence)

    def transcript(self, text: str, *, is_agent_text: bool = False) -> None:
        """Write lines for a person; `is_agent_text`: they are the agent's message."""
        piece = text.encode("utf-8", "replace") + b"\n"
        self._show(piece)
        if self._is_ending:
            self._transcript.append_end(piece)
            return
        self._transcript.append(piece)
        if is_agent_text and self._transcript.is_full:
            self._cut_piece = piece

    def _numbered(self, event: Event) -> Event:
        self.seq += 1
        now = paths.now_iso()
        if isinstance(event, RunStarted | TakenOver):
            self.started_at = self.started_at or now
        return msgspec.structs.replace(event, seq=self.seq, ts=now)

    def _append_event(self, event: Event) -> None:
        line = encode_event(event)
        if isinstance(event, _KEPT):
            self._events.keep(line)
        if self._is_ending or isinstance(event, _VITAL):
            self._events.append_end(line)
            return
        was_full = self._events.is_full
        self._events.append(line)
        if not self._events.is_full:
            return
        if not was_full:
            self._events.append_end(encode_event(self._numbered(Notice(level=NoticeLevel.WARNING, text=_CUT))))
        if isinstance(event, AssistantText):
            self._cut_text = event

    def _begin_end(self) -> None:
        """Write the last text if a cap left it out; from now on caps do not apply."""
        self._is_ending = True
        if self._cut_text is not None:
            self._append_event(self._numbered(self._cut_text))
        self._transcript.append_end(self._cut_piece)

    def note_trouble(self, name: str, error: OSError) -> None:
        """Note why a file could not be written; the first reason for each counts."""
        self._troubles.setdefault(name, f"{name}: {error.strerror or error}")

    @property
    def troubles(self) -> tuple[str, ...]:
        return tuple(self._troubles.values())

    def settle(self) -> None:
        """Retry refused writes for the last time, before the result needs the space."""
        for file in self._files:
            file.settle()

    def close(self) -> None:
        for file in self._files:
            file.close()

    def remove_transient(self) -> None:
        """Remove the progress files: the final records have their content."""
        self._writing.remove()
        self.activity.remove()


def header(meta: RunMeta) -> str:
    """Return the run's overview, line by line, and the task."""
    facts = {
        "Run": meta.run_id,
        "Preset": f"{meta.preset} ({meta.preset_source})" if meta.preset else "one-off",
        "Model": meta.resolved_model or "the agent's own default",
        "Directory": meta.cwd,
        **({"Worktree": meta.worktree.words} if meta.worktree else {}),
        "Tools": _offered(meta.tools),
        "Started by": f"{meta.launched_by.kind}, session {meta.launched_by.session}",
    }
    lines = [f"{name + ':':<12}{one_line(value, 300)}" for name, value in facts.items()]
    return "\n".join([*lines, "", *plain(meta.task).splitlines()[:40], ""])


def _offered(tools: Tools) -> str:
    if tools.resolved is None:
        return "the agent's own set" + (f", but {', '.join(tools.excluded)}" if tools.excluded else "")
    return ", ".join(tools.resolved) or "none"


def pane(terminal: int = 1) -> Callable[[bytes], None]:
    """Return a function that shows transcript in the tmux pane; without a pane it does nothing.

    A blocked pane (ctrl-S) is skipped until it accepts output: the agent does not wait for it.
    """
    if not os.isatty(terminal):
        return lambda piece: None
    os.set_blocking(terminal, False)
    poller = select.poll()
    poller.register(terminal, select.POLLOUT)
    patience = PANE_PATIENCE

    def show(piece: bytes) -> None:
        nonlocal patience
        rest = memoryview(piece)
        try:
            while rest:
                if not poller.poll(patience):
                    patience = 0
                    return
                rest = rest[os.write(terminal, rest) :]
            patience = PANE_PATIENCE
        except OSError:
            return  # the pane is gone; the files are still written

    return show
