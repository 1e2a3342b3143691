"""The tasks of earlier runs, and those typed and never launched, for a list to choose from; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.text.plain import one_line, plain

if TYPE_CHECKING:
    from ...core.launch.memory import UnsentTask
    from ...core.run.model import RunSnapshot


class EarlierTask(Struct, frozen=True):
    task: str
    """As it goes into the field."""
    preset: str
    """Empty for an ad hoc run."""
    at: str
    """When it was launched, or typed."""
    launched: bool = True

    @property
    def line(self) -> str:
        """The first line, and how many follow."""
        text = self.task.strip()
        more = text.count("\n")
        first = one_line(text.partition("\n")[0], 200)
        return f"{first} (+{more} {'line' if more == 1 else 'lines'})" if more else first


def earlier_tasks(runs: Iterable[RunSnapshot], unsent: Sequence[UnsentTask], preset: str) -> tuple[EarlierTask, ...]:
    """Answer each task once: those of the preset first, then the others, each newest first."""
    known = [EarlierTask(plain(run.meta.task), run.meta.preset, run.meta.created_at) for run in runs]
    known += [EarlierTask(typed.task, typed.preset, typed.at, launched=False) for typed in unsent]
    known.sort(key=lambda earlier: earlier.at, reverse=True)
    known.sort(key=lambda earlier: earlier.preset != preset)
    return tuple({earlier.task: earlier for earlier in reversed(known)}.values())[::-1]


def matching(tasks: Sequence[EarlierTask], words: str, limit: int) -> list[EarlierTask]:
    """Answer the first ones, at most `limit`, that hold all the words in their text or preset."""
    wanted = words.lower().split()
    found: list[EarlierTask] = []
    for task in tasks:
        said = f"{task.preset} {task.task}".lower()
        if all(word in said for word in wanted):
            found.append(task)
            if len(found) == limit:
                break
    return found
