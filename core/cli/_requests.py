"""Requests of a run while a command waits for it: a line for each, and the command that answers it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..run.describe import INTERRUPTED
from ..run.events import Request
from ..run.model import RequestKind
from ..run.requests import request_hash, request_line, run_rule_line
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from .output import as_typed


class Asking:
    """Reports each request and interruption of runs once."""

    def __init__(self) -> None:
        self._named: dict[str, set[str]] = {}
        """By run: its reported requests, and `INTERRUPTED` while it is interrupted."""

    def new(self, runs: Iterable[RunSnapshot]) -> Iterator[tuple[str, str]]:
        """Yield each new request or interruption, and the command that answers it."""
        for run in runs:
            waits = {request.id: (asks_line(run, request), how_to_reply(run, request)) for request in run.requests}
            if run.is_interrupted:
                name = run.meta.short_id
                waits[INTERRUPTED] = (
                    f"{name} is interrupted and waits for your message",
                    as_typed(f"subdeck send {name} TEXT continues it"),
                )
            before = self._named.get(run.run_id, set())
            self._named[run.run_id] = (before | waits.keys()) - ({INTERRUPTED} - waits.keys())
            yield from (line_and_command for waiting, line_and_command in waits.items() if waiting not in before)


def asks_line(run: RunSnapshot, request: Request) -> str:
    return f"{run.meta.short_id} needs input: {request_line(request, cwd=run.meta.cwd)}"


def reply_command(run: RunSnapshot, request: Request) -> str:
    """Return the beginning of the command that answers this request, and never a later one."""
    read = request_hash(run.run_id, request)
    return as_typed(f"subdeck reply {run.meta.short_id} --request {one_line(request.id, 40)} --hash {read}")


def how_to_reply(run: RunSnapshot, request: Request) -> str:
    """Return `subdeck reply 4ae0bd --request q1 --hash … allow|deny answers; --run also allows …`."""
    command = reply_command(run, request)
    match request.kind:
        case RequestKind.PERMISSION:
            rule = run_rule_line(request)
            if request.missing:
                return f"{command} deny answers"
            more = f"; add --run to allow {rule} for the rest of this run" if rule else ""
            return f"{command} allow|deny answers{more}"
        case RequestKind.CHOICE | RequestKind.QUESTION if request.choices:
            numbers = "|".join(map(str, range(1, min(len(request.choices), 9) + 1)))
            return f"{command} {numbers}{'' if request.kind is RequestKind.CHOICE else '|TEXT'}|deny answers"
        case RequestKind.FORM:
            return f'{command} \'{{"NAME": "VALUE"}}\'|deny answers'
        case _:
            return f"{command} TEXT|deny answers"
