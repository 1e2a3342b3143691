"""The actions on runs that are there."""

from __future__ import annotations

from ...core.plain import one_line
from ...core.runs import RunSnapshot
from ..actions import TMUX, Place
from ..terminal import hand_over
from ..undo import Deletion
from .base import Commands, Deck, name_of

ATTACH_NOTE = (
    "The terminal goes to the run's tmux pane; the run does not notice.\n"
    "To come back here press ctrl+b, then d (tmux's detach key, unless your tmux.conf names another)."
)


class RunCommands(Commands):
    """Attach to, stop, kill and delete runs, and bring them back."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self._attach_explained = False
        self.table = {
            "attach": lambda: self._with_run(self._attach),
            "stop": lambda: self._with_run(self._stop),
            "kill": lambda: self._with_run(self._kill),
            "delete": lambda: self._with_run(self._delete),
            "undo": lambda: self._spawn(self._undo()),
            "copy_id": self.copy_id,
        }

    def copy_id(self) -> None:
        if run := self._deck.run:
            self._app.copy_to_clipboard(run.run_id)
            self._say(f"Copied {run.run_id}")

    async def _undo(self) -> None:
        await self._deck.undo.pop().restore()

    async def _stop(self, run: RunSnapshot) -> None:
        told = await self._bridge.call(self._bridge.engine.stop, [run.run_id])
        self._say(f"Stopping {name_of(run)}" if told else f"{name_of(run)} had ended already")

    async def _kill(self, run: RunSnapshot) -> None:
        detail = f"{name_of(run)}: {one_line(run.meta.task, 200)}\n\nThe agent and all its processes end at once."
        if await self._confirmed("Kill this run?", detail, "Kill"):
            await self._bridge.call(self._bridge.engine.stop, [run.run_id], force=True)
            self._say(f"Killing {name_of(run)}")

    async def _delete(self, run: RunSnapshot) -> None:
        detail = (
            f"{name_of(run)}: {one_line(run.meta.task, 200)}\n\n"
            f"Its transcript, answer and logs go to the trash; u brings them back."
        )
        if await self._confirmed("Delete this run?", detail, "Delete"):
            await self._bridge.call(self._bridge.engine.delete, [run.run_id])
            self._deck.undo.push(Deletion(name_of(run), lambda: self._restore(run.run_id)))
            self._say(f"Deleted {name_of(run)}; u brings it back")

    async def _restore(self, run_id: str) -> None:
        await self._bridge.call(self._bridge.engine.restore, [run_id])
        self._deck.runs.select(run_id)

    async def _attach(self, run: RunSnapshot) -> None:
        if run.meta.runner != TMUX:
            self._deck.panes.zoom(Place.TRANSCRIPT)
            return
        argv = (await self._bridge.call(self._bridge.engine.way_in, run.run_id)).argv
        if not self._attach_explained:
            if not await self._confirmed(f"Attach to {name_of(run)}", ATTACH_NOTE, "Attach", harmless=True):
                return
            self._attach_explained = True
        if problem := hand_over(self._app, argv):
            self._say(problem, error=True)
