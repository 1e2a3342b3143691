"""The deck: presets, runs and the transcript of the highlighted run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, cast

from textual import on
from textual.app import ComposeResult
from textual.events import DescendantFocus, Resize, ScreenResume
from textual.screen import ModalScreen
from textual.widget import Widget

from ...core.paths import STDERR
from ...core.run.snapshot import Counts, RunSnapshot
from ...core.text.plain import plain
from ..commands import CommandSet
from ..feed.bridge import Bridge
from ..feed.messages import (
    AgentChosen,
    EngineFailed,
    PresetsRead,
    ProjectWent,
    RunsChanged,
    SettingsRead,
    SpendingRead,
    TranscriptRead,
    UnseenFound,
    WorkersStopped,
)
from ..feed.reader import last_lines
from ..keys.command import OWN_PREFIX, Action, ActionContext, KeyContext
from ..keys.keymap import bindings, footer_hints, key_of, keys_line, with_keys
from ..presets.list import PresetList
from ..runs.column_layout import chosen_columns
from ..runs.filter_line import FilterLine
from ..runs.list import RunList
from ..runs.order import list_layout_file
from ..runs.seen import SeenFile
from ..runs.store import RunStore
from ..talk.block import RequestBlock
from ..talk.line import Saying, TalkLine
from ..terminal.escapes import WindowTitle
from ..terminal.key_queue import KeyQueueApp
from ..terminal.textual_internals import LeanScreen, bind, set_timer
from ..tiles.commands import TileCommands
from ..toasts import ToastList, answer_key
from ..transcript.earlier import MOST as MOST_EARLIER, answers_of
from ..transcript.pane import Transcript
from ..transcript.search import SearchLine
from ..widgets.line_view import RowList
from ..widgets.prompt_line import PromptLine
from ._bars import DeckHeader, StatusBar, UsedUp
from ._panes import Panes, SingleRunMode
from ._undo import Undo, clean_up_at_start

if TYPE_CHECKING:
    from ..compare.screen import CompareScreen
    from ..engine_api import EngineApi
    from ..hosts.screen import HostsScreen
    from ..hosts.watch import HostsLook, HostsWatch
    from ..runs.live_changes import ChangesWatch
    from ..search.contents import Contents
    from ..tiles.screen import TilesScreen
    from ._toasts import Toasts


LAST_WORDS = 6
"""Lines of stderr below the reason for a failure."""
STARTUP_CLEANUP_DELAY_S = 3.0
"""The screen and the runs come first."""


class MainScreen(LeanScreen):
    """Routes messages from the bridge to the panes, and keys to the commands."""

    BINDINGS = bindings(KeyContext.DECK)
    AUTO_FOCUS = ""

    def __init__(
        self,
        engine: EngineApi,
        actions: Sequence[Action],
        toasts: ToastList,
        *,
        run_id: str | None,
        readonly: bool,
        watched: Sequence[str] = (),
    ) -> None:
        """`actions` is the registry with your own keys.

        `run_id` is shown full screen until you go to the deck; for `watched` runs the app only shows the grid, and ends
        when it is closed.
        """
        super().__init__()
        self.actions = actions
        self.commands = CommandSet(self)
        self.run_store = RunStore()
        self.counts = Counts()
        self.toasts = toasts
        self._begun = False
        """Whether the first update has set the focus."""
        self._readonly = readonly
        self._watched = watched
        self._tiles: TilesScreen | None = None
        self._comparison: CompareScreen | None = None
        self._hosts_view: HostsScreen | None = None
        self.bridge = Bridge(engine, readonly=readonly)
        self.presets = PresetList(actions, engine)
        root = engine.project.root
        layout, seen = list_layout_file(root, readonly=readonly), SeenFile(root, readonly=readonly)
        self.runs = RunList(self.bridge, self.run_store, layout, seen, actions, chosen_columns(engine.settings.columns))
        self.undo = Undo(self.bridge, self._show_action_context)
        self.transcript = Transcript(actions)
        self.search = SearchLine(self.bridge, self.transcript, self._show_action_context)
        self.talk = TalkLine(self.bridge, keys_line(KeyContext.TALK, actions), self._leave_talk)
        self._talk_from = KeyContext.TRANSCRIPT
        """The focused pane before the message line was opened."""
        panes = {KeyContext.PRESETS: self.presets, KeyContext.RUNS: self.runs, KeyContext.TRANSCRIPT: self.transcript}
        self.request = RequestBlock(actions, self._leave_request, lambda: self.panes.fit_content(), readonly=readonly)
        self.panes = Panes(self, panes, readonly=readonly)
        self.panes.request = self.request
        self._single_run = SingleRunMode(run_id, self.run_store, self.runs, self.panes)
        self._bind_own(panes)
        self._title = WindowTitle(self, engine)
        self._header = DeckHeader(engine.project.root, readonly=readonly)
        self._status = StatusBar()
        self._used_up = UsedUp()

    def _bind_own(self, panes: Mapping[KeyContext, Widget]) -> None:
        """Bind the keys from the settings of commands and of actions without a default key, each in its pane."""
        for action in self.actions:
            if action.id.startswith(OWN_PREFIX) or action.key_context:
                for context, key in action.keys:
                    bind(panes.get(context, self), key, action.command, action.name)

    def compose(self) -> ComposeResult:
        self.panes.lay_out()
        yield self._header
        with self.panes:
            with self.panes.left:
                with self.panes.above:
                    yield self.presets
                    yield self.runs
                yield FilterLine(self.runs)
            with self.panes.right:
                yield self.transcript
                yield self.request
                yield self.search
                yield self.talk
        yield self._status
        yield self.bridge

    def on_mount(self) -> None:
        self.presets.border_title = "Presets"
        self.transcript.show(None)
        self.runs.focus()
        self._single_run.begin()
        self.call_after_refresh(self.bridge.start)
        if not self._readonly:
            set_timer(self, STARTUP_CLEANUP_DELAY_S, self._clean_up)
            self.watch(cast(KeyQueueApp, self.app), "app_focus", self._come_back, init=False)
        self.set_interval(1.0, self._tick)
        if self._watched:
            self.commands[TileCommands].watch()

    def _tick(self) -> None:
        self.request.tick()
        self.transcript.tick()
        self._look_for_silence()
        self.runs.tick()
        self._changing.tick()
        self._look_at_hosts()

    def _look_at_hosts(self) -> None:
        """Read the state of the hosts while a run is on one or the view of the hosts is open."""
        if self.run_store.open_remote or self._hosts_view is not None:
            self._hosts.look()
        elif self._header.has_hosts:
            self._header.show_hosts("", "")
            self._hosts.forget()

    def _show_hosts_look(self, look: HostsLook) -> None:
        self._header.show_hosts(look.figures.words, look.figures.short_words)
        self._toasts.tell_hosts(look.lost, look.back)
        if self._hosts_view is not None:
            self._hosts_view.show_states(look.states)

    def _look_for_silence(self) -> None:
        """Find runs that have become idle; the one being read is marked as seen."""
        if became := self.run_store.silence.look(monotonic()):
            self.runs.refilter(became)
            if self.transcript.has_focus and self.transcript.run_id in became:
                self.runs.mark_seen(self.transcript.run_id)
            self._show_action_context()

    def _come_back(self, is_there: bool) -> None:
        """Check for an action in a shell that can be undone."""
        if is_there:
            self.bridge.spawn(self.undo.look)

    def _clean_up(self) -> None:
        self.bridge.spawn(clean_up_at_start, self.bridge, self.undo, self.actions)

    @cached_property
    def _toasts(self) -> Toasts:
        from ._toasts import Toasts

        return Toasts(self, self.bridge.engine.settings.notifications, self.toasts)

    @cached_property
    def _contents(self) -> Contents:
        from ..search.contents import Contents

        return Contents(self.bridge, self.run_store, self.runs.refilter)

    @cached_property
    def _hosts(self) -> HostsWatch:
        from ..hosts.watch import HostsWatch

        return HostsWatch(self.bridge, self._show_hosts_look)

    @cached_property
    def _changing(self) -> ChangesWatch:
        from ..runs.live_changes import ChangesWatch

        return ChangesWatch(self.bridge, self.run_store, self.runs)

    # --- state ---------------------------------------------------------------------------------------------------

    @property
    def run(self) -> RunSnapshot | None:
        """The highlighted run."""
        return None if self._single_run.hides_others else self.run_store.get(self.runs.selected)

    @property
    def _is_prompting(self) -> bool:
        """Whether a filter or a search is being typed."""
        return self.focused is not None and isinstance(self.focused.parent, PromptLine)

    @property
    def _key_context(self) -> KeyContext:
        """The context with the focus."""
        if self._is_prompting:
            return KeyContext.FILTER
        if self.talk.is_open and self.focused is not None and self.talk in self.focused.ancestors:
            return KeyContext.TALK
        return KeyContext.REQUEST if self.request.has_focus else self.search.key_context(self.panes.key_context)

    @property
    def action_context(self) -> ActionContext:
        return ActionContext(
            key_context=self._key_context,
            preset=self.presets.preset,
            problem=self.presets.problem,
            run=self.run,
            marked=len(self.run_store.marked),
            listening=sum(run.can_talk for run in map(self.run_store.get, self.run_store.marked) if run),
            request=self.request.request,
            undoable=bool(self.undo),
            zoomed=self.panes.zoomed is not None,
            unseen=len(self.run_store.needs),
            can_suspend=not self.app.is_web,
            shown=self.panes.shown,
            readonly=self._readonly,
        )

    # --- messages of the bridge ----------------------------------------------------------------------------------

    @on(RunsChanged)
    def show_runs(self, message: RunsChanged) -> None:
        update = message.update
        self.run_store.apply(update)
        self.counts = update.counts
        looked_at = self.transcript.run_id if self.transcript.has_focus else None
        self.runs.runs_changed(update)
        self.runs.mark_ended(update.ended)
        if self.run_store.holding:
            self._contents.runs_changed(update)
        if self._tiles is not None:
            self._tiles.runs_changed(update)
        if self._comparison is not None:
            self._comparison.runs_changed(update)
        self._single_run.look(update)
        self._look_for_silence()
        self.runs.mark_seen(looked_at)
        store = self.run_store
        costs_key, hold_key = (key_of(name, self.actions) for name in ("costs", "hold_queue"))
        self._header.show_figures(update.counts, store, costs_key, hold_key)
        self._header.note = self._single_run.note(key_of("back", self.actions))
        self._status.background = update.background
        self._title.show(update.counts)
        in_sight = self.transcript.run_id if self.transcript.display else None
        self._toasts.report(update.ended, looked_at=self._read_now(looked_at), in_sight=in_sight)
        if self.run_store.asked:
            self._toasts.ask(self.run_store.asked, in_sight=in_sight, at_start=not self._begun)
        for run in update.runs:
            if run.run_id == self.transcript.run_id:
                self.show_request()
                if self.transcript.run_changed(run):
                    self.bridge.read_on()
        if not self._begun:
            self._begun = True
            self.call_after_refresh(self.commands.load)  # so that the first key does not wait for them
            if not update.runs and self.runs.has_focus:
                self.panes.go_to(KeyContext.PRESETS)
        self._show_empty_panes()
        self._show_action_context()

    @on(PresetsRead)
    def show_presets(self, message: PresetsRead) -> None:
        if message.catalog is None:
            self.presets.known.set()  # a launch does not wait for them
            return
        self.presets.show_presets(message.catalog)
        self._show_empty_panes()
        self._show_action_context()

    def _show_empty_panes(self) -> None:
        """Let lists that were read and have no rows give their room to the other panes."""
        has_rows = {
            KeyContext.PRESETS: bool(self.presets.row_count) or not self.presets.is_read,
            KeyContext.RUNS: bool(len(self.run_store)) or not self._begun,
        }
        self.panes.show_empty(frozenset(pane for pane, has_some in has_rows.items() if not has_some))

    @on(AgentChosen)
    def show_agent(self, message: AgentChosen) -> None:
        self._header.show_agent(message.agent, message.problem)

    @on(SpendingRead)
    def show_spending(self, message: SpendingRead) -> None:
        self._header.show_spending(message.spending)
        if words := self._used_up.look(message.spending, self.counts.running):
            self._toasts.warn(words)

    @on(SettingsRead)
    def apply_settings(self, message: SettingsRead) -> None:
        """Apply new settings to the deck; the app reports them."""
        settings = self.bridge.engine.settings
        self._toasts.settings = settings.notifications
        if "app.columns" in message.changed:
            self.runs.show_columns(chosen_columns(settings.columns))

    @on(TranscriptRead)
    def show_transcript(self, message: TranscriptRead) -> None:
        if self.bridge.is_of_tile(message.reader):
            if self._tiles is not None:
                self._tiles.take(message)
            return
        self.transcript.take(message.piece)
        self.search.look()
        if message.piece.more:
            self.bridge.read_on()
        elif self.transcript.wants_last_words:
            self.bridge.spawn(self._read_last_words, message.reader.run_id)

    async def _read_last_words(self, run_id: str) -> None:
        file = self.bridge.engine.line_file(run_id, STDERR)
        self.transcript.show_last_words(run_id, await self.bridge.call(last_lines, file, LAST_WORDS))

    @on(UnseenFound)
    def show_unseen(self, message: UnseenFound) -> None:
        from ._toasts import unseen_text

        self.runs.mark_unseen(message.runs)
        self.notify(unseen_text(message.runs), markup=False)

    @on(ProjectWent)
    def show_project(self, message: ProjectWent) -> None:
        self._header.is_gone = not message.is_here
        if message.is_here:
            self.notify("The project directory is back.", markup=False)
        else:
            what = "The project directory was moved or deleted. Restore it, or start subdeck in its new location."
            self.notify(what, severity="error", markup=False)

    @on(WorkersStopped)
    def show_stopped(self, message: WorkersStopped) -> None:
        """Show in the first line what is not updated; on another screen also as a toast at first."""
        what = plain(message.what)
        if what and not self._header.stopped:
            if self.app.screen is self or isinstance(self.app.screen, ModalScreen):
                self.toasts.add(what, "error")
            else:
                self.notify(what, severity="error", markup=False)
        self._header.stopped = what

    @on(EngineFailed)
    def show_failure(self, message: EngineFailed) -> None:
        self.notify(plain(message.what), severity="error", markup=False)

    # --- messages of the panes -----------------------------------------------------------------------------------

    @on(RowList.Highlighted)
    def show_highlighted(self) -> None:
        run_id = self.runs.selected
        if run_id != self.transcript.run_id and not self._single_run.hides_others:
            self.transcript.show(self.run_store.get(run_id))
            self.bridge.show_run(run_id)
            self.search.look()
            self.show_request()
            self._look_for_earlier()
        self._show_action_context()

    def _look_for_earlier(self) -> None:
        """Read the earlier runs of the shown run's conversation, to show them above it."""
        run = self.run_store.get(self.transcript.run_id)
        if run is not None and not run.is_left_alone and (earlier := self.run_store.earlier(run)[-MOST_EARLIER:]):
            self.bridge.spawn(self._read_earlier, run.run_id, earlier)

    async def _read_earlier(self, run_id: str, earlier: Sequence[RunSnapshot]) -> None:
        answers = await self.bridge.call(answers_of, self.bridge.engine, earlier)
        self.transcript.show_earlier(run_id, answers)

    def show_request(self) -> None:
        """Show the shown run's request."""
        run, block = self.run_store.get(self.transcript.run_id), self.request
        has_keys = block.has_focus or (self.talk.is_open and self._talk_from is KeyContext.REQUEST)
        is_chosen = not block.is_shown or self.runs.listing.row_of(block.run_id) is not None
        block.show(run, has_keys=has_keys, is_chosen=is_chosen)
        self.talk.look()

    def _leave_request(self) -> None:
        """Move the focus from a closed request to the transcript."""
        if self.request.has_focus:
            self.transcript.focus()

    @on(ScreenResume)
    def look_at_request(self) -> None:
        """Count a request that changed below a dialog as visible from now on."""
        self.call_after_refresh(self.request.look)

    @on(RequestBlock.Chosen)
    def reply_with_choice(self, message: RequestBlock.Chosen) -> None:
        self.action_act(f"choose_{message.number}")

    @on(RunList.TextsSought)
    def seek_texts(self, message: RunList.TextsSought) -> None:
        self._contents.seek(message.texts)

    @on(Transcript.ViewChosen)
    def show_view(self, message: Transcript.ViewChosen) -> None:
        if message.run_id == self.transcript.run_id:
            self.bridge.show_run(message.run_id, message.view)
            self._look_for_earlier()

    def _show_action_context(self) -> None:
        self._header.show_needs(Counter(self.run_store.needs.values()))
        self._status.hints = footer_hints(self.action_context, self.actions)
        self.request.show_keys(self._key_context)

    @on(RowList.Chosen)
    async def open_row(self) -> None:
        self.action_act("open")

    @on(DescendantFocus)
    def show_focus(self) -> None:
        if self.panes.key_context is KeyContext.TRANSCRIPT:
            self.runs.mark_seen(self.transcript.run_id)
        self.panes.lay_out()
        self._show_action_context()

    @on(Resize)
    def fit_panes(self) -> None:
        self.panes.lay_out()
        self._show_action_context()

    def get_focusable_widget_at(self, x: int, y: int) -> Widget | None:
        """Ignore borders, so that dragging one does not move the focus."""
        return None if self.panes.border_at(x, y) else super().get_focusable_widget_at(x, y)

    # --- actions -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "act" or self.search.allows(str(parameters[0]))

    def action_act(self, action_id: str) -> None:
        """Do an action of the registry, or report why it is not possible now."""
        action = next(action for action in self.actions if action.id == action_id)
        if obstacle := action.refusal(self.action_context):
            self.refuse(action, with_keys(obstacle, self.actions))
            return
        if action_id.startswith(OWN_PREFIX):
            from ..own_commands import OwnCommands

            self.commands[OwnCommands].do_own(action_id)
        else:
            self.commands.do(action_id)
        if self._single_run.end_when_left():
            self._header.note = ""
        self.show_highlighted()

    def show_tiles(self, tiles: TilesScreen | None) -> None:
        """Open the grid over the deck; None closes it."""
        if self._tiles is not None and self._tiles.is_current:
            self._tiles.dismiss()
        self._tiles = tiles
        if tiles:
            self.app.push_screen(tiles)
        else:
            self.bridge.show_tiles(())

    def show_comparison(self, comparison: CompareScreen | None) -> None:
        """Open a comparison over the deck; None closes it."""
        if self._comparison is not None and self._comparison.is_current:
            self._comparison.dismiss()
        self._comparison = comparison
        if comparison:
            self.app.push_screen(comparison)

    def show_hosts(self, hosts: HostsScreen | None) -> None:
        """Open the view of the hosts over the deck; None closes it."""
        if self._hosts_view is not None and self._hosts_view.is_current:
            self._hosts_view.dismiss()
        self._hosts_view = hosts
        if hosts:
            self.app.push_screen(hosts)
            self._hosts.look()

    def _read_now(self, looked_at: str | None) -> tuple[str, ...]:
        """Return the runs being read: those on the grid or in the comparison, or the one looked at."""
        if self._tiles is not None and self._tiles.is_current:
            return self._tiles.visible_ids
        if self._comparison is not None and self._comparison.is_current:
            return self._comparison.run_ids
        return () if looked_at is None else (looked_at,)

    def read_tiles(self) -> None:
        """Start to read the runs of the grid."""
        if self._tiles:
            self.bridge.show_tiles(self._tiles.run_ids)

    @property
    def watched(self) -> Sequence[str]:
        """The runs that the app was opened for; empty for all."""
        return self._watched

    @property
    def shown_runs(self) -> tuple[str, ...]:
        """The only runs on the screen; empty for all."""
        return (self._single_run.run_id,) if self._single_run.run_id else tuple(self._watched)

    def open_talk(self, saying: Saying) -> None:
        """Open the message line below the transcript."""
        if not self.talk.is_open:
            self._talk_from = KeyContext.REQUEST if self.request.has_focus else self.panes.key_context
        self.panes.show(KeyContext.TRANSCRIPT)
        self.talk.open(saying)

    def _leave_talk(self) -> None:
        """Focus the pane that had the focus before; the transcript if the request is gone."""
        if self._talk_from in (KeyContext.REQUEST, KeyContext.TRANSCRIPT):
            self.panes.show(KeyContext.TRANSCRIPT)
            is_back = self._talk_from is KeyContext.REQUEST and self.request.is_shown
            (self.request if is_back else self.transcript).focus()
        else:
            self.panes.go_to(self._talk_from)

    def refuse(self, action: Action, obstacle: str) -> None:
        """Report why an action is not possible; if it opens a text field, in a dialog instead of it."""
        if not action.writes:
            answer_key(self, obstacle, severity="warning", timeout=3)
            if action.changes:  # the keys typed after it were for a question that is not asked
                cast(KeyQueueApp, self.app).forget_typed()
            return
        self.refuse_dialog(action.name, obstacle)

    def refuse_dialog(self, what: str, why: str) -> None:
        """Report why a dialog with a text field does not open, in its place."""
        from ..dialogs.reader import RefusalScreen

        self.toasts.add(why, "warning")
        self.app.push_screen(RefusalScreen(what, why))

    def show_launched(self, run_id: str) -> None:
        """Move the cursor to a run just launched, as soon as it is listed."""
        self.runs.select(run_id)
        self.panes.go_to(KeyContext.RUNS)
