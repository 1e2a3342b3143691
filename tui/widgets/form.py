"""Parts of forms: labelled fields with their problems, choices, models, and texts of several lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click, Paste
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from ...core.text.plain import plain

LABEL = 9
"""The width of the column of labels, as in `dialogs.tcss`."""


class Field(Horizontal):
    """One or more controls behind their label."""

    def __init__(self, label: str, *controls: Widget, name: str | None = None) -> None:
        super().__init__(Static(label, classes="label"), *controls, id=name, classes="field")


class Fact(Static):
    """A fact without a control, in one line; hidden if it has no text."""

    def __init__(self, label: str, name: str, text: str = "") -> None:
        super().__init__(id=name, classes="fact")
        self._label = label
        self.say(text)

    def say(self, text: str) -> None:
        self.update(Content.assemble((f"{self._label:<{LABEL}}", "$text-muted"), text))
        self.display = bool(text)


class Note(Static):
    """A text on separate lines; without one it takes no room."""

    def __init__(self, text: str = "", *, name: str | None = None, classes: str | None = None) -> None:
        super().__init__(Content(text), id=name, classes=classes)
        self.text = text
        self.display = bool(text)

    def say(self, text: str) -> None:
        self.text = text
        self.update(Content(text))
        self.display = bool(text)


class Problem(Note):
    """The problem of the field above; a line that begins with a space continues the one above."""

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(name=name, classes="problem")

    def say(self, text: str) -> None:
        super().say("\n".join(line if line.startswith(" ") else f"! {line}" for line in text.splitlines()))


SIGN, BETWEEN = len("(•) "), "  "
MORE_BEFORE, MORE_AFTER = "… ", " …"
"""Shown for words that do not fit."""


class Choice(Widget, can_focus=True):
    """A form's field; marks the chosen word by a sign, not only by colour. Enter moves to the next field."""

    DEFAULT_CSS = """
    Choice {
        height: 1;
        width: 1fr;
        &:focus { background: $primary 25%; }
    }
    """
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "choose(-1)", show=False),
        Binding("right,down,space", "choose(1)", show=False),
        Binding("enter", "go_on", show=False),
    ]

    class Changed(Message):
        """Another word was chosen."""

    def __init__(self, words: tuple[str, ...], chosen: str, *, name: str) -> None:
        super().__init__(id=name)
        self.words = words
        """The words to choose from; changed by `offer`."""
        self.value = chosen if chosen in words else words[0]

    def action_choose(self, step: int) -> None:
        self._choose(self.words[(self.words.index(self.value) + step) % len(self.words)])

    def action_go_on(self) -> None:
        self.screen.focus_next()

    def offer(self, words: tuple[str, ...]) -> None:
        """Offer these words from now on; the chosen one has to be among them."""
        self.words = words
        self.refresh()

    def put(self, word: str) -> None:
        """Choose a word, if it is one of these."""
        if word in self.words:
            self._choose(word)

    def on_click(self, event: Click) -> None:
        end = len(self._before)
        for word in self.words[self._first :]:
            end += len(word) + SIGN + len(BETWEEN)
            if event.x < end:
                self._choose(word)
                return

    @property
    def _first(self) -> int:
        """The first shown word: if not all fit, the row begins so that the chosen one is visible."""
        if not self.size.width or self._width(self.words) <= self.size.width:
            return 0
        chosen = self.words.index(self.value)
        room = self.size.width - len(MORE_BEFORE) - len(MORE_AFTER)
        fitting = (first for first in range(chosen + 1) if self._width(self.words[first : chosen + 1]) <= room)
        return next(fitting, chosen)

    @property
    def _before(self) -> str:
        return MORE_BEFORE if self._first else ""

    def _width(self, words: Sequence[str]) -> int:
        return sum(len(word) + SIGN for word in words) + len(BETWEEN) * (len(words) - 1)

    def render(self) -> Content:
        words = list(self.words[self._first :])
        after, room = "", self.size.width - len(self._before)
        if self.size.width and self._width(words) > room:
            after, room = MORE_AFTER, room - len(MORE_AFTER)
            while len(words) > 1 and self._width(words) > room:
                words.pop()
        shown = Content(BETWEEN).join(self._shown(word) for word in words)
        return Content.assemble((self._before, "dim"), shown, (after, "dim"))

    def _shown(self, word: str) -> Content:
        return Content.styled(f"(•) {word}", "bold") if word == self.value else Content.styled(f"( ) {word}", "dim")

    def _choose(self, word: str) -> None:
        if word != self.value:
            self.value = word
            self.refresh()
            self.post_message(self.Changed())


class ChoosingInput(Input):
    """Down and up step through the matches of the typed text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "choose(1)", show=False),
        Binding("up", "choose(-1)", show=False),
    ]

    def __init__(self, value: str, *, name: str, placeholder: str) -> None:
        super().__init__(value, id=name, compact=True, placeholder=placeholder)
        self._typed = value
        """The last text typed, not chosen."""
        self.settled = value
        """The last value set or chosen as a whole."""

    async def matching(self, typed: str) -> Sequence[str]:
        raise NotImplementedError

    def put(self, value: str) -> None:
        """Set the value; it counts as not typed."""
        self.settled = self._typed = self.value = value
        self.cursor_position = len(value)

    async def action_choose(self, step: int) -> None:
        if self.value != self.settled:
            self._typed = self.value
        matching = await self.matching(self._typed)
        if not matching:
            return
        before = matching.index(self.value) if self.value in matching else (-1 if step > 0 else 0)
        self.settled = self.value = matching[(before + step) % len(matching)]
        self.cursor_position = len(self.value)


PLACEHOLDER = "provider/id or @role"


class ModelInput(ChoosingInput):
    """Right accepts the completion; the typed text may be anywhere in a known model, or in the name of its agent."""

    def __init__(self, value: str) -> None:
        super().__init__(value, name="model", placeholder=PLACEHOLDER)
        self._typed = ""
        self.known: Mapping[str, str] = {}

    def offer(self, models: Mapping[str, str]) -> None:
        """Offer these models from now on, each with its agent; the typed text stays."""
        self.known = models
        self.suggester = SuggestFromList(models, case_sensitive=False) if models else None
        self.placeholder = f"{PLACEHOLDER} (↓ lists models)" if models else PLACEHOLDER

    async def matching(self, typed: str) -> Sequence[str]:
        part = "" if typed in self.known else typed.strip().lower()
        models = [model for model, agent in self.known.items() if part in model.lower() or part in agent.lower()]
        return models or list(self.known)  # a text that matches nothing is a mistake: offer all


class PlainTextArea(TextArea):
    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each pasted newline.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    def put(self, text: str) -> None:
        """Replace the text; undo restores the former one."""
        self.history.checkpoint()
        self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()
