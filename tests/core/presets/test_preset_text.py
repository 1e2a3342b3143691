"""A preset's file as text: every byte is preserved, and a file is never replaced in part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.errors import ContentError, PresetError
from subdeck.core.presets.text import GONE, FileChanged, read_preset_text, text_of, write_preset_text
from subdeck.core.text.plain import can_encode_unsafe, decode_unsafe, display_encoded, encode_unsafe

HOSTILE = "a\x1b[31mb\x07\r\x0b\x0c\x1c\x85\u2028\u202e\u200b\ufeff\x7f\x9b ␛ \U000f0001"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"one\ntwo",
        b"one\r\ntwo\r\n",
        b"one\r\ntwo\nthree\r",
        b"\xef\xbb\xbfone\r\n",
        HOSTILE.encode(),
        f"---\nname: x\n---\n{HOSTILE}\n\n".encode(),
    ],
)
def test_every_byte_comes_back(content: bytes) -> None:
    """Line ends, a byte order mark and control characters survive reading and writing."""
    read = text_of(content)

    assert content == read.bytes_of(decode_unsafe(encode_unsafe(read.text)))


def test_line_ends_are_those_of_the_file() -> None:
    """A line added to a Windows file gets the file's line end."""
    assert b"a\r\nb\r\nc\r\n" == text_of(b"a\r\nb\r\n").bytes_of("a\nb\nc\n")


def test_nothing_raw_is_shown() -> None:
    """Each control character is shown as one character of one cell, and a line stays a line."""
    text = encode_unsafe(HOSTILE)

    assert [text] == text.splitlines()
    assert len(text) == len(display_encoded(text))
    assert display_encoded(text).replace("\U000f0001", "").isprintable()
    assert display_encoded(text).startswith("a␛[31mb␇␍␋␌")


def test_the_private_plane_is_left_to_its_owner() -> None:
    """A text that uses the stand-in characters itself is detected."""
    assert can_encode_unsafe(HOSTILE)
    assert not can_encode_unsafe("\U0010001b")


def test_a_foreign_encoding_is_refused(tmp_path: Path) -> None:
    """A file that is not UTF-8 is refused with the line, because it could not be restored."""
    file = tmp_path / "x.md"
    file.write_bytes(b"---\nname: \xe9\n")

    with pytest.raises(PresetError, match=":2: the file is not UTF-8 text"):
        read_preset_text(str(file))
    with pytest.raises(ContentError):
        text_of(b"\xff")


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A missing file, a directory and a pipe are errors in a sentence."""
    path = tmp_path / "x.md"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)

    with pytest.raises(PresetError, match=r"does not exist|is a directory|not a regular file"):
        read_preset_text(str(path))


def test_rights_and_links_stay(tmp_path: Path) -> None:
    """The target of a link is replaced with its mode; the link stays."""
    (tmp_path / "real").mkdir()
    real = tmp_path / "real/x.md"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "x.md"
    link.symlink_to("real/x.md")

    write_preset_text(str(link), b"new", before=b"old")

    assert link.is_symlink()
    assert (b"new", 0o640) == (real.read_bytes(), real.stat().st_mode & 0o777)
    assert ["x.md"] == os.listdir(tmp_path / "real")


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    """A file that another program changed or deleted is not overwritten; the error has its content."""
    file = tmp_path / "x.md"
    file.write_bytes(b"theirs")
    with pytest.raises(FileChanged, match="changed by another program") as changed:
        write_preset_text(str(file), b"mine", before=b"read")
    assert (b"theirs", b"theirs") == (changed.value.content, file.read_bytes())

    file.unlink()
    with pytest.raises(FileChanged, match="deleted by another program") as gone:
        write_preset_text(str(file), b"mine", before=b"theirs")
    assert (GONE, False) == (gone.value.content, file.exists())
    write_preset_text(str(file), b"mine", before=GONE)
    assert b"mine" == file.read_bytes()


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing fails the old file stays, no other file is left, and the error has the reason."""
    file = tmp_path / "x.md"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PresetError, match=r"cannot write the preset: No space left on device\n  check disk space"):
        write_preset_text(str(file), b"new", before=b"old")
    assert (b"old", ["x.md"]) == (file.read_bytes(), os.listdir(tmp_path))
