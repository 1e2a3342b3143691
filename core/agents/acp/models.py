"""The models of an agent that speaks the Agent Client Protocol, the values of its option, and its modes.

Both are told in a session without a task.

An agent that gives nobody a session before a login tells none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...models.catalog import Model
from ...text.plain import one_line
from ..agent import AgentChoice
from ..json_lines import decode, items, mapping, string
from ..model_source import price_in, refused
from .program import bridge_command


def asked(choice: AgentChoice, timeout: float) -> tuple[Sequence[Model], Sequence[str]]:
    """Start the agent and return its models and modes; none where it lets nobody choose. Raises AgentUnavailable, and
    as `ask` does.
    """
    from ..asking import ask  # most who want to know models start nothing

    answer = ask(bridge_command({"task": "none"}, choice.command), timeout=timeout, env=choice.env)
    if answer.code:
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("Error: ")
        raise refused(choice, last or f"it ended with exit code {answer.code}")
    results = [mapping(mapping(decode(line)).get("result")) for line in answer.stdout.splitlines()]
    models = _last_option(results, "model") or _older_models(results)
    modes = [string(mode.get("id")) for one in results for mode in _modes(one)]
    modes += [string(value.get("value")) for value in _flat(_last_option(results, "mode"))]
    return tuple(_models(models, choice.name)), tuple(dict.fromkeys(filter(None, modes)))


def _last_option(results: Sequence[dict[str, Any]], category: str) -> object:
    """Return the values of the option of a category as they were told last; None where there is none."""
    options = [option for one in results for option in map(mapping, items(one.get("configOptions")))]
    return next((option.get("options") for option in reversed(options) if option.get("category") == category), None)


def _older_models(results: Sequence[dict[str, Any]]) -> object:
    """Return the models of the older form, as values of an option."""
    listed = [items(mapping(one.get("models")).get("availableModels")) for one in results]
    last = [models for models in listed if models][-1:]
    return [{"value": string(mapping(model).get("modelId"))} for models in last for model in models]


def _modes(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from map(mapping, items(mapping(result.get("modes")).get("availableModes")))


def _flat(options: object) -> Iterator[dict[str, Any]]:
    """Yield the values of options, which an agent may put into groups."""
    for option in map(mapping, items(options)):
        if "options" in option:
            yield from _flat(option["options"])
        else:
            yield option


def _models(options: object, source: str) -> Iterator[Model]:
    for option in _flat(options):
        if value := one_line(string(option.get("value"))):
            provider, slash, name = value.partition("/")
            price = price_in(string(option.get("description")))
            yield Model(provider if slash else "", name if slash else value, source, price=price)
