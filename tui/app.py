"""The app: theme, screens and the keys that work everywhere. It does not know runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.events import AppBlur, AppFocus
from textual.notifications import Notification, Notify, SeverityLevel
from textual.screen import ModalScreen

from ..core.text.plain import plain
from .attention import LOOK_S, Attention
from .deck.screen import MainScreen
from .feed.messages import SettingsRead
from .keys.command import Action, KeyContext
from .keys.keymap import bindings, key_of, keymap, usable
from .palette.commands import PaletteCommands
from .terminal.driver import SleepingDriver
from .terminal.key_queue import KeyQueueApp
from .terminal.process import expect_unannounced_stops
from .terminal.textual_internals import give_captures_encoding, make_room_for_toast
from .theme import DARK, OURS, TERMINAL, ColorRemover, is_color_unwanted, theme_file
from .toasts import TOASTS_ON_SCREEN, Toast, ToastList

if TYPE_CHECKING:
    from .engine_api import EngineApi

FAULT_TIMEOUT = 15.0
"""Seconds that a settings warning stays on the screen; the list of messages keeps it."""


class SubdeckApp(KeyQueueApp, inherit_bindings=False):
    """`run` returns the line that lists what is still running."""

    TITLE = "subdeck"
    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = ["app.tcss", "deck/deck.tcss"]
    """Includes the first screen's rules: Textual does not load the CSS of a default screen."""
    BINDINGS = bindings(KeyContext.APP)

    def __init__(
        self, engine: EngineApi, run_id: str | None = None, *, readonly: bool = False, watched: Sequence[str] = ()
    ) -> None:
        """`run_id` opens on that run only, until you go to the deck; `watched` shows a grid of these runs and nothing
        else.

        A `readonly` app changes nothing. Wrong names and keys in the settings become warnings, and defaults replace
        them.
        """
        super().__init__()
        self._engine = engine
        self._run_id = run_id
        self._watched = watched
        self._readonly = readonly
        for theme in OURS:
            self.register_theme(theme)
        self.no_color = is_color_unwanted()
        self.begin_with_theme(self._wanted_theme(), ColorRemover() if self.no_color else None)
        self._faults = [fault.error for fault in engine.settings.faults]
        """Settings errors that were replaced by defaults."""
        self._actions = self._usable_actions()
        self.toasts = ToastList()
        self.set_keymap(keymap(self._actions))
        give_captures_encoding(self)
        self._attention: Attention | None = None
        """None in a read-only app, which writes nothing."""

    def get_default_screen(self) -> MainScreen:
        return MainScreen(
            self._engine,
            self._actions,
            self.toasts,
            run_id=self._run_id,
            readonly=self._readonly,
            watched=self._watched,
        )

    def _usable_actions(self) -> tuple[Action, ...]:
        """Return the actions with your keys and commands; drop either if it is invalid."""
        settings = self._engine.settings
        command_actions: tuple[Action, ...] = ()
        if settings.commands:
            from .own_commands import own_actions

            command_actions = own_actions(settings.commands)
        actions, faults = usable(settings.keys, command_actions)
        known_faults = set(map(str, self._faults))
        self._faults += [fault for fault in faults if str(fault) not in known_faults]
        return actions

    def _wanted_theme(self) -> str:
        if self.no_color:
            return TERMINAL.name  # its rules use bold, dim and reversed text
        setting, chosen = self._engine.settings.theme or "", theme_file().read()
        if chosen.setting == setting and chosen.theme in self.available_themes:
            return chosen.theme
        return setting if setting in self.available_themes else DARK.name

    def on_mount(self) -> None:
        if isinstance(driver := self._driver, SleepingDriver):
            expect_unannounced_stops(
                lambda: driver.is_lent, driver.renew, lambda: self.call_later(self.refresh, layout=True)
            )
        if not self._readonly:
            self._attention = Attention(self._engine, self._shown_runs, self._warn_of_failures)
            self.watch(self, "app_focus", self._attention.change_focus, init=False)
            self.set_interval(LOOK_S, self._attention.look)
        for fault in self._faults:
            text = f"{fault}\n  Using the default."
            self.notify(plain(text), severity="warning", timeout=FAULT_TIMEOUT, markup=False)
        for notice in self._engine.settings.notices:
            self.notify(plain(notice), severity="warning", markup=False)

    @on(AppFocus)
    def note_focus(self) -> None:
        if self._attention:
            self._attention.report_focus(True)

    @on(AppBlur)
    def note_blur(self) -> None:
        if self._attention:
            self._attention.report_focus(False)

    def on_unmount(self) -> None:
        if self._attention:
            self._attention.close()

    def _shown_runs(self) -> tuple[str, ...]:
        deck = self.screen_stack[0] if self.screen_stack else None
        return deck.shown_runs if isinstance(deck, MainScreen) else tuple(self._watched)

    def _warn_of_failures(self, text: str) -> None:
        self.notify(plain(text), severity="warning", timeout=FAULT_TIMEOUT, markup=False)

    @on(SettingsRead)
    def show_settings(self, message: SettingsRead) -> None:
        """Report the names of changed settings, or why the files cannot be used; apply a new theme."""
        from .settings_report import reloaded_text, unusable_text

        if message.problem is not None:
            self.notify(unusable_text(message.problem), severity="error", timeout=FAULT_TIMEOUT, markup=False)
            return
        if "app.theme" in message.changed:
            self.theme = self._wanted_theme()
        self.notify(reloaded_text(message.changed), markup=False)
        for warning in (*message.warnings, *self._faults_of_keys(message.changed)):
            self.notify(plain(warning), severity="warning", timeout=FAULT_TIMEOUT, markup=False)

    def _faults_of_keys(self, changed: Collection[str]) -> list[str]:
        """Return why changed keys and commands could not be used at the next start."""
        if {"app.keys", "app.commands"}.isdisjoint(changed):
            return []
        from .own_commands import own_actions

        settings = self._engine.settings
        return [str(fault) for fault in usable(settings.keys, own_actions(settings.commands))[1]]

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
        kind: str = "",
    ) -> None:
        """Show a toast, replacing one of the same kind, and add its text to the list of messages."""
        self.toasts.add(plain(message), severity)
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Toast(message, title, severity, seconds, markup=markup, kind=kind)))

    def on_notify(self, event: Notify) -> None:
        """Make room before a toast appears: few at a time, no duplicates, one of a kind."""
        make_room_for_toast(self, event.notification, TOASTS_ON_SCREEN, _is_replaced)

    def push_screen(self, *args: Any, **kwargs: Any) -> Any:
        """Show a screen; clear the toasts before a dialog, which they would cover. The list of messages keeps them."""
        if args and isinstance(args[0], ModalScreen):
            self.clear_notifications()
        return cast(Any, super()).push_screen(*args, **kwargs)

    def action_command_palette(self) -> None:
        if isinstance(self.screen, MainScreen):
            self.screen.commands[PaletteCommands].open()

    def action_how_to_quit(self) -> None:
        self.notify(f"{key_of('quit', self._actions)} quits. Runs continue in the background.", timeout=3, markup=False)


def _is_replaced(toast: Notification, coming: Notification) -> bool:
    kinds = [notification.kind for notification in (toast, coming) if isinstance(notification, Toast)]
    return toast.message == coming.message or (len(kinds) == 2 and kinds[0] == kinds[1] != "")
