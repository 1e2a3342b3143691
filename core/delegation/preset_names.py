"""What the presets of runs call themselves: the description in their files, as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SubdeckError
from ..run.model import RunMeta

if TYPE_CHECKING:
    from ..engine import Engine


class PresetNames:
    """Reads the presets once, until it is told to forget."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: dict[str, str] | None = None
        """By path."""

    def of(self, meta: RunMeta) -> str:
        """Answer the description of a run's preset; "" where there is none any more."""
        if not meta.preset_path:
            return ""
        if self._names is None:
            self._names = self._read()
        return self._names.get(meta.preset_path, "")

    def forget(self) -> None:
        self._names = None

    def _read(self) -> dict[str, str]:
        try:
            return {preset.path: preset.description for preset in self._engine.presets().presets}
        except SubdeckError:
            return {}
