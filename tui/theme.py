"""Calm themes. Colour is only for run states and the focus; NO_COLOR removes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

from .layout_file import LayoutFile

DARK = Theme(
    name="subdeck-dark",
    primary="#6cb6c9",
    secondary="#8aa0b4",
    accent="#b59ad0",
    warning="#d9a657",
    error="#e0716c",
    success="#86b97a",
    foreground="#d5d9de",
    background="#14171b",
    surface="#1a1e23",
    panel="#22272e",
    variables={
        "border": "#6cb6c9",
        "border-blurred": "#353c45",
        "text-muted": "auto 68%",
        "scrollbar-background": "#1a1e23",
        "scrollbar-background-hover": "#1a1e23",
        "scrollbar-background-active": "#1a1e23",
    },
)
LIGHT = Theme(
    name="subdeck-light",
    primary="#1f7a8c",
    secondary="#53687c",
    accent="#7a4fa3",
    warning="#9a6700",
    error="#b3322c",
    success="#2f7d32",
    foreground="#1f2328",
    background="#fbfbfa",
    surface="#f1f2f2",
    panel="#e6e8ea",
    dark=False,
    variables={
        "border": "#1f7a8c",
        "border-blurred": "#c4cad0",
        "text-muted": "auto 72%",
        "surface-lighten-1": "#e3e7ea",
    },
)
TERMINAL = Theme(
    name="terminal",
    primary="ansi_cyan",
    secondary="ansi_blue",
    accent="ansi_magenta",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    ansi=True,
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border": "ansi_cyan",
        "border-blurred": "ansi_bright_black",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "text-muted": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "footer-key-foreground": "ansi_cyan",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_cyan",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "input-cursor-text-style": "reverse",
    },
)
"""The terminal's own sixteen colours, on its own background."""

OURS = (DARK, LIGHT, TERMINAL)


class ThemeChoice(Struct, frozen=True):
    """The theme you chose by key, used until the setting changes."""

    theme: str = ""
    setting: str = ""
    """The setting when it was chosen."""


def theme_file(*, readonly: bool = False) -> LayoutFile[ThemeChoice]:
    return LayoutFile(ThemeChoice(), lambda: "theme.json", readonly=readonly)


def next_theme(name: str) -> str:
    """Return the built-in theme after this one; after any other theme, the first."""
    names = [theme.name for theme in OURS]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


def is_color_unwanted(environment: Mapping[str, str] = os.environ) -> bool:
    return bool(environment.get("NO_COLOR"))


class ColorRemover(LineFilter):
    """Keeps bold, dim, underlined and reversed text, in the terminal's own colours.

    Textual's filter writes grey, or the default colour by its code.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, _plain(style) if style else None, control) for text, style, control in segments]


@lru_cache(1024)
def _plain(style: Style) -> Style:
    return style.without_color
