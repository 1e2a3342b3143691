"""Faster app tests: short waits, styles parsed once, and frames drawn only if a test reads them."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

import pytest
from textual import _wait, strip
from textual._compositor import Compositor
from textual._context import active_app
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Size
    from textual.strip import Strip

# Textual waits in steps of 20 ms until the app is idle: after each of dozens of keys, in a thousand tests.
_wait.SLEEP_GRANULARITY = 0.004
_wait.SLEEP_IDLE = 0.0004

HERE = Path(__file__).parent


def _parse_once() -> None:
    """Keep Textual's parsed style sheets for the next app: a thousand apps start with the same styles."""
    parse = Stylesheet._parse_rules
    known: dict[tuple[object, ...], list[RuleSet]] = {}
    numbers: dict[tuple[tuple[str, str], ...], int] = {}
    """All known sets of variables: some 200 variables each, and an app asks for 160 style sheets with the same set."""
    last: WeakKeyDictionary[Stylesheet, tuple[dict[str, str], int]] = WeakKeyDictionary()

    def number(sheet: Stylesheet) -> int:
        """Return the number of a style sheet's set of variables; a new set means a new dictionary."""
        variables, found = last.get(sheet, ({}, 0))
        if variables is not sheet._variables:
            found = numbers.setdefault(tuple(sheet._variables.items()), len(numbers))
            last[sheet] = sheet._variables, found
        return found

    def parse_rules(self: Stylesheet, *args: object, **kwargs: object) -> list[RuleSet]:
        key = (number(self), args, *kwargs.items())
        if key not in known:
            known[key] = parse(self, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        return known[key]

    Stylesheet._parse_rules = parse_rules


def _hash_in_c() -> None:
    """Hash rule sets like any object, instead of by Textual's own method in Python.

    Each node puts some 150 into a set each time its style is computed.
    """
    RuleSet.__hash__ = object.__hash__


def _draw_when_looked_at() -> None:
    """Draw the first frame of each kind of screen in a module, the last of each app unless its test has read it, and
    otherwise only frames that a test reads. A plain screen, of an app for one widget, is always drawn.

    Without a terminal Textual draws frames and discards them, which takes a third of a test's time. With `make soak`
    every frame is drawn.
    """
    render_update, render_strips, shutdown = Compositor.render_update, Compositor.render_strips, App[object]._shutdown
    drawn: set[tuple[str, type[Screen]]] = set()
    read: WeakSet[Compositor] = WeakSet()
    """Those whose last frame a test has read."""

    def render(
        self: Compositor, full: bool = False, screen_stack: list[Screen] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        module, screen = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0], type(active_app.get().screen)
        if (module, screen) in drawn and screen is not Screen:
            self._dirty_regions.clear()
            read.discard(self)
            return None
        drawn.add((module, screen))
        return render_update(self, full, screen_stack, simplify)

    def draw(self: Compositor, size: Size | None = None) -> list[Strip]:
        strips = render_strips(self, size)
        read.add(self)
        return strips

    async def draw_last(self: App[object]) -> None:
        try:
            if self._running and self._screen_stack:
                screen = self.screen
                is_behind = screen._layout_required or screen._repaint_required or screen._dirty_widgets
                if is_behind or screen._compositor not in read:
                    screen._compositor.render_strips(self.size)
        finally:
            await shutdown(self)

    Compositor.render_update = render
    Compositor.render_strips = draw
    App._shutdown = draw_last


class _NoCache:
    """Finds nothing and keeps nothing."""

    def __init__(self, maxsize: int) -> None: ...

    def get(self, key: object, default: object = None) -> object:
        return default

    def __setitem__(self, key: object, value: object) -> None: ...


def _cache_no_strips() -> None:
    """Give the lines of a frame no caches, seven to each: in tests hardly any line is drawn twice."""
    none = _NoCache(0)
    strip.FIFOCache = lambda maxsize: none  # pyright: ignore[reportAttributeAccessIssue, reportPrivateImportUsage]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the coroutines: only they run the app."""
    here = f"{HERE}{os.sep}"
    for item in items:
        if str(item.path).startswith(here) and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.app)


_parse_once()
_hash_in_c()
if "SUBDECK_EVERY_STEP" not in os.environ:
    _draw_when_looked_at()
    _cache_no_strips()
