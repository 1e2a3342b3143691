"""The thread that reads keys, on its own terminal."""

from __future__ import annotations

import os
import pty
import signal
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

import pytest
from subdeck.tui.terminal.driver import SleepingDriver
from textual.app import App
from textual.events import Key
from textual.message import Message

from ...waiting import wait_until


class Noted(SleepingDriver):
    """Records typed keys, and the planned length of each sleep."""

    def __init__(self, app: App[Any], terminal: int) -> None:
        super().__init__(app)
        self.fileno = terminal
        self.keys: list[str] = []
        self.sleeps: list[float | None] = []

    def process_message(self, message: Message) -> None:
        assert isinstance(message, Key)
        self.keys.append(message.key)

    def _wait(self, due: float | None) -> list[Any]:
        self.sleeps.append(due)
        return super()._wait(due)

    def write(self, data: str) -> None:
        """Draw nothing."""

    def begin(self) -> None:
        self._key_thread = Thread(target=self.run_input_thread, daemon=True)
        self._key_thread.start()

    @property
    def is_reading(self) -> bool:
        return self._key_thread is not None and self._key_thread.is_alive()


@asynccontextmanager
async def typed_into() -> AsyncIterator[tuple[Noted, int]]:
    """Yield a driver that reads a terminal, and the end for typing."""
    own_handlers = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)}
    person, terminal = pty.openpty()
    tty.setraw(terminal)
    driver = Noted(App(), terminal)
    driver.begin()
    try:
        yield driver, person
    finally:
        driver.disable_input()
        os.close(person)
        os.close(terminal)
        for number, handler in own_handlers.items():
            signal.signal(number, handler)


async def test_it_sleeps_until_a_key_comes() -> None:
    """Without typing the thread does not wake up."""
    async with typed_into() as (driver, person):
        os.write(person, b"a")
        wait_until(lambda: driver.keys == ["a"] and len(driver.sleeps) == 2, "the key and the next sleep")
        assert driver.sleeps == [None, None]


async def test_a_lone_escape_is_a_key() -> None:
    """Escape, with which longer keys begin, is a single key if no bytes follow it."""
    async with typed_into() as (driver, person):
        os.write(person, b"\x1b")
        wait_until(lambda: driver.keys == ["escape"], "the key")
        os.write(person, b"\x1b[A")
        wait_until(lambda: driver.keys == ["escape", "up"], "the longer key")
        assert driver.sleeps[1] is not None


async def test_a_letter_in_two_pieces() -> None:
    """A letter whose bytes arrive one after the other is one key."""
    async with typed_into() as (driver, person):
        first, second = "é".encode()
        os.write(person, bytes((first,)))
        wait_until(lambda: len(driver.sleeps) == 2, "the first byte to be read")
        os.write(person, bytes((second,)))
        wait_until(lambda: driver.keys, "the letter")
        assert driver.keys == ["é"]


async def test_it_ends_at_once_and_begins_again() -> None:
    """Disabling input ends the thread without waiting for a key, and reading can begin again."""
    async with typed_into() as (driver, person):
        driver.disable_input()
        assert not driver.is_reading
        driver.begin()
        os.write(person, b"b")
        wait_until(lambda: driver.keys == ["b"], "the key")


async def test_a_terminal_that_went_away_ends_it() -> None:
    """The thread ends when its terminal is closed, instead of reading again and again."""
    async with typed_into() as (driver, _):
        reader, writer = os.pipe()
        driver.disable_input()
        driver.fileno = reader
        driver.begin()
        os.close(writer)
        wait_until(lambda: not driver.is_reading, "the end of reading")
        os.close(reader)


@pytest.mark.parametrize("variables", [{}, {"COLUMNS": "33"}], ids=["terminal", "COLUMNS"])
async def test_the_size(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is the terminal's, unless the environment sets another one."""
    async with typed_into() as (driver, _):
        for name in ("COLUMNS", "LINES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(os, "get_terminal_size", lambda _=0: os.terminal_size((90, 20)))
        assert (int(variables.get("COLUMNS", 90)), 20) == driver._get_terminal_size()
