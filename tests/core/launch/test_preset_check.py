"""Checking the text of a preset before it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.launch.preview import PresetCheck, check_preset
from subdeck.core.paths import Project
from subdeck.core.run.model import PresetSource

GOOD = "---\nname: scout\ndescription: Finds things\n---\nLook.\n"


@pytest.fixture
def project(project_dir: Path) -> Project:
    found = Project(str(project_dir))
    os.makedirs(found.home)
    return found


def user_place() -> Path:
    place = Path(os.environ["PI_CODING_AGENT_DIR"], "subagents")
    place.mkdir(parents=True, exist_ok=True)
    return place


def judged(
    project: Project, text: str | bytes, *, path: str | None = None, source: str = "project", directory: str = ""
) -> PresetCheck:
    directory = directory or (os.path.dirname(path) if path else project.home)
    content = text if isinstance(text, bytes) else text.encode()
    workspace = Workspace(project, project.root, Settings(agent="offline"))
    return check_preset(content, workspace, directory, PresetSource(source), path)


def fault_of(project: Project, text: str, *, path: str | None = None) -> str:
    fault = judged(project, text, path=path).fault
    assert fault is not None
    return fault.advice


def test_a_right_text_has_no_fault(project: Project) -> None:
    """A valid text gives the preset that would be saved."""
    check = judged(project, GOOD)

    assert (None, "scout", (), ()) == (check.fault, check.preset and check.preset.name, check.warnings, check.notes)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Look.\n", "line 1: the file has no frontmatter; begin the file"),
        ("---\nname: x\n", "line 1: the frontmatter has no end"),
        ("---\nname: x\ndescription: d\ntools: [a b]\n---\n", 'line 4: tools: "a b" is not the name of a tool'),
        ("---\nname: a/b\ndescription: d\n---\n", 'line 2: the name "a/b" contains a path separator'),
        (f"---\nname: {'n' * 300}\ndescription: d\n---\n", "line 2: the name is longer than 64 characters"),
        ("---\nname: \ndescription: d\n---\n", "name is missing"),
        ('---\ndescription: d\nname: "a\\u200bb"\n---\n', "line 3: the name"),
        ("---\nname: x\ndescription: \x1b[31mred\n---\n", "line 3: the file contains a control character"),
        ("---\nname: x\ndescription: d\n---\nnul \0\n", "line 5: the file contains a NUL character"),
        (GOOD + "x" * 1024 * 1024, "the file is too large"),
        (b"\xff\xfe", "line 1: the file is not UTF-8 text"),
    ],
)
def test_a_fault_says_what_and_where(project: Project, text: str | bytes, fault: str) -> None:
    """An invalid preset text is refused with the parser's error and its line."""
    check = judged(project, text)

    assert check.preset is None
    assert check.fault is not None
    assert check.fault.advice.startswith(fault)
    assert check.fault.advice.isprintable()


def test_warnings_say_what_would_not_work(project: Project) -> None:
    """Unknown keys, unknown tools and an unresolved model are warnings; the preset can still be saved."""
    text = "---\nname: x\ndescription: d\nmodel: '@nobody'\ntools: read, grepp\nmodle: y\n---\n"
    check = judged(project, text)

    assert check.preset is not None
    said = "\n".join(check.warnings)
    for words in ('unknown key "modle"', "grepp is left out", "@nobody"):
        assert words in said


def test_a_name_is_taken_once_in_a_directory(project: Project) -> None:
    """A name that another preset of the same directory uses is refused; a preset's own file may keep its name."""
    own = Path(project.home, "scout.md")
    own.write_text(GOOD)

    assert judged(project, GOOD, path=str(own)).fault is None
    for path in (None, str(own.with_name("other.md"))):
        assert fault_of(project, GOOD, path=path).startswith(
            'line 2: the name "scout" is already used by scout.md in the same directory'
        )


def test_the_file_of_a_new_preset_is_free(project: Project) -> None:
    """A new preset is refused if its file would be another preset's."""
    Path(project.home, "scout.md").write_text(GOOD.replace("scout", "other"))

    assert fault_of(project, GOOD).startswith("line 2: the file scout.md already exists")


def test_what_is_hidden_is_noted(project: Project) -> None:
    """A preset that hides one of a farther source, or is hidden by a nearer one, is valid and gets a note."""
    (user_place() / "scout.md").write_text(GOOD)
    assert judged(project, GOOD).notes == ("hides the global preset of this name",)

    Path(project.home, "scout.md").write_text(GOOD)
    (user_place() / "scout.md").unlink()
    behind = judged(project, GOOD, source="global", directory=str(user_place()))
    assert (behind.fault, behind.notes) == (None, ("hidden by the project preset of this name",))


def test_a_directory_that_is_not_there_is_no_fault(project: Project) -> None:
    """The first preset of a directory is checked before the directory exists."""
    os.rmdir(project.home)

    assert judged(project, GOOD).fault is None
