"""The actions that start runs, on from an earlier one too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ...core.errors import PresetError
from ...core.plain import one_line
from ...core.runs import PresetSource, RunRequest, RunSnapshot
from ..actions import Place, keys_line
from ..launch_form import LaunchForm, Takes
from ..screens.launch import LaunchScreen
from .base import Commands, Deck

if TYPE_CHECKING:
    from ...core.presets import Preset


class LaunchCommands(Commands):
    """Each ends with the cursor on what was launched."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {
            "launch": lambda: self._ask(self._deck.presets.preset),
            "ad_hoc": lambda: self._ask(None),
            "with_context": self._with_context,
            "follow_up": lambda: self._with_run(self._follow_up),
            "rerun": lambda: self._with_run(self._rerun),
        }

    def _ask(self, preset: Preset | None, takes: Takes = Takes.NOTHING, prompt: str = "") -> None:
        engine = self._bridge.engine
        form = LaunchForm(preset, engine.settings, engine.cwd, run=self._deck.run, takes=takes, prompt=prompt)
        screen = LaunchScreen(self._bridge, form, keys_line(Place.LAUNCH, self._deck.actions))
        self._app.push_screen(screen, self._launched)

    def _launched(self, run_id: str | None) -> None:
        if run_id is not None:
            self._deck.show_launched(run_id)

    def _with_context(self) -> None:
        """Launch what `n` would, with the conversation of the run; without a preset to highlight, the run's own."""
        run, presets = self._deck.run, self._deck.presets
        self._ask(presets.preset or (presets.named(run.meta.preset) if run else None), Takes.CONTEXT)

    async def _follow_up(self, run: RunSnapshot) -> None:
        meta = await self._bridge.call(self._bridge.engine.meta, run.run_id)
        preset = self._deck.presets.named(meta.preset) if meta.preset else None
        if meta.preset and preset is None:
            raise PresetError(
                f'the preset "{one_line(meta.preset, 60)}" of this run is gone or broken',
                hint="a conversation goes on only with its own preset: bring the file back",
            )
        self._ask(preset, Takes.SESSION, "" if preset else meta.system_prompt or "")

    async def _rerun(self, run: RunSnapshot) -> None:
        request = request_again(run)
        if request.preset is None:
            meta = await self._bridge.call(self._bridge.engine.meta, run.run_id)
            request = structs.replace(request, prompt=meta.system_prompt or "")
        launched = await self._bridge.call(self._bridge.engine.launch, (request,), background=True)
        self._deck.show_launched(launched[0].run_id)


def request_again(run: RunSnapshot) -> RunRequest:
    """Ask for the same as a run did; the prompt of an ad hoc run is not in its snapshot."""
    from ...core.models import INHERIT  # with it come the catalogs, which the first paint does not need

    meta = run.meta
    adhoc = meta.preset_source is PresetSource.ADHOC
    return RunRequest(
        task=meta.task,
        preset=None if adhoc else meta.preset,
        model=None if meta.requested_model in ("", INHERIT) else meta.requested_model,
        cwd=meta.cwd,
        agent=meta.agent,
        runner=meta.runner,
        description=meta.description,
        tools=meta.tools.resolved if adhoc else None,
        rerun=meta.run_id,
    )
