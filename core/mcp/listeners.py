"""Who is told when the lists change: clients of the handshake by notice, later ones where they listen."""

from __future__ import annotations

import asyncio

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


class Listeners:
    """Remembers the lists as the client was told them last; what it never asked for is no news to it."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools: list[types.Tool] | None = None
        self.prompts: list[types.Prompt] | None = None
        self.looking = asyncio.Lock()
        """Held from a look at the files until its outcome stands here: no change falls in between."""
        self._session: ServerSession | None = None

    def add(self, session: ServerSession) -> None:
        """Remember a session of the handshake; any one reaches the client, for a process has but one."""
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._session = session

    async def tell(self, tools: list[types.Tool], prompts: list[types.Prompt]) -> None:
        """Say which of the lists is another one now."""
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
