"""The command that shows a run's changes, and the keys there: open them elsewhere, or apply them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.system.files import open_private
from ...core.text.plain import disarmed, one_line
from ...core.work.operation import APPLY, DISCARD, OPERATIONS, InView
from ..commands import Commands, name_of
from ..keys.command import RUNS, TRANSCRIPT, Action, KeyContext, at, command, moves, needs_run
from ..runs.commands import RunCommands, needs_undoable

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ._screen import ChangesScreen
    from .operations import OperationCommands

CHANGES = KeyContext.CHANGES
_OPERATIONS = {operation.in_view.action: operation for operation in OPERATIONS if operation.in_view}
"""The operations with a key here, by action."""
_OF_ONE_RUN = frozenset((*_OPERATIONS, "apply_file", "mark_hunk", "apply_hunks", "keep_changes", "edit_change"))
"""Actions without a meaning between two runs."""
HINT = "Runs in your shell with the patch as stdin, such as: delta, diffstat, git apply --check"


def _action(shown: InView) -> Action:
    do = f"screen.act('{shown.action}')"
    return Action(
        shown.action,
        at(CHANGES, shown.key),
        shown.name,
        shown.help,
        do=do,
        footer=shown.footer,
        changes=True,
        guarded=True,
    )


class ChangesCommands(Commands):
    opens = (".operations",)

    _command = ""
    """The last command typed."""

    @property
    def _operations(self) -> OperationCommands:
        from .operations import OperationCommands

        return self._of(OperationCommands)

    @command("changes", (*at(RUNS, "c"), *at(TRANSCRIPT, "c")), "changes", needs=needs_run, footer=12)
    async def show(self, run: RunSnapshot) -> None:
        """Review the run's changes file by file. Apply, merge or discard them."""
        from ._reader import read_changes
        from ._screen import ChangesScreen

        engine, run_store = self._bridge.engine, self._deck.run_store

        def current() -> RunSnapshot:
            return run_store.get(run.run_id) or run

        screen = ChangesScreen(
            self._bridge,
            lambda: _title(current()),
            lambda: read_changes(engine, current()),
            lambda: not current().has_ended,
            lambda screen, action_id: self._act(screen, action_id, current()),
            self._deck.actions,
        )
        self.app.push_screen(screen)

    def show_difference(self, run: RunSnapshot, other: RunSnapshot) -> None:
        """Show the changes that turn the other run's files into this run's."""
        from ..dialogs.reader import HelpScreen
        from ..keys.keymap import with_keys
        from ._reader import read_difference
        from ._screen import ChangesScreen

        engine, actions = self._bridge.engine, [each for each in self._deck.actions if each.id not in _OF_ONE_RUN]
        names = f"{name_of(run)} to {name_of(other)}"
        context = replace(self._deck.action_context, run=None, marked=0, key_context=CHANGES)

        def act(screen: ChangesScreen, action_id: str) -> None:
            does: dict[str, Callable[[], object]] = {
                "help_on_changes": lambda: self.app.push_screen(HelpScreen(actions, context)),
                "copy_hunk": lambda: self._copy_hunk(screen),
                "pipe_changes": lambda: self._ask_command(screen, f"the difference from {names}"),
                "page_changes": lambda: self.spawn(self._page, screen),
            }
            action = next((action for action in actions if action.id == action_id), None)
            if action and (obstacle := action.refusal(context)):
                self._deck.refuse(action, with_keys(obstacle, actions))
            elif action_id in does:
                does[action_id]()
            else:
                self._say(f"Not possible between two runs. {self._key('changes')} on the deck opens one run's changes.")

        self.app.push_screen(
            ChangesScreen(
                self._bridge,
                lambda: f"Difference from {names}",
                lambda: read_difference(engine, run, other),
                lambda: False,
                act,
                actions,
            )
        )

    def _act(self, screen: ChangesScreen, action_id: str, run: RunSnapshot) -> None:
        """Do the action of a key in the changes."""
        operations = self._operations
        context = replace(self._deck.action_context, run=run, marked=0, key_context=CHANGES)
        if self._obstacle(action_id, context):
            return
        file = screen.view.file
        names = [name for name in (file.path, file.old_path) if name] if file else []
        does: dict[str, Callable[[], object]] = {
            name: lambda operation=operation: self.spawn(operations.carry_out, operation, run)
            for name, operation in _OPERATIONS.items()
        }
        does |= {
            "discard_changes": lambda: self.spawn(self._discard, screen, run),
            "apply_file": lambda: self.spawn(operations.carry_out, APPLY, run, files=names),
            "apply_hunks": lambda: self._apply_hunks(screen, run),
            "keep_changes": lambda: self.spawn(operations.save, run),
            "undo_in_changes": lambda: self.spawn(self._of(RunCommands).undo),
            "help_on_changes": lambda: self._show_help(context),
            "copy_hunk": lambda: self._copy_hunk(screen),
            "edit_change": lambda: self.spawn(self._edit, screen, run),
            "pipe_changes": lambda: self._ask_command(screen, f"the changes of {name_of(run)}"),
            "page_changes": lambda: self.spawn(self._page, screen),
        }
        does[action_id]()

    in_view = (
        *(_action(operation.in_view) for operation in OPERATIONS if operation.in_view),
        Action("apply_file", at(CHANGES, "F"), "apply file", do="screen.act('apply_file')", changes=True,
               guarded=True, after="apply_changes",
               help="Apply the changes of the file under the cursor to your working tree."),
        Action("mark_hunk", at(CHANGES, "space"), "select hunk", do="screen.mark", footer=3, after="apply_file",
               help="Select or deselect the hunk under the cursor and go to the next one."),
        Action("apply_hunks", at(CHANGES, "p"), "apply hunks", do="screen.act('apply_hunks')", footer=2, changes=True,
               guarded=True, after="mark_hunk",
               help="Apply the selected hunks, or the one under the cursor, to your working tree."),
        Action("keep_changes", at(CHANGES, "S"), "save as branch", do="screen.act('keep_changes')", changes=True,
               guarded=True, writes=True, after="commit_changes",
               help="Save the run's commits as a branch with a name that you choose."),
        Action("next_hunk", at(CHANGES, "}"), "next hunk", "Go to the next hunk.", do="screen.go_hunk(1)", footer=4),
        Action("previous_hunk", at(CHANGES, "{"), "previous hunk", "Go to the previous hunk.", do="screen.go_hunk(-1)"),
        Action("next_file", at(CHANGES, "tab"), "next file", "Go to the next file.", do="screen.go_file(1)",
               footer=5),
        Action("previous_file", at(CHANGES, "shift+tab"), "previous file", "Go to the previous file.",
               do="screen.go_file(-1)"),
        Action("fold_file", at(CHANGES, "enter"), "fold", do="screen.fold",
               help="Fold or unfold the file under the cursor."),
        Action("fold_files", at(CHANGES, "O"), "fold all", "Fold or unfold all files.",
               do="screen.fold_all"),
        Action("beside", at(CHANGES, "t"), "side by side", do="screen.beside", footer=7,
               help="Toggle between side-by-side and unified view."),
        Action("spaces", at(CHANGES, "ctrl+w"), "whitespace", do="screen.spaces",
               help="Toggle whitespace changes."),
        Action("find_change", at(CHANGES, "/"), "find", "Search the changes.", do="screen.find", footer=6, writes=True),
        Action("next_found", at(CHANGES, "n"), "next", "Go to the next match.",
               do="screen.step(1)"),
        Action("previous_found", at(CHANGES, "N"), "previous", "Go to the previous match.", do="screen.step(-1)"),
        Action("undo_in_changes", at(CHANGES, "u"), "undo", needs=needs_undoable, do="screen.act('undo_in_changes')",
               changes=True, guarded=True, help="Undo the last action. Asks first."),
        Action("help_on_changes", at(CHANGES, "?"), "help", do="screen.act('help_on_changes')", footer=11,
               help="Show the most used keys here. Press it again for all keys."),
        Action("copy_hunk", at(CHANGES, "y"), "copy", do="screen.act('copy_hunk')",
               help="Copy the hunk under the cursor as a patch. On a file name, copy the whole file's patch."),
        Action("edit_change", at(CHANGES, "e"), "open file", do="screen.act('edit_change')", footer=8, changes=True,
               help="Open the file under the cursor in your editor ($EDITOR), at that line."),
        Action("pipe_changes", at(CHANGES, "|"), "pipe", do="screen.act('pipe_changes')", changes=True, writes=True,
               help="Pipe the patch to a shell command."),
        Action("page_changes", at(CHANGES, "v"), "pager", do="screen.act('page_changes')",
               help="Open the patch in your pager (the setting app.diff_pager, or $PAGER)."),
        *moves((CHANGES,), "screen.move", "change_"),
    )  # fmt: skip

    def _apply_hunks(self, screen: ChangesScreen, run: RunSnapshot) -> None:
        """Apply the selected hunks; without a selection the hunk under the cursor."""
        view, document, read = screen.view, screen.document, screen.shown
        if document is None or read is None or not document.rows:
            self._say("No hunk to apply.")
            return
        chosen = set(view.marked)
        row = document.rows[view.cursor]
        if not chosen and row.hunk >= 0:
            chosen = {(document.patch.files[row.file].path, row.hunk + 1)}
        if not chosen:
            self._say("Move the cursor to a hunk, or select hunks.")
            return
        hunks: dict[str, list[int]] = {}
        for path, number in sorted(chosen):
            hunks.setdefault(path, []).append(number)
        tree = read.changes.tree if read.changes else ""
        self.spawn(self._operations.carry_out, APPLY, run, files=(), hunks=hunks, tree=tree)

    async def _discard(self, screen: ChangesScreen, run: RunSnapshot) -> None:
        if await self._operations.carry_out(DISCARD, run) and screen.is_current:
            screen.dismiss(None)

    # --- opening elsewhere -------------------------------------------------------------------------------------------

    def _copy_hunk(self, screen: ChangesScreen) -> None:
        document = screen.document
        text = disarmed(document.hunk_text(screen.view.cursor).decode("utf-8", "replace")) if document else ""
        if text:
            self._copy(text, "the patch, ")
        else:
            self._say("Nothing to copy.")

    async def _edit(self, screen: ChangesScreen, run: RunSnapshot) -> None:
        from ..terminal.handover import edit_file

        document = screen.document
        position = document.position_at(screen.view.cursor) if document else None
        if position is None:
            self._say("No file under the cursor.")
            return
        name, line = position
        root = await self._bridge.call(self._bridge.engine.work.root, run)
        path = await self._bridge.call(_file_in, root, name)
        if not path:
            self._say(f"{one_line(name, 80)} does not exist in {one_line(root, 120)} now.")
        elif problem := edit_file(self.app, path, line=line):
            self._say(problem, error=True)

    def _ask_command(self, screen: ChangesScreen, what: str) -> None:
        from ..dialogs.ask import AskScreen

        async def take(command: str) -> bool:
            self._command = command
            if command.strip():
                self.spawn(self._pipe, screen, command)
            return True

        self.app.push_screen(AskScreen(self._bridge, f"Pipe {what} to a command", take, value=self._command, hint=HINT))

    async def _pipe(self, screen: ChangesScreen, command: str) -> None:
        from ..terminal.handover import pipe_file

        cwd = self._bridge.engine.cwd
        await self._lend(screen, lambda path: pipe_file(self.app, path, command, cwd=cwd))

    async def _page(self, screen: ChangesScreen) -> None:
        from ..terminal.handover import page_with

        pager = self._bridge.engine.settings.diff_pager
        await self._lend(screen, lambda path: page_with(self.app, pager, path))

    async def _lend(self, screen: ChangesScreen, show: Callable[[str], str]) -> None:
        """Write the patch into a file, and show that with a program in this terminal."""
        import tempfile

        read = screen.shown
        if read is None or not read.content:
            self._say("No patch.")
            return
        with tempfile.TemporaryDirectory(prefix="subdeck-", ignore_cleanup_errors=True) as directory:
            path = os.path.join(directory, "changes.patch")
            await self._bridge.call(_write, path, read.content)
            if problem := show(path):
                self._say(problem, error=True)


def _title(run: RunSnapshot) -> str:
    words = f"{name_of(run)} ▸ {one_line(run.meta.task, 300)}"
    branch = run.meta.worktree.branch if run.meta.worktree else run.branch
    return f"{words} · {one_line(branch, 80)}" if branch else words


def _file_in(root: str, name: str) -> str:
    """Return the path of a file below a directory; empty if it does not exist or is outside."""
    from ...core.git.names import name_of as file_name_of

    path = os.path.realpath(os.path.join(root, os.fsdecode(file_name_of(name))))
    is_inside = path.startswith(os.path.realpath(root).rstrip("/") + "/")
    return path if is_inside and os.path.isfile(path) else ""


def _write(path: str, content: bytes) -> None:
    with open(path, "xb", opener=open_private) as file:
        file.write(content)
