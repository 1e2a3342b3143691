"""`subdeck compare`: a few runs beside each other, and the difference between what two of them have left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.changes import changes_fields
from ..run.comparison import FILES, LEAST, MOST, ROWS, Side, answer, facts, files, is_one_task
from ..run.describe import check_fields, runs_word
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from .diff import print_patch
from .options import json_option
from .output import document, note, say_lines, terminal_width
from .table import GAP, fit

LINES = 8
"""Of an answer."""
LABEL = 8
NARROWEST = 18
"""Cells of a column; what has no room beside the others comes below."""


@click.command("compare")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option(
    "--diff", "two", nargs=2, metavar="A B", help="Print the difference between the changes of these two runs."
)
@json_option
def compare(refs: tuple[str, ...], two: tuple[str, str] | None, as_json: bool) -> None:
    """Compare two to six runs side by side: status, check, cost, time, turns, changes and answer.

    One RUN stands for its whole group. With --json, print one document: {"sameTask", "runs": [{"runId", "status",
    "reason", "preset", "task", "model", "cost", "unpriced", "tokens", "turns", "durationMs", "answer", "changes",
    "check"}], "difference": {"from", "to", "changes", "patch", "notes"}}. Without --diff, "difference" is null.
    """
    engine = Engine.open()
    if two and not (as_json or refs):
        _print_difference(engine, two)
        return
    if two and not as_json:
        raise UsageError("--diff prints only the difference", where="compare", hint="name only two runs")
    sides = [engine.work.side(run) for run in _runs(engine, refs or two or ())]
    if as_json:
        document({
            "sameTask": is_one_task(sides),
            "runs": [_fields(side) for side in sides],
            "difference": _difference(engine, two) if two else None,
        })  # fmt: skip
        return
    say_lines(table_of(sides, terminal_width(), datetime.now(UTC)))


def _runs(engine: Engine, refs: Sequence[str]) -> Sequence[RunSnapshot]:
    """Return the runs that are meant: those named, or all of the group of a single one. Raises UsageError."""
    ids = engine.find(refs) if refs else ()
    found = sorted(engine.snapshots(ids) if ids else (), key=lambda run: ids.index(run.run_id))
    if len(found) == 1 and (group := found[0].meta.group):
        every = [run for run in engine.snapshots() if run.meta.group and run.meta.group.id == group.id]
        found = sorted(every, key=lambda run: run.meta.group.index if run.meta.group else 0)
        if len(found) > MOST:
            note(f"the first {MOST} of {runs_word(len(found))} runs in this group")
            found = found[:MOST]
    if not LEAST <= len(found) <= MOST:
        what = (
            f"compare needs 2 to 6 runs, or one run of a group, not {runs_word(len(found))}"
            if found
            else "no run given"
        )
        hint = f"name {LEAST} to {MOST} runs, or one run of a group"
        raise UsageError(what, where="compare", hint=hint)
    return found


def _fields(side: Side) -> dict[str, Any]:
    run, usage = side.run, side.run.usage
    return {
        "runId": run.run_id,
        "status": run.status,
        "reason": run.reason,
        "preset": run.meta.preset,
        "task": run.meta.task,
        "model": run.meta.resolved_model,
        "cost": None if usage.unpriced and usage.cost <= 0 else usage.cost,
        "unpriced": usage.unpriced,
        "tokens": None if usage.uncounted and not usage.tokens else usage.tokens,
        "turns": usage.turns,
        "durationMs": run.end and run.end.duration_ms,
        "answer": side.answer or None,
        "changes": changes_fields(side.changes),
        "check": check_fields(run.check) if run.check else None,
    }


def _two(engine: Engine, two: tuple[str, str]) -> tuple[RunSnapshot, RunSnapshot]:
    ids = [engine.find((ref,))[0] for ref in two]
    if ids[0] == ids[1]:
        raise UsageError("cannot compare a run with itself", where="--diff", hint="name two runs")
    found = {run.run_id: run for run in engine.snapshots(ids)}
    return found[ids[0]], found[ids[1]]


def _difference(engine: Engine, two: tuple[str, str]) -> dict[str, Any]:
    one, other = _two(engine, two)
    found = engine.work.difference(one, other)
    return {
        "from": one.run_id,
        "to": other.run_id,
        "changes": changes_fields(found.changes),
        "patch": found.patch.decode("utf-8", "replace"),
        "notes": found.notes,
    }


def _print_difference(engine: Engine, two: tuple[str, str]) -> None:
    one, other = _two(engine, two)
    found = engine.work.difference(one, other)
    print_patch(found.patch, found.changes)
    if not found.changes.files:
        note(f"{found.run} and {found.other} made the same changes")
    for said in found.notes:
        note(said)


def table_of(sides: Sequence[Side], width: int, now: datetime) -> list[str]:
    """Lay out runs side by side in lines of this width, as many as have room."""
    room = max(1, (width - LABEL) // (NARROWEST + len(GAP)))
    lines: list[str] = []
    if not is_one_task(sides):
        lines += ["These runs were given different tasks.", ""]
    for start in range(0, len(sides), room):
        some = sides[start : start + room]
        cells = (width - LABEL) // len(some) - len(GAP)
        lines += [*([""] if start else []), *_block(some, cells, start, now, with_tasks=not is_one_task(sides))]
    return lines


def _block(sides: Sequence[Side], cells: int, start: int, now: datetime, *, with_tasks: bool) -> Iterable[str]:
    heads = [
        f"{number} {one_line(side.run.meta.title, 40)} {side.run.meta.short_id}"
        for number, side in enumerate(sides, start + 1)
    ]
    yield _line("", heads, cells)
    if with_tasks:
        yield _line("task", [one_line(side.run.meta.task, 300) for side in sides], cells)
    said = [facts(side, now) for side in sides]
    for row in ROWS:
        yield _line(row, [one_line(fact[row], 300) for fact in said], cells)
    named = [files(side) for side in sides]
    for number in range(min(FILES, max(map(len, named)))):
        yield _line("", [_file(rows[number], cells) if number < len(rows) else "" for rows in named], cells)
    answers = [answer(side).split("\n") for side in sides]
    for number in range(min(LINES, max(map(len, answers)))):
        shown = [_answer_line(rows, number) for rows in answers]
        yield _line("answer" if number == 0 else "", shown, cells)


def _file(named: tuple[str, str], cells: int) -> str:
    path, counts = named
    return f"{fit(path, max(1, cells - len(counts) - 1))} {counts}" if counts else path


def _answer_line(rows: Sequence[str], number: int) -> str:
    if number >= len(rows):
        return ""
    return "…" if number == LINES - 1 and len(rows) > LINES else rows[number]


def _line(label: str, parts: Sequence[str], cells: int) -> str:
    return (fit(label, LABEL) + GAP.join(fit(part, cells) for part in parts)).rstrip()
