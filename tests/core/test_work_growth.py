"""What runs leave in repository and state once they are cleaned up: nothing that was not there before."""

from __future__ import annotations

import os
from pathlib import Path

from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.work import acts

from tests.factories import open_engine, request
from tests.repositories import git, make_repository, pinned

RUNS = 12


def remembered() -> set[str]:
    """Return all files in the user's state, but for the key and the stack of what can be taken back."""
    state = Path(paths.state_file())
    return {str(path.relative_to(state)) for path in state.rglob("*") if path.is_file()} - {"key"}


def objects(root: Path) -> str:
    """Return how many objects a repository has, and what it refers to of them that is missing or of no use."""
    return git(root, "count-objects", "-v") + git(root, "fsck", "--unreachable", "--no-progress")


def run_all(engine: Engine, **options: object) -> list[str]:
    """Run some children at once, each of which writes a file of its own."""
    wanted = [request(f"put new-{number}.txt {number}\\n", "answer ok", **options) for number in range(RUNS)]
    runs = engine.launch(wanted, background=True)
    run_ids = [run.run_id for run in runs]
    assert all(run.has_ended for run in engine.wait(run_ids, timeout=60))
    return run_ids


def test_runs_in_the_working_tree_leave_only_what_they_wrote(project_dir: Path) -> None:
    """Purged, they leave their files and nothing else: no object, no ref, no store."""
    root = make_repository(project_dir)
    engine = open_engine(root)
    before = pinned(root), objects(root), remembered()
    run_ids = run_all(engine)
    engine.delete(run_ids)
    engine.purge(run_ids)
    stack = {os.path.relpath(path, paths.state_file()) for path in (f"{paths.works_dir(engine.project)}/undo.jsonl",)}
    assert before == (pinned(root), objects(root), remembered() - stack)
    assert RUNS == len(list(root.glob("new-*.txt")))
    assert ["deleting 12 runs"] == [act.title for act in acts.read(engine.project)]
