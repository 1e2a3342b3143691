"""The launch dialog: asks for the parts of a launch, shows what would fail, keeps the text if it does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus, Resize
from textual.widgets import Button, Static
from textual.worker import Worker

from ...core.errors import BudgetExceeded, SubdeckError, reason
from ...core.text.plain import one_line, plain
from ..dialogs.ask import AskScreen, ConfirmScreen
from ..dialogs.pick import PickScreen
from ..feed.bridge import Bridge
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.after_close import notify_failure
from ..terminal.handover import edit_text
from ..terminal.textual_internals import DialogScreen
from ..text.format import format_error
from ..widgets.form import ModelInput, PlainTextArea
from ._early_screen import TypedTask
from ._fields import LaunchFields
from ._form import AUTO
from ._inputs import PathInput
from ._memory import Remembered
from ._models import ModelsScreen
from ._start import (
    FailedAfterSaving,
    Launched,
    ask_for_models,
    launch,
    read_agent,
    read_facts,
    read_models,
    what_would_fail,
    worktree_words,
    written_facts,
)
from ._tasks import FILE_HINT, EarlierTask, EarlierTasksScreen, earlier_tasks, read_text
from ._values import LaunchValues

if TYPE_CHECKING:
    from textual.app import App

    from ...core.launch.model_choices import ModelChoice
    from ...core.run.snapshot import RunSnapshot
    from ._form import LaunchForm
    from ._memory import LaunchMemory

CHECK_AFTER = 0.15
"""Seconds without a change before the engine checks the values."""
AROUND = 4
"""Rows of the dialog besides its fields: the border, the buttons and the space above them."""


def _put_soon(loop: asyncio.AbstractEventLoop, news: asyncio.Queue[bool], is_last: bool) -> None:
    """Put news from another thread, unless the app has ended."""
    try:
        loop.call_soon_threadsafe(news.put_nowait, is_last)
    except RuntimeError:
        return


class LaunchScreen(DialogScreen[str]):
    """Returns the id of the (first) launched run, or None."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    # Before those of the fields: a text field has its own ctrl+e.
    BINDINGS: ClassVar[list[BindingType]] = [
        replace(binding, priority=True) for binding in bindings(KeyContext.LAUNCH) if isinstance(binding, Binding)
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high"), (40, "-tall")]  # noqa: RUF012 - Textual declares it as it is

    def __init__(
        self,
        bridge: Bridge,
        form: LaunchForm,
        keys: str,
        *,
        list_key: str = "",
        agents_key: str = "",
        remembered: Remembered,
        runs: Callable[[], Iterable[RunSnapshot]],
        typed: TypedTask,
    ) -> None:
        """`keys` is the line of keys that launch and leave, `list_key` lists the models, `agents_key` the agents;
        `runs` returns the runs whose tasks are offered again; `typed` was typed before this dialog opened.
        """
        super().__init__()
        self._bridge = bridge
        self._keys = keys
        self._remembered = remembered
        self._runs = runs
        self._typed = typed
        self._over_budget = False
        """Whether the next launch may exceed the day's budget."""
        self._fields = LaunchFields(form, written_facts(form.preset), list_key, agents_key)
        self._ready = asyncio.Event()
        """Set when the remembered and repeated values are in the fields."""
        self._looked_up = asyncio.Event()
        """Set when the facts of the chosen agent are known."""
        self._agent_shown: str | None = None
        """The agent of these facts; None before the first time."""
        self._checked: object = None
        """The last checked values."""
        self._problems: tuple[Exception, ...] = ()
        """The problems found by that check."""
        self._has_tried = False
        """Whether launching was tried: from then on a missing task is a problem."""
        self._launching = False
        self._is_sent = False
        """Whether the launch was sent to the engine: leaving before that launches nothing."""
        self._saved = ""
        """The preset that a one-off run was saved as, if launching failed after that."""

    @property
    def form(self) -> LaunchForm:
        return self._fields.form

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="launch") as dialog:
            dialog.border_title = Content(self.form.title)
            dialog.border_subtitle = Content(self.form.badge)
            yield self._fields
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Launch", id="go", variant="primary", compact=True)

    def on_mount(self) -> None:
        self._bridge.spawn(self._fill_in)
        self._check_soon()
        if self._typed.text:
            self._fields.add_to_task(self._typed.text)
        if self._typed.launch:
            self.action_start()

    @on(Resize)
    def fit_fields(self) -> None:
        self._fields.styles.max_height = max(1, self.size.height - AROUND)

    # --- reading files -------------------------------------------------------------------------------------------

    async def _fill_in(self) -> None:
        try:
            memory = self._remembered.known or await self._remembered.read()
            if self._fields.is_open:
                self._fields.remember(memory.values_of(self.form.key), memory.draft_of(self.form.key))
            if run_id := self.form.prompt_source:
                meta = await self._bridge.call(self._bridge.engine.meta, run_id)
                if self._fields.is_open:
                    self._fields.take_prompt(meta.system_prompt or "")
        except SubdeckError as error:
            what = f"Cannot read that run's system prompt. {format_error(error)}"
            self.notify(what, severity="warning", markup=False)
        finally:
            self._ready.set()

    async def _look_up(self) -> None:
        """Show the facts of the chosen agent, again after another one was chosen."""
        if not self._looked_up.is_set() and self._agent_shown is not None:
            return  # the lookup in progress sees the new choice
        self._looked_up.clear()
        try:
            while self._fields.is_open and self._fields.values.agent != self._agent_shown:
                values = self._fields.values
                if self._agent_shown is not None:
                    self._fields.show_models(())  # the listed ones are another agent's
                self._agent_shown = values.agent
                facts = await self._bridge.call(read_facts, self._bridge.engine, self.form, values)
                if self._fields.is_open:
                    self._fields.show_facts(facts)
        finally:
            self._looked_up.set()

    @on(DescendantFocus)
    def look_for_models(self, event: DescendantFocus) -> None:
        """Query agents for their models once that field is focused, not before: opening starts nothing."""
        if isinstance(event.widget, ModelInput):
            self._bridge.spawn(self._ask_for_models)

    async def _ask_for_models(self) -> None:
        engine, agent = self._bridge.engine, self._fields.values.agent
        news: asyncio.Queue[bool] = asyncio.Queue()
        tell = partial(_put_soon, asyncio.get_running_loop(), news)
        if not await self._bridge.call(ask_for_models, engine, agent, tell):
            return
        is_over = False
        while not is_over and self._fields.is_open:
            if agent == self._fields.values.agent:
                self._fields.show_asked("all agents" if agent == AUTO else agent)
            is_over = await news.get()
            models = await self._bridge.call(read_models, engine, agent)
            if self._fields.is_open and agent == self._fields.values.agent:
                self._show_models(models)
        if self._fields.is_open:
            self._fields.show_asked("")

    def _show_models(self, models: Sequence[ModelChoice]) -> None:
        self._fields.show_models(models)
        if isinstance(self.app.screen, ModelsScreen):
            self.app.screen.show_known(models)

    # --- problems ------------------------------------------------------------------------------------------------

    @on(LaunchFields.Changed)
    def _check_soon(self) -> None:
        self._show_problems()
        self._label_button()
        if self._fields.values.agent != self._agent_shown:
            self._bridge.spawn(self._look_up)
        if not self._launching:
            self._check()

    @work(group="check", exclusive=True, exit_on_error=False)
    async def _check(self) -> None:
        await asyncio.sleep(CHECK_AFTER)
        values = self._fields.values
        asked = (self.form.to_check(values), values.save_as)
        if asked != self._checked:
            self._problems = await self._bridge.call(
                what_would_fail, self._bridge.engine, self.form, values, self._saved
            )
            self._show_problems()
            taken = await self._bridge.call(read_agent, self._bridge.engine, self.form, values)
            if self._fields.is_open and values.agent == self._fields.values.agent:
                self._fields.show_agent(*taken)
            words = await self._bridge.call(worktree_words, self._bridge.engine, self.form, values)
            if self._fields.is_open:
                self._fields.say_worktree(words)
            self._checked = asked  # not before everything is shown: a change in between starts again

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    def _show_problems(self) -> None:
        problems = self.form.problems(self._fields.values)
        shown = problems if self._has_tried else tuple(problem for problem in problems if problem.where != "task")
        self._fields.show_problems((*shown, *self._problems))

    # --- loading a task ------------------------------------------------------------------------------------------

    def action_edit_task(self) -> None:
        """Open the focused long text, otherwise the task, in your editor."""
        if self._launching:
            return
        area = self.focused if isinstance(self.focused, PlainTextArea) else self._fields.task_area
        text, problem = edit_text(cast("App[Any]", self.app), area.text, name=f"{area.id}.md")
        if problem:
            self.notify(problem, severity="error", markup=False)
        elif (text := text.rstrip("\n")) != area.text:
            area.put(plain(text))
        area.focus()

    def action_load_task(self) -> None:
        if not self._launching:
            path = PathInput("", self._bridge.engine.cwd, name="path", files=True)
            title = "Load the task from a file"
            self.app.push_screen(AskScreen(self._bridge, title, self._load, hint=FILE_HINT, field=path))

    async def _load(self, path: str) -> bool:
        if not path.strip():
            return False
        file = os.path.join(self._bridge.engine.cwd, os.path.expanduser(path.strip()))
        self._take_task(await self._bridge.call(read_text, file))
        return True

    def action_earlier_tasks(self) -> None:
        if not self._launching:
            self.app.push_screen(EarlierTasksScreen(self._read_earlier), self._take_task)

    async def _read_earlier(self) -> Sequence[EarlierTask]:
        memory = await self._remembered.read()
        return await self._bridge.call(earlier_tasks, tuple(self._runs()), memory.unsent, self.form.key)

    def _take_task(self, text: str | None) -> None:
        if text is not None:
            self._fields.task_area.put(plain(text))
        self._fields.task_area.focus()

    def action_choose_worktree(self) -> None:
        if not self._launching:
            self._fields.next_worktree()

    def action_list_agents(self) -> None:
        """List the agents with a description of each; unusable ones with the way out."""
        if self._launching or self.form.continues:
            return
        names, rows = self.form.agent_rows(self._fields.values)
        chosen = self._fields.values.agent
        at = names.index(chosen) if chosen in names else 0

        def take(row: int | None) -> None:
            if row is not None:
                self._fields.take_agent(names[row])

        self.app.push_screen(PickScreen("Agents", rows, end="select", at=at, wraps=True), take)

    def action_list_models(self) -> None:
        if not self._launching:
            self._bridge.spawn(self._ask_for_models)
            self.app.push_screen(ModelsScreen(self.form.known), self._take_model)

    def _take_model(self, choice: ModelChoice | None) -> None:
        if choice is not None:
            self._fields.take_model(choice)

    # --- launching -----------------------------------------------------------------------------------------------

    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if not self._launching:
            self._set_launching(True)
            self.workers.cancel_group(self, "check")
            self._bridge.spawn(self._start)

    async def _start(self) -> None:
        await self._ready.wait()
        if self._fields.values.agent != self._agent_shown:
            await self._look_up()
        await self._looked_up.wait()
        if not self._fields.is_open:
            return  # its text was kept
        values = self._fields.values
        if problems := self.form.problems(values):
            self._has_tried = True
            self._set_launching(False)
            self._check_soon()
            self._fields.go_to(problems[0])
            return
        form = self.form
        over_budget, self._over_budget = self._over_budget, False
        try:
            start = partial(launch, over_budget=over_budget)
            self._is_sent = True
            launched = await self._bridge.call(start, self._bridge.engine, form, values, self._saved)
        except Exception as error:  # after any error, the text must not be lost with the dialog
            if not self.is_current:
                await self._keep(lambda memory: memory.after_cancel(form.key, values.task))
            self._say_failure(error, values)
        else:
            chosen = form.to_remember(values)
            await self._keep(lambda memory: memory.after_launch(form.key, values.task, chosen))
            self._say_launched(launched)

    def _say_failure(self, error: Exception, values: LaunchValues) -> None:
        if not self.is_current:
            self._bridge.notify(f"Not launched: {format_error(error)}", severity="error", markup=False)
            return
        if isinstance(error, FailedAfterSaving):
            self._saved = error.preset
            error = error.reason
        self._set_launching(False)
        if isinstance(error, BudgetExceeded):
            question = ConfirmScreen("Launch over budget this once?", one_line(error.what, 300), "Launch")
            self.app.push_screen(question, self._launch_over_budget)
        self._checked = (self.form.to_check(values), values.save_as)
        self._problems = (error,)
        self._show_problems()
        self._fields.go_to(error)

    def _launch_over_budget(self, is_allowed: bool | None) -> None:
        if is_allowed:
            self._over_budget = True
            self.action_start()

    def _say_launched(self, launched: Launched) -> None:
        if launched.saved:
            self._bridge.notify(launched.saved, markup=False)
        if self.is_current:
            self.dismiss(launched.run_id)
        else:
            self._bridge.notify(launched.summary, markup=False)

    def _set_launching(self, launching: bool) -> None:
        self._launching, self._is_sent = launching, False
        self.query_one("#go", Button).disabled = launching
        self._label_button()

    def _label_button(self) -> None:
        count = self._fields.values.count
        many = f"Launch {count}" if count > 1 else "Launch"
        self.query_one("#go", Button).label = "launching…" if self._launching else many

    def action_cancel(self) -> None:
        """Leave; the typed text is kept, and a launch that was sent is not stopped."""
        if not self._is_sent and (self._ready.is_set() or self._fields.task_area.text):
            self._keep_draft(self.form, self._fields.task_area.text)
        self.dismiss(None)

    def _keep_draft(self, form: LaunchForm, task: str) -> None:
        memory = self._remembered.known
        offered = memory.draft_of(form.key) if memory else ""
        if task != form.first.task if task.strip() else offered:
            self._bridge.spawn(self._keep, lambda memory: memory.after_cancel(form.key, task))

    async def _keep(self, change: Callable[[LaunchMemory], LaunchMemory]) -> None:
        try:
            await self._remembered.change(change)
        except OSError as error:
            self._bridge.notify(f"Cannot save your choices: {reason(error)}", severity="warning", markup=False)
