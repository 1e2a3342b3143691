"""What a field that asks for a model can offer: known without starting anything."""

from __future__ import annotations

from ..agents.choice import catalog_of, choose_agent
from ..config.settings import Settings
from ..errors import AgentUnavailable
from ..models.catalog import Catalog, settings_listing
from ..models.roles import RolesFault, provider_roles


def model_choices(agent: str | None, settings: Settings) -> tuple[str, ...]:
    """Answer the roles that are set, then the models known of an agent (None: that of the settings), in catalog order.

    What an agent brings along without a key for it is left out. A source that cannot be read offers nothing; why is
    said when a model is resolved.
    """
    try:
        roles = {**provider_roles(), **settings.roles}
    except RolesFault:
        roles = settings.roles
    try:
        catalog = catalog_of(choose_agent(agent or settings.agent, settings), settings)
    except AgentUnavailable:
        catalog = None
    known = catalog or Catalog((lambda: settings_listing(settings.models),))
    models = (model.ref for model in known.models() if model.source != "built in")
    return tuple(dict.fromkeys((*(f"@{name}" for name in sorted(roles)), *models)))
