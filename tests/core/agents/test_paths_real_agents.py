"""Rules for paths: which files Claude Code and Codex read and write."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Request, ToolResult
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.real.lab import Lab
from tests.real.model_server import call, said
from tests.repositories import git
from tests.waiting import wait_until

from ..conversed import of
from ..permissions.path_spellings import (
    GLOBS,
    HUSH,
    NAMES,
    TRIED,
    decided,
    hide,
    landed,
    lay_out,
    secrets_of,
    ways_to,
    written,
)

pytestmark = pytest.mark.agents


class Answers:
    """Allows all requests, and stores what rules would have decided before."""

    def __init__(self, kind: str, cwd: str) -> None:
        self._kind, self._cwd = kind, cwd
        self.seen: dict[str, Request] = {}
        self.said: dict[str, tuple[bool, bool, bool]] = {}
        """By the written text: allowed in `src`, denied in `.git`, allowed everywhere."""

    def until_ended(self, engine: Engine, run: RunSnapshot, look: Callable[[], object]) -> None:
        def ended() -> bool:
            (now,) = engine.snapshots([run.run_id])
            for request in now.requests:
                if request.id not in self.seen:
                    look()
                    self.seen[request.id] = request
                    (mark,) = (line[1:] for line in request.diff.splitlines() if line.startswith("+mark "))
                    self.said[mark] = (
                        decided(self._kind, request, self._cwd, allow="edit(src/**)")[0] is Verdict.ALLOW,
                        decided(self._kind, request, self._cwd, deny="edit(.git/**)")[0] is Verdict.DENY,
                        decided(self._kind, request, self._cwd, allow="edit(**)")[0] is Verdict.ALLOW,
                    )
                    engine.reply(run.run_id, request.id, Verdict.ALLOW)
            return now.has_ended

        wait_until(ended, "the run to end", timeout=300)
        look()


def check(said: dict[str, tuple[bool, bool, bool]], where: dict[str, str], cwd: str) -> None:
    """Check that allowed writes are where their rule allows them, and that writes to `.git` are denied."""
    for mark, file in where.items():
        in_src, is_denied, is_free = said.get(mark, (False, False, False))
        assert not in_src or file.startswith(f"{cwd}/src/"), (mark, file)
        assert not is_free or file.startswith(f"{cwd}/"), (mark, file)
        protected = ("/.git/", "/.claude/", "/.mcp.json", "/.codex/")
        assert not is_free or not any(part in f"{file}/" for part in protected), (mark, file)
        assert is_denied or mark not in said or not file.startswith(f"{cwd}/.git/"), (mark, file)


@pytest.mark.timeout(400)
def test_where_claude_code_writes(claude: Lab) -> None:
    """An allow rule covers only unprotected files below its directory. A deny rule covers every path that leads
    there.
    """
    outside, cwd = lay_out(claude.project), os.path.realpath(claude.project)
    claude.preset(name="writing", permissions={"ask": ["edit"]})
    paths = [written(spelling, cwd, outside) for spelling in TRIED]
    marks = {f"mark {path!a}": path for path in paths}
    where: dict[str, str] = {}
    claude.script(*(call("Write", file_path=path, content=f"{mark}\n") for mark, path in marks.items()), said("Done."))
    answers = Answers("claude", cwd)

    answers.until_ended(
        claude.engine, claude.start(preset="writing"), lambda: where.update(landed(claude.project, outside))
    )
    check(answers.said, where, cwd)
    assert len(where) > len(paths) // 2


@pytest.mark.timeout(400)
def test_where_codex_writes(codex: Lab) -> None:
    """An allow rule covers only unprotected files below its directory. A deny rule covers every path that leads
    there.
    """
    outside, cwd = lay_out(codex.project), os.path.realpath(codex.project)
    codex.preset("tools: read, bash, edit", "permissions: {ask: [edit]}")
    paths = [written(spelling, cwd, outside) for spelling in TRIED if not set("\n\t") & set(spelling)]
    where: dict[str, str] = {}
    marks = {f"mark {path!a}": path for path in paths}
    patches = [
        f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n+{mark}\n*** End Patch\nEOF"
        for mark, path in marks.items()
    ]
    codex.script(*map(codex.shell, patches), said("Done."))
    answers = Answers("codex", cwd)
    answers.until_ended(codex.engine, codex.start(), lambda: where.update(landed(codex.project, outside)))
    check(answers.said, where, cwd)
    assert len(where) > len(paths) // 2


@pytest.mark.timeout(400)
def test_where_claude_code_looks_for_names(claude: Lab) -> None:
    """Rules for `find` check where the pattern's search starts, even if the call names another directory."""
    outside, cwd = lay_out(claude.project), os.path.realpath(claude.project)
    claude.preset(
        name="finding", tools=["read", "find"], permissions={"allow": ["find(src/**)"], "deny": [f"find({outside}/**)"]}
    )
    claude.script(
        call("Glob", pattern=f"{outside}/*", path=f"{cwd}/src"),
        call("Glob", pattern="../../outside/*", path=f"{cwd}/src"),
        call("Glob", pattern="k*", path=f"{cwd}/src"),
        said("Done."),
    )
    run = claude.start()
    claude.end(run)
    assert [True, True, False] == [event.is_error for event in of(ToolResult, claude.engine, run)]


# --- files that rules deny ---


def together(*calls: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield turns with several of these calls at once."""
    steps = [step for turn in calls for step in turn["steps"]]
    for at in range(0, len(steps), 20):
        yield {"steps": [{"tool_calls": [each for step in steps[at : at + 20] for each in step["tool_calls"]]}]}


def all_allowed(claude: Lab, preset: str) -> RunSnapshot:
    """Run a preset to its end, and allow all requests."""
    run = claude.start(preset=preset)
    claude.end(run, Verdict.ALLOW)
    return run


@pytest.mark.timeout(400)
def test_no_way_of_claude_code_leads_to_a_denied_file(claude: Lab) -> None:
    """A deny rule holds for every tool and every spelling of a path, through links, `/proc` and `/dev/fd`."""
    hide(claude.project)
    before = secrets_of(claude.project)
    deny = [f"{tool}(secret/**)" for tool in ("read", "grep", "find", "edit")]
    claude.preset(name="looking", tools=["read", "grep", "find", "edit", "write"], permissions={"deny": deny})
    files = [*ways_to(claude.project, "key"), *(f"secret/{name}" for name in NAMES)]
    directories = ways_to(claude.project, "")
    patterns = [pattern.replace("{cwd}", str(claude.project)) for pattern in GLOBS]
    calls = [
        *(call("Read", file_path=path) for path in files),
        *(call("Grep", pattern=".", path=path, output_mode="content") for path in (*files, *directories)),
        *(call("Grep", pattern=".", path="src", glob=glob) for glob in ("../secret/*", "--follow", "* --follow")),
        *(call("Glob", pattern="*", path=path) for path in directories),
        *(call("Glob", pattern=f"{path}*", path="src") for path in directories),
        *(
            call("Glob", pattern=pattern, path=path)
            for pattern in patterns
            for path in ("src", f"{claude.project}/src")
        ),
        *(call("Write", file_path=f"{path}new", content="x") for path in directories),
        call("Read", file_path="src/plain"),
    ]
    claude.script(*together(*calls), said("Done."))
    results = of(ToolResult, claude.engine, all_allowed(claude, "looking"))
    assert len(calls) == len(results)
    assert [] == [result.content for result in results if HUSH in result.content]
    assert "plain" in results[-1].content
    assert before == secrets_of(claude.project)


@pytest.mark.timeout(400)
def test_no_way_of_claude_code_leads_to_a_denied_notebook(claude: Lab) -> None:
    """Rules for `edit` also cover notebooks, with every spelling of a path, and in protected directories."""
    hide(claude.project)
    protected = claude.project / ".git" / "n.ipynb"
    protected.write_text((claude.project / "src" / "n.ipynb").read_text())
    before = secrets_of(claude.project)
    rules = {"allow": ["edit(**)"], "deny": ["edit(secret/**)"]}
    claude.preset(name="noting", tools=["read", "NotebookEdit"], permissions=rules)
    paths = [*ways_to(claude.project, "n.ipynb"), ".git/n.ipynb", "src/n.ipynb"]
    edits = (call("NotebookEdit", notebook_path=path, new_source="new", cell_id="c1") for path in paths)
    claude.script(*together(*(call("Read", file_path=path) for path in paths)), *together(*edits), said("Done."))
    run = claude.start(preset="noting")
    claude.end(run)
    assert before == secrets_of(claude.project)
    assert '"new"' not in protected.read_text()
    assert "new" in (claude.project / "src" / "n.ipynb").read_text()
    assert "protected path .git" in [request.rule for request in of(Request, claude.engine, run)]


@pytest.mark.parametrize("interactive", [True, False])
def test_claude_code_has_no_notebooks_if_edits_are_denied(claude: Lab, interactive: bool) -> None:
    """Denying `edit` without a pattern also denies changing notebooks."""
    hide(claude.project)
    rules = {"deny": ["edit"]}
    claude.preset(name="noting", tools=["read", "NotebookEdit"], permissions=rules, interactive=interactive)
    path = str(claude.project / "src" / "n.ipynb")
    before = Path(path).read_text()
    edit = call("NotebookEdit", notebook_path=path, new_source="new", cell_id="c1")
    claude.script(call("Read", file_path=path), edit, said("Done."))
    all_allowed(claude, "noting")
    assert before == Path(path).read_text()


def test_claude_code_asks_about_protected_files_in_a_run_with_any_rules(claude: Lab) -> None:
    """A run with only allow rules asks before it changes protected files, which include the settings of all agents."""
    hide(claude.project)
    claude.preset(name="writing", tools=["write"], permissions={"allow": ["edit(src/**)"]})
    names = (".codex/config.toml", ".pi/x", "opencode.json", ".github/hooks/x", ".git/hooks/x", ".mcp.json")
    claude.script(
        *together(*(call("Write", file_path=str(claude.project / name), content="x") for name in ("src/ok", *names))),
        said("Done."),
    )
    run = claude.start(preset="writing")
    claude.end(run)
    assert [True] * len(names) == [request.rule.startswith("protected") for request in of(Request, claude.engine, run)]
    assert ["src/ok"] == [name for name in ("src/ok", *names) if (claude.project / name).exists()]


def test_claude_code_runs_no_denied_command_in_the_background(claude: Lab) -> None:
    """Rules for `bash` also cover `Monitor`, a tool that runs a command in the background."""
    claude.preset(name="watching", tools=["Monitor"], permissions={"deny": ["bash(touch *)"], "ask": ["bash(tail *)"]})
    watch = {"description": "x", "timeout_ms": 3000}
    claude.script(
        call("Monitor", command=f"echo x; touch {claude.project}/made", **watch),
        call("Monitor", command="tail -f notes.md", **watch),
        said("Done."),
    )
    run = claude.start(preset="watching")
    claude.end(run)
    assert not (claude.project / "made").exists()
    assert [("tail -f notes.md", "bash(tail *)")] == [
        (each.command, each.rule) for each in of(Request, claude.engine, run)
    ]


@pytest.mark.parametrize("name", ["plain", "a (b) [c], d", "a!b#c {d}*?", "half ) open", "back\\slash"])
def test_claude_code_imports_no_denied_file(claude: Lab, name: str) -> None:
    """A deny rule for `read` holds for files that a CLAUDE.md imports, which the agent reads without a call."""
    root = claude.project / "src" / name
    root.mkdir(parents=True)
    hide(root)
    (root / "src" / "sub" / "free").write_text("imported\n")
    (root / "secret" / "CLAUDE.md").write_text(f"{HUSH}\n")
    claude.preset(
        name="importing", permissions={"allow": ["edit(**)", "read", "bash(cat *)"], "deny": ["read(secret/**)"]}
    )
    claude.script(
        call(
            "Write",
            file_path=str(root / "src" / "sub" / "CLAUDE.md"),
            content="@../../secret/key\n\n@../to/key\n\n@free\n",
        ),
        call("Read", file_path=str(root / "src" / "sub" / "free")),
        call("Read", file_path=str(root / "secret" / "key")),
        call("Bash", command="cat secret/key"),
        said("Done."),
    )
    run = claude.start(preset="importing", cwd=str(root))
    claude.end(run)
    read = json.dumps(claude.requests[-1]["messages"])
    assert HUSH not in read
    assert read.count("imported") >= 2


def test_a_nested_agent_of_claude_code_reads_no_denied_file_in_a_tree_of_its_own(claude: Lab) -> None:
    """A deny rule also holds in the worktree that a nested agent gets."""
    shutil.rmtree(claude.project / ".git")
    git(claude.project, "init", "-q")
    hide(claude.project)
    (claude.project / "src" / "CLAUDE.md").write_text("@../secret/sub/key\n")
    git(claude.project, "add", "secret", "src")
    git(claude.project, "commit", "-qm", "all")
    deny = ["read(secret/**)", "edit(secret/**)"]
    claude.preset(name="nesting", permissions={"allow": ["read", "edit"], "deny": deny})
    nested = {"prompt": "Look NESTED.", "subagent_type": "general-purpose", "isolation": "worktree"}
    begin = {"last_role": "user", "last_contains": "NESTED", "tools": True, "once": True}
    claude.script(
        {"when": begin, **call("Read", file_path="secret/key")},
        call("Agent", description="x", run_in_background=False, **nested),
        call("Read", file_path="src/plain"),
        call("Write", file_path="secret/new", content="x"),
        said("Done."),
        said("Done."),
    )
    run = claude.start(preset="nesting")
    claude.end(run, Verdict.ALLOW)
    inner = [result for result in of(ToolResult, claude.engine, run) if result.within]
    assert [True, False, True] == [result.is_error for result in inner]
    assert HUSH not in json.dumps([request["messages"] for request in claude.requests])
