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
from .wire import prompt_text, prompts_of, result_of, tool_of

T = TypeVar("T")

Context = ServerRequestContext[Any, Any]

KIND = LauncherKind.MCP


class Door:
    """The handlers of one client's requests; each looks at files as they are now."""

    def __init__(self, engine: Engine, session: str, calls: Calls, listeners: Listeners) -> None:
        self._engine = engine
        self._session = session
        self._calls = calls
        self._listeners = listeners
        self._learner = ModelListRefresher(engine)

    def tools(self) -> list[types.Tool]:
        """Return the tools by the rules of registration, asked anew each time. Raises SettingsError."""
        specs = tools_for(self._engine)
        if not specs and self._learn():
            specs = tools_for(self._engine)
        return [tool_of(spec) for spec in specs]

    def prompts(self) -> list[types.Prompt]:
        """Return a prompt for each preset; none where no tool could launch it."""
        return prompts_of(self._engine.presets().presets) if self.tools() else []

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._listeners.add(ctx.session)
        async with self._listeners.looking:
            tools = self._listeners.tools = await self._look(self.tools)
        return types.ListToolsResult(tools=tools)

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        self._listeners.add(ctx.session)
        async with self._listeners.looking:
            prompts = self._listeners.prompts = await self._look(self.prompts)
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._look(lambda: prompt_text(self._engine.presets(), params.name, params.arguments or {}))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Work in a thread; progress is sent meanwhile, the last of it before the answer."""
        if params.name not in NAMES or is_child(os.environ):
            raise MCPError(types.INVALID_PARAMS, f"no tool is called {one_line(params.name, 80)}")
        relay = Relay(ctx.session.report_progress)
        parent = Parent(self._session, KIND)

        def work(cancelled: threading.Event) -> types.CallToolResult:
            answer = call_tool(
                self._engine,
                params.name,
                params.arguments or {},
                parent=parent,
                progress=lambda progress: relay.tell(plain(progress.text)),
                cancelled=cancelled,
            )
            return result_of(answer)

        return await relay.during(self._calls.run(work))

    async def tell_changes(self) -> None:
        """Look at the lists again, and tell the client which are others now. Raises SubdeckError, OSError."""
        await self._compare()
        if await self._calls.run(lambda _: self._learn()):
            await self._compare()

    async def _compare(self) -> None:
        async with self._listeners.looking:
            tools = await self._calls.run(lambda _: self.tools())
            prompts = await self._calls.run(lambda _: self.prompts())
            await self._listeners.tell(tools, prompts)

    def _learn(self) -> bool:
        """Have pi's models known; return whether there may be others than before."""
        try:
            return not is_child(os.environ) and self._learner.learn()
        except AgentUnavailable as error:
            print(f"subdeck mcp: {one_line(str(error))}", file=sys.stderr, flush=True)
            return False

    async def _look(self, work: Callable[[], T]) -> T:
        """Read files in a thread; what is wrong with them, or with what was asked for, is an error of the protocol."""
        try:
            return await self._calls.run(lambda _: work())
        except SubdeckError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
