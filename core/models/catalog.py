"""The models that are known of an agent, in order; each source is read only when the ones before have no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct


class Model(Struct, frozen=True):
    provider: str
    id: str
    """May hold `/` and `:`."""
    source: str
    """Where it is known from: `settings`, `models.json`, `pi` (its own list), `built in`."""
    thinks: bool | None = None
    """Whether it can be told how hard to think; None where that is not known."""

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}"


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

    def __init__(self, sources: Sequence[Callable[[], Listing]] = (), *, refresh: str = "") -> None:
        """`refresh` is the step that makes the catalog complete, for a person."""
        self._sources = tuple(sources)
        self._read: list[Listing] = []
        self.refresh_hint = refresh

    def listings(self) -> Iterator[Listing]:
        for at, source in enumerate(self._sources):
            if at == len(self._read):
                self._read.append(source())
            yield self._read[at]

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
        return next((model for model in self.models() if (model.provider.lower(), model.id) == wanted), None)

    def named(self, model_id: str) -> tuple[Model, ...]:
        """Return all models of an id, whichever their providers, in catalog order."""
        return tuple(model for model in self.models() if model.id == model_id)

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
