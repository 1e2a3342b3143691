"""The hook that makes Claude Code ask about each call that a rule of the run matches.

Claude Code's own rules cannot do this: their patterns differ, and the user's permissions and modes override some of
them. A hook that the client registers runs before all of these, also for nested agents, regardless of the user's hook
settings. It does not affect other calls.
"""

from __future__ import annotations

from typing import Any

from ...permissions.rules import Policy
from ...run.model import RunMeta
from ...run.requests import is_marked
from ...text.visible import is_hiding
from .._json_lines import is_deep, mapping, string
from ..loader import path_rules_of
from ._requests import BY_RULE, call_of

NUMBER = "hook"
"""The id of the request that registers the hook."""
_EVENT = "PreToolUse"
_MOST = 1000


class Hook:
    """Decides nothing itself: Claude Code's question becomes a normal request."""

    def __init__(self, meta: RunMeta) -> None:
        self._cwd = meta.cwd
        self._policy = Policy(meta.permissions, meta.cwd, path_rules_of(meta.kind))
        self._directories: dict[str, str] = {}
        """Directories of the calls to ask about, by their ids."""

    @property
    def registration(self) -> dict[str, Any]:
        """The request that registers the hook; nothing may be sent before it succeeds."""
        hooks = {_EVENT: [{"hookCallbackIds": [NUMBER]}]}
        wish = {"subtype": "initialize", "hooks": hooks}
        return {"type": "control_request", "request_id": NUMBER, "request": wish}

    def answer(self, called: dict[str, Any]) -> dict[str, Any]:
        """Return the hook's answer about a call before it is made."""
        call_id, directory = string(called.get("tool_use_id")), self._directory(string(called.get("cwd")))
        name, arguments = string(called.get("tool_name")), mapping(called.get("tool_input"))
        if not is_deep(arguments):
            call = call_of("", call_id, name, arguments, directory)
            texts = (text for text in arguments.values() if isinstance(text, str))
            is_clear = not (is_marked(call) or any(is_hiding(text, is_file=True) for text in texts))
            if is_clear and not self._policy.decide(call)[1]:
                return {}
        if len(self._directories) < _MOST:
            self._directories[call_id] = directory
        decision = {"hookEventName": _EVENT, "permissionDecision": "ask", "permissionDecisionReason": BY_RULE}
        return {"hookSpecificOutput": decision}

    def directory_of(self, call_id: str) -> str:
        """Return a call's directory, once; empty for the run's directory."""
        return self._directories.pop(call_id, "")

    def _directory(self, directory: str) -> str:
        return directory if directory != self._cwd else ""
