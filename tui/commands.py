"""Shared by the commands of all features: the deck, questions, and work that reports its errors.

A module of commands is loaded at the start, for its keys and texts. It imports dialogs, and modules needed only by
them, in the functions that open them, and lists them in `opens`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast

from msgspec.structs import replace

from ..core.errors import SubdeckError
from ..core.run.describe import size_text
from ..core.system.log import log_fault
from ..core.text.plain import one_line
from .keys.command import READONLY, Declared, declarations
from .text.format import format_error
from .toasts import answer_key

if TYPE_CHECKING:
    from textual.app import App

    from ..core.run.snapshot import RunSnapshot
    from .deck.screen import MainScreen
    from .keys.command import ActionContext, KeyContext

CLIPBOARD = 74_994
"""Bytes that every terminal with clipboard support accepts: 100,000 characters of base64."""

P = ParamSpec("P")
T = TypeVar("T")
Kind = TypeVar("Kind", bound="Commands")

Runs = Sequence["RunSnapshot"]


class Commands:
    """The commands of a feature; their work is done beside the event loop."""

    opens: ClassVar[tuple[str, ...]] = (".dialogs.ask", ".dialogs.pick", ".dialogs.plan", ".dialogs.reader")
    """Modules that this class opens; loaded after the first paint so that the first key does not wait for them."""

    def __init__(self, deck: MainScreen) -> None:
        self._deck = deck
        self._bridge = deck.bridge

    @property
    def app(self) -> App[Any]:
        return cast("App[Any]", self._deck.app)

    def _of(self, kind: type[Kind]) -> Kind:
        """Return another feature's commands on this deck."""
        return self._deck.commands[kind]

    def do(self, method: Callable[..., object], kind: str, args: tuple[object, ...]) -> None:
        """Call a method with the subject of its first parameter; do nothing if there is no subject."""
        if kind:
            subject = self._subject(kind)
            if not subject:
                return
            args = (subject, *args)
        if iscoroutinefunction(method):
            self.spawn(method, *args)
        else:
            method(*args)

    def _ask(self, what: str, *args: object) -> None:
        """Do an action that a view leaves to these commands; `what` is the argument of its `do`."""
        declared = next(
            each
            for each in declarations(type(self))
            if isinstance(each, Declared) and each.action.do.endswith(f"('{what}')")
        )
        if declared.action.changes and self._bridge.readonly:
            self._say(READONLY)
        else:
            self.do(getattr(self, declared.method), "", (*args, *declared.args))

    def _subject(self, kind: str) -> object:
        if kind == "preset":
            return self._deck.presets.highlighted
        if kind == "runs":
            return self._deck.runs.targets
        if run := self._deck.run:
            self._mark_seen((run,))
        return run

    def spawn(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Work beside the event loop. Push a dialog before the first await, so that it gets the keys typed from now
        on.
        """

        self._bridge.spawn(self._reporting_errors, work, *args, **kwargs)

    async def _reporting_errors(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await work(*args, **kwargs)
        except (SubdeckError, OSError) as error:
            log_fault(f"while doing {getattr(work, '__name__', 'an action')}", error)
            self._say(format_error(error), error=True)

    def _key(self, action_id: str) -> str:
        """Return an action's key as displayed, including your own keys."""
        from .keys.keymap import key_of  # needs all commands

        return key_of(action_id, self._deck.actions)

    def _keys_line(self, context: KeyContext, only: Collection[str] = ()) -> str:
        """Return the line of keys at the foot of a dialog, limited to the actions in `only`."""
        from .keys.keymap import keys_line

        return keys_line(context, [action for action in self._deck.actions if not only or action.id in only])

    def _obstacle(self, action_id: str, context: ActionContext) -> bool:
        """Report why an action is not possible in a dialog; return whether there is an obstacle."""
        from .keys.keymap import with_keys

        deck = self._deck
        action = next((action for action in deck.actions if action.id == action_id), None)
        obstacle = action.refusal(context) if action else ""
        if action and obstacle:
            deck.refuse(action, with_keys(obstacle, deck.actions))
        return bool(obstacle)

    def _copy(self, text: str, what: str = "") -> None:
        """Copy a text and report its size; `what` names it, and ends with a comma."""
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        message = f"Copied {what}{lines} line{'' if lines == 1 else 's'}, {size_text(len(text.encode()))}."
        if len(text.encode()) > CLIPBOARD:
            message += f" Many terminals accept less. {self._key('page_transcript')} opens the transcript in a pager."
        self._say(message)

    def _show_help(self, context: ActionContext | None = None, key_context: KeyContext | None = None) -> None:
        """Show the keys of a key context, by default that of `context`; `context` is the deck's by default."""
        from .dialogs.reader import HelpScreen

        shown = context or self._deck.action_context
        self.app.push_screen(
            HelpScreen(self._deck.actions, replace(shown, key_context=key_context or shown.key_context))
        )

    def _mark_seen(self, runs: Iterable[RunSnapshot]) -> None:
        for run in runs:
            self._deck.runs.mark_seen(run.run_id)

    def _refuse(self, what: str, why: str) -> None:
        """Report why a dialog with a text field does not open."""
        self._deck.refuse_dialog(what, why)

    def _say(self, text: str, *, error: bool = False) -> None:
        answer_key(self._deck, text, severity="error" if error else "information")

    async def _confirmed(
        self, question: str, detail: str | Callable[[], Awaitable[str]], yes: str, *, harmless: bool = False
    ) -> bool:
        from .dialogs.ask import ConfirmScreen

        screen = ConfirmScreen(question, detail, yes, harmless=harmless)
        return bool(await self.app.push_screen_wait(screen))

    async def _confirmed_data(
        self, question: str, load: Callable[[], Awaitable[T]], detail: Callable[[T], str], yes: str
    ) -> T | None:
        """Ask, and load the data while the question is on the screen; return the data, or None if you refuse."""
        loaded: list[T] = []

        async def loaded_detail() -> str:
            loaded.append(await load())
            return detail(loaded[0])

        return loaded[0] if await self._confirmed(question, loaded_detail, yes, harmless=True) else None


class CommandSet:
    """The commands of all features on one deck; each class is created when first needed."""

    def __init__(self, deck: MainScreen) -> None:
        self._deck = deck
        self._made: dict[type[Commands], Commands] = {}

    def __getitem__(self, kind: type[Kind]) -> Kind:
        """Return a feature's commands; they keep their state until the app ends."""
        if kind not in self._made:
            self._made[kind] = kind(self._deck)
        return cast(Kind, self._made[kind])

    def load(self) -> None:
        """Load the modules that the commands open."""
        from .keys.actions import METHODS

        for kind in (Commands, *dict.fromkeys(kind for kind, _ in METHODS.values())):
            for name in vars(kind).get("opens", ()):
                import_module(name, kind.__module__.rpartition(".")[0])

    def do(self, action_id: str) -> None:
        """Do an action of the deck; the caller has checked that it is possible."""
        from .keys.actions import METHODS

        kind, declared = METHODS[action_id]
        commands = self[kind]
        commands.do(getattr(commands, declared.method), declared.about, declared.args)


def first_of(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and the number of further lines."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def name_of(run: RunSnapshot) -> str:
    """Return a run's preset and short id."""
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"
