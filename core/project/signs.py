"""Look why a run is not done: its processes, and the last of its events. Nothing is started by looking."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import paths
from ..run import artifacts
from ..text.plain import one_line
from .diagnosis import Process, Signs

if TYPE_CHECKING:
    from ..run.events import Event, RunStarted, ToolCall
    from ..run.model import RunSnapshot
    from ..run.tail import LineTail

WINDOW = 512 * 1024
"""Bytes before the end of the events where reading begins: a call that is waited for is among the last."""
SUBJECT = 100
"""Characters of what a call is about."""
_SUBJECTS = ("command", "pattern", "query", "path", "file_path", "url")
"""Arguments that say best what a call is about, the best first."""


class SignReader:
    """Looks at one run again and again; each event is read once."""

    def __init__(self, project: paths.Project, run_id: str) -> None:
        self._run_dir = project.run_dir(run_id)
        self._events_path = os.path.join(self._run_dir, paths.EVENTS)
        self._tail: LineTail | None = None
        self._calls: dict[str, str] = {}
        self._started: RunStarted | None = None
        self._waits_for = ""
        self._retry = ""
        self.text = ""
        """The last text of the agent that is whole."""

    def read(self, run: RunSnapshot) -> Signs:
        """Answer what is known now of a run that stands so."""
        if run.is_terminal:
            return Signs(result=artifacts.read_result(self._run_dir))
        from .liveness import is_here

        self._drain()
        stop = artifacts.read_stop(self._run_dir)
        seen = Signs(waits_for=self._waits_for, calls=tuple(self._calls.values()), retry=self._retry, stop=stop)
        facts = artifacts.read_runner(self._run_dir)
        if facts is None:
            return seen
        from msgspec.structs import replace

        if not is_here(facts):
            return replace(seen, elsewhere=facts.host)
        child = self._started
        return replace(
            seen,
            wrapper=_process(facts.pid, facts.pid_started),
            child=_process(child.child_pid, child.child_pid_started) if child else None,
        )

    def _drain(self) -> None:
        from ..run.events import decode_event

        tail = self._tail = self._tail or self._from_near_the_end()
        for line in tail.lines():
            if (event := decode_event(line)) is not None:
                self._apply(event)

    def _from_near_the_end(self) -> LineTail:
        """Begin where the last events do; of those before, the first says which process is the child's."""
        from ..run.tail import LineTail

        try:
            with open(self._events_path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size <= WINDOW:
                    return LineTail(self._events_path)
                file.seek(0)
                self._apply_line(file.readline(WINDOW))
                self._apply_line(file.readline(WINDOW))
                file.seek(size - WINDOW)
                file.readline()
                return LineTail(self._events_path, file.tell())
        except OSError:
            return LineTail(self._events_path)

    def _apply_line(self, line: bytes) -> None:
        from ..run.events import decode_event

        if (event := decode_event(line)) is not None:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        from ..run.events import AssistantText, Queued, Retry, RunStarted, ToolCall, ToolResult

        self._retry = ""
        match event:
            case Queued():
                self._waits_for = event.waits_for
            case RunStarted():
                self._started, self._waits_for = event, ""
                self._calls.clear()
            case ToolCall():
                self._calls[event.tool_call_id] = _named(event)
            case ToolResult():
                self._calls.pop(event.tool_call_id, None)
            case AssistantText() if event.text.strip():
                self.text = event.text
            case Retry():
                seconds = f" in {event.delay_ms / 1000:g} s" if event.delay_ms else ""
                self._retry = f"retries{seconds}: {one_line(event.reason, SUBJECT)}"
            case _:
                pass


def _named(call: ToolCall) -> str:
    """Say which tool works on what: `bash: pytest -q`."""
    name = one_line(call.tool_name, 60) or "a tool"
    texts = {key: value for key, value in call.args.items() if isinstance(value, str) and value.strip()}
    subject = next((texts[key] for key in (*_SUBJECTS, *texts) if key in texts), "")
    return f"{name}: {one_line(subject, SUBJECT)}" if subject else name


def _process(pid: int, started: int | None) -> Process | None:
    """Answer None for a process without a start time: its pid alone proves nothing."""
    from ..system.processes import is_alive

    return None if started is None else Process(pid, is_alive(pid, started))
