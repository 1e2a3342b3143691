"""Fields for a number of attempts, a host, and a path, which is completed from the disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.suggester import Suggester, SuggestFromList
from textual.widgets import Input

from ..widgets.form import ChoosingInput

ENTRIES = 5000
"""Maximum number of directory entries to read."""
ANY_HOST = "any"


class HostInput(ChoosingInput):
    """Right accepts the completion; down steps through the known hosts."""

    def __init__(self, value: str) -> None:
        super().__init__(value, name="host", placeholder=ANY_HOST)
        self._hosts: Sequence[str] = ()

    def offer(self, hosts: Sequence[str]) -> None:
        """Offer these hosts from now on; the typed text stays."""
        self._hosts = hosts
        self.suggester = SuggestFromList(hosts, case_sensitive=False) if hosts else None
        self.placeholder = f"{ANY_HOST} (↓ lists {len(hosts)})" if hosts else ANY_HOST

    async def matching(self, typed: str) -> Sequence[str]:
        part = "" if typed in self._hosts else typed.strip().casefold()
        return [host for host in self._hosts if part in host.casefold()] or list(self._hosts)


class CountInput(Input):
    """Accepts digits; up and down count."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "count(1)", show=False),
        Binding("down", "count(-1)", show=False),
    ]

    def __init__(self, value: str, most: int, *, name: str) -> None:
        super().__init__(value, id=name, compact=True, restrict=r"[0-9]*", max_length=len(str(most)))
        self._most = most

    def action_count(self, step: int) -> None:
        now = int(self.value) if self.value.isdecimal() else 0
        self.value = str(max(1, min(self._most, now + step)))
        self.cursor_position = len(self.value)


def matching_paths(typed: str, base: str, *, files: bool) -> tuple[str, ...]:
    """Return the directories, with `files` also the files, whose paths begin as typed; directories end in a slash.

    `~` is the home directory, relative paths start at `base`. Names that begin with a dot need a typed dot; names that
    are not printable are never returned.
    """
    if typed == "~":
        return ("~/",)
    head, slash, beginning = typed.rpartition("/")
    head += slash
    names: list[str] = []
    try:
        with os.scandir(os.path.join(base, os.path.expanduser(head))) as entries:
            for entry in islice(entries, ENTRIES):
                name = entry.name
                is_hidden = name.startswith(".") and not beginning.startswith(".")
                if is_hidden or not name.startswith(beginning) or not name.isprintable():
                    continue
                if entry.is_dir():
                    names.append(f"{name}/")
                elif files:
                    names.append(name)
    except OSError:
        return ()
    return tuple(head + name for name in sorted(names, key=str.lower))


COMPLETION_S = 2.0
"""Seconds that Tab waits for a completion."""


class PathInput(ChoosingInput):
    """Right or Tab accepts the completion; without one Tab moves to the next field."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "take_or_go", show=False)]

    def __init__(self, value: str, base: str, *, name: str, files: bool = False, placeholder: str = "") -> None:
        """Take a path; `base` is where a relative one starts."""
        super().__init__(value, name=name, placeholder=placeholder)
        self._base = base
        self._files = files
        self.suggester = _Completion(self)

    async def matching(self, typed: str) -> Sequence[str]:
        return await asyncio.to_thread(matching_paths, typed, self._base, files=self._files)

    async def action_take_or_go(self) -> None:
        completion = await self._completion() if self.cursor_at_end else ""
        if len(completion) > len(self.value):
            self.put(completion)
        else:
            self.screen.focus_next()

    async def _completion(self) -> str:
        """Return the shown completion; that of a text typed just now is awaited, so that Tab behind it counts."""
        if self._suggestion or not self.value or self.suggester is None:
            return self._suggestion
        try:
            async with asyncio.timeout(COMPLETION_S):
                return await self.suggester.get_suggestion(self.value) or ""
        except TimeoutError:  # a directory that does not answer
            return ""


class _Completion(Suggester):
    """Reads the disk each time."""

    def __init__(self, field: PathInput) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._field = field

    async def get_suggestion(self, value: str) -> str | None:
        if value == self._field.settled:
            return None
        return next(iter(await self._field.matching(value)), None)
