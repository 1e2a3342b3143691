"""The cost sheet of the app."""

from __future__ import annotations

import re

import pytest
from subdeck.core.run.model import Usage

from ..fake_engine import FakeEngine, a_run
from ..open_deck import opened


@pytest.mark.parametrize("size", [(80, 24), (130, 34)])
async def test_cost_sheet(size: tuple[int, int]) -> None:
    """`$` shows costs by period, and by preset, model and agent, on any screen."""
    runs = [a_run(1, "completed", usage=Usage(cost=1.5)), a_run(2, meta_preset="other", usage=Usage(cost=2.0))]
    async with opened(FakeEngine(*runs), size) as deck:
        await deck.press("$")
        await deck.until_text("by preset")
        for row in (r"total .*\$3\.50 +– +2 ", r"repo-scout .*\$1\.50 +– +1 ", r"other .*\$2\.00 +– +1 "):
            assert re.search(row, deck.screen_text)
        assert "by agent" in deck.screen_text
