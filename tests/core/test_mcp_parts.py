"""The parts of the MCP door that need no client."""

from __future__ import annotations

import asyncio
import threading

import pytest
from subdeck.core.mcp.calls import Calls, Relay


async def test_the_last_word_comes_before_the_answer() -> None:
    """A client that reads slowly gets the latest progress, the last of it before the answer; numbers only grow."""
    sent: list[tuple[float, str | None]] = []
    first, reading = asyncio.Event(), asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        first.set()
        await reading.wait()
        sent.append((progress, message))

    relay = Relay(report)

    told = threading.Event()
    loop = asyncio.get_running_loop()

    def work(cancelled: threading.Event) -> str:
        relay.report("step 0")
        told.wait()
        for number in range(1, 100):
            relay.report(f"step {number}")
        loop.call_soon_threadsafe(reading.set)
        return "done"

    async def stall() -> None:
        await first.wait()
        told.set()

    stalling = asyncio.create_task(stall())
    assert "done" == await relay.during(Calls().run(work))
    await stalling
    assert [(1, "step 0"), (2, "step 99")] == sent


async def test_silence_is_no_reason_to_give_up() -> None:
    """While a call has nothing new to tell, its last words are sent again, so that no client takes it for dead."""
    sent: list[str | None] = []
    thrice = threading.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        sent.append(message)
        if len(sent) == 3:
            thrice.set()

    relay = Relay(report, keep_alive=0.001)

    def work(cancelled: threading.Event) -> None:
        relay.report("thinking")
        thrice.wait()

    await relay.during(Calls().run(work))
    assert {"thinking"} == set(sent)


async def test_cancelled_caller_waits_for_notice() -> None:
    """The event of a cancelled call is set, and the caller is held until the work has seen it."""
    begun, noticed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(cancelled: threading.Event) -> None:
        loop.call_soon_threadsafe(begun.set)
        cancelled.wait()
        noticed.set()

    call = asyncio.create_task(Calls().run(work))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert noticed.is_set()


async def test_failing_work_fails_its_call() -> None:
    """What the work raises, its caller gets."""

    def work(cancelled: threading.Event) -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        await Calls().run(work)


async def test_all_calls_can_be_cancelled_from_outside() -> None:
    """Another thread cancels what is under way and comes back when all of it has taken notice."""
    calls, loop = Calls(), asyncio.get_running_loop()
    begun = [asyncio.Event() for _ in range(3)]
    noticed: list[int] = []

    def work(number: int, cancelled: threading.Event) -> int:
        loop.call_soon_threadsafe(begun[number].set)
        cancelled.wait()
        noticed.append(number)
        return number

    waiting = [asyncio.create_task(calls.run(lambda event, n=number: work(n, event))) for number in range(3)]
    for event in begun:
        await event.wait()
    await asyncio.to_thread(calls.cancel_all)
    assert [0, 1, 2] == sorted(noticed)
    assert [0, 1, 2] == await asyncio.gather(*waiting)
