"""The commands that start runs, also from an earlier one, and the keys of the launch dialog."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from ...core.errors import PresetError, SubdeckError, UsageError
from ...core.run.model import newer_schema
from ...core.text.plain import one_line
from ..commands import Commands, Runs, first_of, name_of
from ..keys.command import DECK, Action, ActionContext, KeyContext, at, command, needs_own, unbound
from ..terminal.textual_internals import push_for

if TYPE_CHECKING:
    from textual.widget import AwaitMount

    from ...core.presets.catalog import Preset
    from ...core.run.snapshot import RunSnapshot
    from ...core.spec.request import RunRequest
    from ..engine_api import EngineApi
    from ._early_screen import EarlyScreen, TypedTask
    from ._form import LaunchForm
    from ._memory import Remembered

LAUNCH = KeyContext.LAUNCH
Reused = Literal["nothing", "context", "session", "everything"]
"""The values of `launch.form.Reuse`."""

NAMED = 6
"""Runs that a question names; more are counted."""
NO_CONVERSATION = "Nothing to continue: this run has no saved conversation (session: none, or it never started)."


def needs_usable_preset(context: ActionContext) -> str:
    """Refuse a broken file; without any preset, a one-off run is launched."""
    return (
        "This preset file is broken. Fix it ({edit_preset}), or start a one-off run ({ad_hoc})."
        if context.problem
        else ""
    )


def needs_readable_record(context: ActionContext) -> str:
    """Refuse an untrusted run, and a run written by a newer subdeck, whose request could not be read."""
    newer = context.run and context.run.newer_schema
    return needs_own(context) or (f"This run was {newer_schema(newer)}." if newer else "")


def needs_conversation(context: ActionContext) -> str:
    if not context.run or context.run.foreign:
        return needs_own(context)
    meta = context.run.meta
    if meta.agent_session:
        agent = one_line(meta.agent, 40)
        return f"{agent} stores this run's conversation. You can follow up, but not use it as context for another run."
    return "" if meta.session_path else NO_CONVERSATION


class LaunchCommands(Commands):
    """Each ends with the cursor on the launched run."""

    opens = ("._form", "._memory", "._start", "._early_screen")

    @cached_property
    def _remembered(self) -> Remembered:
        from ._memory import Remembered

        return Remembered(self._bridge)

    @command(
        "launch",
        at(DECK, "n"),
        "launch",
        needs=needs_usable_preset,
        footer=2,
        changes=True,
        writes=True,
        name_here=lambda context: "launch" if context.preset else "run a task",
    )
    def launch_highlighted(self) -> None:
        """Launch the highlighted preset, or a one-off run without one. Asks for the task first."""
        self._once_presets_are_read(lambda typed: self.ask(self._deck.presets.preset, typed=typed))

    def _once_presets_are_read(self, then: Callable[[TypedTask], None]) -> None:
        """Do this now, or after the presets are read: until then another dialog takes the task."""
        from ._early_screen import ACTIONS, EarlyScreen, TypedTask

        if self._deck.presets.known.is_set():
            then(TypedTask())
            return
        screen = EarlyScreen(self._keys_line(LAUNCH, only=ACTIONS), then, self._keep_unsent)
        self.spawn(self._proceed, screen, self.app.push_screen(screen))

    async def _proceed(self, screen: EarlyScreen, mounted: AwaitMount) -> None:
        await mounted  # the presets may be read before the dialog has its fields
        await self._deck.presets.known.wait()
        screen.proceed()

    def _keep_unsent(self, task: str) -> None:
        """Keep a task whose preset is unknown: the next launch without a preset begins with it."""
        from ._memory import ADHOC

        self.spawn(self._remembered.change, lambda memory: memory.after_cancel(ADHOC, task))

    @command("ad_hoc", at(DECK, "N"), "one-off", footer=10, changes=True, writes=True)
    def launch_ad_hoc(self) -> None:
        """Run a task without a preset. You choose the model, tools and prompt."""
        self.ask(None)

    def ask(self, preset: Preset | None, reuse: Reused = "nothing", *, typed: TypedTask | None = None) -> None:
        """Open the dialog at once: no key typed after this one may reach the deck."""
        from ._early_screen import TypedTask
        from ._form import LaunchForm, Reuse
        from ._screen import LaunchScreen

        engine, run = self._bridge.engine, self._deck.run
        marked = [target for target in self._deck.runs.targets if target != run]
        form = LaunchForm(preset, engine.settings, engine.cwd, run=run, reuse=Reuse(reuse), marked=len(marked))
        run_store = self._deck.run_store
        screen = LaunchScreen(
            self._bridge,
            form,
            self._keys_line(LAUNCH),
            list_key=self._key("list_models"),
            agents_key=self._key("list_agents"),
            remembered=self._remembered,
            runs=lambda: run_store.runs,
            typed=typed or TypedTask(),
        )
        push_for(self._deck, screen, partial(self._launched, run if reuse != "nothing" else None))

    def _launched(self, source: RunSnapshot | None, run_id: str | None) -> None:
        if run_id is None:
            return
        if source:
            self._mark_seen((source,))
        self._deck.show_launched(run_id)

    @command("rerun", at(DECK, "r"), "rerun", needs=needs_readable_record, footer=11, changes=True)
    async def rerun(self, runs: Runs) -> None:
        """Launch the run again. Selected runs are launched as a group, after asking."""
        await (self._rerun_several(runs) if len(runs) > 1 else self._rerun_all(runs))

    @command("rerun_edited", at(DECK, "R"), "rerun with edits", needs=needs_readable_record, changes=True, writes=True)
    def rerun_edited(self) -> None:
        """Open the launch dialog with this run's settings."""
        self._once_presets_are_read(lambda typed: self.ask(self._own_preset(self._deck.run), "everything", typed=typed))

    @command(
        "with_context", unbound(DECK), "use as context", "", needs_conversation, footer=9, changes=True, writes=True
    )
    def with_context(self) -> None:
        """Launch the highlighted preset with the highlighted run's conversation as context."""
        self._once_presets_are_read(self._with_context)

    def _with_context(self, typed: TypedTask) -> None:
        preset = self._deck.presets.preset or self._own_preset(self._deck.run)
        self.ask(preset, "context", typed=typed)

    def follow_up(self) -> None:
        self._once_presets_are_read(self._follow_up)

    def _follow_up(self, typed: TypedTask) -> None:
        run = self._deck.run
        preset = self._own_preset(run)
        if run and run.meta.preset and preset is None:
            error = PresetError(
                f'this run\'s preset "{one_line(run.meta.preset, 60)}" is missing or broken',
                hint="a conversation can only continue with its own preset; restore the file",
            )
            if typed.text.strip():
                self._keep_unsent(typed.text)
            self._refuse("follow up", str(error))
            return
        self.ask(preset, "session", typed=typed)

    async def go_on(self, run: RunSnapshot, text: str) -> None:
        """Continue the conversation of a finished run with a message, with the same settings."""
        from ._form import LaunchForm, Reuse

        form = LaunchForm(
            self._own_preset(run), self._bridge.engine.settings, self._bridge.engine.cwd, run=run, reuse=Reuse.SESSION
        )
        self._launched(run, await self._bridge.call(_go_on, self._bridge.engine, form, text))
        self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def has_own_preset(self, run: RunSnapshot) -> bool:
        """Return whether the preset for continuing its conversation exists."""
        return not run.meta.preset or self._own_preset(run) is not None

    def _own_preset(self, run: RunSnapshot | None) -> Preset | None:
        return self._deck.presets.named(run.meta.preset) if run and run.meta.preset else None

    async def _rerun_several(self, runs: Runs) -> None:
        """Ask once; name the runs that cannot be launched again, and skip them."""
        parallel = self._bridge.engine.settings.max_parallel

        def detail(faults: dict[str, str]) -> str:
            able = [_named(run) for run in runs if run.run_id not in faults]
            left_out = [f"! {name_of(run)}: {faults[run.run_id]}" for run in runs if run.run_id in faults]
            if not able:
                raise UsageError("\n".join(["Cannot rerun any of these runs:", *first_of(left_out, NAMED)]))
            lines = first_of(able, NAMED)
            lines += ["", f"They are launched as a group, {parallel} at a time."] if len(able) > parallel else []
            lines += ["", *first_of(left_out, NAMED)] if left_out else []
            return "\n".join(lines)

        async def check() -> dict[str, str]:
            return await self._bridge.call(_faults, self._bridge.engine, runs)

        faults = await self._confirmed_data("Rerun these runs?", check, detail, "Rerun")
        if faults is not None:
            await self._rerun_all([run for run in runs if run.run_id not in faults])

    async def _rerun_all(self, runs: Runs) -> None:
        if not runs:
            return
        launched = await self._bridge.call(_launch_again, self._bridge.engine, runs)
        self._mark_seen(runs)
        self._deck.show_launched(launched)

    in_dialog = (
        Action("start", at(LAUNCH, "ctrl+s"), "launch", "Launch with these settings.", do="screen.start", footer=1,
               changes=True),
        Action("edit_task", at(LAUNCH, "ctrl+e"), "editor", "Write the task or the prompt in your editor ($EDITOR).",
               do="screen.edit_task", footer=3),
        Action("load_task", at(LAUNCH, "ctrl+o"), "file", "Load the task from a file.", do="screen.load_task",
               footer=4),
        Action("earlier_tasks", at(LAUNCH, "ctrl+r"), "history", "Reuse an earlier task.", do="screen.earlier_tasks",
               footer=5),
        Action("list_agents", at(LAUNCH, "ctrl+g"), "agents", do="screen.list_agents",
               help="Choose an agent from a list with versions, login states and problems."),
        Action("list_models", at(LAUNCH, "ctrl+l"), "models", "Choose from the models of all agents.",
               do="screen.list_models"),
        Action("choose_worktree", at(LAUNCH, "ctrl+t"), "worktree", do="screen.choose_worktree",
               help="Choose whether the run gets a git worktree, and its starting point."),
    )  # fmt: skip


def _named(run: RunSnapshot) -> str:
    return f"{name_of(run)}  {one_line(run.meta.task, 46)}"


def _go_on(engine: EngineApi, form: LaunchForm, text: str) -> str:
    from ._start import launch

    if run_id := form.prompt_source:
        form.take_prompt(engine.meta(run_id).system_prompt or "")
    return launch(engine, form, structs.replace(form.first, task=text)).run_id


def _whole_request(engine: EngineApi, run: RunSnapshot) -> RunRequest:
    """Return the request of a run, completed from its files. Raises UnknownRun, UsageError."""
    from ._values import request_again

    if run.foreign:
        raise UsageError("untrusted run: your subdeck did not make it")
    request = request_again(run)
    if request.preset is not None:
        return request
    return structs.replace(request, prompt=engine.meta(run.run_id).system_prompt or "")


def _faults(engine: EngineApi, runs: Runs) -> dict[str, str]:
    """Return, by run id, why a run cannot be launched again."""
    faults: dict[str, str] = {}
    for run in runs:
        try:
            problems = engine.check(_whole_request(engine, run))
        except SubdeckError as error:
            problems = (error,)
        if problems:
            faults[run.run_id] = one_line(problems[0].what, 200)
    return faults


def _launch_again(engine: EngineApi, runs: Runs) -> str:
    """Launch runs again, several as a group; return the id of the first."""
    requests = [_whole_request(engine, run) for run in runs]
    return engine.launch(requests, background=True)[0].run_id
