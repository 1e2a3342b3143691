"""`subdeck report`: what the runs cost."""

from __future__ import annotations

from datetime import datetime

import click

from ..engine import Engine
from ..run.costs import HEADINGS, cost_sheet, remarks, sections, total_row
from ..text.column import Column
from ._options import json_option
from ._table import table
from .output import document, say, terminal_width

COLUMNS = (Column(60, least=10), *(Column(12, right=True) for _ in HEADINGS))


@click.command("report")
@json_option
def report(as_json: bool) -> None:
    """Show costs for today, the last seven days and in total, by preset, model and agent.

    A run counts on the day of its launch. With --json, print one document: {"total", "byPreset", "byModel", "byAgent"},
    each with {"runs", "failed", "tokens", "cost", "unpriced"} for "today", "week" and "all".
    """
    sheet = cost_sheet(Engine.open().snapshots(), datetime.now().astimezone())
    if as_json:
        document(sheet)
        return
    rows = [("", *HEADINGS), total_row(sheet)]
    for title, lines in sections(sheet):
        rows += [("", *("" for _ in HEADINGS)), (f"by {title}", *("" for _ in HEADINGS)), *lines]
    say("\n".join(table(COLUMNS, rows, terminal_width())))
    say(f"\n{remarks(sheet)}")
