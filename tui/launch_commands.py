"""The actions that start runs, on from an earlier one too; and getting a preset to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ..core.errors import PresetError
from ..core.plain import one_line
from ..core.runs import PresetSource, RunRequest, RunSnapshot
from .actions import Place, keys_line
from .bridge import Bridge
from .commands import Commands
from .launch_form import LaunchForm, Takes
from .present import short_path
from .screens.copy_preset import CopyPresetScreen, read_template
from .screens.launch import LaunchScreen

if TYPE_CHECKING:
    from ..core.presets import Preset
    from .screens.main import MainScreen


class LaunchCommands(Commands):
    """Each ends with the cursor on what was launched."""

    def __init__(self, screen: MainScreen, bridge: Bridge) -> None:
        super().__init__(screen, bridge)
        self.table = {
            "launch": lambda: self._ask(self._screen.presets.preset),
            "ad_hoc": lambda: self._ask(None),
            "with_context": self._with_context,
            "follow_up": lambda: self._with_run(self._follow_up),
            "rerun": lambda: self._with_run(self._rerun),
            "copy_preset": lambda: self._spawn(self._copy_preset(self._screen.presets.preset)),
        }

    def _ask(self, preset: Preset | None, takes: Takes = Takes.NOTHING, prompt: str = "") -> None:
        engine = self._bridge.engine
        form = LaunchForm(preset, engine.settings, engine.cwd, run=self._screen.run, takes=takes, prompt=prompt)
        screen = LaunchScreen(self._bridge, form, keys_line(Place.LAUNCH, self._screen.actions))
        self._screen.app.push_screen(screen, self._launched)

    def _launched(self, run_id: str | None) -> None:
        if run_id is not None:
            self._screen.show_launched(run_id)

    def _with_context(self) -> None:
        """Launch what `n` would, with the conversation of the run; without a preset to highlight, the run's own."""
        run, presets = self._screen.run, self._screen.presets
        self._ask(presets.preset or (presets.named(run.meta.preset) if run else None), Takes.CONTEXT)

    async def _follow_up(self, run: RunSnapshot) -> None:
        meta = await self._bridge.call(self._bridge.engine.meta, run.run_id)
        preset = self._screen.presets.named(meta.preset) if meta.preset else None
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
        self._screen.show_launched(launched[0].run_id)

    async def _copy_preset(self, preset: Preset | None) -> None:
        template = await self._bridge.call(read_template, self._bridge.engine, preset.name if preset else None)
        keys = keys_line(Place.COPY, self._screen.actions)
        path = await self._screen.app.push_screen_wait(CopyPresetScreen(self._bridge, template, keys))
        if path:
            self._say(f"Copied {one_line(template.name, 40)} to {short_path(path)}: it is yours to change.")


def request_again(run: RunSnapshot) -> RunRequest:
    """Ask for the same as a run did; the prompt of an ad hoc run is not in its snapshot."""
    from ..core.models import INHERIT  # with it come the catalogs, which the first paint does not need

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
