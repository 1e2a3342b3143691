"""A copy of a preset: another name, all other characters unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.errors import PresetError
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.presets.write import duplicate, free_name
from subdeck.core.run.model import PresetSource


def preset_in(directory: Path, content: str | bytes, source: str = "project", file: str = "scout.md") -> Preset:
    directory.mkdir(exist_ok=True)
    path = directory / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = read_preset(str(path), PresetSource(source))
    assert isinstance(read, Preset), read
    return read


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: scout  # ours", "name: scout-2  # ours"),
        ("'name' : \"scout\"", "'name' : scout-2"),
        ("name:\n  scout", "name:\n  scout-2"),
        ("name: >-\n  scout", "name: scout-2"),
        ("? name\n: scout", "? name\n: scout-2"),
    ],
)
def test_only_the_name_changes(tmp_path: Path, before: str, after: str) -> None:
    """Comments, order, quotes of other keys and the prompt stay, however the name is written."""
    text = "---\n# first\ndescription: 'A name: scout'\n{}\ntools: [read]   # few\n---\n\nname: scout\n"
    preset = preset_in(tmp_path / "a", text.format(before))

    path = duplicate(preset, " scout-2 ", str(tmp_path / "b"))

    assert str(tmp_path / "b/scout-2.md") == path
    assert text.format(after) == Path(path).read_text()


def test_a_name_that_needs_quotes_gets_them(tmp_path: Path) -> None:
    """A name that YAML would misread is quoted."""
    preset = preset_in(tmp_path, "---\nname: scout\ndescription: d\n---\n")

    path = duplicate(preset, "# 2: 名", str(tmp_path))

    assert '---\nname: "# 2: 名"\ndescription: d\n---\n' == Path(path).read_text()


def test_line_ends_and_mark_stay(tmp_path: Path) -> None:
    """A Windows file is copied with its line ends and byte order mark."""
    preset = preset_in(tmp_path, b"\xef\xbb\xbf---\r\nname: scout\r\ndescription: d\r\n---\r\nLook.\r\n")

    path = duplicate(preset, "other", str(tmp_path))

    assert b"\xef\xbb\xbf---\r\nname: other\r\ndescription: d\r\n---\r\nLook.\r\n" == Path(path).read_bytes()


@pytest.mark.parametrize("text", ["Look.\n", "---\nmodel: a/b\n---\nLook.\n", "---\n---\nLook.\n"])
def test_what_a_lenient_place_leaves_out_is_added(tmp_path: Path, text: str) -> None:
    """A file without name or description gets both, and is then a valid project preset."""
    preset = preset_in(tmp_path, text, source="dir")

    read = read_preset(duplicate(preset, "other", str(tmp_path / "b")), PresetSource.PROJECT)

    assert isinstance(read, Preset)
    assert ("other", "A copy of scout", preset.model, "Look.") == (
        read.name,
        read.description,
        read.model,
        read.prompt.strip(),
    )


@pytest.mark.parametrize("name", ["", "  ", "a/b", "..", "x" * 65, "a\nb", "a\u202eb", "\x1b[0m"])
def test_what_cannot_be_a_name_is_refused(tmp_path: Path, name: str) -> None:
    """A bad name is an error in words, and nothing is written."""
    preset = preset_in(tmp_path, "---\nname: scout\ndescription: d\n---\n")

    with pytest.raises(PresetError):
        duplicate(preset, name, str(tmp_path / "b"))
    assert not (tmp_path / "b").exists()


def test_no_file_is_replaced(tmp_path: Path) -> None:
    """A used name or file is refused; a name of many bytes gets a file name that the disk accepts."""
    preset = preset_in(tmp_path, "---\nname: scout\ndescription: d\n---\n")

    with pytest.raises(PresetError, match="already exists"):
        duplicate(preset, "scout", str(tmp_path))
    with pytest.raises(PresetError, match="already exists"):
        duplicate(preset, "Scout!", str(tmp_path))
    assert Path(duplicate(preset, "🦊名" * 32, str(tmp_path))).is_file()


def test_a_file_that_broke_meanwhile_is_refused(tmp_path: Path) -> None:
    """A file that is gone or broken by now is refused."""
    preset = preset_in(tmp_path, "---\nname: scout\ndescription: d\n---\n")
    Path(preset.path).write_text("nothing")
    with pytest.raises(PresetError, match="invalid now"):
        duplicate(preset, "other", str(tmp_path))
    Path(preset.path).unlink()
    with pytest.raises(PresetError, match="no longer exists"):
        duplicate(preset, "other", str(tmp_path))


def test_the_proposed_name_is_free() -> None:
    """The proposed name has the first free number; a long name stays valid."""
    assert "a-2" == free_name("a", ())
    assert "a-4" == free_name("a", {"a-2", "a-3"})
    assert len(free_name("n" * 64, ())) <= 64
