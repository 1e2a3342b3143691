"""`subdeck events` and `tool`: runs and the four delegation tools as JSON over stdio, for other programs."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Annotated, Any

import click
import msgspec
from msgspec import Struct, structs

from ..delegation.channels import REPLIED, Emission, Emitter
from ..delegation.parent import Parent, Resolved, SessionWatch, session_name
from ..engine import Engine
from ..errors import SubdeckError, UsageError
from ..project.follower import Update
from ..run.events import Decision
from ..run.model import LauncherKind, readable_preset
from ..run.requests import decision_line
from ..system.log import log_thread_faults
from ..text.decoder import UNDECODABLE, decode
from ..text.plain import one_line
from ._command import command, is_json
from ._options import OneOf
from ._stdio import Canceller, read_line, write_line
from .output import NOTHING_STARTED, error_fields, note, say

RESOLVE_TIMEOUT_S = 5.0
"""Seconds to wait for a parent's answer about a model."""


class _Parent(Struct, rename="camel"):
    session: str = "parent"
    session_file: str | None = None
    branch: list[Any] | None = None
    active_tools: tuple[str, ...] | None = None
    all_tools: tuple[str, ...] | None = None
    model: str | None = None
    runs: tuple[str, ...] = ()


class _Call(Struct):
    params: Any = None
    parent: _Parent = msgspec.field(default_factory=_Parent)
    models: tuple[str, ...] | None = None
    cwd: str | None = None
    resolves: bool = False


class _Registration(Struct):
    models: tuple[str, ...] | None = None
    key: str | None = None
    cwd: str | None = None


class _Watch(Struct):
    session: str = "parent"
    cwd: str | None = None
    runs: tuple[str, ...] = ()
    events: bool = True
    entries: str = "last"


class _Answer(Resolved, frozen=True, rename="camel"):
    id: int = 0


@command(
    "events",
    "subdeck events --json",
    "subdeck events --run 4ae0bd --json --entries all",
    json_help="Print each event as a line of JSON: channel and payload.",
)
@click.option("--run", "ref", metavar="RUN", help="Follow only this run, until it finishes.")
@click.option(
    "--entries",
    type=OneOf(["last", "all"]),
    default="last",
    help="Entries in a progress report: the last 20 (default), or all.",
)
def events(ref: str | None, entries: str) -> Annotated[None, Emission]:
    """Follow runs until ctrl-C: first a "started" event for each active run, then every new event.

    The channels are subagents:created, subagents:queued, subagents:started (also for progress, at most four times a
    second per run), subagents:needs_input, subagents:replied, subagents:idle, subagents:completed and subagents:failed.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdout was closed
        raise UsageError("stdout is closed", where="events", hint="keep it open")
    engine = Engine.open()
    run_ids = engine.find((ref,)) if ref else ()
    emitter, as_json = Emitter(engine, whole=entries == "all"), is_json()

    def show(update: Update) -> None:
        for emission in emitter.take(update):
            write_line(emission) if as_json else say(_line(emission))

    try:
        with Canceller() as canceller:
            if run_ids:
                engine.wait(run_ids, on_update=show, stop=canceller)
                return
            for update in engine.follow(canceller):
                show(update)
    except BrokenPipeError:
        return  # the reader has gone


def _line(emission: Emission) -> str:
    details = emission.payload["details"]
    summary = _decided(emission) or details.get("activity") or details.get("error") or details["description"]
    name = emission.channel.removeprefix("subagents:")
    preset = readable_preset(details["subagentType"])
    return one_line(f"{name} {details['agentId'][-6:]} {preset} {details['status']} {summary}", 400)


def _decided(emission: Emission) -> str:
    if emission.channel != REPLIED:
        return ""
    names = ("verdict", "text", "by", "rule")
    return decision_line(Decision(**{name: emission.payload[name] for name in names})) or ""


@command(
    "tool",
    "echo '{}' | subdeck tool register",
    "echo '{\"params\": {}}' | subdeck tool call background_agent_status",
)
@click.argument("action", type=OneOf(["register", "call", "watch"]))
@click.argument("name", required=False)
def tool(action: str, name: str | None) -> int:
    """Serve the delegation tools to a parent agent's extension: one line of JSON on stdin, lines of JSON on stdout.

    `register` prints the tools to register now. `call NAME` calls one; the end of stdin, or TERM, cancels the call.
    `watch` reports a session's background runs until stdin ends.
    """
    log_thread_faults()
    match action:
        case "register":
            return _register()
        case "call":
            return _call(name or "")
        case _:
            return _watch()


def _register() -> int:
    from ..delegation.schema import lenient, registration_key, tools_for

    key = None
    try:
        asked = read_line(_Registration)
        key = asked.key
        tools = tools_for(Engine.open(asked.cwd, session="parent", kind=LauncherKind.PI), asked.models)
    except (SubdeckError, OSError) as error:
        write_line({"register": False, "key": key, "tools": [], "error": error_fields(error)})
        return NOTHING_STARTED
    new_key = registration_key(tools) if tools else key
    fields = ("name", "label", "description")
    offered = [
        {**{field: getattr(tool, field) for field in fields}, "parameters": lenient(tool.parameters)}
        for tool in (tools if new_key != key else ())
    ]
    write_line({"register": bool(offered), "key": new_key, "tools": offered})
    return 0


def _call(name: str) -> int:
    from ..delegation.call import call_tool
    from ..delegation.results import ToolProgress, rejection, tool_error

    with Canceller() as canceller:
        try:
            asked = read_line(_Call)
            answers = _Answers(canceller)
            parent_fields: dict[str, Any] = structs.asdict(asked.parent)
            parent_fields["session"] = session_name(asked.parent.session)
            resolve = answers.resolve if asked.resolves else None
            parent = Parent(**parent_fields, kind=LauncherKind.PI, models=asked.models, resolve=resolve)
            engine = Engine.open(asked.cwd, session=parent.session, kind=parent.kind)
        except (SubdeckError, OSError) as error:
            answer = rejection([tool_error(error)])
        else:

            def tell(progress: ToolProgress) -> None:
                write_line({"type": "progress", "text": progress.text, "details": progress.details})

            answer = call_tool(engine, name, asked.params, parent=parent, progress=tell, cancelled=canceller)
        write_line({"type": "result", "text": answer.text, "details": answer.details, "isError": answer.is_error})
    return 0


def _watch() -> int:
    with Canceller() as canceller:
        try:
            asked = read_line(_Watch)
            session = session_name(asked.session)
            engine = Engine.open(asked.cwd, session=session, kind=LauncherKind.PI)
        except (SubdeckError, OSError) as error:
            write_line({"type": "error", "error": error_fields(error)})
            return NOTHING_STARTED
        _Answers(canceller)
        watch = SessionWatch(session, asked.runs)
        emitter = Emitter(engine, wanted=watch.owns, whole=asked.entries == "all") if asked.events else None
        for update in engine.follow(canceller):
            for emission in emitter.take(update) if emitter else ():
                write_line({"type": "event", "channel": emission.channel, "payload": emission.payload})
            for line in watch.take(update):
                write_line(line)
            for run in watch.ended:
                engine.claim(run)
    return 0


class _Answers:
    """Reads stdin after its first line: the parent's answers about models, until the parent has gone."""

    def __init__(self, canceller: Canceller) -> None:
        self._partial_line = b""
        self._by_id: dict[int, Resolved] = {}
        self._asked = 0
        canceller.listen(self._read)

    def resolve(self, ref: str) -> Resolved | None:
        """Ask the parent which model a reference means; None if it does not know, or does not answer in time."""
        self._asked += 1
        write_line({"type": "resolve", "id": self._asked, "ref": ref})
        deadline = time.monotonic() + RESOLVE_TIMEOUT_S
        while (left := deadline - time.monotonic()) > 0 and select.select((0,), (), (), left)[0] and self._read():
            if answer := self._by_id.get(self._asked):
                return answer if answer.resolved or answer.error else None
        return None

    def _read(self) -> bool:
        try:
            block = os.read(0, 64 * 1024)
        except OSError:
            block = b""
        *lines, self._partial_line = (self._partial_line + block).split(b"\n")
        for line in lines:
            try:
                answer = decode(line, _Answer)
                self._by_id[answer.id] = answer
            except UNDECODABLE:
                note("subdeck: a line on stdin was not a valid answer")
        return bool(block)
