"""What the operator's actions do to runs; each asks the engine through the bridge and says what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, cast

from msgspec import structs

from ..core.errors import SubdeckError
from ..core.plain import one_line
from ..core.runs import PresetSource, RunRequest, RunSnapshot
from .actions import Place
from .attach import ATTACH_NOTE, hand_over
from .bridge import Bridge
from .screens.confirm import ConfirmScreen
from .screens.launch import LaunchScreen, problem_text

if TYPE_CHECKING:
    from textual.app import App

    from ..core.presets import Preset
    from .screens.main import MainScreen

TMUX = "tmux"
"""The runner whose runs have a pane to attach to."""


class RunCommands:
    """The half of the deck's actions that acts on runs; the other half only moves what is seen."""

    def __init__(self, screen: MainScreen, bridge: Bridge) -> None:
        self._screen = screen
        self._bridge = bridge
        self._deleted: list[str] = []
        """What undo brings back, the last one first out."""
        self._attach_explained = False
        self.table: dict[str, Callable[[], None]] = {
            "launch": lambda: self._ask_task(self._screen.presets.preset),
            "ad_hoc": lambda: self._ask_task(None),
            "attach": lambda: self._with_run(self._attach),
            "stop": lambda: self._with_run(self._stop),
            "kill": lambda: self._with_run(self._kill),
            "rerun": lambda: self._with_run(self._rerun),
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

    def _ask_task(self, preset: Preset | None) -> None:
        self._screen.app.push_screen(LaunchScreen(self._bridge, preset), self._launched)

    def _launched(self, run_id: str | None) -> None:
        if run_id is not None:
            self._screen.show_launched(run_id)

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

    async def _rerun(self, run: RunSnapshot) -> None:
        request = request_again(run)
        if request.preset is None:
            meta = await self._bridge.call(self._bridge.engine.meta, run.run_id)
            request = structs.replace(request, prompt=meta.system_prompt or "")
        launched = await self._bridge.call(self._bridge.engine.launch, (request,), background=True)
        self._screen.show_launched(launched[0].run_id)

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


def request_again(run: RunSnapshot) -> RunRequest:
    """Ask for the same as a run did; the prompt of an ad hoc run is not in its snapshot."""
    meta = run.meta
    adhoc = meta.preset_source is PresetSource.ADHOC
    return RunRequest(
        task=meta.task,
        preset=None if adhoc else meta.preset,
        model=meta.requested_model or None,
        cwd=meta.cwd,
        agent=meta.agent,
        runner=meta.runner,
        description=meta.description,
        tools=meta.tools.resolved if adhoc else None,
    )


def _name(run: RunSnapshot) -> str:
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"
