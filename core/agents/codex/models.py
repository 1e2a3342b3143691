"""The models of Codex, as its app-server tells them; it needs no login for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ... import __version__
from ...models.catalog import Model
from ...text.plain import one_line
from ..agent import AgentChoice
from ..json_lines import decode, items, mapping, string
from ..model_source import refused

PROVIDER = "openai"

_ASKED = 2
"""The id of the request."""
_MOST = 500
"""Models that are asked for."""


def asked_models(choice: AgentChoice, timeout: float) -> Sequence[Model]:
    """Start Codex and return its models. Raises AgentUnavailable, and as `ask` does."""
    from ..asking import ask  # most who want to know models start nothing

    command = (*choice.command, "app-server")
    answer = ask(command, timeout=timeout, env=choice.env, words=b"".join(_requests()), is_answer=_is_answer)
    for line in answer.stdout.splitlines():
        if _is_answer(line):
            fields = mapping(decode(line))
            if "error" in fields:
                raise refused(choice, string(mapping(fields["error"]).get("message")) or "it answered with an error")
            return tuple(_told(mapping(fields.get("result")).get("data"), choice.name))
    last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise refused(choice, last or f"it ended with exit code {answer.code}")


def _requests() -> Iterator[bytes]:
    client = {"name": "subdeck", "version": __version__}
    messages: tuple[dict[str, Any], ...] = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
        {"method": "initialized"},
        {"id": _ASKED, "method": "model/list", "params": {"limit": _MOST}},
    )
    for message in messages:
        yield msgspec.json.encode(message) + b"\n"


def _is_answer(line: bytes) -> bool:
    fields = mapping(decode(line))
    return fields.get("id") == _ASKED and ("result" in fields or "error" in fields)


def _told(models: object, source: str) -> Iterator[Model]:
    for model in map(mapping, items(models)):
        name = one_line(string(model.get("model")) or string(model.get("id")))
        if name and model.get("hidden") is not True:
            yield Model(PROVIDER, name, source, bool(items(model.get("supportedReasoningEfforts"))))
