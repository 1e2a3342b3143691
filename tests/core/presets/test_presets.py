"""Discovery: the sources of presets, their precedence, and errors for unknown names."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.config.settings import PresetDir, Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.errors import PresetError
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import PresetCatalog, discover
from subdeck.core.presets.sources import PresetDirectory, preset_directories
from subdeck.core.run.model import PresetSource


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.fixture
def own_presets(project: Project) -> Path:
    path = Path(project.home)
    path.mkdir(parents=True)
    return path


@pytest.fixture
def global_presets(home: Path) -> Path:
    path = home / ".pi" / "agent" / "subagents"
    path.mkdir(parents=True)
    return path


def write(directory: Path, file_name: str, name: str, description: str = "d", more: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / file_name
    path.write_text(f"---\nname: {name}\ndescription: {description}\n{more}---\nDo it.\n")
    return path


def catalog(project: Project, cwd: str | Path | None = None, settings: Settings | None = None) -> PresetCatalog:
    return discover(Workspace(project, str(cwd or project.root), settings or Settings()))


def found(presets: PresetCatalog) -> dict[str, tuple[PresetSource, str]]:
    return {preset.name: (preset.source, preset.description) for preset in presets.presets}


def test_presets_of_project_and_user(project: Project, own_presets: Path, global_presets: Path) -> None:
    """Both directories are read, and presets are sorted by name, with source and path."""
    write(global_presets, "b.md", "beta", "of the user")
    path = write(own_presets, "z.md", "alpha", "of the project")
    presets = catalog(project)

    assert ["alpha", "beta"] == [preset.name for preset in presets.presets]
    assert (PresetSource.PROJECT, str(path)) == (presets.presets[0].source, presets.presets[0].path)
    assert (PresetSource.GLOBAL, "of the user") == found(presets)["beta"]
    assert () == presets.problems


def test_the_nearer_preset_wins(project: Project, own_presets: Path, global_presets: Path, tmp_path: Path) -> None:
    """The project outranks preset_dirs in their order, and these outrank the user's, by name and not by file."""
    first, second = tmp_path / "first", tmp_path / "second"
    for name in "abcd":
        write(global_presets, f"{name}.md", name, "global")
    for name in "abc":
        write(second, f"2{name}.md", name, "second")
    for name in "ab":
        write(first, f"1{name}.md", name, "first")
    write(own_presets, "x.md", "a", "project")
    presets = catalog(project, settings=Settings(preset_dirs=(str(first), str(second))))

    assert {
        "a": (PresetSource.PROJECT, "project"),
        "b": (PresetSource.DIR, "first"),
        "c": (PresetSource.DIR, "second"),
        "d": (PresetSource.GLOBAL, "global"),
    } == found(presets)
    assert (str(own_presets), str(first), str(second), str(global_presets)) == presets.directories


def test_no_directory_at_all(project: Project, global_presets: Path) -> None:
    """Missing directories are not a problem, and are listed as possible sources."""
    presets = catalog(project)

    assert ((), ()) == (presets.presets, presets.problems)
    assert (project.home, str(global_presets)) == presets.directories


def test_the_nearest_ancestor_of_the_launchers_directory(project: Project, own_presets: Path) -> None:
    """Inside a project a nearer `.pi/subagents` replaces the root's, which is then not read."""
    write(own_presets, "a.md", "outer")
    package = Path(project.root, "packages", "one")
    write(package / ".pi" / "subagents", "b.md", "inner")
    deep = package / "src" / "deep"
    deep.mkdir(parents=True)

    assert ["inner"] == [preset.name for preset in catalog(project, deep).presets]
    assert ["outer"] == [preset.name for preset in catalog(project, project.root).presets]


def test_a_directory_without_presets_hides_nothing(project: Project, own_presets: Path) -> None:
    """The directory that a first launch makes does not hide an ancestor's presets."""
    outer = Path(project.root).parent / ".pi" / "subagents"
    write(outer, "a.md", "outer")
    (own_presets / "runs").mkdir()

    assert (
        PresetDirectory(PresetSource.PROJECT, str(outer))
        == preset_directories(Workspace(project, project.root, Settings()))[0]
    )


def test_home_and_above_are_no_project(home: Path) -> None:
    """Presets in HOME's own `.pi/subagents`, or above it, never count as a project's."""
    write(home / ".pi" / "subagents", "a.md", "stray")
    inside = home / "work" / "repository"
    inside.mkdir(parents=True)
    project = Project(str(inside))

    assert (
        PresetDirectory(PresetSource.PROJECT, project.home)
        == preset_directories(Workspace(project, str(inside), Settings()))[0]
    )
    assert () == catalog(project).presets


def test_a_directory_named_twice_is_read_once(project: Project, own_presets: Path, tmp_path: Path) -> None:
    """Naming the project's directory, or a link to it, in preset_dirs changes nothing."""
    write(own_presets, "a.md", "one")
    (tmp_path / "link").symlink_to(own_presets)
    presets = catalog(project, settings=Settings(preset_dirs=(str(own_presets), str(tmp_path / "link"))))

    workspace = Workspace(project, project.root, Settings(preset_dirs=(str(own_presets),)))
    assert [PresetSource.PROJECT, PresetSource.GLOBAL] == [place.source for place in preset_directories(workspace)]
    assert {"one": (PresetSource.PROJECT, "d")} == found(presets)
    assert 2 == len(presets.directories)


def test_links_do_not_matter(
    project: Project, own_presets: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a linked directory, or with a linked HOME, the same presets are found."""
    write(own_presets, "a.md", "one")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "here").symlink_to(project.root)
    assert ["one"] == [preset.name for preset in catalog(project, tmp_path / "linked" / "here").presets]

    write(home / ".pi" / "subagents", "a.md", "stray")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").symlink_to(home)
    assert () == catalog(Project(str(home / "work")), home / "work").presets


def test_the_agents_directory_can_be_moved(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PI_CODING_AGENT_DIR moves the user's presets, as in pi."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    write(tmp_path / "pi" / "subagents", "a.md", "moved")

    assert {"moved": (PresetSource.GLOBAL, "d")} == found(catalog(project))


def test_what_is_no_preset_by_its_name(project: Project, own_presets: Path) -> None:
    """Other files, hidden files (an editor's lock is a dangling link) and deeper directories are skipped."""
    for name in ("notes.txt", ".hidden.md", "a.MD.bak", "config.yaml"):
        (own_presets / name).write_text("x")
    (own_presets / ".#a.md").symlink_to("user@host.1234")
    write(own_presets / "runs", "deep.md", "deep")
    presets = catalog(project)

    assert ((), ()) == (presets.presets, presets.problems)


def test_two_files_of_one_directory_with_one_name(project: Project, own_presets: Path) -> None:
    """Of two files with one name the first by file name loads, and the second is a problem that names the first."""
    write(own_presets, "b.md", "same", "second")
    write(own_presets, "a.md", "same", "first")
    presets = catalog(project)

    assert {"same": (PresetSource.PROJECT, "first")} == found(presets)
    assert [
        (str(own_presets / "b.md"), 'the name "same" is already used by a.md in the same directory; rename one of them')
    ] == [(problem.path, problem.message) for problem in presets.problems]


def test_one_broken_file_keeps_nothing_else_from_loading(project: Project, own_presets: Path) -> None:
    """Each broken file is one problem, and all other presets load."""
    write(own_presets, "good.md", "good")
    (own_presets / "bytes.md").write_bytes(b"---\nname: \xff\n---\n")
    (own_presets / "dir.md").mkdir()
    (own_presets / "plain.md").write_text("no frontmatter")
    (own_presets / "link.md").symlink_to("/nowhere")
    presets = catalog(project)

    assert ["good"] == [preset.name for preset in presets.presets]
    assert ["bytes", "dir", "link", "plain"] == [problem.name for problem in presets.problems]


def test_a_broken_file_is_stood_in_for_with_a_warning(
    project: Project, own_presets: Path, global_presets: Path
) -> None:
    """If a nearer preset is broken the farther one loads with a warning, so that the user knows."""
    write(global_presets, "scout.md", "scout", "of the user")
    broken = write(own_presets, "other.md", "scout", more="tools: [read\n")
    presets = catalog(project)

    assert {"scout": (PresetSource.GLOBAL, "of the user")} == found(presets)
    assert (f"a preset of this name with higher precedence is invalid: {broken}:5",) == presets.presets[0].warnings


def test_a_directory_that_cannot_be_read(project: Project, own_presets: Path, global_presets: Path) -> None:
    """A file in place of a directory is one problem of that source."""
    write(own_presets, "a.md", "one")
    place = global_presets.parent / "not-a-directory"
    place.write_text("")
    presets = catalog(project, settings=Settings(preset_dirs=(str(place),)))

    assert {"one": (PresetSource.PROJECT, "d")} == found(presets)
    assert [(str(place), "cannot read the directory: Not a directory")] == [
        (problem.path, problem.message) for problem in presets.problems
    ]


def test_presets_are_read_anew(project: Project, own_presets: Path) -> None:
    """An edit is seen by the next discovery, and an earlier catalog stays unchanged."""
    write(own_presets, "a.md", "one", "before")
    before = catalog(project)
    write(own_presets, "a.md", "one", "after")

    assert ("before", "after") == (before.get("one").description, catalog(project).get("one").description)


def test_what_was_looked_for_names_the_files_of_codex(project: Project, tmp_path: Path) -> None:
    """The hint for an unknown preset includes the TOML files of Codex, not only `*.md`."""
    found = catalog(project, settings=Settings(preset_dirs=(PresetDir(str(tmp_path), "codex"),)))
    assert "*.md and *.toml" == found.patterns
    with pytest.raises(PresetError) as caught:
        found.get("zzz")
    assert "searched for *.md and *.toml in " in caught.value.hint


def test_an_unknown_preset(project: Project, own_presets: Path, global_presets: Path) -> None:
    """The error names similar presets and every searched directory."""
    write(own_presets, "a.md", "repo-scout")
    with pytest.raises(PresetError) as far:
        catalog(project).get("zzz")
    with pytest.raises(PresetError) as caught:
        catalog(project).get("repo-scoot")

    assert 'unknown preset "repo-scoot"' == caught.value.what
    assert far.value.hint.startswith("searched for")
    assert f"did you mean repo-scout? searched for *.md in {own_presets}, {global_presets}" == caught.value.hint


def test_an_unknown_preset_where_there_are_none(project: Project) -> None:
    """Without any preset the error says there are none, and sanitizes control characters in the name."""
    with pytest.raises(PresetError) as caught:
        catalog(project).get("x\x1b[31m\ny")

    assert 'unknown preset "x y"' == caught.value.what
    assert caught.value.hint.startswith("no presets yet; subdeck init writes four; searched for *.md in ")
    assert project.home in caught.value.hint


def test_a_broken_preset_asked_for_by_name(project: Project, own_presets: Path) -> None:
    """A broken preset's name is not unknown: the error has file, line and reason."""
    path = write(own_presets, "x.md", "scout", more="model: @fast\n")
    with pytest.raises(PresetError) as caught:
        catalog(project).get("scout")

    assert f"{path}:4" == caught.value.where
    assert caught.value.what.startswith('the preset "scout" cannot be used: invalid YAML')
    assert 'put quotes around it: "@fast"' in caught.value.what


def test_names_differ_by_case(project: Project, own_presets: Path) -> None:
    """Names are compared with their case, and another spelling is suggested."""
    write(own_presets, "a.md", "Explore")
    with pytest.raises(PresetError) as caught:
        catalog(project).get("explore")

    assert caught.value.hint.startswith("did you mean Explore?")
