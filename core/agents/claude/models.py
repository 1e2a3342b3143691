"""The models of Claude Code: what it tells about them, for which it needs no key, and its names that stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.catalog import Model
from ...text.plain import one_line
from ..agent import AgentChoice
from ..json_lines import decode, items, mapping, string
from ..model_source import price_in, refused
from .program import SETTLED

PROVIDER = "anthropic"

ALIASES = ("sonnet", "opus", "haiku", "opusplan", "default")
"""Models by the names that Claude Code gives them; each stands for the newest of its kind."""

_QUESTION = b'{"type":"control_request","request_id":"models","request":{"subtype":"initialize"}}\n'
_FLAGS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--no-session-persistence", "--strict-mcp-config", "--setting-sources", ""),
)
"""No task is put, so that no model is asked; without settings nobody's hooks and servers are started."""

_WITHOUT_KEY = {"ANTHROPIC_API_KEY": ""}
"""With one it asks the provider first, and answers only after 18 seconds where there is no network."""


def asked_models(choice: AgentChoice, timeout: float) -> Sequence[Model]:
    """Start Claude Code and return its models. Raises AgentUnavailable, and as `ask` does."""
    from ..asking import ask  # most who want to know models start nothing

    answer = ask(
        (*choice.command, *_FLAGS),
        timeout=timeout,
        env={**choice.env, **SETTLED, **_WITHOUT_KEY},
        words=_QUESTION,
        is_answer=_is_answer,
    )
    for line in answer.stdout.splitlines():
        if _is_answer(line):
            response = mapping(mapping(decode(line)).get("response"))
            if models := tuple(_told(mapping(response.get("response")).get("models"), choice.name)):
                return models
            raise refused(choice, string(response.get("error")) or "it listed none")
    last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise refused(choice, last or f"it ended with exit code {answer.code}")


def _is_answer(line: bytes) -> bool:
    return b'"control_response"' in line


def _told(models: object, source: str) -> Iterator[Model]:
    for model in map(mapping, items(models)):
        name = one_line(string(model.get("value")))
        if name:
            stands_for = one_line(string(model.get("resolvedModel")))
            yield Model(
                PROVIDER,
                name,
                source,
                model.get("supportsEffort") is True,
                stands_for=stands_for if stands_for != name else "",
                price=price_in(string(model.get("description"))),
            )
