"""Whether Codex is logged in, from its files and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...system import files
from ...text.decoding import UNDECODABLE
from ..json_lines import mapping, string
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json
from .program import KEYS

_OUT = Login(LoginState.OUT, hint="run codex login")


def codex_login(environment: Mapping[str, str], home: str) -> Login:
    """Tell whether it is logged in: by a key, by a login in its home, or by the provider of its settings."""
    config = _config(os.path.join(home, "config.toml"))
    if config is None:
        return UNKNOWN
    provider = string(config.get("model_provider")) or "openai"
    if provider != "openai":
        return _at(mapping(mapping(config.get("model_providers")).get(provider)), environment)
    if key := next((name for name in KEYS if environment.get(name)), ""):
        return Login(LoginState.IN, key)
    login = read_json(os.path.join(home, "auth.json"))
    if login is None:
        return UNKNOWN
    tokens = mapping(login.get("tokens"))
    if string(login.get("OPENAI_API_KEY")) or string(tokens.get("refresh_token")) or string(tokens.get("access_token")):
        return LOGGED_IN
    is_in_keyring = string(config.get("cli_auth_credentials_store")) in ("keyring", "auto")
    return UNKNOWN if is_in_keyring else _OUT


def _at(provider: Mapping[str, object], environment: Mapping[str, str]) -> Login:
    """Tell it of a provider that the settings name: it may need no key at all."""
    key = string(provider.get("env_key"))
    if not key:
        return UNKNOWN
    return Login(LoginState.IN, key) if environment.get(key) else Login(LoginState.OUT, hint=f"set {key}")


def _config(path: str) -> dict[str, Any] | None:
    """Return the settings, empty if there are none; None if they cannot be read."""
    import tomllib  # only who asks about logins reads TOML

    try:
        return tomllib.loads(files.read(path).decode("utf-8", "replace"))
    except FileNotFoundError:
        return {}
    except (OSError, *UNDECODABLE):
        return None
