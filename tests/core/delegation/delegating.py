"""Call the tools like a parent session, with puppets as agents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from subdeck.core.delegation.call import call_tool
from subdeck.core.delegation.parent import Parent
from subdeck.core.delegation.results import CallResult, ToolProgress
from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.conversing import write_preset
from tests.factories import PUPPET, open_engine
from tests.waiting import wait_until

SESSION = "parent-1"


def parent_engine(
    project_dir: Path, *, session: str = SESSION, command: Sequence[str] = PUPPET, **settings: Any
) -> Engine:
    """Open a project with the presets `scout` and `other` for a parent session."""
    for name in ("scout", "other"):
        write_preset(project_dir, name=name)
    return open_engine(project_dir, command, session=session, **{"models": ["fake/puppet"], **settings})


def call(engine: Engine, name: str, params: object, *, session: str = SESSION, **more: Any) -> CallResult:
    about = {key: more.pop(key) for key in tuple(more) if key not in ("progress", "cancelled")}
    return call_tool(engine, name, params, parent=Parent(session, "pi", **about), **more)


def task(*script: str, preset: str = "scout", **more: Any) -> dict[str, Any]:
    return {"preset": preset, "task": "\n".join(script), **more}


class Calling:
    """A call that runs in its own thread."""

    def __init__(
        self, engine: Engine, name: str, params: object, tell: Callable[[ToolProgress], None] | None = None
    ) -> None:
        self.told: list[ToolProgress] = []
        self.cancelled = threading.Event()
        self.raised: Exception | None = None
        self._answer: CallResult | None = None
        self._tell = tell

        def work() -> None:
            try:
                self._answer = call(engine, name, params, progress=self._told, cancelled=self.cancelled)
            except Exception as fault:
                self.raised = fault

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def _told(self, progress: ToolProgress) -> None:
        self.told.append(progress)
        if self._tell:
            self._tell(progress)

    def answer(self) -> CallResult:
        self.join()
        assert self._answer is not None, self.raised
        return self._answer

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive(), "the call did not end"


def running(engine: Engine, number: int = 1) -> tuple[RunSnapshot, ...]:
    """Wait until this many runs of the project are running."""

    def those() -> tuple[RunSnapshot, ...]:
        runs = tuple(run for run in engine.snapshots() if run.status == "running")
        return runs if len(runs) >= number else ()

    return wait_until(those, f"{number} running runs")
