"""Agent files of Codex: fields used, fields ignored with a warning, and fields refused."""

from __future__ import annotations

import pytest
from subdeck.core.agents.codex.permissions import TOOL_NAMES, permissions_of
from subdeck.core.errors import ContentError
from subdeck.core.presets.file import Preset
from subdeck.core.presets.forms.codex import FORM
from subdeck.core.run.model import PresetSource
from subdeck.core.run.tool_policy import Offer, resolve_tools

HEAD = 'name = "reviewer"\ndescription = "Reviews a change"\ndeveloper_instructions = """\nLook.\n"""\n'
ALL = ("read", "grep", "find", "ls", "bash", "edit", "write", "web_search")


def read(fields: str = "") -> Preset:
    preset = FORM.parse(HEAD + fields, "/c/.codex/agents/reviewer.toml", "codex")
    assert preset is not None
    return preset


def test_a_whole_file() -> None:
    """Every field with a counterpart is used without a warning."""
    fields = (
        'model = "gpt-x"\nmodel_reasoning_effort = "high"\nsandbox_mode = "read-only"\nnickname_candidates = ["R"]\n'
    )

    assert Preset(
        name="reviewer",
        description="Reviews a change",
        source=PresetSource.DIR,
        path="/c/.codex/agents/reviewer.toml",
        form="codex",
        agent="codex",
        model="gpt-x",
        thinking="high",
        tools=("read", "grep", "find", "ls", "web_search"),
        prompt="Look.",
    ) == read(fields)


@pytest.mark.parametrize(
    ("fields", "tools", "denied"),
    [
        ("", None, None),
        ('sandbox_mode = "read-only"', (*ALL[:4], "web_search"), None),
        ('sandbox_mode = "read-only"\nweb_search = "disabled"', ALL[:4], None),
        ('sandbox_mode = "workspace-write"', ALL, None),
        ('sandbox_mode = "workspace-write"\n[tools]\nweb_search = false', ALL[:-1], None),
        ('web_search = "disabled"', None, ("web_search",)),
    ],
)
def test_sandboxes(fields: str, tools: tuple[str, ...] | None, denied: tuple[str, ...] | None) -> None:
    """A restricting sandbox becomes the list of tools that gives Codex this sandbox; without one the user's applies."""
    assert (tools, denied) == (read(fields).tools, read(fields).denied_tools)


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_codex_is_told_the_sandbox_of_the_file(mode: str) -> None:
    """The list of tools gives Codex the file's sandbox, even if a parent limits it, and never a wider one."""
    offer = Offer(TOOL_NAMES, closed=True, excludes=True)
    tools = read(f'sandbox_mode = "{mode}"').tools

    assert mode == permissions_of(resolve_tools(tools, offer=offer)).sandbox
    parent = ("read", "bash", "edit", "write")
    assert mode == permissions_of(resolve_tools(tools, offer=offer, parent=parent)).sandbox


@pytest.mark.parametrize(("word", "level"), [("none", "off"), ("minimal", "minimal"), ("xhigh", "xhigh")])
def test_efforts(word: str, level: str) -> None:
    """Codex's levels have the same names, except the lowest."""
    assert (level, ()) == (
        read(f'model_reasoning_effort = "{word}"').thinking,
        read(f'model_reasoning_effort = "{word}"').warnings,
    )


@pytest.mark.parametrize(
    "field",
    [
        'sandbox_mode = "danger-full-access"',
        'approval_policy = "never"',
        'web_search = "live"',
        "sandbox_workspace_write = {network_access = true}",
        "features = {goals = true}",
        'mcp_servers = {evil = {command = "/bin/sh"}}',
        'notify = ["/bin/sh"]',
        "hooks = {}",
        "skills = {config = []}",
        'model_reasoning_effort = "banana"',
        'model_verbosity = "high"',
    ],
)
def test_what_is_left_out_is_said(field: str) -> None:
    """A field that would grant or start something is ignored, with a warning."""
    preset = read(field)
    (warning,) = preset.warnings

    assert field.partition(" ")[0] in warning and "is ignored" in warning
    assert (None, None) == (preset.tools, preset.denied_tools)


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ('model_provider = "local"', "determine the provider"),
        ('profile = "careful"', "determine the profile"),
        ('default_permissions = ":read-only"', "only sandbox_mode"),
        ("shell_environment_policy = {inherit = 'none'}", "determine the variables"),
        ('approval_policy = "untrusted"', "not supported here"),
        ("approval_policy = {granular = {rules = true}}", "not supported here"),
        ("features = {shell_tool = false}", "shell_tool = false cannot be enforced"),
        ("tools = {view_image = false}", "view_image = false cannot be enforced"),
        ('sandbox_mode = "workspace-write"\nsandbox_workspace_write = {exclude_slash_tmp = true}', "exclude_slash_tmp"),
        ('model = "a\\u0000b"', "a value contains a NUL character"),
        ("sandbox_mode = 3\nx = ", "invalid TOML"),
        ("x = " + "[" * 5000 + "]" * 5000, "the file is nested too deeply"),
    ],
)
def test_what_restricts_is_kept_to_or_refused(field: str, what: str) -> None:
    """A restriction that cannot be enforced is an error with its field and an alternative."""
    with pytest.raises(ContentError) as caught:
        read(field + "\n")

    assert what in caught.value.what


def test_the_line_of_a_fault() -> None:
    """A fault has the line of its field, even if that is a table."""
    with pytest.raises(ContentError) as of_key:
        read('model_provider = "local"\n')
    with pytest.raises(ContentError) as of_table:
        read("[features]\nshell_tool = false\n")

    assert (6, 6) == (of_key.value.line, of_table.value.line)


def test_what_is_not_said() -> None:
    """A file without a name has its file's name; a file without a model inherits the parent's."""
    preset = FORM.parse('description = "d"\n', "/x/scout.toml", "codex")

    assert preset is not None
    assert ("scout", "d", "inherit", "") == (preset.name, preset.description, preset.model, preset.prompt)


def test_no_project_documents() -> None:
    """An agent without AGENTS.md gets no project documents."""
    assert (None, False) == (read().context_files, read("project_doc_max_bytes = 0\n").context_files)
