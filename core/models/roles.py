"""Roles: names like `@fast` that stand for a model of the user's choice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ..config.yaml_tree import read_text
from ..errors import ContentError, ModelError, nearest
from ..paths import agent_dir
from ..text.plain import one_line
from .catalog import Catalog
from .references import read_literal
from .resolvers import Available, Probe

PROVIDERS = "providers.json"


class RolesResolver:
    """Resolves `@role` by the settings, then by pi's `providers.json`; leaves everything else alone.

    Where nobody has set up any role it says nothing at all, so that the error can say that nobody resolves them.
    """

    def __init__(self, roles: Mapping[str, str], catalog: Catalog | None) -> None:
        self._roles = roles
        self._catalog = catalog

    def __call__(self, probe: Probe) -> None:
        if probe.is_answered or not probe.ref.startswith("@"):
            return
        role = probe.ref[1:]
        try:
            roles = self._roles if role in self._roles else {**provider_roles(), **self._roles}
        except ModelError as error:
            probe.error = probe.error or f"{error.where}: {error.what}"
            return
        if role in roles:
            self._resolve(probe, roles[role])
        elif roles:
            near = nearest(role, roles)
            known = ", ".join(f"@{name}" for name in sorted(roles)[:20])
            probe.error = probe.error or one_line(f"the role is unknown; {near or f'known are {known}'}", 600)
        probe.available = probe.available or Available(roles=dict(roles))

    def _resolve(self, probe: Probe, target: str) -> None:
        if target.lstrip().startswith("@"):
            itself = target.strip() == probe.ref
            why = "to itself" if itself else f'to another role, "{one_line(target, 60)}"'
            probe.error = probe.error or f"the role points {why}; let it name a model as provider/id"
            return
        if not target.strip():
            probe.error = probe.error or "the role points to nothing; let it name a model as provider/id"
            return
        try:
            literal = read_literal(target.strip(), self._catalog)
        except ModelError as error:
            probe.error = probe.error or one_line(error.advice, 1000)
            return
        probe.resolved = probe.model = literal.resolved
        probe.thinking_level = literal.thinking
        probe.notices = literal.notices


def provider_roles() -> dict[str, str]:
    """Read the roles in pi's `providers.json`, by name without `@`; raises ModelError for a broken file."""
    path = os.path.join(agent_dir(), PROVIDERS)
    try:
        document = msgspec.json.decode(read_text(path))
    except FileNotFoundError:
        return {}
    except ContentError as error:
        raise ModelError(error.what, where=error.within(path), hint=error.hint) from error
    except msgspec.DecodeError as error:
        raise ModelError(f"it is not valid JSON: {one_line(str(error), 200)}", where=path) from error
    roles: object = cast("dict[str, Any]", document).get("roles", {}) if isinstance(document, dict) else None
    if not isinstance(roles, dict):
        raise ModelError('"roles" is not an object of role names and models', where=path)
    named = {name.removeprefix("@"): model for name, model in cast("dict[str, object]", roles).items()}
    for name, model in named.items():
        if not isinstance(model, str):
            raise ModelError(f'the role "{one_line(name, 60)}" is not a text like provider/id', where=path)
    return cast("dict[str, str]", named)
