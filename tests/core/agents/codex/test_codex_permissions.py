"""The Codex settings for a preset's tools and other fields, and the refused ones."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.agents.agent import AgentChoice, Wanted
from subdeck.core.agents.codex import _exec_run, _program, _rollout, agent
from subdeck.core.agents.codex._items import Tokens
from subdeck.core.agents.codex._talk import own_name, settings_of, thread_params
from subdeck.core.agents.codex.permissions import TOOL_NAMES, OwnSettings, Permissions, denied_in_part, permissions_of
from subdeck.core.errors import UsageError
from subdeck.core.run.model import PromptMode, Tools
from subdeck.core.run.tool_policy import Offer, resolve_tools

from .codex_lines import start

OFFER = Offer(TOOL_NAMES, TOOL_NAMES, closed=True, excludes=True, leaves_servers=True)


def given(allow: list[str] | None = None, deny: list[str] | None = None) -> Permissions:
    return permissions_of(resolve_tools(allow, deny, offer=OFFER))


@pytest.fixture
def codex(monkeypatch: pytest.MonkeyPatch) -> agent.CodexAgent:
    """A Codex with a usable app-server."""
    monkeypatch.setattr(agent, "app_server_problem", lambda command: "")
    return agent.CodexAgent()


@pytest.fixture
def old_codex(monkeypatch: pytest.MonkeyPatch) -> agent.CodexAgent:
    """A Codex with only `codex exec`."""
    monkeypatch.setattr(agent, "app_server_problem", lambda command: "it has no app-server")
    return agent.CodexAgent()


def choice() -> Any:
    return agent.AgentChoice("codex", ("/opt/codex",), TOOL_NAMES, False, kind="codex")


def test_without_a_list_the_users_own_permissions_hold() -> None:
    """Codex gets no permission settings, above all none that turns off its sandbox."""
    assert Permissions() == given()


def test_a_list_of_readers_writes_nothing() -> None:
    permissions = given(["read", "grep"])
    assert ("read-only", True, True) == (permissions.sandbox, permissions.web_search_off, permissions.servers_off)
    assert "shell_tool" not in permissions.features_off


@pytest.mark.parametrize("name", ["bash", "edit", "write"])
def test_a_list_with_a_writer_writes_in_the_project(name: str) -> None:
    assert "workspace-write" == given(["read", name]).sandbox


def test_no_tools_are_no_tools() -> None:
    """The shell, the web and nested agents are turned off."""
    permissions = given([])
    assert ("read-only", True, True) == (permissions.sandbox, permissions.web_search_off, permissions.servers_off)
    assert {"shell_tool", "unified_exec", "multi_agent", "view_image"} <= set(permissions.features_off)


def test_only_the_web() -> None:
    """A list may name tools that only Codex has."""
    permissions = given(["web_search"])
    assert not permissions.web_search_off
    assert "shell_tool" in permissions.features_off


def test_denied_writing_is_a_read_only_sandbox() -> None:
    assert ("read-only", False) == (given(deny=["edit", "write"]).sandbox, given(deny=["edit", "write"]).web_search_off)
    assert (None, True) == (given(deny=["web_search"]).sandbox, given(deny=["web_search"]).web_search_off)


@pytest.mark.parametrize("name", ["Agent", "Task"])
def test_denied_agents_are_not_started(name: str) -> None:
    """The other programs' names of nested agents also deny those of Codex."""
    assert "multi_agent" in given(deny=[name]).features_off
    assert "" == denied_in_part(resolve_tools(None, [name], offer=OFFER))
    assert () == given(deny=["web_search"]).features_off


@pytest.mark.parametrize("denied", [["bash"], ["read"], ["edit"], ["write", "bash"], ["grep", "edit", "write"]])
def test_a_denial_that_cannot_be_kept_is_refused(codex: agent.CodexAgent, denied: list[str]) -> None:
    """The error names the field, the agent and the way out."""
    tools = resolve_tools(None, denied, offer=OFFER)
    with pytest.raises(UsageError) as refused:
        codex.settle(choice(), Wanted(tools=tools))
    assert ("denied_tools", True) == (refused.value.where, refused.value.what.startswith("codex"))
    assert "tools" in refused.value.hint


@pytest.mark.parametrize("allow", [["read"], ["read", "edit"]])
def test_commands_that_no_list_names_are_told_of(codex: agent.CodexAgent, allow: list[str]) -> None:
    (warning,) = codex.settle(choice(), Wanted(tools=resolve_tools(allow, offer=OFFER)))
    assert warning.startswith("tools: codex") and "sandbox" in warning


def test_a_model_of_another_provider_is_refused(codex: agent.CodexAgent) -> None:
    with pytest.raises(UsageError, match='no models from the provider "anthropic"'):
        codex.settle(choice(), Wanted(model="anthropic/sonnet"))
    assert () == codex.settle(choice(), Wanted(model="openai/gpt"))
    assert () == codex.settle(choice(), Wanted(model="gpt"))
    assert ["gpt", "gpt", "gpt"] == [own_name("openai/gpt"), own_name("OpenAI/gpt"), own_name("gpt")]


def test_what_only_the_app_server_can_do(old_codex: agent.CodexAgent) -> None:
    """Without the app-server, a note lists the limits, and unsupported fields are refused by name."""
    (notice,) = old_codex.settle(choice(), Wanted())
    assert "shows no text until a message is complete" in notice
    for field, wanted in (("structured_result", Wanted(finalize=True)), ("max_turns", Wanted(max_turns=3))):
        with pytest.raises(UsageError) as refused:
            old_codex.settle(choice(), wanted)
        assert field == refused.value.where
    notes = old_codex.settle(choice(), Wanted(has_prompt=True))
    assert any(note.startswith("prompt: ") for note in notes)


# --- settings ---


def test_context_files(tmp_path: Path) -> None:
    """AGENTS.md is omitted if the preset turns it off, or if the preset's prompt replaces Codex's."""
    trusting = OwnSettings(projects={"/srv/shop": {"trust_level": "trusted"}})
    assert {} == settings_of(start(tmp_path).meta, trusting)
    assert {"project_doc_max_bytes": 0} == settings_of(start(tmp_path, context_files=False).meta, trusting)
    replaced = {"system_prompt_path": "system-prompt.md", "prompt_mode": PromptMode.REPLACE}
    assert {"project_doc_max_bytes": 0} == settings_of(start(tmp_path, **replaced).meta, trusting)
    assert {} == settings_of(start(tmp_path, context_files=True, **replaced).meta, trusting)


def test_project_resources(tmp_path: Path) -> None:
    """A trusted project is untrusted in this run, in any directory of it."""
    below = tmp_path / "shop" / "below"
    below.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    params = thread_params(start(tmp_path, project_resources=False, cwd=str(below)), OwnSettings())
    assert {str(below), str(tmp_path / "shop")} == set(params["config"]["projects"])
    assert {"include_instructions": False} == params["config"]["skills"]


@pytest.mark.parametrize(
    ("mode", "field"), [(PromptMode.APPEND, "developerInstructions"), (PromptMode.REPLACE, "baseInstructions")]
)
def test_prompts(tmp_path: Path, mode: PromptMode, field: str) -> None:
    (tmp_path / "system-prompt.md").write_text("You are a scout.")
    params = thread_params(start(tmp_path, system_prompt_path="system-prompt.md", prompt_mode=mode), OwnSettings())
    assert "You are a scout." == params[field]


def test_who_serves_a_model(codex: agent.CodexAgent, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex serves OpenAI models if a key or login is found, without starting a program."""
    monkeypatch.setenv("CODEX_HOME", str(world / "codex"))
    choice = AgentChoice("codex", ("codex",), (), False, kind="codex")
    assert not codex.serves(choice, "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk")
    assert [True, True, False] == [codex.serves(choice, provider) for provider in ("openai", "", "anthropic")]
    monkeypatch.delenv("OPENAI_API_KEY")
    (world / "codex").mkdir()
    (world / "codex" / "auth.json").write_text("{}")
    assert codex.serves(choice, "openai")
    elsewhere = replace(choice, env={"CODEX_HOME": "/nowhere"})
    assert not codex.serves(elsewhere, "openai")


# --- exec ---


def flags(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings in an argv, as Codex reads them."""
    pairs = [words[number + 1] for number, word in enumerate(words) if word == "-c"]
    return tomllib.loads("\n".join(pairs))


def test_exec_says_the_same(tmp_path: Path, world: Path) -> None:
    """Everything except the prompts is in argv."""
    tools = Tools(policy="allow", resolved=("read",), starts_servers=False)
    begun = start(
        tmp_path,
        "t-0",
        tools=tools,
        thinking="off",
        resolved_model="openai/gpt",
        project_resources=False,
        cwd='/srv/a "b"',
    )
    command = _exec_run.exec_command(begun)
    words = command.argv
    assert ("codex", "exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-m", "gpt") == words[:8]
    assert ("resume", "t-0", "-") == words[-3:]
    settings = flags(words)
    assert ("none", "disabled", False) == (
        settings["model_reasoning_effort"],
        settings["web_search"],
        settings["features"]["multi_agent"],
    )
    assert {"trust_level": "untrusted"} == settings["projects"]['/srv/a "b"']
    assert not command.pipe
    assert "danger" not in " ".join(words)


def test_no_prompt_stands_in_an_argv(tmp_path: Path, world: Path) -> None:
    """`codex exec` takes an added prompt only in argv, so it goes before the task on stdin instead."""
    (tmp_path / "system-prompt.md").write_text("SECRET WORDS")
    appended = start(tmp_path, system_prompt_path="system-prompt.md")
    command, stream = _exec_run.exec_command(appended), _exec_run.exec_stream(appended)
    assert (True, b"SECRET WORDS\n\nLook.") == (command.pipe, stream.replies())
    replaced = start(tmp_path, system_prompt_path="system-prompt.md", prompt_mode=PromptMode.REPLACE)
    command, stream = _exec_run.exec_command(replaced), _exec_run.exec_stream(replaced)
    assert (False, b"") == (command.pipe, stream.replies())
    assert str(tmp_path / "system-prompt.md") == flags(command.argv)["model_instructions_file"]
    assert not any("SECRET" in word for word in command.argv)


def test_a_session_that_is_not_kept(tmp_path: Path, world: Path) -> None:
    assert "--ephemeral" in _exec_run.exec_command(start(tmp_path, agent_session=None)).argv


def test_exec_starts_none_of_the_servers(tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool list turns off the MCP servers in the user's settings by name."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text('[mcp_servers.shop]\ncommand = "x"\n')
    listed = start(tmp_path, tools=Tools(policy="allow", resolved=("read",)))
    assert {"shop": {"enabled": False, "command": "x"}} == flags(_exec_run.exec_command(listed).argv)["mcp_servers"]
    (server,) = flags(_exec_run.exec_command(start(tmp_path)).argv)["mcp_servers"].values()
    assert ("x", "1") == (server["command"], server["env"]["PI_SUBAGENTS_CHILD"])


def test_what_a_conversation_had_used(tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`codex exec` doesn't report it, but the conversation's file has it, in any `CODEX_HOME` from the settings."""
    day = tmp_path / "sessions" / "2026" / "11" / "22"
    day.mkdir(parents=True)
    thread = "01a2019b-3fe4-7b72-8a44-0d3867fc1c7b"
    sums = (json.dumps({"total_token_usage": {"input_tokens": tokens, "output_tokens": 7}}) for tokens in (50, 90))
    (day / f"rollout-2026-11-22T04-55-05-{thread}.jsonl").write_text("\n".join(sums))
    monkeypatch.setenv(paths.AGENT_ENVIRONMENT, json.dumps({"CODEX_HOME": str(tmp_path)}))
    assert Tokens(input=90, output=7) == _rollout.tokens_before(thread)
    assert [Tokens()] * 3 == [_rollout.tokens_before(other) for other in (None, "../..", "0" * 36)]


# --- which of the two ---


def a_program(directory: Path, *lines: str) -> tuple[str, ...]:
    path = directory / "codex"
    path.write_text("\n".join(["#!/bin/sh", f"echo asked >> {directory}/asked", *lines, ""]))
    path.chmod(0o755)
    return (str(path),)


@pytest.mark.processes
def test_a_program_is_asked_once_for_its_protocol(tmp_path: Path, world: Path) -> None:
    """The answer is cached until the program changes."""
    command = a_program(tmp_path, "echo unknown subcommand >&2", "exit 2")
    problems = [_program.app_server_problem(command) for _ in range(3)]
    assert ["its app-server does not describe its protocol: unknown subcommand"] * 3 == problems
    assert "asked\n" == (tmp_path / "asked").read_text()
    assert not _program.may_talk(command)
    a_program(tmp_path, "exit 0")
    assert _program.may_talk(command), "as far as is known"
    assert "its app-server does not know ThreadStartParams.cwd" == _program.app_server_problem(command)
    assert "asked\nasked\n" == (tmp_path / "asked").read_text()


@pytest.mark.processes
def test_a_program_that_takes_no_messages(tmp_path: Path, world: Path) -> None:
    """Its app-server is still used, for non-interactive runs."""
    for title, fields in _program._USED.items():
        schema = {"properties": {name: {} for name in fields}}
        (tmp_path / f"{title}.json").write_text(json.dumps(schema))
    command = a_program(tmp_path, f'for out; do :; done; cp {tmp_path}/*.json "$out"')
    assert "" == _program.app_server_problem(command)
    assert _program.talk_problem(command).startswith("its app-server does not know TurnS")
    assert not _program.may_talk(command)
    assert "asked\n" == (tmp_path / "asked").read_text()
