"""Messages and interruptions from the deck: to one run or several, and the refusals."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from subdeck.core.errors import RunBusy
from subdeck.core.project.talk import Sent
from subdeck.core.run.events import Message
from subdeck.core.run.model import MessageState
from subdeck.core.run.snapshot import RunSnapshot

from ..fake_engine import FakeEngine, a_run, run_id, some_events, stamp
from ..open_deck import Deck, opened


def a_listener(number: int = 1, status: str = "running", **fields: Any) -> RunSnapshot:
    return a_run(number, status, meta_talk=True, **fields)


async def test_s_says_something_to_a_running_run() -> None:
    """`s` opens a line at the transcript; Enter sends it and restores the focus."""
    engine = FakeEngine(a_listener())
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.until_text("▸ to repo-scout")
        await deck.type("leave the parser alone")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the message")
        assert engine.told == [("message", run_id(1), "leave the parser alone")]
        await deck.until(lambda: deck.main.runs.has_focus, "the keys back in the runs")
        assert "▸ to repo-scout" not in deck.screen_text


async def test_a_message_of_several_lines() -> None:
    """A key begins a new line, and pasted text keeps its lines."""
    engine = FakeEngine(a_listener())
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("one")
        await deck.press("ctrl+j")
        await deck.type("two")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the message")
        assert engine.told[0][2] == "one\ntwo"


async def test_a_message_written_in_the_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """`^e` opens the typed text in the user's editor and reloads the result."""
    monkeypatch.setattr(
        "subdeck.tui.terminal.handover.edit_text", lambda _app, text, *, name: (f"{text} and more\n", "")
    )
    engine = FakeEngine(a_listener())
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("this")
        await deck.press("ctrl+e", "enter")
        await deck.until(lambda: engine.told, "the message")
        assert engine.told[0][2] == "this and more"


async def test_what_was_left_unsaid_is_kept() -> None:
    """Escape sends nothing, and the typed text is kept for the same run only."""
    engine = FakeEngine(a_listener(1), a_listener(2))
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("perhaps")
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the keys back in the runs")
        await deck.press("j", "s", "enter")
        await deck.until_text("Type a message")
        await deck.press("escape", "k", "s", "enter")
        await deck.until(lambda: engine.told, "the message")
        assert engine.told == [("message", run_id(2), "perhaps")]


async def test_what_was_sent_after_leaving_is_not_kept() -> None:
    """A message being sent when its line is closed is sent once, and is not kept as unsent."""
    engine, way, send = FakeEngine(a_listener(1)), threading.Event(), FakeEngine.send

    def slow(name: str, text: str) -> Sent:
        way.wait(30)
        return send(engine, name, text)

    engine.send = slow  # type: ignore[method-assign]
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("perhaps")
        await deck.press("enter", "escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the keys back in the runs")
        way.set()
        await deck.until(lambda: not deck.main.talk._is_sending, "the message to be sent")
        assert [("message", run_id(1), "perhaps")] == engine.told
        assert () == deck.main.talk.unsent


async def test_what_is_typed_while_a_message_is_sent_stays() -> None:
    """Only the sent text is dropped: text that has changed since stays in its line."""
    engine, way, send = FakeEngine(a_listener(1)), threading.Event(), FakeEngine.send

    def slow(name: str, text: str) -> Sent:
        way.wait(30)
        return send(engine, name, text)

    engine.send = slow  # type: ignore[method-assign]
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("one")
        await deck.press("enter")
        await deck.type(" two")
        way.set()
        await deck.until(lambda: not deck.main.talk._is_sending, "the message to be sent")
        assert [("message", run_id(1), "one")] == engine.told
        assert deck.main.talk.is_open
        assert "one two" in deck.screen_text


async def test_one_message_to_all_that_are_marked() -> None:
    """Marked interactive runs get the message, and one that refuses it is named."""
    engine = FakeEngine(a_listener(1), a_listener(2), a_listener(3), a_run(4, "completed"))
    engine.talk_errors[run_id(2)] = RunBusy("too late: run 000002 has just finished")
    async with opened(engine) as deck:
        await deck.act("mark_all")
        await deck.press("s")
        await deck.until_text("to 3 runs (selected)")
        await deck.type("stop at noon")
        await deck.press("enter")
        await deck.until(lambda: len(engine.told) == 2, "two messages")
        assert {run_id(1), run_id(3)} == {name for _, name, _ in engine.told}
        await deck.until(lambda: any("too late" in toast for toast in deck.toasts), "who did not get it")


async def test_a_refused_message_stays_in_its_line() -> None:
    """A refused message stays in its line, with the reason below."""
    engine = FakeEngine(a_listener())
    engine.talk_errors[run_id(1)] = RunBusy("too late: run 000001 has just finished")
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.type("hurry")
        await deck.press("enter")
        await deck.until_text("too late")
        assert "hurry" in deck.screen_text


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (a_run(1, meta_talk=False, meta_session_path="/s"), "non-interactive"),
        (a_run(1), "older subdeck"),
        (a_listener(elsewhere=True), "another machine"),
        (a_listener(foreign=True), "untrusted"),
    ],
)
@pytest.mark.parametrize("key", ["s", "I"])
async def test_who_cannot_be_talked_to(run: RunSnapshot, why: str, key: str) -> None:
    """For a run that takes no messages the keys show the reason."""
    engine = FakeEngine(run)
    async with opened(engine) as deck:
        await deck.press(key)
        await deck.until(lambda: why in deck.screen_text or any(why in toast for toast in deck.toasts), "the reason")
        assert not engine.told


@pytest.mark.parametrize("key", ["s", "I"])
async def test_readonly_says_nothing(key: str) -> None:
    """With --readonly no message is sent."""
    engine = FakeEngine(a_listener())
    async with opened(engine, readonly=True) as deck:
        await deck.press(key)
        await deck.until(
            lambda: "with --readonly" in deck.screen_text or any("with --readonly" in toast for toast in deck.toasts),
            "the refusal",
        )
        assert not engine.told


async def test_interrupting() -> None:
    """`I` interrupts a run's turn, and the run shows that it waits for a message."""
    engine = FakeEngine(a_listener())
    async with opened(engine, (200, 50)) as deck:
        await deck.press("I")
        await deck.until(lambda: engine.told, "the interrupt")
        assert engine.told == [("interrupt", run_id(1))]
        engine.tell(a_listener(interrupted=True))
        await deck.until_text("◔ interrupted repo-scout")
        await deck.press("I")
        await deck.until(lambda: any("already interrupted" in toast for toast in deck.toasts), "the refusal")


async def test_interrupting_several_asks() -> None:
    """Interrupting several runs asks first."""
    engine = FakeEngine(a_listener(1), a_listener(2))
    async with opened(engine) as deck:
        await deck.act("mark_all")
        await deck.press("I")
        await deck.until_text("Interrupt 2 runs?")
        await deck.press("y")
        await deck.until(lambda: len(engine.told) == 2, "two interrupts")


async def test_a_finished_run_goes_on_in_the_dialog() -> None:
    """`s` on a finished run continues its conversation."""
    engine = FakeEngine(a_run(1, "completed", meta_session_path="/s", meta_child_session_id="c1", meta_preset=""))
    async with opened(engine) as deck:
        await deck.press("s")
        await deck.until(lambda: deck.app.screen is not deck.main, "the dialog")
        assert not engine.told


async def say_in_detail(deck: Deck) -> None:
    await deck.press("i")
    await deck.until(lambda: deck.app.screen is not deck.main, "the detail")
    await deck.press("s")
    await deck.until_text("▸ to repo-scout")


async def test_saying_something_from_the_detail() -> None:
    """`s` in the detail of a running run returns to the deck, to the line at its transcript."""
    engine = FakeEngine(a_listener())
    async with opened(engine) as deck:
        await say_in_detail(deck)
        await deck.type("go on")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the message")
        assert engine.told == [("message", run_id(1), "go on")]


def said(seq: int, state: str, text: str = "", **fields: Any) -> Message:
    """Return an event of the message m1."""
    return Message(seq=seq, ts=stamp(seq), id="m1", state=MessageState(state), text=text, by="operator", **fields)


async def test_a_message_is_queued_and_then_delivered() -> None:
    """A message's row shows how long it is on its way, until the agent's own stream contains it."""
    engine = FakeEngine(a_listener(undelivered=1, last_seq=11))
    engine.write(run_id(1), *some_events(), said(11, "accepted", "only the [tokenizer]"))
    async with opened(engine) as deck:
        await deck.until_text("▸ you: only the [tokenizer]")
        assert re.search(r"only the \[tokenizer\] +queued [\d:]+:\d\d *│", deck.screen_text)
        engine.write(run_id(1), said(12, "delivered"))
        engine.tell(a_listener(last_seq=12))
        await deck.until(lambda: re.search(r"tokenizer\] +delivered *│", deck.screen_text), "the delivery")


async def test_a_message_that_came_too_late() -> None:
    """The row of a late message shows that, and its notice gives the reason."""
    engine = FakeEngine(a_listener(last_seq=12))
    engine.write(
        run_id(1),
        *some_events(),
        said(11, "accepted", "wait"),
        said(12, "late", reason="the agent had already finished"),
    )
    async with opened(engine) as deck:
        await deck.until_text("▸ too late: the agent had already finished")
        assert re.search(r"you: wait +too late *│", deck.screen_text)


async def test_a_long_message_leaves_room_for_its_state() -> None:
    """A message's text is wrapped before the column of the state; on a narrow screen it has the whole width."""
    engine = FakeEngine(a_listener(last_seq=12))
    engine.write(run_id(1), *some_events(), said(11, "accepted", "word " * 60), said(12, "delivered"))
    async with opened(engine) as deck:
        await deck.until(lambda: re.search(r"word word +delivered *│", deck.screen_text), "the state")
        await deck.pilot.resize_terminal(44, 30)
        await deck.until(lambda: "word word" in deck.screen_text, "the text")
        assert " delivered │" not in deck.screen_text.replace("▸ delivered", "")
