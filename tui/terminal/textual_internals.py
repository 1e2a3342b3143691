"""The size of what a view scrolls over, changed without laying out the screen around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.geometry import Size
from textual.scroll_view import ScrollView

if TYPE_CHECKING:
    from textual.reactive import Reactive


def grow(view: ScrollView, size: Size) -> None:
    """Give a view the size of all that it scrolls over.

    Set plainly it lays out the whole screen, which costs more than drawing the lines that came. That is left out
    where only more rows come below others that did not fit before: then nothing moves but the scrollbar's thumb.
    """
    old, room = view.virtual_size, view.container_size.height
    if view.show_vertical_scrollbar and room < old.height <= size.height and old.width == size.width:
        view.set_reactive(cast("Reactive[Size]", ScrollView.virtual_size), size)
        view.vertical_scrollbar.window_virtual_size = size.height
    elif size != old:
        view.virtual_size = size
        if size.height <= room and not view.show_horizontal_scrollbar:
            view.show_vertical_scrollbar = False  # Textual looks at it again only when the pane's own size changes
