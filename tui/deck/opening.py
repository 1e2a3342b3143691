"""How the app is opened."""

from __future__ import annotations

from msgspec import Struct


class Opening(Struct, frozen=True):
    run_id: str | None = None
    """The run that is shown by itself until the operator goes to the deck."""
    readonly: bool = False
    """Whether nothing can be changed from here."""


AS_USUAL = Opening()
