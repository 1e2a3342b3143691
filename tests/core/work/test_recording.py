"""Recording the changes of runs in a git repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.events import Baseline

from tests.factories import events_of, open_engine, result_of, run_dir, run_to_end, start, started, wait_for_end

from ..git.repositories import git, make

pytestmark = pytest.mark.processes


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "repository", {"a.py": "one\ntwo\nthree\n", "b.py": "b\n"})


def test_what_a_run_changed(repository: Path) -> None:
    """The result has the changed files and line counts, with the patch beside it and the earlier tree in the events."""
    (repository / "b.py").write_text("not committed\n")
    engine = open_engine(repository)
    run = run_to_end(engine, "edit a.py two 2", "save new.py x\\ny\\n", "answer Done.")
    changes = result_of(engine, run).changes
    assert changes is not None
    assert ("2 files +3 −1", "+3 −1") == (changes.words, changes.figure)
    assert [("a.py", 1, 1), ("new.py", 2, 0)] == [(file.path, file.added, file.removed) for file in changes.named]
    assert changes == run.changes
    (baseline,) = [event for event in events_of(engine, run) if isinstance(event, Baseline)]
    head = git(repository, "rev-parse", "HEAD")
    assert (str(repository), "", head, "main", "") == (
        *(baseline.root, baseline.prefix, baseline.head, baseline.branch, baseline.note),
    )
    patch = (run_dir(engine, run) / paths.CHANGES_PATCH).read_text()
    assert "-two\n+2\n" in patch
    assert "not committed" not in patch
    git(repository, "stash", "-q", "-u")
    (repository / "b.py").write_text("not committed\n")
    git(repository, "apply", str(run_dir(engine, run) / paths.CHANGES_PATCH))
    assert "x\ny\n" == (repository / "new.py").read_text()


def test_a_run_that_changed_nothing(repository: Path) -> None:
    """A run without changes reports "nothing" and leaves neither a patch nor objects behind."""
    engine = open_engine(repository)
    run = run_to_end(engine, "answer Done.")
    assert "nothing" == result_of(engine, run).changes.words
    assert not (run_dir(engine, run) / paths.CHANGES_PATCH).exists()
    assert ["recorded.json"] == [path.name for path in Path(paths.work_dir(engine.project, run.run_id)).iterdir()]


def test_two_runs_at_once(repository: Path) -> None:
    """Of two runs in one directory at the same time, neither claims the other's files."""
    engine = open_engine(repository)
    gate = repository.parent / "gate"
    first = start(engine, "save one.py 1", f"wait-for {gate}", "answer Done.")
    started(engine, first)
    second = run_to_end(engine, "save two.py 2", "answer Done.")
    gate.touch()
    first = wait_for_end(engine, first.run_id)
    for run, other in ((first, second), (second, first)):
        changes = result_of(engine, run).changes
        assert "shared" == changes.figure
        assert f"other runs there: one-off {other.meta.short_id}" in changes.shared
