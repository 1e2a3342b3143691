"""Without colour: what NO_COLOR asks for (https://no-color.org)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter


def is_color_unwanted(environment: Mapping[str, str] = os.environ) -> bool:
    return bool(environment.get("NO_COLOR"))


class ColorRemover(LineFilter):
    """Leaves bold, dim, underlined and reversed text, in the terminal's own colours.

    Textual's filter writes grey, or the default colour by its code.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, _plain(style) if style else None, control) for text, style, control in segments]


@lru_cache(1024)
def _plain(style: Style) -> Style:
    return style.without_color
