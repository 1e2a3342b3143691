"""Codex's items as events: both of its streams have the same items, with different spelling of names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ...run.events import (
    ARGS_LIMIT,
    CONTENT_LIMIT,
    ToolCall,
    ToolResult,
    kept_args,
)
from .._figures import MOST_MS, whole
from .._json_lines import count, error_words, items, joined_text, mapping, string

_WORD_END = r"_([a-z])"
_SHELL = r"(?s)\S*sh -l?c (.*)"
"""Codex starts each command with the user's shell."""

_FAILED = frozenset({"failed", "declined"})
"""Statuses of failed items."""

_AGENT_TOOLS = {
    "spawnAgent": "spawn_agent",
    "sendInput": "send_input",
    "resumeAgent": "resume_agent",
    "wait": "wait_agent",
    "closeAgent": "close_agent",
}


def as_in_app_server(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of `exec` with the app-server's names: `exit_code` becomes `exitCode`."""
    named = {_camel(name): value for name, value in item.items()}
    named["type"] = _camel(string(item.get("type")))
    return named


def _camel(name: str) -> str:
    return re.sub(_WORD_END, lambda match: match[1].upper(), name)


def tool_call(item: dict[str, Any]) -> ToolCall | None:
    """Return an item's tool call; None if it is not a call."""
    named = _named_call(item)
    if named is None:
        return None
    name, args = named
    return ToolCall(tool_call_id=string(item.get("id")), tool_name=name, args=kept_args(args, ARGS_LIMIT))


def tool_result(item: dict[str, Any], tool_name: str, took_ms: int | None) -> ToolResult:
    """Return a call's result; `took_ms` is for an item without a duration."""
    content, truncated = _content(item)
    duration = whole(item.get("durationMs"), MOST_MS)
    exit_code = item.get("exitCode")
    return ToolResult(
        tool_call_id=string(item.get("id")),
        tool_name=tool_name,
        is_error=string(item.get("status")) in _FAILED or item.get("success") is False,
        content=content,
        truncated=truncated,
        exit_code=exit_code if _is_exit_code(exit_code) else None,
        duration_ms=took_ms if duration is None else duration,
    )


def thought(item: dict[str, Any]) -> str:
    """Return a reasoning item's text: its summary, or otherwise its content."""
    summary = item.get("summary") or item.get("content")
    return string(item.get("text")) or "\n\n".join(text for text in map(string, items(summary)) if text.strip())


def _named_call(item: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    match item.get("type"):
        case "commandExecution":
            return "bash", {"command": command_of(item)}
        case "fileChange":
            return "edit", changed(item)
        case "mcpToolCall":
            name = f"mcp__{string(item.get('server'))}__{string(item.get('tool'))}"
            return name, _arguments(item)
        case "dynamicToolCall":
            return string(item.get("tool")), _arguments(item)
        case "webSearch":
            return "web_search", {"query": string(item.get("query"))}
        case "imageView":
            return "view_image", {"path": string(item.get("path"))}
        case "imageGeneration":
            return "image_generation", {"prompt": string(item.get("revisedPrompt"))}
        case "collabAgentToolCall" | "collabToolCall":
            tool = string(item.get("tool"))
            args = {name: item[name] for name in ("prompt", "model", "receiverThreadIds") if item.get(name)}
            return _AGENT_TOOLS.get(tool, tool) or "agent", args
        case _:
            return None


def command_of(fields: dict[str, Any]) -> str:
    """Return a command as the model wrote it, without its shell."""
    whole = string(fields.get("command"))
    match = re.fullmatch(_SHELL, whole)
    if match is None:
        return whole
    import shlex  # a wrapper starts its agent before it needs this

    try:
        words = shlex.split(match[1])
    except ValueError:
        return whole
    return words[0] if len(words) == 1 else whole


def changed(item: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of an edit, as arguments of its call."""
    changes = list(map(mapping, items(item.get("changes"))))
    paths = [string(change.get("path")) for change in changes]
    shown = [
        {
            "path": string(change.get("path")),
            "kind": string(mapping(change.get("kind")).get("type")) or string(change.get("kind")),
            **({"to": to} if (to := string(mapping(change.get("kind")).get("move_path"))) else {}),
            **({"diff": change["diff"]} if isinstance(change.get("diff"), str) else {}),
        }
        for change in changes
    ]
    return {"path": ", ".join(filter(None, paths)), "changes": shown}


def _arguments(item: dict[str, Any]) -> dict[str, Any]:
    arguments = item.get("arguments")
    return mapping(arguments) or ({} if arguments in (None, {}) else {"arguments": arguments})


def _content(item: dict[str, Any]) -> tuple[str, bool]:
    if isinstance(output := item.get("aggregatedOutput"), str):
        return _cut(output)
    if message := string(mapping(item.get("error")).get("message")):
        return _cut(message)
    if blocks := item.get("contentItems"):
        texts = [{"type": "text", "text": string(mapping(block).get("text"))} for block in items(blocks)]
        return joined_text(texts, CONTENT_LIMIT)
    if result := mapping(item.get("result")):
        return joined_text(result.get("content"), CONTENT_LIMIT)
    if item.get("status") == "declined":
        return "it was declined", False
    if item.get("type") == "fileChange":
        return _cut("\n".join(f"{kind} {path}" for kind, path in _kinds(item)))
    return "", False


def _kinds(item: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["kind"], change["path"]) for change in changed(item)["changes"]]


def _cut(text: str) -> tuple[str, bool]:
    return text[:CONTENT_LIMIT], len(text) > CONTENT_LIMIT


def _is_exit_code(code: object) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31


# --- tokens ----------------------------------------------------------------------------------------------------------


class Tokens(Struct, frozen=True):
    """Codex's totals; the input includes tokens read from a cache."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0

    @classmethod
    def of(cls, fields: dict[str, Any], read: Callable[[object], int] = count) -> Tokens:
        """Parse them from either stream, or from a saved conversation."""

        def number(name: str, other_name: str) -> int:
            return read(fields.get(name, fields.get(other_name)))

        return cls(
            input=number("inputTokens", "input_tokens"),
            cached=number("cachedInputTokens", "cached_input_tokens"),
            cache_write=number("cacheWriteInputTokens", "cache_write_input_tokens"),
            output=number("outputTokens", "output_tokens"),
        )

    def since(self, earlier: Tokens) -> Tokens | None:
        """Return the increase; None if a number decreased, because Codex restarted its count."""
        added = Tokens(
            self.input - earlier.input,
            self.cached - earlier.cached,
            self.cache_write - earlier.cache_write,
            self.output - earlier.output,
        )
        return added if min(added.input, added.cached, added.cache_write, added.output) >= 0 else None

    @property
    def uncached(self) -> int:
        return max(0, self.input - self.cached)


# --- errors ----------------------------------------------------------------------------------------------------------

_RECONNECTING = r"Reconnecting\.\.\. (\d{1,6})/(\d{1,6})(?: \((.*)\))?"

_CLASSES = {
    "contextWindowExceeded": "the conversation is longer than the model's context window",
    "sessionBudgetExceeded": "the session's budget is used up",
    "usageLimitExceeded": "the account's usage limit is reached",
    "rateLimitExceeded": "the account's rate limit is reached",
    "serverOverloaded": "the model's server is overloaded",
    "modelNotFound": "the provider does not know the model",
    "internalServerError": "the model's server failed",
    "unauthorized": "the provider refused the login: run codex login, or check the API key",
    "badRequest": "the provider refused the request",
    "sandboxError": "Codex's sandbox failed",
    "tooManyDenials": "too many requests were denied",
    "cyberPolicy": "the provider's policy refused the request",
    "httpConnectionFailed": "the provider could not be reached",
    "responseStreamConnectionFailed": "the provider could not be reached",
    "responseStreamDisconnected": "the connection to the model broke off",
    "responseTooManyFailedAttempts": "too many attempts",
}
"""By the app-server's `codexErrorInfo`."""

_CONNECTIONS = ("httpConnectionFailed", "responseStreamConnectionFailed", "responseTooManyFailedAttempts")
"""Errors whose HTTP status, if present, is more specific: the provider did answer."""

_STATUSES = {
    401: "unauthorized",
    403: "unauthorized",
    408: "internalServerError",
    429: "rateLimitExceeded",
    503: "serverOverloaded",
    529: "serverOverloaded",
}

CUT_OFF = "max_output_tokens"
"""Part of the error message when an answer reached the model's length limit."""


def fault_words(error: dict[str, Any]) -> str:
    """Return an error's message without a provider's JSON, and the kind of error."""
    words = error_words(string(error.get("message")).strip())
    kind = _class_words(error.get("codexErrorInfo"))
    if not words:
        return kind or "the model ended with an error without a message"
    return f"{words} ({kind})" if kind and kind not in words else words


def _class_words(info: object) -> str:
    if isinstance(info, str):
        return _CLASSES.get(info, "")
    name, detail = next(iter(mapping(info).items()), ("", None))
    status = count(mapping(detail).get("httpStatusCode"))
    words = _CLASSES.get(_class_of(status) if status and name in _CONNECTIONS else name, "")
    return f"{words}, HTTP {status}" if words and status else words


def _class_of(status: int) -> str:
    return _STATUSES.get(status) or ("internalServerError" if status >= 500 else "badRequest")


def reconnecting(message: str) -> tuple[int, int, str] | None:
    """Parse `Reconnecting... 1/5 (reason)` as attempt, maximum attempts and reason; None for other messages."""
    match = re.match(_RECONNECTING, message, re.DOTALL)
    return (int(match[1]), int(match[2]), match[3] or "") if match else None
