"""The app: theme, screens and the keys that work everywhere; nothing about runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.command import Provider
from textual.screen import ModalScreen

from ..core.plain import one_line, plain
from .actions import Place, bindings
from .own_keys import keymap, with_own_keys
from .palette import ActionProvider
from .screens.main import MainScreen
from .theme import DARK, LIGHT

if TYPE_CHECKING:
    from ..core.engine import Engine


class SubdeckApp(App[str], inherit_bindings=False):
    """Answers, when it ends, the line that says what goes on without it."""

    TITLE = "subdeck"
    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = ["app.tcss", "screens/main.tcss"]
    """The first screen's rules too: those of a default screen are not read by themselves."""
    BINDINGS = bindings(Place.APP)
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionProvider}

    def __init__(self, engine: Engine) -> None:
        """Raises SettingsError for keys that cannot be had."""
        super().__init__()
        self._engine = engine
        self._actions = with_own_keys(engine.settings.keys)
        self.set_keymap(keymap(self._actions))
        # What Textual puts in the place of stdout has no `encoding`, which libtmux reads when it is imported.
        for capture in (self._capture_stdout, self._capture_stderr):
            vars(capture)["encoding"] = "utf-8"

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self._engine, self._actions)

    def on_mount(self) -> None:
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        wanted = self._engine.settings.theme or DARK.name
        self.theme = wanted if wanted in self.available_themes else DARK.name
        if wanted != self.theme:
            names = ", ".join(sorted(self.available_themes))
            self.notify(
                f"theme: there is no {one_line(wanted, 60)}; there are {names}", severity="warning", markup=False
            )

        for notice in self._engine.settings.notices:
            self.notify(plain(notice), severity="warning", markup=False)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, ModalScreen):
            super().action_command_palette()

    def action_how_to_quit(self) -> None:
        self.notify("q quits; runs go on in the background.", timeout=3, markup=False)
