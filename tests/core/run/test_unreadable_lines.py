"""Unreadable lines of events.jsonl are counted, and the count is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.describe import unreadable_lines
from subdeck.core.run.events import AssistantText, encode_event
from subdeck.core.run.markdown import run_markdown
from subdeck.core.run.progress import ProgressFormatter
from subdeck.tui.feed.lines import UNREADABLE, entry_of_line

from tests.factories import make_finished, make_run, open_engine

GARBAGE = b'{"seq": 1, "type"\n\n\xff\xfe\n'
"""Two unreadable lines and an empty one, which does not count."""


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def write_events(engine: Engine, run_id: str) -> None:
    said = encode_event(AssistantText(seq=1, ts=paths.now_iso(), text="Here."))
    Path(engine.project.run_dir(run_id), paths.EVENTS).write_bytes(GARBAGE + said)


def test_an_open_run_is_warned_of(engine: Engine) -> None:
    """The warnings of an unfinished run include the count, in status and in the transcript's title."""
    meta, lock = make_run(engine.project)
    write_events(engine, meta.run_id)
    (run,) = engine.snapshots()
    os.close(lock)

    assert ("2 lines of events.jsonl cannot be read",) == run.warnings


def test_the_exported_transcript_says_so(engine: Engine) -> None:
    """The exported transcript ends with the count, after all readable events."""
    meta = make_finished(engine.project)
    write_events(engine, meta.run_id)
    (run,) = engine.snapshots()
    document = "".join(run_markdown(run, engine.events(run.run_id), engine.result(run.run_id)))

    assert document.endswith("Here.\n\n*2 lines of events.jsonl cannot be read.*\n")


@pytest.mark.parametrize(
    ("count", "words"), [(0, ""), (1, "1 line of events.jsonl cannot be read"), (2, unreadable_lines(2))]
)
def test_the_count_in_words(count: int, words: str) -> None:
    """A count of zero has no words."""
    assert words == unreadable_lines(count)


def test_the_transcript_shows_each() -> None:
    """The transcript has a row for each unreadable line, and none for an empty one."""
    assert UNREADABLE == entry_of_line("readable", b'{"seq": 1, "type"', ProgressFormatter())
    assert entry_of_line("readable", b" ", ProgressFormatter()) is None
