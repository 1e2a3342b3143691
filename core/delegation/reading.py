"""Keep an engine that stays open for long at the settings as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.settings import Settings, load_settings

if TYPE_CHECKING:
    from ..engine import Engine


def refresh(engine: Engine) -> Settings:
    """Read the settings again, as a launch does. Raises SettingsError."""
    engine.settings = load_settings(engine.project)
    return engine.settings
