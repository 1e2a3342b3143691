"""Agent files of opencode: fields used, fields ignored with a warning, and fields refused."""

from __future__ import annotations

import pytest
from subdeck.core.errors import ContentError
from subdeck.core.presets.file import Preset
from subdeck.core.presets.forms.opencode import FORM
from subdeck.core.run.model import PresetSource

READING = ("read", "grep")


def read(fields: str = "", agent: str = "") -> Preset:
    preset = FORM.parse(f"---\ndescription: Reviews\n{fields}---\nLook.\n", "/c/.opencode/agent/review.md", agent)
    assert preset is not None
    return preset


def test_a_whole_file() -> None:
    """Every field with a counterpart is used without a warning; the file's name is the preset's."""
    fields = "mode: subagent\nmodel: openai/gpt-x\nsteps: 9\nreasoningEffort: high\ntools:\n  bash: false\n"

    assert Preset(
        name="review",
        description="Reviews",
        source=PresetSource.DIR,
        path="/c/.opencode/agent/review.md",
        form="opencode",
        model="openai/gpt-x",
        thinking="high",
        denied_tools=("bash",),
        max_turns=9,
        prompt="Look.",
    ) == read(fields)


@pytest.mark.parametrize(
    ("fields", "tools", "denied"),
    [
        ("", None, None),
        ("tools: {bash: true, todowrite: false}", None, None),
        ("tools: {write: false}", None, ("edit", "write")),
        ("tools: {edit: false, write: false, bash: false}", None, ("bash", "edit", "write")),
        ("tools: {webfetch: false, task: false}", None, ("WebFetch", "Agent", "Task")),
        ("tools: {'*': false, read: true, grep: true, task: true}", (*READING, "Agent"), None),
        ("tools: {read: true, '*': false}", (), None),
        ("tools: {'*': false, bash: true}\npermission: {bash: deny}", (), None),
        ("tools: {'*': false, read: true, bash: true}\npermission: {'*': deny, read: allow}", ("read",), None),
        ("permission: {edit: deny, bash: allow}", None, ("edit", "write")),
        ("permission: deny", (), None),
        ("permission: allow", None, None),
        ("permission: {'*': deny, read: allow, grep: allow}", READING, None),
        ("permission: {bash: {'*': allow}}", None, None),
        ("permission: {bash: {'*': deny, '**': deny}}", None, ("bash",)),
        ("permissions: {bash: deny}", None, ("bash",)),
    ],
)
def test_tools(fields: str, tools: tuple[str, ...] | None, denied: tuple[str, ...] | None) -> None:
    """The last line for a tool applies, and an unmentioned tool is allowed; write tools are all allowed or all
    denied.
    """
    preset = read(fields + "\n")

    assert (tools, denied, ()) == (preset.tools, preset.denied_tools, preset.warnings)


@pytest.mark.parametrize(
    ("fields", "denied", "why"),
    [
        ("permission: {bash: ask}", ("bash",), "bash is denied: asking is not supported here"),
        ("permission: {bash: {'*': ask, 'git diff*': allow}}", ("bash",), "bash is denied completely"),
        ("permission: {bash: {'*': allow, 'rm *': deny}}", ("bash",), "bash is denied completely"),
        ("permission: {edit: {'*': deny, 'docs/**': allow}}", ("edit", "write"), "edit is denied completely"),
        ("tools: {mine_search: true}", None, "mine_search is ignored"),
    ],
)
def test_what_is_more_than_was_meant_is_said(fields: str, denied: tuple[str, ...] | None, why: str) -> None:
    """A rule that cannot be enforced as written denies the whole tool, with a warning."""
    preset = read(fields + "\n")
    (warning,) = preset.warnings

    assert denied == preset.denied_tools
    assert why in warning


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ("tools: {'mymcp_*': false}", 'denies "mymcp_*"'),
        ("permission: {external_directory: deny}", 'denies "external_directory"'),
        ("permission: {bash: never}", "permission.bash: expected allow, ask or deny"),
        ("tools: {bash: deny-it}", "tools.bash: expected true or false"),
        ("tools: [read]", "expected a line for each tool"),
        ("permissions:\n  - {action: bash, effect: deny}", "expected a line for each tool"),
        ("disable: true", "the agent is turned off"),
    ],
)
def test_what_restricts_is_kept_to_or_refused(fields: str, what: str) -> None:
    """A restriction that cannot be enforced is an error with its field and line."""
    with pytest.raises(ContentError) as caught:
        read(fields + "\n")

    assert what in caught.value.what
    assert caught.value.line is not None and caught.value.line >= 3


@pytest.mark.parametrize(
    ("agent", "model", "expected"),
    [
        ("", "", (None, None)),
        ("", "model: anthropic/x\n", (None, "anthropic/x")),
        ("mine", "", ("mine", "inherit")),
        ("mine", "model: a/b\n", ("mine", "a/b")),
    ],
)
def test_who_runs_it(agent: str, model: str, expected: tuple[str | None, str | None]) -> None:
    """Without an agent the settings choose one for the model; a named agent keeps its own model."""
    preset = read(model, agent)

    assert expected == (preset.agent, preset.model)


@pytest.mark.parametrize("field", ["temperature: 0.1", "top_p: 1", "hidden: true", "variant: mini", "name: other"])
def test_what_is_left_out_is_said(field: str) -> None:
    """A field that no agent gets is a warning."""
    (warning,) = read(field + "\n").warnings

    assert field.partition(":")[0] in warning and "is ignored" in warning
    assert "review" == read(field + "\n").name
