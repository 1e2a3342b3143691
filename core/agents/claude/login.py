"""Whether Claude Code is logged in, from its files and the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from ..json_lines import amount, mapping, string
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json
from .program import home

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK")
CREDENTIALS = ".credentials.json"
_CLOUDS = ("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Variables with which another service logs in, by means that are not looked at."""
_STATE = ".claude.json"
_SETTINGS = "settings.json"
_OUT = Login(LoginState.OUT, hint="run claude, then /login")


def claude_login(environment: Mapping[str, str]) -> Login:
    """Tell whether it is logged in: by a key, by a login that has not expired, or by its settings."""
    if key := next((name for name in KEYS if environment.get(name)), ""):
        return Login(LoginState.IN, key)
    directory = home(environment)
    credentials, settings = read_json(f"{directory}/{CREDENTIALS}"), read_json(f"{directory}/{_SETTINGS}")
    if credentials and _is_valid(mapping(credentials.get("claudeAiOauth"))):
        return LOGGED_IN
    state = read_json(_state_file(environment))
    if state and string(state.get("primaryApiKey")):
        return LOGGED_IN
    set_here = mapping((settings or {}).get("env"))
    if key := next((name for name in KEYS if set_here.get(name)), ""):
        return Login(LoginState.IN, key)
    is_elsewhere = any(environment.get(name) or set_here.get(name) for name in _CLOUDS) or (settings or {}).get(
        "apiKeyHelper"
    )
    has_account = not credentials and bool(state and state.get("oauthAccount"))
    """An account without credentials in a file: they may be in a keychain."""
    return UNKNOWN if None in (credentials, settings, state) or is_elsewhere or has_account else _OUT


def _is_valid(login: Mapping[str, object]) -> bool:
    """Tell whether a login can be used: its token has not expired, or it can be renewed."""
    if string(login.get("refreshToken")):
        return True
    expires = amount(login.get("expiresAt"))
    return bool(string(login.get("accessToken"))) and (not expires or time.time() * 1000 < expires)


def _state_file(environment: Mapping[str, str]) -> str:
    """Return the file in which it keeps its account."""
    return os.path.join(environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", ""), _STATE)
