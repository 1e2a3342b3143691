"""Keep up with models, presets and settings: ask pi for its models, and watch the files that all of them come from.

A client of MCP announces no models of its own, unlike pi as a parent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .. import paths
from ..agents.base import AgentKind
from ..agents.choice import choose_agent
from ..agents.pi.models import cached_listing, list_key, refresh_models
from ..engine import Engine
from ..presets.catalog import preset_places
from ..project.follower import watch


class ModelListRefresher:
    """Ask pi for its models, at most once for each state of the files that its list depends on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking = threading.Lock()
        self._asked_at: dict[str, str] = {}

    def refresh(self) -> bool:
        """Bring the list up to date; return whether pi was asked, which takes a second or two.

        Raises AgentUnavailable with what pi said instead.
        """
        settings = self._engine.settings
        agent = choose_agent(settings.agent, settings)
        if agent.name == AgentKind.OFFLINE:
            return False
        with self._asking:
            state = list_key(agent.command)
            if state == self._asked_at or cached_listing(agent.command).complete:
                return False
            self._asked_at = state
            refresh_models(agent.command)
            return True


def watch_files(engine: Engine, stop: threading.Event, changed: Callable[[], None]) -> None:
    """Call `changed` for each change of a file that presets, settings or models come from, until `stop` is set.

    They are watched directly, not through `Engine.updates`: this server shows no runs and need not read them.
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
    presets = (directory for _, directory in preset_places(engine.workspace))
    others = (engine.project.home, os.path.dirname(paths.user_settings_file()), paths.agent_dir())
    return tuple(dict.fromkeys((*presets, *others)))
