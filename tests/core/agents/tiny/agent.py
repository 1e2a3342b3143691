"""The tiny agent as launchers see it: a program in this package with one model and no tools."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from subdeck.core.agents.agent import Agent, AgentChoice, PlainAgent, Wanted
from subdeck.core.models.catalog import Catalog, Listing, Model


class TinyAgent(PlainAgent):
    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        return (sys.executable, "-I", str(Path(__file__).with_name("program.py")))

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        return AgentChoice(name, tuple(command), (), False, version="1.0", kind="tiny", env=env)

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        return ()

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog:
        return Catalog((lambda: Listing((Model("tiny", "echo", choice.name),), own=True, complete=True),))


AGENT: Agent = TinyAgent()
