"""`subdeck diff`, and the changes in `subdeck status`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from subdeck.core.cli import status
from subdeck.core.engine import Engine
from subdeck.core.run.model import WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import open_engine, run_to_end, start, started
from tests.waiting import wait_until

from ..command_line import subdeck
from ..git.repositories import git, make

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers", "forked_commands")]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "repository", {"a.py": "one\ntwo\nthree\n", "b.bin": b"\0\1"})


def ended(repository: Path, *script: str) -> tuple[Engine, RunSnapshot]:
    engine = open_engine(repository)
    return engine, run_to_end(engine, *script, "answer Done.")


def test_the_patch(repository: Path) -> None:
    """Piped output is a patch that git can apply, byte for byte. --stat and --name-only list the files."""
    _, run = ended(repository, "edit a.py two 2", "put b.bin changed", "put dir/\x1b[31mnew x", "bash true")
    patch = subdeck("diff", run.run_id, cwd=repository)
    assert (0, "") == (patch.code, patch.err)
    git(repository, "stash", "-u")
    git(repository, "apply", given=patch.out.encode())
    assert "one\n2\nthree\n" == (repository / "a.py").read_text()
    names = subdeck("diff", run.run_id, "--name-only", cwd=repository).out.splitlines()
    assert {"a.py", "b.bin", '"dir/\\033[31mnew"'} == set(names)
    stat = subdeck("diff", run.run_id, "--stat", cwd=repository).out
    assert "M  a.py" in stat
    assert "+1 −1" in stat
    assert "3 files +2 −1" in stat


def test_json(repository: Path) -> None:
    """One document has all fields and the patch's path. `status --json` has the same changes."""
    engine, run = ended(repository, "edit a.py two 2")
    document = json.loads(subdeck("diff", run.run_id, "--json", cwd=repository).out)
    assert engine.artifacts(run.run_id)["changes.patch"] == document["patch"]
    changes = document["changes"]
    assert (1, 1, 1, "git", "", "") == tuple(
        changes[name] for name in ("files", "added", "removed", "source", "shared", "note")
    )
    file = {"path": "a.py", "status": "modified", "added": 1, "removed": 1, "oldPath": None, "note": ""}
    assert [file] == changes["named"]
    (listed,) = json.loads(subdeck("status", "--json", cwd=repository).out)["runs"]
    assert changes == listed["changes"]
    assert f"{run.meta.short_id} changed 1 file +1 −1" in subdeck("status", run.run_id, cwd=repository).out


def test_nothing_changed(repository: Path) -> None:
    """A run without changes has a message on stderr, an empty patch and exit code 0."""
    _, run = ended(repository)
    said = subdeck("diff", run.run_id, cwd=repository)
    assert (0, "", f"run {run.meta.short_id} changed nothing\n") == (said.code, said.out, said.err)


def test_while_it_goes_on(repository: Path) -> None:
    """A running run's changes so far are shown."""
    engine = open_engine(repository)
    run = start(engine, "edit a.py two 2", "say Halfway.", "hang")
    started(engine, run)
    wait_until(lambda: "+2" in subdeck("diff", run.run_id, cwd=repository).out, "the change of a run that goes on")
    (named,) = json.loads(subdeck("status", run.run_id, "--json", cwd=repository).out)["runs"]
    assert (1, "running") == (named["changes"]["files"], named["status"])
    other = start(engine, "hang")
    started(engine, other)
    said = subdeck("diff", run.run_id, "--stat", cwd=repository)
    assert f"shared directory: other runs there: one-off {other.meta.short_id}" in said.err
    engine.stop([run.run_id, other.run_id], force=True)
    engine.wait([run.run_id, other.run_id], timeout=20)


def test_outside_git(project_dir: Path) -> None:
    """Files written by tools are listed. A run with commands has a warning that the list may be incomplete."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "put a.py old", "edit a.py old new", "save b.py x", "answer Done.")
    said = subdeck("diff", run.run_id, cwd=project_dir)
    assert 0 == said.code
    assert ["M  a.py  +1 −1", "M  b.py"] == [line.rstrip() for line in said.out.splitlines()[:2]]
    other = run_to_end(engine, "bash touch c.py", "answer Done.")
    said = subdeck("diff", other.run_id, cwd=project_dir)
    assert (1, "changes by its commands are unknown outside git\n") == (said.code, said.err)


def in_worktree(repository: Path, *script: str) -> tuple[Engine, RunSnapshot, Path]:
    """Run a script in a worktree to its end. Return the worktree with the run."""
    engine = open_engine(repository)
    run = run_to_end(engine, *script, "answer Done.", worktree=WorktreeFrom.FILES)
    return engine, run, Path(engine.work.root(run))


@pytest.mark.parametrize("script", [(), ("edit a.py two 2",)], ids=["nothing", "something"])
def test_all_views_agree_on_an_edited_worktree(repository: Path, script: tuple[str, ...]) -> None:
    """If a worktree was edited by hand, every view of the run shows it as it is now, with a note."""
    _, run, tree = in_worktree(repository, *script)
    (tree / "new.py").write_text("x\n")
    names = ["a.py", "new.py"][not script :]
    patch = subdeck("diff", run.run_id, cwd=repository)
    assert (0, names) == (patch.code, re.findall(r"diff --git a/(\S+)", patch.out))
    assert "was edited since the run ended" in patch.err and "changed nothing" not in patch.err
    listed = subdeck("diff", run.run_id, "--name-only", cwd=repository)
    assert (names, patch.err) == (listed.out.splitlines(), listed.err)
    stat = subdeck("diff", run.run_id, "--stat", cwd=repository)
    assert names == re.findall(r"^[AM] +(\S+)", stat.out, re.MULTILINE)
    words = f"{len(names)} file{'s' if script else ''}"
    said = subdeck("status", run.run_id, cwd=repository).out
    assert f"{run.meta.short_id} has in its worktree {words}" in said and "edited since the run ended" in said
    documents = [
        subdeck("diff", run.run_id, "--json", cwd=repository).document["changes"],
        subdeck("status", run.run_id, "--json", cwd=repository).document["runs"][0]["changes"],
        subdeck("compare", run.run_id, run_to_end(open_engine(repository), "answer Done.").run_id, "--json",
                cwd=repository).document["runs"][0]["changes"],
    ]  # fmt: skip
    assert [(True, names)] * 3 == [(each["edited"], [file["path"] for file in each["named"]]) for each in documents]
    kept = subdeck("apply", run.run_id, "--to-branch", cwd=repository).err
    assert "has uncommitted changes" in kept and f"subdeck diff {run.meta.short_id} shows them" in kept
    for path, content in {"new.py": None, "a.py": b"one\ntwo\nthree\n"}.items():
        (tree / path).unlink() if content is None else (tree / path).write_bytes(content)
    back = subdeck("diff", run.run_id, cwd=repository)
    assert (0, "") == (back.code, back.out)
    assert ("now has no changes" if script else "changed nothing") in back.err


@pytest.mark.parametrize("is_late", [False, True])
def test_a_link_in_the_place_of_a_worktree_is_not_followed(repository: Path, tmp_path: Path, is_late: bool) -> None:
    """If a worktree was replaced by a link to another checkout, that checkout's files are neither shown nor applied."""
    other = tmp_path / "other"
    git(repository, "worktree", "add", "-q", str(other))
    (other / "private.py").write_text("secret\n")
    swap = f"mv $PWD {tmp_path}/moved && ln -s {other} $PWD"
    _, run, tree = in_worktree(repository, "edit a.py two 2", *(() if is_late else (f"bash {swap}",)))
    if is_late:
        subprocess.run(["sh", "-c", swap], cwd=tree, check=True)
    assert tree.is_symlink()
    said = [subdeck(*words, run.run_id, cwd=repository) for words in (("diff",), ("status",), ("apply", "--yes"))]
    assert [False] * 3 == ["private" in f"{each.out}{each.err}" for each in said]
    assert not (repository / "private.py").exists()
    assert "a.py" in said[0].out


def test_list_of_runs_shows_what_they_left(repository: Path) -> None:
    """A list of runs, or a long one of named runs, shows the recorded changes, without reading any worktree."""
    engine, run, tree = in_worktree(repository, "edit a.py two 2")
    (tree / "new.py").write_text("x\n")
    (listed,) = subdeck("status", "--json", cwd=repository).document["runs"]
    assert (1, False) == (listed["changes"]["files"], listed["changes"]["edited"])
    (now,) = engine.snapshots((run.run_id,))
    assert now.changes == status._changes(engine, now, [now] * (status.LOOKED_AT + 1))
    looked = status._changes(engine, now, [now])
    assert looked is not None and (2, True) == (looked.files, looked.edited)


def test_worktree_is_shown_for_the_run_that_was_last_there(repository: Path) -> None:
    """If another run continued in a run's worktree, the first keeps its recorded changes and the later one shows the
    edits since.
    """
    engine, run, tree = in_worktree(repository, "edit a.py two 2")
    later = run_to_end(engine, "answer Done.", cwd=run.meta.cwd, follow_up=run.run_id)
    assert tree == Path(engine.work.root(later))
    (tree / "new.py").write_text("x\n")
    assert ["a.py"] == subdeck("diff", run.run_id, "--name-only", cwd=repository).out.splitlines()
    assert "new.py" not in subdeck("diff", run.run_id, cwd=repository).out
    assert ["new.py"] == subdeck("diff", later.run_id, "--name-only", cwd=repository).out.splitlines()
    assert "edited since" in subdeck("diff", later.run_id, cwd=repository).err
