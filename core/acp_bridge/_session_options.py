"""The bridge's options for a session. An empty text leaves the choice to the agent."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Wishes:
    def __init__(self, arguments: Iterable[str]) -> None:
        """Parse arguments like `model=ID`."""
        options = dict(argument.split("=", 1) for argument in arguments)
        self.talks = options.get("task") == "lines"
        """Whether stdin has lines with prompts and answers."""
        self.has_task = options.get("task") != "none"
        """Whether there is a task; otherwise only open the session, in which the agent lists its options."""
        self.model = options.get("model", "")
        self.thinking = options.get("thinking", "")
        self.mode = options.get("mode", "")
        """Each is set through the agent's option; of several modes, the first that it has."""
        self.resume = options.get("resume", "")
        """The id of the session to continue."""
        self.earlier = options.get("earlier", "")
        """A file with that session's conversation, for a new session that replaces it."""
        self.servers: list[Any] = json.loads(options.get("servers", "[]"))
        """MCP servers, each as in `session/new`."""
        self.allowed = _names(options.get("allow", ""))
        """Kinds of tool calls to allow in a non-interactive run."""
        self.allowed_tools = _names(options.get("allow-tools", ""))
        """Names of MCP tools to allow in a non-interactive run, in every agent's spelling."""
        self._before = options.get("before", "")
        """A file with text to put before the task, because the protocol has no system prompt."""

    def whole(self, task: str, *, is_reopened: bool = False) -> str:
        """Return the task with the texts before it; `is_reopened`: the agent does not know the earlier turns."""
        parts = [_text_of(self._before)]
        if is_reopened and (conversation := _text_of(self.earlier)):
            parts.append(f"<earlier-conversation>\n{conversation}\n</earlier-conversation>")
        return "\n\n".join((*filter(None, parts), task))


def _text_of(path: str) -> str:
    if not path:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _names(text: str) -> frozenset[str]:
    """Parse comma-separated names."""
    return frozenset(filter(None, text.split(",")))
