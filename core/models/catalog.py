"""An agent's known models, and resolving `provider/id`, a bare `id`, or `…:thinking` to one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from ..errors import ModelError, nearest_of
from ..paths import user_settings_file
from ..text.plain import one_line, plain

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most; some agents lack `max`."""

INHERIT = "inherit"
"""Stands for the parent's model, or the agent's default if that is unknown or the agent lacks it."""

KNOWN_IDS = 20
"""Maximum ids that an error names."""
NEAREST = 3
"""Maximum suggestions in an error."""
_ALIKE = 0.6

BUILT_IN = "built in"
"""The source of models in the agent's package, with or without a key."""
_UNLISTED = "named"
"""The source of an unlisted model, of an agent that takes any id of its one provider."""

_AS_LITERAL = "write it as provider/id"


class Price(Struct, frozen=True):
    """Dollars for a million tokens."""

    input: float
    output: float


class Model(Struct, frozen=True, omit_defaults=True):
    provider: str
    """Empty if the agent's models have no provider."""
    id: str
    """May contain `/` and `:`."""
    source: str
    """Where it is listed: `settings`, `models.json`, an agent's name (its own list), `built in`."""
    thinks: bool | None = None
    """Whether it has thinking levels; None if unknown."""
    stands_for: str = ""
    """The model that the id currently means, if it is an alias; otherwise empty."""
    context: int | None = None
    """Context window in tokens; None if unknown."""
    price: Price | None = None
    """None if unknown."""

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}" if self.provider else self.id


class Listing(Struct, frozen=True):
    """The models of one source."""

    models: tuple[Model, ...] = ()
    own: bool = False
    """Whether these are the agent's own models, not just added by others."""
    complete: bool = False
    """Whether it has every model that the agent would find."""
    problem: str = ""
    """Why the source is unreadable, as text for the user."""
    source: str = ""
    """The list's name for the user, as "pi's list of models"."""


class Catalog:
    """Several listings in order; the first that has a model or id counts."""

    def __init__(
        self,
        sources: Sequence[Callable[[], Listing]] = (),
        *,
        refresh: str = "",
        bare: str = "",
        takes_others: bool = False,
    ) -> None:
        """`refresh` is the user's step to complete the catalog; `bare` is the provider of ids without one, if the agent
        has a single provider and an incomplete list; with `takes_others`, ids without a provider may be unlisted.
        """
        self._bare = bare
        self.takes_others = takes_others
        self._unread = tuple(sources)
        self._sources = tuple(map(cache, sources))
        self.refresh_hint = refresh
        self.ask_again: Callable[[], bool] | None = None
        """Refreshes the agent's list, and returns whether that succeeded. None: don't refresh it."""
        self.is_of_this_machine = True
        """Whether the run is on this machine; the agent elsewhere may have other models."""

    def renew(self) -> bool:
        """Refresh the agent's list, once; return whether there is a new list."""
        ask, self.ask_again = self.ask_again, None
        if ask is None or not ask():
            return False
        self._sources = tuple(map(cache, self._unread))
        return True

    def listings(self) -> Iterator[Listing]:
        """Yield each source's listing; a source is read on first use."""
        return (source() for source in self._sources)

    def models(self) -> Iterator[Model]:
        """Yield each model once, in catalog order."""
        seen: set[str] = set()
        for listing in self.listings():
            for model in listing.models:
                if model.ref not in seen:
                    seen.add(model.ref)
                    yield model

    def find(self, ref: str) -> Model | None:
        """Find a model by `provider/id`. The provider's case does not matter, as in pi; the id's case matters only if
        it is the only difference between models.
        """
        provider, _, model_id = ref.partition("/")
        key = (provider.lower(), model_id)
        exact = (model for model in self.models() if (model.provider.lower(), model.id) == key)
        alike = (model for model in self.models() if model.ref.lower() == ref.lower())
        listed_model = next(exact, None) or next(alike, None)
        return listed_model or (self._unlisted(model_id) if key[0] == self._bare else None)

    def named(self, model_id: str) -> tuple[Model, ...]:
        """Return all models with an id, of any provider, in catalog order. Prefers an exact match of case."""
        models = tuple(model for model in self.models() if model.id == model_id)
        models = models or tuple(model for model in self.models() if model.id.lower() == model_id.lower())
        unlisted = None if models or "/" in model_id else self._unlisted(model_id)
        return (unlisted,) if unlisted else models

    def _unlisted(self, model_id: str) -> Model | None:
        """Return an unlisted model of the only provider, unless the id ends like a thinking level."""
        is_whole = split_thinking(model_id)[1] is None
        return Model(self._bare, model_id, _UNLISTED) if self._bare and is_whole else None

    def has(self, model: Model) -> bool:
        """Whether the agent is known to have a model now: a built-in model needs a key, without which it is missing
        from a complete list.
        """
        if model.source == BUILT_IN:
            return not self.is_complete
        return model.source != _UNLISTED or any(
            known.provider == model.provider and f"{known.stands_for}-".startswith(f"{model.id}-")
            for known in self.models()
        )

    @property
    def has_own_list(self) -> bool:
        """Whether the agent's own list is known, so that an unlisted model is suspicious."""
        return any(listing.own for listing in self.listings())

    @property
    def is_complete(self) -> bool:
        """Whether the agent has only models in this catalog."""
        return self.is_of_this_machine and any(listing.complete for listing in self.listings())

    @property
    def takes_unlisted(self) -> bool:
        """Whether the agent accepts models that no list names, so that its list is never complete."""
        return bool(self._bare) or self.takes_others

    @property
    def may_lack_some(self) -> bool:
        """Whether a refresh could add models; a list that is never complete counts as sufficient."""
        return not self.is_complete and not (self.takes_unlisted and self.has_own_list)

    @property
    def source(self) -> str:
        """The lists that should contain a model, as text for the user."""
        listings = tuple(self.listings())
        whole = tuple(listing for listing in listings if listing.complete and self.is_complete)
        names = (listing.source for listing in whole or listings if listing.own and listing.source)
        return " and ".join(dict.fromkeys(names)) or "the known lists of models"

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(listing.problem for listing in self.listings() if listing.problem)


def settings_listing(refs: Iterable[str]) -> Listing:
    """Return a listing of the settings' models, without bare ids and roles."""
    split = (ref.partition("/") for ref in refs if "/" in ref and not ref.startswith("@"))
    return Listing(tuple(Model(provider, model_id, "settings") for provider, _, model_id in split))


def offered_level(level: str, offered: Sequence[str]) -> str:
    """Return the level, or the highest offered level below it."""
    below = [each for each in offered if LEVELS.index(each) <= LEVELS.index(level)]
    return below[-1] if below else level


class Literal(Struct, frozen=True):
    resolved: str
    """`provider/id`; may be a bare id without a catalog."""
    thinking: str | None = None
    notices: tuple[str, ...] = ()


def split_thinking(ref: str) -> tuple[str, str | None]:
    """Split off a thinking level: `fake/llama:8b:low` is `fake/llama:8b` and `low`."""
    base, colon, level = ref.rpartition(":")
    return (base, level) if colon and base and level in LEVELS else (ref, None)


def read_literal(ref: str, catalog: Catalog | None) -> Literal:
    """Resolve a reference; without a catalog any id is accepted unchecked. Raises ModelError.

    An id that ends like a thinking level counts whole if the catalog has it in that form. Before a model counts as
    unknown, the agent's list is refreshed, if the catalog allows that. An unknown model is refused if the list is
    complete; otherwise it is passed on with a notice, because the agent may still have it.
    """
    check_text(ref)
    base, thinking = split_thinking(ref)
    if catalog is None:
        return Literal(base, thinking)
    literal = _known(ref, None, catalog) or _known(base, thinking, catalog)
    if literal is None and catalog.renew():
        literal = _known(ref, None, catalog) or _known(base, thinking, catalog)
    return literal or _unknown(base, thinking, catalog)


def listed(ref: str, catalog: Catalog) -> str:
    """Return the referenced model as `provider/id`; empty if the agent is not known to have it."""
    literal = _known(ref, None, catalog) or _known(split_thinking(ref)[0], None, catalog)
    return literal.resolved if literal else ""


def unusable(ref: str, why: str, hint: str, brief_hint: str | None = None, code: str = "") -> ModelError:
    """Return the error for a reference; `why` is the rest of a sentence that begins with its name."""
    return ModelError(f'the model "{one_line(ref, 80)}" {why}', hint=hint, brief_hint=brief_hint, code=code)


def check_text(ref: str) -> None:
    """Raise ModelError for a text that cannot be passed to a program as a model."""
    if plain(ref) != ref or "\n" in ref:
        raise unusable(ref, "contains a control character or a line break", _AS_LITERAL)
    if ref.startswith("-"):
        raise unusable(ref, 'begins with "-", which an agent reads as an option', _AS_LITERAL)
    provider, slash, model_id = ref.partition("/")
    if slash and not (provider.strip() and model_id.strip(" /:")):
        raise unusable(ref, "has nothing before or after its /", _AS_LITERAL)


def _known(ref: str, thinking: str | None, catalog: Catalog) -> Literal | None:
    if "/" in ref and (model := catalog.find(ref)) and catalog.has(model):
        return Literal(model.ref, thinking)
    # An id may contain a slash: one provider's `openai/gpt-oss-120b` is not a model of the provider openai.
    first, *others = [model.ref for model in catalog.named(ref) if catalog.has(model)] or [""]
    if not first:
        return None
    some = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
    return Literal(first, thinking, (f"{ref} means {first} here; it could also be {some}",) if others else ())


def _unknown(ref: str, thinking: str | None, catalog: Catalog) -> Literal:
    """Refuse a model that the agent lacks, or pass on one that it may have."""
    models = tuple(filter(catalog.has, catalog.models()))
    unlisted = catalog.find(ref) if "/" in ref else next(iter(catalog.named(ref)), None)
    close = _nearest_models(ref, models)
    near = f"did you mean {', '.join(close)}?" if close else ""
    brief = f"did you mean {close[0]}?" if close else _AS_LITERAL
    names = ", ".join(model.ref for model in models[:KNOWN_IDS]) + (" …" if len(models) > KNOWN_IDS else "")
    is_bare = "/" not in ref
    if catalog.is_complete or (is_bare and unlisted is None and not catalog.takes_others):
        no_key = "; its key may be missing" if unlisted and unlisted.source == BUILT_IN else ""
        some = f"known: {names}" if names and (is_bare or not near) else ""
        way_out = f"if the agent has it, add it to models in {user_settings_file()}" if not is_bare else ""
        hint = _joined(catalog, near, some or ("" if near else _AS_LITERAL), way_out)
        why = f"is not available: not in {catalog.source}{no_key}"
        raise unusable(ref, why, hint, brief, code="model.not_found")
    resolved = unlisted.ref if unlisted else ref
    if not catalog.has_own_list:
        return Literal(resolved, thinking)
    text = f"{ref} is not in {catalog.source}: the agent may refuse it, or use a similar one"
    return Literal(resolved, thinking, (_joined(catalog, text, near or f"known: {names}"),))


def _nearest_models(ref: str, models: Sequence[Model]) -> list[str]:
    """Return the most similar models as `provider/id`, the nearest first."""
    provider, slash, model_id = ref.lower().partition("/")
    of_provider = {model.id.lower(): model.ref for model in models if slash and model.provider.lower() == provider}
    names = {name.lower(): model.ref for model in reversed(models) for name in (model.ref, model.id)}
    close = [of_provider[name] for name in nearest_of(model_id, of_provider, cutoff=_ALIKE, count=NEAREST)]
    close += [names[name] for name in nearest_of(ref.lower(), names, cutoff=_ALIKE, count=NEAREST)]
    return list(dict.fromkeys(close))[:NEAREST]


def _joined(catalog: Catalog, *hints: str) -> str:
    """Return the hints, and the catalog's gaps, in one line."""
    refresh = catalog.refresh_hint if catalog.may_lack_some else ""
    return one_line("; ".join(filter(None, (*hints, *catalog.problems, refresh))), 2000)
