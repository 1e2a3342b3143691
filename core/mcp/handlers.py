"""What a client can ask for: the three tools, and the presets as prompts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from ..delegation.call import call_tool
from ..delegation.parent import Parent
from ..delegation.schema import NAMES, is_child, tools_for
from ..engine import Engine
from ..errors import AgentUnavailable, SubdeckError
from ..run.model import LauncherKind
from ..text.plain import one_line, plain
from .calls import Calls, Relay
from .listeners import Listeners
from .refresh import ModelListRefresher
from .wire import prompt_text, protocol_prompts, protocol_result, protocol_tool

T = TypeVar("T")

Context = ServerRequestContext[Any, Any]

KIND = LauncherKind.MCP


class Handlers:
    """The handlers of one client's requests; each reads the files as they are now."""

    def __init__(self, engine: Engine, session: str, calls: Calls, listeners: Listeners) -> None:
        self._engine = engine
        self._session = session
        self._calls = calls
        self._listeners = listeners
        self._models = ModelListRefresher(engine)

    def tools(self) -> list[types.Tool]:
        """Return the tools that a client gets now. Raises SettingsError."""
        specs = tools_for(self._engine)
        if not specs and self._refresh_models():
            specs = tools_for(self._engine)
        return [protocol_tool(spec) for spec in specs]

    def prompts(self) -> list[types.Prompt]:
        """Return a prompt for each preset; none where there is no tool to launch it."""
        return protocol_prompts(self._engine.presets().presets) if self.tools() else []

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._listeners.add(ctx.session)
        async with self._listeners.reading:
            tools = self._listeners.tools = await self._read(self.tools)
        return types.ListToolsResult(tools=tools)

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        self._listeners.add(ctx.session)
        async with self._listeners.reading:
            prompts = self._listeners.prompts = await self._read(self.prompts)
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._read(lambda: prompt_text(self._engine.presets(), params.name, params.arguments or {}))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool in a thread; progress is sent meanwhile, the last of it before the result."""
        if params.name not in NAMES or is_child(os.environ):
            raise MCPError(types.INVALID_PARAMS, f"no tool is called {one_line(params.name, 80)}")
        relay = Relay(ctx.session.report_progress)
        parent = Parent(self._session, KIND)

        def work(cancelled: threading.Event) -> types.CallToolResult:
            result = call_tool(
                self._engine,
                params.name,
                params.arguments or {},
                parent=parent,
                progress=lambda progress: relay.report(plain(progress.text)),
                cancelled=cancelled,
            )
            return protocol_result(result)

        return await relay.during(self._calls.run(work))

    async def notify_changes(self) -> None:
        """Read the lists again, and notify the client of those that changed. Raises SubdeckError, OSError."""
        await self._compare()
        if await self._calls.run(lambda _: self._refresh_models()):
            await self._compare()

    async def _compare(self) -> None:
        async with self._listeners.reading:
            tools = await self._calls.run(lambda _: self.tools())
            prompts = await self._calls.run(lambda _: self.prompts())
            await self._listeners.notify(tools, prompts)

    def _refresh_models(self) -> bool:
        """Bring the list of pi's models up to date; return whether it may have changed."""
        try:
            return not is_child(os.environ) and self._models.refresh()
        except AgentUnavailable as error:
            print(f"subdeck mcp: {one_line(str(error))}", file=sys.stderr, flush=True)
            return False

    async def _read(self, work: Callable[[], T]) -> T:
        """Read files in a thread; what is wrong with them, or with what was asked for, is an error of the protocol."""
        try:
            return await self._calls.run(lambda _: work())
        except SubdeckError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
