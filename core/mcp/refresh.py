"""Know what models pi has: it is asked when its last list is out of date, because no client of MCP tells any."""

from __future__ import annotations

import threading

from ..agents.choice import choose_agent
from ..agents.pi.models import cached_listing, list_key
from ..agents.pi.pi_list import refresh_models
from ..engine import Engine
from ..launch.model import OFFLINE_AGENT


class Learner:
    """Asks at most once for each state of the files that the list depends on, also where the answer is none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking = threading.Lock()
        self._asked_at: dict[str, str] = {}

    def learn(self) -> bool:
        """Bring the list up to date; answer whether that took a question. Blocks for a second or two while it does.

        Raises AgentUnavailable with what pi said instead.
        """
        settings = self._engine.settings
        agent = choose_agent(settings.agent, settings)
        if agent.name == OFFLINE_AGENT:
            return False
        with self._asking:
            state = list_key(agent.command)
            if state == self._asked_at or cached_listing(agent.command).complete:
                return False
            self._asked_at = state
            refresh_models(agent.command)
            return True
