"""`subdeck grep`: search the tasks, answers and transcripts of runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from ..engine import Engine
from ..run.describe import moment
from ..search.pattern import Pattern
from ..search.scan import Hit, Part
from ._command import Document, command
from ._options import Whole
from ._table import fit
from .output import Output, Piece, is_terminal, terminal_width

NOT_FOUND = 1
"""The exit code without a match, as of grep."""
PART_WIDTH = max(map(len, Part))


class FoundRun(Document, frozen=True):
    """A run with matches."""

    run_id: str
    preset: str
    hits: tuple[Hit, ...]


class Matches(Document, frozen=True):
    """The runs in which a pattern was found."""

    pattern: str
    runs: tuple[FoundRun, ...]
    """The newest first."""


@command(
    "grep",
    "subdeck grep token",
    'subdeck grep -i "race condition" 4ae0bd',
    'subdeck grep -E "TODO|FIXME" -l # only the ids of the runs',
)
@click.argument("text", metavar="PATTERN")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option("-E", "--regex", is_flag=True, help="Treat PATTERN as a Python regular expression.")
@click.option("-l", "--runs", "only_runs", is_flag=True, help="Print only the ids of the runs, one per line.")
@click.option("-m", "--max-count", metavar="N", type=Whole(min=1), help="Print at most N lines per run.")
def grep(
    text: str,
    refs: tuple[str, ...],
    ignore_case: bool,
    regex: bool,
    only_runs: bool,
    max_count: int | None,
) -> Output[Matches]:
    """Search the tasks, answers and transcripts of all runs, or of the named runs, for PATTERN. Newest runs come first.

    PATTERN is plain text within one line. Each match prints run, date, position and text; in a pipe, the full run id
    comes first. The exit code is 1 if nothing matches.
    """
    pattern = Pattern(text, regex=regex, ignore_case=ignore_case)
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    is_found = False

    def matches() -> Iterator[FoundRun]:
        nonlocal is_found
        for run in engine.search(pattern, run_ids):
            is_found = True
            yield FoundRun(run.run_id, run.preset, run.hits[:max_count])

    shown = (run.run_id for run in matches()) if only_runs else _text(matches())
    return Output(lambda: Matches(pattern.text, tuple(matches())), shown, lambda: 0 if is_found else NOT_FOUND)


def _text(runs: Iterable[FoundRun]) -> Iterator[Piece]:
    for run in runs:
        yield "\n".join(_lines(run))


def _lines(run: FoundRun) -> list[str]:
    to_terminal = is_terminal(sys.stdout)
    name = run.run_id[-6:] if to_terminal else run.run_id
    lines = [f"{name}  {_date(hit)}  {hit.place.ljust(PART_WIDTH)}  {hit.line}" for hit in run.hits]
    return [fit(line, terminal_width()).rstrip() for line in lines] if to_terminal else lines


def _date(hit: Hit) -> str:
    """Return the local time of a match."""
    when = moment(hit.at)
    return f"{when.astimezone():%Y-%m-%d %H:%M:%S}" if when else " " * 19
