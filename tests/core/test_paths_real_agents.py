"""The paths that the real Claude Code and Codex write to, against what the rules of a run say to them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Request, ToolResult
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.waiting import wait_until

from .path_spellings import SPELLINGS, decided, lay_out, written
from .real_claude import Lab, call, real_claude, text
from .real_codex import RealCodex, command, real_codex, said

pytestmark = pytest.mark.agents


@pytest.fixture
def lab(world: Path, tmp_path: Path, project_dir: Path, claude_executable: str) -> Iterator[Lab]:
    with real_claude(project_dir, tmp_path, claude_executable) as lab:
        yield lab


@pytest.fixture
def codex(project_dir: Path, home: Path, codex_executable: str) -> Iterator[RealCodex]:
    with real_codex(project_dir, home, codex_executable) as ready:
        yield ready


def landed(mark: str, *directories: Path) -> list[str]:
    """Return where a text was written, and take it away."""
    words = ["grep", "-rlxF", "--exclude-dir=runs", "--exclude-dir=.claude-home", "--", mark, *map(str, directories)]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    files = sorted({os.path.realpath(path) for path in found if not path.endswith((".jsonl", ".log"))})
    for file in files:
        os.unlink(file)
    return files


class Answers:
    """Allows all that a run asks, and keeps what the rules of a run would say before."""

    def __init__(self, kind: str, cwd: str) -> None:
        self._kind, self._cwd = kind, cwd
        self.seen: dict[str, Request] = {}
        self.said: dict[str, tuple[bool, bool, bool]] = {}
        """By the text that is written: allowed in `src`, denied in `.git`, allowed everywhere."""

    def until_ended(self, engine: Engine, run: RunSnapshot, look: Callable[[], None]) -> None:
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

        wait_until(ended, "the run to end", timeout=90)
        look()


def check(said: dict[str, tuple[bool, bool, bool]], where: dict[str, list[str]], cwd: str) -> None:
    """See that what was written lies where a rule allows it, and that what lies in `.git` is denied."""
    for mark, files in where.items():
        in_src, is_denied, is_free = said.get(mark, (False, False, False))
        for file in files:
            assert not in_src or file.startswith(f"{cwd}/src/"), (mark, file)
            assert not is_free or file.startswith(f"{cwd}/"), (mark, file)
            protected = ("/.git/", "/.claude/", "/.mcp.json", "/.codex/")
            assert not is_free or not any(part in f"{file}/" for part in protected), (mark, file)
            assert is_denied or mark not in said or not file.startswith(f"{cwd}/.git/"), (mark, file)


def test_where_claude_code_writes(lab: Lab, home: Path) -> None:
    """What a rule allows lands below its directory and in no protected file; a denial holds for what lands there."""
    outside, cwd = lay_out(lab.root), os.path.realpath(lab.root)
    lab.preset("writing", permissions={"ask": ["edit"]})
    paths = [written(spelling, cwd, outside) for spelling in SPELLINGS]
    marks = {f"mark {path!a}": path for path in paths}
    where: dict[str, list[str]] = {}
    lab.answers(*(call("Write", file_path=path, content=f"{mark}\n") for mark, path in marks.items()), text("Done."))
    answers = Answers("claude", cwd)

    def look() -> None:
        for mark in tuple(marks)[: len(answers.seen) + 10]:
            where[mark] = where.get(mark) or landed(mark, lab.root, outside)

    answers.until_ended(lab.engine, lab.start(preset="writing"), look)
    check(answers.said, where, cwd)
    assert sum(map(bool, where.values())) > 50


def test_where_codex_writes(codex: RealCodex) -> None:
    """What a rule allows lands below its directory and in no protected file; a denial holds for what lands there."""
    outside, cwd = lay_out(codex.project), os.path.realpath(codex.project)
    codex.preset("tools: read, bash, edit", "permissions: {ask: [edit]}")
    paths = [written(spelling, cwd, outside) for spelling in SPELLINGS if not set("\n\t") & set(spelling)]
    where: dict[str, list[str]] = {}
    for start in range(0, len(paths), 30):
        some = {f"mark {path!a}": path for path in paths[start : start + 30]}
        patches = [
            f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n+{mark}\n*** End Patch\nEOF"
            for mark, path in some.items()
        ]
        codex.script(*map(command, patches), said("Done."))
        answers = Answers("codex", cwd)

        def look(some: dict[str, str] = some) -> None:
            for mark in some:
                where[mark] = where.get(mark) or landed(mark, codex.project, outside)

        answers.until_ended(codex.engine, codex.begin(), look)
        check(answers.said, {mark: where[mark] for mark in some}, cwd)
    assert sum(map(bool, where.values())) > 30


def test_where_claude_code_looks_for_names(lab: Lab) -> None:
    """A pattern that begins elsewhere than its directory is judged by where it begins."""
    outside, cwd = lay_out(lab.root), os.path.realpath(lab.root)
    lab.preset(
        "finding", tools=["read", "find"], permissions={"allow": ["find(src/**)"], "deny": [f"find({outside}/**)"]}
    )
    lab.answers(
        call("Glob", pattern=f"{outside}/*", path=f"{cwd}/src"),
        call("Glob", pattern="../../outside/*", path=f"{cwd}/src"),
        call("Glob", pattern="k*", path=f"{cwd}/src"),
        text("Done."),
    )
    result = lab.end(lab.start(preset="finding"))
    results = [event for event in lab.events(result) if isinstance(event, ToolResult)]
    print(results)
    assert [True, True, False] == [event.is_error for event in results]
