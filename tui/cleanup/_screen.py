"""The dialog that deletes old runs by rules: it shows which runs and how much space, and asks first."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from msgspec import structs
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from ...core import paths
from ...core.config.settings import Retention
from ...core.errors import UsageError
from ...core.project.trash import DAY, KEPT, Selection, Stock, Stored, choose
from ...core.run import artifacts
from ...core.run.describe import discarded_words, runs_word, size_text
from ...core.text.plain import one_line
from ...core.work.deletion import read_stock
from ..dialogs.ask import ConfirmScreen
from ..feed.bridge import Bridge
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.after_close import is_open
from ..terminal.textual_internals import DialogScreen
from ..widgets.form import Choice, Field, Note

TRASH, PURGE = "move to trash", "delete permanently"
FIELDS = {
    "days": ("Older than", "days", "a number of days"),
    "keep": ("Keep", "newest runs", "a whole number of runs"),
    "max_mb": ("At most", "MB in total (oldest deleted first)", "a number of megabytes"),
}
"""By rule: the texts before and after its field, and the expected value."""

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class CleanUp:
    """The confirmed clean-up."""

    run_ids: tuple[str, ...]
    purge: bool


class CleanUpScreen(DialogScreen[CleanUp | None]):
    """Returns the runs to delete, or None."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "cleanup.tcss"]
    BINDINGS = bindings(KeyContext.CLEAN_UP)

    def __init__(
        self,
        bridge: Bridge,
        rule: Retention,
        *,
        needed: Collection[str],
        unread: Collection[str],
        keys: str,
        undo_key: str,
    ) -> None:
        """`rule` fills the fields at first; runs in `needed` are never deleted; the results of `unread` runs were
        notified but not read.
        """
        super().__init__()
        self._bridge = bridge
        self._rule = rule
        self._needed = needed
        self._unread = frozenset(unread)
        self._keys = keys
        self._undo_key = undo_key
        self._stock: Stock | None = None
        self._selection: Selection | None = None
        """The runs that match the rules; None until known."""
        self._asking = False

    def compose(self) -> ComposeResult:
        values = written(self._rule)
        with Vertical(classes="dialog", id="clean-up") as dialog:
            dialog.border_title = "Clean up old runs"
            for name, (label, unit, _) in FIELDS.items():
                field = Input(values[name], id=name, compact=True, max_length=12)
                yield Field(label, field, Static(unit, classes="unit muted"))
            yield Field("Action", Choice((TRASH, PURGE), TRASH, name="how"))
            yield Note("Reading the runs…", name="now")
            yield Note(name="taken")
            yield Note(name="ends", classes="muted")
            yield Note(name="spared", classes="muted")
            yield Note(name="room")
            yield Note(name="problems")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Cancel", id="no", compact=True)
                yield Button("Clean up", id="go", variant="error", compact=True)

    def on_mount(self) -> None:
        self.query_one("#days", Input).focus()
        self._bridge.spawn(self._look)

    async def _look(self) -> None:
        stock = await self._bridge.call(read_stock, self._bridge.engine.project)
        if is_open(self):
            self._stock = structs.replace(stock, unreported=stock.unreported | self._unread)
            self.show_what_goes()

    @on(Input.Changed)
    @on(Choice.Changed)
    def show_what_goes(self) -> None:
        rule, problems = None, ""
        try:
            rule = read_rule({name: self.query_one(f"#{name}", Input).value for name in FIELDS})
        except UsageError as error:
            problems = error.what
        self._say("problems", problems)
        stock = self._stock
        if stock is None:
            return
        now = time.time()
        selection = self._selection = choose(stock, rule, now, self._needed) if rule else None
        self._say("now", now_line(stock))
        self._say("taken", taken_line(selection) if selection else "")
        self._say("spared", spared_line(selection) if selection else "")
        self._say("room", room_line(stock, selection, now, purge=self._purge) if selection else "")
        if selection and selection.going:
            self._bridge.spawn(self._name_ends, selection)
        else:
            self._say("ends", "")

    async def _name_ends(self, selection: Selection) -> None:
        first, last = selection.going[0], selection.going[-1]
        project = self._bridge.engine.project
        text = await self._bridge.call(_named, project, (first,) if first is last else (first, last))
        if is_open(self) and self._selection is selection:
            self._say("ends", text)

    @property
    def _purge(self) -> bool:
        return self.query_one("#how", Choice).value == PURGE

    @on(Input.Submitted)
    def go_on(self) -> None:
        self.focus_next()

    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        selection = self._selection
        if self._asking or selection is None:
            return
        if not selection.going:
            self._say("problems", "Nothing to delete. Enter a number in one of the fields.")
            return
        self._asking = True
        self._bridge.spawn(self._confirm, selection, self._purge)

    async def _confirm(self, selection: Selection, purge: bool) -> None:
        detail = loss_text(selection, purge=purge, undo_key=self._undo_key)
        question = "Delete these runs permanently?" if purge else "Move these runs to the trash?"
        try:
            asked = ConfirmScreen(question, detail, "Delete" if purge else "Move to trash")
            agreed = await self.app.push_screen_wait(asked)
        finally:
            self._asking = False
        if agreed:
            self.dismiss(CleanUp(selection.run_ids, purge))

    @on(Button.Pressed, "#no")
    def action_cancel(self) -> None:
        self.dismiss(None)

    def _say(self, name: str, text: str) -> None:
        self.query_one(f"#{name}", Note).say(text)


def _named(project: paths.Project, runs: tuple[Stored, ...]) -> str:
    """Describe the oldest and the newest of the runs to delete. Reads their meta."""
    lines: list[str] = []
    for word, run in zip(("oldest", "newest"), runs, strict=False):
        meta = artifacts.read_meta(project.run_dir(run.run_id))
        title = one_line(f"{meta.title}: {meta.task}", 200) if meta else "(unreadable meta.json)"
        ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended or 0.0))
        lines.append(f"{word}: {ended} {run.run_id[-6:]} {title}")
    return "\n".join(lines)


# --- the fields, and the texts ----------------------------------------------------------------------------------------


def written(rule: Retention) -> dict[str, str]:
    """Return the rules of the settings as typed text."""
    values = {name: getattr(rule, name) for name in FIELDS}
    return {name: "" if value is None else f"{value:.15g}" for name, value in values.items()}


def read_rule(fields: dict[str, str]) -> Retention:
    """Parse the fields as rules; empty fields are unset. Raises UsageError, which names every wrong field."""
    problems: list[str] = []

    def read(name: str, kind: Callable[[str], T]) -> T | None:
        text = fields[name].strip().replace(",", "")
        if not text:
            return None
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not 0 <= value < 1e9:
            label, _, expected = FIELDS[name]
            problems.append(f'{label}: enter {expected} or leave it empty (got "{one_line(fields[name], 20)}")')
            return None
        return value

    rule = Retention(read("days", float), read("keep", int), read("max_mb", float))
    if problems:
        raise UsageError("\n".join(problems))
    return rule


def now_line(stock: Stock) -> str:
    trash = f"{runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    line = f"Now: {runs_word(len(stock.runs))}, {size_text(stock.size)}. Trash: {trash}."
    if stock.worktrees:
        count = "1 worktree" if stock.worktrees == 1 else f"{stock.worktrees} worktrees"
        line = f"{line} Including {count}, {size_text(stock.worktrees_size)}."
    discarded = discarded_words(stock.discarded, stock.discarded_size)
    return f"{line} Also {discarded}." if discarded else line


def taken_line(selection: Selection) -> str:
    if not selection.going:
        return "No runs match."
    return f"Would delete {runs_word(len(selection.going))}, {size_text(selection.size)}:"


def spared_line(selection: Selection) -> str:
    """Return how many old runs are kept and why, and how many unread ones are deleted."""
    parts: list[str] = []
    if selection.unfinished:
        parts.append(f"Kept: {runs_word(selection.unfinished)} not finished.")
    if selection.foreign:
        parts.append(f"Kept: {runs_word(selection.foreign)} untrusted.")
    if selection.unmerged:
        parts.append(f"Kept: {runs_word(selection.unmerged)} with unmerged work.")
    if selection.needed:
        parts.append(f"Kept: {runs_word(selection.needed)} selected or in need of you.")
    if selection.unreported:
        parts.append(f"! You have not read the results of {runs_word(selection.unreported)} to be deleted.")
    return " ".join(parts)


def room_line(stock: Stock, selection: Selection, now: float, *, purge: bool) -> str:
    if not selection.going:
        return ""
    room = size_text(selection.size)
    if purge:
        return f"Frees {room} immediately. These runs cannot be restored."
    hours = round(KEPT / 3600)
    line = f"Frees {room} in {hours} h, when the trash is emptied. Until then you can restore them."
    if not stock.trash:
        return line
    oldest = min(run.ended or now for run in stock.trash)
    seconds = max(0.0, oldest + KEPT - now)
    when = f"in {round(seconds / 3600)} h" if seconds >= 3600 else "within an hour"
    return f"{line} The trash holds {size_text(stock.trash_size)}; the oldest runs in it are removed {when}."


def loss_text(selection: Selection, *, purge: bool, undo_key: str) -> str:
    """Describe the loss, for the question."""
    lines = [
        f"{runs_word(len(selection.going))} with transcripts, answers, logs and agent sessions, "
        f"{size_text(selection.size)}."
    ]
    if selection.unreported:
        lines.append(f"You have not read the results of {runs_word(selection.unreported)}.")
    if purge:
        lines.append("They are deleted permanently and cannot be restored.")
    else:
        lines.append(f"They stay in the trash for {round(KEPT / DAY * 24)} h. {undo_key} restores all of them.")
    return "\n\n".join(lines)
