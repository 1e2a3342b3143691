"""The commands that start runs, also from an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from ...core.errors import PresetError, SubdeckError, UsageError
from ...core.text.plain import one_line
from ..actions import KeyContext, key_of, keys_line
from ..deck.screen import MainScreen
from ..launch.form import LaunchForm, Reuse
from ..launch.memory import ADHOC, Remembered
from ..launch.start import launch
from ..launch.values import request_again
from ..launch.waiting import ACTIONS as WAITING_ACTIONS, TypedTask, WaitingScreen
from ..terminal.textual_internals import push_for
from .base import Commands, first_of, name_of

if TYPE_CHECKING:
    from textual.widget import AwaitMount

    from ...core.presets.catalog import Preset
    from ...core.run.snapshot import RunSnapshot
    from ...core.spec.request import RunRequest
    from ..engine_api import EngineApi

NAMED = 6
"""Runs that a question names; more are counted."""


class LaunchCommands(Commands):
    """Each ends with the cursor on what was launched."""

    def __init__(self, deck: MainScreen) -> None:
        super().__init__(deck)
        self._remembered = Remembered(deck.bridge)

    def launch_highlighted(self) -> None:
        """Launch the highlighted preset; without one, or if it is broken, a task of its own."""
        self._once_presets_are_read(lambda typed: self.ask(self._deck.presets.preset, typed=typed))

    def _once_presets_are_read(self, then: Callable[[TypedTask], None]) -> None:
        """Do this now, or after the presets are read: until then another dialog takes the task."""
        if self._deck.presets.known.is_set():
            then(TypedTask())
            return
        actions = [action for action in self._deck.actions if action.id in WAITING_ACTIONS]
        screen = WaitingScreen(keys_line(KeyContext.LAUNCH, actions), then, self._keep_unsent)
        self.spawn(self._proceed, screen, self.app.push_screen(screen))

    async def _proceed(self, screen: WaitingScreen, mounted: AwaitMount) -> None:
        await mounted  # the presets may be read before the dialog has its fields
        await self._deck.presets.known.wait()
        screen.proceed()

    def _keep_unsent(self, task: str) -> None:
        """Keep a task whose preset is not known: the next launch without a preset begins with it."""
        self.spawn(self._remembered.change, lambda memory: memory.after_cancel(ADHOC, task))

    def ask(self, preset: Preset | None, reuse: Reuse = Reuse.NOTHING, *, typed: TypedTask | None = None) -> None:
        """Open the dialog at once: no key that is typed after this one may reach the deck."""
        from ..launch.screen import LaunchScreen

        engine, run = self._bridge.engine, self._deck.run
        marked = [target for target in self._deck.runs.targets if target != run]
        form = LaunchForm(preset, engine.settings, engine.cwd, run=run, reuse=reuse, marked=len(marked))
        keys = keys_line(KeyContext.LAUNCH, self._deck.actions)
        run_store = self._deck.run_store
        screen = LaunchScreen(
            self._bridge,
            form,
            keys,
            list_key=key_of("list_models", self._deck.actions),
            agents_key=key_of("list_agents", self._deck.actions),
            remembered=self._remembered,
            runs=lambda: run_store.runs,
            typed=typed or TypedTask(),
        )
        push_for(self._deck, screen, partial(self._launched, run if reuse is not Reuse.NOTHING else None))

    def _launched(self, source: RunSnapshot | None, run_id: str | None) -> None:
        if run_id is None:
            return
        if source:
            self._mark_seen((source,))
        self._deck.show_launched(run_id)

    def with_context(self) -> None:
        """Launch what `n` would, with the conversation of the run; without a preset to highlight, the run's own."""
        self._once_presets_are_read(self._with_context)

    def _with_context(self, typed: TypedTask) -> None:
        preset = self._deck.presets.preset or self._own_preset(self._deck.run)
        self.ask(preset, Reuse.CONTEXT, typed=typed)

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
        self.ask(preset, Reuse.SESSION, typed=typed)

    async def go_on(self, run: RunSnapshot, text: str) -> None:
        """Go on with the conversation of a finished run, as it was launched, with what is said next."""
        form = LaunchForm(
            self._own_preset(run), self._bridge.engine.settings, self._bridge.engine.cwd, run=run, reuse=Reuse.SESSION
        )
        self._launched(run, await self._bridge.call(_go_on, self._bridge.engine, form, text))
        self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def has_own_preset(self, run: RunSnapshot) -> bool:
        """Return whether the preset with which its conversation goes on is there."""
        return not run.meta.preset or self._own_preset(run) is not None

    def rerun_edited(self) -> None:
        self._once_presets_are_read(
            lambda typed: self.ask(self._own_preset(self._deck.run), Reuse.EVERYTHING, typed=typed)
        )

    def _own_preset(self, run: RunSnapshot | None) -> Preset | None:
        return self._deck.presets.named(run.meta.preset) if run and run.meta.preset else None

    # --- at once -------------------------------------------------------------------------------------------------

    def rerun(self) -> None:
        targets = self._deck.runs.targets
        self.spawn(self._rerun_several if len(targets) > 1 else self._rerun_all, targets)

    async def _rerun_several(self, runs: Sequence[RunSnapshot]) -> None:
        """Ask once, with what cannot be launched again left out and named."""
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

    async def _rerun_all(self, runs: Sequence[RunSnapshot]) -> None:
        if not runs:
            return
        launched = await self._bridge.call(_launch_again, self._bridge.engine, runs)
        self._mark_seen(runs)
        self._deck.show_launched(launched)


def _named(run: RunSnapshot) -> str:
    return f"{name_of(run)}  {one_line(run.meta.task, 46)}"


def _go_on(engine: EngineApi, form: LaunchForm, text: str) -> str:
    if run_id := form.prompt_source:
        form.take_prompt(engine.meta(run_id).system_prompt or "")
    return launch(engine, form, structs.replace(form.first, task=text)).run_id


def _whole_request(engine: EngineApi, run: RunSnapshot) -> RunRequest:
    """Ask for the same again, with what only the run's files have. Raises UnknownRun, UsageError."""
    if run.foreign:
        raise UsageError("untrusted run: your subdeck did not make it")
    request = request_again(run)
    if request.preset is not None:
        return request
    return structs.replace(request, prompt=engine.meta(run.run_id).system_prompt or "")


def _faults(engine: EngineApi, runs: Sequence[RunSnapshot]) -> dict[str, str]:
    """Return by run id why a run cannot be launched again."""
    faults: dict[str, str] = {}
    for run in runs:
        try:
            problems = engine.check(_whole_request(engine, run))
        except SubdeckError as error:
            problems = (error,)
        if problems:
            faults[run.run_id] = one_line(problems[0].what, 200)
    return faults


def _launch_again(engine: EngineApi, runs: Sequence[RunSnapshot]) -> str:
    """Launch the same again, several as a group; return the id of the first."""
    requests = [_whole_request(engine, run) for run in runs]
    return engine.launch(requests, background=True)[0].run_id
