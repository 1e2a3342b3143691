"""Usage by turn as a table; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.delegation.report import model_name
from ...core.run.model import Usage
from ...core.run.usage import Turn
from ...core.text.plain import one_line
from ..text.format import fit, local_time
from .page import Row

_HEAD = ("#", "time", "input", "output", "cached", "to cache", "cost", "why it stopped, model")


def usage_rows(turns: Sequence[Turn], total: Usage, messages: int, progress: float | None, width: int) -> list[Row]:
    """Lay out the newest turns below their sums; `progress` is None when all was read."""
    if progress is not None:
        return [((f"reading… {progress:.0%} of the events", "muted"),)]
    if not messages:
        return [(("No usage was reported yet.", "muted"),)]
    numbers = (total.input, total.output, total.cache_read, total.cache_write)
    tools = "1 tool call" if total.tool_uses == 1 else f"{total.tool_uses:,} tool calls"
    counted = f"{'1 turn' if total.turns == 1 else f'{total.turns:,} turns'}, {tools}"
    table = [_HEAD, ("all", "", *map(_figure, numbers), _cost(total.cost), counted), *map(_turn, turns)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD) - 1)]
    head, sums, *rows = (_line(cells, widths, width) for cells in table)
    left_out = f"(the newest {len(turns):,} of {messages:,} messages)" if messages > len(turns) else ""
    return [
        ((head, "muted"),),
        ((sums, "strong"),),
        *([((left_out, "muted"),)] if left_out else []),
        *(((row, ""),) for row in rows),
    ]


def _turn(turn: Turn) -> tuple[str, ...]:
    numbers = (turn.input, turn.output, turn.cache_read, turn.cache_write)
    said = "  ".join(filter(None, (one_line(turn.stop_reason, 30), one_line(model_name(turn.model) or "", 60))))
    return (f"{turn.number:,}", local_time(turn.ts), *map(_figure, numbers), _cost(turn.cost), said)


def _line(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Put all columns but the last to the right; the last has what is left."""
    left = "  ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=False))
    return f"{left}  {fit(cells[-1], max(0, width - len(left) - 2))}".rstrip()


def _figure(count: int) -> str:
    return f"{count:,}" if count else "–"


def _cost(cost: float) -> str:
    return f"${cost:.4f}" if cost else "–"
