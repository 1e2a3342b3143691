"""An agent's list of models, saved in a file and refreshed once a day."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..errors import AgentUnavailable
from ..models.catalog import Model
from ..paths import hex_digest
from ..system import files
from ..system.record import read_record

ASK_AGAIN_S = 24 * 3600
"""Seconds between requests, also after a failure."""
TIMEOUT_S = 120.0
"""Maximum seconds for an agent to list its models."""


class KeptList(Struct, frozen=True):
    """An agent's saved list, its time, and the state it depends on."""

    key: dict[str, str] = {}
    models: tuple[Model, ...] = ()
    asked_at: float = 0.0
    """Last request, in seconds since 1970; 0 for never, or if the clock was set back since."""
    asked_of: dict[str, str] = {}
    """The program at that time."""
    asked_with: dict[str, str] = {}
    """The `key` at that time, even if the request failed."""
    busy_until: float = 0.0
    """While a request runs: its latest end, in seconds since 1970."""
    modes: tuple[str, ...] | None = None
    """The modes of its sessions; None if they were not requested."""
    problem: str = ""
    """Why the last request failed, as text for the user."""


class ModelList:
    """One agent's list: its file, and the state it depends on."""

    def __init__(self, file: str, key: dict[str, str], program: dict[str, str] | None = None) -> None:
        """`key` is the state that the list depends on, `program` the part that identifies the program (None: all)."""
        self._file = file
        self.key = key
        self._program = key if program is None else program

    def kept(self) -> KeptList:
        """Return the saved list; empty if unreadable: it can be requested again."""
        kept = read_record(self._file, KeptList, KeptList())
        return kept if 0 <= kept.asked_at <= time.time() else replace(kept, asked_at=0.0)

    def is_due(self) -> bool:
        """Whether to refresh it: never requested, another program, or a day old."""
        kept, now = self.kept(), time.time()
        is_busy = now < kept.busy_until < now + 2 * TIMEOUT_S  # the clock may have been set back
        is_new = kept.asked_of == self._program and now - ASK_AGAIN_S < kept.asked_at
        return not (is_busy or is_new)

    @property
    def is_outdated(self) -> bool:
        """Whether its `key` has changed since the last request, even if the program is the same."""
        return self.kept().asked_with != self.key

    def begin(self, timeout: float) -> None:
        """Mark a request as running, to prevent a second one."""
        try:
            self._write(replace(self.kept(), busy_until=time.time() + timeout))
        except OSError:
            return  # then others also ask

    def keep(self, models: Sequence[Model], key: dict[str, str], modes: Sequence[str] | None = None) -> None:
        """Save the agent's list. Raises AgentUnavailable if that fails."""
        kept_modes = None if modes is None else tuple(modes)
        try:
            self._write(KeptList(key, tuple(models), time.time(), self._program, key, modes=kept_modes))
        except OSError as error:
            raise not_saved(error.strerror or "") from error

    def keep_problem(self, problem: str, key: dict[str, str]) -> None:
        """Save why the request failed, beside the previous list."""
        kept = replace(self.kept(), asked_at=time.time(), asked_of=self._program, asked_with=key)
        try:
            self._write(replace(kept, busy_until=0.0, problem=problem))
        except OSError:
            return  # the previous list is still there

    def _write(self, kept: KeptList) -> None:
        files.make_private_directory(paths.cache_dir())
        files.write_whole(self._file, msgspec.json.encode(kept))


def not_saved(reason: str = "") -> AgentUnavailable:
    """Return the error for a list that could not be saved."""
    what = "cannot save the list of models"
    return AgentUnavailable(
        f"{what}: {reason}" if reason else what,
        where=paths.cache_dir(),
        hint="check the permissions of that directory",
    )


def list_file(*of: str) -> str:
    """Return an agent's file, named by a hash of the agent's identity."""
    name = hex_digest("\0".join(of).encode("utf-8", "surrogateescape"), 16)
    return os.path.join(paths.cache_dir(), f"models-{name}.json")


def changed_at(path: str) -> str:
    """Return a key for a file's state (time and size); empty if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"
