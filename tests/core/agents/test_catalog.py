"""Each agent's model list: loaded once a day, and used to check launches."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Any

import msgspec
import pytest
from subdeck.core.agents.agent import AgentChoice
from subdeck.core.agents.choice import choose_agent, model_list, refresh_models
from subdeck.core.agents.installed import agents_of, due, models_of, refresh_all
from subdeck.core.agents.model_list import ASK_AGAIN_S
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.errors import AgentUnavailable
from subdeck.core.launch.model_choices import ModelChoice, model_choices, refresh_choices
from subdeck.core.models.catalog import Model, Price

from tests.core.command_line import start, subdeck
from tests.house.set_up import ACP_HOME
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

CLAUDE_MODELS = [
    {
        "value": "opus",
        "resolvedModel": "claude-opus-5-5",
        "description": "Opus 5.5 · Best · $4/$20 per Mtok",
        "supportsEffort": True,
    },
    {"value": "tiny", "description": "new"},
    {"value": 5},
]
CLAUDE = {
    "type": "control_response",
    "response": {"subtype": "success", "request_id": "models", "response": {"models": CLAUDE_MODELS}},
}
CODEX = {
    "id": 2,
    "result": {
        "data": [
            {"id": "gpt-9", "model": "gpt-9", "hidden": False, "supportedReasoningEfforts": [{}]},
            {"id": "secret", "model": "secret", "hidden": True},
        ]
    },
}
PI = "provider  model  context  max-out  thinking  images\nopenai    gpt-9  128K     16.4K    yes       no"


class Programs:
    """Agents that are shell scripts and count their starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()

    def make(self, name: str, script: str) -> None:
        path = self._directory / name
        path.write_text(f"#!/bin/sh\necho x >> {path}.starts\n{script}\n")
        path.chmod(0o755)

    def tells(self, name: str) -> None:
        said = {"pi": PI, "claude": json.dumps(CLAUDE), "codex": json.dumps(CODEX)}[name]
        (self._directory / f"{name}.said").write_text(f"{said}\n")
        self.make(name, ("" if name == "pi" else "read line; ") + f"cat {self._directory}/{name}.said")

    def starts(self, name: str) -> int:
        file = self._directory / f"{name}.starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def settings(self, *names: str, **more: Any) -> Settings:
        commands = {name: AgentSettings((str(self._directory / name),)) for name in names}
        return Settings(agents=commands, **more)

    def config(self, *names: str) -> dict[str, Any]:
        return {name: {"command": [str(self._directory / name)]} for name in names}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "bin")


def all_three(programs: Programs, **more: Any) -> Settings:
    for name in ("pi", "claude", "codex"):
        programs.tells(name)
    return programs.settings("pi", "claude", "codex", **more)


def refs(agent: AgentChoice, settings: Settings) -> list[str]:
    return [model.ref for model in models_of(agent, settings).models]


def test_each_agent_tells_its_models(programs: Programs) -> None:
    """All installed agents are asked at once, and their lists have each model's full name and price."""
    settings = all_three(programs)
    agents = agents_of("auto", settings)
    assert ["pi", "claude", "codex"] == [agent.name for agent in agents]
    assert {} == refresh_all(due(agents))

    pi, claude, codex = (models_of(agent, settings).models for agent in agents)
    assert (Model("openai", "gpt-9", "pi", True, context=128_000),) == pi
    opus = Model("anthropic", "opus", "claude", True, stands_for="claude-opus-5-5", price=Price(4, 20))
    assert (opus, Model("anthropic", "tiny", "claude", False)) == claude[:2]
    assert {"sonnet", "haiku"} < {model.id for model in claude}
    assert (Model("openai", "gpt-9", "codex", True),) == codex
    assert () == due(agents)


@pytest.mark.parametrize("name", ["pi", "claude", "codex"])
def test_a_program_is_started_once_a_day(programs: Programs, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again a day later, or at once if it is a newer version, even after an error. The earlier list is
    kept.
    """
    programs.tells(name)
    settings = programs.settings(name)
    agent = choose_agent(name, settings)
    for _ in range(3):
        refresh_all(due([agent]))
    assert 1 == programs.starts(name)
    known = refs(agent, settings)
    programs.make(name, "echo broken >&2; exit 3")  # another file counts as a newer version
    for _ in range(3):
        refresh_all(due([agent]))
    assert 2 == programs.starts(name)
    found = models_of(agent, settings)
    assert (known, f"{name} could not list its models: broken") == (
        [model.ref for model in found.models],
        found.problem,
    )
    asked = model_list(agent)
    assert asked and not asked.is_outdated, "nobody else has a reason to ask again"
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + ASK_AGAIN_S)
    assert (agent,) == due([agent])
    assert known == refs(agent, settings)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exec sleep 600", "no answer within 0.3 seconds"),
        ("sleep 600 & wait", "no answer within 0.3 seconds"),
        ("exec >&-; exec 2>&-; sleep 600", "no answer within 0.3 seconds"),
        ("yes", "it wrote more than"),
    ],
    ids=["hangs", "its child hangs", "is silent", "goes on"],
)
@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_program_that_never_answers(
    programs: Programs, name: str, script: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended at the limit with all its processes, and not asked again that day."""
    monkeypatch.setattr("subdeck.core.agents._query.LARGEST", 100_000)
    programs.make(name, script)
    agent = choose_agent(name, programs.settings(name))
    with pytest.raises(AgentUnavailable, match=f"could not list its models: {why}"):
        refresh_models(agent, 0.3)
    assert () == due([agent])


def test_where_a_program_is_asked(programs: Programs, project_dir: Path, home: Path) -> None:
    """It is asked in the user's home, so the project's files do not affect it."""
    programs.make("codex", f'pwd > {home}/where; read line; echo \'{{"id":2,"result":{{"data":[]}}}}\'')
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"agents": programs.config("codex")}))
    assert 0 == subdeck("models", cwd=project_dir).code
    assert str(home) == (home / "where").read_text().strip()


@pytest.mark.parametrize("said", ["", "null", "[]", "{", '{"id":2,"error":{"message":"no"}}', '{"id":2,"result":3}'])
def test_a_program_that_says_something_else(programs: Programs, said: str) -> None:
    """Any other output gives at most this error, and the earlier list is kept."""
    for name in ("claude", "codex"):
        programs.tells(name)
        settings = programs.settings(name)
        agent = choose_agent(name, settings)
        refresh_models(agent)
        programs.make(name, f"echo '{said}'")
        known = refs(agent, settings)
        with suppress(AgentUnavailable):
            assert () == tuple(refresh_models(agent))
            known = []
        assert set(known) <= set(refs(agent, settings))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"asked_at": 1e300}', b'{"models": [{"id": 5}]}'])
def test_a_broken_file_is_no_list(programs: Programs, content: bytes) -> None:
    """With a broken file, the list is empty and loaded again."""
    programs.tells("codex")
    settings = programs.settings("codex")
    agent = choose_agent("codex", settings)
    refresh_models(agent)
    known = model_list(agent)
    assert known
    Path(known._file).write_bytes(content)
    assert ([], (agent,)) == (refs(agent, settings), due([agent]))


def test_nobody_asks_twice_at_a_time(programs: Programs) -> None:
    """While one process asks an agent, others don't, unless it exited without an answer."""
    programs.tells("codex")
    agent = choose_agent("codex", programs.settings("codex"))
    known = model_list(agent)
    assert known
    known.begin(60)
    assert () == due([agent])
    known.begin(-1)
    assert (agent,) == due([agent])


def test_the_screen_waits_for_nobody(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outdated lists load in the background. Known models are shown at once, and new ones when they arrive."""
    programs.tells("claude")
    programs.make("codex", "exec sleep 600")
    settings = programs.settings("claude", "codex")
    monkeypatch.setattr("subdeck.core.launch.model_choices.PATIENCE_S", 4.0)
    news: list[bool] = []
    started = time.monotonic()
    assert refresh_choices(None, settings, news.append)
    assert not refresh_choices(None, settings, news.append)
    assert "anthropic/sonnet" in [choice.ref for choice in model_choices(None, settings)]
    assert time.monotonic() - started < 2
    wait_until(lambda: "anthropic/tiny" in [choice.ref for choice in model_choices(None, settings)], "the news")
    assert time.monotonic() - started < 4
    wait_until(lambda: news == [False, False, True], "the end of what hangs")


def test_a_model_leads_to_its_agent(programs: Programs) -> None:
    """Models are listed by agent, in the order of `auto`, with each agent's details."""
    settings = all_three(programs, roles={"fast": "openai/gpt-9", "odd": "nobody/x"})
    refresh_all(due(agents_of("auto", settings)))
    choices = model_choices(None, settings)
    assert ("@fast", "", "") == msgspec.structs.astuple(choices[0])
    assert ModelChoice("openai/gpt-9", "pi", "128k") in choices
    assert ModelChoice("anthropic/opus", "claude", "claude-opus-5-5 $4/$20") in choices
    assert ["pi", "claude", "codex"] == list(dict.fromkeys(choice.agent for choice in choices if choice.agent))


def test_only_what_the_chosen_agent_has(programs: Programs) -> None:
    """Models and roles that the agent would refuse are not offered."""
    settings = all_three(
        programs, roles={"fast": "openai/gpt-9", "deep": "opus"}, models=("openai/mine", "anthropic/mine")
    )
    refresh_all(due(agents_of("auto", settings)))
    claude = [choice.ref for choice in model_choices("claude", settings)]
    assert ["@deep", "anthropic/mine", "anthropic/opus"] == claude[:3]
    assert not any(ref.startswith("openai/") for ref in claude)
    assert ["@fast", "openai/mine", "openai/gpt-9"] == [choice.ref for choice in model_choices("codex", settings)]
    silent = AgentSettings((sys.executable,), kind="acp")
    with_another = Settings(agents={"other": silent}, models=settings.models, roles=settings.roles)
    assert () == model_choices("other", with_another), "an agent that told nothing yet takes its own default"


def test_on_the_command_line(programs: Programs, project_dir: Path, home: Path) -> None:
    """Models are grouped by agent, the agent in the settings first, even if another agent fails."""
    programs.tells("pi")
    programs.tells("claude")
    programs.make("codex", "echo broken >&2; exit 1")
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"agent": "claude", "agents": programs.config("pi", "claude", "codex")}))
    done = subdeck("models", cwd=project_dir)

    assert 0 == done.code
    lines = done.out.splitlines()
    assert ["claude", "pi"] == [line for line in lines if line and not line.startswith(" ")]
    assert any(line.split() == ["anthropic/opus", "$4/$20", "thinks", "→", "claude-opus-5-5"] for line in lines)
    assert "! codex could not list its models: broken" in done.err
    document = subdeck("models", "--json", cwd=project_dir).document
    opus = {"model": "anthropic/opus", "provider": "anthropic", "id": "opus", "source": "claude", "thinking": True}
    assert opus == document["models"][0]
    facts = {"standsFor": "claude-opus-5-5", "context": None, "price": {"input": 4.0, "output": 20.0}}
    by_name = {agent["agent"]: agent for agent in document["agents"]}
    assert opus | facts == by_name["claude"]["models"][0]
    assert ("codex", [], "codex could not list its models: broken") == tuple(
        by_name["codex"][key] for key in ("kind", "models", "problem")
    )
    assert [1, 1, 1] == [programs.starts(name) for name in ("pi", "claude", "codex")]
    subdeck("models", "--refresh", cwd=project_dir)
    assert [2, 2, 2] == [programs.starts(name) for name in ("pi", "claude", "codex")]


def test_a_list_that_cannot_be_kept(programs: Programs, project_dir: Path, home: Path, tmp_path: Path) -> None:
    """A refresh that cannot save the list fails with the error and the directory. Reading models still works."""
    programs.tells("codex")
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"agent": "codex", "agents": programs.config("codex")}))
    (tmp_path / "file").touch()
    done = subdeck("models", "--refresh", "--json", cwd=project_dir, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (2, "cannot save the list of models") == (done.code, done.error["what"])
    assert 0 == subdeck("models", cwd=project_dir, XDG_CACHE_HOME=str(tmp_path / "file")).code


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_whoever_looks_may_go(programs: Programs, project_dir: Path, home: Path, signal: str) -> None:
    """A hanging agent ends with the command that asked it, however that command ends."""
    programs.make("codex", "exec sleep 600")
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"agents": programs.config("codex")}))
    looking = start("models", cwd=project_dir)
    wait_until(lambda: programs.starts("codex"), "the agent that is asked")
    looking.send_signal(Signals[signal])
    looking.communicate(timeout=30)
    assert 0 != looking.returncode


@pytest.mark.agents
def test_the_real_claude_code(claude_executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code's model list loads without a key and without a request to a model."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    settings = Settings(agents={"claude": AgentSettings((claude_executable,))})
    models = refresh_models(choose_agent("claude", settings))
    assert {"opus", "sonnet", "haiku"} <= {model.id for model in models}
    assert all(model.stands_for.startswith("claude-") and model.price for model in models)


@pytest.mark.agents
def test_the_real_codex(codex_executable: str) -> None:
    """Codex's model list loads without a login."""
    settings = Settings(agents={"codex": AgentSettings((codex_executable,))})
    models = refresh_models(choose_agent("codex", settings))
    assert models
    assert all(model.ref.startswith("openai/") and model.thinks for model in models)


@pytest.mark.agents
def test_real_agents_of_the_protocol(claude_executable: str, codex_executable: str) -> None:
    """An ACP agent's model list loads without a login if the agent allows it. Otherwise, the error says what it
    needs.
    """
    if not ACP_HOME.exists():
        pytest.skip("the agents of the Agent Client Protocol could not be installed here")
    programs = ACP_HOME / "node_modules" / ".bin"
    env = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_EXECUTABLE": claude_executable,
        "CODEX_PATH": codex_executable,
    }
    agents = {
        name: AgentSettings((str(programs / program),), kind="acp", env=env)
        for name, program in (("a", "claude-agent-acp"), ("b", "codex-acp"))
    }
    settings = Settings(agents=agents)
    assert {"opus", "sonnet", "haiku"} <= {model.ref for model in refresh_models(choose_agent("a", settings))}
    with pytest.raises(AgentUnavailable, match="b could not list its models: Authentication required"):
        refresh_models(choose_agent("b", settings))
