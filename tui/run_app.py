"""Open the app and answer what to print after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .app import SubdeckApp
from .deck.opening import Opening
from .terminal.window_title import kept_title

if TYPE_CHECKING:
    from ..core.engine import Engine


def open_app(engine: Engine, opening: Opening) -> str:
    """Run the app on an engine until the operator quits; return the farewell line, which may be empty.

    The engine stays open: who opened it closes it. Raises SettingsError for keys that cannot be had.
    """
    app = SubdeckApp(engine, opening)
    with kept_title(engine.settings.notifications.title):
        return app.run() or ""
