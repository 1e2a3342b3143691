"""One thread that notices when what a client may choose from changes: presets, settings, models."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .. import paths
from ..engine import Engine
from ..presets.catalog import preset_places
from ..project.watch import watch


def follow(engine: Engine, stop: threading.Event, changed: Callable[[], None]) -> None:
    """Call `changed` for each change of a file that presets, settings or models come from, until `stop` is set.

    Watched directly, not through `Engine.updates`: this door shows no runs, and need not read them.
    """
    while not stop.is_set():
        settings, places = engine.settings, _places(engine)
        for change in watch(engine.project, lambda: _places(engine), stop):
            if change.presets:
                changed()
            # Who lists the tools reads the settings again; they may name other directories now.
            if engine.settings is not settings:
                settings = engine.settings
                if _places(engine) != places:
                    break


def _places(engine: Engine) -> tuple[str, ...]:
    presets = (directory for _, directory in preset_places(engine.project, engine.cwd, engine.settings))
    others = (engine.project.home, os.path.dirname(paths.user_settings_file()), paths.agent_dir())
    return tuple(dict.fromkeys((*presets, *others)))
