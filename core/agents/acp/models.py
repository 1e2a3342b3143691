"""The models of an agent that speaks the Agent Client Protocol: the values of its option, in a session without a task.

An agent that gives nobody a session before a login tells none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.catalog import Model
from ...text.plain import one_line
from ..agent import AgentChoice
from ..json_lines import decode, items, mapping, string
from ..model_source import price_in, refused
from .program import bridge_command


def asked_models(choice: AgentChoice, timeout: float) -> Sequence[Model]:
    """Start the agent and return its models; none where it lets nobody choose. Raises AgentUnavailable, and as `ask`
    does.
    """
    from ..asking import ask  # most who want to know models start nothing

    answer = ask(bridge_command({"task": "none"}, choice.command), timeout=timeout, env=choice.env)
    if answer.code:
        last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("Error: ")
        raise refused(choice, last or f"it ended with exit code {answer.code}")
    options = [
        option
        for line in answer.stdout.splitlines()
        for option in map(mapping, items(mapping(mapping(decode(line)).get("result")).get("configOptions")))
        if option.get("category") == "model"
    ]
    return tuple(_values(options[-1].get("options"), choice.name)) if options else ()


def _values(options: object, source: str) -> Iterator[Model]:
    """Yield the values of options, which an agent may put into groups."""
    for option in map(mapping, items(options)):
        if "options" in option:
            yield from _values(option["options"], source)
        elif value := one_line(string(option.get("value"))):
            provider, slash, name = value.partition("/")
            price = price_in(string(option.get("description")))
            yield Model(provider if slash else "", name if slash else value, source, price=price)
