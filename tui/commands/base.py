"""What the operator's actions are made of: the deck as they see it, and work that tells what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...core.errors import SubdeckError
from ...core.plain import one_line
from ..actions import key_of
from ..problem_text import problem_text
from ..screens.confirm import ConfirmScreen

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from ...core.runs import Counts, RunSnapshot
    from ..actions import Action, Situation
    from ..bridge import Bridge
    from ..layout.panes import Panes
    from ..listing.board import Board
    from ..telling.notices import Notices
    from ..undo import Undo
    from ..widgets.preset_list import PresetList
    from ..widgets.run_list import RunList
    from ..widgets.search_line import SearchLine
    from ..widgets.transcript import Transcript


class Deck(Protocol):
    """The deck's parts, for what acts on them."""

    @property
    def screen(self) -> Screen[object]: ...
    @property
    def bridge(self) -> Bridge: ...
    @property
    def actions(self) -> Sequence[Action]:
        """The registry with the operator's own keys."""
        ...

    @property
    def board(self) -> Board: ...
    @property
    def panes(self) -> Panes: ...
    @property
    def presets(self) -> PresetList: ...
    @property
    def runs(self) -> RunList: ...
    @property
    def transcript(self) -> Transcript: ...
    @property
    def search(self) -> SearchLine: ...
    @property
    def undo(self) -> Undo: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def counts(self) -> Counts:
        """Of all runs of the project."""
        ...

    @property
    def run(self) -> RunSnapshot | None:
        """The highlighted run."""
        ...

    @property
    def situation(self) -> Situation:
        """What decides which actions are possible now."""
        ...

    def show_launched(self, run_id: str) -> None:
        """Put the cursor on a run just launched, as soon as it is there."""
        ...


class Commands:
    """Some of the deck's actions, by id; their work goes on beside the event loop, and what fails is told."""

    def __init__(self, deck: Deck) -> None:
        self._deck = deck
        self._bridge = deck.bridge
        self.table: dict[str, Callable[[], object]] = {}

    @property
    def _app(self) -> App[Any]:
        return cast("App[Any]", self._deck.screen.app)

    def _key(self, action_id: str) -> str:
        """How the key of an action is written, the operator's own included."""
        return key_of(action_id, self._deck.actions)

    def _with_run(self, command: Callable[[RunSnapshot], Coroutine[None, None, None]]) -> None:
        if run := self._deck.run:
            self._spawn(command(run))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._bridge.spawn(self._telling_errors(work))

    async def _telling_errors(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except (SubdeckError, OSError) as error:
            self._say(problem_text(error), error=True)

    def _say(self, text: str, *, error: bool = False) -> None:
        self._deck.screen.notify(text, severity="error" if error else "information", markup=False)

    async def _confirmed(self, question: str, detail: str, yes: str, *, harmless: bool = False) -> bool:
        screen = ConfirmScreen(question, detail, yes, harmless=harmless)
        return bool(await self._app.push_screen_wait(screen))


def name_of(run: RunSnapshot) -> str:
    """Say which run is meant: preset and short id."""
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"
