"""`subdeck grep`: search what people read of the runs."""

from __future__ import annotations

from typing import Any

import click

from ..engine import Engine
from ..run.describe import moment
from ..search.pattern import Pattern
from ..search.scan import Found, Hit, Place
from ._options import Whole, json_option
from ._table import fit
from .output import document, is_terminal, say, terminal_width

NOT_FOUND = 1
"""The exit code without a hit, as grep's."""
PLACE_WIDTH = max(map(len, Place))


@click.command("grep")
@click.argument("text", metavar="PATTERN")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option("-E", "--regex", is_flag=True, help="Treat PATTERN as a Python regular expression.")
@click.option("-l", "--runs", "only_runs", is_flag=True, help="Print only the ids of the runs, one per line.")
@click.option("-m", "--max-count", metavar="N", type=Whole(min=1), help="Print at most N lines per run.")
@json_option
def grep(
    text: str,
    refs: tuple[str, ...],
    ignore_case: bool,
    regex: bool,
    only_runs: bool,
    max_count: int | None,
    as_json: bool,
) -> int:
    """Search the tasks, answers and transcripts of all runs, or of the named runs, for PATTERN. Newest runs come first.

    PATTERN is plain text within one line. Each match prints run, date, position and text; in a pipe, the full run id
    comes first. The exit code is 1 if nothing matches.
    """
    pattern = Pattern(text, regex=regex, ignore_case=ignore_case)
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    documents: list[dict[str, Any]] = []
    is_found = False
    for found in engine.search(pattern, run_ids):
        is_found = True
        hits = found.hits[:max_count]
        if as_json:
            documents.append({"runId": found.run_id, "preset": found.preset, "hits": hits})
        elif only_runs:
            say(found.run_id)
        else:
            say("\n".join(_lines(found, hits)))
    if as_json:
        document({"pattern": pattern.text, "runs": documents})
    return 0 if is_found else NOT_FOUND


def _lines(found: Found, hits: tuple[Hit, ...]) -> list[str]:
    import sys

    to_terminal = is_terminal(sys.stdout)
    name = found.run_id[-6:] if to_terminal else found.run_id
    lines = [f"{name}  {_date(hit)}  {hit.place.ljust(PLACE_WIDTH)}  {hit.line}" for hit in hits]
    return [fit(line, terminal_width()).rstrip() for line in lines] if to_terminal else lines


def _date(hit: Hit) -> str:
    """When it was written, where the reader sits."""
    when = moment(hit.at)
    return f"{when.astimezone():%Y-%m-%d %H:%M:%S}" if when else " " * 19
