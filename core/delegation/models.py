"""The models that a parent may name: those it announces, those of the settings, and what is known of the agent."""

from __future__ import annotations

from collections.abc import Sequence

from ..agents.base import AgentKind
from ..agents.choice import choose_agent
from ..agents.pi.models import cached_listing, models_json_listing
from ..config.settings import Settings
from ..errors import AgentUnavailable
from ..launch.model import OFFLINE_MODEL
from ..models.catalog import Listing, settings_listing, split_thinking


def available_models(settings: Settings, announced: Sequence[str] | None) -> tuple[str, ...]:
    """Return `provider/id` of each, once: those announced first, in their order, then those of settings and agent.

    A model that pi's package lists but has no key for is not available. The offline agent has one of its own, which
    counts where a parent announces none (`announced` is None).
    """
    refs = [*(announced or ()), *_refs(settings_listing(settings.models))]
    try:
        agent = choose_agent(settings.agent, settings)
    except AgentUnavailable:
        return _once(refs)
    if agent.name != AgentKind.OFFLINE:
        refs += [*_refs(models_json_listing()), *_refs(cached_listing(agent.command))]
    elif not refs and announced is None:
        refs = [OFFLINE_MODEL]
    return _once(refs)


def spelled(ref: str, models: Sequence[str]) -> str | None:
    """Return a reference in the spelling of the available models, None where no such model is available.

    A bare id stands for the first model of that id; a thinking level stays at the end; a role is left as it is.
    """
    if ref.startswith("@"):
        return ref
    base, level = split_thinking(ref)
    for wanted, suffix in ((ref, ""), (base, f":{level}" if level else "")):
        found = _find(wanted, models)
        if found:
            return found + suffix
    return None


def _find(wanted: str, models: Sequence[str]) -> str | None:
    name = wanted.lower()
    whole = (model for model in models if model.lower() == name)
    by_id = (model for model in models if model.partition("/")[2].lower() == name)
    return next(whole, None) or next(by_id, None)


def _refs(listing: Listing) -> list[str]:
    return [model.ref for model in listing.models]


def _once(refs: Sequence[str]) -> tuple[str, ...]:
    """Keep the order, and of spellings that differ only in case the first."""
    first: dict[str, str] = {}
    for ref in refs:
        if ref.strip():
            first.setdefault(ref.lower(), ref)
    return tuple(first.values())
