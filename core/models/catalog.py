"""The models that are known of an agent, and which of them is meant by `provider/id`, a bare `id`, `…:thinking`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from ..errors import ModelError, nearest_of
from ..paths import user_settings_file
from ..text.plain import one_line, plain

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most; `max` is not known to every agent."""

INHERIT = "inherit"
"""In place of a model: that of the parent, and where none is known, or the agent does not have it, the agent's own
default."""

KNOWN_IDS = 20
"""How many ids an error names."""
NEAREST = 3
"""How many models it names that may have been meant."""
_ALIKE = 0.6

BUILT_IN = "built in"
"""The source of a model that the agent's package brings along, with a key for it or without."""
_UNLISTED = "named"
"""That of a model that no list has, of an agent that takes any id of its one provider."""

_AS_LITERAL = "write it as provider/id"


class Price(Struct, frozen=True):
    """Dollars for a million tokens."""

    input: float
    output: float


class Model(Struct, frozen=True, omit_defaults=True):
    provider: str
    """Empty for a model of an agent whose models have none."""
    id: str
    """May hold `/` and `:`."""
    source: str
    """Where it is known from: `settings`, `models.json`, the name of an agent (its own list), `built in`."""
    thinks: bool | None = None
    """Whether it can be told how hard to think; None where that is not known."""
    stands_for: str = ""
    """The model that is meant by it now, where its id is another name for one; empty where that is not told."""
    context: int | None = None
    """How many tokens it takes in; None where that is not told."""
    price: Price | None = None
    """None where that is not told."""

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}" if self.provider else self.id


class Listing(Struct, frozen=True):
    """What one source has to say."""

    models: tuple[Model, ...] = ()
    own: bool = False
    """Whether this is what the agent itself has, and not only what somebody added."""
    complete: bool = False
    """Whether nothing is missing that the agent would find."""
    problem: str = ""
    """Why the source could not be read, for a person."""
    source: str = ""
    """The list itself, for a person, as "pi's list of models"."""


class Catalog:
    """Several listings one after the other; the first that knows a model or id counts."""

    def __init__(
        self,
        sources: Sequence[Callable[[], Listing]] = (),
        *,
        refresh: str = "",
        bare: str = "",
        takes_others: bool = False,
    ) -> None:
        """`refresh` is the step that makes the catalog complete, for a person; `bare` the provider of ids without one,
        where all are its and not all are known; with `takes_others` an id without a provider need not be known.
        """
        self._bare = bare
        self.takes_others = takes_others
        self._unread = tuple(sources)
        self._sources = tuple(map(cache, sources))
        self.refresh_hint = refresh
        self.ask_again: Callable[[], bool] | None = None
        """Has the agent asked for its models again, and returns whether it gave a list. None: it is not asked."""
        self.is_of_this_machine = True
        """Whether the child runs here; the agent on another machine may have other models."""

    def renew(self) -> bool:
        """Have the agent asked again, once; return whether there is another list to look at."""
        ask, self.ask_again = self.ask_again, None
        if ask is None or not ask():
            return False
        self._sources = tuple(map(cache, self._unread))
        return True

    def listings(self) -> Iterator[Listing]:
        """Yield what each source has to say; a source is read when it is reached for the first time."""
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
        """Find a model by `provider/id`. The case of the provider does not matter, as in pi; that of the id counts only
        if several differ in nothing else.
        """
        provider, _, model_id = ref.partition("/")
        wanted = (provider.lower(), model_id)
        exact = (model for model in self.models() if (model.provider.lower(), model.id) == wanted)
        alike = (model for model in self.models() if model.ref.lower() == ref.lower())
        known = next(exact, None) or next(alike, None)
        return known or (self._unlisted(model_id) if wanted[0] == self._bare else None)

    def named(self, model_id: str) -> tuple[Model, ...]:
        """Return all models of an id, whichever their providers, in catalog order. The case counts if one has it so."""
        known = tuple(model for model in self.models() if model.id == model_id)
        known = known or tuple(model for model in self.models() if model.id.lower() == model_id.lower())
        unlisted = None if known or "/" in model_id else self._unlisted(model_id)
        return (unlisted,) if unlisted else known

    def _unlisted(self, model_id: str) -> Model | None:
        """Return a model of the only provider as it is named, which any id may be that does not end like a level."""
        is_whole = split_thinking(model_id)[1] is None
        return Model(self._bare, model_id, _UNLISTED) if self._bare and is_whole else None

    def has(self, model: Model) -> bool:
        """Tell whether the agent has a model now, as far as is known: one that its package brings along needs a key,
        without which its complete list lacks it.
        """
        if model.source == BUILT_IN:
            return not self.is_complete
        return model.source != _UNLISTED or any(
            known.provider == model.provider and f"{known.stands_for}-".startswith(f"{model.id}-")
            for known in self.models()
        )

    @property
    def has_own_list(self) -> bool:
        """Whether enough is known to find a model strange that is not in here."""
        return any(listing.own for listing in self.listings())

    @property
    def is_complete(self) -> bool:
        """Whether a model that is not in here is one that the agent does not have."""
        return self.is_of_this_machine and any(listing.complete for listing in self.listings())

    @property
    def may_lack_some(self) -> bool:
        """Whether asking the agent could make it know more: a list that is never complete is as good as it gets."""
        takes_any = bool(self._bare) or self.takes_others
        return not self.is_complete and not (takes_any and self.has_own_list)

    @property
    def source(self) -> str:
        """The lists in which a model would have to be, for a person."""
        listings = tuple(self.listings())
        whole = tuple(listing for listing in listings if listing.complete and self.is_complete)
        names = (listing.source for listing in whole or listings if listing.own and listing.source)
        return " and ".join(dict.fromkeys(names)) or "the known lists of models"

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(listing.problem for listing in self.listings() if listing.problem)


def settings_listing(refs: Iterable[str]) -> Listing:
    """Make a listing of what the settings offer; bare ids and roles in it are left out."""
    split = (ref.partition("/") for ref in refs if "/" in ref and not ref.startswith("@"))
    return Listing(tuple(Model(provider, model_id, "settings") for provider, _, model_id in split))


def offered_level(level: str, offered: Sequence[str]) -> str:
    """Return the level itself, or the highest that is offered below it."""
    below = [other for other in offered if LEVELS.index(other) <= LEVELS.index(level)]
    return below[-1] if below else level


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

    An id that ends like a thinking level counts whole where the catalog has it so. Before a model counts as unknown,
    the agent is asked for its list again, if the catalog may do that. Then it is refused if the agent's list is
    complete; otherwise it is passed on with a notice, because the agent may have it all the same.
    """
    check_text(ref)
    base, thinking = split_thinking(ref)
    if catalog is None:
        return Literal(base, thinking)
    known = _known(ref, None, catalog) or _known(base, thinking, catalog)
    if known is None and catalog.renew():
        known = _known(ref, None, catalog) or _known(base, thinking, catalog)
    return known or _unknown(base, thinking, catalog)


def listed(ref: str, catalog: Catalog) -> str:
    """Return the model that is meant, as the catalog writes it; empty if the agent is not known to have it."""
    known = _known(ref, None, catalog) or _known(split_thinking(ref)[0], None, catalog)
    return known.resolved if known else ""


def unusable(ref: str, why: str, hint: str, brief_hint: str | None = None, code: str = "") -> ModelError:
    """Make the error about a reference; `why` is the rest of a sentence that begins with its name."""
    return ModelError(f'the model "{one_line(ref, 80)}" {why}', hint=hint, brief_hint=brief_hint, code=code)


def check_text(ref: str) -> None:
    """Raise ModelError for what cannot be handed to a program as a model."""
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
    # An id may have a slash of its own: `openai/gpt-oss-120b` of one provider is not a model of the provider openai.
    first, *others = [model.ref for model in catalog.named(ref) if catalog.has(model)] or [""]
    if not first:
        return None
    some = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
    return Literal(first, thinking, (f"{ref} means {first} here; it could also be {some}",) if others else ())


def _unknown(ref: str, thinking: str | None, catalog: Catalog) -> Literal:
    """Refuse a model that the agent does not have, or pass on one that it may have."""
    models = tuple(filter(catalog.has, catalog.models()))
    unlisted = catalog.find(ref) if "/" in ref else next(iter(catalog.named(ref)), None)
    close = _nearest_models(ref, models)
    near = f"did you mean {', '.join(close)}?" if close else ""
    brief = f"did you mean {close[0]}?" if close else _AS_LITERAL
    known = ", ".join(model.ref for model in models[:KNOWN_IDS]) + (" …" if len(models) > KNOWN_IDS else "")
    is_bare = "/" not in ref
    if catalog.is_complete or (is_bare and unlisted is None and not catalog.takes_others):
        no_key = "; its key may be missing" if unlisted and unlisted.source == BUILT_IN else ""
        some = f"known: {known}" if known and (is_bare or not near) else ""
        way_out = f"if the agent has it, add it to models in {user_settings_file()}" if not is_bare else ""
        hint = _joined(catalog, near, some or ("" if near else _AS_LITERAL), way_out)
        why = f"is not available: not in {catalog.source}{no_key}"
        raise unusable(ref, why, hint, brief, code="model.not_found")
    resolved = unlisted.ref if unlisted else ref
    if not catalog.has_own_list:
        return Literal(resolved, thinking)
    text = f"{ref} is not in {catalog.source}: the agent may refuse it, or use a similar one"
    return Literal(resolved, thinking, (_joined(catalog, text, near or f"known: {known}"),))


def _nearest_models(ref: str, models: Sequence[Model]) -> list[str]:
    """Return the models that may have been meant, the nearest first, as `provider/id`."""
    provider, slash, model_id = ref.lower().partition("/")
    of_provider = {model.id.lower(): model.ref for model in models if slash and model.provider.lower() == provider}
    names = {name.lower(): model.ref for model in reversed(models) for name in (model.ref, model.id)}
    close = [of_provider[name] for name in nearest_of(model_id, of_provider, cutoff=_ALIKE, count=NEAREST)]
    close += [names[name] for name in nearest_of(ref.lower(), names, cutoff=_ALIKE, count=NEAREST)]
    return list(dict.fromkeys(close))[:NEAREST]


def _joined(catalog: Catalog, *hints: str) -> str:
    """Return the hints, and what is missing in the catalog, in one line."""
    refresh = catalog.refresh_hint if catalog.may_lack_some else ""
    return one_line("; ".join(filter(None, (*hints, *catalog.problems, refresh))), 2000)
