"""One server for one client, over stdin and stdout, until the client goes."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import anyio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler

from .. import __version__
from ..engine import Engine
from ..errors import SubdeckError
from ..text.plain import one_line
from .calls import Calls, in_loop
from .handlers import Handlers
from .listeners import Listeners
from .refresh import watch_files

INSTRUCTIONS = """\
subdeck runs coding subagents from presets. Call subagent to delegate and wait, background_agent to delegate and \
continue, background_agent_status to look at those runs. The person sees every run in their deck and may stop it."""


def serve(engine: Engine, session: str, calls: Calls) -> None:
    """Serve one client until the end of stdin; calls that are still open then are cancelled."""
    anyio.run(_serve, engine, session, calls)


async def _serve(engine: Engine, session: str, calls: Calls) -> None:
    listeners = Listeners()
    handlers = Handlers(engine, session, calls, listeners)
    server: Server[dict[str, object]] = Server(
        "subdeck",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_subscriptions_listen=ListenHandler(listeners.bus),
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True, prompts_changed=True))
    async with anyio.create_task_group() as tasks, stdio_server() as (requests, replies):
        tasks.start_soon(_follow_changes, engine, handlers)
        await server.run(requests, replies, options)
        tasks.cancel_scope.cancel()


async def _follow_changes(engine: Engine, handlers: Handlers) -> None:
    """Have the lists read again after each change of a file."""
    loop, changed, stop = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    watching = (engine, stop, lambda: in_loop(loop, changed.set))
    watcher = threading.Thread(target=watch_files, args=watching, name="changes", daemon=True)
    watcher.start()
    try:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await handlers.notify_changes()
            except (SubdeckError, OSError) as error:
                print(f"subdeck mcp: {one_line(str(error))}", file=sys.stderr, flush=True)
    finally:
        stop.set()
        watcher.join(1)  # a moment: it looks every few milliseconds


def leave(calls: Calls) -> None:
    """End the process from another thread, after asking the runs of open calls to stop.

    It ends at once, because the thread that reads stdin cannot be interrupted.
    """
    calls.cancel_all()
    os._exit(0)
