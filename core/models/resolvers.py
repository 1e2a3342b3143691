"""Resolve model references: by roles, then by other packages' entry points."""

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
from ..text.decoder import UNDECODABLE, decode, why
from ..text.plain import one_line
from .catalog import INHERIT, Catalog, read_literal

PROVIDERS = "providers.json"
"""A pi file in the agent directory that may contain roles."""

GROUP = "subdeck.model_resolvers"
"""Entry points of this group are callables that take a Probe."""


class Available(Struct):
    """References that a resolver knows; shown with the error."""

    roles: dict[str, str] | None = None
    models: tuple[str, ...] | None = None


class Probe(Struct, rename="camel"):
    """One reference to resolve; a resolver fills it in, or returns at once if it is already answered."""

    ref: str
    """As written, with whitespace trimmed."""
    resolved: str | None = None
    """`provider/id`, as passed to the agent; or `inherit`."""
    model: Any = None
    """Any object that represents the model; a text `provider/id` also counts as `resolved`."""
    thinking_level: str | None = None
    auth: dict[str, Any] | None = None
    """`ok` and `error`, if a resolver checks keys."""
    error: str | None = None
    """Why it cannot be resolved; the first error counts."""
    available: Available | None = None
    notices: tuple[str, ...] = ()
    """Notes for the user about a success."""

    @property
    def is_answered(self) -> bool:
        return self.model is not None or bool(self.resolved)


Resolver = Callable[[Probe], None]


def ask(ref: str, resolvers: Iterable[Resolver]) -> Probe:
    """Ask the resolvers in order; the first success counts, or otherwise the first error.

    An exception counts as an error; the other resolvers are still asked.
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
    """Load other packages' resolvers, ordered by entry point name; if one fails to load, it answers every reference
    with that error.
    """
    if not any(map(_may_have_resolvers, sys.path)):
        return ()
    from importlib.metadata import entry_points

    resolvers: list[Resolver] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            resolvers.append(entry.load())
        except Exception as fault:
            resolvers.append(_broken(one_line(f"cannot load the resolver {entry.name}: {fault}", 400)))
    return tuple(resolvers)


def _may_have_resolvers(directory: str) -> bool:
    """Whether a package in this directory may name the entry point group.

    Checked at each launch, because importlib.metadata takes 12 ms to load even if there is nothing.
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
    """Resolves `@role` by the settings, then by pi's `providers.json`; ignores other references.

    Without any roles it sets no error; the caller then reports that none are set up.
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
    """Return a role's model, or `inherit`; raise ModelError if it has none or names another role."""
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
    """Read the roles from pi's `providers.json`, by name without `@`; raises ModelError if the file is broken."""
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
