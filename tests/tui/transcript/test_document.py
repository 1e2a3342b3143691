"""The document behind the transcript: laid out only where the user looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.paths import Project
from subdeck.core.run.events import AssistantText, Event, Request, ToolCall, ToolResult, UsageReported, encode_event
from subdeck.core.run.model import RequestKind
from subdeck.core.system.line_file import CHUNK, Chunk, LineFile
from subdeck.tui.feed import reader as reading
from subdeck.tui.feed.lines import View
from subdeck.tui.feed.reader import Part, RunReader
from subdeck.tui.transcript._document import FEW, KEPT, Document
from subdeck.tui.transcript._rows import TextPosition

from tests.factories import make_finished, make_meta

from ..fake_engine import stamp

VIEW = 30


def said(number: int, words: int = 12) -> AssistantText:
    return AssistantText(seq=number, ts=stamp(number), text=f"line {number} " + "word " * (number * 7 % words))


def usage(number: int) -> UsageReported:
    return UsageReported(
        seq=number, ts=stamp(number), input=1, output=1, cache_read=0, cache_write=0, cost=0, model="m", stop_reason="s"
    )


def a_file(tmp_path: Path, *events: Event) -> LineFile:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(map(encode_event, events)))
    return LineFile(str(path))


def append(file: LineFile, *events: Event) -> None:
    with open(file.path, "ab") as opened:
        opened.write(b"".join(map(encode_event, events)))


def read_all(reader: RunReader, document: Document) -> Document:
    """Let a document read all available lines."""
    while True:
        piece = reader.read()
        if piece.begins:
            fresh = Document(piece.file, document.view)
            fresh.lay_out(document.width or 40, None)
            document = fresh
        for part in piece.after:
            document.put_after(part)
        document.put_before(piece.before)
        if not piece.more:
            return document


def opened(file: LineFile, view: View = View.READABLE) -> Document:
    return read_all(RunReader("run", view, file), Document(file, view))


def shown(document: Document, top: int) -> list[tuple[TextPosition, str]]:
    """Return the rows of a view."""
    rows: list[tuple[TextPosition, str]] = []
    for row in range(top, top + VIEW):
        place = document.laid_out_row(row)
        if place is not None:
            rows.append((place.position, place.rows.cut(place.entry)[place.part].text))
    return rows


@pytest.mark.slow
def test_going_up_shows_every_row_once(tmp_path: Path) -> None:
    """From end to beginning row by row, no row is skipped or repeated, however wrong the guesses were."""
    file = a_file(
        tmp_path, *(event for n in range(1, 2500) for event in (said(n, 80 if n % 900 < 400 else 3), usage(n)))
    )
    document = opened(file)
    assert len(document.table) > FEW
    top = document.settle(0, VIEW, at_end=True)
    seen = shown(document, top)
    while top:
        before, up = seen[:VIEW], 7
        top = document.settle(top - up, VIEW)
        now = shown(document, top)
        up = now.index(before[0]) if not top else up
        assert now[up:] == before[: VIEW - up]
        seen = now[:up] + seen
    whole = [(position, text) for row in range(document.height) for position, text in shown_row(document, row)]
    assert seen == whole
    assert [text.split()[1] for position, text in seen if position.part == 0] == [str(n) for n in range(1, 2500)]


def shown_row(document: Document, row: int) -> list[tuple[TextPosition, str]]:
    place = document.laid_out_row(row)
    return [(place.position, place.rows.cut(place.entry)[place.part].text)] if place else []


def test_only_what_is_seen_is_laid_out(tmp_path: Path) -> None:
    """Opening a big file lays out its end, and going through it keeps a limited part."""
    file = a_file(tmp_path, *(said(n, 40) for n in range(1, 40_000)))
    document = opened(file)
    assert len(document._laid) == 1
    assert document.table.lines == 39_999
    top = document.settle(0, VIEW, at_end=True)
    for _ in range(200):
        top = document.settle(top - 300, VIEW)
    assert len(document._laid) == KEPT
    assert not document.table.exact[0]


def test_a_small_file_is_no_guess(tmp_path: Path) -> None:
    """A document of few chunks knows its exact height, also at another width."""
    document = opened(a_file(tmp_path, *(said(n) for n in range(1, 1500))))
    assert 1 < len(document.table) <= FEW
    for width in (40, 20, 80):
        document.lay_out(width, 0)
        assert document.height == sum(rows.height for rows in document._laid.values())


def test_what_is_written_is_read_once(tmp_path: Path) -> None:
    """A growing file costs only its additions: laid out rows stay, and no earlier byte is read again."""
    file = a_file(tmp_path, *(said(n) for n in range(1, 200)))
    reader = RunReader("run", View.READABLE, file)
    document = read_all(reader, Document())
    rows = document._laid[0]
    read: list[int] = []
    read_file = file.read

    def noted(start: int, length: int) -> bytes:
        read.append(start)
        return read_file(start, length)

    file.read = noted  # type: ignore[method-assign]
    size = os.path.getsize(file.path)
    append(file, said(200), said(201))
    assert read_all(reader, document) is document
    assert document._laid[0] is rows
    assert [entry.text.split()[1] for entry in rows.entries] == [str(n) for n in range(1, 202)]
    assert min(read) >= size
    assert document.height == rows.height


def test_growth_begins_new_chunks(tmp_path: Path) -> None:
    """However a file grew, its chunks stay small enough to be decoded quickly."""
    file = a_file(tmp_path, said(1))
    reader = RunReader("run", View.READABLE, file)
    document = read_all(reader, Document())
    for n in range(2, 6000, 10):
        append(file, *(said(number) for number in range(n, n + 10)))
        read_all(reader, document)
    sizes = [end - start for start, end in map(document.table.bytes_of, range(len(document.table)))]
    assert max(sizes) < 2 * CHUNK
    assert document.table.lines == 6001
    assert document.last() == document.position_at(document.height - 1)


def test_far_behind_is_only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a long pause new lines are counted but not decoded, until the user goes there."""
    monkeypatch.setattr(reading, "FAR_BEHIND", 2 * CHUNK)
    monkeypatch.setattr(reading, "PIECE", CHUNK)
    file = a_file(tmp_path, said(1))
    reader = RunReader("run", View.READABLE, file)
    document = read_all(reader, Document())
    append(file, *(said(n) for n in range(2, 5000)))
    pieces = [reader.read()]
    while pieces[-1].more:
        pieces.append(reader.read())
    assert pieces[0].after[0].entries is None
    for piece in pieces:
        for part in piece.after:
            document.put_after(part)
    assert document.table.lines == 4999
    assert pieces[-1].last_seq == 4999
    top = document.settle(0, VIEW, at_end=True)
    assert shown(document, top)[-1][1].startswith("line 4999")


def test_a_result_knows_its_call_across_a_chunk(tmp_path: Path) -> None:
    """A result at the beginning of a chunk has the words of its call in the chunk before."""
    call = ToolCall(seq=1, ts=stamp(1), tool_call_id="c1", tool_name="read", args={"path": "src/auth.ts"})
    other = ToolCall(seq=1, ts=stamp(1), tool_call_id="c11", tool_name="read", args={"path": "src/other.ts"})
    result = ToolResult(seq=2, ts=stamp(2), tool_call_id="c1", tool_name="read", is_error=False, content="x")
    silent = [usage(n) for n in range(300)]
    file = a_file(tmp_path, call, other, *silent, result, said(400))
    document = Document(file)
    document.lay_out(40, None)
    start = len(b"".join(map(encode_event, (call, other, *silent))))
    document.put_after(Part(Chunk(start, os.path.getsize(file.path), 2), None))
    document.put_before((Chunk(0, start, 302),))
    assert document.rows(1).entries[0].text == "  Finished reading src/auth.ts"


def test_steps_go_over_chunks_and_silent_lines(tmp_path: Path) -> None:
    """Steps go row by row down and up again, also over a stretch without rows."""
    silent = [usage(n) for n in range(1500)]
    file = a_file(tmp_path, *(said(n) for n in range(1, 900)), *silent, *(said(n) for n in range(900, 1800)))
    document = opened(file)
    begin, end = document.first(), document.last()
    assert begin is not None and end is not None
    down, position = [begin], begin
    while position != end:
        position = document.moved(position, 1) or position
        down.append(position)
    assert down == [document.position_at(row) for row in range(document.height)]
    up = [end]
    while up[-1] != begin:
        up.append(document.moved(up[-1], -1) or begin)
    assert up[::-1] == down
    assert document.moved(begin, -5) == begin
    assert document.moved(end, 5) == end


def test_a_byte_names_the_next_line_shown(tmp_path: Path) -> None:
    """An offset means the line that begins there, or the next visible line, or the last one."""
    events = [said(1), usage(2), usage(3), said(4)]
    offsets = [sum(len(encode_event(event)) for event in events[:n]) for n in range(4)]
    document = opened(a_file(tmp_path, *events))
    assert [document.nearest(offset) for offset in (0, offsets[1], offsets[3], 10**9)] == [
        TextPosition(0),
        TextPosition(offsets[3]),
        TextPosition(offsets[3]),
        document.last(),
    ]


@pytest.mark.slow
def test_another_width_keeps_a_line_in_its_row(tmp_path: Path) -> None:
    """At another width heights are guessed again from the visible rows, and the current line keeps its place."""
    document = opened(a_file(tmp_path, *(said(n, 60) for n in range(1, 20_000))))
    top = document.settle(document.height // 2, VIEW)
    position = document.position_at(top)
    assert position is not None
    for width in (23, 90, 40):
        document.lay_out(width, position.offset)
        guessed = document.height
        top = document.settle(document.row_of(position), VIEW)
        found = document.position_at(top)
        assert found is not None and found.offset == position.offset
        rows = sum(document.rows(index).height for index in range(len(document.table)))
        assert abs(guessed - rows) < rows / 5


@pytest.mark.fuzz
@pytest.mark.parametrize("content", [b"", b"no json\n\n[]\n{}\n\xff\xfe\n" * 50, b"\n" * 300_000, b"x" * 300_000])
@pytest.mark.parametrize("view", View)
def test_any_bytes_are_bearable(tmp_path: Path, content: bytes, view: View) -> None:
    """Bytes that are not an event, text or line are left out or shown plain, in every view."""
    path = tmp_path / "file"
    path.write_bytes(content)
    document = opened(LineFile(str(path)), view)
    top = document.settle(0, VIEW, at_end=True)
    for _ in range(5):
        top = document.settle(top - VIEW, VIEW)
        assert all(text.isprintable() for _, text in shown(document, top))


def test_a_file_that_was_replaced_is_another(tmp_path: Path) -> None:
    """A shortened or replaced file is read from its end as if it had just been opened."""
    file = a_file(tmp_path, *(said(n) for n in range(1, 500)))
    reader = RunReader("run", View.READABLE, file)
    document = read_all(reader, Document())
    Path(file.path).unlink()
    assert reader.read().after == ()
    assert document.table.lines == 499
    Path(file.path).write_bytes(encode_event(said(7)))
    document = read_all(reader, document)
    assert [entry.text.split()[1] for entry in document.rows(0).entries] == ["7"]


@pytest.mark.slow
def test_a_huge_event_is_shown_by_its_beginning(tmp_path: Path) -> None:
    """An event of ten megabytes is decoded from its first part, other events whole, and its whole text is available."""
    huge = AssistantText(seq=2, ts=stamp(2), text='a "quoted" wörd\n' * 700_000)
    file = a_file(tmp_path, said(1), huge, said(3))
    document = opened(file)
    entries = [entry.text for rows in document._laid.values() for entry in rows.entries]
    assert [text[:5] for text in entries] == ["line ", 'a "qu', "line "]
    assert len(entries[1]) < 300_000
    assert document.full_text(len(encode_event(said(1)))) == huge.text.strip("\n")
    append(file, huge)
    reader = RunReader("run", View.READABLE, file)
    assert read_all(reader, Document()).table.lines == 4
    append(file, huge, said(5))
    after = reader.read()
    assert [part.chunk.lines for part in after.after] == [1]
    assert reader.read().last_seq == 5


def test_a_request_names_its_files_as_seen_from_the_run(project_dir: Path) -> None:
    """A request's line has paths relative to the run; expanded, it has the agent's exact paths."""
    tree = "/state/subdeck/work/0123456789abcdef/20260101-000000-abcdef/tree"
    project = Project(str(project_dir))
    meta = make_finished(project, make_meta(cwd=tree))
    asked = Request(
        seq=1,
        ts=stamp(1),
        id="q1",
        kind=RequestKind.PERMISSION,
        title="wants to change a file",
        paths=(f"{tree}/a.py",),
    )
    path = Path(project.run_dir(meta.run_id), "events.jsonl")
    path.write_bytes(encode_event(asked))
    document = opened(LineFile(str(path)))
    (entry,) = document.rows(0).entries
    assert "? wants to change a file: a.py" == entry.text
    assert f"{tree}/a.py" in document.full_text(0)
