"""Searching all runs from the deck: hits appear while typing, and open at their line."""

from __future__ import annotations

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText
from subdeck.tui.keys.command import KeyContext
from subdeck.tui.search import _screen as search_screen
from subdeck.tui.search._hits import HitList, parse_query
from subdeck.tui.search._screen import SearchScreen

from ...factories import make_meta
from ..deck.test_hostile_text import HOSTILE, raw_controls
from ..fake_engine import FakeEngine, a_preset, a_run, run_id, stamp
from ..open_deck import Deck, opened, text_at_cursor


def text(seq: int, said: str) -> AssistantText:
    return AssistantText(seq=seq, ts=stamp(seq), text=said)


def an_engine() -> FakeEngine:
    """Return three runs of 200 lines: the needle is in line 40 of the first, and in 80 and 90 of the third."""
    runs = [a_run(1, "completed", last_seq=200), a_run(2, "failed", last_seq=200), a_run(3, "completed", last_seq=200)]
    engine = FakeEngine(*runs, presets=[a_preset()])
    needles = {1: (40,), 2: (), 3: (80, 90)}
    for number, lines in needles.items():
        said = [text(n, f"run {number} line {n} {'Needle' if n in lines else 'hay'}") for n in range(1, 201)]
        engine.write(run_id(number), *said)
    return engine


async def search(deck: Deck, words: str) -> None:
    await deck.press("ctrl+f")
    await deck.until(lambda: isinstance(deck.app.screen, SearchScreen), "the search")
    await deck.type(words)


def hits(deck: Deck) -> list[str]:
    return [row for row in deck.rows(deck.app.screen.query_one(HitList)) if row]


async def found(deck: Deck, said: str) -> None:
    edge = deck.app.screen.query_one("#search-all")
    await deck.until(lambda: str(edge.border_subtitle).startswith(f"{said} "), said)


async def test_hits_come_as_one_types_and_open_at_their_line() -> None:
    """The newest run comes first; Enter shows the transcript with the cursor on the line, in an active search."""
    async with opened(an_engine()) as deck:
        await search(deck, "needle")
        await found(deck, "3 hits in 2 runs")
        assert ["run 3 line 80 Needle", "run 3 line 90 Needle", "run 1 line 40 Needle"] == [
            row[row.index("run") :] for row in hits(deck)
        ]
        await deck.press("down", "down", "enter")
        transcript = deck.main.transcript
        await deck.until(lambda: text_at_cursor(transcript) == "run 1 line 40 Needle", "the line")
        assert (run_id(1), KeyContext.TRANSCRIPT) == (deck.main.runs.selected, deck.main.panes.key_context)
        await deck.until(lambda: "match 1/1" in str(transcript.border_subtitle), "the search in the transcript")
        await deck.press("escape")
        await deck.until(lambda: "match" not in str(transcript.border_subtitle), "its end")


async def test_next_hit_is_one_key_away() -> None:
    """Reopened, the search is where it was left."""
    async with opened(an_engine()) as deck:
        await search(deck, "needle")
        await found(deck, "3 hits in 2 runs")
        await deck.press("down", "enter")
        await deck.until(lambda: text_at_cursor(deck.main.transcript) == "run 3 line 90 Needle", "the line")
        await deck.press("ctrl+f")
        await found(deck, "3 hits in 2 runs")
        await deck.until(lambda: deck.app.screen.query_one(HitList).cursor == 1, "the hit")
        await deck.press("down", "enter")
        await deck.until(lambda: text_at_cursor(deck.main.transcript) == "run 1 line 40 Needle", "the next one")


async def test_line_before_what_was_read_is_shown_once_it_is() -> None:
    """A long transcript is loaded from its end, and an earlier line is shown once it is counted."""
    engine = an_engine()
    long = [text(n, f"{'Nadel' if n == 3 else 'x'} {'y' * 200}") for n in range(1, 2000)]
    engine.write(run_id(2), *long)
    async with opened(engine) as deck:
        await search(deck, "nadel")
        await found(deck, "1 hit in 1 run")
        await deck.press("enter")
        await deck.until(lambda: text_at_cursor(deck.main.transcript).startswith("Nadel"), "the line")


async def test_terms_of_the_filter_choose_the_runs() -> None:
    """The text to search is everything except terms, case included."""
    async with opened(an_engine()) as deck:
        await search(deck, "status:failed hay")
        await found(deck, "200 hits in 1 run")
        await deck.press("escape")
        await search(deck, "status:nonsense hay")
        await deck.until_text('unknown value "nonsense" for status:')
        assert [] == hits(deck)[1:]


async def test_expression_is_searched_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text between slashes is an expression, and one that would run for ever does not block the app."""
    engine = an_engine()
    engine.write(run_id(3), text(201, "a" * 60 + "!"))
    async with opened(engine) as deck:
        await search(deck, "/line [48]0 N/")
        await found(deck, "2 hits in 2 runs")
        await deck.press("escape")
        await search(deck, "/(a+)+$/")
        await found(deck, "searching…")
        await deck.press("escape")
        await search(deck, "line 90 Needle")
        await found(deck, "1 hit in 1 run")


async def test_nothing_found_is_said() -> None:
    """An empty search and one without a hit explain themselves."""
    async with opened(an_engine()) as deck:
        await search(deck, "")
        await deck.until_text("Searches all tasks, answers and transcripts")
        await deck.type("nowhere")
        await deck.until_text("No matches.")
        assert "did you mean" not in deck.screen_text
        await deck.type(" stauts:failed")
        await deck.until_text('"stauts:" is not a filter key; did you mean status?')
        await deck.press("enter")
        assert isinstance(deck.app.screen, SearchScreen)


async def test_search_ends_where_nobody_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search stops at the maximum number of hits, with a note."""
    monkeypatch.setattr(search_screen, "MOST_HITS", 50)
    async with opened(an_engine()) as deck:
        await search(deck, "line")
        await found(deck, "first 50 hits in 1 run")


async def test_hit_in_the_task_opens_the_prompt() -> None:
    """A hit outside the events is opened in the detail of its run."""
    engine = an_engine()
    made = make_meta(run_id(2), task="find the Nadel")
    from msgspec.json import encode

    engine.write_lines(run_id(2), paths.META, encode(made))
    async with opened(engine) as deck:
        await search(deck, "nadel")
        await found(deck, "1 hit in 1 run")
        await deck.press("enter")
        await deck.until_text("▾ Prompt")
        assert "[4 Overview]" in deck.screen_text


async def test_filter_searches_the_files_for_a_text() -> None:
    """`text:` shows the runs whose files contain the text, including later additions."""
    engine = an_engine()
    async with opened(engine) as deck:
        shown = deck.main.runs.listing.shown_ids
        await deck.press("2", "slash")
        await deck.type("text:Needle")
        await deck.until(lambda: [run_id(3), run_id(1)] == [name for name in shown() if name != run_id(2)], "the runs")
        await deck.press("enter")
        engine.write(run_id(2), text(201, "a Needle at last"))
        engine.tell(a_run(2, "failed", last_seq=201))
        await deck.until(lambda: 3 == len(shown()), "the run that holds it now")
        await deck.press("escape", "escape")
        await deck.until(lambda: {} == deck.main.run_store.holding, "the end of the search")


async def test_letters_are_typed_and_hostile_text_is_clean() -> None:
    """In the field no key acts, and a run's text cannot control the terminal."""
    engine = an_engine()
    engine.write(run_id(1), text(201, f"spike {HOSTILE}"))
    async with opened(engine) as deck:
        await search(deck, "spike")
        await found(deck, "1 hit in 1 run")
        assert [] == raw_controls(deck)
        assert [] == engine.deleted


@pytest.mark.parametrize("size", [(80, 24), (130, 34), (40, 12)])
async def test_fits_any_screen(size: tuple[int, int]) -> None:
    """Field, hits and keys fit small screens too."""
    async with opened(an_engine(), size) as deck:
        await search(deck, "needle")
        await deck.until(lambda: 3 == deck.app.screen.query_one(HitList).row_count, "the hits")
        await deck.until_text("Needle")


@pytest.mark.parametrize(
    ("typed", "sought", "is_regex", "ignores_case"),
    [
        ("connection reset", "connection reset", False, True),
        ("Connection  status:failed", "Connection", False, False),
        ("/a.b/ age:<1d", "a.b", True, True),
        ("http://x y:z", "http://x y:z", False, True),
        ('"key": 1', '"key": 1', False, True),
        ('text:"two words" preset:a', "two words", False, True),
        ("/", None, False, False),
        ("status:failed", None, False, False),
    ],
)
def test_what_is_sought(typed: str, sought: str | None, is_regex: bool, ignores_case: bool) -> None:
    """Terms are removed, and the rest is searched literally."""
    query = parse_query(typed)
    assert "" == query.error
    if sought is None:
        assert query.pattern is None
    else:
        assert query.pattern is not None
        assert (sought, is_regex, ignores_case) == (
            query.pattern.text,
            query.pattern.is_regex,
            query.pattern.ignores_case,
        )
