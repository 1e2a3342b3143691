"""`subdeck hosts give-up`: abandon runs whose host will not come back."""

from __future__ import annotations

from ..engine import Engine
from ._command import Document, command, preface
from ._options import runs_argument
from .output import Output


class Abandoned(Document, frozen=True):
    given_up: tuple[str, ...]
    """Ids of the abandoned runs."""


@command(
    "give-up",
    "subdeck hosts give-up 4ae0bd",
    "subdeck hosts give-up 4ae0bd 81c2f7 --json",
)
@runs_argument
def give_up(refs: tuple[str, ...]) -> Output[Abandoned]:
    """Abandon runs whose host is unreachable and will not come back: they count as lost.

    Nothing is done on the host. If it comes back, the run is stopped there, and its outcome is stored beside the
    result.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    for run_id in run_ids:
        engine.give_up(run_id)
        preface(f"{run_id[-6:]} is abandoned")
    return Output(Abandoned(run_ids))
