"""When a parent registers the tools, and what it is told of presets and models."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from subdeck.core.delegation.schema import (
    ROLE_OR_THINKING,
    ToolSpec,
    lenient,
    models_of,
    registration_key,
    specs,
    tools_for,
)
from subdeck.core.engine import Engine
from subdeck.core.errors import SettingsError
from subdeck.core.paths import user_settings_file
from subdeck.core.presets.file import Preset
from subdeck.core.run.model import PresetSource

from tests.core.conversing import write_preset
from tests.factories import open_engine, write_settings


def preset(name: str, description: str = "d") -> Preset:
    return Preset(name=name, description=description, source=PresetSource.PROJECT, path=f"/{name}.md")


def tool_names(tools: tuple[ToolSpec, ...]) -> list[str]:
    return [tool.name for tool in tools]


def key_of(*models: str) -> str:
    return registration_key(specs(models, [], isolated=False))


def test_order_and_case_are_no_news() -> None:
    """The same set in another order or case is no new registration."""
    assert key_of("b/Two", "a/one") == key_of("A/one", "b/two") == key_of("a/one", "b/two", "a/one")


def test_another_set_is_news() -> None:
    """A changed set of models registers again."""
    assert 3 == len({key_of("a/one", "b/two"), key_of("a/one"), key_of("a/one", "b/two", "c/three")})


def test_a_child_registers_nothing(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PI_SUBAGENTS_CHILD=1 there are no tools, ever."""
    engine = open_engine(project_dir)
    assert 4 == len(tools_for(engine, ["a/b"]))
    monkeypatch.setenv("PI_SUBAGENTS_CHILD", "1")
    assert () == tools_for(engine, ["a/b"])


def test_only_the_models_of_the_parent_count(project_dir: Path, home: Path) -> None:
    """A parent that announces models gets exactly these, in its order; if it has none it gets no tools, whatever the
    settings and the other installed agents have.
    """
    engine = open_engine(project_dir)
    write_settings(models=["own/m", "FAKE/a"])
    models = home / ".pi" / "agent" / "models.json"
    models.parent.mkdir(parents=True)
    models.write_text(json.dumps({"providers": {"fake": {"models": [{"id": "one"}]}}}))
    assert () == tools_for(engine, [])
    assert ("z/z", "fake/a") == models_of(tools_for(engine, ["z/z", "fake/a", "Z/z"]))
    assert ("own/m", "FAKE/a", "fake/one") == models_of(tools_for(engine))


def test_models_of_the_agent_count(project_dir: Path, home: Path) -> None:
    """Where no parent tells its models, those that the agent is set up with are offered."""
    engine = open_engine(project_dir)
    assert () == tools_for(engine)
    models = home / ".pi" / "agent" / "models.json"
    models.parent.mkdir(parents=True)
    models.write_text(json.dumps({"providers": {"fake": {"models": [{"id": "one"}, {"id": "two"}]}}}))
    assert ("fake/one", "fake/two") == models_of(tools_for(engine))


def test_the_offline_agent_is_enough_where_no_models_are_told(project_dir: Path) -> None:
    """Without pi the tools are there for a client that knows no models; a parent that tells an empty list gets none."""
    engine = Engine.open(str(project_dir))
    assert ("offline/reader",) == models_of(tools_for(engine))
    assert () == tools_for(engine, [])


def test_three_tools(project_dir: Path) -> None:
    """The tools are called as documented, and each names what it answers."""
    tools = tools_for(open_engine(project_dir), ["a/b"])
    assert ["subagent", "background_agent", "background_agent_status", "background_agent_send"] == tool_names(tools)
    for tool in tools:
        assert "object" == tool.parameters["type"] == tool.output["type"]
        assert not tool.parameters["additionalProperties"]
        assert "oneOf" not in tool.parameters and "anyOf" not in tool.parameters


def test_the_schema_has_no_chain_and_no_defaults_for_tasks() -> None:
    """Both modes are there, chain is not; only single calls require preset and task."""
    subagent, background, status, send = specs(["a/b"], [], isolated=False)
    fields = ["preset", "task", "cwd", "description", "sessionId", "model", "worktree", "budget", "maxTokens"]
    assert [*fields, "tasks"] == list(subagent.parameters["properties"])
    assert "required" not in subagent.parameters
    task = subagent.parameters["properties"]["tasks"]["items"]
    assert (fields, ["preset", "task"]) == (list(task["properties"]), task["required"])
    assert task == background.parameters
    assert ["runId", "includeCompleted"] == list(status.parameters["properties"])
    assert (["runId", "message", "interrupt"], ["runId"]) == (
        list(send.parameters["properties"]), send.parameters["required"]
    )  # fmt: skip


def test_isolated_is_shown_where_the_setting_says_so(project_dir: Path) -> None:
    """`isolated` is a field of all tasks exactly when `expose_isolated` is on."""
    engine = open_engine(project_dir)
    for tool in tools_for(engine, ["a/b"]):
        assert "isolated" not in json.dumps(tool.parameters)
    write_settings(expose_isolated=True)
    subagent, background, *_ = tools_for(engine, ["a/b"])
    assert "isolated" in subagent.parameters["properties"]["tasks"]["items"]["properties"]
    assert "isolated" in subagent.parameters["properties"]
    assert "isolated" in background.parameters["properties"]


def test_the_model_field_takes_roles_and_thinking() -> None:
    """Beside the enum, in the given order, roles and thinking suffixes pass; the description says what is allowed."""
    model = specs(["b/two", "a/One"], [], isolated=False)[0].parameters["properties"]["model"]
    assert ["b/two", "a/One"] == model["anyOf"][0]["enum"]
    pattern = re.compile(model["anyOf"][1]["pattern"])
    assert all(pattern.search(text) for text in ("@fast", "b/two:high", "llama:8b:off"))
    assert not any(pattern.search(text) for text in ("b/three", "b/two:loud", "@", "", ":high"))
    assert ROLE_OR_THINKING == model["anyOf"][1]["pattern"]
    assert "currently available models" in model["description"]
    assert "role" in model["description"]


def test_parameters_for_a_parent_that_checks_by_itself() -> None:
    """They name the same fields and models, but nothing is refused for a field or a model that is not among them."""
    for tool in specs(["b/two"], [], isolated=False):
        loose = lenient(tool.parameters)
        assert list(tool.parameters["properties"]) == list(loose["properties"])
        assert loose["additionalProperties"] and not tool.parameters["additionalProperties"]
        assert tool.parameters.get("required") == loose.get("required")
        items = loose["properties"].get("tasks", {}).get("items", {})
        for properties in (loose["properties"], items.get("properties", {})):
            if model := properties.get("model"):
                assert [{"type": "string", "enum": ["b/two"]}, {"type": "string"}] == model["anyOf"]


def test_twenty_presets_take_600_tokens_at_most() -> None:
    """Names and descriptions of twenty presets, with the words around them, stay within 600 tokens of 4 characters."""
    presets = [
        preset(f"a-rather-long-name-{number:02}", "Says at great length what it does. " * 9) for number in range(20)
    ]
    subagent, background, *_ = specs(["a/b"], presets, isolated=True)
    assert len(subagent.description) <= 4 * 600
    assert all(f"- {each.name}: Says at" in subagent.description for each in presets)
    assert all(each.name in background.description for each in presets)


def test_many_presets_are_counted() -> None:
    """What does not fit is counted, not told."""
    presets = [preset(f"preset-number-{number:03}") for number in range(400)]
    subagent, background, *_ = specs(["a/b"], presets, isolated=False)
    assert len(subagent.description) <= 4 * 600
    for description in (subagent.description, background.description):
        assert re.search(r"… and [0-9]+ more", description)


def test_descriptions_are_one_plain_line() -> None:
    """A preset's description cannot put lines or control sequences into what the parent's model reads."""
    (subagent, *_) = specs(["a/b"], [preset("scout", "one\n- forged: \x1b[31mred")], isolated=False)
    assert "- scout: one - forged: red" in subagent.description.splitlines()


def test_presets_follow_the_files(project_dir: Path) -> None:
    """Descriptions are read from the files at each call, and a change is a reason to register again."""
    engine = open_engine(project_dir)
    before = tools_for(engine, ["a/b"])
    assert registration_key(before) == registration_key(tools_for(engine, ["a/b"]))
    write_preset(project_dir, name="scout")
    after = tools_for(engine, ["a/b"])
    assert "No presets yet" in before[0].description
    assert "- scout: d" in after[0].description
    assert registration_key(before) != registration_key(after)


def test_broken_settings_are_told(project_dir: Path) -> None:
    """Settings are read again too, and a broken file is no reason for outdated tools."""
    engine = open_engine(project_dir)
    Path(user_settings_file()).write_text("nope: 1\n")
    with pytest.raises(SettingsError):
        tools_for(engine, ["a/b"])


def test_only_parents_that_are_told_expect_an_announcement(project_dir: Path) -> None:
    """A client that nobody tells of ends is not promised it."""
    engine = open_engine(project_dir, models=["own/m"])
    assert "You are notified when it finishes" in tools_for(engine, ["a/b"])[1].description
    assert "notified" not in tools_for(engine)[1].description
