"""The syntax of a filter, and the runs it passes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from subdeck.core.run.model import RunReason, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.runs.filter import LONGEST, Flags, parse_filter

from ..deck.test_hostile_text import HOSTILE
from ..fake_engine import a_run
from ..sample_runs import a_mate

RUN = a_run(
    0xABC,
    "failed",
    reason=RunReason.MODEL_ERROR,
    message="401 Invalid Key",
    meta_preset="Repo-Scout",
    meta_task="Find where requests are authenticated",
    meta_description="look at auth",
    meta_resolved_model="anthropic/claude-haiku",
    meta_agent="pi",
    meta_runner="tmux",
)


def passes(text: str, run: RunSnapshot = RUN, *, unseen: bool = False, marked: bool = False) -> bool:
    return parse_filter(text).passes(run, Flags(unseen, marked))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "scout",
        "FIND requests",
        "abc",
        "invalid key",
        '"Invalid Key"',
        '"where requests',
        "haiku",
        "model_error",
        "look auth",
        "status:failed",
        "status:running,failed",
        "s:f",
        "STATUS:Failed",
        "status:",
        "reason:model_error",
        "reason:budget,model",
        "-reason:budget",
        "preset:scout",
        'preset:"repo-s"',
        "preset:other,scout",
        "agent:pi",
        "runner:tmux",
        "model:haiku",
        "-status:running",
        "-docs",
        '-"key invalid"',
        "-",
        "- -",
        '""',
        '-""',
        "-preset:",
    ],
)
def test_passes(text: str) -> None:
    """Words match anywhere in a run's texts; a value matches a part of its field."""
    assert passes(text)
    assert parse_filter(text).error is None


def test_what_a_run_does_now_is_searched() -> None:
    """A word finds a running run by its activity."""
    assert passes("reading", a_run(1, activity="Reading src/auth.ts"))
    assert not passes("writing", a_run(1, activity="Reading src/auth.ts"))


@pytest.mark.parametrize(
    "text",
    [
        "elephant",
        "scout elephant",
        '"key invalid"',
        "-scout",
        '-"Invalid Key"',
        "status:running",
        "-status:failed,running",
        "reason:budget",
        "preset:docs",
        "agent:offline",
        "runner:process",
        "model:gpt",
        "group:abc",
        "scout -auth",
    ],
)
def test_keeps_back(text: str) -> None:
    """Every term has to match."""
    assert not passes(text)
    assert parse_filter(text).error is None


def test_what_the_operator_did_can_be_asked_for() -> None:
    """Marked and unread runs can be filtered like facts of a run."""
    assert passes("is:unread", unseen=True)
    assert not passes("is:unread")
    assert passes("is:selected,unread", marked=True)
    assert passes("-is:selected")
    assert not passes("-is:m", marked=True)


def test_a_group_is_found_by_its_id() -> None:
    """A group is found by the full or short id of its first run."""
    assert passes("group:000001", a_mate(2, first=1))
    assert not passes("group:000002", a_mate(2, first=1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stauts:failed", 'unknown key "stauts:"; did you mean status?'),
        ("x:y", 'unknown key "x:"; use one of status, preset, agent, model, host, group, runner, is'),
        ("stat:failed", 'unknown key "stat:"; did you mean status?'),
        ("status:gone", 'unknown value "gone" for status:; use one of queued, running, completed, failed, aborted'),
        ("status:failed,runing", 'unknown value "runing" for status:; did you mean running?'),
        ("is:unreadd", 'unknown value "unreadd" for is:;'),
        ("check:pased", 'unknown value "pased" for check:; did you mean passed?'),
        ("runner:tmx", 'unknown value "tmx" for runner:; did you mean tmux?'),
        ("is:odd", 'unknown value "odd" for is:; use one of unread, selected'),
    ],
)
def test_what_means_nothing_is_said(text: str, problem: str) -> None:
    """A mistake is explained with the valid choices, and the rest of the filter applies."""
    parsed = parse_filter(f"scout {text}")
    assert parsed.error is not None and parsed.error.advice.startswith(problem)
    assert parsed.passes(RUN, Flags(False, False))
    assert not passes(f"elephant {text}")


def test_quotes_make_a_word_of_a_key() -> None:
    """Quoted text may contain a colon."""
    run = a_run(1, meta_task="see http://x:80 first")
    assert passes('"http://x:80"', run)
    assert parse_filter('"http://x:80"').error is None
    assert not passes('"http://y"', run)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_a_filter_too(text: str) -> None:
    """Any written or stored text is read as a filter, on one line without control characters."""
    for written in (text, f"-{text}", f"preset:{text}", f'"{text}', f"{text}:{text}"):
        parsed = parse_filter(written)
        parsed.passes(RUN, Flags(False, False))
        parsed.passes(a_run(1, "failed", meta_task=text, meta_preset=text, message=text), Flags(True, True))
        assert len(parsed.text) <= LONGEST
        assert not [
            char
            for char in parsed.text + (parsed.error.advice if parsed.error else "")
            if ord(char) < 32 or 0x7F <= ord(char) < 0xA0
        ]


@pytest.mark.parametrize("seed", range(20))
def test_no_text_raises(seed: int) -> None:
    """Any mix of special characters is read as a filter."""
    chance = random.Random(seed)
    parts = ['"', "-", ":", ",", " ", "status", "is", "a", "s:", "preset:", "--", "unseen", "\\", "é"]
    for _ in range(300):
        text = "".join(chance.choices(parts, k=chance.randrange(12)))
        parsed = parse_filter(text)
        assert parsed.passes(RUN, Flags(False, False)) in (True, False)
        assert parse_filter(parsed.text).text == parsed.text


def ago(**since: float) -> RunSnapshot:
    return a_run(1, meta_created_at=(datetime.now(UTC) - timedelta(**since)).isoformat())


@pytest.mark.parametrize(
    ("text", "run", "expected"),
    [
        ("age:<1d", ago(hours=23), True),
        ("age:<1d", ago(hours=25), False),
        ("age:1d", ago(hours=23), True),
        ("age:>90m", ago(hours=2), True),
        ("age:>1w", ago(hours=2), False),
        ("-age:<1d", ago(hours=25), True),
        ("age:<1d", a_run(1, meta_created_at="yesterday"), False),
        ("after:yesterday", ago(minutes=1), True),
        ("after:2026-01-01", ago(minutes=1), True),
        ("after:2026-01-01T10:30 before:3000-01-01", ago(minutes=1), True),
        ("before:2026-01-01", ago(minutes=1), False),
        ("after:today before:00:00", ago(minutes=1), False),
        ("/requests? are\\s/", RUN, True),
        ("/^find.*ED$/", RUN, True),
        ("-/nowhere/", RUN, True),
        ("/nowhere|x/", RUN, False),
    ],
)
def test_bounds_and_expressions(text: str, run: RunSnapshot, expected: bool) -> None:
    """Age and launch are compared with the clock, and `/…/` is a regular expression that ignores case."""
    assert parse_filter(text).error is None
    assert expected is passes(text, run)


@pytest.mark.parametrize(
    ("text", "costs"),
    [("cost:>1", [1.5]), ("cost:<=1", [0.0, 1.0]), ("cost:1", [1.0, 1.5]), ("cost:<.5,>1", [0.0, 1.5])],
)
def test_cost_is_compared_in_dollars(text: str, costs: list[float]) -> None:
    """Several bounds are alternatives, and a bare number is the minimum."""
    assert costs == [cost for cost in (0.0, 1.0, 1.5) if passes(text, a_run(1, usage=Usage(cost=cost)))]


@pytest.mark.parametrize("text", ["age:", "age:<", "cost:>", "after:", "/", "//", "/a", "text:"])
def test_bound_that_is_being_typed_is_ignored(text: str) -> None:
    """A bound without a value yet causes no error, and a single `/` is a word."""
    assert parse_filter(text).error is None


@pytest.mark.parametrize(
    "text", ["age:yesterday", "age:5", "cost:lots", "cost:1h", "after:noon", "after:25:00", "before:1", "/(/"]
)
def test_bound_that_makes_no_sense_is_explained(text: str) -> None:
    """The error for an invalid bound shows the right form."""
    error = parse_filter(text).error
    assert error is not None
    assert "takes a value like" in error.what or "not a regular expression" in error.what


def test_text_in_the_files_is_left_to_who_searches_them() -> None:
    """The filter names the text to be searched in the files, with its case, and uses the result."""
    wanted = parse_filter('text:"Two words" -text:other')
    assert frozenset({"Two words", "other"}) == wanted.sought
    assert wanted.passes(RUN, Flags(False, False, frozenset({"Two words"})))
    assert not wanted.passes(RUN, Flags(False, False, frozenset({"Two words", "other"})))
    assert not wanted.passes(RUN, Flags(False, False))
