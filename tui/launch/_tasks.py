"""Tasks that are not typed: from earlier ones, found by their words, or from a file."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ...core.errors import UsageError
from ...core.text.plain import one_line, plain
from ..dialogs.data_screen import DataScreen
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..text.cells import fit
from ..text.format import short_path

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ._memory import UnsentTask


class EarlierTask(Struct, frozen=True):
    task: str
    """As put into the field."""
    preset: str
    """Empty for a one-off run."""
    at: str
    """When it was launched, or typed."""
    launched: bool = True

    @property
    def line(self) -> str:
        """The first line, and the number of further lines."""
        text = self.task.strip()
        more = text.count("\n")
        first = one_line(text.partition("\n")[0], 200)
        return f"{first} (+{more} {'line' if more == 1 else 'lines'})" if more else first


def earlier_tasks(runs: Iterable[RunSnapshot], unsent: Sequence[UnsentTask], preset: str) -> tuple[EarlierTask, ...]:
    """Return each task once: the preset's tasks first, then the others, each newest first."""
    tasks = [EarlierTask(plain(run.meta.task), run.meta.preset, run.meta.created_at) for run in runs]
    tasks += [EarlierTask(typed.task, typed.preset, typed.at, launched=False) for typed in unsent]
    tasks.sort(key=lambda earlier: earlier.at, reverse=True)
    tasks.sort(key=lambda earlier: earlier.preset != preset)
    return tuple({earlier.task: earlier for earlier in reversed(tasks)}.values())[::-1]


def matching(tasks: Sequence[EarlierTask], words: str, limit: int) -> list[EarlierTask]:
    """Return the first tasks, at most `limit`, that match all words in their text or preset."""
    terms = words.lower().split()

    def matches(task: EarlierTask) -> bool:
        text = f"{task.preset} {task.task}".lower()
        return all(word in text for word in terms)

    return list(islice(filter(matches, tasks), limit))


LISTED = 200
"""Tasks listed at once; more words find the others."""
PRESET_WIDTH = 16
DAY_WIDTH = 10


class EarlierTasksScreen(DataScreen[Sequence[EarlierTask], str]):
    """Returns a task, or None. The cursor moves while words are typed."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    BINDINGS = bindings(KeyContext.PICK)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high")]  # noqa: RUF012 - Textual declares it as it is

    def __init__(self, load: Callable[[], Awaitable[Sequence[EarlierTask]]]) -> None:
        super().__init__(load)
        self._tasks: Sequence[EarlierTask] = ()
        self._listed: list[EarlierTask] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="earlier") as dialog:
            dialog.border_title = "Earlier tasks"
            dialog.border_subtitle = "⏎ select   esc cancel"
            yield SearchWords(placeholder="type to search", compact=True, id="words")
            yield OptionList(markup=False, compact=True)
            yield Static("", id="shown", classes="muted")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one("#words").focus()

    async def fill(self, data: Sequence[EarlierTask]) -> None:
        self._tasks = data
        self.call_after_refresh(self.show_matching)  # the width is known by then

    @on(Input.Changed)
    def show_matching(self) -> None:
        options = self.query_one(OptionList)
        self._listed = matching(self._tasks, self.query_one("#words", Input).value, LISTED)
        options.set_options(Option(self._line(task)) for task in self._listed)
        options.highlighted = 0 if self._listed else None
        self.query_one("#shown", Static).update(Content(self._count()))

    def _line(self, task: EarlierTask) -> Content:
        width = max(20, self.query_one("#earlier").content_size.width - 2)
        day = task.at[:10] if task.launched else "draft"
        right = f"{fit(one_line(task.preset, PRESET_WIDTH) or 'one-off', PRESET_WIDTH)} {fit(day, DAY_WIDTH)}"
        left = fit(task.line, width - PRESET_WIDTH - DAY_WIDTH - 3)
        return Content.assemble(left, "  ", (right, "$text-muted"))

    def _count(self) -> str:
        if not self._tasks:
            return "No earlier tasks in this project."
        if len(self._listed) == LISTED:
            return f"first {LISTED}, type to find others"
        return f"{len(self._listed)} of {len(self._tasks)}"

    def action_move(self, where: str) -> None:
        getattr(self.query_one(OptionList), f"action_{where}")()

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def take(self) -> None:
        row = self.query_one(OptionList).highlighted
        if row is not None:
            self.dismiss(self._listed[row].task)

    def action_cancel(self) -> None:
        self.dismiss(None)


class SearchWords(Input):
    """Keeps the focus; cursor keys move the list's cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "screen.move('cursor_down')", show=False),
        Binding("up", "screen.move('cursor_up')", show=False),
        Binding("pagedown", "screen.move('page_down')", show=False),
        Binding("pageup", "screen.move('page_up')", show=False),
    ]


# --- a task from a file ----------------------------------------------------------------------------------------------

LIMIT = 256 * 1024
"""Bytes; a larger text is material, which the agent should read itself."""
FILE_HINT = f"UTF-8 text, at most {LIMIT // 1024} KB. Tab completes, ↓ lists files."


def read_text(path: str) -> str:
    """Return the text of a file, safe for the screen. Raises UsageError."""
    shown = short_path(path, 60)
    if not os.path.lexists(path):
        raise UsageError(f"{shown} does not exist", hint="choose a file that exists")
    if os.path.isdir(path):
        raise UsageError(f"{shown} is a directory", hint="choose a file in it")
    if not os.path.isfile(path):
        raise UsageError(f"{shown} is not a regular file", hint="choose a text file")
    try:
        with open(path, "rb") as file:
            content = file.read(LIMIT + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        what = f"cannot read {shown}: {one_line(error.strerror or '')}"
        raise UsageError(what, hint="check its permissions") from error
    if len(content) > LIMIT:
        hint = "mention the file in the task instead, so that the agent reads it"
        raise UsageError(f"{shown} is too large: {size // 1024} KB, the limit is {LIMIT // 1024} KB", hint=hint)
    try:
        return plain(content.decode("utf-8-sig")).rstrip("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown} is not UTF-8 text (line {line})", hint="save it as UTF-8 first") from error
