"""What the operator's actions do to runs; each asks the engine through the bridge and says what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, cast

from ..core.errors import SubdeckError
from ..core.plain import one_line
from ..core.runs import RunSnapshot
from .actions import TMUX, Place
from .attach import ATTACH_NOTE, hand_over
from .bridge import Bridge
from .screens.confirm import ConfirmScreen
from .screens.launch import problem_text

if TYPE_CHECKING:
    from textual.app import App

    from .screens.main import MainScreen


class Commands:
    """Some of the deck's actions, by id; their work goes on beside the event loop, and what fails is told."""

    def __init__(self, screen: MainScreen, bridge: Bridge) -> None:
        self._screen = screen
        self._bridge = bridge
        self.table: dict[str, Callable[[], None]] = {}

    def _with_run(self, command: Callable[[RunSnapshot], Coroutine[None, None, None]]) -> None:
        if run := self._screen.run:
            self._spawn(command(run))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._bridge.spawn(self._telling_errors(work))

    async def _telling_errors(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except (SubdeckError, OSError) as error:
            self._say(problem_text(error), error=True)

    def _say(self, text: str, *, error: bool = False) -> None:
        self._screen.notify(text, severity="error" if error else "information", markup=False)


class RunCommands(Commands):
    """The actions on runs that are there."""

    def __init__(self, screen: MainScreen, bridge: Bridge) -> None:
        super().__init__(screen, bridge)
        self._deleted: list[str] = []
        """What undo brings back, the last one first out."""
        self._attach_explained = False
        self.table = {
            "attach": lambda: self._with_run(self._attach),
            "stop": lambda: self._with_run(self._stop),
            "kill": lambda: self._with_run(self._kill),
            "delete": lambda: self._with_run(self._delete),
            "undo": self.undo,
            "copy_id": self.copy_id,
        }

    @property
    def undoable(self) -> bool:
        return bool(self._deleted)

    def undo(self) -> None:
        self._spawn(self._restore(self._deleted.pop()))

    def copy_id(self) -> None:
        if run := self._screen.run:
            self._screen.app.copy_to_clipboard(run.run_id)
            self._say(f"Copied {run.run_id}")

    async def _stop(self, run: RunSnapshot) -> None:
        told = await self._bridge.call(self._bridge.engine.stop, [run.run_id])
        self._say(f"Stopping {_name(run)}" if told else f"{_name(run)} had ended already")

    async def _kill(self, run: RunSnapshot) -> None:
        detail = f"{_name(run)}: {one_line(run.meta.task, 200)}\n\nThe agent and all its processes end at once."
        if await self._confirmed("Kill this run?", detail, "Kill"):
            await self._bridge.call(self._bridge.engine.stop, [run.run_id], force=True)
            self._say(f"Killing {_name(run)}")

    async def _delete(self, run: RunSnapshot) -> None:
        detail = (
            f"{_name(run)}: {one_line(run.meta.task, 200)}\n\n"
            f"Its transcript, answer and logs go to the trash; u brings them back."
        )
        if await self._confirmed("Delete this run?", detail, "Delete"):
            await self._bridge.call(self._bridge.engine.delete, [run.run_id])
            self._deleted.append(run.run_id)
            self._say(f"Deleted {_name(run)}; u brings it back")

    async def _restore(self, run_id: str) -> None:
        await self._bridge.call(self._bridge.engine.restore, [run_id])
        self._screen.runs.select(run_id)

    async def _attach(self, run: RunSnapshot) -> None:
        if run.meta.runner != TMUX:
            self._screen.zoom(Place.TRANSCRIPT)
            return
        argv = await self._bridge.call(self._bridge.engine.attach_argv, run.run_id)
        if not self._attach_explained:
            if not await self._confirmed(f"Attach to {_name(run)}", ATTACH_NOTE, "Attach", harmless=True):
                return
            self._attach_explained = True
        if problem := hand_over(cast("App[str]", self._screen.app), argv):
            self._say(problem, error=True)

    async def _confirmed(self, question: str, detail: str, yes: str, *, harmless: bool = False) -> bool:
        return bool(await self._screen.app.push_screen_wait(ConfirmScreen(question, detail, yes, harmless=harmless)))


def _name(run: RunSnapshot) -> str:
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"
