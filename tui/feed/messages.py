"""The bridge's messages, in the past tense: facts of the engine and of the shown run's file.

Plain classes: a dataclass takes a fifth of a millisecond to make, and the first paint waits for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ...core.agents.choice import AgentChoice
    from ...core.budget.allowance import DaySpending
    from ...core.errors import SubdeckError
    from ...core.presets.catalog import PresetCatalog
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from .reader import Piece, RunReader


class RunsChanged(Message):
    """All changes since the last message, merged."""

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.update = update


class PresetsRead(Message):
    def __init__(self, catalog: PresetCatalog | None) -> None:
        super().__init__()
        self.catalog = catalog
        """None if they could not be read."""


class AgentChosen(Message):
    """The program that a launch would use now."""

    def __init__(self, agent: AgentChoice | None, problem: str = "") -> None:
        super().__init__()
        self.agent = agent
        self.problem = problem
        """Why no agent was found."""


class SpendingRead(Message):
    """Today's spending within the budgets; None without a budget."""

    def __init__(self, spending: DaySpending | None) -> None:
        super().__init__()
        self.spending = spending


class SettingsRead(Message):
    """A settings file has changed."""

    def __init__(
        self, changed: tuple[str, ...] = (), warnings: tuple[str, ...] = (), problem: SubdeckError | None = None
    ) -> None:
        super().__init__()
        self.changed = changed
        """The settings with new values, without those of wrong values."""
        self.warnings = warnings
        """New faults of settings that only the app reads, and new parts without effect."""
        self.problem = problem
        """Why the files cannot be used; the earlier settings stay in effect."""


class UnseenFound(Message):
    """Runs that finished before this app started, and that no app has reported."""

    def __init__(self, runs: tuple[RunSnapshot, ...]) -> None:
        super().__init__()
        self.runs = runs


class ProjectWent(Message):
    """The project's directory has disappeared, or is back."""

    def __init__(self, is_here: bool) -> None:
        super().__init__()
        self.is_here = is_here


class EngineFailed(Message):
    """An engine call in the background failed; `what` is for the user."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class WorkersStopped(Message):
    """Some of the screen is not updated now; `what` names the part and the reason, and is empty once all is well."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class TranscriptRead(Message):
    """The next piece of the shown run's transcript."""

    def __init__(self, reader: RunReader, piece: Piece) -> None:
        super().__init__()
        self.reader = reader
        self.piece = piece
