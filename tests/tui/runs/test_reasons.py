"""The reason of a failed run, at the end of its transcript and in place of an answer."""

from __future__ import annotations

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText, RunEnded, RunStarted
from subdeck.core.run.model import RunResult

from ..fake_engine import FakeEngine, a_run, run_id, stamp
from ..open_deck import opened

MESSAGE = "the agent exited with code 1 before it finished: KeyError: 'anthropic'"


def a_crashed_engine() -> FakeEngine:
    engine = FakeEngine(a_run(1, "failed", reason="agent_exit", message=MESSAGE))
    engine.write(
        run_id(1),
        RunStarted(seq=1, ts=stamp(1), pid=1, child_pid=2, attempt=1, max_attempts=1),
        AssistantText(seq=2, ts=stamp(2), text="I look around."),
        RunEnded(seq=3, ts=stamp(3), status="failed", reason="agent_exit"),
    )
    lines = ["Traceback (most recent call last):", *(f'  File "a{n}.py"' for n in range(40)), "KeyError: 'anthropic'"]
    engine.write_lines(run_id(1), paths.STDERR, "\n".join([*lines, "\x1b[31mbye\x1b[0m", ""]).encode())
    return engine


@pytest.mark.parametrize("size", [(80, 30), (120, 30)])
async def test_the_reason_stands_at_the_end(size: tuple[int, int]) -> None:
    """Below the last event of a crashed run are the sentence of its detail and the end of its stderr."""
    async with opened(a_crashed_engine(), size) as deck:
        await deck.until_text("Last stderr output:")
        rows = " ".join(" ".join(deck.rows(deck.main.transcript)).split())
        assert MESSAGE in rows
        assert 'File "a39.py" bye' in rows
        assert "a1.py" not in rows


async def test_an_interim_sentence_is_no_answer() -> None:
    """A failed run has no answer to copy, even if it wrote text before."""
    engine = a_crashed_engine()
    engine.result = lambda _: RunResult(  # type: ignore[method-assign]
        run_id=run_id(1), status="failed", reason="agent_exit", written_by="wrapper", final_text="I look around."
    )
    async with opened(engine) as deck:
        await deck.act("copy_answer")
        await deck.until(lambda: deck.toasts, "the word about it")
        assert "finished without an answer (failed: agent_exit)" in deck.toasts[0]
        assert not deck.app.clipboard
