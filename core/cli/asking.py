"""What a child asks while somebody waits for its run at the command line: that it does, and how to reply."""

from __future__ import annotations

from collections.abc import Iterable

from ..run.events import Request
from ..run.model import RequestKind
from ..run.requests import request_line
from ..run.snapshot import RunSnapshot


class Asking:
    """Names each request once."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()

    def new(self, runs: Iterable[RunSnapshot]) -> list[tuple[RunSnapshot, Request]]:
        """Return the open requests of these runs that were not named before."""
        found = [(run, request) for run in runs if run.is_waiting for request in run.requests]
        new = [(run, request) for run, request in found if (run.run_id, request.id) not in self._named]
        self._named.update((run.run_id, request.id) for run, request in new)
        return new


def asks_line(run: RunSnapshot, request: Request) -> str:
    return f"{run.meta.short_id} waits for an answer: {request_line(request)}"


def how_to_reply(run: RunSnapshot, request: Request) -> str:
    """Return `subdeck reply 4ae0bd q1 allow|deny answers; --run allows it for the rest of this run`."""
    command = f"subdeck reply {run.meta.short_id} {request.id}"
    match request.kind:
        case RequestKind.PERMISSION:
            more = "; --run allows it for the rest of this run" if request.run_rule else ""
            return f"{command} allow|deny answers{more}"
        case RequestKind.CHOICE | RequestKind.QUESTION if request.choices:
            numbers = "|".join(map(str, range(1, min(len(request.choices), 9) + 1)))
            return f"{command} {numbers}{'' if request.kind is RequestKind.CHOICE else '|TEXT'}|deny answers"
        case RequestKind.FORM:
            return f'{command} \'{{"NAME": "VALUE"}}\'|deny answers'
        case _:
            return f"{command} TEXT|deny answers"
