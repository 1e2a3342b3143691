"""A recorded stream of Codex; its first message shows which of the two formats it has."""

from __future__ import annotations

from ...run.events import Event
from ...run.outcome import StreamFacts
from .._json_lines import decode
from .._stream import OneWay
from ..sentence import Sentence
from ._app_stream import UPDATES, AppStream
from ._exec_run import ExecStream
from ._stream import CodexStream


class RecordedStream(OneWay):
    """Reads either format; nothing is sent to an agent that is gone."""

    updates = UPDATES
    """No line of `exec` has one of these prefixes."""
    is_stdin_done = True

    def __init__(self) -> None:
        self._stream: CodexStream = AppStream()
        self._is_chosen = False

    def feed(self, line: bytes) -> list[Event]:
        if not self._is_chosen and (fields := decode(line)):
            self._is_chosen = True
            if "type" in fields and "method" not in fields:
                self._stream = ExecStream()
        return self._stream.feed(line)

    def end(self) -> list[Event]:
        return self._stream.end()

    def replies(self) -> bytes:
        return b""

    @property
    def facts(self) -> StreamFacts:
        return self._stream.facts

    @property
    def writing(self) -> Sentence:
        return self._stream.writing

    @property
    def finished_after(self) -> float | None:
        return self._stream.finished_after

    @property
    def running_tools(self) -> int:
        return self._stream.running_tools
