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
from .handlers import Door
from .listeners import Listeners
from .refresh import follow

INSTRUCTIONS = """\
subdeck runs coding subagents from presets. Call subagent to delegate and wait, background_agent to delegate and go \
on, background_agent_status to see how that stands. The person sees every run in their deck and may stop it."""


def serve(engine: Engine, session: str, calls: Calls) -> None:
    """Return one client until its end of stdin; what it still waits for then is cancelled."""
    anyio.run(_serve, engine, session, calls)


async def _serve(engine: Engine, session: str, calls: Calls) -> None:
    listeners = Listeners()
    door = Door(engine, session, calls, listeners)
    server: Server[dict[str, object]] = Server(
        "subdeck",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
        on_list_prompts=door.list_prompts,
        on_get_prompt=door.get_prompt,
        on_subscriptions_listen=ListenHandler(listeners.bus),
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True, prompts_changed=True))
    async with anyio.create_task_group() as tasks, stdio_server() as (requests, answers):
        tasks.start_soon(_follow_changes, engine, door)
        await server.run(requests, answers, options)
        tasks.cancel_scope.cancel()


async def _follow_changes(engine: Engine, door: Door) -> None:
    """Have the door look again after each change of a file."""
    loop, changed, stop = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    watching = (engine, stop, lambda: in_loop(loop, changed.set))
    watcher = threading.Thread(target=follow, args=watching, name="changes", daemon=True)
    watcher.start()
    try:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await door.tell_changes()
            except (SubdeckError, OSError) as error:
                print(f"subdeck mcp: {one_line(str(error))}", file=sys.stderr, flush=True)
    finally:
        stop.set()
        watcher.join(1)  # a moment: it looks every few milliseconds


def leave(calls: Calls) -> None:
    """End the process in order from another thread: runs that are waited for are told to stop, then it is over.

    At once, because the thread that reads stdin cannot be called back.
    """
    calls.cancel_all()
    os._exit(0)
