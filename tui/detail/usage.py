"""The table of a run's usage, a row for each message of the model; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.delegation.report import model_name
from ...core.run.events import UsageReported
from ...core.run.model import Usage
from ...core.text.plain import one_line
from ..text.cells import fit
from ..text.format import local_time
from .page import Row, note

_HEAD = ("#", "time", "input", "output", "cache read", "cache write", "cost", "stop reason, model")


def usage_rows(
    newest: Sequence[UsageReported], total: Usage, messages: int, progress: float | None, width: int
) -> list[Row]:
    """Lay out the newest messages below their totals; `progress`, from 0 to 1, is None when all was read."""
    if progress is not None:
        return [note(f"reading… {progress:.0%} of the events")]
    if not messages:
        return [note("No usage has been reported yet.")]
    numbers = (total.input, total.output, total.cache_read, total.cache_write)
    tools = "1 tool call" if total.tool_uses == 1 else f"{total.tool_uses:,} tool calls"
    counted = f"{'1 turn' if total.turns == 1 else f'{total.turns:,} turns'}, {tools}"
    table = [_HEAD, ("all", "", *map(_figure, numbers), _cost(total.cost), counted), *_messages(newest, messages)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD) - 1)]
    head, sums, *rows = (_line(cells, widths, width) for cells in table)
    cut = [note(f"(the newest {len(newest):,} of {messages:,} messages)")] if messages > len(newest) else []
    return [note(head), ((sums, "strong"),), *cut, *(((row, ""),) for row in rows)]


def _messages(newest: Sequence[UsageReported], count: int) -> Iterator[tuple[str, ...]]:
    for number, used in enumerate(newest, count - len(newest) + 1):
        figures = (used.input, used.output, used.cache_read, used.cache_write)
        said = "  ".join(filter(None, (one_line(used.stop_reason, 30), one_line(model_name(used.model) or "", 60))))
        yield (f"{number:,}", local_time(used.ts), *map(_figure, figures), _cost(used.cost), said)


def _line(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Align all columns but the last to the right; the last takes the rest of the width."""
    left = "  ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=False))
    return f"{left}  {fit(cells[-1], max(0, width - len(left) - 2))}".rstrip()


def _figure(count: int) -> str:
    return f"{count:,}" if count else "–"


def _cost(cost: float) -> str:
    return f"${cost:.4f}" if cost else "–"
