"""What can be written into a filter, and what it lets pass."""

from __future__ import annotations

import random

import pytest
from subdeck.core.run.model import RunReason
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.runs.filter import LONGEST, Flags, parse_filter

from .fake_engine import a_run
from .some_runs import a_mate
from .test_hostile import HOSTILE

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
    """Words stand anywhere in what a run is about; a value is a part of what it is compared with."""
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
        "preset:docs",
        "agent:offline",
        "runner:process",
        "model:gpt",
        "group:abc",
        "scout -auth",
    ],
)
def test_keeps_back(text: str) -> None:
    """Each term has to hold."""
    assert not passes(text)
    assert parse_filter(text).error is None


def test_what_the_operator_did_can_be_asked_for() -> None:
    """Marks and what was not looked at are no facts of a run, and can be asked for like those."""
    assert passes("is:unseen", unseen=True)
    assert not passes("is:unseen")
    assert passes("is:marked,unseen", marked=True)
    assert passes("-is:marked")
    assert not passes("-is:m", marked=True)


def test_a_group_is_found_by_its_id() -> None:
    """The id of a group is that of its first run; the short one is enough."""
    assert passes("group:000001", a_mate(2, first=1))
    assert not passes("group:000002", a_mate(2, first=1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stauts:failed", 'unknown key "stauts:"; did you mean status?'),
        ("x:y", 'unknown key "x:"; the keys are status, preset, agent, runner, model, group, is'),
        ("status:gone", 'status: cannot be "gone", only queued, running, completed, failed, aborted'),
        ("is:odd", 'is: cannot be "odd", only unseen, marked'),
    ],
)
def test_what_means_nothing_is_said(text: str, problem: str) -> None:
    """A mistake is told with what there is instead; the rest of the filter holds."""
    parsed = parse_filter(f"scout {text}")
    assert parsed.error is not None and parsed.error.advice.startswith(problem)
    assert parsed.passes(RUN, Flags(False, False))
    assert not passes(f"elephant {text}")


def test_quotes_make_a_word_of_a_key() -> None:
    """What has a colon in it can be looked for."""
    run = a_run(1, meta_task="see http://x:80 first")
    assert passes('"http://x:80"', run)
    assert parse_filter('"http://x:80"').error is None
    assert not passes('"http://y"', run)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_a_filter_too(text: str) -> None:
    """Whatever is written or stored is read as some filter, on one line without control characters."""
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
    """Any mix of the signs that mean something is read as some filter."""
    chance = random.Random(seed)
    parts = ['"', "-", ":", ",", " ", "status", "is", "a", "s:", "preset:", "--", "unseen", "\\", "é"]
    for _ in range(300):
        text = "".join(chance.choices(parts, k=chance.randrange(12)))
        parsed = parse_filter(text)
        assert parsed.passes(RUN, Flags(False, False)) in (True, False)
        assert parse_filter(parsed.text).text == parsed.text
