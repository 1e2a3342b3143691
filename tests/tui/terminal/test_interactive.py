"""`A` opens the agent's own program in a window of the surrounding tmux, or in the app's terminal."""

from __future__ import annotations

import pytest
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.terminal import handover, tmux

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened

KEPT = {"meta_session_path": "child-session.jsonl", "meta_agent": "pi", "meta_talk": False}


async def test_in_this_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation is shown before the first time; then the engine's command gets the terminal."""
    engine = FakeEngine(a_run(1, **KEPT))
    handed: list[tuple[str, ...]] = []
    monkeypatch.setattr(handover, "hand_over", lambda app, argv: handed.append(tuple(argv)) or "")
    async with opened(engine) as deck:
        await deck.press("A")
        await deck.until_text("Exit the agent to return the run")
        assert [] == handed
        await deck.press("y")
        await deck.until(lambda: handed == [("by-hand",)], "the terminal to be handed over")
        assert [run_id(1)] == engine.taken_over
        await deck.press("A")
        await deck.until(lambda: len(handed) == 2, "the second time without a word")


def test_in_a_window() -> None:
    """In tmux the program gets a window, with variables for this user's files and without any key."""
    environment = {"TMUX": "/tmp/t/default,12,0", "HOME": "/h", "XDG_STATE_HOME": "/s", "ANTHROPIC_API_KEY": "secret"}
    argv = tmux.window_command("by-hand-000001", ("python", "x"), environment)
    assert ("-S", "/tmp/t/default", "new-window", "-n", "by-hand-000001", "--", "env") == argv[1:8]
    assert ("HOME=/h", "XDG_STATE_HOME=/s", "python", "x") == argv[8:]


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (a_run(1, **{**KEPT, "meta_agent": "offline"}), "the agent offline does not have its own UI"),
        (a_run(1, **{**KEPT, "meta_session_path": None}), "it saves no conversation"),
        (a_run(1, **{**KEPT, "meta_talk": None}), "an earlier subdeck started it"),
        (a_run(1, "queued", **KEPT), "it has not started yet"),
        (a_run(1, taken_over=True, **KEPT), "it is already open in the agent"),
    ],
    ids=["offline", "no session", "earlier", "queued", "taken over"],
)
async def test_why_not(run: RunSnapshot, why: str) -> None:
    """If the run cannot be opened in the agent, the key shows the reason."""
    engine = FakeEngine(run)
    async with opened(engine) as deck:
        await deck.press("A")
        await deck.until(lambda: any(why in toast for toast in deck.toasts), "the reason")
        assert [] == engine.taken_over
