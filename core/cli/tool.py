"""`subdeck tool`: the three tools as JSON over stdio, for doors that are not Python."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from msgspec import Struct

from ..delegation.parent import Parent, Resolved, session_name
from ..engine import Engine
from ..errors import SubdeckError, UsageError
from .cancel import Canceller
from .json_lines import read_line, write_line
from .options import json_option
from .output import note

if TYPE_CHECKING:
    from ..delegation.channels import Emission, Emitter
    from ..project.follower import Update

PATIENCE = 5.0
"""Seconds to wait for what a parent makes of a model reference."""

NOTHING_DONE = 2

_T = TypeVar("_T")


class _Parent(Struct, rename="camel"):
    session: str = "parent"
    session_file: str | None = None
    branch: list[Any] | None = None
    active_tools: tuple[str, ...] | None = None
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


class _Answered(Struct, rename="camel"):
    id: int = 0
    resolved: str | None = None
    thinking_level: str | None = None
    error: str | None = None


@click.command("tool")
@click.argument("action", type=click.Choice(["register", "call", "watch"]))
@click.argument("name", required=False)
@json_option
def command(action: str, name: str | None, as_json: bool) -> int:
    """The delegation tools for a parent agent's extension: one line of JSON on stdin, lines of JSON on stdout.

    register tells which tools to register now. call NAME calls one; the end of stdin, or TERM, cancels it. watch tells
    of a session's background runs until stdin ends.
    """
    doing: dict[str, Callable[[], int]] = {
        "register": _register,
        "call": lambda: _call(name or ""),
        "watch": _watch,
    }
    return doing[action]()


def _read(form: type[_T]) -> _T:
    """Read the line that says what is wanted. Raises UsageError."""
    try:
        return msgspec.convert(read_line(), form)
    except msgspec.ValidationError as error:
        raise UsageError(f"the line on stdin does not fit: {error}", where="stdin") from error


def _register() -> int:
    from ..delegation.schema import described, models_of, registration_key, should_register, tools_for

    key = None
    try:
        asked = _read(_Registration)
        key = asked.key
        tools = tools_for(Engine.open(asked.cwd, session="parent", kind="pi"), asked.models)
    except (SubdeckError, OSError) as error:
        write_line({"register": False, "key": key, "tools": [], "error": _fields(error)})
        return NOTHING_DONE
    models = models_of(tools)
    text = described(tools)
    wanted = should_register(key, models, os.environ, text)
    told = ("name", "label", "description", "parameters")
    write_line(
        {
            "register": wanted,
            "key": registration_key(models, text) if wanted else key,
            "tools": [{field: getattr(tool, field) for field in told} for tool in tools] if wanted else [],
        }
    )
    return 0


def _call(name: str) -> int:
    from ..delegation.answers import ToolProgress
    from ..delegation.call import call_tool
    from ..delegation.errors import explain, refusal

    cancelled = threading.Event()
    with Canceller() as canceller:
        canceller.grant(cancelled.set)
        try:
            asked = _read(_Call)
            answers = _Answers(canceller)
            parent = _parent_of(asked, answers.resolve if asked.resolves else None)
            engine = Engine.open(asked.cwd, session=parent.session, kind=parent.kind)
        except (SubdeckError, OSError) as error:
            wrapped = error if isinstance(error, SubdeckError) else SubdeckError(str(error))
            answer = refusal([explain(wrapped)])
        else:

            def tell(progress: ToolProgress) -> None:
                write_line({"type": "progress", "text": progress.text, "details": progress.details})

            answer = call_tool(engine, name, asked.params, parent=parent, progress=tell, cancelled=cancelled)
        write_line({"type": "result", "text": answer.text, "details": answer.details, "isError": answer.is_error})
    return 0


def _watch() -> int:
    from ..delegation.channels import Emitter
    from ..delegation.session_watch import SessionWatch
    from ..system.iterate_in_thread import iterate_in_thread

    stop = threading.Event()
    with Canceller() as canceller:
        canceller.grant(stop.set)
        try:
            asked = _read(_Watch)
            session = session_name(asked.session)
            engine = Engine.open(asked.cwd, session=session, kind="pi")
        except (SubdeckError, OSError) as error:
            write_line({"type": "error", "error": _fields(error)})
            return NOTHING_DONE
        _Answers(canceller)
        watch = SessionWatch(session, asked.runs)
        emitter = Emitter(engine, wanted=watch.owns, whole=asked.entries == "all") if asked.events else None

        def follow(put: Callable[[Update], None]) -> None:
            for update in engine.updates(stop):
                put(update)

        try:
            for update in iterate_in_thread(follow, emitter.due_in if emitter else lambda: None):
                for emission in _emitted(emitter, update):
                    write_line({"type": "event", "channel": emission.channel, "payload": emission.payload})
                for line in watch.take(update) if update else ():
                    write_line(line)
                for run in watch.told:
                    engine.claim(run)
        finally:
            stop.set()
    return 0


def _emitted(emitter: Emitter | None, update: Update | None) -> Iterable[Emission]:
    if emitter is None:
        return ()
    return emitter.flush() if update is None else emitter.take(update)


def _parent_of(asked: _Call, resolve: Callable[[str], Resolved | None] | None) -> Parent:
    told = asked.parent
    return Parent(
        session=session_name(told.session),
        kind="pi",
        session_file=told.session_file,
        branch=told.branch,
        active_tools=told.active_tools,
        model=told.model,
        models=asked.models,
        runs=told.runs,
        resolve=resolve,
    )


class _Answers:
    """Listens to stdin after its first line: what the parent answers, and that it has gone."""

    def __init__(self, canceller: Canceller) -> None:
        self._canceller = canceller
        self._arrived: SimpleQueue[_Answered] = SimpleQueue()
        self._asked = 0
        threading.Thread(target=self._listen, name="stdin", daemon=True).start()

    def resolve(self, ref: str) -> Resolved | None:
        """Ask the parent what a model reference stands for; None when it does not know, or says nothing in time."""
        self._asked += 1
        write_line({"type": "resolve", "id": self._asked, "ref": ref})
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            try:
                answer = self._arrived.get(timeout=left)
            except Empty:
                return None
            if answer.id == self._asked:
                known = answer.resolved or answer.error
                return Resolved(answer.resolved or "", answer.thinking_level, answer.error or "") if known else None
        return None

    def _listen(self) -> None:
        """Read without the buffered stream's lock, which the end of the process would wait for."""
        rest = b""
        while chunk := _more():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                try:
                    self._arrived.put(msgspec.json.decode(line, type=_Answered))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    note("subdeck: a line on stdin was no answer")
        self._canceller.ask()


def _more() -> bytes:
    try:
        return os.read(0, 64 * 1024)
    except OSError:
        return b""


def _fields(error: SubdeckError | OSError) -> dict[str, str]:
    if isinstance(error, SubdeckError):
        return {"what": error.what, "where": error.where, "hint": error.hint}
    return {"what": error.strerror or str(error), "where": str(error.filename or ""), "hint": ""}
