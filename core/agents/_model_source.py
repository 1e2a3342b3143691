"""Shared by kinds whose programs list their models on request."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from ..errors import AgentUnavailable
from ..models.catalog import Listing, Model, Price
from ..text.plain import one_line
from .agent import AgentChoice, PlainAgent
from .model_list import TIMEOUT_S, ModelList, changed_at, list_file

REFRESH = "subdeck models --refresh updates the list from {}"


class AsksForModels(PlainAgent):
    """Base of launching sides whose agents list their own models; a list stays valid until the next refresh."""

    def ask(self, choice: AgentChoice, timeout: float) -> Sequence[Model]:
        """Start the agent and return its models. Raises AgentUnavailable, TimeoutError and OSError."""
        raise NotImplementedError

    def ask_all(self, choice: AgentChoice, timeout: float) -> tuple[Sequence[Model], Sequence[str] | None]:
        """Start the agent and return its models and modes (None: it has no modes). Raises the same errors as `ask`."""
        return self.ask(choice, timeout), None

    def model_list(self, choice: AgentChoice) -> ModelList:
        return ModelList(list_file(choice.kind, choice.name, *choice.command), program_key(choice))

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield self.last_listing(choice)

    def last_listing(self, choice: AgentChoice) -> Listing:
        """Return the agent's last list of models, of any age."""
        kept = self.model_list(choice).kept()
        return Listing(kept.models, own=bool(kept.key), source=f"the list of models of {choice.name}")

    def refresh(self, choice: AgentChoice, timeout: float = TIMEOUT_S) -> Sequence[Model]:
        """Start the agent for its list of models, and save the list. Raises AgentUnavailable with the agent's error."""
        saved_list = self.model_list(choice)
        saved_list.begin(timeout)
        try:
            models, modes = self.ask_all(choice, timeout)
        except TimeoutError:
            error = refused(choice, f"no answer within {timeout:g} seconds")
        except AgentUnavailable as fault:
            error = fault
        except OSError as fault:
            error = refused(choice, str(fault.strerror))
        else:
            # The agent may write its own files while it lists models, so compute the key afterwards.
            saved_list.keep(models, self.model_list(choice).key, modes)
            return tuple(models)
        # Without it, every task of a call would ask the agent again.
        saved_list.keep_problem(error.what, self.model_list(choice).key)
        raise error


def program_key(choice: AgentChoice) -> dict[str, str]:
    """Return a key that changes with the version of an agent's program."""
    return {
        "command": "\0".join(choice.command),
        "version": choice.version or "",
        **{path: changed_at(path) for path in choice.command if os.sep in path},
    }


def refused(choice: AgentChoice, what: str, *words: str) -> AgentUnavailable:
    """Return the error of an agent that could not list its models when started with `words`."""
    return AgentUnavailable(
        f"{choice.name} could not list its models: {one_line(what, 400)}",
        where=" ".join((*choice.command, *words)),
        hint="try that command",
    )


def price_in(text: str) -> Price | None:
    """Return the price at the end of a model's description, as `… · $4/$20 per Mtok`; None if there is none."""
    match = re.search(r"\$([0-9]+(?:\.[0-9]+)?)/\$([0-9]+(?:\.[0-9]+)?) per Mtok", text)
    return Price(float(match[1]), float(match[2])) if match else None
