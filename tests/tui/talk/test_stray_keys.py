"""Keys typed while the run's request changes never reply to another request or act as a command."""

from __future__ import annotations

import asyncio

import pytest
from subdeck.core.errors import RunBusy
from subdeck.core.run.model import RequestKind, Verdict
from textual.events import Paste
from textual.widgets import TextArea

from ..fake_engine import FakeEngine, a_run, run_id
from ..keys.test_type_ahead import burst
from ..open_deck import Deck, opened
from .test_requests import a_request, asking, at_block, no_request

REASON = "e not critical, try it yourself"
"""A text whose letters are commands on the deck, and replies in the block."""
SECOND = a_request(2, command="make install")


def allowed(number: int = 1, request: str = "q1") -> tuple[str, ...]:
    return ("reply", run_id(number), request, Verdict.ALLOW, "")


async def type_astray(deck: Deck, engine: FakeEngine) -> None:
    """Type a text and check that it has no effect."""
    told, launched, toasts = list(engine.told), list(engine.launched), list(deck.toasts)
    await deck.type(REASON)
    await deck.press("enter")
    burst(deck, REASON)
    await deck.pilot.pause()
    assert (engine.told, engine.launched, engine.stopped) == (told, launched, [])
    assert deck.app.screen is deck.main
    assert not deck.main.talk.is_open
    assert set(deck.toasts) <= set(toasts)
    assert deck.main.request.has_focus


async def test_a_text_typed_after_a_reply() -> None:
    """Between a reply and the run's next request the block keeps the focus and drops typed keys."""
    engine = FakeEngine(asking(1), a_run(2))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until_text("reply sent")
        await deck.until(lambda: engine.told, "the reply")
        await type_astray(deck, engine)
        await no_request(deck, engine)
        await type_astray(deck, engine)
        engine.tell(asking(1, SECOND))
        await deck.until_text("make install")
        await type_astray(deck, engine)
        await deck.pass_time()
        await deck.press("y")
        await deck.until(lambda: len(engine.told) == 2, "the second reply")
        assert [allowed(), allowed(1, "q2")] == engine.told
        assert "new request" not in deck.screen_text


async def test_the_time_for_reading_the_next_request() -> None:
    """A request accepts no key before it was visible for 400 ms, nor within 300 ms of another key."""
    engine = FakeEngine(asking(1, a_request(1), SECOND))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until_text("make install")
        await deck.pass_time(0.35)
        await deck.press("y")
        await deck.pass_time(0.2)
        await deck.press("y")
        assert [allowed()] == engine.told
        await deck.pass_time(0.9)
        await deck.press("y")
        await deck.until(lambda: len(engine.told) == 2, "the second reply")


async def test_a_reply_that_ends_the_run() -> None:
    """After a reply that ends the run the block closes after a pause in the typing, and no earlier."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until_text("reply sent")
        engine.tell(a_run(1, "completed", meta_talk=True))
        await deck.until(lambda: any("completed" in toast for toast in deck.toasts), "the end of the run")
        await deck.pass_time(0.35)
        await type_astray(deck, engine)
        await deck.pass_time(0.2)
        assert deck.main.request.has_focus
        await deck.pass_time(0.2)
        await deck.until(lambda: not deck.main.request.is_shown, "the closed block")
        await deck.until(lambda: deck.main.transcript.has_focus, "the keys in the transcript")


async def at_withdrawn(deck: Deck, engine: FakeEngine) -> None:
    """Withdraw a request one second ago, with the focus in its block."""
    await at_block(deck)
    await no_request(deck, engine)
    await deck.until_text("request withdrawn or answered elsewhere")
    await deck.until_text("keys work in a moment")
    await deck.pass_time(1.0)


async def test_what_is_typed_when_the_request_is_withdrawn() -> None:
    """The block stays for two seconds and drops keys; later keys go to the transcript."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_withdrawn(deck, engine)
        await type_astray(deck, engine)
        await deck.pass_time()
        await deck.until(lambda: deck.main.transcript.has_focus, "the keys in the transcript")
        assert not deck.main.request.is_shown
        assert not engine.told


async def test_keys_that_wait_when_the_block_may_close() -> None:
    """Keys typed for the block are dropped, even if the app was busy for long in between."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_withdrawn(deck, engine)

        def be_late() -> None:
            deck.clock.now += 5.0
            deck.main.request._settle()

        burst(deck, REASON)
        deck.app.call_later(be_late)
        await deck.until(lambda: not deck.main.request.is_shown, "the closed block")
        await deck.until(lambda: not deck.app.has_keys_waiting, "the end of the keys")
        assert deck.app.screen is deck.main
        assert not deck.main.talk.is_open
        assert (engine.told, engine.launched, engine.stopped) == ([], [], [])


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_request_that_takes_the_place_of_another(at_once: bool) -> None:
    """A request replacing a withdrawn one is marked as new, and accepts keys after two seconds."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        if not at_once:
            await no_request(deck, engine)
            await deck.pass_time(1.0)
        engine.tell(asking(1, SECOND))
        await deck.until_text("? new request · wants to run a command")
        assert "y allow" not in deck.rows(deck.main.request)[-1]
        await deck.pass_time(1.5)
        await type_astray(deck, engine)
        await deck.pass_time(1.5)
        await deck.until_text("y allow")
        await deck.press("y")
        await deck.until(lambda: engine.told, "the reply")
        assert [allowed(1, "q2")] == engine.told


async def test_a_replaced_request_without_the_keys() -> None:
    """A replaced request is also new for a user reading the block from another pane, who then focuses it."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await deck.until_text("rm -rf build")
        await deck.pass_time()
        await no_request(deck, engine)
        engine.tell(asking(1, SECOND))
        await deck.until_text("new request")
        await deck.press("]")
        await deck.until(lambda: deck.main.request.has_focus, "the keys in the block")
        await deck.pass_time(1.0)
        await deck.press("y")
        assert not engine.told


async def test_a_request_of_another_run_takes_the_place() -> None:
    """If the run is deleted elsewhere, the next shown run's request is new."""
    engine = FakeEngine(asking(1), asking(2, a_request(command="make install")))
    async with opened(engine) as deck:
        await at_block(deck)
        first = deck.main.request.run_id
        engine.tell(removed=[first])
        await deck.until_text("new request")
        assert deck.main.request.run_id != first
        await deck.pass_time(1.0)
        await type_astray(deck, engine)


async def test_the_reply_goes_to_the_run_that_is_shown() -> None:
    """If the cursor has already moved, the reply still goes to the run whose request is on the screen."""
    engine = FakeEngine(asking(1), asking(2))
    async with opened(engine) as deck:
        await at_block(deck)
        shown = deck.main.request.run_id
        other = next(name for name in engine.runs if name != shown)
        deck.main.runs.select(other)
        deck.main.action_act("allow")
        await deck.until(lambda: engine.told, "the reply")
        assert [shown] == [told[1] for told in engine.told]


async def test_a_choice_is_for_the_request_that_had_it() -> None:
    """A digit pressed for one request chooses nothing in the next."""
    choices = [a_request(number, RequestKind.CHOICE, choices=("main", "develop")) for number in (1, 2)]
    engine = FakeEngine(asking(1, choices[0]))
    async with opened(engine) as deck:
        await at_block(deck)
        deck.main.request.action_choose(1)
        deck.main.request.show(asking(1, choices[1]), has_keys=True)
        await deck.pilot.pause()
        await deck.press("1")
        assert not engine.told


async def test_a_reply_that_fails() -> None:
    """A request whose reply failed is shown again, and accepts keys only once it was read."""
    engine = FakeEngine(asking(1, a_request(1), SECOND))
    engine.talk_errors[run_id(1)] = RunBusy("the run takes nothing now")
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until(lambda: deck.toasts and deck.main.request.request == a_request(1), "the first one again")
        engine.talk_errors.clear()
        await type_astray(deck, engine)


async def test_a_dialog_lies_over_the_block() -> None:
    """Changes below a dialog count as seen once the dialog is closed."""
    engine = FakeEngine(asking(1, a_request(1), SECOND))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("question_mark")
        await deck.until(lambda: deck.app.screen is not deck.main, "the help")
        engine.tell(asking(1, SECOND))
        await deck.until(lambda: deck.main.request.request == SECOND, "the next one")
        await deck.pilot.pause()
        deck.clock.now += 60
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        await deck.pass_time(1.0)
        await type_astray(deck, engine)
        await deck.pass_time()
        await deck.press("y")
        await deck.until(lambda: engine.told, "the reply")


async def test_a_click_replies_to_nothing_unread() -> None:
    """A reply by mouse or palette is also refused right after the request was replaced."""
    engine = FakeEngine(asking(1, a_request(1), SECOND))
    async with opened(engine) as deck:
        await at_block(deck)
        engine.tell(asking(1, SECOND))
        await deck.until_text("new request")
        deck.main.action_act("allow")
        await deck.pilot.pause()
        assert not engine.told


async def test_the_reason_of_a_request_that_vanishes() -> None:
    """The field keeps its text and reports that the request is gone; nothing is sent, and no letter is a command."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("e")
        await deck.until_text("deny with a reason:")
        await deck.type("not cri")
        engine.tell(asking(1, SECOND))
        await deck.until_text("Not sent: the request")
        await deck.type("tical")
        assert deck.main.query_one("#message", TextArea).text == "not critical"
        await deck.pass_time()
        await deck.press("enter")
        await deck.pilot.pause()
        assert not engine.told
        assert deck.main.talk.is_open
        await deck.press("escape")
        await deck.until(lambda: deck.main.request.has_focus, "the keys in the block")
        await type_astray(deck, engine)


async def test_a_typed_reason_and_the_next_request() -> None:
    """After a denial with a reason the block has the focus again, and further typing is dropped."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("e")
        await deck.until_text("deny with a reason:")
        await deck.type("use make clean")
        await deck.press("enter")
        await deck.until(lambda: not deck.main.talk.is_open, "the line to close")
        await deck.until(lambda: deck.main.request.has_focus, "the keys in the block")
        await type_astray(deck, engine)
        engine.tell(asking(1, SECOND))
        await deck.until_text("make install")
        await type_astray(deck, engine)
        assert [told[3:] for told in engine.told] == [("deny", "use make clean")]


async def test_answered_in_another_window() -> None:
    """A reply in one of two open apps does not turn keys of the other one into commands."""
    engine, other = FakeEngine(asking(1)), FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        async with opened(other) as second:
            await at_block(second)
            await second.press("y")
            await second.until(lambda: other.told, "the reply")
        await no_request(deck, engine)
        await type_astray(deck, engine)
        assert not engine.told


async def test_a_paste_into_the_block() -> None:
    """A text pasted into the block has no effect, nor has the key right behind it."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        deck.app.post_message(Paste("yes\ny"))
        await deck.press("y")
        await deck.pilot.pause()
        assert not engine.told


async def test_going_through_requests_quickly() -> None:
    """The key that goes to the next run works at once, however fast it is pressed."""
    engine = FakeEngine(*(asking(number) for number in (1, 2, 3)))
    async with opened(engine) as deck:
        await at_block(deck)
        seen = {deck.main.request.run_id}
        for _ in range(2):
            await deck.press("]")
            seen.add(deck.main.request.run_id)
        assert len(seen) == 3
        await deck.press("y")
        assert not engine.told


async def test_the_block_goes_by_itself() -> None:
    """The clock closes the block once no request follows, without any key."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        deck.app.clock = asyncio.get_running_loop().time
        await deck.press("y")
        await no_request(deck, engine)
        await deck.until(lambda: not deck.main.request.is_shown, "the block to go")
        await deck.until(lambda: deck.main.transcript.has_focus, "the keys in the transcript")
