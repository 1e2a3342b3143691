"""Rules for paths: which files Claude Code and Codex write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Request, ToolResult
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.waiting import wait_until

from .path_spellings import TRIED, decided, landed, lay_out, written
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


class Answers:
    """Allows all that a run asks, and keeps what the rules of a run would say before."""

    def __init__(self, kind: str, cwd: str) -> None:
        self._kind, self._cwd = kind, cwd
        self.seen: dict[str, Request] = {}
        self.said: dict[str, tuple[bool, bool, bool]] = {}
        """By the text that is written: allowed in `src`, denied in `.git`, allowed everywhere."""

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
    """See that what was written lies where a rule allows it, and that what lies in `.git` is denied."""
    for mark, file in where.items():
        in_src, is_denied, is_free = said.get(mark, (False, False, False))
        assert not in_src or file.startswith(f"{cwd}/src/"), (mark, file)
        assert not is_free or file.startswith(f"{cwd}/"), (mark, file)
        protected = ("/.git/", "/.claude/", "/.mcp.json", "/.codex/")
        assert not is_free or not any(part in f"{file}/" for part in protected), (mark, file)
        assert is_denied or mark not in said or not file.startswith(f"{cwd}/.git/"), (mark, file)


@pytest.mark.timeout(400)
def test_where_claude_code_writes(lab: Lab) -> None:
    """An allow rule covers only unprotected files below its directory. A deny rule covers every path that leads
    there.
    """
    outside, cwd = lay_out(lab.root), os.path.realpath(lab.root)
    lab.preset("writing", permissions={"ask": ["edit"]})
    paths = [written(spelling, cwd, outside) for spelling in TRIED]
    marks = {f"mark {path!a}": path for path in paths}
    where: dict[str, str] = {}
    lab.answers(*(call("Write", file_path=path, content=f"{mark}\n") for mark, path in marks.items()), text("Done."))
    answers = Answers("claude", cwd)

    answers.until_ended(lab.engine, lab.start(preset="writing"), lambda: where.update(landed(lab.root, outside)))
    check(answers.said, where, cwd)
    assert len(where) > len(paths) // 2


@pytest.mark.timeout(400)
def test_where_codex_writes(codex: RealCodex) -> None:
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
    codex.script(*map(command, patches), said("Done."))
    answers = Answers("codex", cwd)
    answers.until_ended(codex.engine, codex.begin(), lambda: where.update(landed(codex.project, outside)))
    check(answers.said, where, cwd)
    assert len(where) > len(paths) // 2


@pytest.mark.timeout(400)
def test_where_claude_code_looks_for_names(lab: Lab) -> None:
    """Rules for `find` check where the pattern's search starts, even if the call names another directory."""
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
    assert [True, True, False] == [event.is_error for event in results]
