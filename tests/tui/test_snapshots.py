"""Whole screens as text, at the three sizes; `make snapshots` rewrites them for review."""

from __future__ import annotations

import difflib
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.doctor import Check, State
from subdeck.core.presets.file import Preset, PresetProblem
from subdeck.core.run.model import PresetSource, RunReason, Usage, WaitsFor
from subdeck.core.run.placement import Place, PlaceState
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.detail import _reader
from subdeck.tui.detail.page import Tab
from subdeck.tui.dialogs.reader import HelpScreen
from subdeck.tui.hosts import screen as screen_of_hosts, watch
from subdeck.tui.runs import _rows, store

from . import fake_engine
from .detail.test_detail import Scene, detail_of, tab
from .fake_engine import FakeEngine, a_preset, a_run, ended, run_id, some_events, stamp
from .hosts.test_view import Hosts, a_host, iso, view_of
from .launch_dialog import dialog_of
from .open_deck import Deck, opened
from .real_engine import until_screen
from .runs.test_host_column import a_remote_run
from .sample_runs import a_mate

KEPT = Path(__file__).parent / "snapshots"

START = datetime(2026, 1, 2, 20, 0).astimezone(UTC)
"""Eight in the evening, in any time zone."""
SMALL, MIDDLE, LARGE = (80, 24), (120, 30), (200, 50)


class FrozenTime(datetime):
    """A clock stopped four minutes after the first run."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return (START + timedelta(minutes=4)).astimezone(tz)


@pytest.fixture(autouse=True)
def one_time_on_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the screen independent of the time and machine of the test."""
    monkeypatch.setattr(fake_engine, "START", START)
    for module in (_rows, store, _reader):
        monkeypatch.setattr(module, "datetime", FrozenTime)
    pi = Check("pi", State.PROBLEM, "not on PATH", "npm install -g @earendil-works/pi-coding-agent")
    monkeypatch.setattr("subdeck.core.doctor.missing_programs", lambda *_: (pi,))


@pytest.fixture
def write_anew(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--write-snapshots"))


async def compare(deck: Deck, name: str, write_anew: bool) -> None:
    """Wait for the saved screen, and fail with the difference; with `write_anew`, save the screen after a while."""
    file = KEPT / f"{name}-{deck.app.size.width}x{deck.app.size.height}.txt"
    if write_anew:
        await deck.pilot.pause(1.0)
        file.write_text(screen(deck), encoding="utf-8")
        return
    kept = file.read_text(encoding="utf-8")
    with suppress(AssertionError):
        await deck.until(lambda: screen(deck) == kept, file.name, timeout=8)
    before, now = (text.splitlines(keepends=True) for text in (kept, screen(deck)))
    if differing := "".join(difflib.unified_diff(before, now, file.name, "the screen")):
        pytest.fail(differing, pytrace=False)


def screen(deck: Deck) -> str:
    return "".join(line.rstrip() + "\n" for line in deck.screen_text.split("\n"))


def busy_runs() -> list[RunSnapshot]:
    """Return runs of every status, a group, running runs with words, and figures of several lengths."""
    used = Usage(input=8_000, output=120, cost=0.031, turns=3, tool_uses=4)
    return [
        a_run(60, meta_task="find where requests are authenticated", activity="Reading src/auth.ts", usage=used),
        a_mate(30, first=30, size=3, meta_preset="reviewer", meta_task="review the parser", activity="$ pytest -q"),
        a_mate(31, "completed", first=30, size=3, meta_preset="reviewer", meta_task="review the tokens", usage=used),
        a_mate(32, "queued", first=30, size=3, meta_preset="reviewer", meta_task="review the orders", ahead=0),
        a_run(20, "failed", meta_task="check the error paths", message="401 Invalid API key", usage=Usage(cost=1.5)),
        a_run(10, "aborted", meta_preset="docs-writer", meta_task="write the migration guide for everybody"),
        a_run(5, "completed", meta_preset=None, meta_task="列出公共函数 🙂", message="31 functions in 6 files"),
    ]


def some_presets() -> list[Preset]:
    return [
        a_preset(description="Fast repo exploration"),
        a_preset("reviewer", source=PresetSource.GLOBAL, model=None, warnings=("unknown key: modell",)),
        a_preset("a-preset-with-a-very-long-name", source=PresetSource.BUNDLED),
    ]


def busy_engine() -> FakeEngine:
    broken = PresetProblem(
        path="/src/shop/.pi/subagents/broken.md",
        message="tools: a list or words with commas between",
        line=3,
        source=PresetSource.PROJECT,
        name="broken",
    )
    engine = FakeEngine(*busy_runs(), presets=some_presets(), problems=[broken])
    engine.untold = tuple(run for run in busy_runs() if run.run_id in (run_id(20), run_id(31)))
    engine.write(run_id(60), *some_events())
    return engine


@pytest.mark.parametrize("size", [SMALL, MIDDLE, LARGE])
async def test_the_busy_deck(size: tuple[int, int], write_anew: bool) -> None:
    """The deck shows presets with a broken one, runs of each status, a group, unread results and a transcript."""
    async with opened(busy_engine(), size) as deck:
        await deck.until(lambda: deck.main.run_store.unseen, "what was not looked at")
        deck.app.clear_notifications()
        await compare(deck, "deck", write_anew)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_the_launch_dialog(size: tuple[int, int], write_anew: bool) -> None:
    """The launch dialog shows the task and all options, with the keys and the button."""
    async with opened(FakeEngine(presets=some_presets()), size) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("find where requests are authenticated")
        await compare(deck, "launch", write_anew)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_facts_of_a_run(project_dir: Path, size: tuple[int, int], write_anew: bool) -> None:
    """The overview of a run shows its outcome first, then the launch, the settings and folding sections."""
    scene = Scene(project_dir, a_run(1, "failed", meta_task="check the error paths", meta_description="errors"))
    scene.write(*some_events(), ended(20, "failed", "model_error"))
    scene.end("Half of it.", RunReason.MODEL_ERROR, error_message="401 Invalid API key", ended_at=stamp(32))
    for file in scene.run_dir.iterdir():
        os.utime(file, (START.timestamp(), START.timestamp()))
    async with opened(scene.engine, size) as deck:
        shown = await detail_of(deck)
        await tab(deck, shown, "4", Tab.OVERVIEW)
        await compare(deck, "facts", write_anew)


async def test_the_help(write_anew: bool) -> None:
    """The help lists every key that works here first, and disabled ones with the reason."""
    async with opened(busy_engine(), SMALL) as deck:
        deck.app.clear_notifications()
        await deck.press("question_mark")
        await until_screen(deck, HelpScreen)
        await compare(deck, "help", write_anew)


def runs_on_hosts() -> list[RunSnapshot]:
    """Return a running run, an unknown one and two waiting ones."""
    waits = Place(PlaceState.WAITS)
    return [
        a_remote_run(60, meta_task="port the parser", activity="Reading src/parser.py"),
        a_remote_run(50, host="h03", elsewhere=True, meta_task="port the lexer", last_event_at=stamp(50)),
        a_remote_run(40, "queued", host="", meta_task="wait for any", waits_for=WaitsFor.HOST, ahead=12, place=waits),
        a_remote_run(30, "queued", host="", meta_task="train", waits_for=WaitsFor.HOST,
                     place=Place(PlaceState.WAITS, why="no host has gpu")),
        a_run(20, "completed", meta_task="what is here", message="31 functions in 6 files"),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_runs_on_hosts(size: tuple[int, int], write_anew: bool) -> None:
    """The deck shows the column of hosts, unknown and waiting runs, and the number of unreachable ones."""
    async with opened(FakeEngine(*runs_on_hosts()), size) as deck:
        await compare(deck, "on-hosts", write_anew)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_the_hosts(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], write_anew: bool
) -> None:
    """The hosts screen shows problems above, a row for each host, and the selected host's details below."""
    for module in (screen_of_hosts, watch):
        monkeypatch.setattr(module, "datetime", FrozenTime)
    now = FrozenTime.now(UTC)
    hosts = Hosts(project_dir, a_run(1, "completed"), hosts=HostsSettings(attach={"h10": "me@h10"}))
    faults = ("me@h11: Permission denied (publickey)",)
    hosts.tell(
        *(a_host(f"h0{number}", heard_at=iso(now), used=number, runs=number % 3) for number in range(1, 6)),
        a_host("h09-gpu", in_reach=False, heard_at=iso(now - timedelta(minutes=9)), labels={"gpu": 2.0}),
        a_host("h10", subdeck="0.0.9", heard_at=iso(now), address="me@h10"),
        faults=faults,
        at=now,
    )
    async with opened(hosts.engine, size) as deck:
        await view_of(deck)
        await deck.until_text("online")
        await deck.press("G")
        await compare(deck, "hosts", write_anew)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_the_empty_project(size: tuple[int, int], write_anew: bool) -> None:
    """The empty project shows a new user the keys to press, the places of presets, and missing programs."""
    async with opened(FakeEngine(), size) as deck:
        await deck.until(lambda: deck.main.presets._missing, "the look at what is missing")
        await compare(deck, "empty", write_anew)
