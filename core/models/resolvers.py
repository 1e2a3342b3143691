"""Who may say what a model reference stands for: the roles, then what other packages bring by entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct

from ..config.yaml_tree import read_text
from ..errors import ContentError, ModelError, nearest
from ..paths import agent_dir
from ..system import files
from ..text.decoding import UNDECODABLE, decode, why
from ..text.plain import one_line
from .catalog import INHERIT, Catalog, read_literal

PROVIDERS = "providers.json"
"""A file of pi's, in the agent's directory, that may hold roles."""

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
    """`provider/id`, what the agent is told; or `inherit`."""
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
            name = getattr(resolve, "__qualname__", type(resolve).__qualname__)
            probe.error = one_line(f"the resolver {name} failed: {type(fault).__name__}: {fault}", 400)
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
            found.append(_broken(one_line(f"cannot load the resolver {entry.name}: {fault}", 400)))
    return tuple(found)


def _may_have_resolvers(directory: str) -> bool:
    """Return whether a package that is installed there may name our group.

    Each launch asks; importlib.metadata would take 12 ms to load only to find nothing.
    """
    return os.path.isfile(directory) or any(  # a file may be an archive of packages
        name.endswith(".egg") or GROUP.encode() in files.content(os.path.join(directory, name, "entry_points.txt"))
        for name in files.names(directory or os.curdir)
        if name.endswith((".dist-info", ".egg-info", ".egg"))
    )


def _broken(error: str) -> Resolver:
    def resolve(probe: Probe) -> None:
        probe.error = probe.error or error

    return resolve


class RolesResolver:
    """Resolves `@role` by the settings, then by pi's `providers.json`; leaves everything else alone.

    Without any role it sets no error: the one who asks then says that none are set up.
    """

    def __init__(self, roles: Mapping[str, str], catalog: Catalog | None) -> None:
        self._roles = roles
        self._catalog = catalog

    def __call__(self, probe: Probe) -> None:
        if probe.is_answered or not probe.ref.startswith("@"):
            return
        try:
            roles = self._roles if probe.ref[1:] in self._roles else {**provider_roles(), **self._roles}
        except ModelError as error:
            probe.error = f"{error.where}: {error.what}"
            return
        probe.available = Available(roles=dict(roles))
        if not roles:
            return
        try:
            target = _target(probe.ref, roles)
            if target == INHERIT:
                probe.resolved = probe.model = INHERIT
                return
            literal = read_literal(target, self._catalog)
        except ModelError as error:
            probe.error = one_line(error.advice, 1000)
            return
        probe.resolved = probe.model = literal.resolved
        probe.thinking_level = literal.thinking
        probe.notices = literal.notices


def _target(ref: str, roles: Mapping[str, str]) -> str:
    """Return the model that a role points to, or `inherit`; raise ModelError for none, or for another role."""
    if ref[1:] not in roles:
        names = [f"@{name}" for name in sorted(roles)]
        near = nearest(ref, names, cutoff=0.6)
        raise ModelError(
            one_line("; ".join(filter(None, ("unknown role", near, f"known: {', '.join(names[:20])}"))), 600)
        )
    target = roles[ref[1:]].strip()
    if target == ref:
        why = "to itself"
    elif target.startswith("@"):
        why = f'to another role, "{one_line(target, 60)}"'
    elif not target:
        why = "to nothing"
    else:
        return target
    raise ModelError(f"the role points {why}; set it to a model as provider/id")


def provider_roles() -> dict[str, str]:
    """Read the roles in pi's `providers.json`, by name without `@`; raises ModelError for a broken file."""
    path = os.path.join(agent_dir(), PROVIDERS)
    try:
        document = decode(read_text(path))
    except FileNotFoundError:
        return {}
    except ContentError as error:
        raise ModelError(error.what, where=error.within(path), hint=error.hint) from error
    except UNDECODABLE as error:
        raise ModelError(why(error), where=path) from error
    roles: object = cast("dict[str, Any]", document).get("roles", {}) if isinstance(document, dict) else None
    if not isinstance(roles, dict):
        raise ModelError('"roles" is not an object of role names and models', where=path)
    named = {name.removeprefix("@"): model for name, model in cast("dict[str, object]", roles).items()}
    for name, model in named.items():
        if not isinstance(model, str):
            raise ModelError(f'the role "{one_line(name, 60)}" is not a text such as provider/id', where=path)
    return cast("dict[str, str]", named)
