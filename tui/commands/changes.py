"""The commands on what a run changed: it is shown, looked at elsewhere, and taken over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.git.names import name_of as file_name_of
from ...core.system.files import open_private
from ...core.text.plain import disarmed, one_line
from ...core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SQUASH
from ..actions import KeyContext, said
from ..deck.screen import MainScreen
from ..dialogs.ask import AskScreen
from ..dialogs.reader import HelpScreen
from ..terminal.handover import edit_file, page_with, pipe_file
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..changes.screen import ChangesScreen
    from .operations import OperationCommands

_OF_ONE_RUN = frozenset({
    "apply_changes", "apply_file", "mark_hunk", "apply_hunks", "merge_changes", "pick_changes", "commit_changes",
    "keep_changes", "discard_changes", "edit_change",
})  # fmt: skip
"""Actions that mean nothing between two runs."""
HINT = "Runs in your shell with the patch as stdin, such as: delta, diffstat, git apply --check"


class ChangesCommands(Commands):
    def __init__(
        self,
        deck: MainScreen,
        operations: OperationCommands,
        copy: Callable[[str, str], None],
        undo: Callable[[], Awaitable[None]],
    ) -> None:
        """`copy` puts a text into the clipboard, and says so with what it is called; `undo` takes back what was done
        last.
        """
        super().__init__(deck)
        self._operations = operations
        self._undo = undo
        self._copy = copy
        self._command = ""
        """What was typed last."""

    async def show(self, run: RunSnapshot) -> None:
        """Show what a run changed; of one that goes on, as it is now and then."""
        from ..changes.reader import read_changes
        from ..changes.screen import ChangesScreen

        engine, run_store = self._bridge.engine, self._deck.run_store

        def standing() -> RunSnapshot:
            return run_store.get(run.run_id) or run

        screen = ChangesScreen(
            self._bridge,
            lambda: _title(standing()),
            lambda: read_changes(engine, standing()),
            lambda: not standing().has_ended,
            lambda screen, action_id: self._act(screen, action_id, standing()),
            self._deck.actions,
        )
        self.app.push_screen(screen)

    def show_difference(self, run: RunSnapshot, other: RunSnapshot) -> None:
        """Show what would make of the files that one run has left those that another has."""
        from ..changes.screen import ChangesScreen
        from ..compare.difference import read_difference

        engine, actions = self._bridge.engine, [each for each in self._deck.actions if each.id not in _OF_ONE_RUN]
        names = f"{name_of(run)} to {name_of(other)}"
        context = replace(self._deck.action_context, run=None, marked=0, place=KeyContext.CHANGES)

        def act(screen: ChangesScreen, action_id: str) -> None:
            does: dict[str, Callable[[], object]] = {
                "help_on_changes": lambda: self.app.push_screen(HelpScreen(actions, context)),
                "copy_hunk": lambda: self._copy_hunk(screen),
                "pipe_changes": lambda: self._ask_command(screen, f"the difference from {names}"),
                "page_changes": lambda: self.spawn(self._page, screen),
            }
            action = next((action for action in actions if action.id == action_id), None)
            if action and (obstacle := action.refusal(context)):
                self._deck.refuse(action, said(obstacle, actions))
            elif action_id in does:
                does[action_id]()
            else:
                self._say("Not possible between two runs. Open the changes of one run (c on the deck).")

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
        """Do what a key in the changes asks for."""
        deck, operations = self._deck, self._operations
        action = next((action for action in deck.actions if action.id == action_id), None)
        context = replace(deck.action_context, run=run, marked=0, place=KeyContext.CHANGES)
        if action and (obstacle := action.refusal(context)):
            deck.refuse(action, said(obstacle, deck.actions))
            return
        file = screen.view.file
        names = [name for name in (file.path, file.old_path) if name] if file else []
        does: dict[str, Callable[[], object]] = {
            "apply_changes": lambda: self.spawn(operations.carry_out, APPLY, run),
            "apply_file": lambda: self.spawn(operations.carry_out, APPLY, run, files=names),
            "apply_hunks": lambda: self._apply_hunks(screen, run),
            "merge_changes": lambda: self.spawn(operations.carry_out, MERGE, run),
            "pick_changes": lambda: self.spawn(operations.carry_out, SQUASH, run),
            "commit_changes": lambda: self.spawn(operations.carry_out, COMMIT, run),
            "keep_changes": lambda: self.spawn(operations.save, run),
            "discard_changes": lambda: self.spawn(self._discard, screen, run),
            "undo_in_changes": lambda: self.spawn(self._undo),
            "help_on_changes": lambda: self.app.push_screen(HelpScreen(deck.actions, context)),
            "copy_hunk": lambda: self._copy_hunk(screen),
            "edit_change": lambda: self.spawn(self._edit, screen, run),
            "pipe_changes": lambda: self._ask_command(screen, f"the changes of {name_of(run)}"),
            "page_changes": lambda: self.spawn(self._page, screen),
        }
        does[action_id]()

    def _apply_hunks(self, screen: ChangesScreen, run: RunSnapshot) -> None:
        """Apply what is marked; without any mark the hunk under the cursor."""
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

    # --- looking at it elsewhere -------------------------------------------------------------------------------------

    def _copy_hunk(self, screen: ChangesScreen) -> None:
        document = screen.document
        text = disarmed(document.hunk_text(screen.view.cursor).decode("utf-8", "replace")) if document else ""
        if text:
            self._copy(text, "the patch, ")
        else:
            self._say("Nothing to copy.")

    async def _edit(self, screen: ChangesScreen, run: RunSnapshot) -> None:
        document = screen.document
        place = document.place_at(screen.view.cursor) if document else None
        if place is None:
            self._say("No file under the cursor.")
            return
        name, line = place
        root = await self._bridge.call(self._bridge.engine.work.root, run)
        path = await self._bridge.call(_file_in, root, name)
        if not path:
            self._say(f"{one_line(name, 80)} does not exist in {one_line(root, 120)} now.")
        elif problem := edit_file(self.app, path, line=line):
            self._say(problem, error=True)

    def _ask_command(self, screen: ChangesScreen, what: str) -> None:
        async def take(command: str) -> bool:
            self._command = command
            if command.strip():
                self.spawn(self._pipe, screen, command)
            return True

        self.app.push_screen(AskScreen(self._bridge, f"Pipe {what} to a command", take, value=self._command, hint=HINT))

    async def _pipe(self, screen: ChangesScreen, command: str) -> None:
        cwd = self._bridge.engine.cwd
        await self._lend(screen, lambda path: pipe_file(self.app, path, command, cwd=cwd))

    async def _page(self, screen: ChangesScreen) -> None:
        pager = self._bridge.engine.settings.diff_pager
        await self._lend(screen, lambda path: page_with(self.app, pager, path))

    async def _lend(self, screen: ChangesScreen, show: Callable[[str], str]) -> None:
        """Write the patch into a file, and have a program show that in this terminal."""
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
    """Return the path of a file below a directory; empty where there is none, or it leads out of it."""
    path = os.path.realpath(os.path.join(root, os.fsdecode(file_name_of(name))))
    is_inside = path.startswith(os.path.realpath(root).rstrip("/") + "/")
    return path if is_inside and os.path.isfile(path) else ""


def _write(path: str, content: bytes) -> None:
    with open(path, "xb", opener=open_private) as file:
        file.write(content)
