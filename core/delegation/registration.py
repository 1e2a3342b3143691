"""When a parent has to register the tools: pure rules over the models it can use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

CHILD = "PI_SUBAGENTS_CHILD"
"""`1` in the environment of every child: it never delegates."""


def is_child(environment: Mapping[str, str]) -> bool:
    return environment.get(CHILD) == "1"


def registration_key(models: Sequence[str], described: str = "") -> str:
    """Answer what tells one registration from another: the set of models, in whatever order and case.

    `described` stands for the rest that a parent is told (`schema.described`). Nothing given is changed.
    """
    lowered = sorted({model.lower() for model in models})
    return hashlib.sha256("\n".join((*lowered, "", described)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def should_register(
    key_before: str | None, models: Sequence[str], environment: Mapping[str, str], described: str = ""
) -> bool:
    """Tell whether to register now; `key_before` is that of the last registration, None before the first."""
    if is_child(environment) or not models:
        return False
    return registration_key(models, described) != key_before
