"""Moving a queued run before or after another one."""

from __future__ import annotations

from .. import paths
from ..errors import SubdeckError
from ..run.snapshot import Queued
from .ownership import check_own, ring
from .queue_order import moved, read_state, write_order
from .registry import Registry, queue_line


def move(project: paths.Project, registry: Registry, run_id: str, step: int) -> int:
    """Let a queued run go before the one ahead of it (-1), or after the next one (1); return how many are ahead.

    Raises SubdeckError for one that is foreign, or has no place in the queue.
    """
    check_own(project, run_id)
    registry.look(registry.active_names(), prove=True)
    waiting = [(meta.run_id, queue_line(meta)) for meta in registry.queued()]
    line = dict(waiting).get(run_id)
    if not line:
        if line is not None and read_state(project.slots).held:
            what = f"run {run_id[-6:]} cannot be moved: it starts as soon as the queue is resumed"
            raise SubdeckError(what, where=run_id, hint="subdeck queue --release")
        raise SubdeckError(f"run {run_id[-6:]} is not waiting in the queue", where=run_id)
    write_order(project.slots, moved(waiting, run_id, step))
    ring(project)
    registry.look(())
    run = registry.get(run_id)
    return run.state.ahead if run and isinstance(run.state, Queued) else 0
