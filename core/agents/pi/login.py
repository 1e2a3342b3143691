"""Whether pi is logged in, from its files, its last list of models and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ... import paths
from ...models.catalog import Listing
from ...system import files
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json

_OTHER_KEYS = ("AWS_", "GOOGLE_", "AZURE_")
"""How the variables of services begin that log in by other means than one key."""
OURS = "subdeck.ts"
"""The extension that `subdeck pi install` writes, which brings no models."""
_OUT = Login(LoginState.OUT, hint="run pi, then /login, or set a provider's key")


def pi_login(environment: Mapping[str, str], set_up: Listing, told: Listing) -> Login:
    """Tell whether pi has a key or a login of any provider; `set_up` is its models.json, `told` its last own list."""
    if key := next((name for name in sorted(environment) if name.endswith("_API_KEY") and environment[name]), ""):
        return Login(LoginState.IN, key)
    logins = read_json(os.path.join(paths.agent_dir(), "auth.json"))
    if logins or set_up.models or (told.complete and told.models):
        return LOGGED_IN
    if told.complete:
        return _OUT
    has_others = any(name.endswith("_TOKEN") or name.startswith(_OTHER_KEYS) for name in environment)
    has_extensions = bool(set(files.names(os.path.join(paths.agent_dir(), "extensions"))) - {OURS})
    return UNKNOWN if logins is None or set_up.problem or has_others or has_extensions else _OUT
