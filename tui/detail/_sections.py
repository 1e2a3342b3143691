"""Read the sections of one run's overview: a summary of each, and the content of the unfolded ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import takewhile

from ...core import paths
from ...core.run.describe import prompt_mode_words, size_text, unreadable_lines
from ...core.run.events import EventTail
from ...core.run.fold import UsageReader
from ...core.run.model import Usage
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ..text.cells import fit
from ._files import RunFile, first_rows, last_rows, list_files, read_part
from ._usage import usage_rows, usage_words
from .page import INDENT, Block, Row, Section, heading, note, plain_text, text_rows

EVENT_LIMIT = 1000
"""Characters shown of an event."""
PIECE_BYTES = 8 * 1024 * 1024
"""Bytes of events read at a time, to count the unreadable lines."""
SHORT_BYTES, SHORT_ROWS = 1000, 10
"""Maximum size of a section that begins unfolded; the events never do."""
SHORT_EVENTS = 256 * 1024
"""Maximum number of bytes read for a usage table that begins unfolded."""
MOST_PROMPTS = 99
TITLE = 6
"""Cells of a section's name."""
SIZE_CELLS, TIME_CELLS = 10, 21
"""Columns of the list of files."""


class SectionReader:
    """Lays out content again only if it has changed, and does not reread the known part of a growing file."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._files: dict[str, RunFile] = {}
        """By name, as of the last read."""
        self._usage = UsageReader(run_dir)
        self._events = EventTail(os.path.join(run_dir, paths.EVENTS))
        self._begins_unfolded: frozenset[Section] | None = None
        """The sections that were short at the first read: none folds or unfolds because it grows."""
        self._kept: dict[Section, tuple[object, Sequence[Block]]] = {}
        """The last content of each section, and the state of the files that it was laid out for."""
        self._is_behind = False
        """Whether there is more to be read."""

    def read(
        self, run: RunSnapshot, usage: Usage, folds: Mapping[Section, bool], width: int
    ) -> tuple[list[Block], bool]:
        """Return the blocks of all sections, and whether there is more to be read.

        `folds` are your choices: whether a section is unfolded.
        """
        self._files = {file.name: file for file in list_files(self._run_dir)}
        self._is_behind = False
        if self._begins_unfolded is None:
            self._begins_unfolded = frozenset(self._short_sections(run, usage))
        contents: dict[Section, Callable[[], Sequence[Block]]] = {
            Section.PROMPT: lambda: self._prompt(run, width - INDENT),
            Section.USAGE: lambda: self._usage_table(width - INDENT),
            Section.FILES: lambda: [*self._file_list(width - INDENT)],
            Section.EVENTS: lambda: self._last_events(width - INDENT),
        }
        blocks: list[Block] = []
        for section, content in contents.items():
            is_unfolded = folds.get(section, section in self._begins_unfolded)
            inside = content() if is_unfolded else ()
            title = f"{'▾' if is_unfolded else '▸'} {section.capitalize():{TITLE}}"
            head = heading(title, self._summary(section, run, usage, is_unfolded=is_unfolded))
            what, text = (inside[0].what, inside[0].copy) if inside else ("", "")
            blocks += [Block(section, [head], section, is_unfolded, what=what, copy=text), *inside]
        return blocks, self._is_behind

    def _size(self, name: str) -> int:
        file = self._files.get(name)
        return file.size if file else 0

    @property
    def _prompts(self) -> list[RunFile]:
        """The prompts of the attempts."""
        names = map(paths.prompt_name, range(1, MOST_PROMPTS + 1))
        return [self._files[name] for name in takewhile(self._files.__contains__, names)]

    def _short_sections(self, run: RunSnapshot, usage: Usage) -> Iterator[Section]:
        prompt = sum(file.size for file in self._prompts)
        if 0 < prompt and prompt + self._size(paths.SYSTEM_PROMPT) <= SHORT_BYTES:
            yield Section.PROMPT
        if run.has_ended and 0 < usage.turns <= SHORT_ROWS and self._size(paths.EVENTS) <= SHORT_EVENTS:
            yield Section.USAGE
        if 0 < len(self._files) <= SHORT_ROWS:
            yield Section.FILES

    def _summary(self, section: Section, run: RunSnapshot, usage: Usage, *, is_unfolded: bool) -> str:
        match section:
            case Section.PROMPT:
                prompts = [f"{file.name} {size_text(file.size)}" for file in self._prompts]
                return ", ".join(prompts) or f"{paths.PROMPT} is missing"
            case Section.USAGE:
                return usage_words(usage)
            case Section.FILES:
                count = "1 file" if len(self._files) == 1 else f"{len(self._files):,} files"
                return f"{count}, {size_text(sum(file.size for file in self._files.values()))}"
            case Section.EVENTS:
                count = f"{run.last_seq:,} events" if run.last_seq else ""
                unreadable = unreadable_lines(self._events.unreadable) if is_unfolded else ""
                return ", ".join(filter(None, (count, size_text(self._size(paths.EVENTS)), unreadable)))

    # --- contents ----------------------------------------------------------------------------------------------------

    def _once(self, section: Section, state: object, lay_out: Callable[[], Sequence[Block]]) -> Sequence[Block]:
        """Return the content of a section, laid out only if `state` is not that of the last time."""
        kept = self._kept.get(section)
        if kept is None or kept[0] != state:
            kept = self._kept[section] = (state, lay_out())
        return kept[1]

    def _prompt(self, run: RunSnapshot, width: int) -> Sequence[Block]:
        state = (*self._prompts, self._files.get(paths.SYSTEM_PROMPT), width)
        return self._once(Section.PROMPT, state, lambda: [*self._prompt_texts(run, width)])

    def _prompt_texts(self, run: RunSnapshot, width: int) -> Iterator[Block]:
        for file in self._prompts:
            if part := read_part(file.path):
                rows = [heading(file.name, size_text(part.size)), *first_rows(part, width), ()]
                yield _content(Section.PROMPT, file.name, rows, "the prompt", part.text, file.path)
        if not self._prompts:
            rows = [heading("Task", f"{paths.PROMPT} is missing"), *text_rows(run.meta.task, width), ()]
            yield _content(Section.PROMPT, "task", rows, "the task", run.meta.task)
        file = self._files.get(paths.SYSTEM_PROMPT)
        if file and (system := read_part(file.path)):
            title = heading("System prompt", f"{prompt_mode_words(run.meta.prompt_mode)}, {size_text(system.size)}")
            rows = [title, *first_rows(system, width)]
            yield _content(Section.PROMPT, paths.SYSTEM_PROMPT, rows, "the system prompt", system.text, file.path)
        else:
            rows = [heading("System prompt"), note("Agent default. The preset adds nothing.")]
            yield _content(Section.PROMPT, paths.SYSTEM_PROMPT, rows)

    def _usage_table(self, width: int) -> Sequence[Block]:
        usage = self._usage
        if usage.read():
            self._is_behind = True
            rows = [note(f"reading… {usage.progress:.0%} of the events")]
            return [_content(Section.USAGE, "table", rows, "the usage")]

        def lay_out() -> Sequence[Block]:
            rows = usage_rows(usage.newest, usage.total, usage.messages, width)
            return [_content(Section.USAGE, "table", rows, "the usage", plain_text(rows))]

        return self._once(Section.USAGE, (usage.messages, usage.total, width), lay_out)

    def _file_list(self, width: int) -> Iterator[Block]:
        for file in self._files.values():
            name = fit(one_line(file.name, 500), max(8, width - SIZE_CELLS - TIME_CELLS))
            size = fit(size_text(file.size), SIZE_CELLS, right=True)
            time = f"{datetime.fromtimestamp(file.modified):%Y-%m-%d %H:%M:%S}"
            row = ((name + size, ""), (fit(time, TIME_CELLS, right=True), "muted"))
            yield _content(Section.FILES, file.name, [row], path=file.path)
        if not self._files:
            yield _content(Section.FILES, "", [note("No files.")])

    def _last_events(self, width: int) -> Sequence[Block]:
        before = self._events.offset
        self._events.read(PIECE_BYTES)
        self._is_behind |= self._events.offset - before >= PIECE_BYTES
        path = os.path.join(self._run_dir, paths.EVENTS)

        def lay_out() -> Sequence[Block]:
            part = read_part(path, from_end=True)
            if part is None or not part.text:
                return [_content(Section.EVENTS, "tail", [note("No events yet.")], path=path if part else "")]
            rows = last_rows(part, width, EVENT_LIMIT)
            return [_content(Section.EVENTS, "tail", rows, "the events", plain_text(rows), path, follows=True)]

        return self._once(Section.EVENTS, (self._files.get(paths.EVENTS), width), lay_out)


def _content(
    section: Section,
    name: str,
    rows: Sequence[Row],
    what: str = "",
    text: str = "",
    path: str = "",
    *,
    follows: bool = False,
) -> Block:
    """Return rows of an unfolded section; `name` identifies them in it."""
    return Block(f"{section}/{name}", rows, section, follows=follows, what=what, copy=text, path=path)
