"""`subdeck report`: the costs of all runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ..engine import Engine
from ..run.cost_sheet import HEADINGS, CostSheet, cost_sheet, remarks, sections, total_row
from ..text.column import Column
from ._command import command
from ._table import table
from .output import Output, Piece, terminal_width

COLUMNS = (Column(60, least=10), *(Column(12, right=True) for _ in HEADINGS))


@command(
    "report",
    "subdeck report",
    "subdeck report --json",
)
def report() -> Output[CostSheet]:
    """Show costs for today, the last seven days and in total, by preset, model and agent.

    A run counts on the day of its launch. With --json, print one document: {"total", "byPreset", "byModel", "byAgent"},
    each with {"runs", "failed", "tokens", "cost", "unpriced"} for "today", "week" and "all".
    """
    sheet = cost_sheet(Engine.open().snapshots(), datetime.now().astimezone())
    return Output(sheet, _text(sheet))


def _text(sheet: CostSheet) -> Iterator[Piece]:
    rows = [("", *HEADINGS), total_row(sheet)]
    for title, lines in sections(sheet):
        rows += [("", *("" for _ in HEADINGS)), (f"by {title}", *("" for _ in HEADINGS)), *lines]
    yield table(COLUMNS, rows, terminal_width())
    yield f"\n{remarks(sheet)}"
