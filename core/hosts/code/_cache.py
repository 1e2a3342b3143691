"""A host's cache of an operator's repository: a bare repository with the trees that were sent here.

Packs arrive in pieces, each continuing the last, and are checked before they enter the cache. Received content never
configures git: this program writes the settings.
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
"""Largest accepted pack, in bytes."""
OLD_S = 2 * 24 * 3600.0
"""Seconds after which unfinished packs are removed."""
CARRIERS_S = 30 * 24 * 3600.0
"""Seconds after which unused snapshots may be removed."""
MANY_PACKS = 50
"""Number of packs from which they are combined."""
REPACKING_S = 1800.0
LEAST_UNUSED_S = 3600.0
"""Younger caches count as in use: a run may be about to start with one."""
_NONE = "none"
_LOCK = "lock"
_USED = "used"
"""Its modification time records the last run with files of the repository."""
REMOVED = ".removed"
"""Suffix of a repository's directory while it is being removed."""


def write_settings(git_dir: str, object_format: str, *, bare: bool, more: Sequence[str] = ()) -> None:
    """Write a repository's settings and directories, without HEAD and objects. Raises OSError."""
    has_extension = object_format != "sha1"
    private = "\tsharedRepository = 0600"  # independent of the umask
    version = f"\trepositoryformatversion = {int(has_extension)}"
    lines = ["[core]", version, f"\tbare = {str(bare).lower()}", private, *more]
    if has_extension:
        lines += ["[extensions]", f"\tobjectFormat = {object_format}"]
    for name in ("objects/info", "objects/pack", "refs/heads", "info"):
        files.make_private_directory(os.path.join(git_dir, name))
    files.write_whole(os.path.join(git_dir, "config"), "\n".join([*lines, ""]).encode())


def _is_at(path: str, descriptor: int) -> bool:
    """Return whether an open file still has this path: it may have been removed while waiting for the lock."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class Cache:
    """The cache of one repository; several processes and threads may use it."""

    def __init__(self, directory: str, object_format: str, in_use: Callable[[], set[str]] = set) -> None:
        """`in_use` returns the snapshots that runs work with now."""
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
        """Create what is missing. Raises OSError."""
        files.make_private_directory(self._incoming)
        if files.exists(os.path.join(self.git_dir, "HEAD")):
            return
        write_settings(self.git_dir, self.object_format, bare=True, more=("\tlogAllRefUpdates = false",))
        files.write_whole(os.path.join(self.git_dir, "HEAD"), b"ref: refs/heads/none\n")

    def has(self, carrier: str) -> bool:
        """Return whether a whole snapshot is here. Raises GitError."""
        if not files.exists(os.path.join(self.git_dir, "HEAD")):
            return False
        return self.git.ask("rev-parse", "--verify", "--quiet", f"{CARRIERS}/{carrier}").code == 0

    def take(self, piece: CodePiece) -> CodeSaid:
        """Accept a piece of a pack, or report what is already here.

        Raises GitError and OSError. A piece that does not continue the last one is ignored, and the answer gives the
        expected offset. A piece at offset 0 starts over.
        """
        carrier = piece.code.carrier
        with self._alone():
            self.note_use()
            if self.has(carrier):
                return CodeSaid(has_all=True)
            parent = next((candidate for candidate in piece.parents if self.has(candidate)), "")
            path = os.path.join(self._incoming, f"{piece.relay}-{carrier}-{parent or _NONE}")
            descriptor = files.open_private(path, os.O_RDWR)
            with open(descriptor, "r+b", buffering=0) as file:
                if piece.content and not piece.offset:
                    file.truncate(0)  # the operator starts over with another pack
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
            # The received pack was checked for everything its tree names; older objects were checked when they arrived.
            intake.keep(pack, self.git)
        finally:
            intake.close()
        self.git.run("update-ref", f"{CARRIERS}/{carrier}", carrier)
        self._tidy(carrier)

    def _tidy(self, carrier: str) -> None:
        """Combine many packs after a new snapshot, and remove unfinished packs that are old."""
        packs = [name for name in files.names(os.path.join(self.objects, "pack")) if name.endswith(".pack")]
        if len(packs) > MANY_PACKS:
            self._forget_old({carrier, *self._in_use()})
            self.git.ask("repack", "-a", "-d", "-q", "--window=0")
        for name in files.names(self._incoming):
            path = os.path.join(self._incoming, name)
            if os.stat(path).st_mtime < time.time() - OLD_S:
                files.remove(path)

    def _forget_old(self, in_use: set[str]) -> None:
        """Forget old unused snapshots, so that repacking frees space."""
        directory = os.path.join(self.git_dir, CARRIERS)
        for carrier in files.names(directory):
            path = os.path.join(directory, carrier)
            if carrier not in in_use and os.stat(path).st_mtime < time.time() - CARRIERS_S:
                files.remove(path)

    def note_use(self) -> None:
        """Note that a run came with files of this repository. Raises OSError."""
        files.write_whole(os.path.join(self.directory, _USED), b"")

    def put_away(self, unused: float) -> str:
        """Move the cache and its trees aside if no run has used it for `unused` seconds; return the path to remove,
        empty if it stays. Raises OSError.

        The caller ensures that no run has or gets one of its trees.
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
        """Return the seconds since the last use; a cache without a record of that counts as used now."""
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
