"""The commands on the queue: which run goes first, and whether any goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot


class QueueCommands(Commands):
    async def move_up(self, run: RunSnapshot) -> None:
        await self._move(run, -1)

    async def move_down(self, run: RunSnapshot) -> None:
        await self._move(run, 1)

    async def _move(self, run: RunSnapshot, step: int) -> None:
        ahead = await self._bridge.call(self._bridge.engine.move_in_queue, run.run_id, step)
        self._say(f"{name_of(run)}: {f'{ahead} ahead' if ahead else 'next in the queue'}")

    async def hold_or_release(self) -> None:
        engine = self._bridge.engine
        held = not await self._bridge.call(engine.is_queue_held)
        await self._bridge.call(engine.hold_queue, held)
        if held:
            self._say(f"The queue is paused: no new run starts. {self._key('hold_queue')} resumes it.")
        else:
            self._say("The queue was resumed.")
