"""Ask for what a launch needs, say what would fail before launching, keep the text when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, Static, TextArea

from ...core.plain import one_line, plain
from ...core.runs import RunRequest
from ..actions import Place, bindings
from ..bridge import Bridge
from ..launch_form import LaunchForm
from ..present import short_path
from ..widgets.choice import Choice
from ..widgets.task_area import TaskArea

if TYPE_CHECKING:
    from ...core.presets import Preset

CHECK_AFTER = 0.15
"""Seconds without another change before the engine is asked what would fail."""
RUNNERS = ("process", "tmux")
EMPTY_TASK = "The task is empty: say what the agent shall do."


class LaunchScreen(ModalScreen[str]):
    """Answers the id of the run that was launched, or None."""

    BINDINGS = bindings(Place.LAUNCH)

    def __init__(self, bridge: Bridge, preset: Preset | None) -> None:
        super().__init__()
        self._bridge = bridge
        self._preset = preset
        self._form = LaunchForm(preset, bridge.engine.settings, bridge.engine.cwd)
        self._check_timer: Timer | None = None
        self._launching = False
        self._problems = ""
        """What the dialog says cannot work."""

    def compose(self) -> ComposeResult:
        form = self._form
        with Vertical(classes="dialog", id="launch") as dialog:
            dialog.border_title = Content(form.title)
            dialog.border_subtitle = Content(form.badge)
            if form.description:
                yield Static(Content(form.description), classes="muted", id="description")
            yield TaskArea(id="task", placeholder="What shall the agent do?", compact=True)
            with Horizontal(classes="field"):
                yield Static("Model", classes="label")
                yield Input(form.model, id="model", compact=True, placeholder="provider/id")
                yield Static(Content(form.model_origin), id="origin", classes="muted")
            with Horizontal(classes="field"):
                yield Static("Where", classes="label")
                yield Input(short_path(form.cwd), id="cwd", compact=True)
            with Horizontal(classes="field"):
                yield Static("How", classes="label")
                yield Choice(RUNNERS, form.runner, name="runner")
            if self._preset is None:
                with Horizontal(classes="field"):
                    yield Static("Tools", classes="label")
                    yield Input(id="tools", compact=True, placeholder="read, grep, find, ls; empty: the agent's own")
                with Horizontal(classes="field", id="prompt-field"):
                    yield Static("Prompt", classes="label")
                    yield TaskArea(id="prompt", compact=True, placeholder="system prompt, may stay empty")
            else:
                with Horizontal(classes="field"):
                    yield Static("Tools", classes="label")
                    yield Static(Content(form.tools), id="tools-shown")
            yield Static("", id="problems")
            with Horizontal(classes="buttons"):
                yield Static("esc cancel   ^s launch", classes="muted", id="keys")
                yield Button("Launch", id="go", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one("#task", TextArea).focus()
        self._check_soon()

    @property
    def request(self) -> RunRequest:
        """What would be launched now."""
        adhoc = self._preset is None
        return self._form.request(
            task=self.query_one("#task", TextArea).text,
            model=self.query_one("#model", Input).value,
            cwd=self.query_one("#cwd", Input).value,
            runner=self.query_one("#runner", Choice).value,
            tools=self.query_one("#tools", Input).value if adhoc else "",
            prompt=self.query_one("#prompt", TextArea).text if adhoc else "",
        )

    @on(Input.Changed)
    @on(Choice.Changed)
    def _check_soon(self) -> None:
        if self._check_timer is not None:
            self._check_timer.stop()
        self._check_timer = self.set_timer(CHECK_AFTER, self._check)

    @on(Input.Changed, "#model")
    def show_origin(self, event: Input.Changed) -> None:
        origin = self._form.model_origin if event.value.strip() == self._form.model else "for this run"
        self.query_one("#origin", Static).update(Content(origin))

    @on(TextArea.Changed, "#task")
    def forget_refusal(self) -> None:
        if self._problems == EMPTY_TASK:
            self._show_problems("")
            self._check_soon()

    def _check(self) -> None:
        self._bridge.spawn(self._show_what_would_fail())

    async def _show_what_would_fail(self) -> None:
        request = self.request
        checked = request if request.task.strip() else self._form.with_some_task(request)
        problems = await self._bridge.call(self._bridge.engine.check, checked)
        if self.is_mounted and self.request == request and not self._launching:
            self._show_problems("\n".join(problem_text(problem) for problem in problems))

    def _show_problems(self, text: str) -> None:
        self._problems = text
        self.query_one("#problems", Static).update(Content(text))

    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if self._launching:
            return
        request = self.request
        if not request.task.strip():
            self._show_problems(EMPTY_TASK)
            self.query_one("#task", TextArea).focus()
            return
        self._set_launching(True)
        self._bridge.spawn(self._launch(request))

    async def _launch(self, request: RunRequest) -> None:
        try:
            launched = await self._bridge.call(self._bridge.engine.launch, (request,), background=True)
        except Exception as error:  # whatever it was, the text must not be lost with the dialog
            self._set_launching(False)
            self._show_problems(problem_text(error))
        else:
            self.dismiss(launched[0].run_id)

    def _set_launching(self, launching: bool) -> None:
        self._launching = launching
        button = self.query_one("#go", Button)
        button.disabled = launching
        button.label = "launching…" if launching else "Launch"

    def action_cancel(self) -> None:
        if not self._launching:
            self.dismiss(None)


def problem_text(error: Exception) -> str:
    """What, where, what to do, fit for the screen."""
    return plain(str(error)) or one_line(type(error).__name__)
