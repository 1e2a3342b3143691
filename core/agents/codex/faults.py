"""What Codex says of an error, in words for a person."""

from __future__ import annotations

import re
from typing import Any

from ..json_lines import count, error_words, mapping, string

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
"""Classes of errors of which a status of HTTP says more: then there was an answer."""

_STATUSES = {
    401: "unauthorized",
    403: "unauthorized",
    408: "internalServerError",
    429: "rateLimitExceeded",
    503: "serverOverloaded",
    529: "serverOverloaded",
}

CUT_OFF = "max_output_tokens"
"""In the message of an answer that reached the model's length limit."""


def fault_words(error: dict[str, Any]) -> str:
    """Return the message of an error without the JSON of a provider in it, and what kind of error it is."""
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
    """Read `Reconnecting... 1/5 (why)` as attempt, attempts at most, and why; None for another message."""
    found = re.match(_RECONNECTING, message, re.DOTALL)
    return (int(found[1]), int(found[2]), found[3] or "") if found else None
