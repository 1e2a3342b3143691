"""Notifications outside of toasts: on the desktop and in the list of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from subdeck.core.config.settings import Notifications, Settings
from subdeck.core.paths import Project
from subdeck.tui.deck._toasts import unseen_text
from subdeck.tui.terminal.escapes import notification, through_tmux
from subdeck.tui.toasts import KEPT, ToastList

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened

HOSTILE = "\x1b]0;owned\x07 a;b\nc \x9b31m"


def test_what_asks_for_a_notification() -> None:
    """Each notification protocol has its own form; an unknown one sends nothing."""
    assert notification("osc9", "repo-scout", "31 functions") == "\x1b]9;repo-scout: 31 functions\x07"
    assert notification("osc777", "repo;scout", "31 functions") == "\x1b]777;notify;repo,scout;31 functions\x07"
    assert notification("off", "repo-scout", "31 functions") == ""


@pytest.mark.parametrize("protocol", ["osc9", "osc777"])
def test_untrusted_text_cannot_end_a_sequence(protocol: str) -> None:
    """A run's text adds no control characters to the sequence's own two."""
    sequence = notification(protocol, HOSTILE, HOSTILE * 100)
    controls = [char for char in sequence if ord(char) < 32 or 127 <= ord(char) < 160]
    assert controls == ["\x1b", "\x07"]
    assert len(sequence) < 500


def test_a_sequence_passes_through_tmux() -> None:
    """Inside tmux a sequence is wrapped with doubled escapes; elsewhere it is unchanged."""
    assert through_tmux("\x1b]9;x\x07", {"TMUX": "/tmp/t,1,0"}) == "\x1bPtmux;\x1b\x1b]9;x\x07\x1b\\"
    assert through_tmux("\x1b]9;x\x07", {}) == "\x1b]9;x\x07"
    assert through_tmux("", {"TMUX": "/tmp/t,1,0"}) == ""


@pytest.mark.parametrize(("desktop", "asked"), [("off", 0), ("osc9", 1)])
async def test_the_desktop_is_told_on_request(
    monkeypatch: pytest.MonkeyPatch, desktop: Literal["off", "osc9"], asked: int
) -> None:
    """Runs finishing together send one notification, if the settings enable any."""
    sent: list[str] = []
    monkeypatch.setattr("subdeck.tui.deck._toasts.write_to_terminal", lambda app, sequence: sent.append(sequence))
    engine = FakeEngine(a_run(1), a_run(2))
    engine.settings = Settings(notifications=Notifications(desktop=desktop))
    async with opened(engine) as deck:
        engine.tell(a_run(1, "completed"), a_run(2, "failed"))
        await deck.until(lambda: deck.toasts, "the toast")
        assert len(sent) == asked
        assert all("2 runs finished" in sequence for sequence in sent)


def test_old_messages_make_room() -> None:
    """The list holds the newest messages, newest first."""
    toasts = ToastList()
    for number in range(KEPT + 5):
        toasts.add(f"message {number}\nmore of it", "error")
    newest, *others = [entry.plain.split("\n") for entry in toasts.entries()]
    assert len(others) == KEPT - 1
    assert newest[0].endswith(f"✗  message {KEPT + 4}")
    assert newest[1].strip() == "more of it"


async def messages_shown(deck: Any) -> str:
    await deck.act("messages")
    await deck.until_text("Notifications")
    return deck.screen_text


async def test_all_messages_can_be_read_again() -> None:
    """The notifications list toasts, refusals and silent endings."""
    engine = FakeEngine(a_run(1), a_run(2))
    engine.settings = Settings(notifications=Notifications(toasts=False))
    async with opened(engine) as deck:
        engine.tell(a_run(1, "failed", message="401 [bold]key"))
        await deck.until_text("✗ repo-scout")
        await deck.press("u")
        await deck.until(lambda: deck.toasts, "the refusal")
        shown = await messages_shown(deck)
        assert "401 [bold]key" in shown
        assert "! " in shown and "Nothing to undo." in shown


async def test_no_messages_yet() -> None:
    """Before any notification the list says that it is empty."""
    async with opened(FakeEngine(a_run(1))) as deck:
        assert "No notifications yet." in await messages_shown(deck)


async def test_a_project_that_goes_away(tmp_path: Path) -> None:
    """A moved project directory is reported once and in the first line, and so is its return."""
    root = tmp_path / "shop"
    root.mkdir()
    engine = FakeEngine(a_run(1))
    engine.project = Project(str(root))
    async with opened(engine) as deck:
        root.rename(tmp_path / "elsewhere")
        engine.tell(removed=[run_id(1)])
        engine.tell()
        await deck.until_text("! missing")
        assert len([toast for toast in deck.toasts if "was moved or deleted" in toast]) == 1
        (tmp_path / "elsewhere").rename(root)
        engine.tell(a_run(1))
        await deck.until(lambda: "The project directory is back." in deck.toasts, "the good news")
        assert "! missing" not in deck.screen_text


async def test_a_project_that_was_never_there() -> None:
    """Only a change of the project directory is reported."""
    async with opened(FakeEngine(a_run(1))) as deck:
        assert deck.toasts == []


async def test_an_end_of_a_newer_schema_is_not_a_failure() -> None:
    """A run's unknown outcome is reported as a failure neither by toast nor summary."""
    unknown = a_run(1, "failed", newer_schema=2)
    assert unseen_text([unknown, a_run(2, "failed")]) == (
        "While you were away, 2 runs finished: 1 failed, 1 recorded by a newer subdeck."
    )
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        engine.tell(unknown)
        await deck.until(lambda: any("newer" in toast for toast in deck.toasts), "the toast")
        assert [entry.plain[10] for entry in deck.app.toasts.entries() if "newer" in entry.plain] == ["·"]
