"""Catalogs for tests of models."""

from __future__ import annotations

from subdeck.core.models.catalog import Catalog, Listing, Model


def catalog(*refs: str, complete: bool = False, own: bool = True) -> Catalog:
    """Make a catalog of one listing; refs are `provider/id`."""
    split = (ref.partition("/") for ref in refs)
    models = tuple(Model(provider, model_id, "pi") for provider, _, model_id in split)
    return Catalog([lambda: Listing(models, own=own, complete=complete, source="pi's list")], refresh="refresh it")
