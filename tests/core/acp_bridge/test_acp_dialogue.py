"""How the lines on the bridge's stdin answer an agent's requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subdeck.core.acp_bridge._dialogue import Asking

PERMISSION, FORM = "session/request_permission", "elicitation/create"


def new_asking() -> Asking:
    from subdeck.core.acp_bridge._dialogue import Asking  # loads the SDK, which other tests don't need

    return Asking()


def came(asking: Asking, number: object, method: str, **params: Any) -> None:
    from acp.connection import StreamDirection, StreamEvent

    asking.note(StreamEvent(StreamDirection.INCOMING, {"id": number, "method": method, "params": params}))


async def _asked(asking: Asking, call: str) -> asyncio.Task[Any]:
    task = asyncio.create_task(asking.request_permission("s", SimpleNamespace(tool_call_id=call), []))
    await asyncio.sleep(0)
    return task


def test_each_question_gets_its_own_answer() -> None:
    """Answers are matched by id, in any order. Ids may be numbers or strings."""

    async def converse() -> list[Any]:
        asking = new_asking()
        for number, call in ((0, "a"), ("0", "b")):
            came(asking, number, PERMISSION, toolCall={"toolCallId": call})
        second, first = await _asked(asking, "b"), await _asked(asking, "a")
        asking.answer(7, "stray")
        asking.answer(0, "yes")
        asking.answer("0", "no")
        asking.answer("0", "yes")
        return [(await each).outcome.option_id for each in (first, second)]

    assert ["yes", "no"] == asyncio.run(converse())


def test_a_form_is_filled_in_or_declined() -> None:
    async def converse() -> list[Any]:
        asking = new_asking()
        answers: list[Any] = []
        for content in ({"colour": "red"}, None):
            came(asking, 1, FORM, message="Which one?")
            task = asyncio.create_task(asking.create_elicitation("Which one?", None))
            await asyncio.sleep(0)
            asking.answer(1, content)
            answers.append(await task)
        return answers

    assert [{"action": "accept", "content": {"colour": "red"}}, {"action": "decline"}] == asyncio.run(converse())


def test_a_cancelled_turn_and_a_wrapper_that_is_gone() -> None:
    """Pending requests are answered as cancelled, and so is any request after the wrapper is gone."""

    async def converse() -> list[str]:
        asking = new_asking()
        outcomes: list[str] = []
        for end in (asking.withdraw, asking.leave):
            came(asking, 1, PERMISSION, toolCall={"toolCallId": "a"})
            task = await _asked(asking, "a")
            end()
            outcomes.append((await task).outcome.outcome)
        came(asking, 2, PERMISSION, toolCall={"toolCallId": "b"})
        outcomes.append((await (await _asked(asking, "b"))).outcome.outcome)
        return outcomes

    assert ["cancelled"] * 3 == asyncio.run(converse())
