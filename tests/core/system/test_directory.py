"""Every step of a path below `.pi/subagents` is opened and checked."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from subdeck.core.system import files
from subdeck.core.system.directory import RefusedError, opened


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The `.pi/subagents` of a project."""
    home = tmp_path / "project" / ".pi" / "subagents"
    home.mkdir(parents=True)
    return home


def test_the_way_to_the_project_may_have_links(home: Path, tmp_path: Path) -> None:
    """A project reached through a link works unchanged."""
    (tmp_path / "way").symlink_to(home.parent.parent)
    files.make_private_directory(str(tmp_path / "way/.pi/subagents/runs/one"))
    files.write_new(str(tmp_path / "way/.pi/subagents/runs/one/meta.json"), b"{}")
    assert b"{}" == (home / "runs/one/meta.json").read_bytes()


@pytest.mark.parametrize("link", [".pi", ".pi/subagents"])
def test_our_place_may_be_a_link_to_inside_the_project(tmp_path: Path, link: str) -> None:
    """`.pi` or `.pi/subagents` may be a link to another directory in the project."""
    project = tmp_path / "project"
    (project / "kept/subagents/runs").mkdir(parents=True)
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(project / "kept" if link == ".pi" else "../kept/subagents")
    files.write_whole(str(project / ".pi/subagents/runs/a"), b"here")
    assert b"here" == (project / "kept/subagents/runs/a").read_bytes()


@pytest.mark.parametrize("link", [".pi", ".pi/subagents"])
@pytest.mark.parametrize("target", ["elsewhere", "/tmp", "loop", "project-beside"])
def test_our_place_is_no_link_out_of_the_project(tmp_path: Path, link: str, target: str) -> None:
    """A link out of the project is refused by name, and nothing is created behind it."""
    project = tmp_path / "project"
    (project / link).parent.mkdir(parents=True)
    (tmp_path / "elsewhere" / "subagents").mkdir(parents=True)
    (tmp_path / "project-beside" / "subagents").mkdir(parents=True)
    (project / link).symlink_to(project / link if target == "loop" else tmp_path / target)
    with pytest.raises(RefusedError) as refused:
        files.make_private_directory(str(project / ".pi/subagents/runs"))
    assert f"{refused.value.strerror}".startswith(f"{link} is a symbolic link")
    assert str(project / link) == refused.value.filename
    assert [] == [*(tmp_path / "elsewhere/subagents").iterdir(), *(tmp_path / "project-beside/subagents").iterdir()]


def test_no_step_goes_up(home: Path) -> None:
    """The name `..` is refused, because it could lead out of the project."""
    (home / "runs").mkdir()
    with pytest.raises(RefusedError, match=r"contains \.\."):
        opened(f"{home}/runs/../../..")


def test_what_is_missing_is_missing(home: Path) -> None:
    """A missing file is an error with its whole path, not a refusal."""
    for path in (home / "runs", home / "runs/one/meta.json", home / "lock"):
        with pytest.raises(FileNotFoundError) as missing:
            files.read(f"{path}/x")
        assert missing.value.filename in {f"{part}" for part in ((path / "x"), *(path / "x").parents)}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pipe", "a pipe, not a regular file"),
        ("link", "a symbolic link; subdeck does not open links here"),
        ("dir", "a directory, not a file"),
    ],
)
def test_a_refusal_names_what_is_there(home: Path, name: str, said: str) -> None:
    """A refusal names the path and the kind of file found there."""
    (home / "runs").mkdir()
    os.mkfifo(home / "runs/pipe")
    (home / "runs/link").symlink_to("pipe")
    (home / "runs/dir").mkdir()
    with pytest.raises(RefusedError) as refused:
        files.open_lock(f"{home}/runs/{name}")
    assert f"runs/{name} is {said}" == refused.value.strerror


def test_only_this_user_looks_into_what_is_made(tmp_path: Path) -> None:
    """With any umask other users can neither write to new directories nor look into subdeck's own."""
    before = os.umask(0)
    try:
        files.make_private_directory(str(tmp_path / "project/.pi/subagents/runs/one"))
        files.make_private_directory(str(tmp_path / "state/subdeck"))
    finally:
        os.umask(before)
    made = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert 0o755 == made.pop("project/.pi")
    assert {0o700} == set(made.values())


def test_a_directory_that_is_held_is_the_one_that_was_opened(home: Path, tmp_path: Path) -> None:
    """A directory replaced by a link after it was opened is still the one written to."""
    (home / "runs/one").mkdir(parents=True)
    with opened(f"{home}/runs") as runs, runs.inside("one") as one:
        (home / "runs").rename(home / "moved")
        (home / "runs").symlink_to(tmp_path)
        one.write_new("a", b"")
        runs.make("two")
    assert {"a"} == set(os.listdir(home / "moved/one"))
    assert {"one", "two"} == set(os.listdir(home / "moved"))


def test_a_link_is_moved_and_removed_itself(home: Path, tmp_path: Path) -> None:
    """Renaming and removing affect a link, never its target."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    (home / "link").symlink_to(tmp_path / "precious")
    files.rename(f"{home}/link", f"{home}/other")
    files.remove_tree(f"{home}/other")
    assert [] == os.listdir(home)
    assert ["file"] == os.listdir(tmp_path / "precious")


def test_presets_may_be_links_to_files(home: Path, tmp_path: Path) -> None:
    """A preset may be a link to a file elsewhere."""
    (tmp_path / "shared.md").write_bytes(b"text")
    (home / "a.md").symlink_to(tmp_path / "shared.md")
    descriptor, status = files.open_regular(f"{home}/a.md", follow=True)
    os.close(descriptor)
    assert 4 == status.st_size
    with pytest.raises(RefusedError, match="symbolic link"):
        files.open_regular(f"{home}/a.md")


def test_no_descriptor_is_left_open(home: Path) -> None:
    """A refused path leaves no descriptor open."""
    (home / "runs").mkdir()
    (home / "runs/link").symlink_to(home)
    before = len(os.listdir("/proc/self/fd"))
    for path in ("runs/a", "runs/link/a", "runs/a/b/c", "runs/../a", "runs"):
        files.content(f"{home}/{path}")
        files.names(f"{home}/{path}")
        files.exists(f"{home}/{path}")
    assert before == len(os.listdir("/proc/self/fd"))


def test_a_run_is_read_by_few_calls_and_leaves_nothing_open(home: Path) -> None:
    """Reading a run closes its descriptors, consecutive or not, and no others."""
    (home / "runs/one").mkdir(parents=True)
    (home / "runs/one/a").write_bytes(b"A")
    (home / "runs/one/c").write_bytes(b"C")
    with opened(f"{home}/runs") as runs:
        spare = [os.open("/", os.O_RDONLY) for _ in range(4)]
        for gap in ((), spare[1:2], spare[0:3:2]):
            for descriptor in gap:
                os.close(descriptor)
            before = set(os.listdir("/proc/self/fd"))
            status, contents = runs.read_inside("one", "a", "b", "c")
            assert (os.geteuid(), [b"A", b"", b"C"]) == (status.st_uid, contents)
            assert before == set(os.listdir("/proc/self/fd"))
            for descriptor in gap:
                os.dup2(spare[3], descriptor)
        for descriptor in spare:
            os.close(descriptor)


@pytest.mark.processes
def test_a_tree_of_any_depth_is_removed(home: Path, tmp_path: Path) -> None:
    """Thousands of nested directories are removed with their content, but no link's target."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").touch()
    deep = home / "deep"
    with open(os.devnull) as spare:
        first = spare.fileno()
    for name in ("a", "b"):
        place = os.open(home, os.O_RDONLY)
        for level in range(3000):
            step = "deep" if not level else name
            if level or name == "a":
                os.mkdir(step, dir_fd=place)
            below = os.open(step, os.O_RDONLY, dir_fd=place)
            os.close(place)
            place = below
            if level % 500 == 9:
                os.symlink(outside, "link", dir_fd=place)
                os.close(os.open("file", os.O_CREAT, 0o600, dir_fd=place))
        os.close(place)
    files.remove_tree(str(deep))
    is_there = deep.exists()
    subprocess.run(["rm", "-rf", str(deep)], check=True)  # too deep for Python
    assert not is_there and [] == os.listdir(home)
    assert ["mine"] == os.listdir(outside)
    with open(os.devnull) as spare:
        assert first == spare.fileno()
