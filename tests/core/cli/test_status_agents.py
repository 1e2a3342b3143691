"""The agent of each run in the list of `subdeck status`."""

from __future__ import annotations

from subdeck.core.cli.run_list import rows

from tests.factories import make_meta, make_snapshot


def test_status_names_agents_if_there_are_several() -> None:
    """The agent is in each line only if the listed runs have several agents."""
    claude, codex = (make_snapshot(make_meta(agent=agent), "completed") for agent in ("claude", "codex"))
    assert not any("claude" in line for line in rows([claude, claude]))
    first, second = rows([claude, codex])
    assert "  claude  " in first
    assert "  codex   " in second
