"""Notify the client when the lists of tools and prompts change.

Clients that begin with a handshake get a notification; those of later protocol versions subscribe.
"""

from __future__ import annotations

import asyncio

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


class Listeners:
    """The lists as the client knows them; of a list that it never asked for it is not notified."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools: list[types.Tool] | None = None
        self.prompts: list[types.Prompt] | None = None
        self.reading = asyncio.Lock()
        """Held from reading the files until the lists here are set, so that no change is missed in between."""
        self._session: ServerSession | None = None

    def add(self, session: ServerSession) -> None:
        """Remember a session with a handshake; any of them reaches the client, since a process has only one."""
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._session = session

    async def notify(self, tools: list[types.Tool], prompts: list[types.Prompt]) -> None:
        """Set the lists, and notify the client of those that changed."""
        tools_changed = self.tools not in (None, tools)
        prompts_changed = self.prompts not in (None, prompts)
        if tools_changed:
            self.tools = tools
            await self.bus.publish(ToolsListChanged())
            if self._session:
                await self._session.send_tool_list_changed()
        if prompts_changed:
            self.prompts = prompts
            await self.bus.publish(PromptsListChanged())
            if self._session:
                await self._session.send_prompt_list_changed()
