"""The one hard limit on size; `sizes.py` reports long modules."""

from __future__ import annotations

from .sizes import lines

MODULE_LINES = 600


def test_no_module_runs_away() -> None:
    """No file of the program or of the tests exceeds 600 lines."""
    counted = lines("core", "tui", "tests", "screenshots")
    assert {} == {name: count for name, count in counted.items() if count > MODULE_LINES}
