"""Agent files of Claude Code: fields used, fields ignored with a warning, and fields refused."""

from __future__ import annotations

import pytest
from subdeck.core.errors import ContentError
from subdeck.core.presets.file import Preset
from subdeck.core.presets.forms.claude import FORM
from subdeck.core.run.model import PresetSource, WorktreeFrom

HEAD = "name: reviewer\ndescription: Reviews a change\n"


def read(fields: str = "", body: str = "Look.\n") -> Preset:
    preset = FORM.parse(f"---\n{HEAD}{fields}---\n\n{body}", "/c/.claude/agents/reviewer.md", "claude")
    assert preset is not None
    return preset


def test_a_whole_file() -> None:
    """Every field with a counterpart is used without a warning."""
    fields = "tools: Read, Grep, Glob, WebFetch\nmodel: sonnet\neffort: high\nmaxTurns: 20\ncolor: red\n"

    assert Preset(
        name="reviewer",
        description="Reviews a change",
        source=PresetSource.DIR,
        path="/c/.claude/agents/reviewer.md",
        form="claude",
        agent="claude",
        model="sonnet",
        thinking="high",
        tools=("read", "grep", "find", "WebFetch"),
        max_turns=20,
        prompt="Look.",
    ) == read(fields)


@pytest.mark.parametrize(
    ("fields", "tools", "denied"),
    [
        ("", None, None),
        ("tools: '*'\n", None, None),
        ("tools: *\n", None, None),
        ("tools: []\n", (), None),
        ("tools:\n  - Bash\n  - Edit\n  - MultiEdit\n  - Write\n", ("bash", "edit", "write"), None),
        ("tools: LS, NotebookEdit, mcp__a__*, mcp__b__c\n", ("ls", "NotebookEdit", "mcp__a", "mcp__b__c"), None),
        ("tools: Read, Task(worker, scout), Agent\n", ("read", "Agent"), None),
        ("disallowedTools: Write, Edit\n", None, ("write", "edit")),
        ("disallowedTools: [Agent]\n", None, ("Agent", "Task")),
        ("disallowedTools: '*'\n", (), None),
        ("tools: Read, Bash\ndisallowedTools: Bash\n", ("read",), None),
        ("tools: '*'\ndisallowedTools: Bash\n", None, ("bash",)),
        ("tools: Bash\ndisallowedTools: Bash\n", (), None),
    ],
)  # fmt: skip
def test_tools(fields: str, tools: tuple[str, ...] | None, denied: tuple[str, ...] | None) -> None:
    """Tools get subdeck's names if they have one; denied tools are removed from a list, or denied by the preset."""
    preset = read(fields)

    assert (tools, denied, ()) == (preset.tools, preset.denied_tools, preset.warnings)


@pytest.mark.parametrize(
    ("written", "model"),
    [("", "inherit"), ("model: inherit\n", "inherit"), ("model: opus\n", "opus"), ("model: claude-x\n", "claude-x")],
)
def test_models(written: str, model: str) -> None:
    """An alias is kept; a file without a model inherits the parent's, as in Claude Code."""
    assert model == read(written).model


@pytest.mark.parametrize(
    "field",
    [
        "permissionMode: bypassPermissions",
        "permissionMode: acceptEdits",
        "hooks: {PreToolUse: [{hooks: [{type: command, command: /bin/true}]}]}",
        "mcpServers: [{evil: {command: /bin/sh}}]",
        "skills: [deploy]",
        "memory: project",
        "initialPrompt: Go",
        "effort: 7",
        "observer: somebody",
    ],
)
def test_what_is_left_out_is_said(field: str) -> None:
    """A field that would grant or start something is ignored, with a warning."""
    key = field.partition(":")[0]
    (warning,) = read(field + "\n").warnings

    assert key in warning and "is ignored" in warning
    assert read().tools is read(field + "\n").tools


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("disallowedTools: Bash(rm *)", '"Bash(rm *)" covers only a part of Bash'),
        ("tools: Read, Bash(git log, git diff)", '"Bash(git log, git diff)" covers only a part'),
        ("disallowedTools: Agent(Explore)", "covers only a part of Agent"),
        ("tools:", "it is empty"),
        ("disallowedTools: {Bash: true}", "a list of tools but found keys below it"),
        ("disallowedTools: [[Bash]]", "expected a list of tools"),
        ("disallowedTools: [Bash", "invalid YAML"),
        ("disallowedTools: Bash Edit", '"Bash Edit" is not the name of a tool'),
        ("isolation: remote", '"remote" is not supported'),
        ("permissionMode: plan", "plan forbids all changes"),
        ("permissionMode: plan\ntools: Read, Bash", "plan forbids all changes"),
        ("maxTurns: many", "maxTurns: expected a whole number"),
    ],
)
def test_what_restricts_is_kept_to_or_refused(field: str, what: str) -> None:
    """A restriction that cannot be enforced is an error with its field, its line and a way out."""
    with pytest.raises(ContentError) as caught:
        read(field + "\n")

    assert what in caught.value.what
    assert caught.value.line is not None and caught.value.line >= 4


def test_a_copy_of_the_project_is_a_worktree() -> None:
    """A worktree begins at the last commit, as in Claude Code; without the field, the settings decide."""
    assert (WorktreeFrom.HEAD, None) == (read("isolation: worktree\n").worktree, read().worktree)


def test_a_planner_that_only_reads() -> None:
    """A planner with read-only tools is accepted with any permission mode."""
    preset = read("permissionMode: plan\ntools: Read, Grep, Glob\n")

    assert ("read", "grep", "find") == preset.tools


def test_a_description_that_is_not_quite_yaml() -> None:
    """An unquoted description with colons is read, as Claude Code does."""
    text = '---\nname: r\ndescription: Use this when: asked.\\n<example>user: "x"</example>\ntools: Read\n---\nLook.'
    preset = FORM.parse(text, "/x/r.md", "claude")

    assert preset is not None
    assert ('Use this when: asked.\\n<example>user: "x"</example>', ("read",)) == (preset.description, preset.tools)


def test_a_file_without_a_name() -> None:
    """Notes without frontmatter are skipped; an agent without a name, which Claude Code does not load, is a problem."""
    assert None is FORM.parse("# Our agents\n", "/x/README.md", "claude")
    with pytest.raises(ContentError, match="name: it is missing"):
        FORM.parse("---\ndescription: d\n---\n", "/x/a.md", "claude")


def test_no_memory_files() -> None:
    """An agent without CLAUDE.md gets no memory files."""
    assert (None, False) == (read().context_files, read("omitClaudeMd: true\n").context_files)
