"""Registration of the tools with a parent, and their descriptions of presets and models."""

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
    """The same models in another order or case are not registered again."""
    assert key_of("b/Two", "a/one") == key_of("A/one", "b/two") == key_of("a/one", "b/two", "a/one")


def test_another_set_is_news() -> None:
    """A changed set of models registers again."""
    assert 3 == len({key_of("a/one", "b/two"), key_of("a/one"), key_of("a/one", "b/two", "c/three")})


def test_a_child_registers_nothing(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PI_SUBAGENTS_CHILD=1 there are no tools."""
    engine = open_engine(project_dir)
    assert 4 == len(tools_for(engine, ["a/b"]))
    monkeypatch.setenv("PI_SUBAGENTS_CHILD", "1")
    assert () == tools_for(engine, ["a/b"])


def test_only_the_models_of_the_parent_count(project_dir: Path, home: Path) -> None:
    """A parent that sends models gets exactly these, in its order. With an empty list it gets no tools, even if the
    settings and other installed agents have models.
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
    """If no parent sends models, the models of the configured agent are used."""
    engine = open_engine(project_dir)
    assert () == tools_for(engine)
    models = home / ".pi" / "agent" / "models.json"
    models.parent.mkdir(parents=True)
    models.write_text(json.dumps({"providers": {"fake": {"models": [{"id": "one"}, {"id": "two"}]}}}))
    assert ("fake/one", "fake/two") == models_of(tools_for(engine))


def test_the_offline_agent_is_enough_where_no_models_are_told(project_dir: Path) -> None:
    """Without pi, a client without models gets the tools, but a parent with an empty list gets none."""
    engine = Engine.open(str(project_dir))
    assert ("offline/reader",) == models_of(tools_for(engine))
    assert () == tools_for(engine, [])


def test_three_tools(project_dir: Path) -> None:
    """The tools have their documented names, and each describes its output."""
    tools = tools_for(open_engine(project_dir), ["a/b"])
    assert ["subagent", "background_agent", "background_agent_status", "background_agent_send"] == tool_names(tools)
    for tool in tools:
        assert "object" == tool.parameters["type"] == tool.output["type"]
        assert not tool.parameters["additionalProperties"]
        assert "oneOf" not in tool.parameters and "anyOf" not in tool.parameters


def test_the_schema_has_no_chain_and_no_defaults_for_tasks() -> None:
    """Both modes are in the schema, chain is not, and only single calls require preset and task."""
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
    """`isolated` is a field of all tasks only if `expose_isolated` is on."""
    engine = open_engine(project_dir)
    for tool in tools_for(engine, ["a/b"]):
        assert "isolated" not in json.dumps(tool.parameters)
    write_settings(expose_isolated=True)
    subagent, background, *_ = tools_for(engine, ["a/b"])
    assert "isolated" in subagent.parameters["properties"]["tasks"]["items"]["properties"]
    assert "isolated" in subagent.parameters["properties"]
    assert "isolated" in background.parameters["properties"]


def test_the_model_field_takes_roles_and_thinking() -> None:
    """Besides the models in the given order, roles and thinking suffixes are accepted, and the description mentions
    them.
    """
    model = specs(["b/two", "a/One"], [], isolated=False)[0].parameters["properties"]["model"]
    assert ["b/two", "a/One"] == model["anyOf"][0]["enum"]
    pattern = re.compile(model["anyOf"][1]["pattern"])
    assert all(pattern.search(text) for text in ("@fast", "b/two:high", "llama:8b:off"))
    assert not any(pattern.search(text) for text in ("b/three", "b/two:loud", "@", "", ":high"))
    assert ROLE_OR_THINKING == model["anyOf"][1]["pattern"]
    assert "currently available models" in model["description"]
    assert "role" in model["description"]


def test_parameters_for_a_parent_that_checks_by_itself() -> None:
    """They have the same fields and models, but other fields and models are not refused."""
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
    """Names and descriptions of twenty presets, with the text around them, fit 600 tokens of 4 characters."""
    presets = [
        preset(f"a-rather-long-name-{number:02}", "Says at great length what it does. " * 9) for number in range(20)
    ]
    subagent, background, *_ = specs(["a/b"], presets, isolated=True)
    assert len(subagent.description) <= 4 * 600
    assert all(f"- {each.name}: Says at" in subagent.description for each in presets)
    assert all(each.name in background.description for each in presets)


def test_many_presets_are_counted() -> None:
    """Presets that do not fit are counted, not listed."""
    presets = [preset(f"preset-number-{number:03}") for number in range(400)]
    subagent, background, *_ = specs(["a/b"], presets, isolated=False)
    assert len(subagent.description) <= 4 * 600
    for description in (subagent.description, background.description):
        assert re.search(r"… and [0-9]+ more", description)


def test_descriptions_are_one_plain_line() -> None:
    """A preset's description cannot add lines or control sequences to the text for the parent's model."""
    (subagent, *_) = specs(["a/b"], [preset("scout", "one\n- forged: \x1b[31mred")], isolated=False)
    assert "- scout: one - forged: red" in subagent.description.splitlines()


def test_presets_follow_the_files(project_dir: Path) -> None:
    """Descriptions are read from the files at each call, and a change causes a new registration."""
    engine = open_engine(project_dir)
    before = tools_for(engine, ["a/b"])
    assert registration_key(before) == registration_key(tools_for(engine, ["a/b"]))
    write_preset(project_dir, name="scout")
    after = tools_for(engine, ["a/b"])
    assert "No presets yet" in before[0].description
    assert "- scout: d" in after[0].description
    assert registration_key(before) != registration_key(after)


def test_broken_settings_are_told(project_dir: Path) -> None:
    """Settings are also read again, and a broken file is an error, not a reason to keep outdated tools."""
    engine = open_engine(project_dir)
    Path(user_settings_file()).write_text("nope: 1\n")
    with pytest.raises(SettingsError):
        tools_for(engine, ["a/b"])


def test_only_parents_that_are_told_expect_an_announcement(project_dir: Path) -> None:
    """Only a client that is notified when a run finishes has this in the description."""
    engine = open_engine(project_dir, models=["own/m"])
    assert "You are notified when it finishes" in tools_for(engine, ["a/b"])[1].description
    assert "notified" not in tools_for(engine)[1].description
