"""What a host has of a repository of the operator's: a bare one of ours, with the trees that were sent here.

Packs arrive in pieces, each where the last one ended, and are looked at before the cache has them. Nothing that came
along says what git does here: the settings are ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import IO

from ...git.packs import Intake, carrier_content, has_commit
from ...git.program import Git, GitError
from ...system import files
from ...text.plain import one_line
from .._full_disk import is_of_full_disk
from ..protocol import CodePiece, CodeSaid

CARRIERS = "refs/subdeck/carriers"
MOST = 8 * 1024 * 1024 * 1024
"""Bytes of a pack that is taken."""
OLD_S = 2 * 24 * 3600.0
"""After this what came of a pack is not waited for any more."""
CARRIERS_S = 30 * 24 * 3600.0
"""After this a snapshot may go that no run works with."""
MANY_PACKS = 50
"""From which on they are made one."""
REPACKING_S = 1800.0
LEAST_UNUSED_S = 3600.0
"""What came less long ago is in use: a run may be about to be started with it."""
_NONE = "none"
_LOCK = "lock"
_USED = "used"
"""Changed last when a run came with files of the repository."""
REMOVED = ".removed"
"""Ends the name of the directory of a repository that is being removed."""


def write_settings(git_dir: str, object_format: str, *, bare: bool, more: Sequence[str] = ()) -> None:
    """Write what makes a directory a repository, but for its HEAD and its objects. Raises OSError."""
    is_other = object_format != "sha1"
    private = "\tsharedRepository = 0600"  # independent of the umask
    version = f"\trepositoryformatversion = {int(is_other)}"
    lines = ["[core]", version, f"\tbare = {str(bare).lower()}", private, *more]
    if is_other:
        lines += ["[extensions]", f"\tobjectFormat = {object_format}"]
    for name in ("objects/info", "objects/pack", "refs/heads", "info"):
        files.make_private_directory(os.path.join(git_dir, name))
    files.write_whole(os.path.join(git_dir, "config"), "\n".join([*lines, ""]).encode())


def _is_at(path: str, descriptor: int) -> bool:
    """Return whether an open file is the one with this path: it may have been removed while it was waited for."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class Cache:
    """Of one repository; several processes and threads may use it."""

    def __init__(self, directory: str, object_format: str, in_use: Callable[[], set[str]] = set) -> None:
        """`in_use` says with which snapshots runs work now."""
        self._in_use = in_use
        self.directory = directory
        self.object_format = object_format
        self.git_dir = os.path.join(directory, "cache.git")
        self.objects = os.path.join(self.git_dir, "objects")
        self._incoming = os.path.join(directory, "incoming")

    @property
    def git(self) -> Git:
        return Git(self.git_dir, git_dir=self.git_dir, is_own=True, patience=REPACKING_S)

    def make(self) -> None:
        """Make what is missing of it. Raises OSError."""
        files.make_private_directory(self._incoming)
        if files.exists(os.path.join(self.git_dir, "HEAD")):
            return
        write_settings(self.git_dir, self.object_format, bare=True, more=("\tlogAllRefUpdates = false",))
        files.write_whole(os.path.join(self.git_dir, "HEAD"), b"ref: refs/heads/none\n")

    def has(self, carrier: str) -> bool:
        """Return whether all of a tree is here. Raises GitError."""
        if not files.exists(os.path.join(self.git_dir, "HEAD")):
            return False
        return self.git.ask("rev-parse", "--verify", "--quiet", f"{CARRIERS}/{carrier}").code == 0

    def take(self, piece: CodePiece) -> CodeSaid:
        """Take a piece of a pack, or say what is here already. Raises GitError and OSError.

        What does not begin where the last piece ended is left, and the answer says where that is; but for a first one,
        which begins anew.
        """
        carrier = piece.code.carrier
        with self._alone():
            self.note_use()
            if self.has(carrier):
                return CodeSaid(has_all=True)
            parent = next((one for one in piece.parents if self.has(one)), "")
            path = os.path.join(self._incoming, f"{piece.relay}-{carrier}-{parent or _NONE}")
            descriptor = files.open_private(path, os.O_RDWR)
            with open(descriptor, "r+b", buffering=0) as file:
                if piece.content and not piece.offset:
                    file.truncate(0)  # the operator begins anew, with another pack
                size = os.fstat(descriptor).st_size
                if piece.offset != size or not (piece.content or piece.last):
                    return CodeSaid(parent=parent, size=size)
                written = 0
                while written < len(piece.content):
                    written += os.pwrite(descriptor, piece.content[written:], size + written)
                if not piece.last:
                    return CodeSaid(parent=parent, size=size + written)
                try:
                    self._take_in(file, carrier, piece.code.tree)
                except GitError as error:
                    not_now = is_of_full_disk(error)
                    return CodeSaid(parent=parent, why=one_line(error.what, 300), not_now=not_now)
                finally:
                    files.remove(path)
        return CodeSaid(has_all=True)

    def _take_in(self, pack: IO[bytes], carrier: str, tree: str) -> None:
        intake = Intake(self.git_dir, self.objects, os.path.join(self.directory, "apart"), is_own=True)
        try:
            intake.read(pack, MOST)
            if not has_commit(intake.git, carrier, carrier_content(tree)):
                raise GitError("the sent files do not contain the snapshot")
            # That all is there which the tree names was seen for what came; for what was here it was when that came.
            intake.keep(pack, self.git)
        finally:
            intake.close()
        self.git.run("update-ref", f"{CARRIERS}/{carrier}", carrier)
        self._tidy(carrier)

    def _tidy(self, carrier: str) -> None:
        """Make one pack of many, now that this snapshot has come, and forget what never came to its end."""
        packs = [name for name in files.names(os.path.join(self.objects, "pack")) if name.endswith(".pack")]
        if len(packs) > MANY_PACKS:
            self._forget_old({carrier, *self._in_use()})
            self.git.ask("repack", "-a", "-d", "-q", "--window=0")
        for name in files.names(self._incoming):
            path = os.path.join(self._incoming, name)
            if os.stat(path).st_mtime < time.time() - OLD_S:
                files.remove(path)

    def _forget_old(self, in_use: set[str]) -> None:
        """Let go the snapshots that came long ago, so that there is room again."""
        place = os.path.join(self.git_dir, CARRIERS)
        for carrier in files.names(place):
            path = os.path.join(place, carrier)
            if carrier not in in_use and os.stat(path).st_mtime < time.time() - CARRIERS_S:
                files.remove(path)

    def note_use(self) -> None:
        """Note that a run comes with files of this repository. Raises OSError."""
        files.write_whole(os.path.join(self.directory, _USED), b"")

    def put_away(self, unused: float) -> str:
        """Take all of it, with the trees, out of the way where no run has come with it for so many seconds; return
        where it is to be removed, empty where it stays. Raises OSError.

        No run may have a tree of it, or get one meanwhile.
        """
        path = os.path.join(self.directory, _LOCK)
        if not files.exists(path):
            return ""
        lock = files.open_lock(path)
        try:
            if not files.try_lock(lock) or self._unused_s() < max(unused, LEAST_UNUSED_S):
                return ""
            gone = self.directory + REMOVED
            files.rename(self.directory, gone)
            return gone
        finally:
            os.close(lock)

    def _unused_s(self) -> float:
        """Return for how many seconds no run has come with it; what was made before that was noted counts from now."""
        try:
            return time.time() - os.stat(os.path.join(self.directory, _USED)).st_mtime
        except FileNotFoundError:
            self.note_use()
            return 0.0

    @contextmanager
    def _alone(self) -> Generator[None]:
        while True:
            self.make()
            path = os.path.join(self.directory, _LOCK)
            lock = files.open_lock(path)
            try:
                files.lock(lock)
                if _is_at(path, lock):
                    yield
                    return
            finally:
                os.close(lock)
