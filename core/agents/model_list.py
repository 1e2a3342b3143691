"""The list of models that an agent told when it was last asked: kept in a file, and asked for anew once a day."""

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
from ..text.decoding import UNDECODABLE, decode

ASK_AGAIN_S = 24 * 3600
"""An agent that failed is not asked more often either."""
TIMEOUT_S = 120.0
"""How long an agent may take to tell them at most."""


class KeptList(Struct, frozen=True):
    """What an agent told, when, and what that depends on."""

    key: dict[str, str] = {}
    models: tuple[Model, ...] = ()
    asked_at: float = 0.0
    """When it was asked last, in seconds since 1970; 0 for never, or where the clock was set back since."""
    asked_of: dict[str, str] = {}
    """Which program that was."""
    asked_with: dict[str, str] = {}
    """What `key` was then, whether it told something or not."""
    busy_until: float = 0.0
    """While somebody asks: when they have given up at the latest."""
    modes: tuple[str, ...] | None = None
    """The modes that its sessions can be in; None where that was not asked."""
    problem: str = ""
    """Why it told nothing when it was asked last, for a person."""


class ModelList:
    """The list of one agent: where it is kept, and what it depends on."""

    def __init__(self, file: str, key: dict[str, str], program: dict[str, str] | None = None) -> None:
        """`key` is what the list depends on, `program` the part of it that is the program itself (None: all)."""
        self._file = file
        self.key = key
        self._program = key if program is None else program

    def kept(self) -> KeptList:
        """Return what is known of it; what cannot be read can be asked for again."""
        try:
            kept = decode(files.read(self._file), KeptList)
        except (OSError, *UNDECODABLE):
            return KeptList()
        return kept if 0 <= kept.asked_at <= time.time() else replace(kept, asked_at=0.0)

    def is_due(self) -> bool:
        """Tell whether it has to be asked: it never was, is another one now, or said its last word a day ago."""
        kept, now = self.kept(), time.time()
        is_busy = now < kept.busy_until < now + 2 * TIMEOUT_S  # a clock may be set back
        is_new = kept.asked_of == self._program and now - ASK_AGAIN_S < kept.asked_at
        return not (is_busy or is_new)

    @property
    def is_outdated(self) -> bool:
        """Whether something that the list depends on has changed since it was asked, though the program need not."""
        return self.kept().asked_with != self.key

    def begin(self, timeout: float) -> None:
        """Note that somebody asks now, so that nobody else does."""
        try:
            self._write(replace(self.kept(), busy_until=time.time() + timeout))
        except OSError:
            return  # then others ask, too

    def keep(self, models: Sequence[Model], key: dict[str, str], modes: Sequence[str] | None = None) -> None:
        """Keep what the agent told. Raises AgentUnavailable where that cannot be done."""
        told = None if modes is None else tuple(modes)
        try:
            self._write(KeptList(key, tuple(models), time.time(), self._program, key, modes=told))
        except OSError as error:
            raise not_saved(error.strerror or "") from error

    def keep_problem(self, problem: str, key: dict[str, str]) -> None:
        """Keep why the agent told nothing, beside what it told before."""
        kept = replace(self.kept(), asked_at=time.time(), asked_of=self._program, asked_with=key)
        try:
            self._write(replace(kept, busy_until=0.0, problem=problem))
        except OSError:
            return  # what it told before is not lost by that

    def _write(self, kept: KeptList) -> None:
        files.make_private_directory(paths.cache_dir())
        files.write_whole(self._file, msgspec.json.encode(kept))


def not_saved(reason: str = "") -> AgentUnavailable:
    """Return the error of a list that was loaded and is not on disk."""
    what = "cannot save the list of models"
    return AgentUnavailable(
        f"{what}: {reason}" if reason else what,
        where=paths.cache_dir(),
        hint="check the permissions of that directory",
    )


def list_file(*of: str) -> str:
    """Return the file for an agent, by all that tells it from others."""
    name = hex_digest("\0".join(of).encode("utf-8", "surrogateescape"), 16)
    return os.path.join(paths.cache_dir(), f"models-{name}.json")


def changed_at(path: str) -> str:
    """Return what tells one state of a file from another; empty where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"
