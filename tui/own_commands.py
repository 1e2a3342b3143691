"""Your own commands: programs from the settings as actions with keys and texts, and how they are started."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from ..core.errors import reason
from ..core.system.files import open_private
from ..core.text.plain import disarmed, one_line
from .commands import Commands, name_of
from .keys.command import DECK, OWN_PREFIX, PRESETS, RUNS, TRANSCRIPT, Action, ActionContext, needs_own

if TYPE_CHECKING:
    from ..core.config.settings import OwnCommand
    from ..core.run.snapshot import RunSnapshot

PLACES = {"deck": DECK, "presets": PRESETS, "runs": RUNS, "transcript": TRANSCRIPT}
RUN_ID, CWD, ANSWER_FILE, PATCH_FILE = "{run_id}", "{cwd}", "{answer_file}", "{patch_file}"
PLACEHOLDERS = (RUN_ID, CWD, ANSWER_FILE, PATCH_FILE)

_NAME, _HELP = 20, 200
"""Characters of a title in the footer, and in the help."""
_RANK = 15
"""Footer rank, after the built-in actions."""
LAST_LINE = 200
"""Characters shown of the last line that a command printed."""
KEPT = 4096
"""Bytes of its output that are kept for that."""
PIECE = 65536
_INTERPRETERS = r"(ba|da|z|k|fi)?sh|python[0-9.]*|perl|ruby|node"
_TAKES_CODE = r"-[a-z]*[ce]"
_PLAIN_PATH = r"[A-Za-z0-9_@%+=:,./-]+"


def own_actions(commands: Mapping[str, OwnCommand]) -> tuple[Action, ...]:
    """Return an action for each command; the keys are not checked yet."""
    return tuple(_action(name, command) for name, command in commands.items())


def is_about_run(command: OwnCommand) -> bool:
    """Return whether a command uses the highlighted run."""
    return any(mark in word for word in command.argv for mark in PLACEHOLDERS)


def _action(name: str, command: OwnCommand) -> Action:
    title = one_line(command.title, _HELP) or name
    shown = one_line(" ".join(command.argv), _HELP)
    return Action(
        f"{OWN_PREFIX}{name}",
        tuple((PLACES[command.where], key.strip()) for key in command.key.split(",")),
        one_line(title, _NAME),
        f"{title} (your command: {shown})",
        needs=partial(_needs, command),
        footer=_RANK,
        changes=True,
    )


def _needs(command: OwnCommand, context: ActionContext) -> str:
    if command.terminal and not context.can_suspend:
        return "No terminal is available for another program."
    return needs_own(context) if is_about_run(command) else ""


class OwnCommands(Commands):
    def do_own(self, action_id: str) -> None:
        """Run an action's command."""
        name = action_id.removeprefix(OWN_PREFIX)
        if command := self._bridge.engine.settings.commands.get(name):
            self.spawn(self._run, name, command)
        else:
            self._say(f"{name} is no longer in your settings.")

    async def _run(self, name: str, command: OwnCommand) -> None:
        import tempfile

        from .terminal.handover import hand_over

        run = self._deck.run if is_about_run(command) else None
        with tempfile.TemporaryDirectory(prefix="subdeck-", ignore_cleanup_errors=True) as directory:
            path = os.path.join(directory, "answer.md")
            if any(ANSWER_FILE in word for word in command.argv) and not await self._write_answer(run, path):
                return
            patch = os.path.join(directory, "changes.patch")
            if any(PATCH_FILE in word for word in command.argv) and not await self._write_patch(run, patch):
                return
            argv = filled(command.argv, run, path, patch)
            if fault := code_fault(command.argv, run):
                self._say(fault, error=True)
                return
            title = one_line(command.title, 40) or name
            if command.terminal:
                problem = hand_over(self.app, argv)
            else:
                problem = await self._run_beside(title, argv)
            if problem:
                self._say(problem, error=True)

    async def _run_beside(self, title: str, argv: tuple[str, ...]) -> str:
        """Run a program that needs no terminal; show the last line that it printed, or return the error."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._bridge.engine.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"Cannot start {one_line(argv[0], 80)}: {reason(error)}"
        last = b""
        while process.stdout and (piece := await process.stdout.read(PIECE)):
            last = (last + piece)[-KEPT:]
        code = await process.wait()
        lines = last.decode("utf-8", "replace").split("\n")
        last_line = next((line for text in reversed(lines) if (line := one_line(text, LAST_LINE))), "")
        if code:
            return f"{title} failed with exit code {code}{f': {last_line}' if last_line else ''}"
        self._say(f"{title}: {last_line or 'done'}")
        return ""

    async def _write_answer(self, run: RunSnapshot | None, path: str) -> bool:
        result = None if run is None else await self._bridge.call(self._bridge.engine.result, run.run_id)
        if run is None or result is None or not (result.final_text or "").strip():
            self._say(f"{name_of(run) if run else 'This run'} has no answer.")
            return False
        await self._bridge.call(write_answer, path, disarmed(result.final_text or ""))
        return True

    async def _write_patch(self, run: RunSnapshot | None, path: str) -> bool:
        patch = b"" if run is None else await self._bridge.call(self._bridge.engine.work.patch, run)
        if not patch:
            self._say(f"{name_of(run) if run else 'This run'} has no patch.")
            return False
        await self._bridge.call(write_patch, path, patch)
        return True


def write_patch(path: str, patch: bytes) -> None:
    with open(path, "xb", opener=open_private) as file:
        file.write(patch)


def filled(argv: tuple[str, ...], run: RunSnapshot | None, answer_file: str, patch_file: str = "") -> tuple[str, ...]:
    """Replace the placeholders with their values; each stays part of its word."""
    if run is None:
        return argv
    values = {RUN_ID: run.run_id, CWD: run.meta.cwd, ANSWER_FILE: answer_file, PATCH_FILE: patch_file}
    # All at once: a path may contain the name of another placeholder.
    marks = "|".join(map(re.escape, values))
    return tuple(re.sub(marks, lambda match: values[match[0]], word) for word in argv)


def code_fault(argv: tuple[str, ...], run: RunSnapshot | None) -> str:
    """Return why a command cannot be started: its code, such as that of `sh -c`, would contain a directory's path that
    is not a plain word. Empty if it can be started.
    """
    is_interpreter = any(re.fullmatch(_INTERPRETERS, os.path.basename(word)) for word in argv)
    if run is None or not is_interpreter or re.fullmatch(_PLAIN_PATH, run.meta.cwd):
        return ""
    for flag, word in pairwise(argv):
        if CWD in word and re.fullmatch(_TAKES_CODE, flag):
            shown = one_line(run.meta.cwd, 80)
            return f"{one_line(argv[0], 40)} was not started: {shown} would be run as code. Pass {CWD} separately."
    return ""


def write_answer(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8", errors="replace", opener=open_private) as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
