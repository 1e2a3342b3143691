"""A preset's file as text: every byte of it comes back, and it is replaced whole or not at all."""

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
    """A line that is added to a file of Windows ends as the others do."""
    assert b"a\r\nb\r\nc\r\n" == text_of(b"a\r\nb\r\n").bytes_of("a\nb\nc\n")


def test_nothing_raw_is_shown() -> None:
    """A screen gets a character of one cell for each that it could obey, and a line stays a line."""
    text = encode_unsafe(HOSTILE)

    assert [text] == text.splitlines()
    assert len(text) == len(display_encoded(text))
    assert display_encoded(text).replace("\U000f0001", "").isprintable()
    assert display_encoded(text).startswith("a␛[31mb␇␍␋␌")


def test_the_private_plane_is_left_to_its_owner() -> None:
    """A text that uses the characters of the stand-ins itself is told apart."""
    assert can_encode_unsafe(HOSTILE)
    assert not can_encode_unsafe("\U0010001b")


def test_a_foreign_encoding_is_refused(tmp_path: Path) -> None:
    """What is not UTF-8 would not come back; the error names the line."""
    file = tmp_path / "x.md"
    file.write_bytes(b"---\nname: \xe9\n")

    with pytest.raises(PresetError, match=":2: the file is not UTF-8 text"):
        read_preset_text(str(file))
    with pytest.raises(ContentError):
        text_of(b"\xff")


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A name without a file, a directory and a pipe are errors in a sentence."""
    path = tmp_path / "x.md"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)

    with pytest.raises(PresetError, match=r"does not exist|is a directory|not a regular file"):
        read_preset_text(str(path))


def test_rights_and_links_stay(tmp_path: Path) -> None:
    """The file that a link leads to is replaced; who may read it is as before."""
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
    """What somebody else wrote or deleted meanwhile is not written over; the error has it."""
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
    """When writing fails the old file stands, nothing is left beside it, and the sentence says why."""
    file = tmp_path / "x.md"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PresetError, match=r"cannot write the preset: No space left on device\n  check disk space"):
        write_preset_text(str(file), b"new", before=b"old")
    assert (b"old", ["x.md"]) == (file.read_bytes(), os.listdir(tmp_path))
