"""Which run has which working tree of a host, and the changes of finished runs, with a record of each in a file.

A record exists from before its tree is prepared until the operator has everything; a restarted agent reads them all.
There are never more trees than runs that work at the same time.
"""

from __future__ import annotations

import os
import re
import threading
import time
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...errors import SubdeckError
from ...git.program import GitError
from ...git.worktrees import remove_files
from ...system import files
from ...system.log import log_fault
from ...system.record import read_record
from ...text.plain import one_line
from ..protocol import Code, Whole
from ._cache import REMOVED, Cache
from ._slot import Left, Slot

RUNS = "runs"
ASIDE_S = 7 * 24 * 3600.0
"""Seconds that an archived tree is kept."""
_RECORD = ".json"
_PACK = ".pack"


class Lease(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one run."""

    run: str
    code: Code
    slot: Whole
    is_ready: bool = False
    """Whether the snapshot is in the tree; if not, the agent was killed before."""
    left: Left | None = None
    """None until the run's changes are known; until then it has the tree."""
    why: str = ""
    """Why the last attempt to find its changes failed."""


class Pool:
    """All working trees below a directory. Methods block while git runs; threads may share it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._runs = os.path.join(directory, RUNS)
        self._aside = os.path.join(directory, "aside")
        self._leases: dict[str, Lease] = {}
        self._lock = threading.Lock()
        """For `_leases`."""
        self._busy: dict[str, threading.Lock] = {}
        """One for each run, so that operations on the same run wait for each other."""
        files.make_private_directory(self._runs)
        for name in files.names(self._runs):
            if name.endswith(_RECORD) and (lease := self._read(name)):
                self._leases[lease.run] = lease

    def _read(self, name: str) -> Lease | None:
        lease = read_record(os.path.join(self._runs, name), Lease)
        return lease if lease and name == lease.run + _RECORD else None

    def cache(self, code: Code) -> Cache:
        object_format = "sha1" if len(code.tree) == 40 else "sha256"
        return Cache(os.path.join(self.directory, code.repository), object_format, self._in_use)

    def _in_use(self) -> set[str]:
        with self._lock:
            return {lease.code.carrier for lease in self._leases.values()}

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that have a tree, or changes that were not fetched."""
        with self._lock:
            return tuple(self._leases)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The runs that have a tree, with no attempt yet to find their changes."""
        with self._lock:
            return tuple(run_id for run_id, lease in self._leases.items() if lease.left is None and not lease.why)

    def lease(self, run_id: str) -> Lease | None:
        with self._lock:
            return self._leases.get(run_id)

    def prepare(self, run_id: str, code: Code) -> str:
        """Give a run a tree with its snapshot, the same one if repeated, and return its working directory.

        Raises SubdeckError and OSError; the run then has no tree.
        """
        with self._alone(run_id):
            lease = self.lease(run_id)
            if lease is not None and lease.left is not None:
                return self._slot(lease).tree  # it has finished; the tree may be another run's
            if lease is not None and lease.is_ready:
                return self._slot(lease).working_directory(lease.code)
            if not self.cache(code).has(code.carrier):
                raise SubdeckError("its snapshot is not on the host", where=code.carrier[:12])
            try:
                lease = lease or self._leased(run_id, code)
                directory = self._slot(lease).ready(lease.code)
                self._keep(replace(lease, is_ready=True))
            except BaseException:
                self._drop(run_id)
                raise
            return directory

    def _leased(self, run_id: str, code: Code) -> Lease:
        """Choose a free tree, preferably one with the same snapshot, and record it. Raises OSError."""
        with self._lock:
            taken = {
                lease.slot for lease in self._leases.values() if lease.left is None and _is_beside(lease.code, code)
            }
            numbers = (int(name) for name in files.names(self._slots(code)) if name.isdecimal())
            free = sorted(number for number in numbers if number not in taken)
            same = [number for number in free if self._slot_of(code, number).carrier == code.carrier]
            number = next(iter([*same, *free]), None)
            if number is None:
                number = next(candidate for candidate in range(len(taken) + 1) if candidate not in taken)
            new_lease = Lease(run=run_id, code=code, slot=number)
            self._write(new_lease)
            self._leases[run_id] = new_lease
        return new_lease

    def finish(self, run_id: str) -> Lease | None:
        """Find a finished run's changes and free its tree; return None if it has no tree.

        If the changes cannot be found now, the run keeps its tree, and `why` has the reason.
        """
        with self._alone(run_id):
            lease = self.lease(run_id)
            if lease is None or lease.left is not None:
                return lease
            try:
                lease = replace(lease, left=self._slot(lease).left(lease.code, self._pack(run_id)), why="")
                self._keep(lease)
            except (GitError, OSError) as error:
                why = error.what if isinstance(error, GitError) else error.strerror or str(error)
                lease = replace(lease, left=None, why=one_line(why, 300))
                with self._lock:
                    self._leases[run_id] = lease
            return lease

    def _keep(self, lease: Lease) -> None:
        """Record a run's state on disk, then in memory. Raises OSError."""
        self._write(lease)
        with self._lock:
            self._leases[lease.run] = lease

    def open_pack(self, run_id: str) -> IO[bytes]:
        """Open the pack with a run's changes. Raises OSError."""
        descriptor = files.open_file(self._pack(run_id), os.O_RDONLY)
        return open(descriptor, "rb")

    def forget(self, run_id: str) -> None:
        """Remove a run's files: the operator has them or does not want them.

        If the run's changes could not be found, its tree is archived.
        """
        with self._alone(run_id):
            lease = self.lease(run_id)
            if lease is not None and lease.left is None and lease.why:
                self._put_aside(lease)
            self._drop(run_id)
        with self._lock:
            self._busy.pop(run_id, None)

    def aside(self, run_id: str) -> str:
        """Return the path at which a run's tree is archived."""
        return os.path.join(self._aside, run_id)

    def _put_aside(self, lease: Lease) -> None:
        try:
            files.make_private_directory(self._aside)
            files.rename(self._slot(lease).tree, self.aside(lease.run))
            os.utime(self.aside(lease.run))
        except OSError as error:
            log_fault("archiving the changes of a run", error)

    def purge(self) -> None:
        """Remove old archived trees."""
        for name in files.names(self._aside):
            path = os.path.join(self._aside, name)
            if os.stat(path).st_mtime < time.time() - ASIDE_S:
                remove_files(path)

    def purge_repositories(self, unused: float) -> None:
        """Remove repositories that no run has used for `unused` seconds. Raises OSError."""
        for name in files.names(self.directory):
            if name.endswith(REMOVED):
                remove_files(os.path.join(self.directory, name))  # its agent was killed while removing it
        for name in files.names(self.directory):
            if re.fullmatch(r"[0-9a-f]{16}", name) and (gone := self._put_away(name, unused)):
                remove_files(gone)

    def _put_away(self, repository: str, unused: float) -> str:
        """Return the directory to remove of a repository; empty if a run has one of its trees or it was used
        recently.
        """
        with self._lock:  # no run gets a tree until this is done
            if any(lease.code.repository == repository for lease in self._leases.values()):
                return ""
            return Cache(os.path.join(self.directory, repository), "").put_away(unused)

    def _drop(self, run_id: str) -> None:
        files.remove(os.path.join(self._runs, run_id + _RECORD))
        files.remove(self._pack(run_id))
        with self._lock:
            self._leases.pop(run_id, None)

    def _alone(self, run_id: str) -> threading.Lock:
        with self._lock:
            return self._busy.setdefault(run_id, threading.Lock())

    def _write(self, lease: Lease) -> None:
        path = os.path.join(self._runs, lease.run + _RECORD)
        files.write_whole(path, msgspec.json.encode(lease), durable=True)

    def _pack(self, run_id: str) -> str:
        return os.path.join(self._runs, run_id + _PACK)

    def _slots(self, code: Code) -> str:
        return os.path.join(self.directory, code.repository, "pool")

    def _slot_of(self, code: Code, number: int) -> Slot:
        return Slot(self.cache(code), os.path.join(self._slots(code), str(number)))

    def _slot(self, lease: Lease) -> Slot:
        return self._slot_of(lease.code, lease.slot)


def _is_beside(first: Code, second: Code) -> bool:
    return first.repository == second.repository
