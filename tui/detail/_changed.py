"""A run's changes as rows: where, which files, who else wrote there, and the check's result; pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.run.changes import EDITED, ChangedFile, Changes, CheckResult, FileStatus
from ...core.run.describe import check_words
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ..text.cells import cells, fit
from ..text.format import short_path
from .page import Row, heading, joined, note, text_rows

COUNT = 8
"""Cells of the added and of the removed lines."""
NOTE = 300
"""Characters of a remark on a file."""


def changed_rows(run: RunSnapshot, changes: Changes | None, check: CheckResult | None, width: int) -> list[Row]:
    """Lay out a run's changes; for a running run, its changes so far."""
    blocks = (_changes(run, changes, width), _location(run, width), _check(run, check, width))
    return joined(block for block in blocks if block)


def _changes(run: RunSnapshot, changes: Changes | None, width: int) -> list[Row]:
    if changes is None:
        return [note("This run's changes are unknown." if run.has_ended else "No information yet.")]
    summary = changes.sum if changes.files else "none" if changes.is_nothing else ""
    edited = f"The worktree was {EDITED}. Its current state is shown." if changes.edited else ""
    remarks = (edited, f"shared directory: {changes.shared}" if changes.shared else "", *changes.remarks)
    title = "In its worktree" if changes.edited else "Changes" if run.has_ended else "Changes so far"
    head = heading(title, summary)
    return [
        head,
        *(row for remark in remarks if remark for row in text_rows(remark, width, "warning")),
        *_files(changes, width),
    ]


def _file_details(file: ChangedFile) -> str:
    status = "" if file.status is FileStatus.MODIFIED else str(file.status)
    origin = f"from {one_line(file.old_path, NOTE)}" if file.old_path else ""
    return ", ".join(filter(None, (status, origin, one_line(file.note, NOTE))))


def _files(changes: Changes, width: int) -> Iterator[Row]:
    details = [_file_details(file) for file in changes.named]
    beside = min(max((cells(text) for text in details), default=0), width // 3)
    for file, text in zip(changes.named, details, strict=True):
        counts = ("", "") if file.added is None or file.removed is None else (f"+{file.added}", f"−{file.removed}")
        figures = "".join(fit(count, COUNT, right=True) for count in counts)
        name = fit(one_line(file.path, NOTE), max(8, width - 2 * COUNT - beside - 4))
        yield ((f"  {name}", ""), (figures, ""), (f"  {fit(text, beside)}".rstrip(), "muted"))
    if (more := changes.files - len(changes.named)) > 0:
        yield note(f"  and {more:,} more")


def _location(run: RunSnapshot, width: int) -> list[Row]:
    meta = run.meta
    if meta.worktree is None and run.branch:
        text = f"branch {one_line(run.branch, NOTE)}, fetched from {one_line(run.host, NOTE)}"
        return [heading("Where", "a separate copy on another machine"), *text_rows(text, width)]
    if meta.worktree is None:
        return [heading("Where", short_path(meta.cwd))]
    text = f"{meta.worktree.words}\nof {short_path(meta.worktree.origin)}"
    return [heading("Where", "its own worktree"), *text_rows(text, width)]


def _check(run: RunSnapshot, check: CheckResult | None, width: int) -> list[Row]:
    if check is None:
        return [heading("Check", f"{one_line(run.meta.check, NOTE)} is running")] if run.checking else []
    return [heading("Check"), *text_rows(check_words(check), width), *text_rows(check.output, width, "muted")]
