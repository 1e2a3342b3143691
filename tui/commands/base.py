"""What the commands share: the deck as they see it, questions, and work that reports what went wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ...core.errors import SubdeckError
from ...core.system.log import log_fault
from ...core.text.plain import one_line
from ..actions import key_of
from ..dialogs.ask import ConfirmScreen
from ..notices import answer_key
from ..text.format import format_error

if TYPE_CHECKING:
    from textual.app import App

    from ...core.run.snapshot import RunSnapshot
    from ..deck.screen import MainScreen

P = ParamSpec("P")
T = TypeVar("T")


class Commands:
    """Some of the commands; their work is done beside the event loop."""

    def __init__(self, deck: MainScreen) -> None:
        self._deck = deck
        self._bridge = deck.bridge

    @property
    def app(self) -> App[Any]:
        return cast("App[Any]", self._deck.app)

    def with_run(self, command: Callable[[RunSnapshot], Coroutine[None, None, None]], *, opens: bool = True) -> None:
        """Do this with the highlighted run, if there is one; where that opens it, it was looked at."""
        if run := self._deck.run:
            if opens:
                self._mark_seen((run,))
            self.spawn(command, run)

    def spawn(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Work beside the event loop; a dialog has to be pushed before anything is waited for, so that it gets the keys
        that are typed from now on.
        """

        self._bridge.spawn(self._reporting_errors, work, *args, **kwargs)

    async def _reporting_errors(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await work(*args, **kwargs)
        except (SubdeckError, OSError) as error:
            log_fault(f"while doing {getattr(work, '__name__', 'an action')}", error)
            self._say(format_error(error), error=True)

    def _key(self, action_id: str) -> str:
        """Return how the key of an action is written, the operator's own included."""
        return key_of(action_id, self._deck.actions)

    def _mark_seen(self, runs: Iterable[RunSnapshot]) -> None:
        for run in runs:
            self._deck.runs.mark_seen(run.run_id)

    def _refuse(self, what: str, why: str) -> None:
        """Say why a dialog does not come in which one would have written."""
        self._deck.refuse_dialog(what, why)

    def _say(self, text: str, *, error: bool = False) -> None:
        answer_key(self._deck, text, severity="error" if error else "information")

    async def _confirmed(
        self, question: str, detail: str | Callable[[], Awaitable[str]], yes: str, *, harmless: bool = False
    ) -> bool:
        screen = ConfirmScreen(question, detail, yes, harmless=harmless)
        return bool(await self.app.push_screen_wait(screen))

    async def _confirmed_data(
        self, question: str, load: Callable[[], Awaitable[T]], detail: Callable[[T], str], yes: str
    ) -> T | None:
        """Ask about what is read once the question is on the screen; return it, or None when the answer is no."""
        loaded: list[T] = []

        async def loaded_detail() -> str:
            loaded.append(await load())
            return detail(loaded[0])

        return loaded[0] if await self._confirmed(question, loaded_detail, yes, harmless=True) else None


def first_of(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def name_of(run: RunSnapshot) -> str:
    """Say which run is meant: preset and short id."""
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"
