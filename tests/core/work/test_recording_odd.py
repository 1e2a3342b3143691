"""Recording odd repositories, odd files and runs with several attempts: the truth, or a clear note."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.run.changes import Changes, ChangesSource
from subdeck.core.run.events import Baseline

from tests.factories import events_of, open_engine, result_of, run_to_end

from ..git.repositories import git, make

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


def changed(directory: Path, *script: str) -> Changes:
    engine = open_engine(directory)
    run = run_to_end(engine, *script, "answer Done.")
    assert "completed" == run.status
    changes = result_of(engine, run).changes
    assert changes is not None
    return changes


def test_no_commit_yet(tmp_path: Path) -> None:
    """Without a commit, existing files count as there before the run."""
    repository = make(tmp_path / "repository")
    (repository / "there.py").write_text("x\n")
    assert "1 file +1 −0" == changed(repository, "save new.py x\\n").words


def test_a_bare_repository(tmp_path: Path) -> None:
    """In a bare repository nothing is checked out: only the tools' writes are known."""
    bare = make(tmp_path / "bare.git", None, "--bare")
    changes = changed(bare, "save new.py x")
    assert (ChangesSource.TOOLS, ["new.py"]) == (changes.source, [file.path for file in changes.named])


@pytest.mark.parametrize("how", ["HEAD", "index", "objects"])
def test_a_broken_repository(tmp_path: Path, how: str) -> None:
    """In a broken repository the run completes with changes from its tools or git, and a note about the trouble."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    if how == "HEAD":
        (repository / ".git/HEAD").write_text("nonsense\n")
    elif how == "index":
        (repository / ".git/index").write_bytes(b"nonsense")
    else:
        for path in (repository / ".git/objects").rglob("??*"):
            if path.is_file():
                path.unlink()
    changes = changed(repository, "edit a.py one 1")
    assert ["a.py"] == [file.path for file in changes.named]
    assert how == "index" or changes.note.startswith("not recorded: ")


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git only the tools' writes are known, with the reason."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("sh", "sleep"):
        (bin_ / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(bin_))
    changes = changed(repository, "edit a.py one 1")
    assert ("+1 −1", "not recorded: git is not on PATH") == (changes.figure, changes.note.partition(";")[0])


def test_odd_files(tmp_path: Path) -> None:
    """Binary, renamed, mode, link and large files are reported as such."""
    lines = "".join(f"{number}\n" for number in range(50))
    repository = make(tmp_path / "repository", {"old name": lines, "run.sh": "x\n", "b.bin": b"\0", "link": "x\n"})
    script = ("bash mv 'old name' new", "bash chmod +x run.sh", "put b.bin changed\\0", "bash ln -sf run.sh link")
    changes = changed(repository, *script, "bash truncate -s 30M large")
    told = {file.path: (str(file.status), file.note) for file in changes.named}
    assert "old name" == next(file.old_path for file in changes.named if file.path == "new")
    assert ("renamed", "") == told["new"]
    assert ("mode", "") == told["run.sh"]
    assert "type" == told["link"][0]
    assert ("added", "too large to save: 30 MB") == told["large"]


def test_what_is_ignored_and_what_is_ours(tmp_path: Path) -> None:
    """Ignored files and subdeck's own records are not changes."""
    repository = make(tmp_path / "repository", {".gitignore": "build/\n"})
    assert "nothing" == changed(repository, "put build/x y", "bash true").words


def test_a_home_that_is_a_repository(home: Path) -> None:
    """Subdeck's own state in a repository is not a change of the run."""
    make(home, {".gitignore": ".cache/\n", "a.py": "one\n"})
    changes = changed(home, "edit a.py one 1")
    assert ("1 file +1 −1", "") == (changes.words, changes.shared)


def test_several_children_of_one_run(tmp_path: Path) -> None:
    """A run has one baseline, however often its agent is started."""
    repository = make(tmp_path / "repository", {"a.py": "one\n"})
    preset = repository / ".pi/subagents/two.md"
    preset.parent.mkdir(parents=True)
    preset.write_text("---\nname: two\ndescription: x\nstructured_result: true\nmax_attempts: 2\n---\nTwice.\n")
    git(repository, "add", "-A")
    engine = open_engine(repository)
    run = run_to_end(engine, "edit a.py one 1", "answer Done.", preset="two")
    assert 2 == result_of(engine, run).attempts
    assert 1 == sum(isinstance(event, Baseline) for event in events_of(engine, run))
    assert "1 file +1 −1" == run.changes.words


def test_a_directory_below_the_root(tmp_path: Path) -> None:
    """Paths are relative to the repository's root, and changes outside the run's directory count too."""
    repository = make(tmp_path / "repository", {"a.py": "one\n", "sub/b.py": "b\n"})
    engine = open_engine(repository)
    run = run_to_end(engine, "edit b.py b 2", "edit ../a.py one 1", "answer Done.", cwd=str(repository / "sub"))
    changes = result_of(engine, run).changes
    assert (["a.py", "sub/b.py"], "") == ([file.path for file in changes.named], changes.shared)
    (baseline,) = [event for event in events_of(engine, run) if isinstance(event, Baseline)]
    assert "sub" == baseline.prefix
