"""Finding words, errors and times in a run's files without decoding irrelevant lines."""

from __future__ import annotations

import random
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.errors import UsageError
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    Retry,
    RunEnded,
    RunQueued,
    Thinking,
    ToolCall,
    ToolResult,
    encode_event,
)
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.system import line_file
from subdeck.core.system.line_file import LineFile
from subdeck.core.text.plain import UNSAFE
from subdeck.tui.transcript import _matches
from subdeck.tui.transcript._matches import (
    OWN_WORDS,
    Count,
    Query,
    error_matcher,
    find,
    first_match,
    last_match,
    scan,
    searched_text,
)
from subdeck.tui.transcript._time import offset_at, parse_time

WORDS = [
    "auth",
    "Token",
    "größe",
    "漢字",
    "x" * 40,
    "\x1b[31mred\x1b[0m",
    "fo\u200bo",
    "a\tb",
    '"quoted"',
    "\\n",
    "7f3a",
]
TOOLS = ["read", "grep", "bash", "edit", "custom_tool", "ls"]


def never() -> bool:
    return False


def some_event(chance: random.Random, number: int) -> Event:
    said = " ".join(chance.choices([*WORDS, "reading", "failed", "error"], k=chance.randint(1, 6)))
    call_id = f"call{number - number % 3}"
    tool = TOOLS[number // 3 % len(TOOLS)]
    key = {"bash": "command", "grep": "pattern"}.get(tool, "path")
    match number % 3:
        case 0:
            return ToolCall(tool_call_id=call_id, tool_name=tool, args={key: said, "more": {"deep": said}})
        case 1:
            failed = chance.random() < 0.3
            return ToolResult(tool_call_id=call_id, tool_name=tool, is_error=failed, content=said, exit_code=1)
        case _:
            made: tuple[Event, ...] = (
                AssistantText(text=said),
                Thinking(text=f"{said}\nmore"),
                Notice(level="warning", text=said),
                ErrorReported(message=said),
                RunQueued(waits_for="slot"),
                Retry(attempt=1, max_attempts=3, delay_ms=2000, reason=said),
                RunEnded(status="failed", reason="lost"),
            )
            return chance.choice(made)


def written(path: Path, events: list[Event]) -> LineFile:
    path.write_bytes(b"".join(encode_event(replace(event, seq=n + 1)) for n, event in enumerate(events)))
    return LineFile(str(path))


def offsets(content: bytes) -> list[int]:
    starts = [0]
    for line in content.split(b"\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts[:-1]


def by_reading_all(file: LineFile, query: Query) -> list[int]:
    content = Path(file.path).read_bytes()
    formatter = ProgressFormatter()
    lines = zip(offsets(content), content.split(b"\n"), strict=False)
    return [start for start, line in lines if query.is_in(searched_text(query.view, line, formatter))]


def found(file: LineFile, query: Query, start: int = 0) -> list[int]:
    return [hit for hits, _ in scan(file, start, 1 << 60, query.matcher(), never) for hit in hits]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("view", ["readable", "raw", "stderr"])
def test_nothing_is_missed(tmp_path: Path, seed: int, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any part of the visible text, the search finds exactly the lines that reading all of them finds."""
    monkeypatch.setattr(line_file, "BLOCK", 2000)
    chance = random.Random(seed)
    file = written(tmp_path / "events.jsonl", [some_event(chance, number) for number in range(120)])
    content = Path(file.path).read_bytes()
    formatter = ProgressFormatter()
    texts = [searched_text(view, line, formatter) for line in content.split(b"\n")[:-1]]
    for _ in range(60):
        text = chance.choice([text for text in texts if text])
        begin = chance.randrange(len(text))
        words = text[begin : begin + chance.randint(1, 14)].split("\n")[0]
        if words:
            query = Query(chance.choice((words, words.lower())), view)
            expected = by_reading_all(file, query)
            assert expected == found(file, query), words
            middle = chance.choice(offsets(content))
            after = [hit for hit in expected if hit >= middle]
            assert first_match(file, query.matcher, middle, len(content), never) == (after[0] if after else None), words
            before = [hit for hit in expected if hit < middle]
            assert last_match(file, query.matcher, middle, never) == (before[-1] if before else None), words


def test_own_words_are_all_known() -> None:
    """Every word that the wordings put around an agent's text is known to the search."""
    from subdeck.core.run import describe, progress

    words = {
        word.lower()
        for wording in progress._WORDINGS.values()
        for text in (wording.call, wording.finished, wording.failed)
        for word in text.replace("{}", "").replace(":", "").split()
    } | {word for text in describe.WAITING.values() for word in re.findall(r"[a-z0-9_]+", text.lower())}
    assert words <= OWN_WORDS


def test_case_counts_only_when_it_is_typed(tmp_path: Path) -> None:
    """A query in small letters ignores case, one with a capital does not."""
    file = written(tmp_path / "e", [AssistantText(text="Auth"), AssistantText(text="auth")])
    assert [2, 1] == [len(found(file, Query(words, "readable"))) for words in ("auth", "Auth")]


def test_folded_text_is_searched(tmp_path: Path) -> None:
    """Folded arguments and results are found, and results by the subject of their call."""
    call = ToolCall(tool_call_id="1", tool_name="read", args={"path": "src/a.py", "limit": 77})
    result = ToolResult(tool_call_id="1", tool_name="read", is_error=False, content="one\ndeep inside")
    file = written(tmp_path / "e", [call, result])
    first, second = offsets(Path(file.path).read_bytes())
    assert [first] == found(file, Query("limit: 77", "readable"))
    assert [second] == found(file, Query("deep inside", "readable"))
    assert [first, second] == found(file, Query("src/a.py", "readable"))
    assert [second] == found(file, Query("finished reading src/a", "readable"))


def test_a_subject_is_found_from_the_middle(tmp_path: Path) -> None:
    """A search that begins between a call and its result still knows the result's subject."""
    call = ToolCall(tool_call_id="1", tool_name="read", args={"path": "src/a.py"})
    result = ToolResult(tool_call_id="1", tool_name="read", is_error=False, content="x")
    file = written(tmp_path / "e", [call, result])
    size = Path(file.path).stat().st_size
    second = offsets(Path(file.path).read_bytes())[1]
    assert second == first_match(file, Query("a.py", "readable").matcher, second, size, never)


def test_very_long_lines_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than a block is found by its beginning, and the lines after it as usual."""
    monkeypatch.setattr(line_file, "BLOCK", 4096)
    monkeypatch.setattr(line_file, "LONGEST", 300_000)
    long = AssistantText(text="needle one " + "x" * 600_000)
    file = written(tmp_path / "e", [AssistantText(text="a"), long, AssistantText(text="needle two")])
    starts = offsets(Path(file.path).read_bytes())
    query = Query("needle", "readable")
    assert starts[1:] == found(file, query)
    assert starts[2] == first_match(file, query.matcher, starts[1] + 1, 1 << 60, never)
    assert starts[1] == last_match(file, query.matcher, starts[2], never)


def test_an_unfinished_line_waits(tmp_path: Path) -> None:
    """An unfinished line becomes a match when its newline arrives."""
    path = tmp_path / "e"
    line = encode_event(AssistantText(text="needle"))
    path.write_bytes(line + line[:-3])
    count = Count(LineFile(str(path)), Query("needle", "readable").matcher)
    count.read_on(never)
    assert (1, "1") == (len(count.matches), count.total)
    with path.open("ab") as file:
        file.write(line[-3:])
    count.read_on(never)
    assert "2" == count.total
    assert 2 == count.number(len(line))


def test_counting_says_when_it_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that may still grow has a plus, and so has the largest number counted."""
    monkeypatch.setattr(line_file, "BLOCK", 1000)
    monkeypatch.setattr(_matches, "PIECE", 2000)
    file = written(tmp_path / "e", [AssistantText(text=f"needle {n}") for n in range(200)])
    count = Count(file, Query("needle", "readable").matcher)
    count.read_on(never)
    assert count.total.endswith("+")
    while not count.complete:
        count.read_on(never)
    assert "200" == count.total
    monkeypatch.setattr(_matches, "MOST", 50)
    few = Count(file, Query("needle", "readable").matcher)
    for _ in range(20):
        few.read_on(never)
    assert "50+" == few.total


def test_another_file_in_its_place_is_counted_anew(tmp_path: Path) -> None:
    """A file that was cut short has only its current matches."""
    path = tmp_path / "e"
    file = written(path, [AssistantText(text="needle")] * 5)
    count = Count(file, Query("needle", "readable").matcher)
    count.read_on(never)
    written(path, [AssistantText(text="needle")])
    count.read_on(never)
    assert "1" == count.total


def test_a_search_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once another search has begun, no further block is read."""
    monkeypatch.setattr(line_file, "BLOCK", 500)
    file = written(tmp_path / "e", [AssistantText(text="hay")] * 500)
    asked = iter([False, False, True, True])
    count = Count(file, Query("needle", "readable").matcher)
    count.read_on(lambda: next(asked))
    assert count.end < 1500
    assert not count.complete


@cache
def hidden() -> list[str]:
    unsafe = re.compile(UNSAFE)
    return [char for char in map(chr, range(sys.maxunicode + 1)) if unsafe.match(char) and not char.isspace()]


@pytest.mark.parametrize("view", ["readable", "raw", "stderr"])
def test_what_is_hidden_keeps_no_word_from_being_found(view: str) -> None:
    """A word that is whole only without a hidden character is found, for every such character."""
    missed: list[str] = []
    for char in hidden():
        text = f"nee{char}dle"
        if "\ud800" <= char <= "\udfff":
            line = msgspec.json.encode(AssistantText(text="nee?dle")).replace(b"?", b"\\u%04x" % ord(char))
        else:
            line = text.encode() if view == "stderr" else encode_event(AssistantText(text=text)).rstrip(b"\n")
        query = Query("needle", view)
        read = searched_text(view, line, ProgressFormatter())
        if query.is_in(read) and not query.matcher()(0, line + b"\n"):
            missed.append(f"{ord(char):x}")
    assert missed == []


def test_errors(tmp_path: Path) -> None:
    """Errors, failed tools and a bad ending are found, but not text about errors."""
    events: list[Any] = [
        AssistantText(text='the "type":"error" and "isError":true'),
        ErrorReported(message="boom"),
        ToolResult(tool_call_id="1", tool_name="bash", is_error=True, content=""),
        ToolResult(tool_call_id="2", tool_name="bash", is_error=False, content='"isError":true'),
        RunEnded(status="completed", reason="done"),
        RunEnded(status="aborted", reason="stopped"),
    ]
    file = written(tmp_path / "e", events)
    starts = offsets(Path(file.path).read_bytes())
    expected = [starts[1], starts[2], starts[5]]
    assert expected == [hit for hits, _ in scan(file, 0, 1 << 60, error_matcher(), never) for hit in hits]
    assert (starts[1], True) == find(file, error_matcher, starts[5] + 1, 1, never)
    assert (starts[5], True) == find(file, error_matcher, starts[1], -1, never)


def timed(path: Path, count: int = 4000) -> LineFile:
    """Make a file with an event each second, from 23:50 local time on."""
    from datetime import datetime, timedelta

    begin = datetime(2026, 3, 4, 23, 50).astimezone()
    stamps = ((begin + timedelta(seconds=n)).isoformat(timespec="milliseconds") for n in range(count))
    return written(path, [AssistantText(ts=stamp, text=f"event {n} " + "x" * 200) for n, stamp in enumerate(stamps)])


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("23:50", 0),
        ("23:51", 60),
        ("23:51:07", 67),
        ("0:30", 2400),
        ("-5m", 3699),
        ("- 90s", 3909),
        ("+90s", 90),
        ("+1h2m", 3720),
        ("+30d", 3999),
        ("-30d", 0),
        ("0%", 0),
        ("100%", 3999),
    ],
)
def test_times_are_found(tmp_path: Path, time: str, event: int) -> None:
    """Each form of a time leads to the first event at or after it, even over midnight."""
    file = timed(tmp_path / "e")
    assert f"event {event} ".encode() in file.line_at(offset_at(file, parse_time(time)))


@pytest.mark.parametrize("time", ["", "later", "25:00", "12:77", "101%", "5m", "+5", "-" + "9" * 400 + "d"])
def test_bad_times_are_said(tmp_path: Path, time: str) -> None:
    """An invalid time is refused with examples, and no other error is raised."""
    with pytest.raises(UsageError) as caught:
        offset_at(timed(tmp_path / "e", 5), parse_time(time))
    assert caught.value.hint or "too long" in caught.value.what


def test_a_time_outside_is_said(tmp_path: Path) -> None:
    """A time of day outside the file is refused with the range of the file."""
    with pytest.raises(UsageError) as caught:
        offset_at(timed(tmp_path / "e", 60), parse_time("12:00"))
    assert "23:50:00" in caught.value.hint


def test_lines_without_times(tmp_path: Path) -> None:
    """Garbage between events does not mislead the search, and a file without times is reported."""
    file = timed(tmp_path / "e", 600)
    content = Path(file.path).read_bytes()
    lines = content.split(b"\n")
    lines.insert(300, b'{"ts":"garbage"} ' + b"\xff" * 90_000)
    Path(file.path).write_bytes(b"\n".join(lines))
    assert b"event 400 " in file.line_at(offset_at(file, parse_time("+400s")))
    Path(file.path).write_bytes(b"no time\n" * 9)
    with pytest.raises(UsageError):
        offset_at(file, parse_time("+1s"))
