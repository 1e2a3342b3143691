"""The screen of one run: why it is not done, and tabs with its details."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.widget import Widget
from textual.widgets import Static

from ...core.errors import SubdeckError
from ...core.run.describe import state
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ..feed.bridge import Bridge
from ..feed.repeater import Repeater
from ..feed.supervision import SLOW_S
from ..keys.command import Action, ActionContext, KeyContext
from ..keys.keymap import bindings, key_of, keys_line
from ..terminal.after_close import is_open
from ..terminal.handover import page_file
from ..terminal.textual_internals import DialogScreen, bind
from ..text.cells import cells
from ..text.format import format_error
from ..toasts import answer_key
from ..widgets.line_view import CURSOR, RowList
from ._overview import Overview
from ._reader import DetailReader
from .page import Page, PageView, Section, Tab, note

REFRESH_SECONDS = 1.0
"""Between two reads of an unfinished run."""
MARGIN = 3
"""Cells beside a page: the edges and the scrollbar."""
COPY_LIMIT = 2_000_000
"""Maximum number of characters to copy: terminals drop more."""
UNREAD = Page([note("reading…")], more=True)
"""A tab's page until it is read."""


class TabBar(Widget):
    """The tabs with their keys on one line; brackets mark the open one, not only colour."""

    DEFAULT_CSS = "TabBar { height: 1; width: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self, keys: dict[Tab, str], tab: Tab) -> None:
        super().__init__()
        self._keys = keys
        self._tab = tab

    def show_tab(self, tab: Tab) -> None:
        self._tab = tab
        self.refresh()

    def render(self) -> Content:
        styles = ["bold" if tab is self._tab else "$text-muted" for tab in Tab]
        return Content.assemble(*zip(self._labels(), styles, strict=True))

    async def on_click(self, event: Click) -> None:
        end = 0
        for tab, label in zip(Tab, self._labels(), strict=True):
            end += cells(label)
            if event.x < end:
                await self.run_action(f"screen.show_tab('{tab}')")
                return

    def _labels(self) -> list[str]:
        """Return the tabs' labels; in a narrow bar one space separates two of them instead of two."""
        named = {tab: f"{self._keys.get(tab, '')} {tab.label.capitalize()}" for tab in Tab}
        edge = "" if sum(cells(name) + 2 for name in named.values()) > self.size.width else " "
        return [f"[{name}]" if tab is self._tab else f" {name}{edge}" for tab, name in named.items()]


class RunDetailScreen(DialogScreen[bool]):
    """Returns True to show the run's transcript on the deck."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "detail.tcss"]
    BINDINGS = bindings(KeyContext.DETAIL)
    AUTO_FOCUS = ""

    def __init__(
        self,
        bridge: Bridge,
        run: RunSnapshot,
        current: Callable[[str], RunSnapshot | None],
        act: Callable[[RunDetailScreen, str], None],
        actions: Sequence[Action],
        target: Tab | Section | None = None,
    ) -> None:
        """Show a run in a tab, at a section of its overview, or by default in the tab that suits its state.

        `current` returns the deck's snapshot of a run, None once it was deleted, and `act` does the actions that are
        not about a tab.
        """
        super().__init__()
        for action in actions:
            if action.key_context is KeyContext.DETAIL:  # it has no default key
                for key in action.keys_in(KeyContext.DETAIL):
                    bind(self, key, action.command, action.name)
        self._bridge = bridge
        self.run = run
        """The shown run; changed by this screen only."""
        self._current = current
        self._act = act
        self._actions = actions
        self._tab = target if isinstance(target, Tab) else Tab.ANSWER if run.has_ended else Tab.TRANSCRIPT
        self._folds: dict[Section, bool] = {}
        """Your choices in the overview, for all runs: whether a section is unfolded."""
        self._target: Section | None = None
        """The section to go to as soon as it is read."""
        if isinstance(target, Section):
            self._tab, self._target, self._folds[target] = Tab.OVERVIEW, target, True
        self._reader = self._reader_of(run)
        self._page = UNREAD
        self._shown: tuple[Tab, RunSnapshot] | None = None
        """The tab and the run read last."""
        self._reading = Repeater(bridge, self._read, "This run's details stopped", patience=SLOW_S)
        self._gone = False

    def _reader_of(self, run: RunSnapshot) -> DetailReader:
        engine = self._bridge.engine
        return DetailReader(engine.project, run.run_id, engine.work.changes, engine.settings.hosts.lease.operator)

    def compose(self) -> ComposeResult:
        keys = {tab: key_of(f"tab_{tab}", self._actions) for tab in Tab}
        with Vertical(id="run-detail"):
            with Horizontal(id="run-head"):
                yield Static("", id="run-title")
                yield Static(self.run.run_id, id="run-id", classes="muted")
            yield Static("", id="why")
            yield TabBar(keys, self._tab)
            yield PageView()
            yield Overview()
            yield Static("", id="detail-keys", classes="muted")

    def show_run(self, run: RunSnapshot) -> None:
        """Show another run in the same tab, and in the same section of the overview."""
        overview = self.query_one(Overview)
        if overview.block:
            self._target = overview.block.section
        self.run, self._page, self._shown, self._gone = run, UNREAD, None, False
        self._reader = self._reader_of(run)
        self.query_one("#run-id", Static).update(run.run_id)
        self.query_one("#why", Static).update("")
        overview.show_blocks(())
        self.query_one(PageView).show_page(UNREAD, is_new_tab=True)
        self._show_title()
        self._reading.ask()

    def on_mount(self) -> None:
        self.query_one(PageView).show_page(UNREAD, is_new_tab=True)
        self._show_title()
        self._show_views()
        self.call_after_refresh(self._reading.ask)
        self.set_interval(REFRESH_SECONDS, self._tick)

    # --- reading -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Read an unfinished run again."""
        run = self._current(self.run.run_id)
        if run is None:
            self._gone = True
            self.query_one("#why", Static).update(Content("This run was deleted. Showing its last known state."))
            return
        if self._gone:
            self._gone, self._shown = False, None
        if not run.has_ended or self._shown != (self._tab, run):
            self._reading.ask()

    async def _read(self) -> None:
        self.run = run = self._current(self.run.run_id) or self.run
        tab = self._tab
        # A view is not laid out while another one is shown instead.
        width = max(1, self.size.width - MARGIN - (len(CURSOR) if tab is Tab.OVERVIEW else 0))
        try:
            why, page = await self._bridge.read(self._reader.read, run, tab, width, dict(self._folds))
        except (SubdeckError, OSError) as error:
            if is_open(self):
                self.query_one("#why", Static).update(Content(f"! Cannot read this: {format_error(error)}"))
            return
        if not is_open(self) or run.run_id != self.run.run_id:
            return
        if tab is self._tab and (not self._gone or self._page.more):  # of a deleted run, what is left of it
            self._show(tab, why, page, run)
        if page.more:
            self._reading.ask()

    def _show(self, tab: Tab, why: str, page: Page, run: RunSnapshot) -> None:
        is_new_tab = self._shown is None or self._shown[0] is not tab
        self._shown = None if page.more else (tab, run)
        self._page = page
        self._show_title()
        if not self._gone:
            self.query_one("#why", Static).update(Content(why))
        if tab is Tab.OVERVIEW:
            self._show_overview(page)
        else:
            self.query_one(PageView).show_page(page, is_new_tab=is_new_tab)

    def _show_overview(self, page: Page) -> None:
        overview = self.query_one(Overview)
        overview.show_blocks(page.blocks)
        target = self._target
        is_unfolded = next((block.is_unfolded for block in page.blocks if block.key == target), None)
        if target and is_unfolded is not None and is_unfolded == self._folds.get(target, is_unfolded):
            self._target = None
            self.call_after_refresh(overview.go_to, target, at_end=True)

    def _show_title(self) -> None:
        run = self.run
        task = one_line(run.meta.description or run.meta.task, 400)
        title = Content.assemble(
            (state(run), "bold"), "  ", (one_line(run.meta.title, 40), "bold $text-primary"), "  ", task
        )
        self.query_one("#run-title", Static).update(title)
        self._show_keys()

    def _show_keys(self) -> None:
        """Show the keys that act on the run, if they fit."""
        context = ActionContext(key_context=KeyContext.DETAIL, run=self.run)
        whole = keys_line(KeyContext.DETAIL, self._actions, context)
        fits = cells(whole) < self.size.width - MARGIN
        text = whole if fits else keys_line(KeyContext.DETAIL, self._actions)
        self.query_one("#detail-keys", Static).update(Content(text))

    def _show_views(self) -> None:
        self.query_one(Overview).display = self._tab is Tab.OVERVIEW
        self.query_one(PageView).display = self._tab is not Tab.OVERVIEW

    @on(Resize)
    def fit_width(self) -> None:
        self.call_after_refresh(self._reading.ask)

    # --- actions -------------------------------------------------------------------------------------------------

    def action_show_tab(self, name: str) -> None:
        """Show a tab; in the overview, go back to the section's heading, and from there to the top."""
        tab = Tab(name)
        if tab is self._tab:
            if tab is Tab.OVERVIEW:
                self.query_one(Overview).go_back()
            return
        self._tab, self._page = tab, UNREAD
        self.query_one(TabBar).show_tab(tab)
        self._show_views()
        self._reading.ask()

    def _show_section(self, section: Section) -> None:
        """Unfold a section of the overview and go to it."""
        self._folds[section], self._target = True, section
        if self._tab is Tab.OVERVIEW:
            self._reading.ask()
        else:
            self.action_show_tab(Tab.OVERVIEW)

    def action_turn(self, step: int) -> None:
        tabs = list(Tab)
        self.action_show_tab(tabs[(tabs.index(self._tab) + step) % len(tabs)])

    def action_move(self, where: str) -> None:
        if self._tab is Tab.OVERVIEW:
            self.query_one(Overview).action_move(where)
        else:
            self.query_one(PageView).move(where)

    @on(RowList.Chosen)
    def action_open_shown(self) -> None:
        block = self.query_one(Overview).block if self._tab is Tab.OVERVIEW else None
        path = block.path if block else self._page.path
        if self._tab is Tab.TRANSCRIPT:
            self.dismiss(True)
        elif self._tab is Tab.CHANGES:
            self._act(self, "changes")
        elif block and block.section and block.is_unfolded:
            self._folds[block.section] = False
            self._reading.ask()
        elif block and block.section and block.is_unfolded is False:
            self._show_section(block.section)
        elif not path:
            self._say("No file to open.")
        elif problem := page_file(cast("App[Any]", self.app), path):
            self._say(problem, error=True)

    def action_copy_shown(self) -> None:
        block = self.query_one(Overview).block if self._tab is Tab.OVERVIEW else None
        text, what = self._page.copy, f"the {self._tab.label}"
        if block:
            text, what = (block.path, "the path") if block.path and not block.copy else (block.copy, block.what)
        if block and block.is_unfolded is False:
            self._say("Unfold this section to copy it.")
            return
        if not text:
            self._say(f"Still reading {what}." if self._page.more and what else "Nothing to copy.")
            return
        self.app.copy_to_clipboard(text[:COPY_LIMIT])
        self._say(f"Copied {what}: {one_line(text, 60)}")

    def action_act(self, action_id: str) -> None:
        """Do an action for the shown run: show something of it here, or leave it to the commands."""
        if action_id == "changes" and self._tab is not Tab.CHANGES:
            self.action_show_tab(Tab.CHANGES)
        elif (name := action_id.removeprefix("tab_")) in tuple(Section):
            self._show_section(Section(name))
        else:
            self._act(self, action_id)

    def action_cancel(self) -> None:
        self.dismiss(False)

    def _say(self, text: str, *, error: bool = False) -> None:
        answer_key(self, text, severity="error" if error else "information", timeout=4)
