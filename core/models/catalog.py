"""The models that are known of an agent, and which of them is meant by `provider/id`, a bare `id`, `…:thinking`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from ..errors import ModelError, nearest, nearest_of
from ..text.plain import one_line, plain

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most; `max` is not known to every agent."""

INHERIT = "inherit"
"""In place of a model: that of the parent, and where none is known, or the agent does not have it, the agent's own
default."""

KNOWN_IDS = 20
"""How many ids an error names."""

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
    providers: tuple[str, ...] = ()
    """Those that are known without one of their models too."""
    own: bool = False
    """Whether this is what the agent itself has, and not only what somebody added."""
    complete: bool = False
    """Whether nothing is missing that the agent would find."""
    problem: str = ""
    """Why the source could not be read, for a person."""


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
        self._sources = tuple(map(cache, sources))
        self.refresh_hint = refresh

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
        """Find a model by `provider/id`; the case of the provider does not matter, as in pi."""
        provider, _, model_id = ref.partition("/")
        wanted = (provider.lower(), model_id)
        known = next((model for model in self.models() if (model.provider.lower(), model.id) == wanted), None)
        return known or (self._unlisted(model_id) if wanted[0] == self._bare else None)

    def named(self, model_id: str) -> tuple[Model, ...]:
        """Return all models of an id, whichever their providers, in catalog order."""
        known = tuple(model for model in self.models() if model.id == model_id)
        unlisted = None if known or "/" in model_id else self._unlisted(model_id)
        return (unlisted,) if unlisted else known

    def _unlisted(self, model_id: str) -> Model | None:
        """Return a model of the only provider as it is named, which any id may be that does not end like a level."""
        is_whole = split_thinking(model_id)[1] is None
        return Model(self._bare, model_id, "named") if self._bare and is_whole else None

    def knows_provider(self, provider: str) -> bool:
        wanted = provider.lower()
        return any(
            wanted in (name.lower() for name in (*listing.providers, *(model.provider for model in listing.models)))
            for listing in self.listings()
        )

    @property
    def has_own_list(self) -> bool:
        """Whether enough is known to find a model strange that is not in here."""
        return any(listing.own for listing in self.listings())

    @property
    def is_complete(self) -> bool:
        """Whether a provider that is not in here is one that the agent does not know either."""
        return any(listing.complete for listing in self.listings())

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

    An id that ends like a thinking level counts whole where the catalog has it so. An unknown id of a known provider
    is passed on with a notice, because the agent runs it too.
    """
    check_text(ref)
    base, thinking = split_thinking(ref)
    if catalog is None:
        return Literal(base, thinking)
    return _known(ref, None, catalog) or _known(base, thinking, catalog) or _unknown(base, thinking, catalog)


def unusable(ref: str, why: str, hint: str, brief_hint: str | None = None) -> ModelError:
    """Make the error about a reference; `why` is the rest of a sentence that begins with its name."""
    return ModelError(f'the model "{one_line(ref, 80)}" {why}', hint=hint, brief_hint=brief_hint)


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
    if not slash and catalog.takes_others:
        return Literal(
            ref, thinking, (f"{ref} is not among the models that the agent listed: {_bare_hint(ref, catalog)}",)
        )
    if not slash:
        raise unusable(ref, "is not known here", _bare_hint(ref, catalog), _nearest_model(ref, catalog))
    if catalog.knows_provider(provider):
        return Literal(ref, thinking, _strange_id(ref, catalog))
    providers = tuple(dict.fromkeys(model.provider for model in catalog.models()))
    if catalog.is_complete:
        raise unusable(
            ref,
            f'is of the provider "{one_line(provider, 40)}", which the agent does not know',
            _joined(catalog, nearest(provider, providers) or f"known: {', '.join(providers)}"),
            _nearest_model(ref, catalog),
        )
    text = _joined(catalog, f"{ref} is not known here, nor is its provider")
    return Literal(ref, thinking, (text,) if catalog.has_own_list else ())


def _strange_id(ref: str, catalog: Catalog) -> tuple[str, ...]:
    """Say that an id is not among those of its provider; measured: pi then runs it, or one whose id is alike."""
    provider, _, model_id = ref.partition("/")
    ids = [model.id for model in catalog.models() if model.provider.lower() == provider.lower()]
    if not ids and not catalog.has_own_list:
        return ()
    text = f"{ref} is not known to {provider}: the agent may take it as it is, or use a similar one"
    return (_joined(catalog, text, nearest(model_id, ids)),)


def _nearest_model(ref: str, catalog: Catalog) -> str:
    """Return the one model that may have been meant; where none is like it, how models are written."""
    names = {name.lower(): model.ref for model in catalog.models() for name in (model.ref, model.id)}
    close = nearest_of(ref.lower(), names)
    return f"did you mean {names[close[0]]}?" if close else _AS_LITERAL


def _bare_hint(ref: str, catalog: Catalog) -> str:
    ids = tuple(dict.fromkeys(model.id for model in catalog.models()))
    some = ", ".join(ids[:KNOWN_IDS]) + (" …" if len(ids) > KNOWN_IDS else "")
    return _joined(catalog, f"{nearest(ref, ids)} Known ids: {some}".strip() if ids else _AS_LITERAL)


def _joined(catalog: Catalog, *hints: str) -> str:
    """Return the hints, and what is missing in the catalog, in one line."""
    refresh = "" if catalog.is_complete else catalog.refresh_hint
    return one_line("; ".join(filter(None, (*hints, *catalog.problems, refresh))), 2000)
