"""Who made the changes: files written by a run's tools, from its events, and others who may have written there.

Outside git the events are the only source.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from ..git.names import worded
from ..paths import EVENTS
from ..run.changes import MOST_FILES, ChangedFile, Changes, ChangesSource, FileStatus
from ..run.edits import EVERYWHERE, diff_of_call, paths_of
from ..run.events import Event, ToolCall, ToolResult, call_id_of_line, decode_event, line_prefix
from ..run.model import RunMeta
from ..system.line_file import LineTail
from ..text.plain import one_line
from . import presence
from .records import Recorded

_READERS = frozenset(
    {"read", "grep", "glob", "find", "ls", "notebookread", "webfetch", "websearch", "todowrite", "todoread"}
)
"""Tools, in lower case, that write no file."""
_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)
_STATUS = {"add": FileStatus.ADDED, "delete": FileStatus.DELETED}
PATH_LENGTH = 4096
PIECE = 4 * 1024 * 1024
"""Bytes of events read at a time while a run is running: the reader has other work."""


class _File(Struct):
    status: FileStatus
    added: int | None = 0
    removed: int | None = 0


class Written:
    """Files written by one run; reads its events in order, and later additions to them."""

    def __init__(self, cwd: str, events_file: str) -> None:
        self._cwd = cwd
        self._tail = LineTail(events_file)
        self._waited: set[bytes] = set()
        """Prefixes of the lines of awaited results."""
        self._files: dict[str, _File] = {}
        """By absolute path."""
        self._open: dict[str, ToolCall] = {}
        """Calls that write, by id, whose results have not come."""
        self.has_commands = False
        """Whether it used tools that may have written any file: its shell, a server's tools."""
        self.has_git = False
        """Whether one of its commands mentions git."""

    def read(self, *, is_over: bool) -> None:
        """Read new events, up to `PIECE` bytes unless `is_over`; unreadable ones are skipped.

        If the run is over, calls without a result count: they may have taken effect.
        """
        for line in self._tail.lines(None if is_over else PIECE):
            if line.startswith(_CALL):
                if event := decode_event(line):
                    self._apply(event)
                if self._open:
                    self._waited.add(call_id_of_line(line))
            elif line.startswith(_RESULT) and (call_id := call_id_of_line(line)) in self._waited:
                self._waited.discard(call_id)
                if event := decode_event(line):
                    self._apply(event)
        if is_over:
            for call in self._open.values():
                self._take(call, None)
            self._open.clear()

    def _apply(self, event: Event) -> None:
        match event:
            case ToolCall(tool_call_id=call_id, tool_name=name, args=args):
                if call_id in self._open:
                    self._take(self._open.pop(call_id), None)
                if paths_of(event):
                    self._open[call_id] = event
                elif name.lower() not in _READERS:
                    self.has_commands = True
                    self.has_git = self.has_git or any("git" in word for word in args.values() if isinstance(word, str))
            case ToolResult(tool_call_id=call_id, is_error=is_error):
                call = self._open.pop(call_id, None)
                if call and not is_error:
                    self._take(call, event)
            case _:
                return

    @property
    def paths(self) -> frozenset[str]:
        """The files that its tools wrote, absolute, if links do not lead elsewhere."""
        return frozenset(self._files)

    def changes(self, note: str = "") -> Changes:
        """Return the known changes; `note` says what is missing."""
        named = tuple(
            ChangedFile(one_line(self._shown(path), PATH_LENGTH), file.status, file.added, file.removed)
            for path, file in sorted(self._files.items())
        )
        return Changes(
            files=len(named),
            added=sum(file.added or 0 for file in named),
            removed=sum(file.removed or 0 for file in named),
            source=ChangesSource.TOOLS,
            note=note or ("changes by its commands are unknown outside git" if self.has_commands else ""),
            named=named[:MOST_FILES],
        )

    def _shown(self, path: str) -> str:
        inside = self._cwd.rstrip("/") + "/"
        return path.removeprefix(inside)

    def _take(self, call: ToolCall, result: ToolResult | None) -> None:
        named = dict(paths_of(call))
        counted = _counts(call, result, named)
        for path, kind in named.items():
            absolute = os.path.normpath(os.path.join(self._cwd, path))
            file = self._files.setdefault(absolute, _File(_STATUS.get(kind, FileStatus.MODIFIED)))
            if kind == "delete":
                file.status = FileStatus.DELETED
            counts = counted.get(path)
            if counts is None or file.added is None or file.removed is None:
                file.added = file.removed = None
            else:
                file.added, file.removed = file.added + counts[0], file.removed + counts[1]


def changes_by_tools(meta: RunMeta, run_dir: str, note: str = "") -> Changes:
    """Return the files that a run's tools wrote, from its events; `note` says why no more is known."""
    written = Written(meta.cwd, os.path.join(run_dir, EVENTS))
    written.read(is_over=True)
    return written.changes(note)


def _counts(call: ToolCall, result: ToolResult | None, named: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the lines that a call added and removed in each file, if it shows the earlier content."""
    if call.tool_name.lower() in ("write", "write_file", "create_file") and not (result and result.diff):
        return {}
    lines = diff_of_call(call, result)
    if any(line.text == EVERYWHERE and not line.sign for line in lines):
        return {}
    shown = {one_line(path): path for path in named}
    current = next(iter(named), "")
    counts: dict[str, tuple[int, int]] = dict.fromkeys(named, (0, 0))
    for line in lines:
        if not line.sign:
            current = shown.get(line.text, current)
        elif line.sign in "+-":
            added, removed = counts[current]
            counts[current] = (added + (line.sign == "+"), removed + (line.sign == "-"))
    return counts


# --- other possible authors ------------------------------------------------------------------------------------------

NAMED = 3
"""Runs or files to name."""


def shared_words(recorded: Recorded, changes: Changes, written: Written) -> str:
    """Describe others who were, or may have been, there; empty if only the run can have changed anything.

    Other runs are known by the files they lock; a person by git's state, and by files that the tools of a run without a
    shell have not written.
    """
    clauses = (shared_now(recorded), _moved(recorded, written), _strange(recorded, changes, written))
    return "; ".join(filter(None, clauses))


def shared_now(recorded: Recorded) -> str:
    """Name the runs that have been in a run's working tree since it began, including new ones."""
    try:
        other_runs = presence.others(recorded.run_id, recorded.root)
    except OSError:
        return ""
    names = [run.words for run in other_runs if run.is_there or run.run_id not in recorded.earlier]
    return f"other runs there: {_listed(names)}" if names else ""


def _moved(recorded: Recorded, written: Written) -> str:
    """Report that another commit was checked out, unless the run's own command may have done so."""
    from ..git.repository import find  # not needed for changes outside git

    if written.has_git:
        return ""
    now = find(recorded.root)
    if now is None or now.trouble:
        return ""
    if (now.branch or "") != recorded.branch:
        return f"another branch was checked out: {one_line(now.branch or 'none', 80)}"
    return "HEAD was moved" if (now.head or "") != recorded.head else ""


def _strange(recorded: Recorded, changes: Changes, written: Written) -> str:
    """Name changed files that no tool of the run wrote, if it cannot write otherwise."""
    if written.has_commands or len(changes.named) < changes.files:
        return ""
    tool_paths = {worded(os.fsencode(os.path.relpath(os.path.realpath(path), recorded.root))) for path in written.paths}
    strange = [one_line(file.path, 80) for file in changes.named if file.path not in tool_paths]
    return f"not written by its tools: {_listed(strange)}" if strange else ""


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
