"""Random access to a growing file of lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from subdeck.core.system.line_file import BLOCK, CHUNK, HELD, WHOLE, LineFile, LineTail, chunks_of


def some_lines(seed: int, size: int, longest: int) -> bytes:
    """Lines of all lengths, including empty ones."""
    chance = random.Random(seed)
    lines: list[bytes] = []
    left = size
    while left > 0:
        line = b"x" * int(longest * chance.random() ** 6) + b"\n"
        lines.append(line)
        left -= len(line)
    return b"".join(lines)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("longest", [300, CHUNK, 3 * BLOCK])
def test_chunks_are_the_whole_file(tmp_path: Path, seed: int, longest: int) -> None:
    """Backward, the chunks cover every byte once, hold whole counted lines, and are no longer than necessary."""
    content = some_lines(seed, 5 * BLOCK + seed * 1000, longest)
    path = tmp_path / "lines"
    path.write_bytes(content)
    chunks = list(LineFile(str(path)).chunks_before(len(content)))[::-1]
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks[:-1])]
    assert chunks[-1].end == len(content)
    for chunk in chunks:
        part = content[chunk.start : chunk.end]
        assert part.endswith(b"\n")
        assert part.count(b"\n") == chunk.lines
        first_line = part.index(b"\n") + 1
        assert len(part) - first_line < CHUNK or chunk.start == 0
    assert all(chunk.end - chunk.start >= CHUNK for chunk in chunks[1:])


def test_chunks_of_what_was_appended(tmp_path: Path) -> None:
    """Forward, the chunks of a block hold its whole lines too."""
    content = some_lines(1, 5 * CHUNK, 2000)
    chunks = list(chunks_of(1000, content))
    assert [chunk.start for chunk in chunks] == [1000, *(chunk.end for chunk in chunks[:-1])]
    assert chunks[-1].end == 1000 + len(content)
    assert sum(chunk.lines for chunk in chunks) == content.count(b"\n")
    assert len(chunks) == 5


def test_lines_know_where_they_begin(tmp_path: Path) -> None:
    """Each line of a chunk has its offset, and a torn last line has its existing part."""
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\nthree\nfo")
    file = LineFile(str(path))
    assert file.lines(0, 13) == [(0, b"one"), (4, b""), (5, b"three"), (11, b"fo")]
    assert file.end_of_lines(13) == 11
    assert file.line_at(5) == b"three"
    assert file.line_at(11) == b"fo"


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("after", [0, 7])
def test_a_very_long_line_is_cut(tmp_path: Path, before: int, after: int) -> None:
    """Chunks have only the beginning of a line of megabytes and whole other lines; one line can be read whole."""
    long = b"y" * (3 * WHOLE)
    lines = [b"before %d" % n for n in range(before)] + [long] + [b"after %d" % n for n in range(after)]
    content = b"\n".join(lines) + b"\n"
    path = tmp_path / "lines"
    path.write_bytes(content)
    file = LineFile(str(path))
    read = file.lines(0, len(content))
    assert [line for _, line in read] == [line[:HELD] for line in lines]
    assert all(content[offset : offset + len(line)] == line for offset, line in read)
    assert file.line_at(read[before][0]) == long


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """A missing file, a directory and a shortened file return no lines and raise no error."""
    for path in (tmp_path / "missing", tmp_path):
        file = LineFile(str(path))
        assert (file.read(0, 10), file.lines(0, 10), file.line_at(0)) == (b"", [], b"")
        assert list(file.chunks_before(0)) == []
        assert sum(chunk.lines for chunk in file.chunks_before(BLOCK)) == 0
    assert LineFile(str(tmp_path / "missing")).mark() is None


def test_a_file_with_a_hole_of_a_terabyte(tmp_path: Path) -> None:
    """A gap without newlines that is longer than any line is skipped without reading it all."""
    path = tmp_path / "lines"
    with path.open("wb") as written:
        written.write(b"one\n")
        written.truncate(1 << 40)
    tail, file = LineTail(str(path)), LineFile(str(path))
    head, endless = tail.lines()
    assert (b"one", 1 << 40) == (head, tail.offset)
    assert not endless.strip(b"\0")
    assert 0 == file.end_of_lines(1 << 40)
    assert file.line_start(5) is None
    assert not file.line_at(4).strip(b"\0")
    with path.open("ab") as written:
        written.write(b"\nnew\n")
    assert [b"", b"new"] == list(tail.lines())
    assert (1 << 40) + 5 == file.end_of_lines((1 << 40) + 5)
    assert len(list(file.chunks_before((1 << 40) + 5))) == 1
