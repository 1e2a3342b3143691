"""The screen of a run's changes: its files, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ...core.errors import SubdeckError
from ...core.text.plain import one_line
from ..dialogs.ask import AskScreen
from ..feed.bridge import Bridge
from ..feed.repeater import Repeater
from ..feed.supervision import SLOW_S
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..terminal.after_close import is_open
from ..terminal.textual_internals import LeanScreen
from ..text.cells import fit, two_sided
from ..text.format import format_error
from ..toasts import answer_key
from ..widgets.line_view import RowList
from ._document import Document, Kind
from ._view import DiffView, colour_parts

if TYPE_CHECKING:
    from ...core.git.patch import FilePatch
    from ._reader import ChangesRead

BESIDE_COLUMNS = 160
"""Width from which old and new start side by side."""
LIST_COLUMNS = 100
"""Width from which the list of files is beside the differences."""
COUNT_CELLS = 12
REFRESH_SECONDS = 5.0
"""Between two reads of a running run's files."""
MOST_LISTED = 5
"""Rows of the list of files above the differences."""


class ChangedFiles(RowList, can_focus=False):
    """The files with their added and removed lines; the cursor is on the one shown."""

    def __init__(self) -> None:
        super().__init__(id="changed-files")
        self._files: Sequence[FilePatch] = ()

    def show_files(self, files: Sequence[FilePatch]) -> None:
        self._files = files
        self.cursor = min(self.cursor, max(0, len(files) - 1))
        self.set_height()
        self.refresh()

    def show_file(self, number: int) -> None:
        """Move the cursor to a file without posting a message."""
        if number != self.cursor and number < len(self._files):
            self.cursor = number
            self.show_cursor()
            self.refresh()

    def cursor_moved(self) -> None:
        self.post_message(self.Highlighted())

    @property
    def row_count(self) -> int:
        return len(self._files)

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        file = self._files[row]
        added, removed = f"+{file.added}", f"−{file.removed}"
        if file.is_binary:
            counts = [(fit("binary", COUNT_CELLS, right=True), "row-list--muted")]
        else:
            room = COUNT_CELLS - len(removed) - 1
            counts = [(fit(added, room, right=True), "row-list--completed"), (f" {removed}", "row-list--failed")]
        name = one_line(file.path, 500)
        room = max(8, width - COUNT_CELLS - 1)
        if len(name) > room:
            name = "…" + name[-(room - 1) :]  # the end of a path says more than its beginning
        return [(fit(name, room), ""), *counts]


class ChangesScreen(LeanScreen):
    """Shows the result of `read` until it is closed."""

    BINDINGS = bindings(KeyContext.CHANGES)
    CSS_PATH = "changes.tcss"
    AUTO_FOCUS = "#differences"

    def __init__(
        self,
        bridge: Bridge,
        title: Callable[[], str],
        read: Callable[[], ChangesRead],
        goes_on: Callable[[], bool],
        act: Callable[[ChangesScreen, str], None],
        actions: Sequence[Action],
    ) -> None:
        """`read` is called in a thread, repeatedly while it `goes_on`; `act` handles actions beyond the view."""
        super().__init__()
        self._bridge = bridge
        self._title = title
        self._read = read
        self._goes_on = goes_on
        self._act = act
        self._actions = actions
        self.shown: ChangesRead | None = None
        self._failed = False
        """Whether every read has failed so far."""
        self._reading = Repeater(bridge, self._read_again, "Changes stopped", patience=SLOW_S)
        self._is_colouring = False

    def compose(self) -> ComposeResult:
        yield Static("", id="changes-head")
        yield Static("", id="changes-remarks")
        with Container(id="changes"):
            yield ChangedFiles()
            yield DiffView(id="differences")
        yield Static(Content(f" {keys_line(KeyContext.CHANGES, self._actions)}"), id="changes-keys")

    def on_mount(self) -> None:
        self._show_head()
        self._reading.ask()
        self.set_interval(REFRESH_SECONDS, self._tick)

    @property
    def view(self) -> DiffView:
        return self.query_one(DiffView)

    @property
    def _files(self) -> ChangedFiles:
        return self.query_one(ChangedFiles)

    @property
    def document(self) -> Document | None:
        return self.view.document

    # --- reading -----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._goes_on():
            self._reading.ask()

    async def _read_again(self) -> None:
        try:
            read = await self._bridge.read(self._read)
        except (SubdeckError, OSError) as error:
            if is_open(self) and self.shown is None:
                self._failed = True
                self._show_head()
                self._remark((format_error(error),))
            return
        if is_open(self):
            self._take(read)

    def _take(self, read: ChangesRead) -> None:
        before, self.shown = self.shown, read
        self._show_head()
        self._remark(read.remarks if read.content else (*read.nothing, *read.remarks))
        if before is not None and before.content == read.content:
            return
        document, view = read.document, self.view
        old = before.document if before else None
        position = old.position_at(view.cursor) if old else None
        document.folded = old.folded if old else set()
        document.spaces = old.spaces if old else True
        document.beside = old.beside if old else self.size.width >= BESIDE_COLUMNS
        if document.folded or document.beside or not document.spaces:
            document.lay_out()
        if old:
            self._keep_marks(old, document)
        is_name = old is not None and view.cursor < len(old.rows) and old.rows[view.cursor].kind is Kind.FILE
        view.show(document, line=_line_of(document, position, is_name=is_name) if position else 0)
        self._files.show_files(document.patch.files)
        self._lay_out()

    def _keep_marks(self, old: Document, new: Document) -> None:
        """Keep the marks of unchanged hunks, even if their numbers changed; report the dropped ones."""
        kept: set[tuple[str, int]] = set()
        for path, number in self.view.marked:
            lines = old.hunk_lines(path, number)
            new_number = new.find_hunk(path, lines) if lines is not None else None
            if new_number is not None:
                kept.add((path, new_number))
        if gone := len(self.view.marked) - len(kept):
            self.say(f"Deselected {gone} changed hunk{'' if gone == 1 else 's'}.")
        self.view.marked = kept

    def _show_head(self) -> None:
        read = self.shown
        width = max(20, self.size.width - 2)
        what = read.words if read else "" if self._failed else "reading…"
        if read is not None and self._goes_on():
            what += " so far"
        self.query_one("#changes-head", Static).update(two_sided(Content(self._title()), Content(what), width))

    def _remark(self, lines: Sequence[str]) -> None:
        remarks = self.query_one("#changes-remarks", Static)
        remarks.update(Content("\n".join(lines)))
        remarks.display = bool(lines)

    def on_resize(self, _: Resize) -> None:
        if self.is_mounted:
            self._show_head()
            self._lay_out()

    def _lay_out(self) -> None:
        """Put the list of files beside the differences, or above them on a narrow screen."""
        is_wide = self.size.width >= LIST_COLUMNS
        self.query_one("#changes").styles.layout = "horizontal" if is_wide else "vertical"
        files = self._files
        files.display = files.row_count > 0
        files.styles.width = "28%" if is_wide else "100%"
        files.styles.height = "1fr" if is_wide else min(MOST_LISTED, max(1, files.row_count)) + 2

    # --- the view ----------------------------------------------------------------------------------------------------

    @on(DiffView.Moved)
    def follow_file(self) -> None:
        if (document := self.document) and self.view.cursor < len(document.rows):
            self._files.show_file(document.rows[self.view.cursor].file)

    @on(RowList.Highlighted)
    def show_file(self) -> None:
        if document := self.document:
            self.view.go_to(document.file_rows[self._files.cursor], top=True)

    @on(DiffView.Uncoloured)
    def colour(self) -> None:
        if not self._is_colouring:
            self._is_colouring = True
            self._bridge.spawn(self._colour)

    async def _colour(self) -> None:
        try:
            while is_open(self) and (document := self.document) and (parts := self.view.uncoloured()):
                colours = await self._bridge.call(colour_parts, parts)
                if is_open(self):
                    self.view.take_colours(document, colours)
        finally:
            self._is_colouring = False

    def action_move(self, where: str) -> None:
        self.view.action_move(where)

    def action_go_file(self, by: int) -> None:
        self._go(lambda document: document.file_rows, by, "file")

    def action_go_hunk(self, by: int) -> None:
        self._go(lambda document: document.hunk_rows, by, "hunk")

    def _go(self, rows_of: Callable[[Document], list[int]], by: int, what: str) -> None:
        document, cursor = self.document, self.view.cursor
        if document is None:
            return
        rows = rows_of(document)
        beyond = [row for row in rows if (row > cursor if by > 0 else row < cursor)]
        if not beyond:
            self.say(f"No {'next' if by > 0 else 'previous'} {what}.")
            return
        self.view.go_to(beyond[0] if by > 0 else beyond[-1], top=True)

    def action_fold(self) -> None:
        """Fold the file under the cursor, or unfold it."""
        if (document := self.document) and (file := self.view.file):
            document.folded ^= {file.key}
            document.lay_out()
            self.view.laid_out(file.begin)

    def action_fold_all(self) -> None:
        if document := self.document:
            line = self.view.line
            document.folded = set() if document.folded else {file.key for file in document.patch.files}
            document.lay_out()
            self.view.laid_out(line)

    def action_beside(self) -> None:
        if document := self.document:
            line = self.view.line
            document.beside = not document.beside
            document.lay_out()
            self.view.laid_out(line)

    def action_spaces(self) -> None:
        if document := self.document:
            line = self.view.line
            document.spaces = not document.spaces
            document.lay_out()
            self.view.laid_out(line)
            self.say("Whitespace changes are " + ("shown." if document.spaces else "hidden."))

    def action_mark(self) -> None:
        """Select or deselect the hunk under the cursor, and go to the next one."""
        document, view = self.document, self.view
        if document is None or view.cursor >= len(document.rows):
            return
        if all(action.id != "mark_hunk" for action in self._actions):
            self.say("Hunks cannot be selected here: nothing to apply.")
            return
        row = document.rows[view.cursor]
        if row.hunk < 0:
            self.say("Move the cursor to a hunk to select it.")
            return
        view.marked ^= {(document.patch.files[row.file].path, row.hunk + 1)}
        view.draw_again()
        if any(begin > view.cursor for begin in document.hunk_rows):
            self.action_go_hunk(1)

    # --- finding -----------------------------------------------------------------------------------------------------

    def action_find(self) -> None:
        hint = "A capital letter makes it case-sensitive."
        screen = AskScreen(self._bridge, "Search the changes", self._find, value=self.view.wanted, hint=hint)
        self.app.push_screen(screen)

    async def _find(self, text: str) -> bool:
        self.view.wanted = text
        self.view.draw_again()
        if text:
            self.action_step(1)
        return True

    def action_step(self, by: int) -> None:
        """Go to the next match, or the previous one."""
        document, view = self.document, self.view
        if document is None or not view.wanted:
            self.say("No active search.")
            return
        line = document.find(view.wanted, view.line, by)
        if line is None:
            self.say(f'No match for "{one_line(view.wanted, 60)}".')
            return
        row = document.row_of(line)
        if (key := document.patch.files[document.rows[row].file].key) in document.folded:
            document.folded.discard(key)
            document.lay_out()
            row = document.row_of(line)
            view.laid_out(line)
        view.go_to(row)

    # --- the rest ----------------------------------------------------------------------------------------------------

    def action_act(self, action_id: str) -> None:
        """Do an action beyond the view: apply, open, copy, pipe."""
        self._act(self, action_id)

    def say(self, text: str) -> None:
        answer_key(self, text)

    def action_cancel(self) -> None:
        """End the search, then leave."""
        if self.view.wanted:
            self.view.wanted = ""
            self.view.draw_again()
        else:
            self.dismiss(None)


def _line_of(document: Document, position: tuple[str, int], *, is_name: bool) -> int:
    """Return the line of the patch nearest to a line of a file, or the line with its name."""
    path, number = position
    patch = document.patch
    for file in patch.files:
        if file.path == path and is_name:
            return file.begin
        if file.path == path:
            return next((at for at in range(file.begin, file.end) if patch.new[at] >= number), file.begin)
    return 0
