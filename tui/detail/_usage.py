"""The usage of a run in words, and that of each model message as a table; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.delegation.report import model_name
from ...core.run.describe import NOTHING, known_cost
from ...core.run.events import UsageReported
from ...core.run.model import Usage
from ...core.text.plain import one_line
from ..text.cells import fit
from ..text.format import local_time
from .page import Row, note


def usage_words(usage: Usage) -> str:
    """`12,345 tokens in 8 turns, 14 tool calls`; `at least …` if some were not counted."""
    counted = "an unknown number of" if usage.uncounted and not usage.tokens else f"{usage.tokens:,}"
    return f"{'at least ' if usage.uncounted and usage.tokens else ''}{counted} tokens in {_turns_words(usage)}"


def _turns_words(usage: Usage) -> str:
    turns = "1 turn" if usage.turns == 1 else f"{usage.turns:,} turns"
    return f"{turns}, 1 tool call" if usage.tool_uses == 1 else f"{turns}, {usage.tool_uses:,} tool calls"


_HEAD = ("#", "time", "input", "output", "cache read", "cache write", "cost", "stop reason, model")


def usage_rows(newest: Sequence[UsageReported], total: Usage, messages: int, width: int) -> list[Row]:
    """Lay out the newest messages below the totals of all."""
    if not messages:
        return [note("No usage has been reported yet.")]
    table = [_HEAD, ("all", "", *_figures(total), _turns_words(total))]
    for number, used in enumerate(newest, messages - len(newest) + 1):
        end = filter(None, (one_line(used.stop_reason, 30), one_line(model_name(used.model) or "", 60)))
        table.append((f"{number:,}", local_time(used.ts), *_figures(used), "  ".join(end)))
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD) - 1)]
    head, sums, *rows = (_line(cells, widths, width) for cells in table)
    cut = [note(f"(the newest {len(newest):,} of {messages:,} messages)")] if messages > len(newest) else []
    return [note(head), ((sums, "strong"),), *cut, *(((row, ""),) for row in rows)]


def _figures(used: Usage | UsageReported) -> tuple[str, ...]:
    counts = (used.input, used.output, used.cache_read, used.cache_write)
    cost = f"${used.cost:.4f}" if used.cost else ""
    cost_text = known_cost(cost, used.unpriced) if isinstance(used, Usage) else cost or NOTHING
    return (*(f"{count:,}" if count else NOTHING for count in counts), cost_text)


def _line(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Align all columns but the last to the right; the last gets the rest of the width."""
    aligned = "  ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=False))
    return f"{aligned}  {fit(cells[-1], max(0, width - len(aligned) - 2))}".rstrip()
