"""One server for one client, over stdin and stdout, until the client goes: the three tools, and presets as prompts."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .. import __version__, paths
from ..agents.base import AgentKind
from ..agents.pi.models import cached_listing, list_key, refresh_models
from ..delegation.call import call_tool
from ..delegation.parent import Parent
from ..delegation.results import CallResult
from ..delegation.schema import NAMES, STATUS, ToolSpec, is_child, tools_for
from ..engine import Engine
from ..errors import AgentUnavailable, SubdeckError, UsageError
from ..presets.catalog import Preset, PresetCatalog, preset_places
from ..project.follower import watch
from ..run.model import LauncherKind
from ..text.plain import one_line, plain
from .calls import Calls, Relay, in_loop

INSTRUCTIONS = """\
subdeck runs coding subagents from presets. Call subagent to delegate and wait, background_agent to delegate and \
continue, background_agent_status to look at those runs. The person sees every run in their deck and may stop it."""

ALWAYS_LOAD = {"anthropic/alwaysLoad": True}
"""Claude Code keeps the description of a tool without it out of the conversation until the model searches for it."""

TASK = "task"
"""The one argument of each prompt."""

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


def serve(engine: Engine, session: str, until: Callable[[], None]) -> None:
    """Serve one client until the end of stdin, or until `until` returns; calls that are still open are cancelled.

    In the second case the process ends at once, because the thread that reads stdin cannot be interrupted.
    """
    calls = Calls()

    def leave() -> None:
        until()
        calls.cancel_all()
        os._exit(0)

    threading.Thread(target=leave, name="canceller", daemon=True).start()
    anyio.run(_serve, engine, session, calls)


async def _serve(engine: Engine, session: str, calls: Calls) -> None:
    handlers = _Handlers(engine, session, calls)
    server: Server[dict[str, object]] = Server(
        "subdeck",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_subscriptions_listen=ListenHandler(handlers.bus),
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True, prompts_changed=True))
    async with anyio.create_task_group() as tasks, stdio_server() as (requests, replies):
        tasks.start_soon(_follow_changes, engine, handlers)
        await server.run(requests, replies, options)
        tasks.cancel_scope.cancel()


async def _follow_changes(engine: Engine, handlers: _Handlers) -> None:
    """Have the lists read again after each change of a file."""
    loop, changed, stop = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    watching = (engine, stop, lambda: in_loop(loop, changed.set))
    watcher = threading.Thread(target=_watch_files, args=watching, name="changes", daemon=True)
    watcher.start()
    try:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await handlers.notify_changes()
            except (SubdeckError, OSError) as error:
                _complain(error)
    finally:
        stop.set()
        watcher.join(1)  # a moment: it looks every few milliseconds


def _watch_files(engine: Engine, stop: threading.Event, changed: Callable[[], None]) -> None:
    """Call `changed` for each change of a file that presets, settings or models come from, until `stop` is set.

    They are watched directly, not through `Engine.updates`: this server shows no runs and need not read them.
    """

    def directories() -> tuple[str, ...]:
        presets = (directory for _, directory in preset_places(engine.workspace))
        return (*presets, engine.project.home, os.path.dirname(paths.user_settings_file()), paths.agent_dir())

    while not stop.is_set():
        workspace = engine.workspace
        for change in watch(engine.project, directories, stop):
            if change.presets:
                changed()
            # Whoever lists the tools reads the settings again; they may name other directories now.
            if engine.workspace is not workspace:
                break


class _Handlers:
    """The handlers of one client's requests, and the lists of tools and prompts as the client knows them.

    Each reads the files as they are now. The client is notified of a list that changed, unless it never asked for it:
    clients that begin with a handshake by a message, those of later protocol versions through `bus`.
    """

    def __init__(self, engine: Engine, session: str, calls: Calls) -> None:
        self.bus = InMemorySubscriptionBus()
        self._engine = engine
        self._parent = Parent(session, LauncherKind.MCP)
        self._calls = calls
        self._asking = threading.Lock()
        """Held while pi is asked for its models."""
        self._asked_at: dict[str, str] = {}
        """The state of the files that pi's list depends on, when pi was asked last."""
        self._tools: list[types.Tool] | None = None
        self._prompts: list[types.Prompt] | None = None
        self._reading = asyncio.Lock()
        """Held from reading the files until the lists here are set, so that no change is missed in between."""
        self._with_handshake: ServerSession | None = None
        """Any session reaches the client, since a process has only one."""

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._listen(ctx.session)
        async with self._reading:
            tools = self._tools = await self._answer(self._read_tools)
        return types.ListToolsResult(tools=tools)

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        self._listen(ctx.session)
        async with self._reading:
            prompts = self._prompts = await self._answer(self._read_prompts)
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._answer(lambda: _prompt_text(self._engine.presets(), params.name, params.arguments or {}))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool in a thread; progress is sent meanwhile, the last of it before the result."""
        if params.name not in NAMES or is_child():
            raise MCPError(types.INVALID_PARAMS, f"no tool is called {one_line(params.name, 80)}")
        relay = Relay(ctx.session.report_progress)

        def work(cancelled: threading.Event) -> types.CallToolResult:
            result = call_tool(
                self._engine,
                params.name,
                params.arguments or {},
                parent=self._parent,
                progress=lambda progress: relay.report(plain(progress.text)),
                cancelled=cancelled,
            )
            return _protocol_result(result)

        return await relay.during(self._calls.run(work))

    async def notify_changes(self) -> None:
        """Read the lists again, and notify the client of those that changed. Raises SubdeckError, OSError."""
        await self._compare()
        if await self._calls.run(lambda _: self._refresh_models()):
            await self._compare()

    async def _compare(self) -> None:
        async with self._reading:
            tools = await self._calls.run(lambda _: self._read_tools())
            prompts = await self._calls.run(lambda _: self._read_prompts())
            if self._tools not in (None, tools):
                self._tools = tools
                await self.bus.publish(ToolsListChanged())
                if self._with_handshake:
                    await self._with_handshake.send_tool_list_changed()
            if self._prompts not in (None, prompts):
                self._prompts = prompts
                await self.bus.publish(PromptsListChanged())
                if self._with_handshake:
                    await self._with_handshake.send_prompt_list_changed()

    def _listen(self, session: ServerSession) -> None:
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._with_handshake = session

    def _read_tools(self) -> list[types.Tool]:
        specs = tools_for(self._engine)
        if not specs and self._refresh_models():
            specs = tools_for(self._engine)
        return [_protocol_tool(spec) for spec in specs]

    def _read_prompts(self) -> list[types.Prompt]:
        """Return a prompt for each preset; none where there is no tool to launch it."""
        return _protocol_prompts(self._engine.presets().presets) if self._read_tools() else []

    def _refresh_models(self) -> bool:
        """Bring the list of pi's models up to date; return whether pi was asked, which takes a second or two.

        A client of MCP announces no models of its own, unlike pi as a parent. pi is asked at most once for each state
        of the files that its list depends on.
        """
        if is_child():
            return False
        try:
            agent = self._engine.agent()
            if agent.name == AgentKind.OFFLINE:
                return False
            with self._asking:
                state = list_key(agent.command)
                if state == self._asked_at or cached_listing(agent.command).complete:
                    return False
                self._asked_at = state
                refresh_models(agent.command)
                return True
        except AgentUnavailable as error:
            _complain(error)
            return False

    async def _answer(self, work: Callable[[], T]) -> T:
        """Read files in a thread; what is wrong with them, or with what was asked for, is an error of the protocol."""
        try:
            return await self._calls.run(lambda _: work())
        except SubdeckError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error


def _complain(error: Exception) -> None:
    print(f"subdeck mcp: {one_line(str(error))}", file=sys.stderr, flush=True)


def _protocol_tool(spec: ToolSpec) -> types.Tool:
    only_reads = spec.name == STATUS
    return types.Tool(
        name=spec.name,
        title=spec.label,
        description=spec.description,
        input_schema=spec.parameters,
        output_schema=spec.output,
        annotations=types.ToolAnnotations(read_only_hint=only_reads, idempotent_hint=only_reads),
        _meta=None if only_reads else dict(ALWAYS_LOAD),
    )


def _protocol_result(result: CallResult) -> types.CallToolResult:
    """Return text for people and structured content, which is what Claude Code and Codex show to the model."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=plain(result.text))],
        structured_content=result.structured,
        is_error=result.is_error,
    )


def _protocol_prompts(presets: Iterable[Preset]) -> list[types.Prompt]:
    return [
        types.Prompt(
            name=preset.name,
            title=preset.name,
            description=one_line(preset.description, 200),
            arguments=[types.PromptArgument(name=TASK, description="what the subagent should do", required=True)],
        )
        for preset in presets
    ]


def _prompt_text(catalog: PresetCatalog, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Fill in a prompt. Raises PresetError for an unknown preset, UsageError for other arguments than the task."""
    preset = catalog.get(name)
    task = arguments.get(TASK, "").strip()
    if not task or set(arguments) != {TASK}:
        raise UsageError(f'the prompt "{one_line(name, 80)}" takes one argument: {TASK}', where="prompts/get")
    text = (
        f"Call the tool subagent with preset {one_line(preset.name)} for this task, "
        f"then tell me what it found or did:\n\n{task}"
    )
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=one_line(preset.description, 200), messages=[message])
