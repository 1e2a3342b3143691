"""The palette: actions, runs, presets, filters and settings, found by typed text."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from subdeck.core.config.files import KEYS, example_settings
from subdeck.core.config.settings import Settings
from subdeck.core.paths import user_settings_file
from subdeck.tui.keys.actions import BY_ID
from subdeck.tui.keys.command import KeyContext
from subdeck.tui.palette._offers import Kind, Offer, line_of, matching, ready_file, run_offers, setting_offers
from subdeck.tui.palette._screen import OfferList, PaletteScreen
from subdeck.tui.terminal import handover

from ..fake_engine import FakeEngine, a_preset, a_run, run_id
from ..open_deck import Deck, opened


def an_engine() -> FakeEngine:
    return FakeEngine(
        a_run(1, "completed", meta_task="tighten the token check", meta_preset="reviewer"),
        a_run(2, "failed", meta_task="write the migration guide", meta_preset="docs-writer"),
        a_run(3, meta_task="watch the build", meta_preset="reviewer"),
        presets=[a_preset("reviewer"), a_preset("repo-scout", description="Looks around.")],
    )


async def ask(deck: Deck, typed: str) -> None:
    """Open the palette and type."""
    await deck.press(":")
    await deck.until(lambda: isinstance(deck.app.screen, PaletteScreen), "the palette")
    await deck.type(typed)
    await deck.pilot.pause()


def chosen(deck: Deck) -> Offer | None:
    return deck.app.screen.query_one(OfferList).chosen


@pytest.mark.parametrize("typed", ["token check", "migr guide", run_id(2)[-6:], "docs-writer failed run"])
async def test_a_run_is_found_by_task_preset_and_id(typed: str) -> None:
    """Words of the task, the preset or the id find a run, and Enter goes to it, even if a filter hides it."""
    async with opened(an_engine()) as deck:
        deck.main.runs.filter_by("status:running")
        await ask(deck, typed)
        offer = chosen(deck)
        assert offer is not None
        assert offer.kind is Kind.RUN
        await deck.press("enter")
        await deck.until(lambda: deck.main.run is not None and deck.main.run.run_id == offer.key, "the run")
        assert deck.main.panes.key_context is KeyContext.RUNS


async def test_a_preset_is_launched() -> None:
    """A preset opens the launch dialog with it, even if another one is highlighted."""
    async with opened(an_engine()) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await ask(deck, "preset repo-s")
        await deck.press("enter")
        await deck.until_text("Launch repo-scout")


async def test_a_filter_is_chosen() -> None:
    """Complete filters are offered, one for each preset, and the typed text as one; another ends the filter."""
    async with opened(an_engine()) as deck:
        for typed, wanted, left in (
            ("status:f", "status:failed", 1),
            ("filter reviewer", "preset:reviewer", 2),
            ("status:completed,failed", "status:completed,failed", 2),
            ("show all", "", 3),
        ):
            await ask(deck, typed)
            await deck.press("enter")
            await deck.until(lambda wanted=wanted: deck.main.runs.listing.filter.text == wanted, wanted)
            assert deck.main.runs.listing.shown == left


async def test_a_filter_with_a_mistake() -> None:
    """A filter with an unknown key or value is not offered, and its mistake is named."""
    async with opened(an_engine(), (80, 24)) as deck:
        await ask(deck, "runner:tmx")
        await deck.until_text("did you mean tmux?")
        assert chosen(deck) is None
        await deck.press("escape")
        await ask(deck, "stauts:failed")
        await deck.until_text("did you mean status?")


async def test_a_setting_is_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting shows its meaning and value, and opens in the editor at its line; a missing file is created."""
    edited: list[tuple[str, int | None]] = []
    monkeypatch.setattr(handover, "edit_file", lambda _, path, line: edited.append((path, line)) or "")
    async with opened(an_engine()) as deck:
        await ask(deck, "max_running")
        await deck.press("enter")
        await deck.until_text("Maximum number of parallel runs in the project.")
        assert "current   not set" in deck.screen_text
        assert not os.path.exists(user_settings_file())
        await deck.press("enter")
        await deck.until(lambda: edited, "the editor")
    ((path, line),) = edited
    assert path == user_settings_file()
    assert line is not None
    assert Path(path).read_text().split("\n")[line - 1] == "# max_running: 8"


async def test_readonly_offers_nothing_that_changes() -> None:
    """A read-only app offers no preset, and shows a setting without opening it."""
    async with opened(an_engine(), readonly=True) as deck:
        await ask(deck, "preset")
        offers = [offer.kind for offer in deck.app.screen.query_one(OfferList)._offers]
        assert Kind.PRESET not in offers
        await deck.press("escape")
        await ask(deck, "max_running")
        await deck.press("enter")
        await deck.until_text("Maximum number of parallel runs in the project.")
        assert "Open in editor" not in deck.screen_text


async def test_what_is_typed_may_lack_letters() -> None:
    """If nothing contains the words, titles with their letters in this order are offered; otherwise a note appears."""
    async with opened(an_engine()) as deck:
        await ask(deck, "cpyid")
        offer = chosen(deck)
        assert offer is not None
        assert offer.key == "copy_id"
        await deck.type("qqq")
        await deck.until_text("No matches.")
        await deck.press("enter")
        assert isinstance(deck.app.screen, PaletteScreen)


def test_the_best_comes_first() -> None:
    """A title that begins with the typed text comes first, then titles and then sentences that contain it."""
    offers = [
        Offer(Kind.ACTION, "1", "kill", "not to stop", "kill not to stop"),
        Offer(Kind.ACTION, "2", "do stop", "", "do stop"),
        Offer(Kind.ACTION, "3", "stop", "", "stop"),
        Offer(Kind.ACTION, "4", "nonstop", "", "nonstop"),
    ]
    assert [offer.key for offer in matching(offers, "stop")] == ["3", "2", "4", "1"]


def test_a_thousand_runs_are_no_burden() -> None:
    """Offering 1,000 runs and finding one of them takes no longer than a key may."""
    runs = [a_run(number, "completed", meta_task=f"task {number} " + "with many words " * 40) for number in range(1000)]
    begun = time.process_time()
    offers = list(run_offers(runs))
    made = time.process_time()
    assert [offer.title.split()[0] for offer in matching(offers, "task 777 many")] == ["✓"]
    assert made - begun < 0.25
    assert time.process_time() - made < 0.1


def test_every_setting_is_offered() -> None:
    """Each key of the settings file is offered, with its effective value, after the file itself."""
    assert [offer.key for offer in setting_offers(Settings())] == ["", *KEYS]


@pytest.mark.parametrize("typed", ["settings", "config", "config.yaml"])
async def test_the_settings_file_is_found(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both words for the settings find the file, which Enter opens in the editor, and every setting."""
    edited: list[tuple[str, int | None]] = []
    monkeypatch.setattr(handover, "edit_file", lambda _, path, line: edited.append((path, line)) or "")
    async with opened(an_engine()) as deck:
        await ask(deck, typed)
        offers = deck.app.screen.query_one(OfferList)._offers
        assert offers[0].key == ""
        if typed != "config.yaml":
            assert set(KEYS) <= {offer.key for offer in offers}
        await deck.press("enter")
        await deck.until(lambda: edited, "the editor")
    assert edited == [(user_settings_file(), 1)]


async def test_recent_actions_come_first() -> None:
    """The palette opens with the actions that you chose in it, the latest first, also after the next start."""
    for _ in range(2):
        async with opened(an_engine()) as deck:
            for typed in ("notifications", "grid", "notifications"):
                await ask(deck, typed)
                await deck.press("enter", "escape")
                await deck.until(lambda deck=deck: deck.app.screen is deck.main, "the deck again")
            await ask(deck, "")
            offers = deck.app.screen.query_one(OfferList)._offers
            assert [(offer.kind, offer.key) for offer in offers if offer.kind is Kind.RECENT] == [
                (Kind.RECENT, "messages"),
                (Kind.RECENT, "tiles"),
            ]
            assert offers[0].key == "messages"
            assert sum(offer.key == "messages" for offer in offers) == 1
    async with opened(an_engine()) as deck:
        await ask(deck, "")
        assert chosen(deck) is not None
        await deck.until_text("recent  notifications")


async def test_what_the_place_offers_comes_before_the_rest() -> None:
    """Without recent actions, the palette opens with the common actions of the focused pane that are possible now."""
    async with opened(an_engine()) as deck:
        for key, place in (("2", KeyContext.RUNS), ("3", KeyContext.TRANSCRIPT)):
            await deck.press(key)
            await ask(deck, "")
            offer = chosen(deck)
            assert offer is not None
            assert place in BY_ID[offer.key].key_contexts
            offered = [offer.key for offer in deck.app.screen.query_one(OfferList)._offers]
            assert offered.index("messages") < offered.index("create_preset")
            assert "allow" not in offered
            await deck.press("escape")


def test_the_line_of_a_setting(tmp_path: Path) -> None:
    """A setting's own line is found in any spelling before a commented one; a missing setting is added to its group."""
    text = "# grace_seconds: 3\nlimits:\n  stall: 10m\n\ngrace_seconds: 5\n# logs:\n#   stdout_mb: 1\n# copy: 2\n"
    keys = ("advanced.grace_seconds", "limits.stall", "limits.timeout", "logs.stdout_mb", "app.theme")
    assert [5, 3, 2, 7, 8] == [line_of(text, key) for key in keys]
    grouped = "# worktree:\n##  what\n#   copy: [a]\nretention:\n  # days: 3\n  keep: 4\nkeep: 5\nworktree_link: [b]\n"
    keys = ("worktree.copy", "worktree.link", "worktree.setup", "retention.keep")
    assert [3, 8, 1, 6] == [line_of(grouped, key) for key in keys]
    example = example_settings()
    for name, key in KEYS.items():
        line = example.split("\n")[line_of(example, name) - 1]
        assert key.setting.is_rare or f"{name.rpartition('.')[2]}:" in line
    assert "# hosts:" == example.split("\n")[line_of(example, "hosts.tls") - 1]
    path = str(tmp_path / "new" / "settings.yml")
    assert ready_file(path, "app.theme") == line_of(example, "app.theme")
    assert Path(path).read_text() == example
