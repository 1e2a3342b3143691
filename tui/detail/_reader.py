"""Read a tab of one run from its files; everything here runs in a thread, and starts no process."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from ...core import paths
from ...core.project.diagnosis import DiagnosisReader, explain
from ...core.run import artifacts
from ...core.run.changes import Changes
from ...core.run.describe import prompt_mode_words, size_text
from ...core.run.events import EventTail
from ...core.run.fold import UsageReader
from ...core.run.snapshot import RunSnapshot
from ...core.system.directory import opened
from ...core.system.files import open_regular
from ...core.text.plain import plain
from ._changed import changed_rows
from ._facts import facts_rows, usage_rows
from .page import FileRow, Page, Row, Tab, heading, joined, markdown_rows, note, plain_text, text_rows

EVENT_LIMIT = 1000
"""Characters shown of an event."""
FILE_LIMIT = 256 * 1024
"""Bytes shown of a file; the pager shows the whole file."""
MOST_PROMPTS = 99


PIECE_BYTES = 8 * 1024 * 1024
"""Bytes of events read at a time, to count the unreadable lines."""


class DetailReader:
    """Reads one run, a tab at a time; does not reread the known part of a growing file."""

    def __init__(
        self,
        project: paths.Project,
        run_id: str,
        changes: Callable[[RunSnapshot], Changes | None] = lambda run: run.changes,
        lease: float = 0.0,
    ) -> None:
        """Get a run's changes so far, or the known ones of a lost run, from `changes`.

        `lease` is the number of seconds that a run continues on an unreachable host, 0 for ever.
        """
        self._lease = lease
        self._changes = changes
        self._run_dir = project.run_dir(run_id)
        self._diagnosis = DiagnosisReader(project, run_id)
        self._usage = UsageReader(self._run_dir)
        self._events = EventTail(self._path(paths.EVENTS))
        self._answer: tuple[object, list[Row]] = (None, [])
        """The last answer's layout, after its text and width."""

    def read(self, run: RunSnapshot, tab: Tab, width: int) -> tuple[str, Page]:
        """Return why the run is not done, or its result, in one line, and the tab's page."""
        now = datetime.now(UTC)
        why = explain(run, self._diagnosis.read(run), now)
        match tab:
            case Tab.TRANSCRIPT:
                page = self._tail(paths.TRANSCRIPT, width, "No transcript yet.")
            case Tab.ANSWER:
                page = self._answer_page(run, width)
            case Tab.PROMPT:
                page = self._prompt_page(run, width)
            case Tab.FACTS:
                page = self._facts_page(run, now, width)
            case Tab.USAGE:
                page = self._usage_page(width)
            case Tab.FILES:
                page = Page(files=list_files(self._run_dir))
            case Tab.EVENTS:
                page = self._tail(paths.EVENTS, width, "No events yet.")
            case Tab.CHANGES:
                page = self._changes_page(run, width)
        return why, page

    def _answer_page(self, run: RunSnapshot, width: int) -> Page:
        if not run.has_ended:
            text = plain(run.sentence).strip() or self._diagnosis.text
            head = note("Not finished yet. Latest text:" if text else "No text yet.")
            return Page([head, (), *self._laid_out(text, width)] if text else [head], follows=True, copy=text)
        result = artifacts.read_result(self._run_dir)
        text = (result and result.final_text) or ""
        error = (result and result.error_message) or ""
        rows: list[list[Row]] = []
        if error:
            rows.append(text_rows(f"✗ {plain(error)}", width, "error"))
        if text and result and result.partial:
            rows.append([note("Incomplete text:")])
        elif text and error:
            rows.append([note("Last text before the error:")])
        rows.append(self._laid_out(text, width) if text else [note("No answer.")])
        return Page(joined(rows), copy=text)

    def _laid_out(self, text: str, width: int) -> list[Row]:
        if self._answer[0] != (text, width):
            self._answer = ((text, width), markdown_rows(text, width))
        return self._answer[1]

    def _prompt_page(self, run: RunSnapshot, width: int) -> Page:
        prompts: list[tuple[str, FilePart]] = []
        for name in map(paths.prompt_name, range(1, MOST_PROMPTS + 1)):
            if (part := read_part(self._path(name))) is None:
                break
            prompts.append((name, part))
        blocks = [
            [heading("Prompt", f"{name}, {size_text(part.size)}"), *_shown(part, width)] for name, part in prompts
        ]
        if not prompts:
            blocks.append([heading("Task", f"{paths.PROMPT} is missing"), *text_rows(run.meta.task, width)])
        system = read_part(self._path(paths.SYSTEM_PROMPT))
        if system is None:
            blocks.append([heading("System prompt"), note("Agent default. The preset adds nothing.")])
        else:
            mode = prompt_mode_words(run.meta.prompt_mode)
            title = heading("System prompt", f"{mode}, {size_text(system.size)}")
            blocks.append([title, *_shown(system, width)])
        copy = prompts[0][1].text if prompts else run.meta.task
        return Page(joined(blocks), copy=copy, path=self._path(paths.PROMPT) if prompts else "")

    def _facts_page(self, run: RunSnapshot, now: datetime, width: int) -> Page:
        meta = artifacts.read_meta(self._run_dir) or run.meta
        result = artifacts.read_result(self._run_dir) if run.has_ended else None
        before = self._events.offset
        self._events.read(PIECE_BYTES)
        more = self._events.offset - before >= PIECE_BYTES
        runner = artifacts.read_runner(self._run_dir)
        unreadable, changes = self._events.unreadable, self._changes(run)
        rows = facts_rows(run, meta, result, runner, now, width, unreadable, changes, self._lease)
        return Page(rows, copy=plain_text(rows), more=more)

    def _usage_page(self, width: int) -> Page:
        usage = self._usage
        if usage.read():
            return Page([note(f"reading… {usage.progress:.0%} of the events")], more=True)
        rows = usage_rows(usage.newest, usage.total, usage.messages, width)
        return Page(rows, copy=plain_text(rows))

    def _changes_page(self, run: RunSnapshot, width: int) -> Page:
        result = artifacts.read_result(self._run_dir) if run.has_ended else None
        rows = changed_rows(run, self._changes(run), result.check if result else None, width)
        return Page(rows, copy=plain_text(rows))

    def _tail(self, name: str, width: int, nothing: str) -> Page:
        path = self._path(name)
        part = read_part(path, from_end=True)
        if part is None or not part.text:
            return Page([note(nothing)], path=path if part else "")
        text = part.text
        if name == paths.EVENTS:
            text = "\n".join(line[:EVENT_LIMIT] for line in text.split("\n"))
        rows = text_rows(text, width)
        if part.is_cut:
            rows.insert(0, note(f"… last part of {size_text(part.size)}"))
        return Page(rows, follows=True, copy=plain_text(rows), path=path)

    def _path(self, name: str) -> str:
        return os.path.join(self._run_dir, name)


def list_files(run_dir: str) -> tuple[FileRow, ...]:
    try:
        with opened(run_dir) as directory:
            found = [
                FileRow(name, os.path.join(run_dir, name), status.st_size, status.st_mtime)
                for name, status in directory.entries()
                if not name.startswith(".") and not name.endswith(".tmp") and stat.S_ISREG(status.st_mode)
            ]
    except OSError:
        return ()
    return tuple(sorted(found, key=lambda row: row.name))


class FilePart(Struct, frozen=True):
    text: str
    size: int
    """Bytes of the whole file."""
    is_cut: bool
    """Whether only a part was read."""


def read_part(path: str, *, from_end: bool = False) -> FilePart | None:
    """Read the first `FILE_LIMIT` bytes of a file, or the last, starting at a line; None if it cannot be read."""
    try:
        descriptor, status = open_regular(path)
        with open(descriptor, "rb") as file:
            start = file.seek(max(0, status.st_size - FILE_LIMIT)) if from_end else 0
            content = file.read(FILE_LIMIT)
    except OSError:
        return None
    if start:
        content = content.partition(b"\n")[2] or content
    return FilePart(content.decode("utf-8", "replace"), status.st_size, start > 0 or len(content) < status.st_size)


def _shown(part: FilePart, width: int) -> list[Row]:
    rows = text_rows(part.text, width)
    return [*rows, note(f"… truncated, the whole file is {size_text(part.size)}")] if part.is_cut else rows
