"""The actions on presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.plain import one_line
from ..actions import Place, keys_line
from ..present import short_path
from ..screens.copy_preset import CopyPresetScreen, read_template
from .base import Commands, Deck

if TYPE_CHECKING:
    from ...core.presets import Preset


class PresetCommands(Commands):
    """Get presets of one's own."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {
            "copy_preset": lambda: self._spawn(self._copy_preset(deck.presets.preset)),
        }

    async def _copy_preset(self, preset: Preset | None) -> None:
        template = await self._bridge.call(read_template, self._bridge.engine, preset.name if preset else None)
        keys = keys_line(Place.COPY, self._deck.actions)
        path = await self._app.push_screen_wait(CopyPresetScreen(self._bridge, template, keys))
        if path:
            self._say(f"Copied {one_line(template.name, 40)} to {short_path(path)}: it is yours to change.")
