"""All uses of Textual's private parts, and overrides that depend on its internals; check this file at an update.

Written for the version that pyproject.toml pins; tests/tui/terminal/test_textual_internals.py describes what each
part has to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from textual._compositor import Compositor
from textual._context import active_message_pump
from textual.app import App
from textual.binding import Binding
from textual.events import Event, MouseDown
from textual.geometry import Region, Size
from textual.keys import _character_to_key
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets._toast import Toast

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.filter import LineFilter
    from textual.message_pump import MessagePump
    from textual.notifications import Notification
    from textual.reactive import Reactive
    from textual.strip import Strip
    from textual.timer import Timer

# pyright: reportPrivateUsage=false


class StyledOnceApp(App[str], inherit_bindings=False):
    """Reads its rules once, for its first theme: a later theme applies all of them again."""

    _first_theme = ""

    def begin_with_theme(self, name: str, line_filter: LineFilter | None = None) -> None:
        """Set the theme before any rule is read; `line_filter` changes each drawn line instead of Textual's own."""
        self.theme = self._first_theme = name
        self.stylesheet.set_variables(self.get_css_variables())
        if line_filter:
            self._filters = [line_filter]

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":  # another one was requested, as in a browser
            return driver
        from .driver import SleepingDriver

        return SleepingDriver

    def refresh_css(self, animate: bool = True) -> None:
        if self.screen_stack or self.theme != self._first_theme:
            super().refresh_css(animate)


GONE_TOAST_S = 0.5
"""Seconds for which a press in the place of a vanished toast counts as a press on it."""


class ToastPressApp(StyledOnceApp, inherit_bindings=False):
    """Drops a press on a toast that has just vanished, such as the second one of a double click: it would hit the
    widget below.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock: Callable[[], float] = time.monotonic
        """The clock for keys and presses; tests replace it."""
        self._gone_toast = Region()
        self._gone_at = float("-inf")

    def _unnotify(self, notification: Notification, refresh: bool = True) -> None:
        for toast in self.screen.query(Toast) if self.screen_stack else ():
            if toast._notification is notification:
                self._gone_toast, self._gone_at = toast.region, self.clock()
        super()._unnotify(notification, refresh)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, MouseDown) and not event.is_forwarded and self._hits_gone_toast(event):
            self._mouse_down_widget = None  # so that the release is not a click
        else:
            await super().on_event(event)

    def _hits_gone_toast(self, event: MouseDown) -> bool:
        position = event.screen_offset
        if position not in self._gone_toast or self.clock() - self._gone_at > GONE_TOAST_S:
            return False
        return not isinstance(self.get_widget_at(*position)[0], Toast)


Result = TypeVar("Result")


class StyledOnceScreen(Screen[Any]):
    """Skips the styling when it first appears: its widgets were styled when they were mounted."""

    _has_appeared = False

    def _post_register(self, app: App[Any]) -> None:
        """Set the classes for the terminal's size before any widget is styled. Textual sets them afterwards."""
        super()._post_register(app)
        across, down = (points or [] for points in (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS))
        class_names = self._get_breakpoint_classes(app.size.width, across)
        class_names |= self._get_breakpoint_classes(app.size.height, down)
        self.update_classes({name: name in class_names for _, name in across + down}, update=False)

    def update_node_styles(self, animate: bool = True) -> None:
        appears, self._has_appeared = not animate and not self._has_appeared, self._has_appeared or not animate
        if not appears:
            super().update_node_styles(animate)


class DialogScreen(ModalScreen[Result], StyledOnceScreen, Generic[Result]):
    """A dialog over the screen below. Closing it returns a `Result`."""


class LeanScreen(StyledOnceScreen):
    """Draws only what has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = ChangedRowsCompositor()

    def _compositor_refresh(self) -> None:
        """Draw the changes, unless another screen hides them: Textual would draw that whole screen again. A screen that
        reappears is drawn whole.
        """
        above = self.app.screen_stack[self.app.screen_stack.index(self) + 1 :] if self in self.app.screen_stack else ()
        if any(screen.styles.background.a == 1 for screen in above):
            self._compositor._dirty_regions.clear()
            self._dirty_widgets.clear()
        else:
            super()._compositor_refresh()


class ChangedRowsCompositor(Compositor):
    """Draws only the widgets that a change touches, and only its rows of them; Textual's draws everything."""

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if crop is None or crop.height == self.size.height:
            yield from super()._get_renders(crop)
            return
        rows = Region(0, crop.y, self.size.width, crop.height)
        for widget, (region, clip) in self.visible_widgets.items():
            clip = clip.intersection(rows)
            if crop.overlaps(shown := region.intersection(clip)):
                yield region, clip, widget.render_lines(shown.translate(-region.offset))
                if crop in shown:
                    return  # it hides everything behind it


def push_for(owner: Widget, screen: Screen[Result], then: Callable[[Result | None], None]) -> None:
    """Push a screen whose result goes to `owner`; the result of a screen that has been closed would be lost."""
    pushed_by = active_message_pump.set(owner)
    try:
        owner.app.push_screen(screen, then)
    finally:
        active_message_pump.reset(pushed_by)


def set_timer(node: MessagePump, delay: float, then: Callable[[], object]) -> Timer:
    """Call `then` once, after `delay` seconds or later; stop the timer to prevent it.

    Textual's own method never calls it if the time has passed before the timer begins to wait, on a busy machine or
    for a tiny delay.
    """
    timer = node.set_timer(delay, then)
    timer._skip = False
    return timer


def is_leaving(app: App[Any]) -> bool:
    """Return whether the app is about to end or is ending; its screens may be gone."""
    return app._exit or not app._running


def bind(node: Widget, key: str, action: str, name: str) -> None:
    """Bind one more key of this widget or screen, instead of its default; Textual's `bind` is only for the app."""
    spelled = _character_to_key(key) if len(key) == 1 else key
    node._bindings.key_to_bindings[spelled] = [Binding(spelled, action, name, show=False)]


def give_captures_encoding(app: App[Any]) -> None:
    """Complete Textual's replacements of stdout and stderr: libtmux reads their `encoding` when imported."""
    for capture in (app._capture_stdout, app._capture_stderr):
        vars(capture)["encoding"] = "utf-8"


def make_room_for_toast(
    app: App[Any], coming: Notification, most: int, is_replaced: Callable[[Notification, Notification], bool]
) -> None:
    """Remove toasts that the coming one replaces, and the oldest, so that at most `most` remain with it."""
    not_replaced = [toast for toast in app._notifications if not is_replaced(toast, coming)]
    kept = not_replaced[-(most - 1) :]
    for toast in [toast for toast in app._notifications if toast not in kept]:
        app._unnotify(toast, refresh=False)


def write_to_terminal(node: Widget, sequence: str) -> None:
    """Write a sequence to the terminal, in order with the drawing; do nothing without a terminal."""
    app = cast("App[Any]", node.app)
    driver = app._driver
    if driver is not None and sequence and not app.is_headless and not app.is_web:
        driver.write(sequence)


def drop_bindings(widget: Widget, keys: Iterable[str]) -> None:
    """Remove keys from a Textual widget's bindings."""
    for key in keys:
        widget._bindings.key_to_bindings.pop(key, None)


def grow(view: ScrollView, size: Size) -> None:
    """Set the size of a view's whole content.

    Setting it plainly lays out the whole screen, which costs more than drawing the new lines. That is skipped if only
    more rows come below others that already did not fit: only the scrollbar's thumb moves then.
    """
    old, room = view.virtual_size, view.container_size.height
    if view.show_vertical_scrollbar and room < old.height <= size.height and old.width == size.width:
        view.set_reactive(cast("Reactive[Size]", ScrollView.virtual_size), size)
        view.vertical_scrollbar.window_virtual_size = size.height
    elif size != old:
        view.virtual_size = size
        if size.height <= room and not view.show_horizontal_scrollbar:
            view.show_vertical_scrollbar = False  # Textual checks it again only when the pane's own size changes
