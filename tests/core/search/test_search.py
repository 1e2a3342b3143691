"""Searching runs: hits are texts that users read, in any encoding of the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from subdeck.core import paths
from subdeck.core.errors import UsageError
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    RunEnded,
    Thinking,
    ToolCall,
    ToolResult,
    decode_event,
    encode_event,
)
from subdeck.core.run.model import NoticeLevel, RunReason
from subdeck.core.search import scan
from subdeck.core.search.pattern import Pattern
from subdeck.core.search.scan import Hit, Part
from subdeck.core.search.texts import texts_of
from subdeck.core.system.line_file import LONGEST

from tests.factories import make_finished, make_meta
from tests.hostile import IN_JSON
from tests.planted import KINDS, make_outside, plant, tree_of


@pytest.fixture
def project(project_dir: Path) -> paths.Project:
    return paths.Project(str(project_dir))


def made_run(
    project: paths.Project, *events: Event, answer: str = "", task: str = "look around", **meta: object
) -> str:
    made = make_finished(project, make_meta(task=task, **meta), final_text=answer or None)
    Path(project.run_dir(made.run_id), paths.EVENTS).write_bytes(b"".join(map(encode_event, events)))
    return made.run_id


def hits(project: paths.Project, text: str, **options: bool) -> list[Hit]:
    run_ids = sorted(os.listdir(project.runs), reverse=True)
    found = scan.search(project.runs, run_ids, Pattern(text, **options), lambda: False)
    return [hit for run in found for hit in run.hits]


def lines(project: paths.Project, text: str, **options: bool) -> list[str]:
    return [hit.line for hit in hits(project, text, **options)]


def test_every_text_is_searched(project: paths.Project) -> None:
    """A search covers task, description, answer, text, thinking, calls, output and reports."""
    made_run(
        project,
        AssistantText(seq=1, text="needle said"),
        Thinking(seq=2, text="needle thought\nand not here"),
        ToolCall(
            seq=3, tool_call_id="1", tool_name="bash", args={"command": "needle called", "env": [{"A": "needle"}]}
        ),
        ToolResult(seq=4, tool_call_id="1", tool_name="bash", is_error=False, content="one\ntwo needle printed"),
        Notice(seq=5, level=NoticeLevel.WARNING, text="needle noticed"),
        ErrorReported(seq=6, message="needle failed"),
        task="needle asked",
        description="needle described",
        answer="needle answered",
    )
    assert lines(project, "needle") == [
        "needle asked",
        "needle described",
        "needle said",
        "needle thought",
        "needle called",
        "needle",
        "two needle printed",
        "needle noticed",
        "needle failed",
        "needle answered",
    ]


def test_names_in_the_json_are_not_text(project: paths.Project) -> None:
    """Keys of events and arguments, ids and fixed words are not found."""
    made_run(
        project,
        ToolCall(seq=1, tool_call_id="call_77", tool_name="read", args={"file_path": "src/a.py"}),
        RunEnded(seq=2, status="completed", reason=RunReason.DONE),
    )
    for word in ("toolCallId", "file_path", "call_77", "tool_call", "Reading", "completed", "seq"):
        assert [] == lines(project, word)
    assert ["src/a.py"] == lines(project, "src/a.py")


def test_tool_without_words_of_ours_is_found_by_its_name(project: paths.Project) -> None:
    """A tool shown as "Running deploy" is found by its name."""
    made_run(project, ToolCall(seq=1, tool_call_id="1", tool_name="deploy", args={}))
    assert ["deploy"] == lines(project, "deploy")


def test_place_date_and_line_of_a_hit(project: paths.Project) -> None:
    """A hit leads to the line of its event."""
    first = AssistantText(seq=1, ts="2026-11-21T20:12:34.000Z", text="nothing")
    made_run(project, first, AssistantText(seq=2, ts="2026-11-21T20:12:35.000Z", text="  the needle, needle  "))
    (hit,) = hits(project, "needle")
    assert (Part.TRANSCRIPT, len(encode_event(first)), "2026-11-21T20:12:35.000Z") == (hit.place, hit.offset, hit.at)
    assert ["needle", "needle"] == [hit.line[begin:end] for begin, end in hit.spans]


def test_answer_is_told_once(project: paths.Project) -> None:
    """The answer that is also the last text is one hit, which leads to the transcript and is labeled as the answer."""
    made_run(project, AssistantText(seq=1, text="needle one\nneedle two"), answer="needle one\nneedle two")
    found = hits(project, "needle")
    assert [(Part.ANSWER, 0), (Part.ANSWER, 0)] == [(hit.place, hit.offset) for hit in found]


def test_case_counts_unless_it_is_ignored(project: paths.Project) -> None:
    """Upper and lower case differ by default; ignoring case works beyond ASCII."""
    made_run(project, AssistantText(seq=1, text="Needle\nNEEDLE\nÄpfel\näpfel"))
    assert ["Needle"] == lines(project, "Needle")
    assert ["Needle", "NEEDLE"] == lines(project, "needle", ignore_case=True)
    assert ["Äpfel", "äpfel"] == lines(project, "ÄPFEL", ignore_case=True)


def test_regular_expression_matches_within_a_line(project: paths.Project) -> None:
    """Anchors match the ends of a line, and no match spans lines."""
    made_run(project, ToolResult(seq=1, tool_call_id="1", tool_name="x", is_error=False, content="ab\nbc\nabc"))
    assert ["ab", "abc"] == lines(project, "^a", regex=True)
    assert ["ab"] == lines(project, r"b\Z", regex=True)
    assert [] == lines(project, r"b\nb", regex=True)
    assert ["ab"] == lines(project, "b(?!c)$", regex=True)


@pytest.mark.parametrize("text", ["", "\x1b[31m", "a\nb"])
def test_pattern_that_cannot_match_is_an_error(text: str) -> None:
    """A pattern that is empty after cleaning or has several lines is refused."""
    with pytest.raises(UsageError):
        Pattern(text)


def test_expression_that_is_none_is_explained() -> None:
    """The error for an invalid expression suggests a search for the literal text."""
    with pytest.raises(UsageError, match="not a regular expression") as error:
        Pattern("a(", regex=True)
    assert "--regex" in error.value.hint


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"a\/b"}', "a/b"),
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"gr\u00fcn"}', "grün"),
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"say \u0022hi\u0022"}', 'say "hi"'),
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"\u001b[31mne\u001b[0medle"}', "needle"),
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"a\tb"}', "a    b"),
        (r'{"type":"assistant_text","seq":1,"ts":"","text":"a\tb"}', "a "),
        ('{"type":"assistant_text","seq":1,"ts":"","text":"nee\u200bdle"}', "needle"),
        ('{"type":"assistant_text","seq":1,"ts":"","text":"nee\x7fdle — "}', "needle"),
    ],
)
def test_other_spellings_of_a_text_are_found(project: paths.Project, written: str, sought: str) -> None:
    """Other JSON escapes and invisible characters do not hide a text from the search."""
    run_id = made_run(project)
    Path(project.run_dir(run_id), paths.EVENTS).write_text(written + "\n")
    assert 1 == len(hits(project, sought))


_TEXT = st.text(st.sampled_from('ab/\\"\tÄäßſkK \n\r\x1b[m\x7f\u200b\u202e—語'), max_size=12)


@given(texts=st.lists(_TEXT, max_size=6), sought=_TEXT, ignore_case=st.booleans(), regex=st.booleans())
def test_nothing_is_missed_by_looking_at_bytes_first(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], sought: str, ignore_case: bool, regex: bool
) -> None:
    """The search finds exactly the lines that decoding every line would find."""
    try:
        pattern = Pattern(re.escape(sought) if regex else sought, regex=regex, ignore_case=ignore_case)
    except UsageError:
        return
    events = [AssistantText(seq=1, text=text) for text in texts]
    runs = tmp_path_factory.mktemp("runs")
    (runs / "one").mkdir()
    (runs / "one" / paths.EVENTS).write_bytes(b"".join(map(encode_event, events)))
    found = scan.search(str(runs), ["one"], pattern, lambda: False)
    expected = [
        line for event in events for text in texts_of(event) for line in text.split("\n") if pattern.spans(line)
    ]
    assert [line.strip() for line in expected] == [hit.line.strip() for run in found for hit in run.hits]


def test_long_line_is_cut_around_its_match(project: paths.Project) -> None:
    """A hit is short and contains the match."""
    made_run(project, AssistantText(seq=1, text="x" * 5000 + "needle" + "y" * 5000))
    (hit,) = hits(project, "needle")
    assert len(hit.line) <= scan.EXCERPT + 2
    assert "needle" == hit.line[slice(*hit.spans[0])]


def test_files_of_any_size_are_searched(project: paths.Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines at the edges of a block are found, and so is one after a torn line."""
    monkeypatch.setattr(scan, "BLOCK", 1000)
    events = [AssistantText(seq=number, text=f"needle {number} " + "x" * (number * 7 % 900)) for number in range(100)]
    run_id = made_run(project, *events)
    path = Path(project.run_dir(run_id), paths.EVENTS)
    path.write_bytes(path.read_bytes() + b"z" * (LONGEST + 5) + b"\n" + encode_event(AssistantText(text="needle end")))
    found = hits(project, "needle")
    assert [f"needle {number}" for number in (*range(100), "end")] == [
        hit.line.partition(" x")[0].strip() for hit in found
    ]
    content = path.read_bytes()
    for hit in found:
        event = decode_event(content[hit.offset :].partition(b"\n")[0])
        assert isinstance(event, AssistantText) and event.text.startswith(hit.line[:9])


def test_newest_run_comes_first_and_a_search_can_be_cancelled(project: paths.Project) -> None:
    """Runs come newest first, and the search checks between runs whether it is cancelled."""
    for day in (1, 2, 3):
        made_run(project, AssistantText(text="needle"), run_id=f"2026110{day}-000000-abcdef")
    asked = iter([False, False, False, True])

    def search() -> Iterator[str]:
        run_ids = sorted(os.listdir(project.runs), reverse=True)
        for run in scan.search(project.runs, run_ids, Pattern("needle"), lambda: next(asked, True)):
            yield run.run_id

    assert ["20261103-000000-abcdef"] == list(search())


def test_hostile_text_comes_out_clean(project: paths.Project) -> None:
    """A hit has no control characters in any field."""
    made_run(
        project,
        AssistantText(seq=1, ts=IN_JSON, text=f"needle {IN_JSON}"),
        task=f"needle {IN_JSON}",
        preset=IN_JSON,
        answer=f"needle {IN_JSON} else",
    )
    (found,) = scan.search(project.runs, os.listdir(project.runs), Pattern("needle"), lambda: False)
    for text in (found.preset, *(part for hit in found.hits for part in (hit.line, hit.at))):
        assert text.isprintable(), text
    assert [Part.TASK, Part.ANSWER] == [hit.place for hit in found.hits]


@pytest.mark.parametrize("kind", KINDS)
def test_planted_file_is_neither_followed_nor_waited_for(project: paths.Project, tmp_path: Path, kind: str) -> None:
    """A file that is not regular has no hits, does not hide other runs, and is not changed."""
    run_id = made_run(project, AssistantText(text="other"), run_id="20261101-000000-abcdef")
    path = Path(project.run_dir(run_id), paths.EVENTS)
    path.unlink()
    plant(kind, path, make_outside(tmp_path))
    made_run(project, AssistantText(text="needle"), run_id="20261102-000000-abcdef")
    before = tree_of(Path(project.runs))
    assert ["needle"] == lines(project, "needle")
    assert before == tree_of(Path(project.runs))
