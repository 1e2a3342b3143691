"""Reading and writing the files of a run directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.errors import LaunchError
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.artifacts import ActivityRecord, RunnerFacts, TmuxPane
from subdeck.core.run.model import Group, Limits, StopRequest, Tools

from tests.factories import make_meta, make_result, make_run, write_runner


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


def test_meta_round_trip(project: Project) -> None:
    """Launch data is read back unchanged, odd texts included."""
    meta = make_meta(
        task="a\0b \x1b[1m \u2028 \U0001f422 $(x)",
        group=Group("20260101-000000-abcdef", 1, 3, 2),
        tools=Tools("allow", ("read",), ("no such tool",)),
        limits=Limits(timeout=1.5),
        system_prompt="Be brief.",
    )
    os.close(make_run(project, meta)[1])
    directory = project.run_dir(meta.run_id)
    assert meta == artifacts.read_meta(directory)
    assert {"lock", "meta.json", "prompt.md", "system-prompt.md"} == set(artifacts.present(directory))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"runId": 1}', b"\xff\xfe", b"null", b"[" * 100_000])
def test_broken_files_say_nothing(project: Project, content: bytes) -> None:
    """An empty, torn, malformed or undecodable record counts as missing."""
    meta, lock = make_run(project)
    os.close(lock)
    directory = Path(project.run_dir(meta.run_id))
    for name in (paths.META, paths.RESULT, paths.STOP, paths.RUNNER):
        (directory / name).write_bytes(content)
    read = (artifacts.read_meta, artifacts.read_result, artifacts.read_stop, artifacts.read_runner)
    assert [None] * 4 == [reader(str(directory)) for reader in read]
    assert artifacts.decode_activity(content) in (None, ActivityRecord())


def test_unknown_fields_are_accepted(project: Project) -> None:
    """A file written by a later version is readable."""
    meta, lock = make_run(project)
    os.close(lock)
    path = Path(project.run_dir(meta.run_id), paths.META)
    path.write_text(path.read_text().replace("{", '{"fromTheFuture": [1],', 1))
    assert meta == artifacts.read_meta(project.run_dir(meta.run_id))


def test_small_records_round_trip(tmp_path: Path) -> None:
    """A stop request and runner facts are read back unchanged."""
    wish = StopRequest(by="app", force=True, at="now", reason="cancelled")
    facts = RunnerFacts("tmux", "h", "b", "n", 7, 8, tmux=TmuxPane("deck", "s", "w", "%1"))
    artifacts.write_stop(str(tmp_path), wish)
    write_runner(str(tmp_path), facts)
    assert (wish, facts) == (artifacts.read_stop(str(tmp_path)), artifacts.read_runner(str(tmp_path)))
    assert {"stop.json", "runner.json"} == set(os.listdir(tmp_path))


def test_an_activity_record_ends_at_its_newline() -> None:
    """Bytes that a longer record left after the newline are ignored."""
    content = b'{"seq":7,"sentence":"ab"}\nence":"longer"}\n'
    assert ActivityRecord(7, "ab") == artifacts.decode_activity(content)


def test_the_first_result_stays(tmp_path: Path) -> None:
    """A second result is refused, and no temporary file is left."""
    first, second = make_result("r", final_text="first"), make_result("r", final_text="second")
    assert [True, False] == [artifacts.write_result(str(tmp_path), result) for result in (first, second)]
    assert (first, [paths.RESULT]) == (artifacts.read_result(str(tmp_path)), os.listdir(tmp_path))


def test_results_where_links_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hard links a result is still written, and the first one stays."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    first = make_result("r", final_text="first")
    assert [True, False] == [artifacts.write_result(str(tmp_path), result) for result in (first, make_result("r"))]
    assert (first, [paths.RESULT]) == (artifacts.read_result(str(tmp_path)), os.listdir(tmp_path))


def test_the_reserve_is_given_back(tmp_path: Path) -> None:
    """The space reserved for a result is really allocated, and freed once the result is written."""
    artifacts.reserve_result(str(tmp_path))
    assert os.stat(tmp_path / artifacts.RESERVE).st_blocks * 512 >= 64 * 1024
    artifacts.write_result(str(tmp_path), make_result("r"))
    assert [paths.RESULT] == os.listdir(tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """A launch into a path that is not a directory fails with an error and creates nothing."""
    (tmp_path / "runs").touch()
    with pytest.raises(LaunchError, match="cannot write the run directory: File exists"):
        artifacts.create_run(str(tmp_path / "runs"), make_meta(), "task")
    assert ["runs"] == os.listdir(tmp_path)


def test_a_run_appears_whole_and_held(project: Project) -> None:
    """A run directory is complete, private and locked as soon as it has its own name."""
    meta, lock = make_run(project)
    directory = Path(project.run_dir(meta.run_id))
    assert {"lock", "meta.json", "prompt.md"} == set(os.listdir(directory))
    assert (0o700, {0o600}) == (
        directory.stat().st_mode & 0o777,
        {file.stat().st_mode & 0o777 for file in directory.iterdir()},
    )
    from subdeck.core.project.liveness import hold

    assert hold(str(directory)) is None
    os.close(lock)


def test_listing_hides_what_is_not_for_users(tmp_path: Path) -> None:
    """Temporary and reserved files are not artifacts."""
    for name in ("result.json", ".subdeck.12ab", artifacts.RESERVE):
        (tmp_path / name).touch()
    assert {"result.json": str(tmp_path / "result.json")} == artifacts.present(str(tmp_path))
    assert {} == artifacts.present(str(tmp_path / "missing"))
