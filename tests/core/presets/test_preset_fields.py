"""The fields of a preset: meanings, refused values, and the schema from the same table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.config.values import schema_of
from subdeck.core.config.yaml_tree import parse_mapping
from subdeck.core.errors import ContentError
from subdeck.core.presets.fields import FIELDS, preset_schema
from subdeck.core.presets.file import Preset, PresetProblem, parse_preset, read_preset
from subdeck.core.run.model import Limits, Permissions, PresetSource

HEAD = "name: scout\ndescription: d\n"


def preset(fields: str, body: str = "Look.") -> Preset:
    return parse_preset(f"---\n{HEAD}{fields}\n---\n{body}", "/p/file.md", PresetSource.PROJECT)


def test_every_field() -> None:
    """Each key of the schema is stored in the preset, in the engine's units."""
    read = preset(
        """
model: "@fast"
thinking: xhigh
denied_tools: [bash, write]
prompt: You read.
prompt_mode: replace
context_files: true
project_resources: false
inherit_context: false
finalize: yes
max_attempts: 5
sticky: on
agent: offline
runner: tmux
timeout: 10m
max_turns: 30
stall: 90
talk: no
permissions:
  allow: [read, bash(git *)]
  ask: [bash(git push *)]
  deny: ["edit(.git/**)"]
answer_timeout: 5m
idle_timeout: 1h
""",
        body="",
    )

    assert (
        Preset(
            name="scout",
            description="d",
            source=PresetSource.PROJECT,
            path="/p/file.md",
            model="@fast",
            thinking="xhigh",
            denied_tools=("bash", "write"),
            prompt="You read.",
            prompt_mode="replace",
            context_files=True,
            project_resources=False,
            inherit_context=False,
            structured_result=True,
            max_attempts=5,
            sticky=True,
            agent="offline",
            runner="tmux",
            timeout=600,
            max_turns=30,
            stall=90,
            interactive=False,
            permissions=Permissions(("read", "bash(git *)"), ("bash(git push *)",), ("edit(.git/**)",)),
            reply_timeout=300,
            idle_timeout=3600,
        )
        == read
    )


@pytest.mark.parametrize(
    ("field", "attribute", "expected"),
    [
        ("thinking: off", "thinking", "off"),
        ("thinking: HIGH", "thinking", "high"),
        ("thinking: max", "thinking", "max"),
        ("thinking:", "thinking", None),
        ("prompt_mode: ' replace '", "prompt_mode", "replace"),
        ("prompt_mode:", "prompt_mode", "append"),
        ("context_files: no", "context_files", False),
        ("context_files: ~", "context_files", None),
        ("inherit_context: True", "inherit_context", True),
        ("inherit_context:", "inherit_context", None),
        ("structured_result: off", "structured_result", False),
        ("structured_result:", "structured_result", False),
        ("sticky: no", "sticky", False),
        ("session: none", "keeps_session", False),
        ("session:", "keeps_session", True),
        ("denied_tools: bash, write", "denied_tools", ("bash", "write")),
        ("denied_tools: []", "denied_tools", ()),
        ("allowed_tools: read", "tools", ("read",)),
        ("timeout: 90", "limits", Limits(timeout=90)),
        ("timeout: 90s", "limits", Limits(timeout=90)),
        ("timeout: 1.5h", "limits", Limits(timeout=5400)),
        ("stall: '2 m'", "limits", Limits(stall=120)),
        ("stall:", "limits", Limits()),
        ("max_turns: 7", "limits", Limits(max_turns=7)),
        ("interactive: yes", "interactive", True),
        ("interactive:", "interactive", None),
        ("permissions:", "permissions", Permissions()),
        ("permissions: {}", "permissions", Permissions()),
        ("permissions: {deny: []}", "permissions", Permissions()),
        ("permissions: {ask: [' read ', read]}", "permissions", Permissions(ask=("read",))),
    ],
)
def test_a_value(field: str, attribute: str, expected: object) -> None:
    """Words are accepted in any case, blank counts as absent, and times have units."""
    assert expected == getattr(preset(f"{field}\n"), attribute)


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("thinking: hard", 'thinking: expected off, minimal, low, medium, high, xhigh or max but found "hard"'),
        ("thinking: [high]", "thinking: expected off, minimal, low, medium, high, xhigh or max but found a list"),
        ("thinking: true", 'found "true"'),
        ("prompt_mode: prepend", 'prompt_mode: expected append or replace but found "prepend"'),
        ("context_files: maybe", 'context_files: expected true or false but found "maybe"'),
        ("inherit_context: 1", "inherit_context: expected true or false"),
        ("structured_result: sometimes", "structured_result: expected true or false"),
        ("structured_result: {on: true}", "structured_result: expected true or false but found keys below it"),
        ("sticky: abc123", "sticky: expected true or false"),
        ("session: keep", 'session: expected none but found "keep"'),
        ("session: [none]", "session: expected none but found a list"),
        ("max_attempts: 0", "max_attempts: expected a whole number from 1 to 999,999,999"),
        ("max_attempts: many", "max_attempts: expected a whole number"),
        ("max_attempts: -1", "max_attempts: expected a whole number"),
        ("max_turns: 1.5", "max_turns: expected a whole number from 1 to 999,999,999"),
        ("max_turns: 1e3", "max_turns: expected a whole number"),
        ("timeout: 0", "timeout: expected a number of seconds above 0"),
        ("timeout: -5", "timeout: expected a number of seconds above 0"),
        ("timeout: soon", "timeout: expected a number of seconds above 0"),
        ("timeout: 1d", "timeout: expected a number of seconds above 0"),
        ("timeout: 10M", "timeout: expected a number of seconds above 0"),
        ("timeout: 10m30s", "a time such as 90s, 10m or 2h, at most 8760h, but found"),
        ("timeout: inf", "timeout: expected a number of seconds above 0"),
        ("timeout: .nan", "timeout: expected a number of seconds above 0"),
        ("stall: [1]", "stall: expected a number of seconds above 0"),
        ("agent: /bin/sh", "agent: expected the name of an agent"),
        ("agent: [pi]", "agent: expected the name of an agent but found a list"),
        ("runner: screen", "runner: expected process, tmux or hosts"),
        ("prompt: [a]", "prompt: expected a text but found a list"),
        ("denied_tools:", "denied_tools is empty"),
        ("denied_tools: ','", "denied_tools is empty"),
        ("denied_tools: ~", "denied_tools is empty"),
        ("denied_tools: [-bash]", 'denied_tools: "-bash" is not the name of a tool'),
        ("denied_tools: [[a]]", "denied_tools: expected the name of a tool but found a list"),
        ("denied_tools: {bash: true}", "denied_tools: expected a list of tools but found keys below it"),
        ("approved_tools:", "approved_tools is empty"),
        ("permissions: read", 'permissions: expected lists of rules below "allow:", "ask:" and "deny:"'),
        ("permissions: {allow: read}", "permissions.allow: expected a list of rules"),
        ("permissions: {deny: [Bash]}", 'permissions.deny: "Bash" uses an unknown tool name: use bash'),
        ("permissions: {ask: ['bash(a | b)']}", "has more than one command in its brackets"),
        ("permissions: {ask: [[read]]}", "permissions.ask: expected a list of rules"),
        ("permissions: {may: [read]}", '"permissions.may" is not a setting'),
        ("interactive: maybe", "interactive: expected true or false"),
        ("reply_timeout: never", "reply_timeout: expected a number of seconds above 0"),
    ],
)
def test_a_wrong_value(field: str, what: str) -> None:
    """An ambiguous value is refused with its line, and with the expected and actual value."""
    with pytest.raises(ContentError) as caught:
        preset(field)

    assert what in caught.value.what
    assert 4 == caught.value.line


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ("tools: read\ndenied_tools: bash", "tools and denied_tools contradict each other"),
        ("approved_tools: []\ndenied_tools: []", "approved_tools and denied_tools contradict each other"),
        ("denied_tools: bash\nallowed_tools: read", "allowed_tools and denied_tools contradict each other"),
        ("approved_tools: read\nallowed_tools: read", "approved_tools and allowed_tools mean the same thing"),
        ("tools: a\napproved_tools: a", "tools and approved_tools mean the same thing"),
        ("tools:\ndenied_tools: bash", "tools and denied_tools contradict each other"),
    ],
)
def test_ambiguous_tools_are_refused(tmp_path: Path, fields: str, what: str) -> None:
    """Two fields for tools are a problem that names the file and both keys."""
    path = tmp_path / "a.md"
    path.write_text(f"---\n{HEAD}{fields}\n---\n")
    read = read_preset(str(path), PresetSource.PROJECT)

    assert isinstance(read, PresetProblem)
    assert (f"{path}:5", f"{what}; keep one of them") == (read.where, read.message)


@pytest.mark.parametrize("other", ["sticky", "structured_result"])
def test_a_session_that_is_not_kept(other: str) -> None:
    """A session that is never on disk can neither be continued by another run nor asked again."""
    with pytest.raises(ContentError, match=f'"session: none" and {other} cannot be combined') as caught:
        preset(f"session: none\n{other}: true")

    assert (5, "remove one of the two lines") == (caught.value.line, caught.value.hint)
    assert not preset(f"session: none\n{other}: false").keeps_session


def test_a_bare_role_is_told_to_be_quoted(tmp_path: Path) -> None:
    """Invalid YAML is reported with the correct form."""
    path = tmp_path / "a.md"
    path.write_text(f"---\n{HEAD}model: @fast\n---\n")
    read = read_preset(str(path), PresetSource.PROJECT)

    assert isinstance(read, PresetProblem)
    assert f"{path}:4" == read.where
    assert 'put quotes around it: "@fast"' in read.message


def test_the_schema_is_made_of_the_table() -> None:
    """Editors see each field with its meaning, which fields are required, and which exclude each other."""
    schema = preset_schema()

    assert list(FIELDS) == list(schema["properties"])
    for name, field in FIELDS.items():
        assert {**schema_of(field.kind), "description": field.meaning} == schema["properties"][name]
        assert field.meaning.endswith(".")
    assert ["name", "description"] == schema["required"]
    assert json.loads(json.dumps(schema)) == schema


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Check a value against the part of JSON Schema that is used here."""
    kinds = {"string": str, "boolean": bool, "array": list, "object": dict, "integer": int, "number": (int, float)}
    wanted = schema.get("type")
    if wanted and (not isinstance(value, kinds[wanted]) or (isinstance(value, bool) and wanted != "boolean")):
        return False
    checks = (
        "enum" not in schema or value in schema["enum"],
        "const" not in schema or value == schema["const"],
        "pattern" not in schema or re.search(schema["pattern"], str(value)),
        "minLength" not in schema or len(str(value)) >= schema["minLength"],
        "minimum" not in schema or value >= schema["minimum"],
        "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"],
        "anyOf" not in schema or any(accepts(part, value) for part in schema["anyOf"]),
        all(accepts(part, value) for part in schema.get("allOf", ())),
        "not" not in schema or not accepts(schema["not"], value),
        all(accepts(schema["items"], item) for item in (value if isinstance(value, list) else ()))
        if "items" in schema
        else True,
    )
    if not all(checks):
        return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return (
            all(name in value for name in schema.get("required", ()))
            and (schema.get("additionalProperties", True) or all(name in properties for name in value))
            and all(accepts(properties[name], item) for name, item in value.items() if name in properties)
        )
    return True


@pytest.mark.parametrize(
    ("fields", "valid"),
    [
        ({}, True),
        ({"tools": ["read", "grep"], "thinking": "high", "timeout": "10m", "structured_result": True}, True),
        ({"tools": "read,grep", "timeout": 90, "max_turns": 3}, True),
        ({"tools": [], "session": "none"}, True),
        ({"modle": "x"}, False),
        ({"tools": ["read"], "denied_tools": ["bash"]}, False),
        ({"approved_tools": ["read"], "allowed_tools": ["read"]}, False),
        ({"session": "none", "sticky": True}, False),
        ({"session": "none", "structured_result": True}, False),
        ({"session": "none", "structured_result": False}, True),
        ({"thinking": "hard"}, False),
        ({"max_turns": 0}, False),
        ({"timeout": "soon"}, False),
    ],
)
def test_schema_and_reader_agree(fields: dict[str, Any], valid: bool) -> None:
    """A value that an editor marks as wrong is refused or warned about here, and the other way round."""
    whole = {"name": "x", "description": "d", **fields}
    assert valid == accepts(preset_schema(), whole)

    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in whole.items())
    parse_mapping(text)
    try:
        clean = not parse_preset(f"---\n{text}---\nbody", "/p/x.md", PresetSource.PROJECT).warnings
    except ContentError:
        clean = False
    assert valid == clean
