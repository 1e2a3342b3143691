"""`subdeck diff`: print what a run changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from .. import paths
from ..engine import Engine
from ..errors import UnknownRun, UsageError
from ..run.changes import EDITED, ChangedFile, Changes, FileStatus, changes_fields
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line, plain
from .options import json_option, run_argument
from .output import document, is_terminal, note, pass_bytes, say_lines, terminal_width
from .table import Column, table

NOT_KNOWN = 1
"""The exit code where it is not known what a run changed."""
_COLOURS = {"+": "32", "-": "31", "@": "36"}
_HEADS = ("diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode ", "rename ", "similarity ")
_LETTERS = {
    FileStatus.ADDED: "A",
    FileStatus.DELETED: "D",
    FileStatus.RENAMED: "R",
    FileStatus.TYPE: "T",
}


@click.command("diff")
@run_argument
@click.option("--stat", "form", flag_value="stat", help="Print only the changed files, with the number of lines.")
@click.option("--name-only", "form", flag_value="names", help="Print only the names of the files.")
@json_option
def diff(ref: str, form: str | None, as_json: bool) -> int:
    """Print a run's changes as a patch, also while it is running.

    On a terminal the patch is coloured and shown in $PAGER. The exit code is 1 if the changes are unknown.
    With --json, print one document: {"runId", "status", "changes": {"files", "added", "removed", "source", "shared",
    "note", "edited", "tree", "named"}, "patch"}. "patch" is the path of the whole patch as the run left it. If the
    worktree was edited after the run, the current files are shown and "edited" is true.
    """
    if as_json and form:
        raise UsageError("--json already includes both", where="diff", hint="remove the other option")
    engine = Engine.open()
    run = _known(engine, engine.find((ref,))[0])
    patch = b"" if as_json or form else engine.work.patch(run)
    changes = engine.work.changes(run)
    if as_json:
        artifacts = engine.artifacts(run.run_id)
        path = artifacts.get(paths.CHANGES_PATCH)
        document({"runId": run.run_id, "status": run.status, "changes": changes_fields(changes), "patch": path})
        return _code(changes)
    if changes is None:
        note(f"the changes of run {run.meta.short_id} are unknown: {_why(run)}")
        return NOT_KNOWN
    if form == "names":
        say_lines([one_line(file.path, 4096) for file in changes.named])
    elif form == "stat":
        say_lines(_stat(changes))
    else:
        print_patch(patch, changes)
    _remark(run, changes)
    return _code(changes)


def _known(engine: Engine, run_id: str) -> RunSnapshot:
    for run in engine.snapshots((run_id,)):
        return run
    raise UnknownRun("not a run, or just deleted", where=engine.project.run_dir(run_id))


def _code(changes: Changes | None) -> int:
    return NOT_KNOWN if changes is None or not (changes.files or changes.is_nothing) else 0


def _why(run: RunSnapshot) -> str:
    if run.foreign:
        return "the run is not trusted"
    return "it has not started" if run.started_at is None else "they were not recorded"


def _remark(run: RunSnapshot, changes: Changes) -> None:
    """Say beside the patch what a person has to know of it."""
    name = run.meta.short_id
    if changes.edited:
        note(f"the worktree of run {name} was {EDITED}; it now has {changes.sum if changes.files else 'no changes'}")
    elif changes.is_nothing:
        note(f"run {name} changed nothing" if run.has_ended else f"run {name} has not changed anything yet")
    if changes.shared and changes.files:
        note(f"shared directory: {changes.shared}")
    for remark in changes.remarks:
        note(one_line(remark, 1000))
    if len(changes.named) < changes.files:
        note(f"{changes.files - len(changes.named):,} more files are not listed")


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


def print_patch(patch: bytes, changes: Changes) -> None:
    """Print a patch, on a terminal in colours and through $PAGER; where there is none, the files."""
    if not patch:
        if changes.files:
            say_lines(_stat(changes))
        return
    if not is_terminal(sys.stdout):
        pass_bytes(patch)
        return
    lines = list(_coloured(patch))
    if not _paged(lines):
        say_lines(lines)


def _coloured(patch: bytes) -> Iterator[str]:
    """Yield the lines of a patch as a terminal may show them."""
    for line in patch.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        text = plain(line)
        if line.startswith(_HEADS):
            yield f"\x1b[1m{text}\x1b[m"
        elif colour := _COLOURS.get(line[:1]):
            yield f"\x1b[{colour}m{text}\x1b[m"
        else:
            yield text


def _paged(lines: list[str]) -> bool:
    """Show lines in the user's pager, where there are more than the screen has; return whether one was there."""
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
            continue  # that is for the pager
