"""The deck as what acts on it sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from textual.screen import Screen

    from ...core.run.snapshot import Counts, RunSnapshot
    from ..actions import Action, ActionContext
    from ..feed.bridge import Bridge
    from ..notices import Notices
    from ..presets.list import PresetList
    from ..runs.list import RunList
    from ..runs.store import RunStore
    from ..transcript.pane import Transcript
    from ..transcript.search import SearchLine
    from .panes import Panes
    from .undo import Undo


Handlers = dict[str, Callable[[], object]]
"""What to call for each action, by its id."""


class DeckView(Protocol):
    """The deck's parts, for what acts on them."""

    bridge: Bridge
    actions: Sequence[Action]
    """All of them, with the operator's own keys."""
    run_store: RunStore
    panes: Panes
    presets: PresetList
    runs: RunList
    transcript: Transcript
    search: SearchLine
    undo: Undo
    notices: Notices
    counts: Counts
    """Of all runs of the project."""

    @property
    def screen(self) -> Screen[object]: ...
    @property
    def run(self) -> RunSnapshot | None:
        """The highlighted run."""
        ...

    @property
    def action_context(self) -> ActionContext:
        """What decides which actions are possible now."""
        ...

    def show_launched(self, run_id: str) -> None:
        """Put the cursor on a run just launched, as soon as it is there."""
        ...
