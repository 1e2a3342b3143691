"""`subdeck compare` and `diff`: runs side by side, the changes of a run, and the difference of two runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import click

from .. import paths
from ..engine import Engine
from ..errors import UsageError
from ..run.changes import EDITED, ChangedFile, Changes, FileStatus
from ..run.comparison import FILES, LEAST, MOST, ROWS, Side, answer, facts, files, is_one_task
from ..run.describe import runs_word
from ..run.documents import ChangesDocument, CheckDocument, changes_document, check_document
from ..run.model import RunReason, RunStatus
from ..run.snapshot import RunSnapshot
from ..text.column import Column
from ..text.plain import one_line, plain
from ._command import Document, command, is_json
from ._options import run_argument, snapshot_of
from ._table import GAP, fit, table
from .output import Coloured, Note, Output, Piece, is_terminal, note, show, terminal_width

LINES = 8
"""Lines of an answer."""
LABEL = 8
NARROWEST = 18
"""Cells of a column. Runs without room for one come below the others."""


class ComparedRun(Document, frozen=True):
    """A run in the comparison."""

    run_id: str
    status: RunStatus
    reason: RunReason | None
    preset: str
    task: str
    model: str
    cost: float | None
    """Dollars; null if no price is known."""
    unpriced: int
    """Tokens whose price is unknown."""
    tokens: int | None
    turns: int
    duration_ms: int | None
    answer: str | None
    """Its beginning."""
    changes: ChangesDocument | None
    check: CheckDocument | None


class Difference(Document, frozen=True, rename={"from_": "from"}):
    """The difference between the files of two runs."""

    from_: str
    """Id of the run."""
    to: str
    changes: ChangesDocument | None
    patch: str
    """As git writes it."""
    notes: tuple[str, ...]


class Comparison(Document, frozen=True):
    """Runs side by side."""

    same_task: bool
    """Whether all runs have the same task."""
    runs: tuple[ComparedRun, ...]
    difference: Difference | None
    """With --diff."""


@command(
    "compare",
    "subdeck compare 4ae0bd # its whole group",
    "subdeck compare 4ae0bd 81c2f7",
    "subdeck compare --diff 4ae0bd 81c2f7",
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option(
    "--diff", "two", nargs=2, metavar="A B", help="Print the difference between the changes of these two runs."
)
def compare(refs: tuple[str, ...], two: tuple[str, str] | None) -> Output[Comparison] | None:
    """Compare two to six runs side by side: status, check, cost, time, turns, changes and answer.

    One RUN stands for its whole group. With --json, print one document: {"sameTask", "runs": [{"runId", "status",
    "reason", "preset", "task", "model", "cost", "unpriced", "tokens", "turns", "durationMs", "answer", "changes",
    "check"}], "difference": {"from", "to", "changes", "patch", "notes"}}. Without --diff, "difference" is null.
    """
    engine = Engine.open()
    as_json = is_json()
    if two and not (as_json or refs):
        show(_difference_text(engine, two))
        return None
    if two and not as_json:
        raise UsageError("--diff prints only the difference", where="compare", hint="name only two runs")
    sides = [engine.work.side(run) for run in _runs(engine, refs or two or ())]

    def document() -> Comparison:
        difference = _difference(engine, two) if two else None
        return Comparison(is_one_task(sides), tuple(map(_compared, sides)), difference)

    return Output(document, _side_by_side(sides))


def _side_by_side(sides: Sequence[Side]) -> Iterator[Piece]:
    yield table_of(sides, terminal_width(), datetime.now(UTC))


def _runs(engine: Engine, refs: Sequence[str]) -> Sequence[RunSnapshot]:
    """Return the named runs, or all runs of the group of a single named run. Raises UsageError."""
    ids = engine.find(refs) if refs else ()
    runs = sorted(engine.snapshots(ids) if ids else (), key=lambda run: ids.index(run.run_id))
    if len(runs) == 1 and (group := runs[0].meta.group):
        every = [run for run in engine.snapshots() if run.meta.group and run.meta.group.id == group.id]
        runs = sorted(every, key=lambda run: run.meta.group.index if run.meta.group else 0)
        if len(runs) > MOST:
            note(f"the first {MOST} of {runs_word(len(runs))} runs in this group")
            runs = runs[:MOST]
    if not LEAST <= len(runs) <= MOST:
        what = (
            f"compare needs 2 to 6 runs, or one run of a group, not {runs_word(len(runs))}" if runs else "no run given"
        )
        hint = f"name {LEAST} to {MOST} runs, or one run of a group"
        raise UsageError(what, where="compare", hint=hint)
    return runs


def _compared(side: Side) -> ComparedRun:
    run, usage = side.run, side.run.usage
    return ComparedRun(
        run_id=run.run_id,
        status=run.status,
        reason=run.reason,
        preset=run.meta.preset,
        task=run.meta.task,
        model=run.meta.resolved_model,
        cost=None if usage.unpriced and usage.cost <= 0 else usage.cost,
        unpriced=usage.unpriced,
        tokens=None if usage.uncounted and not usage.tokens else usage.tokens,
        turns=usage.turns,
        duration_ms=run.end and run.end.duration_ms,
        answer=side.answer or None,
        changes=changes_document(side.changes),
        check=check_document(run.check) if run.check else None,
    )


def _two(engine: Engine, two: tuple[str, str]) -> tuple[RunSnapshot, RunSnapshot]:
    ids = [engine.find((ref,))[0] for ref in two]
    if ids[0] == ids[1]:
        raise UsageError("cannot compare a run with itself", where="--diff", hint="name two runs")
    by_id = {run.run_id: run for run in engine.snapshots(ids)}
    return by_id[ids[0]], by_id[ids[1]]


def _difference(engine: Engine, two: tuple[str, str]) -> Difference:
    first, second = _two(engine, two)
    difference = engine.work.difference(first, second)
    patch = difference.patch.decode("utf-8", "replace")
    return Difference(first.run_id, second.run_id, changes_document(difference.changes), patch, difference.notes)


def _difference_text(engine: Engine, two: tuple[str, str]) -> Iterator[Piece]:
    difference = engine.work.difference(*_two(engine, two))
    yield from _patch_text(difference.patch, difference.changes)
    if not difference.changes.files:
        yield Note(f"{difference.run} and {difference.other} made the same changes")
    yield from map(Note, difference.notes)


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
    columns = [facts(side, now) for side in sides]
    for row in ROWS:
        yield _line(row, [one_line(column[row], 300) for column in columns], cells)
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


# --- the changes of a run --------------------------------------------------------------------------------------------

NOT_KNOWN = 1
"""The exit code if the changes of a run are unknown."""
_COLOURS = {"+": "32", "-": "31", "@": "36"}
_HEADS = ("diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode ", "rename ", "similarity ")
_LETTERS = {
    FileStatus.ADDED: "A",
    FileStatus.DELETED: "D",
    FileStatus.RENAMED: "R",
    FileStatus.TYPE: "T",
}


class Diff(Document, frozen=True):
    """The changes of a run."""

    run_id: str
    status: RunStatus
    changes: ChangesDocument | None
    """Null if they are unknown."""
    patch: str | None
    """Path of the whole patch at the end of the run."""


@command(
    "diff",
    "subdeck diff 4ae0bd",
    "subdeck diff 4ae0bd --stat",
    "subdeck diff 4ae0bd > work.patch",
)
@run_argument
@click.option("--stat", "form", flag_value="stat", help="Print only the changed files, with the number of lines.")
@click.option("--name-only", "form", flag_value="names", help="Print only the names of the files.")
def diff(ref: str, form: str | None) -> Output[Diff]:
    """Print a run's changes as a patch, also while it is running.

    On a terminal the patch is coloured and shown in $PAGER. The exit code is 1 if the changes are unknown.
    With --json, print one document: {"runId", "status", "changes": {"files", "added", "removed", "source", "shared",
    "note", "edited", "tree", "named"}, "patch"}. "patch" is the path of the whole patch as the run left it. If the
    worktree was edited after the run, the current files are shown and "edited" is true.
    """
    if (as_json := is_json()) and form:
        raise UsageError("--json already includes both", where="diff", hint="remove the other option")
    engine = Engine.open()
    run = snapshot_of(engine, engine.find((ref,))[0])
    patch = b"" if as_json or form else engine.work.patch(run)
    changes = engine.work.changes(run)

    def document() -> Diff:
        path = engine.artifacts(run.run_id).get(paths.CHANGES_PATCH)
        return Diff(run.run_id, run.status, changes_document(changes), path)

    return Output(document, _diff_text(run, changes, patch, form), _code(changes))


def _diff_text(run: RunSnapshot, changes: Changes | None, patch: bytes, form: str | None) -> Iterator[Piece]:
    if changes is None:
        yield Note(f"the changes of run {run.meta.short_id} are unknown: {_why(run)}")
        return
    if form == "names":
        yield [one_line(file.path, 4096) for file in changes.named]
    elif form == "stat":
        yield _stat(changes)
    else:
        yield from _patch_text(patch, changes)
    yield from map(Note, _remarks(run, changes))


def _code(changes: Changes | None) -> int:
    return NOT_KNOWN if changes is None or not (changes.files or changes.is_nothing) else 0


def _why(run: RunSnapshot) -> str:
    if run.foreign:
        return "the run is not trusted"
    return "it has not started" if run.started_at is None else "they were not recorded"


def _remarks(run: RunSnapshot, changes: Changes) -> Iterator[str]:
    """Yield remarks about the changes of a run."""
    name = run.meta.short_id
    if changes.edited:
        yield f"the worktree of run {name} was {EDITED}; it now has {changes.sum if changes.files else 'no changes'}"
    elif changes.is_nothing:
        yield f"run {name} changed nothing" if run.has_ended else f"run {name} has not changed anything yet"
    if changes.shared and changes.files:
        yield f"shared directory: {changes.shared}"
    for remark in changes.remarks:
        yield one_line(remark, 1000)
    if len(changes.named) < changes.files:
        yield f"{changes.files - len(changes.named):,} more files are not listed"


def _stat(changes: Changes) -> list[str]:
    rows = [
        (_LETTERS.get(file.status, "M"), _shown(file), _lines(file), one_line(file.note, 200)) for file in changes.named
    ]
    columns = (Column(2), Column(200, least=20), Column(14, right=True), Column(60))
    total = (f"{changes.words}",)
    return [*table(columns, rows, terminal_width()), *(total if changes.files else ())]


def _shown(file: ChangedFile) -> str:
    path = one_line(file.path, 4096)
    return f"{one_line(file.old_path, 4096)} → {path}" if file.old_path else path


def _lines(file: ChangedFile) -> str:
    return "" if file.added is None or file.removed is None else f"+{file.added} −{file.removed}"


def _patch_text(patch: bytes, changes: Changes) -> Iterator[Piece]:
    """Yield a patch, on a terminal in colours unless $PAGER shows it; without a patch, the files."""
    if not patch:
        if changes.files:
            yield _stat(changes)
    elif not is_terminal(sys.stdout):
        yield patch
    else:
        lines = list(_coloured(patch))
        if not _paged(lines):
            yield lines


def _coloured(patch: bytes) -> Iterator[str]:
    """Yield the lines of a patch as a terminal may show them."""
    for line in patch.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        text = plain(line)
        if line.startswith(_HEADS):
            yield Coloured(f"\x1b[1m{text}\x1b[m")
        elif colour := _COLOURS.get(line[:1]):
            yield Coloured(f"\x1b[{colour}m{text}\x1b[m")
        else:
            yield text


def _paged(lines: list[str]) -> bool:
    """Show lines in the user's pager if the screen is too small; return whether it did."""
    import shlex
    import subprocess

    command = os.environ.get("PAGER", "less")
    try:
        argv = shlex.split(command)
        if not argv or argv == ["cat"] or len(lines) < os.get_terminal_size(1).lines:
            return False
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        pager = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment)
    except (OSError, ValueError):
        return False
    while True:
        try:
            pager.communicate("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            return True
        except KeyboardInterrupt:
            continue  # ctrl-C is for the pager
