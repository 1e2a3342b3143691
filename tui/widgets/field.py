"""The lines of a form: a name, what is filled in or said, and below it what is wrong with that."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static


class Field(Vertical):
    """One or more controls behind their name."""

    DEFAULT_CSS = "Field { height: auto; }"

    def __init__(self, label: str, *controls: Widget, name: str) -> None:
        super().__init__(id=f"{name}-field")
        self._label = label
        self._controls = controls

    def compose(self) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Static(self._label, classes="label")
            yield from self._controls
        yield Problem()


class Fact(Horizontal):
    """Something that is only said; not there while there is nothing to say."""

    def __init__(self, label: str, name: str, text: str = "") -> None:
        super().__init__(id=name, classes="field")
        self._label = label
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(self._label, classes="label")
        yield Static(Content(self._text), classes="fact")

    def on_mount(self) -> None:
        self.display = bool(self._text)

    def say(self, text: str) -> None:
        self._text = text
        self.display = bool(text)
        for fact in self.query(".fact").results(Static):
            fact.update(Content(text))


class Note(Static):
    """A text on lines of its own; without one it takes no room."""

    def __init__(self, text: str = "", *, name: str | None = None, classes: str | None = None) -> None:
        super().__init__(Content(text), id=name, classes=classes)
        self.text = text
        self.display = bool(text)

    def say(self, text: str) -> None:
        self.text = text
        self.update(Content(text))
        self.display = bool(text)


class Problem(Note):
    """What is wrong with the field above; a line with a blank before it goes on with the one above."""

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(name=name, classes="problem")

    def say(self, text: str) -> None:
        super().say("\n".join(line if line.startswith(" ") else f"! {line}" for line in text.splitlines()))
