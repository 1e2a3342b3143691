"""The agent that `auto` chooses, and Claude Code's errors and warnings, decided without starting a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.agents.agent import Wanted
from subdeck.core.agents.choice import catalog_of, choose_agent, offers, settled
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.errors import AgentUnavailable, UsageError
from subdeck.core.launch.model import ResolvedModel, resolve_model
from subdeck.core.run.model import PromptMode, ToolPolicy, Tools


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory as the only one on PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def install(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_text("#!/bin/sh\nexit 1\n")
        (directory / name).chmod(0o755)


@pytest.mark.parametrize(
    ("installed", "model", "key", "taken"),
    [
        (["pi", "claude", "codex"], "anthropic/x", True, "pi"),
        (["claude", "codex"], None, False, "claude"),
        (["codex"], None, False, "codex"),
        (["claude"], "anthropic/claude-opus-4-5", True, "claude"),
        (["claude"], "anthropic/claude-opus-4-5", False, "offline"),
        (["claude"], "sonnet", False, "claude"),
        (["claude"], "openai/gpt-5", True, "offline"),
        ([], None, True, "offline"),
    ],
)
def test_auto(
    programs: Path, monkeypatch: pytest.MonkeyPatch, installed: list[str], model: str | None, key: bool, taken: str
) -> None:
    """The first installed agent that can serve the model is chosen, by the credentials found."""
    install(programs, *installed)
    if key:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake")
    assert taken == choose_agent("auto", Settings(), model).name


def test_auto_takes_an_agent_of_acp_before_the_offline_one(programs: Path) -> None:
    """It is the first ACP agent in the settings that can be started, after pi, claude and codex, for runs without a
    model.
    """
    install(programs, "gemini")
    gone, gemini, other = (AgentSettings((name,), kind="acp") for name in ("gone", "gemini", "gemini"))
    settings = Settings(agents={"gone": gone, "gemini": gemini, "other": other})
    assert "gemini (pi is not on PATH)" == choose_agent("auto", settings).label
    assert "offline" == choose_agent("auto", settings, "openai/gpt-5").name
    assert "offline" == choose_agent("auto", Settings(agents={"mine": AgentSettings(("gemini",))})).name
    install(programs, "claude")
    assert "claude" == choose_agent("auto", settings).name


def test_why_it_was_taken(programs: Path) -> None:
    """An agent that is not the first choice is shown with the reason."""
    install(programs, "claude")
    assert "claude (pi is not on PATH)" == choose_agent("auto", Settings()).label
    assert "offline (pi is not on PATH)" == choose_agent("auto", Settings(), "openai/x").label


def wanted(**fields: object) -> Wanted:
    return Wanted(**{"model": "anthropic/claude-x", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "where", "what"),
    [
        ({"model": "openai/gpt-5"}, "model", "the agent claude has no models from openai"),
        ({"model": "openai/gpt-5", "where": "/a/b.md"}, "/a/b.md", "only from anthropic"),
        ({"tools": Tools(policy=ToolPolicy.ALLOW, resolved=("codemode",))}, "tools", "no tool like codemode"),
    ],
)
def test_what_claude_code_refuses(programs: Path, fields: dict[str, object], where: str, what: str) -> None:
    """Unsupported fields are refused with the field, the agent and the way out."""
    install(programs, "claude")
    with pytest.raises(UsageError) as caught:
        settled(choose_agent("claude", Settings()), wanted(**fields))
    assert where == caught.value.where
    assert what in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, []),
        ({"thinking": "off"}, []),
        ({"thinking": "high"}, ['thinking "high" is a hint']),
        ({"thinking": "minimal"}, ['using "low"', "is a hint"]),
        ({"context_files": False}, ["also ignores your own settings"]),
        ({"has_prompt": True, "prompt_mode": PromptMode.REPLACE}, ["prompt_mode: replace: Claude Code also ignores"]),
        ({"has_prompt": True, "prompt_mode": PromptMode.REPLACE, "context_files": True}, []),
        ({"project_resources": False}, ["also ignores the project's CLAUDE.md"]),
        ({"tools": Tools(policy=ToolPolicy.ALLOW, resolved=("read", "ls"))}, ["find and ls are one tool"]),
    ],
)
def test_what_is_advice_to_claude_code(programs: Path, fields: dict[str, object], words: list[str]) -> None:
    """Differences from the preset are warnings, before the launch and on the run."""
    install(programs, "claude")
    said = settled(choose_agent("claude", Settings()), wanted(**fields))
    assert len(words) == len(said)
    assert all(word in warning for word, warning in zip(words, said, strict=True))


@pytest.mark.parametrize(
    ("model", "resolved"),
    [
        ("sonnet", "anthropic/sonnet"),
        ("claude-opus-4-5:high", "anthropic/claude-opus-4-5"),
        ("anthropic/claude-new", "anthropic/claude-new"),
    ],
)
def test_models_of_claude_code(programs: Path, model: str, resolved: str) -> None:
    """Aliases and ids need no provider, and an unknown id gets no warning."""
    install(programs, "claude")
    found = resolve_model(model, None, Settings(), catalog=catalog_of(choose_agent("claude", Settings()), Settings()))
    assert (resolved, ()) == (found.resolved, found.notices)


@pytest.mark.parametrize(
    ("agent", "default", "resolved"),
    [
        ("claude", "openai/gpt-5", ""),
        ("claude", "fake/test:high", ""),
        ("claude", "gpt-5", ""),
        ("claude", "@fast", ""),
        ("claude", "anthropic/claude-x", "anthropic/claude-x"),
        ("claude", "haiku", "anthropic/haiku"),
        ("claude", "@deep", "anthropic/opus"),
        ("codex", "anthropic/claude-x", ""),
        ("codex", "haiku", ""),
        ("codex", "openai/gpt-5", "openai/gpt-5"),
        ("codex", "gpt-5", "openai/gpt-5"),
        ("pi", "a/b", "a/b"),
    ],
)
def test_a_default_that_is_meant_for_another_agent(programs: Path, agent: str, default: str, resolved: str) -> None:
    """It is used if the agent has it, or dropped with a notice. The model of a call is used or refused."""
    install(programs, agent)
    settings = Settings(default_model=default, roles={"fast": "openai/gpt-5", "deep": "opus"})
    choice = choose_agent(agent, settings)

    def resolve(call: str | None) -> ResolvedModel:
        return resolve_model(
            call,
            None,
            settings,
            has_default=choice.has_default_model,
            catalog=catalog_of(choice, settings),
            is_offered=lambda model: offers(choice, model),
        )

    found = resolve(None)
    assert resolved == found.resolved
    assert bool(resolved) is not any("default_model" in notice and default in notice for notice in found.notices)
    assert "x/y" == resolve("x/y").resolved


@pytest.mark.parametrize(
    ("installed", "default", "taken"),
    [
        (["claude", "codex"], "openai/gpt-5", "codex"),
        (["claude", "codex"], "anthropic/x", "claude"),
        (["claude", "codex"], "gpt-5", "codex"),
        (["claude", "codex"], "@fast", "codex"),
        (["claude", "codex"], "inherit", "claude"),
        (["claude", "codex"], None, "claude"),
        (["codex"], "sonnet", "offline"),
        (["pi", "codex"], "openai/gpt-5", "pi"),
    ],
)
def test_auto_for_the_default_model(
    programs: Path, monkeypatch: pytest.MonkeyPatch, installed: list[str], default: str | None, taken: str
) -> None:
    """If no model is named, the agent must serve `default_model`."""
    install(programs, *installed)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake")
    assert taken == choose_agent("auto", Settings(default_model=default, roles={"fast": "gpt-5"})).name


@pytest.mark.parametrize("command", ["nosuch", "/nosuch/agent"])
def test_who_named_a_program_is_not_told_to_install_another(programs: Path, command: str) -> None:
    """The hint for a missing program names the setting, and for an agent's usual program how to install it."""
    settings = Settings(agents={"mine": AgentSettings((command,)), "other-pi": AgentSettings(("/opt/nosuch/pi",))})
    hints: list[str] = []
    for name in ("mine", "other-pi"):
        with pytest.raises(AgentUnavailable) as caught:
            choose_agent(name, settings)
        hints.append(caught.value.hint)
    assert "set its program in agents.mine.command" == hints[0]
    assert "npm install" in hints[1] and "agents.other-pi.command" in hints[1]
