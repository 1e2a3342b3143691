"""Which budgets of a day were used up while somebody looked: each is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.describe import runs_word

if TYPE_CHECKING:
    from ...core.budget.allowance import Standing


class UsedUp:
    def __init__(self) -> None:
        self._known: set[tuple[str, str]] | None = None
        """Day and name of each; None before the first look, whose budgets the header alone tells."""

    def look(self, standing: Standing | None, running: int) -> str:
        """Return what there is to tell of budgets that have been used up since the last look; `running` runs go on."""
        used = [] if standing is None else [(standing.day, name) for name, spent in standing.parts if spent.is_used_up]
        known = set(used) if self._known is None else self._known
        new = [name for day, name in used if (day, name) not in known]
        self._known = known.union(used)
        if standing is None or not new:
            return ""
        from ...core.budget.allowance import BUDGETS

        spent = dict(standing.parts)
        lines = [f"{BUDGETS[name].capitalize()} is used up: {spent[name].figures} spent." for name in new]
        if running:
            return "\n".join((*lines, f"New runs are refused. Still running: {runs_word(running)}."))
        return "\n".join((*lines, "New runs are refused."))
