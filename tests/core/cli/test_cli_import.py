"""`subdeck import`: a subdeck preset from another program's agent file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.run.model import PresetSource

from tests.core.command_line import subdeck

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

CLAUDE = """---
name: reviewer
description: Use this when: asked
tools: Read, Grep, mcp__docs__*
model: sonnet
effort: low
maxTurns: 7
permissionMode: bypassPermissions
---

Look closely.
"""
CODEX = """
description = "Finds things"
developer_instructions = "Look."
sandbox_mode = "read-only"
model_reasoning_effort = "none"
project_doc_max_bytes = 0
mcp_servers = {x = {command = "/bin/sh"}}
"""
OPENCODE = (
    "---\nmode: subagent\nmodel: openai/gpt-x\ntools: {bash: false, write: false}\ntemperature: 0.1\n---\nLook.\n"
)

READERS = ("read", "grep", "find", "ls")
FILES = {".claude/agents/r.md": CLAUDE, ".codex/agents/scout.toml": CODEX, ".opencode/agent/review.md": OPENCODE}


@pytest.fixture
def project(project_dir: Path) -> Path:
    for name, text in FILES.items():
        path = project_dir / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return project_dir


def imported(path: str | Path) -> Preset:
    """Read the written preset, which has no warnings."""
    preset = read_preset(str(path), PresetSource.PROJECT)
    assert isinstance(preset, Preset), preset
    assert () == preset.warnings
    return preset


@pytest.mark.parametrize(
    ("file", "expected", "left_out"),
    [
        (
            ".claude/agents/r.md",
            ("reviewer", "Use this when: asked", "claude", "sonnet", "low", 7, ("read", "grep", "mcp__docs"), None),
            ["permissionMode"],
        ),
        (
            ".codex/agents/scout.toml",
            ("scout", "Finds things", "codex", "inherit", "off", None, (*READERS, "web_search"), None),
            ["mcp_servers"],
        ),
        (
            ".opencode/agent/review.md",
            ("review", "From review.md", None, "openai/gpt-x", None, None, None, ("bash", "edit", "write")),
            ["temperature"],
        ),
    ],
)  # fmt: skip
def test_each_form_becomes_a_preset(
    project: Path, file: str, expected: tuple[object, ...], left_out: list[str]
) -> None:
    """The format is known from the file's directory, dropped fields are named, and the file is unchanged."""
    done = subdeck("import", file, "--json", cwd=project)

    assert 0 == done.code, done.err
    preset = imported(done.document["path"])
    assert expected == (
        preset.name, preset.description, preset.agent, preset.model, preset.thinking, preset.limits.max_turns,
        preset.tools, preset.denied_tools,
    )  # fmt: skip
    assert str(project / ".pi" / "subagents") == os.path.dirname(preset.path)
    assert left_out == [line.partition(" ")[0] for line in done.document["leftOut"]]
    assert FILES[file] == (project / file).read_text()


def test_a_name_and_all_projects(project: Path, home: Path) -> None:
    """The preset can get another name and be global. Dropped fields are printed as warnings."""
    done = subdeck("import", ".claude/agents/r.md", "--as", "second look", "--global", cwd=project)

    path = home / ".pi" / "agent" / "subagents" / "second-look.md"
    assert (0, f"Written to {path}\n") == (done.code, done.out)
    assert "second look" == imported(path).name
    assert "! permissionMode is ignored: " in done.err


def test_nothing_is_replaced(project: Path) -> None:
    """A second import of the same file is refused, and the first preset stays."""
    subdeck("import", ".claude/agents/r.md", cwd=project)
    path = project / ".pi" / "subagents" / "reviewer.md"
    path.write_text(path.read_text() + "More.\n")
    before = path.read_text()
    done = subdeck("import", ".claude/agents/r.md", cwd=project)

    assert (2, "", before) == (done.code, done.out, path.read_text())
    assert 'the preset "reviewer" already exists' in done.err
    assert ["reviewer.md"] == sorted(name for name in os.listdir(path.parent) if name.endswith(".md"))


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.md", CLAUDE, "claude"),
        ("a.toml", CODEX, "codex"),
        ("a.md", OPENCODE, "opencode"),
        ("a.md", "---\nname: x\n---\n", None),
        ("a.md", "no agent", None),
        ("a.txt", CLAUDE, None),
    ],
)
def test_the_form_elsewhere(project_dir: Path, name: str, text: str, form: str | None) -> None:
    """Elsewhere the format is known from the fields. If they don't tell, --from is required."""
    (project_dir / name).write_text(text)
    done = subdeck("import", name, "--json", cwd=project_dir)

    if form is None:
        assert (2, "cannot tell which program the file was written for") == (done.code, done.error["what"])
        assert "--from" in done.error["hint"]
    else:
        assert (0, form) == (done.code, done.document["form"])


def test_the_form_may_be_said(project_dir: Path) -> None:
    """--from overrides the fields of the file."""
    (project_dir / "a.md").write_text("---\nname: x\ndescription: d\n---\nLook.\n")
    done = subdeck("import", "a.md", "--from", "claude", "--json", cwd=project_dir)

    assert (0, "claude") == (done.code, imported(done.document["path"]).agent)


def test_an_agent_of_the_settings(project: Path, home: Path) -> None:
    """Another agent in the user's settings can run it, if its kind fits the file."""
    file = home / ".config" / "subdeck" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("agents: {work: {kind: claude, command: [claude]}, mine: {kind: acp, command: [opencode, acp]}}\n")
    work = subdeck("import", ".claude/agents/r.md", "--agent", "work", "--json", cwd=project)
    mine = subdeck("import", ".opencode/agent/review.md", "--agent", "mine", "--json", cwd=project)
    wrong = subdeck("import", ".claude/agents/r.md", "--agent", "mine", "--json", cwd=project)

    assert ("work", "mine") == (imported(work.document["path"]).agent, imported(mine.document["path"]).agent)
    assert (2, 'the agent "mine" cannot run agent files of claude') == (wrong.code, wrong.error["what"])


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        (CLAUDE.replace("model: sonnet", "disallowedTools: Bash(rm *)"), '"Bash(rm *)" covers only a part', ":5"),
        ("notes\n", "not an agent file", ""),
    ],
)
def test_what_cannot_be_kept_to_is_not_written(project_dir: Path, text: str, what: str, line: str) -> None:
    """A file with a restriction that no preset can have is refused. The error names file, line and field."""
    (project_dir / "a.md").write_text(text)
    done = subdeck("import", "a.md", "--from", "claude", "--json", cwd=project_dir)

    assert 2 == done.code
    assert what in done.error["what"]
    assert f"{project_dir}/a.md{line}" == done.error["where"]
    assert not (project_dir / ".pi").exists()


@pytest.mark.parametrize("name", ["", " ", "a/b", "n" * 65])
def test_a_name_that_is_none(project: Path, name: str) -> None:
    """An invalid preset name is refused before anything is written."""
    assert 2 == subdeck("import", ".claude/agents/r.md", "--as", name, cwd=project).code
    assert not (project / ".pi" / "subagents").exists()


def test_what_is_no_file(project_dir: Path) -> None:
    """A missing file, a directory and a FIFO are errors, without waiting."""
    os.mkfifo(project_dir / "fifo.md")
    (project_dir / "dir.md").mkdir()

    assert "the file does not exist" == subdeck("import", "nope.md", "--json", cwd=project_dir).error["what"]
    for name in ("fifo.md", "dir.md"):
        assert 2 == subdeck("import", name, cwd=project_dir).code
