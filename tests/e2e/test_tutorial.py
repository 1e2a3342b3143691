"""`docs/start.md` in a real terminal: every command and key as printed, from nothing to a change applied and undone."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK
from tests.waiting import wait_until

from .acts import LOOKS_APART
from .terminal import Terminal

pytestmark = [pytest.mark.tmux, pytest.mark.timeout(400)]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "start.md").read_text(encoding="utf-8")
INSTALL = "pipx install .\n"
"""The only command that is not typed: `subdeck` is the checkout's here."""
APP = "subdeck\n"
PART = re.compile(r"^```(\w+)\n(.*?)^```\n(.*?)(?=^```|\Z)", re.MULTILINE | re.DOTALL)
"""A block, and the prose that follows it."""
STEP = re.compile(r"^\| `(.+?)`(?:<!--.*?-->)? \| .*? \| *(.*?) *\|$", re.MULTILINE)
"""A key or a text, and the text on the screen then, or nothing."""
KEYS = {"esc": "Escape", "ctrl+s": "C-s"}
"""Keys with another name in tmux."""
HERE_DOCUMENT_ENDS = "END"
PATIENCE = 60.0
"""Seconds for a step; there are some thirty, and a busy machine is slow at each."""


class Shell:
    """A shell whose prompt counts the commands, so that the end of each is known."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._typed = 0
        self._output = ""

    def run(self, commands: str, prose: str) -> None:
        """Type some commands, and answer `y` to a question if the prose below them does."""
        self.terminal.press("C-l")
        self._until_ready()
        for command in _split(commands):
            for line in command:
                self.terminal.type(line)
                self.terminal.press("Enter")
            self._typed += 1
            self._until(self._ready_or_asking, f"{command[0]} to end")
            if self._ready_or_asking() == "asking":
                assert "nswer `y`" in prose, f"the page does not mention the question of {command[0]}"
                self.terminal.type("y")
                self.terminal.press("Enter")
                self._until_ready()
        self._output = self.terminal.screen

    def printed(self, lines: str) -> bool:
        """Return whether the last commands printed these lines, in this order."""
        rest = self._output
        for line in lines.splitlines():
            _, found, rest = rest.partition(line.strip())
            if not found:
                return False
        return True

    def use_app(self, steps: list[tuple[str, str]]) -> None:
        """Start the app and follow a table: a key or a text, and the text on the screen then.

        Without the latter the text before is gone.
        """
        self.terminal.type(APP.strip())
        self.terminal.press("Enter")
        self._until(lambda: "? help" in self.terminal.screen, "the app")
        before = ""
        for word, shown in steps:
            if word not in KEYS and len(word) > 1:
                times = self.terminal.screen.count(word)
                self.terminal.type(word)
                self._until(partial(self._shows_more, word, times), f"{word!r} to be typed")
            elif shown:
                self._press(KEYS.get(word, word), shown)
            else:
                self.terminal.press(KEYS.get(word, word))
                self._until(lambda gone=before: not gone or gone not in self.terminal.screen, f"{word} to be taken")
            before = shown
        self._typed += 1
        self._until_ready()

    def _press(self, key: str, shown: str) -> None:
        """Press a key until its effect is on the screen: a request that has just come takes none, and in the launch
        dialog a second one would be text.
        """
        looks = count()

        def came() -> bool:
            if shown in self.terminal.screen:
                return True
            look = next(looks)
            if not look or (key != "n" and not look % LOOKS_APART):
                self.terminal.press(key)
            return False

        self._until(came, f"{shown!r} after {key}")

    def _until(self, condition: Callable[[], object], what: str) -> None:
        try:
            wait_until(condition, what, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.terminal.screen}") from None

    def _shows_more(self, text: str, times: int) -> bool:
        return self.terminal.screen.count(text) > times

    def _until_ready(self) -> None:
        self._until(lambda: self._ready_or_asking() == "ready", "the shell")

    def _ready_or_asking(self) -> str:
        last = self.terminal.screen.rstrip().rpartition("\n")[2].strip()
        if last == f"ready {self._typed + 1}>":
            return "ready"
        return "asking" if last.endswith("[y/N]:") else ""


def _split(commands: str) -> list[list[str]]:
    """Return the lines of each command: one, or those of a here-document."""
    split: list[list[str]] = []
    is_open = False
    for line in commands.splitlines():
        if is_open:
            split[-1].append(line)
        else:
            split.append([line])
        is_open = line != HERE_DOCUMENT_ENDS and (is_open or f"<<'{HERE_DOCUMENT_ENDS}'" in line)
    return split


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """An interactive shell in an empty home directory, where `subdeck` is installed."""
    program = home.parent / "installed" / "subdeck"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(SUBDECK)} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("PS1", r"ready \#> ")
    with Terminal("tutorial", ("bash", "--norc", "--noprofile"), home, (120, 50)) as terminal:
        yield Shell(terminal)


def test_every_step_works_as_printed(shell: Shell, home: Path) -> None:
    """The commands and keys of the tutorial work as printed, in an empty home directory."""
    parts = PART.findall(PAGE)
    assert INSTALL == parts[0][1]
    commands = prose = ""
    for language, block, after in parts[1:]:
        if language == "sh" and block == APP:
            shell.use_app(STEP.findall(after))
        elif language == "sh":
            commands, prose = block, after
            shell.run(commands, prose)
        else:
            wait_until(partial(_printed, shell, block, commands, prose), f"{block!r} from {commands!r}", PATIENCE)
    assert 'def greet(name):\n    return "Hello, " + name\n' == (home / "hello" / "greet.py").read_text()
    results = [json.loads(path.read_bytes()) for path in (home / "hello").glob(".pi/subagents/runs/*/result.json")]
    assert 3 * ["completed"] == [result["status"] for result in results]


def _printed(shell: Shell, block: str, commands: str, prose: str) -> bool:
    """Return whether that was printed; if the page suggests to repeat the command, after doing so."""
    if shell.printed(block):
        return True
    if "repeat the command" in prose:
        shell.run(commands, prose)
    return False
