"""The SDK of the Agent Client Protocol, loaded in half of its time: without what only readers of its classes need."""

from __future__ import annotations

from typing import Any


def prepare() -> None:
    """Have whatever is imported of it from now on loaded so. Nothing of it may have been imported before."""
    from pydantic import BaseModel, ConfigDict

    # Of the 200 kinds of messages one task meets a dozen: to prepare all of them takes the SDK half a second.
    BaseModel.model_config = ConfigDict(defer_build=True)
    _leave_descriptions_out()


def _leave_descriptions_out() -> None:
    """Keep pydantic from reading the SDK's source for the descriptions of fields, where it does so as we know it."""
    from pydantic import _internal

    fields: Any = getattr(_internal, "_fields", None)
    if fields is not None and hasattr(fields, "extract_docstrings_from_cls"):
        fields.extract_docstrings_from_cls = lambda *_, **__: {}  # pyright: ignore[reportUnknownLambdaType]
