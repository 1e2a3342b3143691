"""The actions on runs that are there: on all that are marked, else on the highlighted one."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from ...core.errors import RunBusy
from ...core.run.describe import runs_word, size_text
from ...core.text.plain import one_line
from ..deck.protocol import DeckView
from ..deck.undo import Deletion, deletion_of
from .base import Commands, first_of, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi

NAMED = 5
"""Runs that a question names; more are counted."""
PATIENCE = 10.0
"""Seconds beyond the grace that a run may take to end before it is deleted."""

Runs = Sequence["RunSnapshot"]


class RunCommands(Commands):
    """Stop, kill and delete runs, and bring them back."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {
            "stop": self._stop_targets,
            "kill": lambda: self._with_targets(self._kill),
            "delete": lambda: self._with_targets(self._delete),
            "undo": lambda: self._spawn(self._undo, deck.undo.pop()),
            "copy_id": self.copy_ids,
        }

    def copy_ids(self) -> None:
        ids = [run.run_id for run in self._deck.runs.targets]
        self._app.copy_to_clipboard("\n".join(ids))
        self._say(f"Copied {ids[0] if len(ids) == 1 else f'{len(ids)} run ids'}")

    def _with_targets(self, command: Callable[[Runs], Coroutine[None, None, None]]) -> None:
        if runs := self._deck.runs.targets:
            self._acts_on(runs)
            self._spawn(command, runs)

    def _stop_targets(self) -> None:
        """Ask where it is about several only."""
        if len(runs := self._deck.runs.targets) == 1:
            self._acts_on(runs)
            self._spawn(self._stop, runs)
        else:
            self._with_targets(self._stop)

    async def _undo(self, deletion: Deletion) -> None:
        await deletion.restore()
        self._say(f"Brought back {deletion.what}")

    async def _stop(self, runs: Runs) -> None:
        active = [run for run in runs if not run.has_ended]
        several = f"{name_list(active)}\n\nEach keeps what it has done."
        if len(active) > 1 and not await self._confirmed(f"Stop {runs_word(len(active))}?", several, "Stop"):
            return
        told = await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active])
        self._say(f"Stopping {who(active)}" if told else f"{who(runs)} had already ended")

    async def _kill(self, runs: Runs) -> None:
        active = [run for run in runs if not run.has_ended]
        if not active:
            self._say(f"{who(runs)} had already ended")
            return
        question = "Kill this run?" if len(active) == 1 else f"Kill {runs_word(len(active))}?"
        detail = f"{name_list(active)}\n\nThe agent and all its processes end at once."
        if await self._confirmed(question, detail, "Kill"):
            await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active], force=True)
            self._say(f"Killing {who(active)}")

    async def _delete(self, runs: Runs) -> None:
        async def loss() -> str:
            return what_is_lost(runs, await self._bridge.call(_size, self._bridge.engine, [run.run_id for run in runs]))

        question = "Delete this run?" if len(runs) == 1 else f"Delete {runs_word(len(runs))}?"
        if not await self._confirmed(question, loss, "Delete"):
            return
        deleted = await self._bridge.call(_delete, self._bridge.engine, [run.run_id for run in runs])
        self._deck.undo.push(deletion_of(self._bridge, self._deck.runs.select, who(runs), deleted))
        self._say(f"Deleted {who(runs)}; {self._key('undo')} brings {'it' if len(runs) == 1 else 'them'} back")


def who(runs: Runs) -> str:
    """Say which runs are meant."""
    return name_of(runs[0]) if len(runs) == 1 else runs_word(len(runs))


def name_list(runs: Runs) -> str:
    """Name runs with their tasks, a line each for the first few."""
    if len(runs) == 1:
        return f"{name_of(runs[0])}: {one_line(runs[0].meta.task, 200)}"
    lines = [f"{name_of(run)}  {run.status}  {one_line(run.meta.task, 40)}" for run in runs]
    return "\n".join(first_of(lines, NAMED))


def what_is_lost(runs: Runs, size: int) -> str:
    """Say what deleting takes away, and what can no more be done then."""
    active = sum(not run.has_ended for run in runs)
    parts = [name_list(runs), ""]
    if active:
        parts.append("It is not finished: it is stopped first." if len(runs) == 1 else f"{active} are stopped first.")
    whose = "Its" if len(runs) == 1 else "Their"
    parts.append(
        f"{whose} transcript, answer and logs go to the trash ({size_text(size)}) and can be brought back for 24 hours."
    )
    if any(run.meta.session_path for run in runs):
        parts.append(f"{whose} conversation goes too: it cannot be followed up then.")
    return "\n".join(parts)


def _size(engine: EngineApi, run_ids: Sequence[str]) -> int:
    """Return the bytes of these runs' files."""
    total = 0
    for run_id in run_ids:
        for path in engine.artifacts(run_id).values():
            try:
                total += os.path.getsize(path)
            except OSError:
                continue  # it went away meanwhile
    return total


def _delete(engine: EngineApi, run_ids: Sequence[str]) -> tuple[str, ...]:
    """Delete runs, after stopping those that go on."""
    if stopped := engine.stop(run_ids):
        waited = engine.wait(stopped, timeout=engine.settings.grace_seconds + PATIENCE)
        if busy := [run for run in waited if not run.has_ended]:
            raise RunBusy(f"{who(busy)} did not end in time: nothing was deleted", hint="kill it, then delete it")
    return engine.delete(run_ids)
