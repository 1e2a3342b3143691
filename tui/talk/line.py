"""The line below a transcript for messages to runs; it grows with the text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import DescendantBlur, Resize
from textual.widgets import Static

from ...core.errors import SubdeckError
from ...core.text.plain import plain
from ...core.text.visible import recounted
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..text.cells import cells
from ..text.format import brief_error

if TYPE_CHECKING:
    from textual.app import App

    from ..feed.bridge import Bridge
    from ..widgets.form import PlainTextArea

MOST_ROWS = 8
"""Rows of the text that are shown at once."""
AROUND = 5
"""Cells of a title around its words."""
LEAST_TITLE = 12
"""Minimum cells of these words; the keys are cut first."""
READABLE_TITLE = 36
"""Cells of these words for which the last keys are left out."""
BETWEEN = "   "
"""Between two keys."""


class Saying(Struct, frozen=True):
    """The text being written, and how to send it."""

    key: str
    """Identifies the draft: an unsent text under the same key is restored."""
    title: str
    """The recipients, or the request it replies to."""
    send: Callable[[str], Awaitable[None]]
    """Raises SubdeckError, which leaves the line open."""
    may_be_empty: bool = False
    obstacle: Callable[[], str] = str
    """Returns why it can no longer be sent; empty if it can."""
    is_step: bool = False
    """Whether it is sent later, with the last field of its form."""
    steps: tuple[str, ...] = ()
    """Keys of the fields that are sent with it."""


class TalkLine(Vertical):
    """Visible only while you write; unsent text is kept for each run until the app is closed."""

    # Before those of the field, where Enter starts a new line.
    BINDINGS: ClassVar[list[BindingType]] = [
        replace(binding, priority=True) for binding in bindings(KeyContext.TALK) if isinstance(binding, Binding)
    ]
    DEFAULT_CSS = f"""
    TalkLine {{
        display: none;
        height: auto;
        padding: 0 1;
        background: $surface;
        & > #talk-title {{ color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; height: 1; }}
        & > #talk-problem {{ color: $text-error; height: auto; display: none; }}
        & > PlainTextArea {{
            height: auto; max-height: {MOST_ROWS}; border: none; padding: 0; background: $surface;
        }}
    }}
    """

    def __init__(self, bridge: Bridge, keys: str, give_back: Callable[[], None]) -> None:
        """`keys` is the line of keys that send and leave; `give_back` restores the previous focus."""
        super().__init__(id="talk")
        self._bridge = bridge
        self._keys = keys
        self._give_back = give_back
        self._saying: Saying | None = None
        self._is_sending = False
        self._unsent: dict[str, tuple[Saying, str]] = {}
        """Unsent texts, by the keys of `Saying`."""

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    @property
    def unsent(self) -> tuple[str, ...]:
        """The titles of the unsent texts."""
        self._keep()
        return tuple(saying.title for saying, _ in self._unsent.values())

    @property
    def _field(self) -> PlainTextArea:
        from ..widgets.form import PlainTextArea

        return self.query_one(PlainTextArea)

    def open(self, saying: Saying) -> None:
        """Take the focus for a text to send."""
        if not self.children:  # a field would cost the first paint more than the line is worth there
            from ..widgets.form import PlainTextArea

            field = PlainTextArea(id="message", compact=True, show_line_numbers=False, highlight_cursor_line=False)
            self.mount(Static(id="talk-title"), field, Static(id="talk-problem"))
        self._keep()
        self._saying = saying
        self.display = True
        self._show_title()
        self._show_problem("")
        field = self._field
        _, text = self._unsent.pop(saying.key, (saying, ""))
        field.load_text(text)
        field.move_cursor(field.document.end)
        field.focus()

    def _show_title(self) -> None:
        """Show the recipients or the request; a cut request's title says how many characters are missing."""
        if self._saying:
            width, keys = self.content_size.width or self.app.size.width, self._keys
            title_width = min(READABLE_TITLE, cells(self._saying.title))
            while keys and width - cells(keys) - AROUND < title_width:
                keys = keys.rpartition(BETWEEN)[0]
            title = recounted(self._saying.title, max(LEAST_TITLE, width - cells(keys) - AROUND), cells)
            self.query_one("#talk-title", Static).update(Content(f"▸ {title}   {keys}"))

    def on_resize(self, _: Resize) -> None:
        if self.is_open and self.children:
            self._show_title()

    def close(self) -> None:
        """Leave; the text is kept."""
        if self.is_open:
            self._keep()
            self._saying = None
            had_keys = self._field.has_focus
            self.display = False
            if had_keys:
                self._give_back()

    def look(self) -> None:
        """Show why the text can no longer be sent; the text stays."""
        if self._saying and not self._is_sending and (why := self._saying.obstacle()):
            self._show_problem(why)

    def _keep(self) -> None:
        if self._saying and (text := self._field.text).strip():
            self._unsent[self._saying.key] = (self._saying, text)

    def _show_problem(self, text: str) -> None:
        problem = self.query_one("#talk-problem", Static)
        problem.update(Content(text))
        problem.display = bool(text)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_say(self) -> None:
        text = self._field.text
        if self._saying is None or self._is_sending:
            return
        if not text.strip() and not self._saying.may_be_empty:
            self._show_problem("Type a message, or press esc to close.")
            return
        if why := self._saying.obstacle():
            self._show_problem(why)
            return
        self._is_sending = True
        self._bridge.spawn(self._send, self._saying, text.strip("\n"))

    async def _send(self, saying: Saying, text: str) -> None:
        try:
            await saying.send(text)
        except (SubdeckError, OSError) as error:
            if self._saying is saying:
                self._show_problem(brief_error(error))
            else:
                self._unsent.setdefault(saying.key, (saying, text))
                self.app.notify(f"Not sent: {brief_error(error)}", severity="error", markup=False)
        else:
            if not saying.is_step:
                self._forget(saying, text)
        finally:
            self._is_sending = False

    def _forget(self, saying: Saying, text: str) -> None:
        """Drop a sent text, and keep what was typed since."""
        self._keep()
        for key in saying.steps:
            self._unsent.pop(key, None)
        if self._unsent.get(saying.key, (saying, ""))[1].strip() != text.strip():
            return
        self._unsent.pop(saying.key, None)
        if self._saying and self._saying.key == saying.key:
            self._field.load_text("")
            self.close()

    def action_new_line(self) -> None:
        self._field.insert("\n")

    def action_edit_message(self) -> None:
        """Edit the text in your editor."""
        field = self._field
        from ..terminal.handover import edit_text  # needed only for the editor

        text, problem = edit_text(cast("App[Any]", self.app), field.text, name="message.md")
        if problem:
            self._show_problem(problem)
        elif (text := text.rstrip("\n")) != field.text:
            field.put(plain(text))
        field.focus()

    def action_leave_unsaid(self) -> None:
        self.close()

    def on_descendant_blur(self, _: DescendantBlur) -> None:
        """Leave when another pane takes the focus: a dialog or another window returns it."""
        has_lost = self.is_open and self.screen.focused is not self._field
        if has_lost and self.app.app_focus and self.app.screen is self.screen:
            self.close()
