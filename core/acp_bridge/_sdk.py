"""Load the ACP SDK in half the time, without parts that only its developers need."""

from __future__ import annotations

from typing import Any


def prepare() -> None:
    """Make later imports of the SDK faster; call it before the first one."""
    from pydantic import BaseModel, ConfigDict

    # One task uses about a dozen of the 200 message types; building all of them takes half a second.
    BaseModel.model_config = ConfigDict(defer_build=True)
    _leave_descriptions_out()


def _leave_descriptions_out() -> None:
    """Keep pydantic from reading the SDK's source for field descriptions, if its internals are as expected."""
    from pydantic import _internal

    fields: Any = getattr(_internal, "_fields", None)
    if fields is not None and hasattr(fields, "extract_docstrings_from_cls"):
        fields.extract_docstrings_from_cls = lambda *_, **__: {}  # pyright: ignore[reportUnknownLambdaType]
