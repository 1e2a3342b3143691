"""A saved preset reads back unchanged, and nothing is ever replaced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.errors import PresetError, UsageError
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.presets.write import save_preset
from subdeck.core.run.model import PresetSource, WorktreeFrom
from subdeck.core.spec.fields import RunSpec


def save(
    directory: str,
    name: str,
    description: str,
    model: str | None,
    tools: Sequence[str] | None,
    prompt: str,
    **more: Any,
) -> str:
    names = None if tools is None else tuple(tools)
    return save_preset(directory, name, description, RunSpec(model=model, tools=names, prompt=prompt, **more))


def saved(path: str) -> Preset:
    read = read_preset(path, PresetSource.PROJECT)
    assert isinstance(read, Preset)
    return read


def test_a_saved_preset_is_a_plain_file(tmp_path: Path) -> None:
    """A saved preset looks like a person's file, and only the user may read it."""
    path = save(str(tmp_path / "new" / "dir"), "Repo Scout!", "Fast: look", "a/b", ["read", "ls"], "Look.\n")

    assert str(tmp_path / "new" / "dir" / "repo-scout.md") == path
    assert (
        "---\nname: Repo Scout!\ndescription: 'Fast: look'\nmodel: a/b\ntools: [read, ls]\n---\nLook.\n"
        == Path(path).read_text()
    )
    assert 0o600 == os.stat(path).st_mode & 0o777
    assert ["repo-scout.md"] == os.listdir(tmp_path / "new" / "dir")


@pytest.mark.parametrize("tools", [None, (), ("read",), ("mcp:x", "a.b:", "-".join("ab"))])
@pytest.mark.parametrize("model", [None, "", "@fast", "fake/org/llama:8b:high", "#x"])
def test_model_and_tools_come_back(tmp_path: Path, tools: tuple[str, ...] | None, model: str | None) -> None:
    """Absent, empty and awkward values stay distinct after reading."""
    read = saved(save(str(tmp_path), "x", "d", model, tools, "p"))

    assert (model or None, tools) == (read.model, read.tools)


@pytest.mark.parametrize("worktree", [None, *WorktreeFrom])
def test_what_was_chosen_for_a_run_comes_back(tmp_path: Path, worktree: WorktreeFrom | None) -> None:
    """Worktree, check and budgets are saved if they were chosen; the settings decide the others."""
    limits = {"budget": 0.5, "max_tokens": 2_000_000}
    read = saved(save(str(tmp_path), "x", "d", None, None, "p", worktree=worktree, check="tests", **limits))
    assert (worktree, "tests", 0.5, 2_000_000) == (read.worktree, read.check, read.budget, read.max_tokens)
    plain = Path(save(str(tmp_path), "y", "d", None, None, "p")).read_text()
    assert not any(name in plain for name in ("worktree", "check", "budget", "max_tokens"))


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "null",
        "123",
        "@role",
        "'single' \"double\"",
        "a: b # c",
        "- item",
        "---",
        "{x: [y]}",
        "`tick` %dir &a *b !c |d >e",
        "#(touch x)",
        "Ünïcödé 名前 🦊",
        "ends with a colon:",
    ],
)
def test_hostile_texts_come_back(tmp_path: Path, text: str) -> None:
    """Name, description and prompt read back unchanged, even if YAML could misread them."""
    read = saved(save(str(tmp_path), text, f"{text}\n---\n\n{text}", None, None, f"{text}\n---\n  {text}  "))

    assert (text, f"{text}\n---\n\n{text}", f"{text}\n---\n  {text}  ") == (read.name, read.description, read.prompt)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("\n\n  a\n\n", "  a"),
        ("a\r\nb\r\n", "a\nb"),
        ("", ""),
        ("a\x1b[0m\u2028b", "a\x1b[0m\u2028b"),
        (r"\n {x}", r"\n {x}"),
    ],
)
def test_the_prompt_comes_back(tmp_path: Path, prompt: str, expected: str) -> None:
    """Blank lines around the prompt and CR LF are normalized; the rest is unchanged."""
    assert expected == saved(save(str(tmp_path), "x", "d", None, None, prompt)).prompt


@pytest.mark.parametrize(
    ("name", "description", "prompt", "what"),
    [
        ("", "d", "", "needs a name"),
        ("x", " ", "", "needs a description"),
        ("a/b", "d", "", "path separator"),
        ("n" * 65, "d", "", "longer than 64"),
        ("a\nb", "d", "", "line break"),
        ("x", "d\x00", "", "cannot write the preset"),
        ("x", "d", "a\x00b", "control character"),
        ("x", "d", "a\udc80b", "cannot write the preset"),
        ("x", "d", "é" * 600_000, "too large"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, name: str, description: str, prompt: str, what: str) -> None:
    """A preset that could not be read back is refused before anything is written."""
    with pytest.raises(PresetError, match=what):
        save(str(tmp_path / "dir"), name, description, None, None, prompt)

    assert [] == os.listdir(tmp_path)


def test_blanks_around_are_dropped(tmp_path: Path) -> None:
    """Whitespace around a value is dropped."""
    read = saved(save(str(tmp_path), " x ", " d ", " a/b ", [" read "], "p"))

    assert ("x", "d", "a/b", ("read",)) == (read.name, read.description, read.model, read.tools)


def test_a_wrong_tool_is_refused(tmp_path: Path) -> None:
    """Tool names are checked as when a preset is read."""
    with pytest.raises(UsageError, match="is not the name of a tool"):
        save(str(tmp_path), "x", "d", None, ["-bash"], "")


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    """An existing file of that name stays unchanged, even a dangling link or a file that is not a preset."""
    (tmp_path / "my-name.md").write_text("precious")
    (tmp_path / "link.md").symlink_to("/nowhere")
    for name in ("My Name", "link"):
        with pytest.raises(PresetError, match="the file already exists") as caught:
            save(str(tmp_path), name, "d", None, None, "")
        assert "choose another name" == caught.value.hint

    assert "precious" == (tmp_path / "my-name.md").read_text()
    assert ["link.md", "my-name.md"] == sorted(os.listdir(tmp_path))


def test_a_name_is_never_given_twice(tmp_path: Path) -> None:
    """A name that another file uses is refused: the second preset would only be a problem."""
    path = tmp_path / "other.md"
    path.write_text("---\nname: scout\ndescription: d\n---\n")
    with pytest.raises(PresetError, match='the preset "scout" already exists') as caught:
        save(str(tmp_path), "scout", "d", None, None, "")

    assert str(path) == caught.value.where


@pytest.mark.parametrize(
    ("name", "file_name"),
    [
        ("#(touch x)", "touch-x.md"),
        ("...", "preset.md"),
        ("-rf", "rf.md"),
        ("Über_Name 2", "über_name-2.md"),
        ("名前", "名前.md"),
        ("名" * 64, "名" * 64 + ".md"),
    ],
)
def test_the_file_name(tmp_path: Path, name: str, file_name: str) -> None:
    """A file name keeps letters and digits of any script, and no characters that confuse a shell or a listing."""
    assert str(tmp_path / file_name) == save(str(tmp_path), name, "d", None, None, "")


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """A write error has the path, and leaves no files."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PresetError, match="cannot write the preset") as caught:
        save(str(tmp_path / "file" / "dir"), "x", "d", None, None, "")

    assert caught.value.where.startswith(str(tmp_path / "file"))


def test_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the text cannot be made durable no partial preset stays."""

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PresetError, match="No space left on device"):
        save(str(tmp_path), "x", "d", None, None, "")

    assert [] == os.listdir(tmp_path)
