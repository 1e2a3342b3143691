"""Whether each agent is logged in, from its files and the environment."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.choice import choose_agent, login_of
from subdeck.core.agents.installed import known_agents
from subdeck.core.agents.login import LoginState
from subdeck.core.agents.pi._models import pi_list
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.models.catalog import Model

IN, OUT, UNKNOWN = LoginState.IN, LoginState.OUT, LoginState.UNKNOWN
SOON, LONG_AGO = 4e12, 1e12
"""Milliseconds since 1970."""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of all agents, with only these on PATH, and no key in the environment."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in ("claude", "codex", "pi", "gemini"):
        (directory / name).write_text("#!/bin/sh\nexit 9\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith(("AWS_", "GOOGLE_", "AZURE_", "CLAUDE", "CODEX")):
            monkeypatch.delenv(name)
    return directory


def write(path: str, content: Any) -> None:
    file = Path(os.path.expanduser(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def login(name: str, settings: Settings | None = None) -> tuple[LoginState, str]:
    settings = settings or Settings()
    found = login_of(choose_agent(name, settings), settings)
    return found.state, found.source


OAUTH = "~/.claude/.credentials.json"


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({}, {}, (OUT, "")),
        ({}, {"ANTHROPIC_API_KEY": "k"}, (IN, "ANTHROPIC_API_KEY")),
        ({}, {"ANTHROPIC_API_KEY": ""}, (OUT, "")),
        ({}, {"CLAUDE_CODE_USE_VERTEX": "1"}, (UNKNOWN, "")),
        ({OAUTH: {"claudeAiOauth": {"accessToken": "a", "expiresAt": SOON}}}, {}, (IN, "")),
        ({OAUTH: {"claudeAiOauth": {"accessToken": "a", "expiresAt": LONG_AGO}}}, {}, (OUT, "")),
        ({OAUTH: {"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "expiresAt": LONG_AGO}}}, {}, (IN, "")),
        ({OAUTH: {}}, {}, (OUT, "")),
        ({OAUTH: "no json"}, {}, (UNKNOWN, "")),
        ({"~/.claude.json": {"primaryApiKey": "k"}}, {}, (IN, "")),
        ({"~/.claude.json": {"oauthAccount": {"emailAddress": "a@b.c"}}}, {}, (UNKNOWN, "")),
        ({"~/.claude.json": {"numStartups": 3}}, {}, (OUT, "")),
        ({"~/.claude/settings.json": {"env": {"ANTHROPIC_AUTH_TOKEN": "t"}}}, {}, (IN, "ANTHROPIC_AUTH_TOKEN")),
        ({"~/.claude/settings.json": {"apiKeyHelper": "get-key"}}, {}, (UNKNOWN, "")),
    ],
)
def test_claude_code(
    programs: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Any], variables: dict[str, str], expected: object
) -> None:
    """A key, a usable login, or settings with one count as logged in. An unreadable login is unknown."""
    for path, content in files.items():
        write(path, content)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert expected == login("claude")


def test_claude_code_elsewhere(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The login is read from the directory in CLAUDE_CONFIG_DIR, also if the agent's settings set it."""
    write(f"{tmp_path}/work/.credentials.json", {"claudeAiOauth": {"refreshToken": "r"}})
    assert (OUT, "") == login("claude")
    own = AgentSettings(command=("claude",), env={"CLAUDE_CONFIG_DIR": f"{tmp_path}/work"})
    assert (IN, "") == login("claude", Settings(agents={"claude": own}))


MOCK = 'model_provider = "mock"\n[model_providers.mock]\n'


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({}, {}, (OUT, "")),
        ({}, {"OPENAI_API_KEY": "k"}, (IN, "OPENAI_API_KEY")),
        ({"~/.codex/auth.json": {"OPENAI_API_KEY": "k", "tokens": None}}, {}, (IN, "")),
        ({"~/.codex/auth.json": {"OPENAI_API_KEY": None, "tokens": {"refresh_token": "r"}}}, {}, (IN, "")),
        ({"~/.codex/auth.json": {"OPENAI_API_KEY": None, "tokens": None}}, {}, (OUT, "")),
        ({"~/.codex/auth.json": "{"}, {}, (UNKNOWN, "")),
        ({"~/.codex/config.toml": 'model = "gpt-5"\n'}, {}, (OUT, "")),
        ({"~/.codex/config.toml": "[[["}, {}, (UNKNOWN, "")),
        ({"~/.codex/config.toml": 'cli_auth_credentials_store = "keyring"\n'}, {}, (UNKNOWN, "")),
        ({"~/.codex/config.toml": MOCK + 'base_url = "http://localhost"\n'}, {}, (UNKNOWN, "")),
        ({"~/.codex/config.toml": MOCK + 'env_key = "MOCK_KEY"\n'}, {}, (OUT, "")),
        ({"~/.codex/config.toml": MOCK + 'env_key = "MOCK_KEY"\n'}, {"MOCK_KEY": "k"}, (IN, "MOCK_KEY")),
    ],
)
def test_codex(
    programs: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Any], variables: dict[str, str], expected: object
) -> None:
    """A key, a login, or the key of the configured provider counts. A provider without a key is unknown."""
    for path, content in files.items():
        write(path, content)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert expected == login("codex")


CUSTOM = {"providers": {"own": {"baseUrl": "http://localhost", "apiKey": "k", "models": [{"id": "m"}]}}}


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({}, {}, (OUT, "")),
        ({}, {"OPENROUTER_API_KEY": "k"}, (IN, "OPENROUTER_API_KEY")),
        ({}, {"GITHUB_TOKEN": "t"}, (UNKNOWN, "")),
        ({"~/.pi/agent/auth.json": {}}, {}, (OUT, "")),
        ({"~/.pi/agent/auth.json": {"anthropic": {"type": "oauth"}}}, {}, (IN, "")),
        ({"~/.pi/agent/auth.json": "["}, {}, (UNKNOWN, "")),
        ({"~/.pi/agent/models.json": CUSTOM}, {}, (IN, "")),
        ({"~/.pi/agent/extensions/subdeck.ts": ""}, {}, (OUT, "")),
        ({"~/.pi/agent/extensions/provider.ts": ""}, {}, (UNKNOWN, "")),
    ],
)
def test_pi(
    programs: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Any], variables: dict[str, str], expected: object
) -> None:
    """A key or login of any provider, or the user's own models, count. With an extension, the login is unknown."""
    for path, content in files.items():
        write(path, content)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert expected == login("pi")


@pytest.mark.parametrize(("models", "expected"), [((), OUT), ((Model("a", "b", "pi"),), IN)])
def test_pi_by_its_last_list(
    programs: Path, monkeypatch: pytest.MonkeyPatch, models: tuple[Model, ...], expected: LoginState
) -> None:
    """pi's last list decides, while nothing that it depends on has changed."""
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    known = pi_list(choose_agent("pi", Settings()))
    known.keep(models, known.key)
    assert expected == login("pi")[0]


def test_all_that_can_be_named(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each agent has its version and login, or the reason why it is unusable with a way out, without starting a
    process.
    """

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    (programs / "codex").unlink()
    settings = Settings(
        agents={
            "gemini": AgentSettings(command=("gemini", "--acp"), kind="acp"),
            "mine": AgentSettings(command=("pi", "--fast")),
        }
    )
    known = {agent.name: agent for agent in known_agents(settings)}
    assert ["pi", "claude", "codex", "offline", "gemini", "mine"] == list(known)
    assert "version unknown · not logged in: run claude, then /login" == known["claude"].words
    assert "not usable here: codex is not on PATH" == known["codex"].words
    assert "npm install -g @openai/codex" in known["codex"].hint
    assert "needs no login, uses no model" == known["offline"].words
    assert [UNKNOWN, UNKNOWN] == [known[name].login.state for name in ("gemini", "mine")]


def test_the_version_of_a_native_installation(programs: Path, tmp_path: Path) -> None:
    """Claude Code's own installer puts the version into the target path of the `claude` link."""
    native = tmp_path / "share/claude/versions/2.1.330"
    native.parent.mkdir(parents=True)
    (programs / "claude").rename(native)
    (programs / "claude").symlink_to(native)
    assert "2.1.330" == choose_agent("claude", Settings()).version


def test_a_login_ends(programs: Path) -> None:
    """A token that cannot be renewed counts until it expires."""
    for seconds, expected in ((60, IN), (-60, OUT)):
        write(OAUTH, {"claudeAiOauth": {"accessToken": "a", "expiresAt": (time.time() + seconds) * 1000}})
        assert expected == login("claude")[0]
