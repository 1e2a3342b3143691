"""Who may say what a model reference stands for: our own roles, then what other packages bring by entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from msgspec import Struct

from ..system import files
from ..text.plain import one_line

GROUP = "subdeck.model_resolvers"
"""Entry points of this group are callables that take a Probe."""


class Available(Struct):
    """What a resolver could have resolved; it helps whoever reads the error."""

    roles: dict[str, str] | None = None
    models: tuple[str, ...] | None = None


class Probe(Struct, rename="camel"):
    """One question to the resolvers, which fill it in; a resolver returns at once when it is answered already."""

    ref: str
    """As written, without blanks around it."""
    resolved: str | None = None
    """`provider/id`, what the agent is told."""
    model: Any = None
    """Any object that stands for the model; a text `provider/id` counts as `resolved` too."""
    thinking_level: str | None = None
    auth: dict[str, Any] | None = None
    """`ok` and `error`, where a resolver knows of keys."""
    error: str | None = None
    """Why it cannot be resolved; the first one sticks."""
    available: Available | None = None
    notices: tuple[str, ...] = ()
    """What a person should know although it worked."""

    @property
    def is_answered(self) -> bool:
        return self.model is not None or bool(self.resolved)


Resolver = Callable[[Probe], None]


def ask(ref: str, resolvers: Iterable[Resolver]) -> Probe:
    """Ask the resolvers in order: the first success ends it, the first error sticks when there is none.

    A resolver that raises has answered with an error; it keeps no other from being asked.
    """
    probe = Probe(ref)
    for resolve in resolvers:
        error, available = probe.error, probe.available
        try:
            resolve(probe)
        except Exception as fault:
            probe.error = one_line(f"the resolver {_name(resolve)} failed: {type(fault).__name__}: {fault}", 400)
        if probe.is_answered:
            if not probe.resolved and isinstance(probe.model, str):
                probe.resolved = probe.model
            probe.error = None
            return probe
        probe.error = error or probe.error
        probe.available = available or probe.available
    return probe


@cache
def installed_resolvers() -> tuple[Resolver, ...]:
    """Load the resolvers of other packages, by the names of their entry points; one that cannot be loaded answers
    every question with that error.
    """
    if not any(map(_may_have_resolvers, sys.path)):
        return ()
    from importlib.metadata import entry_points

    found: list[Resolver] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except Exception as fault:
            found.append(_broken(one_line(f"the resolver {entry.name} cannot be loaded: {fault}", 400)))
    return tuple(found)


def _may_have_resolvers(directory: str) -> bool:
    """Return whether a package that is installed there may name our group.

    Each launch asks; importlib.metadata would take 12 ms to load only to find nothing.
    """
    try:
        names = os.listdir(directory or os.curdir)
    except OSError:
        return os.path.isfile(directory)  # an archive, perhaps
    return any(
        name.endswith(".egg") or GROUP.encode() in _content(os.path.join(directory, name, "entry_points.txt"))
        for name in names
        if name.endswith((".dist-info", ".egg-info", ".egg"))
    )


def _content(path: str) -> bytes:
    try:
        return files.read(path)
    except OSError:
        return b""


def _broken(error: str) -> Resolver:
    def resolve(probe: Probe) -> None:
        probe.error = probe.error or error

    return resolve


def _name(resolve: Resolver) -> str:
    return str(getattr(resolve, "__qualname__", type(resolve).__qualname__))
