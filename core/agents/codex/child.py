"""The running side of Codex."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...run.model import RunMeta
from .._json_lines import decode, mapping, string
from ..child import Child, Command, Start, Stream
from ._program import app_server_command, app_server_problem, talk_problem

_IN_RESULTS = ("userAgent", "codexHome", "thread")
_METHODS = ("thread/", "item/", "turn/")
_FAULT = "Error"
_BACKTRACE = "Stack backtrace:"
_COLOURS = r"\x1b\[[0-9;]*m"
_LOGGED = r"(?i)\d{4}-\d\d-\d\dT\S+ +(ERROR|WARN|INFO|DEBUG|TRACE) |warning:"
"""Log lines, which Codex also writes in successful runs."""


class CodexChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        return any(_is_codex(fields) for line in lines if (fields := decode(line)) is not None)

    def command(self, start: Start) -> Command:
        if not app_server_problem(start.meta.agent_command):
            return app_server_command(start)
        from ._exec_run import exec_command  # only for a Codex without a usable app-server

        return exec_command(start)

    def stream(self, start: Start | None = None) -> Stream:
        if start is None:
            from ._recorded import RecordedStream

            return RecordedStream()
        if not app_server_problem(start.meta.agent_command):
            from ._talk import Talk

            if start.meta.talk and not talk_problem(start.meta.agent_command):
                from ._conversation import CodexConversation

                return CodexConversation(Talk(start))
            from ._app_stream import AppStream

            return AppStream(Talk(start))
        from ._exec_run import exec_stream

        return exec_stream(start)

    def explain(self, meta: RunMeta, stderr: str) -> str:
        """Return its error, or otherwise its last output; log lines are skipped, because successful runs have them."""
        output, _, _ = re.sub(_COLOURS, "", stderr).partition(_BACKTRACE)
        lines = [line.strip() for line in output.splitlines() if line.strip() and not re.match(_LOGGED, line)]
        faults = (number for number, line in enumerate(lines) if line.startswith(_FAULT))
        return " ".join(lines[next(faults, -1) :]) or " "


def _is_codex(fields: dict[str, Any]) -> bool:
    """Whether a line is from either stream; JSON-RPC lines with `jsonrpc` are from an ACP agent."""
    if fields.get("type") == "thread.started":
        return True
    result = mapping(fields.get("result"))
    is_answer = "id" in fields and any(name in result for name in _IN_RESULTS)
    return "jsonrpc" not in fields and (is_answer or string(fields.get("method")).startswith(_METHODS))


CHILD: Child = CodexChild()
