"""Interactive runs without a wrapper: this process writes their events and reads their inbox."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run.events import Event, Request, RunStarted, encode_event
from subdeck.core.run.inbox import Inbox, InboxEntry
from subdeck.core.run.model import RequestKind

from tests.factories import make_meta, make_run


class Listening:
    """A run whose lock this process holds."""

    def __init__(self, project: Project, *events: Event, talk: bool | None = True, **meta: Any) -> None:
        self.meta, self._lock = make_run(project, make_meta(talk=talk, **{"background": True, **meta}))
        self.run_id = self.meta.run_id
        self.short_id = self.meta.short_id
        self.directory = Path(project.run_dir(self.run_id))
        self.inbox = Inbox(str(self.directory))
        self._seq = 0
        self.write(*events)

    def write(self, *events: Event) -> None:
        """Write events like its wrapper."""
        for event in events:
            self._seq += 1
            with (self.directory / paths.EVENTS).open("ab") as file:
                file.write(encode_event(replace(event, seq=self._seq, ts=event.ts or paths.now_iso())))

    def take(self) -> list[InboxEntry]:
        """Return the entries sent since the last call."""
        return self.inbox.take()

    def let_go(self) -> None:
        """Release the run's lock."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def _start() -> RunStarted:
    return RunStarted(pid=os.getpid(), child_pid=os.getpid(), attempt=1, max_attempts=1)


@contextmanager
def listening(project: Project, *events: Event, **meta: Any) -> Iterator[Listening]:
    """Make a running run whose agent has written these events."""
    run = Listening(project, _start(), *events, **meta)
    try:
        yield run
    finally:
        run.let_go()


@contextmanager
def answering(run: Listening, answer: Callable[[InboxEntry], Iterable[Event]]) -> Iterator[None]:
    """Answer the run's inbox in the background: write the events that `answer` returns for each entry."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.005):
            for entry in run.take():
                run.write(*answer(entry))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def permission(number: int = 1, **fields: Any) -> Request:
    """Return a request for permission to run a command."""
    known: dict[str, Any] = {
        "kind": RequestKind.PERMISSION,
        "title": "wants to run a command",
        "tool_name": "bash",
        "command": "rm -rf build",
        "run_rule": "bash(rm *)",
    }
    return Request(id=f"q{number}", **(known | fields))


def choice(number: int = 1, **fields: Any) -> Request:
    """Return a question with several choices."""
    known: dict[str, Any] = {
        "kind": RequestKind.CHOICE,
        "title": "asks",
        "text": "Which database?",
        "choices": ("SQLite", "PostgreSQL"),
    }
    return Request(id=f"q{number}", **(known | fields))
