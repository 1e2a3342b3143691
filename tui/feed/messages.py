"""What the bridge reports, in the past tense: facts of the engine and of the shown run's file.

Plain classes: a dataclass takes a fifth of a millisecond to make, and the first paint waits for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ...core.agents.choice import AgentChoice
    from ...core.budget.allowance import Standing
    from ...core.presets.catalog import PresetCatalog
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from .reader import Piece, RunReader


class RunsChanged(Message):
    """Everything that changed since the message before, merged."""

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.update = update


class PresetsRead(Message):
    def __init__(self, catalog: PresetCatalog | None) -> None:
        super().__init__()
        self.catalog = catalog
        """None if they could not be read."""


class AgentChosen(Message):
    """Which program a launch would use now."""

    def __init__(self, agent: AgentChoice | None, problem: str = "") -> None:
        super().__init__()
        self.agent = agent
        self.problem = problem
        """Why there is none."""


class SpendingRead(Message):
    """What was spent today of what may be; None where no budget says how much that is."""

    def __init__(self, standing: Standing | None) -> None:
        super().__init__()
        self.standing = standing


class UnseenFound(Message):
    """Runs that ended before this app looked, and were reported to nobody."""

    def __init__(self, runs: tuple[RunSnapshot, ...]) -> None:
        super().__init__()
        self.runs = runs


class ProjectWent(Message):
    """The project's directory is not where it was, or there again."""

    def __init__(self, is_here: bool) -> None:
        super().__init__()
        self.is_here = is_here


class EngineFailed(Message):
    """An engine call in the background went wrong; `what` is for a person."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class WorkersStopped(Message):
    """Some of what is shown is not updated now; `what` says which and why, and is empty when all is well again."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class TranscriptRead(Message):
    """The next piece of the shown run's transcript."""

    def __init__(self, reader: RunReader, piece: Piece) -> None:
        super().__init__()
        self.reader = reader
        self.piece = piece
