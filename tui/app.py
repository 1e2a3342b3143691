"""The app: theme, screens and the keys that work everywhere; nothing about runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.command import Provider
from textual.events import Event, Key
from textual.notifications import SeverityLevel
from textual.screen import ModalScreen

from ..core.plain import one_line, plain
from .actions import Place, bindings, key_of
from .actions.own_keys import keymap, with_own_keys
from .colourless import Colourless, unwanted_colour
from .opening import AS_USUAL, Opening
from .palette import ActionProvider
from .screens.main import MainScreen
from .telling.notices import Notices
from .theme import DARK, OURS, TERMINAL
from .type_ahead import TypeAhead

if TYPE_CHECKING:
    from ..core.engine import Engine


class SubdeckApp(App[str], inherit_bindings=False):
    """Answers, when it ends, the line that says what goes on without it."""

    TITLE = "subdeck"
    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = ["app.tcss", "screens/main.tcss"]
    """The first screen's rules too: those of a default screen are not read by themselves."""
    BINDINGS = bindings(Place.APP)
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionProvider}

    def __init__(self, engine: Engine, opening: Opening = AS_USUAL) -> None:
        """Raises SettingsError for keys that cannot be had."""
        super().__init__()
        self._engine = engine
        self._opening = opening
        for theme in OURS:
            self.register_theme(theme)
        self.no_color = unwanted_colour()
        if self.no_color:
            self._filters = [Colourless()]
        # Before the first rules are read: a theme that comes later has them all read and applied again.
        self.theme = self._first_theme()
        self._actions = with_own_keys(engine.settings.keys)
        self.notices = Notices()
        self._type_ahead = TypeAhead(self)
        self.set_keymap(keymap(self._actions))
        # What Textual puts in the place of stdout has no `encoding`, which libtmux reads when it is imported.
        for capture in (self._capture_stdout, self._capture_stderr):
            vars(capture)["encoding"] = "utf-8"

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self._engine, self._actions, self.notices, self._opening)

    def _first_theme(self) -> str:
        if self.no_color:
            return TERMINAL.name  # its rules tell by bold, dim and reversed text
        wanted = self._engine.settings.theme
        return wanted if wanted and wanted in self.available_themes else DARK.name

    def on_mount(self) -> None:
        wanted = self._engine.settings.theme
        if wanted and wanted not in self.available_themes:
            names = ", ".join(sorted(self.available_themes))
            self.notify(
                f"theme: there is no {one_line(wanted, 60)}; there are {names}", severity="warning", markup=False
            )

        for notice in self._engine.settings.notices:
            self.notify(plain(notice), severity="warning", markup=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a toast, and keep what it says in the list of messages."""
        self.notices.add(plain(message), severity)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    async def on_event(self, event: Event) -> None:
        """Hold a key back while the dialog that shall have it is still opening."""
        if not (isinstance(event, Key) and not event.is_forwarded and self._type_ahead.takes(event)):
            await super().on_event(event)

    def on_key(self, event: Key) -> None:
        if self._type_ahead.takes_back(event):
            event.prevent_default()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, ModalScreen):
            super().action_command_palette()

    def action_how_to_quit(self) -> None:
        self.notify(f"{key_of('quit', self._actions)} quits; runs go on in the background.", timeout=3, markup=False)
