"""The fields of a launch dialog: their first values, their current values, the remarks beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

from ...core.errors import AgentUnavailable, ModelError, RunnerUnavailable, SubdeckError
from ...core.run.limits import Unit
from ...core.run.model import RunnerKind, WorktreeFrom
from ...core.run.prices import dollars
from ...core.text.plain import one_line, plain
from ..presets.draft import PROJECT, USER
from ..terminal.after_close import is_open
from ..text.format import format_error
from ..widgets.form import Choice, Fact, Field, ModelInput, Note, PlainTextArea, Problem
from ._form import LaunchForm
from ._inputs import CountInput, HostInput, PathInput
from ._memory import LastValues
from ._start import LaunchFacts
from ._values import ASKED_LIMITS, COPIES, PREVIOUS, LaunchValues, SaveAs, field_name

if TYPE_CHECKING:
    from ...core.agents.installed import KnownAgent
    from ...core.launch.model_choices import ModelChoice

REST = "other"
"""The foot of the dialog, for problems that belong to no field."""
WORKTREES = {
    "off": WorktreeFrom.NONE,
    "from working tree": WorktreeFrom.FILES,
    "from HEAD": WorktreeFrom.HEAD,
}
WORKTREE_WORDS = {begins: words for words, begins in WORKTREES.items()}
NO_CONTEXT, NO_CHECK, AS_WRITTEN = "none", "none", "literal text"
DRAFT = "Unsent draft. Type to replace it, or press → to keep it."


class LaunchFields(VerticalScroll, can_focus=False):
    """Scrolls if the screen is too low for all of them."""

    class Changed(Message):
        """A field has changed."""

    def __init__(self, form: LaunchForm, facts: LaunchFacts, list_key: str = "", agents_key: str = "") -> None:
        """`list_key` is the key that lists all models, `agents_key` the key that lists all agents."""
        super().__init__(id="fields")
        self.form = form
        self._facts = facts
        self._list_key = list_key
        self._agents_key = agents_key
        self._shown = form.first
        """The values put into the fields; a different value was typed."""
        self._change_is_pending = False
        self._taken: tuple[KnownAgent | None, str] = (None, "")
        """The agent that `auto` takes, and why."""
        self._asked = ""
        """The agent being queried for its models."""
        self._by_name: dict[str, Widget] = {}
        """All widgets that the dialog is mounted with and that have an id; problems come later."""
        self._rows: dict[str, Widget] = {}
        """The row of each field that can have a problem; most names are the `where` of their errors."""
        self._problems: dict[Widget, Problem] = {}
        """The problems of a row, below it; mounted with the first one."""

    # --- fields --------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        form, first = self.form, self.form.first
        if form.description:
            yield Static(Content(form.description), classes="muted", id="description")
        agent = Choice(form.agents(first), first.agent, name="agent")
        agent.disabled = form.continues
        listed = f"{self._agents_key} list" if self._agents_key and not form.continues else ""
        yield Field("Agent", agent, Static(listed, classes="muted", id="agents-key", markup=False))
        yield self._row(Fact("", "agent-facts", form.agent_words(first, None)), "agent")
        hint = f"What should the agent do?{f'  ({form.previous})' if form.previous else ''}"
        yield PlainTextArea(first.task, id="task", placeholder=hint, compact=True)
        task_end: Widget = Note(name="draft", classes="muted")
        if form.previous:
            yield task_end
            chosen = form.previous if first.previous else AS_WRITTEN
            task_end = Field("", Choice((form.previous, AS_WRITTEN), chosen, name="previous"), name="previous-field")
        yield self._row(task_end, "task")
        origin = Static(Content(form.origin_of(first.model)), id="origin", classes="muted")
        yield self._row(Field("Model", ModelInput(first.model), origin), "model")
        yield Fact("Thinking", "thinking")
        directory = PathInput(first.cwd, form.launcher_cwd, name="cwd", placeholder="default: this directory")
        directory.disabled = form.continues
        yield self._row(Field("Where", directory), "cwd")
        label = Static("Attempts", classes="muted", id="copies-label")
        copies = CountInput(first.copies, COPIES, name="copies")
        runner = Choice(form.runners(has_hosts=form.has_hosts), first.runner, name="runner")
        yield self._row(Field("Runner", runner, label, copies), "runner", "copies")
        needs = Input(first.needs, id="needs", compact=True, placeholder="none, or gpu=1 mem=32")
        needs_label = Static("Requires", classes="muted", id="needs-label")
        yield self._row(Field("Host", HostInput(first.host), needs_label, needs, name="host-field"), "host", "needs")
        if form.shared_worktree:
            yield Fact("Worktree", "worktree-shared", form.shared_worktree)
        else:
            begins = Choice(tuple(WORKTREES), WORKTREE_WORDS[first.worktree], name="worktree")
            words = Static("", classes="muted", id="worktree-words")
            yield self._row(Field("Worktree", begins, words), "worktree")
        if form.checks:
            chosen = Choice((NO_CHECK, *form.checks), first.check or NO_CHECK, name="check")
            yield self._row(Field("Check", chosen), "check")
        yield from self._limits(first)
        with Horizontal(classes="field", id="last"):
            yield Note(name="last-note", classes="muted")
            yield Button("reset to defaults", id="defaults", compact=True)
        if form.preset is None:
            yield from self._adhoc(first)
        yield Fact("Tools", "tools-shown")
        yield Fact("Limits", "limits")
        yield Fact("Session", "session", form.session)
        if form.context:
            yield Field("Context", Choice((form.context, NO_CONTEXT), form.context, name="context"))
        else:
            yield Fact("Context", "context-refusal", form.context_refusal or "")
        yield self._row(Note(name="notes"), REST)

    def _row(self, row: Widget, *fields: str) -> Widget:
        """Return a row below which the problems of these fields stand."""
        self._rows.update(dict.fromkeys(fields, row))
        return row

    def _limits(self, first: LaunchValues) -> Iterator[Widget]:
        """Yield the fields of limits, two in a row; the other limits are only shown."""
        names = [*ASKED_LIMITS]
        for name, *others in (names[at : at + 2] for at in range(0, len(names), 2)):
            limit = ASKED_LIMITS[name]
            unit = ["dollars"] if limit.unit is Unit.DOLLARS else []
            label = "   ".join((*unit, *(ASKED_LIMITS[other].label for other in others)))
            beside = (Static(label, classes="muted limit-label"), *(self._limit(other, first) for other in others))
            yield self._row(Field(limit.label, self._limit(name, first), *beside), *map(field_name, (name, *others)))

    def _limit(self, name: str, first: LaunchValues) -> Input:
        usual, is_dollars = getattr(self.form.usual_limits, name), ASKED_LIMITS[name].unit is Unit.DOLLARS
        shown = "no limit" if usual is None else dollars(usual) if is_dollars else f"{usual:,}"
        allowed = r"\$?[0-9,]*\.?[0-9]*" if is_dollars else r"[0-9_,]*"
        return Input(
            first.limits.get(name, ""),
            id=field_name(name), classes="limit", compact=True, restrict=allowed, placeholder=shown, max_length=14,
        )  # fmt: skip

    def _adhoc(self, first: LaunchValues) -> Iterator[Widget]:
        hint = "read, grep, find, ls · none · empty: agent default"
        yield self._row(Field("Tools", Input(first.tools, id="tools", compact=True, placeholder=hint)), "tools")
        prompt = PlainTextArea(first.prompt, id="prompt", compact=True, placeholder="system prompt (optional)")
        yield Field("Prompt", prompt)
        name = Input(id="save-name", compact=True, placeholder="preset name (optional)")
        yield self._row(Field("Save as", name, Choice((PROJECT, USER), PROJECT, name="save-where")), "save")
        purpose = Input(id="save-description", compact=True, placeholder="one sentence about the preset")
        yield Field("Purpose", purpose, name="about-field")

    def on_mount(self) -> None:
        self._by_name = {node.id: node for node in self.walk_children(Widget) if node.id}
        self.task_area.move_cursor(self.task_area.document.end)
        self.task_area.focus()
        self._show_relevant()
        self.show_facts(self._facts)

    @property
    def is_open(self) -> bool:
        """Whether the dialog is still open: its fields disappear one by one when it closes."""
        return is_open(self)

    # --- values --------------------------------------------------------------------------------------------------

    @property
    def task_area(self) -> PlainTextArea:
        return self.query_one("#task", PlainTextArea)

    def add_to_task(self, text: str) -> None:
        """Append a typed text to the task."""
        area = self.task_area
        area.move_cursor(area.document.end)
        area.insert(plain(text))

    @property
    def values(self) -> LaunchValues:
        save_as, name = None, self._written("save-name")
        if name.strip():
            save_as = SaveAs(name, self._written("save-where"), self._written("save-description"))
        return LaunchValues(
            task=self.task_area.text,
            agent=self._written("agent"),
            model=self._written("model"),
            cwd=self._written("cwd"),
            runner=self._written("runner"),
            host=self._written("host"),
            needs=self._written("needs"),
            copies=self._written("copies"),
            tools=self._written("tools"),
            prompt=self._written("prompt"),
            context=self._written("context") != NO_CONTEXT,
            previous=self._written("previous") != AS_WRITTEN,
            worktree=WORKTREES.get(self._written("worktree"), WorktreeFrom.NONE),
            check="" if (check := self._written("check")) == NO_CHECK else check,
            limits={name: written for name in ASKED_LIMITS if (written := self._written(field_name(name)))},
            save_as=save_as,
        )

    def _written(self, name: str) -> str:
        """Return the value of a field; empty if the dialog has no such field."""
        field = self._named(name)
        if isinstance(field, TextArea):
            return field.text
        return field.value if isinstance(field, Input | Choice) else ""

    def _named(self, name: str) -> Widget | None:
        """Return the widget with an id; None if the dialog has none.

        A query walks over all widgets, and each key would need dozens of them.
        """
        return self._by_name.get(name)

    def remember(self, last: LastValues, draft: str) -> None:
        """Put the values of the last launch, and a draft, into fields that were not edited."""
        self.form.remember(last)
        self._put(self.form.remembered)
        if draft and not self.task_area.text and not self.form.first.task:
            self.task_area.put(plain(draft))
            self.task_area.select_all()
            self.query_one("#draft", Note).say(DRAFT)

    def take_prompt(self, prompt: str) -> None:
        """Put the repeated run's system prompt into its field, unless it was edited."""
        self.form.take_prompt(prompt)
        area = self._named("prompt")
        if isinstance(area, PlainTextArea) and not area.text:
            area.put(self.form.first.prompt)

    @on(Button.Pressed, "#defaults")
    def put_defaults(self, event: Button.Pressed) -> None:
        """Replace the values of the last launch by those of the preset and the settings."""
        event.stop()
        self.form.remember(LastValues())
        self._put(self.form.first)
        self.query_one("#model").focus()

    def _put(self, values: LaunchValues) -> None:
        now, shown = self.values, self._shown
        self._shown = values
        if now.agent == shown.agent:
            self.query_one("#agent", Choice).put(values.agent)
        if now.model == shown.model:
            self.query_one(ModelInput).put(values.model)
        if now.cwd == shown.cwd:
            self.query_one("#cwd", PathInput).put(values.cwd)
        if now.runner == shown.runner:
            self.query_one("#runner", Choice).put(values.runner)
        if now.copies == shown.copies:
            self.query_one(CountInput).value = values.copies
        self._show_relevant()

    # --- remarks -------------------------------------------------------------------------------------------------

    def show_facts(self, facts: LaunchFacts) -> None:
        self._facts = facts
        self.query_one("#thinking", Fact).say(facts.thinking)
        self.query_one("#tools-shown", Fact).say(facts.tools)
        self.query_one("#limits", Fact).say(facts.limits)
        self.query_one("#notes", Note).say(facts.warnings)
        runner = self.query_one("#runner", Choice)
        runner.offer(self.form.runners(has_hosts=facts.has_hosts or self.form.has_hosts))
        runner.set_class(RunnerKind.HOSTS in runner.words, "-hosts")
        self.query_one(HostInput).offer(facts.hosts)
        self.form.take_agents(facts.agents)
        self.query_one("#agent", Choice).offer(self.form.agents(self.values))
        self.show_agent(facts.taken, facts.note)
        self.form.take_default(leaves=facts.leaves_default)
        self.show_models(facts.models)

    def show_agent(self, taken: KnownAgent | None, note: str = "") -> None:
        """Show the agent that the run would get (None: none), and why."""
        self._taken = (taken, note)
        self._show_agent_words()

    def _show_agent_words(self) -> None:
        self.query_one("#agent-facts", Fact).say(self.form.agent_words(self.values, *self._taken))

    def take_agent(self, name: str) -> None:
        """Choose an agent, even one that cannot be used here: the reason is shown beside the field."""
        field = self.query_one("#agent", Choice)
        field.offer(tuple(dict.fromkeys((*field.words, name))))
        field.put(name)
        field.focus()

    def show_asked(self, agent: str) -> None:
        """Show beside the model that an agent is being queried; empty for none."""
        self._asked = agent
        self._show_origin()

    def show_models(self, models: Sequence[ModelChoice]) -> None:
        """Offer these models from now on."""
        offered: dict[str, str] = {}
        for choice in models:
            offered.setdefault(choice.ref, choice.agent)
        self.query_one(ModelInput).offer(offered)
        self.form.take_models(models)
        self._put(self.form.remembered)

    def take_model(self, choice: ModelChoice) -> None:
        """Put a model of an agent into its field."""
        self.form.choose(choice)
        field = self.query_one(ModelInput)
        field.put(choice.ref)
        field.focus()
        self._changed_soon()

    def show_problems(self, problems: Iterable[Exception]) -> None:
        """Show only these problems, each beside its field, or at the foot with its subject."""
        lines: dict[Widget, list[str]] = {row: [] for row in self._problems}
        for problem in problems:
            field = self._field_of(problem)
            lines.setdefault(self._rows[field], []).append(self._line_of(problem, field))
        for row, said in lines.items():
            self._problem_below(row).say("\n".join(said))
        self.call_after_refresh(self._keep_in_sight)

    def _problem_below(self, row: Widget) -> Problem:
        """Return the line for the problems of a row, mounted at its first use."""
        if row not in self._problems:
            first = next(field for field, its_row in self._rows.items() if its_row is row)
            self._problems[row] = Problem(name=f"{first}-problem")
            self.mount(self._problems[row], after=row)
        return self._problems[row]

    def _line_of(self, problem: Exception, field: str) -> str:
        """Return a problem in one line: beside a field without its subject, and with the key that lists all models."""
        if not isinstance(problem, SubdeckError):
            return format_error(problem)
        subject = f"{problem.where}: " if field == REST and problem.where else ""
        is_listed = field == "model" and problem.brief_hint != problem.hint and self.query_one(ModelInput).known
        return one_line(f"{subject}{problem.brief}", 600) + ("  (↓ lists all)" if is_listed else "")

    def say_worktree(self, words: str) -> None:
        """Describe the future worktree beside its field."""
        if isinstance(shown := self._named("worktree-words"), Static):
            shown.update(Content(words))

    def next_worktree(self) -> None:
        """Choose the next starting point of the worktree."""
        if isinstance(choice := self._named("worktree"), Choice):
            choice.action_choose(1)

    def go_to(self, problem: Exception) -> None:
        """Focus the field of a problem."""
        name = self._field_of(problem)
        if field := self._named("save-name" if name == "save" else name):
            field.focus()

    def _field_of(self, problem: Exception) -> str:
        field: str = getattr(problem, "where", REST)
        if isinstance(problem, ModelError):
            field = "model"
        elif isinstance(problem, AgentUnavailable):
            field = "agent"
        elif isinstance(problem, RunnerUnavailable):
            field = "runner"
        elif field == "previous":
            field = "task"
        return field if field in self._rows else REST

    def _keep_in_sight(self) -> None:
        """Scroll to the focused field if a longer remark has pushed it away."""
        if focused := self._focused:
            self.scroll_to_widget(focused, animate=False)
            self.call_after_refresh(self._move_cursor)

    def _move_cursor(self) -> None:
        """Move the terminal's cursor to the focused field: Textual does so only for its focus and its keys."""
        if isinstance(focused := self._focused, Input | TextArea):
            self.app.cursor_position = focused.cursor_screen_offset
            focused.refresh()  # with its next frame the terminal gets the cursor

    @property
    def _focused(self) -> Widget | None:
        """The focused field, while the dialog is open."""
        focused = self.screen.focused if self.is_attached else None
        return focused if focused is not None and self in focused.ancestors else None

    @on(Input.Changed)
    @on(Choice.Changed)
    @on(TextArea.Changed)
    def _changed_soon(self) -> None:
        """Draw the typed text before computing its remarks, once for all keys that came together."""
        if not self._change_is_pending:
            self._change_is_pending = True
            self.call_after_refresh(self._tell_changed)

    def _tell_changed(self) -> None:
        self._change_is_pending = False
        if not self.is_open:
            return
        self._show_relevant()
        self.post_message(self.Changed())

    @on(Input.Submitted)
    def go_on(self) -> None:
        """Move to the next field on Enter."""
        self.screen.focus_next()

    def _show_relevant(self) -> None:
        values = self.values
        if field := self._named("previous-field"):
            field.display = PREVIOUS in values.task
        if field := self._named("about-field"):
            field.display = values.save_as is not None
        self.query_one("#host-field").display = values.is_remote
        self.query_one("#agent", Choice).offer(self.form.agents(values))
        self._show_agent_words()
        draft = self.query_one("#draft", Note)
        if draft.display and self.task_area.selection.is_empty:
            draft.say("")
        note = self.form.as_last_time(values)
        self.query_one("#last-note", Note).say(note)
        self.query_one("#last").display = bool(note)
        self._show_origin()

    def _show_origin(self) -> None:
        model = self.query_one(ModelInput)
        count = f"↓ {len(model.known)} known" if model.known else ""
        offered = f"{count}, {self._list_key} list" if count and self._list_key else count
        asked = f"querying {self._asked}…" if self._asked else ""
        words = "   ".join(filter(None, (self.form.origin_of(model.value), asked or offered)))
        self.query_one("#origin", Static).update(Content(words))
