"""What the bridge is told of a session. Empty texts stand for what the agent does by itself."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Wishes:
    def __init__(self, arguments: Iterable[str]) -> None:
        """Read them from arguments like `model=ID`."""
        told = dict(argument.split("=", 1) for argument in arguments)
        self.talks = told.get("task") == "lines"
        """Whether what is to be done, and what is allowed, comes in lines on stdin."""
        self.has_task = told.get("task") != "none"
        """Whether there is anything to be done; else the session is only begun, in which the agent says what can be
        chosen.
        """
        self.model = told.get("model", "")
        self.thinking = told.get("thinking", "")
        self.mode = told.get("mode", "")
        """Each is chosen by the agent's own option; of several modes, the first that it has."""
        self.resume = told.get("resume", "")
        """The id of the session that goes on."""
        self.earlier = told.get("earlier", "")
        """A file with what was said in that session, for a new one that stands for it."""
        self.servers: list[Any] = json.loads(told.get("servers", "[]"))
        """MCP servers, each as in `session/new`."""
        self.allowed = _names(told.get("allow", ""))
        """The kinds of tool calls that are allowed when the agent asks, and nobody talks to it."""
        self.allowed_tools = _names(told.get("allow-tools", ""))
        """The names of tools of MCP servers that are allowed likewise, each as an agent may call it."""
        self._before = told.get("before", "")
        """A file whose text goes before the task: the protocol knows no other place for it."""

    def whole(self, task: str, *, is_reopened: bool = False) -> str:
        """Return the task with what goes before it; `is_reopened` says that the agent knows no earlier turns."""
        parts = [_text_of(self._before)]
        if is_reopened and (said := _text_of(self.earlier)):
            parts.append(f"<earlier-conversation>\n{said}\n</earlier-conversation>")
        return "\n\n".join((*filter(None, parts), task))


def _text_of(path: str) -> str:
    if not path:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _names(text: str) -> frozenset[str]:
    """Read names with commas between them."""
    return frozenset(filter(None, text.split(",")))
