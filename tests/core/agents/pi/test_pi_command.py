"""pi's command as an agent: argv, environment and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core.agents.child import Start
from subdeck.core.agents.offline.child import CHILD as OFFLINE
from subdeck.core.agents.pi.program import COPILOT_EXTENSION, child_command
from subdeck.core.errors import LaunchError
from subdeck.core.run.model import LaunchedBy, RunMeta, Tools

INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
RUN_ID = "20261121-120000-abcdef"
BASE = ("/opt/pi", "--mode", "json")

META = RunMeta(
    run_id=RUN_ID,
    task="-@ look",
    cwd="/project",
    agent="pi",
    agent_command=("/opt/pi",),
    runner="process",
    created_at="2026-11-21T12:00:00.000Z",
    launched_by=LaunchedBy(session="operator", kind="cli"),
    resolved_model="fake/test",
    session_path="/runs/r/child-session.jsonl",
)


@pytest.fixture
def prompt(tmp_path: Path) -> str:
    file = tmp_path / "system-prompt.md"
    file.write_text("You read.")
    return str(file)


def argv(**changes: object) -> tuple[str, ...]:
    return child_command(replace(META, **changes), "/runs/r").argv


SESSION = ("--session", "/runs/r/child-session.jsonl")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("--model", "fake/test", *SESSION)),
        ({"resolved_model": ""}, SESSION),
        ({"session_path": None}, ("--model", "fake/test", "--no-session")),
        ({"session_path": "child-session.jsonl"}, ("--model", "fake/test", *SESSION)),
        ({"thinking": "high"}, ("--model", "fake/test", *SESSION, "--thinking", "high")),
        ({"tools": Tools(policy="allow", resolved=("read", "grep"))}, (
            "--model", "fake/test", *SESSION, "--tools", "read,grep",
        )),
        ({"tools": Tools(policy="allow", resolved=())}, ("--model", "fake/test", *SESSION, "--no-tools")),
    ],
)  # fmt: skip
def test_argv(changes: dict[str, object], expected: tuple[str, ...]) -> None:
    """Each setting of a run is one flag, in a fixed order, and the task is never in argv."""
    assert (*BASE, *expected) == argv(**changes)


def test_what_the_child_is_not_to_offer() -> None:
    """Since pi 0.77, denied tools have their own flag, which also names the tools that agents never get."""
    denied = argv(tools=Tools(policy="deny", excluded=("edit", "Agent")))
    assert (
        "--exclude-tools",
        "edit,Agent,background_agent,background_agent_send,background_agent_status,subagent",
    ) == denied[-2:]


def test_no_servers() -> None:
    """If no tool in the list belongs to an MCP server, pi starts no server."""
    assert ("--tools", "read", "--no-mcp") == argv(
        tools=Tools(policy="allow", resolved=("read",), starts_servers=False)
    )[-3:]
    assert ("--no-tools", "--no-mcp") == argv(tools=Tools(policy="allow", resolved=(), starts_servers=False))[-2:]


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ("0.73.1", ("--no-extensions", "--no-skills", "--no-prompt-templates")),
        ("1.5.2", ("--no-approve",)),
        (None, ("--no-extensions", "--no-skills", "--no-prompt-templates")),
    ],
)
def test_nothing_of_the_project(tmp_path: Path, version: str | None, flags: tuple[str, ...]) -> None:
    """`project_resources: false` excludes the project's files, with the flags of pi's version."""
    (tmp_path / "bin").mkdir()
    if version:
        about = {"name": "@earendil-works/pi-coding-agent", "version": version}
        (tmp_path / "package.json").write_text(json.dumps(about))
    command = (str(tmp_path / "bin" / "pi"),)
    assert flags == argv(agent_command=command, project_resources=False)[-len(flags) :]
    assert not set(flags) & set(argv(agent_command=command, project_resources=True))
    offline = replace(META, agent="offline", agent_command=command, project_resources=False)
    assert not set(flags) & set(OFFLINE.command(Start(offline, "/runs/r")).argv)


def test_program_prefix() -> None:
    """The configured command comes first, unchanged."""
    assert ("/usr/bin/node", "/opt/cli.js", "--mode", "json") == argv(agent_command=("/usr/bin/node", "/opt/cli.js"))[
        :4
    ]


def test_appended_system_prompt(prompt: str) -> None:
    """A preset's text is appended to pi's own system prompt, by file."""
    assert ("--append-system-prompt", prompt) == argv(system_prompt_path=prompt)[-2:]


def test_replaced_system_prompt(prompt: str) -> None:
    """A replaced system prompt also omits pi's context files."""
    assert ("--system-prompt", prompt, "-nc") == argv(system_prompt_path=prompt, prompt_mode="replace")[-3:]


@pytest.mark.parametrize(
    ("mode", "context_files", "leaves_out"),
    [
        ("append", None, False),
        ("append", True, False),
        ("append", False, True),
        ("replace", None, True),
        ("replace", True, False),
        ("replace", False, True),
    ],
)
def test_context_files(prompt: str, mode: str, context_files: bool | None, leaves_out: bool) -> None:
    """A preset decides whether pi reads its context files. By default, a replaced prompt omits them."""
    command = argv(system_prompt_path=prompt, prompt_mode=mode, context_files=context_files)
    assert leaves_out is ("-nc" in command)


def test_no_context_files_without_a_prompt() -> None:
    """They can be omitted without a system prompt."""
    assert "-nc" == argv(context_files=False)[-1]


def test_replaced_by_nothing() -> None:
    """Without a prompt there is nothing to replace."""
    assert (*BASE, "--model", "fake/test", *SESSION) == argv(prompt_mode="replace")


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_missing_system_prompt(mode: str, tmp_path: Path) -> None:
    """A missing system prompt file is an error, because pi would use its path as the prompt."""
    gone = str(tmp_path / "gone.md")
    with pytest.raises(LaunchError) as caught:
        argv(system_prompt_path=gone, prompt_mode=mode)
    assert gone == caught.value.where
    with pytest.raises(LaunchError):
        argv(system_prompt_path=str(tmp_path), prompt_mode=mode)


def test_everything_at_once(prompt: str) -> None:
    """The complete command line of a run with all settings."""
    everything = argv(
        resolved_model="github-copilot/gpt-4.1",
        thinking="low",
        tools=Tools(policy="allow", resolved=("read",)),
        system_prompt_path=prompt,
        prompt_mode="replace",
    )
    assert (
        *(*BASE, "--model", "github-copilot/gpt-4.1", *SESSION, "--thinking", "low", "--tools", "read"),
        *("--system-prompt", prompt, "-nc", "-e", COPILOT_EXTENSION),
    ) == everything


@pytest.mark.parametrize(
    "model", ["fake/test", "", "openrouter/github-copilot/x", "github-copilot-like/x", "github-copilot"]
)
def test_environment(model: str) -> None:
    """The environment marks an agent and its run, and the inherited initiator is removed."""
    command = child_command(replace(META, resolved_model=model), "/runs/r")
    assert {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": RUN_ID} == command.env
    assert (INITIATOR,) == command.unset
    assert "-e" not in command.argv


def test_copilot_environment() -> None:
    """Only agents with a GitHub Copilot model send the initiator `agent`."""
    meta = replace(META, requested_model="gpt-4.1", resolved_model="github-copilot/gpt-4.1")
    command = child_command(meta, "/runs/r")
    assert {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": RUN_ID, INITIATOR: "agent"} == command.env
    assert ("-e", COPILOT_EXTENSION) == command.argv[-2:]


@pytest.mark.parametrize("model", ["GitHub-Copilot/gpt-4.1", "github-copilot/org/x:8b"])
def test_copilot_by_another_spelling(model: str) -> None:
    """Like pi, subdeck ignores the case of a provider."""
    assert "-e" in argv(resolved_model=model)


@pytest.mark.parametrize(
    ("users", "projects", "expected"),
    [
        ('{"defaultProvider": "github-copilot"}', None, True),
        ('{"defaultProvider": "anthropic"}', None, False),
        ('{"defaultProvider": "anthropic"}', '{"defaultProvider": "github-copilot"}', True),
        ('{"defaultProvider": "github-copilot"}', '{"defaultProvider": "anthropic"}', False),
        ('{"defaultProvider": "github-copilot"}', "{", True),
        ('{"defaultProvider": ["github-copilot"]}', None, False),
        ("{", None, False),
        (None, None, False),
    ],
)
def test_copilot_as_pis_own_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str | None, projects: str | None, expected: bool
) -> None:
    """Without a model, the agent uses the default in pi's settings, which may be Copilot."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    for directory, text in ((tmp_path / "agent", users), (tmp_path / "here" / ".pi", projects)):
        directory.mkdir(parents=True)
        if text is not None:
            (directory / "settings.json").write_text(text)
    assert expected is ("-e" in argv(resolved_model="", cwd=str(tmp_path / "here")))


def test_requested_model_does_not_count() -> None:
    """The resolved model decides, not the requested one."""
    meta = replace(META, requested_model="github-copilot/gpt-4.1", resolved_model="fake/test")
    assert "-e" not in child_command(meta, "/runs/r").argv


def test_extension_is_there() -> None:
    """The extension is in the package and imports nothing."""
    source = Path(COPILOT_EXTENSION).read_text()
    assert "import" not in source.replace("It imports nothing", "")
