"""Model, thinking level and mode, by the options that an agent offers for its sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from acp.client.connection import ClientSideConnection

_NOUNS = {"model": "model", "thought_level": "thinking level", "mode": "mode"}
"""Category of an option -> what it is called here."""
SHOWN = 12
"""Values that an error names."""


class OptionError(Exception):
    """The agent does not offer what is asked for; the text says what it does."""


@dataclass(frozen=True)
class Choice:
    """What the agent lets its client choose under one category."""

    category: str
    option: str | None
    """The id of its option; None for the older form of modes, which is none."""
    values: tuple[str, ...]


class Options:
    """The options of one session."""

    def __init__(self, session: Any) -> None:
        """`session` is the answer to `session/new` or `session/load`."""
        self._modes = tuple(mode.id for mode in session.modes.available_modes) if session.modes else ()
        self._read(session.config_options)

    async def choose(self, connection: ClientSideConnection, session_id: str, category: str, wanted: str) -> None:
        """Set an option of the session. Raises OptionError where there is no such option, or no such value."""
        noun = _NOUNS[category]
        choice = self._choices.get(category)
        if choice is None:
            raise OptionError(f"this agent lets nobody choose its {noun}: leave it out")
        value = _match(wanted, choice.values)
        if value is None:
            offered = ", ".join(choice.values[:SHOWN]) + ("…" if len(choice.values) > SHOWN else "")
            raise OptionError(f'the agent has no {noun} "{wanted}"; it offers {offered}')
        if choice.option is None:
            await connection.set_session_mode(session_id=session_id, mode_id=value)
        else:
            answer = await connection.set_config_option(config_id=choice.option, session_id=session_id, value=value)
            self._read(answer.config_options)  # one may bring or take away others: levels depend on the model

    def _read(self, options: Iterable[Any] | None) -> None:
        """Take the options there are now."""
        self._choices = {"mode": Choice("mode", None, self._modes)} if self._modes else {}
        for option in options or ():
            if option.type == "select" and isinstance(option.category, str) and option.category in _NOUNS:
                self._choices[option.category] = Choice(option.category, option.id, tuple(_values(option.options)))


def _match(wanted: str, values: Iterable[str]) -> str | None:
    """Find a value by its name, with or without the provider before it."""
    known = set(values)
    return next((name for name in (wanted, wanted.partition("/")[2]) if name and name in known), None)


def _values(options: Iterable[Any]) -> Iterable[str]:
    """Yield the values of options, which an agent may put into groups."""
    for option in options:
        if hasattr(option, "options"):
            yield from _values(option.options)
        else:
            yield option.value
