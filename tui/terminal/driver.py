"""Textual's driver of a terminal, except for the thread that reads keys, which sleeps until there are some.

Textual's polls ten times a second for its end, which delays quitting and lending the terminal.
"""

from __future__ import annotations

import os
import select
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, cast

from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.message import Message

# pyright: reportPrivateUsage=false

PIECE = 4096
"""Bytes read at once."""


class SleepingDriver(LinuxDriver):
    """Wakes up for input, when an incomplete key is due, and when reading has to end."""

    listeners: ClassVar[list[Callable[[], None]]] = []
    """Called when `is_drawing` has changed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.exit_event = self._end = _FileEvent()
        self._is_drawing = False

    @property
    def is_drawing(self) -> bool:
        """Whether the terminal is set up for the app, at least partly."""
        return self._is_drawing

    @is_drawing.setter
    def is_drawing(self, is_drawing: bool) -> None:
        self._is_drawing = is_drawing
        for listener in self.listeners:
            listener()

    def start_application_mode(self) -> None:
        self.is_drawing = True
        super().start_application_mode()

    def stop_application_mode(self) -> None:
        if self._mouse_pixels:
            self.write("\x1b[?1016l")  # Textual does not reset it
        super().stop_application_mode()

    def close(self) -> None:
        is_written = self._writer_thread is not None and self._writer_thread.is_alive()
        super().close()  # waits until everything is written
        self.is_drawing = self.is_drawing and not is_written

    @property
    def is_lent(self) -> bool:
        """Whether another program has the terminal."""
        return not self._auto_restart

    def renew(self) -> None:
        """Set up the terminal again, unless it is lent."""
        if self.is_drawing and not self.is_lent:
            self.suspend_application_mode()
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        while True:
            ready = self._wait(parser._timeout_time)
            if self.fileno in ready:
                if not (typed := os.read(self.fileno, PIECE)):
                    return  # end of input
                if text := decode(typed):  # a letter may be incomplete, and an empty text would end the parser
                    self._hand_on(parser.feed(text))
            if self._end.is_set():
                return
            self._hand_on(parser.tick())

    def _wait(self, due: float | None) -> list[Any]:
        """Return what is ready: the terminal, the end of reading; nothing after `due`."""
        seconds = None if due is None else max(0.0, due - get_time())
        return select.select((self.fileno, self._end), (), (), seconds)[0]

    def _hand_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def _get_terminal_size(self) -> tuple[int, int]:
        """Ask the terminal; Textual's way imports modules for archives."""
        if not {"COLUMNS", "LINES"} & os.environ.keys():
            with suppress(AttributeError, ValueError, OSError):  # stdout is missing, or not a terminal
                if all(size := os.get_terminal_size(cast("TextIO", sys.__stdout__).fileno())):
                    return size
        return super()._get_terminal_size()


class _FileEvent(Event):
    """An event that `select` can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        super().set()
        os.write(self._writer, b".")

    def clear(self) -> None:
        if self.is_set():
            os.read(self._reader, 1)
        super().clear()
