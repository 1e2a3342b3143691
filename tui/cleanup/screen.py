"""The dialog that deletes old runs by rules: shows what would go and what that frees, and asks before it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from ...core import paths
from ...core.config.settings import Retention
from ...core.errors import UsageError
from ...core.project.retention import Selection, Stock, Stored, choose, read_stock
from ...core.run import artifacts
from ...core.text.plain import one_line, plain
from ..actions import KeyContext, bindings
from ..feed.bridge import Bridge
from ..widgets.choice import Choice
from .rules import FIELDS, loss_text, now_line, read_rule, room_line, spared_line, taken_line, written

TRASH, PURGE = "moved to the trash", "removed for good"
_WORDS = {
    "days": ("Older than", "days"),
    "keep": ("Keep", "newest runs"),
    "max_mb": ("At most", "MB in all (the oldest go first)"),
}

Ask = Callable[[str, str, str], Coroutine[None, None, bool]]
"""Asks a question, with its detail and the label of the yes button."""


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What the operator agreed to."""

    run_ids: tuple[str, ...]
    purge: bool


class CleanUpScreen(ModalScreen[CleanUp | None]):
    """Returns what is to be deleted, or None."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "cleanup.tcss"]
    BINDINGS = bindings(KeyContext.CLEAN_UP)

    def __init__(
        self,
        bridge: Bridge,
        rule: Retention,
        ask: Ask,
        *,
        needed: Collection[str],
        unread: Collection[str],
        keys: str,
        undo_key: str,
    ) -> None:
        """`rule` is what the fields begin with; `needed` are ids of runs that are never taken, `unread` of those whose
        end was told and not looked at.
        """
        super().__init__()
        self._bridge = bridge
        self._rule = rule
        self._needed = needed
        self._ask = ask
        self._unread = frozenset(unread)
        self._keys = keys
        self._undo_key = undo_key
        self._stock: Stock | None = None
        self._selection: Selection | None = None
        """What the rules take now; None as long as that is not known."""
        self._asking = False

    def compose(self) -> ComposeResult:
        values = written(self._rule)
        with Vertical(classes="dialog", id="clean-up") as dialog:
            dialog.border_title = "Clean up old runs"
            for name in FIELDS:
                label, unit = _WORDS[name]
                with Horizontal(classes="field"):
                    yield Static(label, classes="label")
                    yield Input(values[name], id=name, compact=True, max_length=12)
                    yield Static(unit, classes="unit muted")
            with Horizontal(classes="field"):
                yield Static("They are", classes="label")
                yield Choice((TRASH, PURGE), TRASH, name="how")
            yield Static("Reading the runs…", id="now")
            yield Static("", id="taken")
            yield Static("", id="ends", classes="muted")
            yield Static("", id="spared", classes="muted")
            yield Static("", id="room")
            yield Static("", id="problems")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Cancel", id="no", compact=True)
                yield Button("Clean up", id="go", variant="error", compact=True)

    def on_mount(self) -> None:
        self.query_one("#days", Input).focus()
        self._bridge.spawn(self._look)

    async def _look(self) -> None:
        stock = await self._bridge.call(read_stock, self._bridge.engine.project)
        if self.is_attached:
            self._stock = structs.replace(stock, untold=stock.untold | self._unread)
            self.show_what_goes()

    @on(Input.Changed)
    @on(Choice.Changed)
    def show_what_goes(self) -> None:
        rule, problems = None, ""
        try:
            rule = read_rule({name: self.query_one(f"#{name}", Input).value for name in FIELDS})
        except UsageError as error:
            problems = error.what
        _say(self.query_one("#problems", Static), problems)
        stock = self._stock
        if stock is None:
            return
        now = time.time()
        selection = self._selection = choose(stock, rule, now, self._needed) if rule else None
        _say(self.query_one("#now", Static), now_line(stock))
        _say(self.query_one("#taken", Static), taken_line(selection) if selection else "")
        _say(self.query_one("#spared", Static), spared_line(selection) if selection else "")
        room = room_line(stock, selection, now, purge=self._purge) if selection else ""
        _say(self.query_one("#room", Static), room)
        if selection and selection.going:
            self._bridge.spawn(self._name_ends, selection)
        else:
            _say(self.query_one("#ends", Static), "")

    async def _name_ends(self, selection: Selection) -> None:
        """Name the oldest and the newest run that would go."""
        first, last = selection.going[0], selection.going[-1]
        project = self._bridge.engine.project
        text = await self._bridge.call(_named, project, (first,) if first is last else (first, last))
        if self.is_attached and self._selection is selection:
            _say(self.query_one("#ends", Static), text)

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
            _say(self.query_one("#problems", Static), "Nothing to delete: enter a number in one of the fields.")
            return
        self._asking = True
        self._bridge.spawn(self._confirm, selection, self._purge)

    async def _confirm(self, selection: Selection, purge: bool) -> None:
        detail = loss_text(selection, purge=purge, undo_key=self._undo_key)
        question = "Remove these runs for good?" if purge else "Move these runs to the trash?"
        try:
            agreed = await self._ask(question, detail, "Remove" if purge else "Delete")
        finally:
            self._asking = False
        if agreed:
            self.dismiss(CleanUp(selection.run_ids, purge))

    @on(Button.Pressed, "#no")
    def action_cancel(self) -> None:
        self.dismiss(None)


def _named(project: paths.Project, runs: tuple[Stored, ...]) -> str:
    """Say which runs are the oldest and the newest of those that go. Reads their meta."""
    lines: list[str] = []
    for word, run in zip(("oldest", "newest"), runs, strict=False):
        meta = artifacts.read_meta(project.run_dir(run.run_id))
        title = one_line(f"{meta.title}: {meta.task}", 200) if meta else "(its meta.json cannot be read)"
        ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended or 0.0))
        lines.append(f"{word}: {ended} {run.run_id[-6:]} {title}")
    return "\n".join(lines)


def _say(static: Static, text: str) -> None:
    static.update(Content(plain(text)))
    static.display = bool(text)
