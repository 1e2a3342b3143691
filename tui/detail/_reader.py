"""Read a tab of one run from its files; everything here runs in a thread, and starts no process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from ...core import paths
from ...core.project.diagnosis import DiagnosisReader, explain
from ...core.run import artifacts
from ...core.run.changes import Changes
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import plain
from ._changed import changed_rows
from ._facts import facts_rows
from ._files import last_rows, read_part
from ._sections import SectionReader
from .page import Block, Page, Row, Section, Tab, joined, markdown_rows, note, plain_text, text_rows


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
        self._sections = SectionReader(self._run_dir)
        self._answer: tuple[object, list[Row]] = (None, [])
        """The last answer's layout, after its text and width."""

    def read(self, run: RunSnapshot, tab: Tab, width: int, folds: Mapping[Section, bool]) -> tuple[str, Page]:
        """Return why the run is not done, or its result, in one line, and the tab's page.

        `folds` are your choices in the overview: whether a section is unfolded.
        """
        now = datetime.now(UTC)
        why = explain(run, self._diagnosis.read(run), now)
        match tab:
            case Tab.TRANSCRIPT:
                page = self._transcript_page(width)
            case Tab.ANSWER:
                page = self._answer_page(run, width)
            case Tab.CHANGES:
                page = self._changes_page(run, width)
            case Tab.OVERVIEW:
                page = self._overview(run, now, width, folds)
        return why, page

    def _transcript_page(self, width: int) -> Page:
        path = os.path.join(self._run_dir, paths.TRANSCRIPT)
        part = read_part(path, from_end=True)
        if part is None or not part.text:
            return Page([note("No transcript yet.")], path=path if part else "")
        rows = last_rows(part, width)
        return Page(rows, follows=True, copy=plain_text(rows), path=path)

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

    def _overview(self, run: RunSnapshot, now: datetime, width: int, folds: Mapping[Section, bool]) -> Page:
        meta = artifacts.read_meta(self._run_dir) or run.meta
        result = artifacts.read_result(self._run_dir) if run.has_ended else None
        runner = artifacts.read_runner(self._run_dir)
        changes = self._changes(run)
        above, below = facts_rows(run, meta, result, runner, now, width, changes, self._lease)
        sections, more = self._sections.read(run, result.usage if result else run.usage, folds, width)
        text = plain_text([*above, (), *below])
        first = Block("first", [*above, ()], what="the overview", copy=text)
        last = Block("last", [(), *below], what="the overview", copy=text)
        return Page(blocks=(first, *sections, last), more=more)

    def _changes_page(self, run: RunSnapshot, width: int) -> Page:
        result = artifacts.read_result(self._run_dir) if run.has_ended else None
        rows = changed_rows(run, self._changes(run), result.check if result else None, width)
        return Page(rows, copy=plain_text(rows))
