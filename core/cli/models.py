"""`subdeck models`: the models and roles that a preset or a run can name."""

from __future__ import annotations

from typing import Any

import click

from ..agents.choice import AgentChoice, catalog_of
from ..agents.pi.refresh import refresh_models
from ..config.settings import Settings
from ..engine import Engine
from ..errors import ModelError, UsageError
from ..launch.model import resolve_model
from ..models.catalog import Catalog
from ..models.resolvers import provider_roles
from ..text.plain import one_line
from .options import json_option
from .output import document, note, say, terminal_width
from .table import Column, table

COLUMNS = (Column(120, least=24), Column(12), Column(8))
ROLE_COLUMNS = (Column(40, least=8), Column(120, least=24), Column(200, least=16))


@click.command("models")
@click.option("--refresh", is_flag=True, help="Ask pi for its current models, which starts pi once.")
@click.option("--all", "everything", is_flag=True, help="Also list models that pi knows but has no key for.")
@json_option
def command(refresh: bool, everything: bool, as_json: bool) -> int:
    """List the known models, in the order in which a bare id is looked up, and the roles.

    The list comes from the settings, from models.json and from what pi listed last. Nothing is started without
    --refresh.
    """
    engine = Engine.open()
    agent = engine.agent()
    catalog = catalog_of(agent, engine.settings)
    if refresh:
        if catalog is None:
            raise UsageError("this agent has no list of models", where=agent.label, hint="it takes any model")
        refresh_models(agent.command)
        catalog = catalog_of(agent, engine.settings)
    known = catalog or Catalog(())
    try:
        roles = {**provider_roles(), **engine.settings.roles}
        faults: tuple[str, ...] = ()
    except ModelError as error:
        roles, faults = dict(engine.settings.roles), (f"{error.where}: {error.what}",)
    models = [model for model in known.models() if everything or model.source != "built in"]
    resolved = {name: _resolved(name, agent, catalog, engine.settings) for name in sorted(roles)}
    problems = (*known.problems, *faults)
    if as_json:
        document(
            {
                "models": [
                    {"model": model.ref, "provider": model.provider, "id": model.id, "source": model.source,
                     "thinking": model.thinks}
                    for model in models
                ],
                "roles": {name: {"model": roles[name], **found} for name, found in resolved.items()},
                "complete": catalog is None or catalog.is_complete,
                "problems": problems,
            }
        )  # fmt: skip
        return 0
    cells = [(model.ref, model.source, "thinks" if model.thinks else "") for model in models]
    lines = table(COLUMNS, cells, terminal_width())
    rows = [(f"@{name}", roles[name], found["error"] or "") for name, found in resolved.items()]
    lines += ["", *table(ROLE_COLUMNS, rows, terminal_width())] if rows else []
    say("\n".join(lines) if models or rows else "No models are known yet.")
    for problem in problems:
        note(f"! {one_line(problem)}")
    if catalog is None:
        note(f"{agent.label} uses no model and takes any.")
    elif not catalog.is_complete:
        note(f"The list may lack models or be out of date: {catalog.refresh_hint}.")
    return 0


def _resolved(role: str, agent: AgentChoice, catalog: Catalog | None, settings: Settings) -> dict[str, Any]:
    try:
        model = resolve_model(f"@{role}", None, settings, agent.name, catalog=catalog, levels=agent.levels)
    except ModelError as error:
        return {"resolved": None, "thinking": None, "error": error.what}
    return {"resolved": model.resolved, "thinking": model.thinking, "error": None}
