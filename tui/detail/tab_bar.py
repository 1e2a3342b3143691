"""The names of the tabs on one line, with their keys."""

from __future__ import annotations

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from ..text.cells import cells
from .page import Tab


class TabBar(Widget):
    """Marks the open tab by brackets, not by colour alone."""

    DEFAULT_CSS = "TabBar { height: 1; width: 1fr; }"
    ALLOW_SELECT = False

    class Selected(Message):
        """A name was clicked."""

        def __init__(self, tab: Tab) -> None:
            super().__init__()
            self.tab = tab

    def __init__(self, keys: dict[Tab, str], tab: Tab) -> None:
        super().__init__()
        self._keys = keys
        self._tab = tab

    def show_tab(self, tab: Tab) -> None:
        self._tab = tab
        self.refresh()

    def render(self) -> Content:
        return Content.assemble(*[(self._label(tab), "bold" if tab is self._tab else "$text-muted") for tab in Tab])

    def on_click(self, event: Click) -> None:
        end = 0
        for tab in Tab:
            end += cells(self._label(tab))
            if event.x < end:
                self.post_message(self.Selected(tab))
                return

    def _label(self, tab: Tab) -> str:
        label = f"{self._keys.get(tab, '')} {tab.value.capitalize()}".strip()
        return f"[{label}]" if tab is self._tab else f" {label} "
