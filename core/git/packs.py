"""Trees sent between the repositories of two machines, in packs, with identical commits on both.

A tree is sent as a commit without parents, its carrier: the same tree has the same carrier everywhere. Changes return
as a commit on that carrier. References are not sent, and incoming objects are checked before they are kept.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import IO

from ..system import files
from .program import Git, GitError, GitResult, failure

PACKING_S = 1800.0
"""Seconds for making or reading a pack."""
LEAST_S, LEAST_PACE = 120.0, 1024 * 1024
"""Seconds for reading a pack: `LEAST_S`, plus one per `LEAST_PACE` bytes."""
MEMORY = 3 * 1024 * 1024 * 1024
"""Bytes of memory for git with an incoming pack: a few bytes of it can expand to an object of any size."""
UNPACKED = 4
"""Limit for the total size of all objects, as a multiple of the allowed pack size."""
FEW = 1000
"""A pack of up to so many objects is unpacked: many packs make every command slow."""
_WHO = b"subdeck <subdeck@localhost> 0 +0000"
_ODD = "zeroPaddedFilemode=warn"
"""An error that old programs wrote into otherwise sound trees."""
_PARTS = (".pack", ".rev", ".idx")
"""Files of a pack; git searches for the last one first."""


def carrier_content(tree: str) -> bytes:
    """Return the carrier commit of a tree, as git stores it."""
    return _commit(tree, (), b"Files that travel\n")


def result_content(tree: str, carrier: str) -> bytes:
    """Return the commit of a result tree, made from a carrier's tree."""
    return _commit(tree, (carrier,), b"What became of them\n")


def _commit(tree: str, parents: Iterable[str], message: bytes) -> bytes:
    lines = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents)]
    return b"\n".join([*lines, b"author " + _WHO, b"committer " + _WHO, b"", message])


def write_commit(git: Git, content: bytes) -> str:
    """Write such a commit; return its id. Raises GitError."""
    return os.fsdecode(git.run("hash-object", "-t", "commit", "-w", "--stdin", input=content)).strip()


def has_commit(git: Git, commit: str, content: bytes) -> bool:
    """Whether a commit exists with this content. Raises GitError."""
    answer = git.ask("cat-file", "commit", commit)
    return not answer.code and answer.output == content


def write_pack(git: Git, file: IO[bytes], commit: str, known: str = "") -> int:
    """Write a pack for a commit, without the objects of the commit `known` (may be empty); return its size in bytes.
    Raises GitError and OSError.

    Without `known`, skip delta compression: it takes a minute and saves little. `known` does not have to be an ancestor
    (with `--shallow` git still compares).
    """
    size = 0

    def take(part: bytes) -> None:
        nonlocal size
        size += file.write(part)

    arguments = ("pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
    more = ("--thin", "--shallow") if known else ("--window=0",)
    revisions = f"{commit}\n{known and f'^{known}'}\n"
    code, stderr = git.feed(take, *arguments, *more, input=revisions.encode())
    if code:
        raise failure(arguments, GitResult(code, b"", stderr), git.directory)
    file.flush()
    return size


class Intake:
    """An incoming pack, kept apart: a bad one never gets into the repository."""

    def __init__(self, git_dir: str, objects: str, scratch: str, *, directory: str = "", is_own: bool = False) -> None:
        """`objects` belong to the repository. `scratch` is a directory that is created here, and removed by `close`.
        With `is_own`, subdeck's repository, its settings are not read.
        """
        self._objects = objects
        self._scratch = scratch
        self._apart = os.path.join(scratch, "objects")
        files.remove_tree(scratch)
        files.make_private_directory(os.path.join(self._apart, "pack"))
        self.git = Git(
            directory or git_dir,
            git_dir=git_dir,
            objects=self._apart,
            alternates=(objects,),
            is_own=is_own,
            patience=PACKING_S,
            memory=MEMORY,
        )
        """Sees the incoming and the existing objects."""
        self._came = Git(
            directory or git_dir,
            git_dir=git_dir,
            objects=self._apart,
            is_own=is_own,
            patience=PACKING_S,
            memory=MEMORY,
        )

    def read(self, pack: IO[bytes], most: int) -> None:
        """Read a pack of at most `most` bytes. Check each object as git does for pushes from strangers, and that no
        referenced object is missing. Raises GitError if it is refused.
        """
        size = os.fstat(pack.fileno()).st_size
        self.git.patience = min(PACKING_S, LEAST_S + size / LEAST_PACE)
        self.git.run(
            *("index-pack", "--stdin", "--fix-thin", f"--strict={_ODD}", f"--max-input-size={most}"), input=pack
        )
        self.git.patience = PACKING_S
        sizes = self._came.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectsize)")
        if (total := sum(map(int, sizes.split()))) > UNPACKED * most:
            raise GitError(f"it stands for {total:,} bytes of files, more than is taken", where=self._scratch)

    def keep(self, pack: IO[bytes], git: Git) -> None:
        """Store the new objects in the repository of `git`. Raises GitError and OSError."""
        if _count(pack) <= FEW:
            git.run("unpack-objects", "-q", input=pack)
            return
        packs = os.path.join(self._apart, "pack")
        target = os.path.join(self._objects, "pack")
        files.make_private_directory(target)
        names = files.names(packs)
        for end in _PARTS:
            for name in names:
                if name.endswith(end):
                    files.rename(os.path.join(packs, name), os.path.join(target, name))

    def close(self) -> None:
        files.remove_tree(self._scratch)


def _count(pack: IO[bytes]) -> int:
    """Return the object count in a pack's header."""
    pack.seek(0)
    head = pack.read(12)
    if len(head) < 12 or head[:4] != b"PACK":
        raise GitError("not a pack file")
    count: int = struct.unpack(">I", head[8:12])[0]
    return count
