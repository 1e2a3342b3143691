"""Ask for what a launch needs, say what would fail before launching, keep the text when it does."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, Static, TextArea

from ...core.runs import RunRequest
from ..actions import Place, bindings
from ..bridge import Bridge
from ..launch_facts import LaunchFacts, looked_up, written_facts
from ..launch_form import PREVIOUS, LaunchForm
from ..present import short_path
from ..problem_text import problem_text
from ..widgets.choice import Choice
from ..widgets.model_input import ModelInput
from ..widgets.task_area import TaskArea

CHECK_AFTER = 0.15
"""Seconds without another change before the engine is asked what would fail."""
RUNNERS = ("process", "tmux")
EMPTY_TASK = "The task is empty: say what the agent shall do."
NO_CONTEXT, AS_WRITTEN = "none", "as written"


class LaunchScreen(ModalScreen[str]):
    """Answers the id of the run that was launched, or None."""

    BINDINGS = bindings(Place.LAUNCH)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high")]  # noqa: RUF012 - Textual declares it as it is

    def __init__(self, bridge: Bridge, form: LaunchForm, keys: str) -> None:
        """`keys` says which keys launch and leave."""
        super().__init__()
        self._bridge = bridge
        self._form = form
        self._keys = keys
        self._facts = written_facts(form.preset)
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
            if form.previous:
                with Horizontal(classes="field", id="previous-field"):
                    yield Choice((form.previous, AS_WRITTEN), form.previous, name="previous")
            with Horizontal(classes="field"):
                yield Static("Model", classes="label")
                yield ModelInput(form.model)
                yield Static(Content(form.origin_of(form.model)), id="origin", classes="muted")
            yield _Line("Thinks", "thinking")
            with Horizontal(classes="field"):
                yield Static("Where", classes="label")
                yield Input(short_path(form.cwd), id="cwd", compact=True, disabled=form.goes_on)
            with Horizontal(classes="field"):
                yield Static("How", classes="label")
                yield Choice(RUNNERS, form.runner, name="runner")
            if form.preset is None:
                with Horizontal(classes="field"):
                    yield Static("Tools", classes="label")
                    hint = "read, grep, find, ls; empty: the agent's own"
                    yield Input(form.tools, id="tools", compact=True, placeholder=hint)
                with Horizontal(classes="field", id="prompt-field"):
                    yield Static("Prompt", classes="label")
                    yield TaskArea(form.prompt, id="prompt", compact=True, placeholder="system prompt, may stay empty")
            yield _Line("Tools", "tools-shown")
            yield _Line("Limits", "limits")
            yield _Line("Session", "session", form.session)
            if form.context:
                with Horizontal(classes="field"):
                    yield Static("Context", classes="label")
                    yield Choice((form.context, NO_CONTEXT), form.context, name="context")
            else:
                yield _Line("Context", "context-refusal", form.context_refusal)
            yield Static("", id="notes")
            yield Static("", id="problems")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Launch", id="go", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one("#task", TextArea).focus()
        self._show_previous()
        self._show_problems("")
        self._show_facts(self._facts)
        self._bridge.spawn(self._look_up())
        self._check_soon()

    async def _look_up(self) -> None:
        facts = await self._bridge.call(looked_up, self._bridge.engine, self._form.preset)
        if self.is_mounted:
            self._show_facts(facts)

    def _show_facts(self, facts: LaunchFacts) -> None:
        self._facts = facts
        self.query_one("#thinking", _Line).say(facts.thinking)
        self.query_one("#tools-shown", _Line).say(facts.tools)
        self.query_one("#limits", _Line).say(facts.limits)
        _fill(self.query_one("#notes", Static), facts.warnings)
        self.query_one(ModelInput).offer(facts.models)
        self.show_origin()

    @property
    def request(self) -> RunRequest:
        """What would be launched now."""
        adhoc = self._form.preset is None
        return self._form.request(
            task=self.query_one("#task", TextArea).text,
            model=self.query_one(ModelInput).value,
            cwd=self.query_one("#cwd", Input).value,
            runner=self.query_one("#runner", Choice).value,
            tools=self.query_one("#tools", Input).value if adhoc else "",
            prompt=self.query_one("#prompt", TextArea).text if adhoc else "",
            context=all(choice.value != NO_CONTEXT for choice in self.query("#context").results(Choice)),
            previous=all(choice.value != AS_WRITTEN for choice in self.query("#previous").results(Choice)),
        )

    @on(Input.Changed)
    @on(Choice.Changed)
    def _check_soon(self) -> None:
        if self._check_timer is not None:
            self._check_timer.stop()
        self._check_timer = self.set_timer(CHECK_AFTER, self._check)

    @on(Input.Changed, "#model")
    def show_origin(self) -> None:
        model = self.query_one(ModelInput)
        offered = f"↓ {len(model.known)} known" if model.known else ""
        said = "   ".join(filter(None, (self._form.origin_of(model.value), offered)))
        self.query_one("#origin", Static).update(Content(said))

    @on(TextArea.Changed, "#task")
    def follow_task(self) -> None:
        """Say what `{previous}` stands for as soon as it is written, and forget what a new text may have mended."""
        if self._show_previous() or self._problems:
            self._check_soon()
        if self._problems == EMPTY_TASK:
            self._show_problems("")

    def _show_previous(self) -> bool:
        named = PREVIOUS in self.query_one("#task", TextArea).text
        for field in self.query("#previous-field"):
            field.display = named
        return named

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
        _fill(self.query_one("#problems", Static), text)

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


class _Line(Horizontal):
    """A fact with its name; not there while there is nothing to say."""

    def __init__(self, label: str, name: str, text: str = "") -> None:
        super().__init__(id=name, classes="field")
        self._label = label
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(self._label, classes="label")
        yield Static(Content(self._text), classes="fact")

    def on_mount(self) -> None:
        self.display = bool(self._text)

    def say(self, text: str) -> None:
        self._text = text
        self.display = bool(text)
        for fact in self.query(".fact").results(Static):
            fact.update(Content(text))


def _fill(line: Static, text: str) -> None:
    """Show a text; without one the line takes no room."""
    line.update(Content(text))
    line.display = bool(text)
