"""What a literal model reference means: `provider/id`, a bare `id`, each with or without `:thinking`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..errors import ModelError, nearest
from ..text.plain import one_line, plain
from .catalog import Catalog

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most; `max` is not known to every agent."""


def offered_level(level: str, offered: Sequence[str]) -> str:
    """Return the level itself, or the highest that is offered below it."""
    below = [other for other in offered if LEVELS.index(other) <= LEVELS.index(level)]
    return below[-1] if below else level


KNOWN_IDS = 20
"""How many ids an error names."""

_AS_LITERAL = "write it as provider/id"


class Literal(Struct, frozen=True):
    resolved: str
    """`provider/id`; without a catalog it may be a bare id."""
    thinking: str | None = None
    notices: tuple[str, ...] = ()


def split_thinking(ref: str) -> tuple[str, str | None]:
    """Take a thinking level off the end: `fake/llama:8b:low` is `fake/llama:8b` and `low`."""
    base, colon, level = ref.rpartition(":")
    return (base, level) if colon and base and level in LEVELS else (ref, None)


def read_literal(ref: str, catalog: Catalog | None) -> Literal:
    """Find out which model is meant; without a catalog any id is taken unseen. Raises ModelError.

    An id that ends like a thinking level counts whole where the catalog has it so. An unknown id of a known provider
    is passed on with a notice, because the agent runs it too.
    """
    check_text(ref)
    base, thinking = split_thinking(ref)
    if catalog is None:
        return Literal(base, thinking)
    return _known(ref, None, catalog) or _known(base, thinking, catalog) or _unknown(base, thinking, catalog)


def unusable(ref: str, why: str, hint: str) -> ModelError:
    """Make the error about a reference; `why` is the rest of a sentence that begins with its name."""
    return ModelError(f'the model "{one_line(ref, 80)}" {why}', hint=hint)


def check_text(ref: str) -> None:
    """Raise ModelError for what cannot be handed to a program as a model."""
    if plain(ref) != ref or "\n" in ref:
        raise unusable(ref, "has a control character or a line break in it", _AS_LITERAL)
    if ref.startswith("-"):
        raise unusable(ref, 'begins with "-", which an agent reads as an option', _AS_LITERAL)
    provider, slash, model_id = ref.partition("/")
    if slash and not (provider.strip() and model_id.strip(" /:")):
        raise unusable(ref, "has nothing before or after its /", _AS_LITERAL)


def _known(ref: str, thinking: str | None, catalog: Catalog) -> Literal | None:
    if "/" in ref and (model := catalog.find(ref)):
        hidden = model.source == "built in" and catalog.is_complete
        notice = f"{ref} is not in the list of models that the agent has now: its key may be missing"
        return Literal(model.ref, thinking, (notice,) if hidden else ())
    # An id may have a slash of its own: `openai/gpt-oss-120b` of one provider is not a model of the provider openai.
    first, *others = [model.ref for model in catalog.named(ref)] or [""]
    if not first:
        return None
    some = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
    return Literal(first, thinking, (f"{ref} is {first} here; it could be {some} too",) if others else ())


def _unknown(ref: str, thinking: str | None, catalog: Catalog) -> Literal:
    provider, slash, _ = ref.partition("/")
    if not slash:
        raise unusable(ref, "is not known here", _bare_hint(ref, catalog))
    if catalog.knows_provider(provider):
        return Literal(ref, thinking, _strange_id(ref, catalog))
    providers = tuple(dict.fromkeys(model.provider for model in catalog.models()))
    if catalog.is_complete:
        raise unusable(
            ref,
            f'is of the provider "{one_line(provider, 40)}", which the agent does not know',
            _joined(nearest(provider, providers) or f"known are {', '.join(providers)}", catalog),
        )
    text = _joined(f"{ref} is not known here, nor is its provider", catalog)
    return Literal(ref, thinking, (text,) if catalog.has_own_list else ())


def _strange_id(ref: str, catalog: Catalog) -> tuple[str, ...]:
    """Say that an id is not among those of its provider; measured: pi then runs it, or one whose id is alike."""
    provider, _, model_id = ref.partition("/")
    ids = [model.id for model in catalog.models() if model.provider.lower() == provider.lower()]
    if not ids and not catalog.has_own_list:
        return ()
    text = f"{ref} is not known of {provider}: the agent may take it as it is, or take a similar one"
    return (_joined("; ".join(filter(None, (text, nearest(model_id, ids)))), catalog),)


def _bare_hint(ref: str, catalog: Catalog) -> str:
    ids = tuple(dict.fromkeys(model.id for model in catalog.models()))
    if not ids:
        return _joined(_AS_LITERAL, catalog)
    near = nearest(ref, ids)
    some = ", ".join(ids[:KNOWN_IDS]) + (" …" if len(ids) > KNOWN_IDS else "")
    return _joined(f"{near} Known ids: {some}".strip(), catalog)


def _joined(hint: str, catalog: Catalog) -> str:
    more = (*catalog.problems, "" if catalog.is_complete else catalog.refresh_hint)
    return one_line("; ".join(filter(None, (hint, *more))), 2000)
