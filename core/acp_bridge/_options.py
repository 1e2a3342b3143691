"""Set model, thinking level and mode through the agent's session options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ._handshake import Handshake, items, members

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from typing import Any

_NOUNS = {"model": "model", "thought_level": "thinking level", "mode": "mode"}
"""Option categories, mapped to their names in messages."""
SHOWN = 12
"""Maximum values that an error names."""


class OptionError(Exception):
    """The agent does not offer the requested value; the text lists its values."""


def choose(opening: Handshake, category: str, requested: str) -> None:
    """Set a session option; for a mode, the first available of several comma-separated names.

    Raises OptionError if the agent lacks the option or the value.
    """
    noun = _NOUNS[category]
    option, values = _offered(opening.session, category)
    if not values:
        raise OptionError(f"this agent does not support choosing its {noun}: remove it")
    names = requested.split(",") if category == "mode" else [requested]
    match = _match_mode if category == "mode" else _match
    value = next((matched for name in names if (matched := match(name, values))), None)
    if value is None:
        offered = ", ".join(values[:SHOWN]) + ("…" if len(values) > SHOWN else "")
        raise OptionError(f'the agent has no {noun} "{" or ".join(names)}"; it has {offered}')
    session = {"sessionId": opening.session["sessionId"]}
    if option is None and category == "model":
        opening.ask("session/set_model", **session, modelId=value)
    elif option is None:
        opening.ask("session/set_mode", **session, modeId=value)
    else:
        answer = opening.ask("session/set_config_option", **session, configId=option, value=value)
        # One option may change others: levels depend on the model.
        opening.session["configOptions"] = answer.get("configOptions")


def _offered(session: dict[str, Any], category: str) -> tuple[str | None, tuple[str, ...]]:
    """Return a category's option id and its values; no id (None) for modes and models in the older form."""
    offered: tuple[str | None, tuple[str, ...]] = (None, ())
    if category == "mode":
        modes = items(members(session.get("modes")).get("availableModes"))
        offered = (None, tuple(name for mode in modes if isinstance(name := members(mode).get("id"), str)))
    if category == "model":
        offered = (None, tuple(models_of(session)))
    for option in map(members, items(session.get("configOptions"))):
        if option.get("type") == "select" and option.get("category") == category and isinstance(option.get("id"), str):
            offered = (option["id"], tuple(_values(option.get("options"))))
    return offered


def models_of(session: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of models in the older form."""
    for model in items(members(session.get("models")).get("availableModels")):
        if isinstance(name := members(model).get("modelId"), str):
            yield name


def _match(requested: str, values: Iterable[str]) -> str | None:
    """Return the value with this name, with or without the provider's prefix."""
    available = set(values)
    return next((name for name in (requested, requested.partition("/")[2]) if name and name in available), None)


def _match_mode(requested: str, values: Iterable[str]) -> str | None:
    """Return the mode with this name, which some agents write at the end of an address: `…#plan`."""
    return next((value for value in values if value.rpartition("#")[2] == requested), None)


def _values(options: object) -> Iterator[str]:
    """Yield the values of options, which may be in groups."""
    for option in map(members, items(options)):
        if "options" in option:
            yield from _values(option["options"])
        elif isinstance(value := option.get("value"), str):
            yield value
