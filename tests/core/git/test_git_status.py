"""git's status of a project in which runs were launched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..command_line import subdeck

pytestmark = pytest.mark.processes

PRESET = "---\nname: mine\ndescription: x\n---\nYou look.\n"


def git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(where), *words], check=True, capture_output=True, text=True)
    return done.stdout


def test_nothing_of_ours_is_untracked(project_dir: Path) -> None:
    """After launches, git lists only the user's own presets, not even the file that hides the rest."""
    git(project_dir, "init", "-q")
    assert 0 == subdeck("run", "--agent", "offline", "--no-preset", "look", cwd=project_dir).code
    assert "" == git(project_dir, "status", "--porcelain", "--untracked-files=all")
    (project_dir / ".pi/subagents/mine.md").write_text(PRESET)
    assert "?? .pi/subagents/mine.md\n" == git(project_dir, "status", "--porcelain", "--untracked-files=all")
