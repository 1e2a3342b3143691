"""Read what a tab shows of one run; everything here happens in a thread, and nothing is started by it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from ...core import paths
from ...core.project.diagnosis import DiagnosisReader, why
from ...core.run import artifacts
from ...core.run.describe import size_text
from ...core.run.model import RunSnapshot
from ...core.run.usage import UsageReader
from ...core.text.plain import plain
from .facts import facts_rows
from .file_parts import FilePart, beginning, end, listed
from .markdown import markdown_rows
from .page import Page, Row, Tab, heading, joined, plain_text, text_rows
from .usage import usage_rows

EVENT = 1000
"""Characters of a line of events that are shown."""


@dataclass(frozen=True, slots=True)
class Look:
    """A tab as of one look."""

    tab: Tab
    why: str
    page: Page


class DetailReader:
    """Looks at one run, a tab at a time; what was read of a growing file is not read again."""

    def __init__(self, project: paths.Project, run_id: str) -> None:
        self._run_dir = project.run_dir(run_id)
        self._signs = DiagnosisReader(project, run_id)
        self._usage = UsageReader(self._run_dir)
        self._answer: tuple[object, list[Row]] = (None, [])
        """The last answer laid out, and what it was made of."""

    def look(self, run: RunSnapshot, tab: Tab, width: int) -> Look:
        now = datetime.now(UTC)
        line = why(run, self._signs.read(run), now)
        match tab:
            case Tab.TRANSCRIPT:
                page = self._tail(paths.TRANSCRIPT, width, "Nothing is written yet.")
            case Tab.ANSWER:
                page = self._answer_page(run, width)
            case Tab.PROMPT:
                page = self._prompt_page(run, width)
            case Tab.FACTS:
                page = self._facts_page(run, now, width)
            case Tab.USAGE:
                page = self._usage_page(width)
            case Tab.FILES:
                page = Page(files=listed(self._run_dir))
            case Tab.EVENTS:
                page = self._tail(paths.EVENTS, width, "There are no events yet.")
        return Look(tab, line, page)

    def _answer_page(self, run: RunSnapshot, width: int) -> Page:
        if not run.is_terminal:
            text = plain(run.sentence).strip() or self._signs.text
            head: Row = (("so far: the run is not done", "muted"),)
            return Page([head, (), *self._laid_out(text, width)] if text else [head], follows=True, copy=text)
        result = artifacts.read_result(self._run_dir)
        text = (result and result.final_text) or ""
        error = (result and result.error_message) or ""
        rows: list[list[Row]] = []
        if error:
            rows.append(text_rows(f"✗ {plain(error)}", width, "error"))
        if text and error:
            rows.append([(("what it had found by then:", "muted"),)])
        rows.append(self._laid_out(text, width) if text else [(("There is no answer.", "muted"),)])
        return Page(joined(rows), copy=text)

    def _laid_out(self, text: str, width: int) -> list[Row]:
        if self._answer[0] != (text, width):
            self._answer = ((text, width), markdown_rows(text, width))
        return self._answer[1]

    def _prompt_page(self, run: RunSnapshot, width: int) -> Page:
        path = self._path(paths.PROMPT)
        prompts: dict[str, FilePart] = {}
        for attempt in range(1, 100):
            part = beginning(self._path(paths.prompt_name(attempt)))
            if part is None:
                break
            prompts[paths.prompt_name(attempt)] = part
        blocks: list[list[Row]] = [
            [heading("What the child read", f"{name}, {size_text(part.size)}"), *self._shown(part, width)]
            for name, part in prompts.items()
        ]
        if not prompts:
            blocks.append([heading("Task", f"{paths.PROMPT} is not there"), *text_rows(run.meta.task, width)])
        system = beginning(self._path(paths.SYSTEM_PROMPT))
        if system is None:
            blocks.append([heading("System prompt"), (("The agent's own: the preset adds none.", "muted"),)])
        else:
            mode = "instead of the agent's own" if run.meta.prompt_mode == "replace" else "after the agent's own"
            title = heading("System prompt", f"{mode}, {size_text(system.size)}")
            blocks.append([title, *self._shown(system, width)])
        copy = next(iter(prompts.values())).text if prompts else run.meta.task
        return Page(joined(blocks), copy=copy, path=path if prompts else "")

    def _facts_page(self, run: RunSnapshot, now: datetime, width: int) -> Page:
        meta = artifacts.read_meta(self._run_dir) or run.meta
        result = artifacts.read_result(self._run_dir) if run.is_terminal else None
        rows = facts_rows(run, meta, result, artifacts.read_runner(self._run_dir), now, width)
        return Page(rows, copy=plain_text(rows))

    def _usage_page(self, width: int) -> Page:
        more = self._usage.read()
        usage = self._usage
        progress = usage.progress if more else None
        rows = usage_rows(usage.turns, usage.total, usage.messages, progress, width)
        return Page(rows, copy=plain_text(rows), more=more)

    def _tail(self, name: str, width: int, nothing: str) -> Page:
        path = self._path(name)
        part = end(path)
        if part is None or not part.text:
            return Page([((nothing, "muted"),)], path=path if part else "")
        text = part.text
        if name == paths.EVENTS:
            text = "\n".join(line[:EVENT] for line in text.split("\n"))
        rows = text_rows(text, width)
        if part.cut:
            rows.insert(0, ((f"… the end of {size_text(part.size)}", "muted"),))
        return Page(rows, follows=True, copy=plain_text(rows), path=path)

    def _shown(self, part: FilePart, width: int) -> list[Row]:
        rows = text_rows(part.text, width)
        if part.cut:
            rows.append(((f"… cut here, of {size_text(part.size)}", "muted"),))
        return rows

    def _path(self, name: str) -> str:
        return os.path.join(self._run_dir, name)
