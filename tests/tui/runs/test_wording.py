"""Figures and states in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len
from subdeck.core.run import describe
from subdeck.core.run.describe import NO_MODEL
from subdeck.core.run.model import RunReason
from subdeck.core.run.snapshot import Checking, Counts
from subdeck.tui.text import format as present
from subdeck.tui.text.cells import fit, wrap

from ..fake_engine import START, a_run


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("running", "● running"),
        ("queued", "◌ queued"),
        ("completed", "✓ completed"),
        ("failed", "✗ failed"),
        ("aborted", "⊘ aborted"),
    ],
)
def test_state_is_glyph_and_word(status: str, shown: str) -> None:
    """A state is always shown by glyph and word."""
    assert describe.state(a_run(1, status)) == shown


@pytest.mark.parametrize(("ahead", "shown"), [(0, "queued, next"), (2, "queued, 2 ahead")])
def test_a_queued_run_says_its_place(ahead: int, shown: str) -> None:
    """A queued run's row shows the number of runs before it."""
    assert describe.doing(a_run(1, "queued", ahead=ahead)) == shown


def test_a_run_says_what_it_does() -> None:
    """A row shows the sentence being written, or the last activity."""
    assert describe.doing(a_run(1, activity="Reading a.py", sentence="It")) == "It"
    assert describe.doing(a_run(1, activity="Reading a.py", sentence="")) == "Reading a.py"
    assert describe.doing(a_run(1, activity="", sentence="")) == "starting"


def test_an_end_says_its_reason() -> None:
    """Every outcome except a plain success has its reason before the message."""
    assert describe.doing(a_run(1, "completed", message="31 functions")) == "31 functions"
    assert describe.doing(a_run(1, "failed", message="401")) == "model_error: 401"
    assert describe.doing(a_run(1, "completed", reason=RunReason.TRUNCATED, message="and")) == "truncated: and"
    assert describe.doing(a_run(1, "aborted")) == "stopped"
    assert describe.doing(a_run(1, "aborted", message="stopped by the user")) == "stopped by the user"


def test_a_row_has_no_marks_of_markdown() -> None:
    """A row shows the agent's text without markdown marks, and an error unchanged."""
    said = "## Done\n`src/a.py` is **fixed**, see [the notes](n.md)"
    assert describe.doing(a_run(1, "completed", message=said)) == "Done src/a.py is fixed, see the notes (n.md)"
    assert describe.doing(a_run(1, sentence="Now I read `src/au")) == "Now I read src/au"
    assert describe.doing(a_run(1, "failed", message="no `token` in *")) == "model_error: no `token` in *"


def test_the_offline_agent_tells_what_it_found() -> None:
    """The offline agent's answer begins with the line about no model, and a row shows the rest."""
    answer = f"{NO_MODEL} It looked for `token`: 5 matches in 2 files."
    assert describe.doing(a_run(1, "completed", message=answer)) == "It looked for token: 5 matches in 2 files."
    assert describe.doing(a_run(1, "completed", message=answer), 20) == "It looked for token…"
    assert describe.doing(a_run(1, "completed", message=NO_MODEL)) == NO_MODEL


def test_a_run_of_another_machine_is_not_called_running() -> None:
    """A run of another machine is not shown as running if its state is unknown."""
    assert describe.state(a_run(1, elsewhere=True)).startswith("◇")
    assert "another machine" in describe.doing(a_run(1, elsewhere=True))


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-5, "0:00"), (42, "0:42"), (67, "1:07"), (3723, "1:02:03"), (97_300, "1d 3h")]
)
def test_clock(seconds: float, shown: str) -> None:
    """Durations are short and never negative, even if the wall clock goes back."""
    assert describe.clock(seconds) == shown


def test_elapsed_of_a_running_run_goes_on() -> None:
    """A running run counts from its start to now, a finished one shows its duration."""
    assert describe.elapsed(a_run(0), START + timedelta(seconds=67)) == "1:07"
    assert describe.elapsed(a_run(0, "completed"), datetime.now(UTC)) == "0:31"
    assert describe.elapsed(a_run(0, started_at="garbage"), datetime.now(UTC)) == "–"


def test_a_check_takes_no_time_of_the_run() -> None:
    """During a check the elapsed time stays at the run's final duration, and never gets shorter."""
    since = (START + timedelta(seconds=31)).isoformat()
    run = a_run(0, checking=Checking("tests", since))
    assert describe.elapsed(run, START + timedelta(seconds=67)) == "0:31"
    assert describe.elapsed(a_run(0, checking=Checking("tests", "")), START + timedelta(seconds=67)) == "1:07"


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "–"), (812, "812"), (3200, "3.2k"), (120_000, "120k"), (1_200_000, "1.2M")]
)
def test_tokens(count: int, shown: str) -> None:
    """Token counts keep to five cells."""
    assert describe.tokens(count) == shown


@pytest.mark.parametrize("text", ["short", "x" * 500, "漢字" * 40, "🦀" * 50, "שלום " * 30])
def test_fit_is_exact(text: str) -> None:
    """A column keeps its exact width, also with wide characters."""
    assert {cell_len(fit(text, width)) for width in (1, 7, 20)} == {1, 7, 20}


@pytest.mark.parametrize(
    "text", ["plain words that go on and on", "漢字" * 40, "x" * 10_000, "  indented " * 20, "", "a\n\nb"]
)
def test_wrapping_loses_nothing_and_keeps_the_width(text: str) -> None:
    """No row is wider than the pane, and only spaces at breaks are dropped."""
    rows = wrap(text, 17)
    assert max(cell_len(row) for row in rows) <= 17
    assert "".join("".join(rows).split()) == "".join(text.split())


def test_paths_are_cut_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is cut in the middle, and the home directory is a tilde."""
    monkeypatch.setenv("HOME", "/home/me")
    assert present.short_path("/home/me/src/shop") == "~/src/shop"
    assert present.short_path("/home/meadow") == "/home/meadow"
    assert len(present.short_path("/a/very/long/path/indeed", 12)) == 12


def test_quitting_says_what_goes_on() -> None:
    """The last line counts the runs still running, and is empty without any."""
    assert present.farewell(Counts()) == ""
    assert present.farewell(Counts(running=1)) == "1 run is still running. subdeck status shows it."
    assert present.farewell(Counts(running=2)) == "2 runs are still running. subdeck status shows them."
