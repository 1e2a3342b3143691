"""Trees that travel between the repositories of two machines, in packs, with commits that are the same on both.

A tree travels as a commit without parents, its carrier: the same tree has the same carrier everywhere. What was changed
in it comes back as a commit on that carrier. No reference travels, and what arrives is looked at before it is kept.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import IO

from ..system import files
from .program import Answer, Git, GitError, failure

PACKING_S = 1800.0
"""Seconds that making or taking in a pack may take."""
LEAST_S, LEAST_PACE = 120.0, 1024 * 1024
"""How long taking in a pack may take: so many seconds, and one for each so many bytes."""
MEMORY = 3 * 1024 * 1024 * 1024
"""Bytes that git may have for a pack that came: a few bytes of it can stand for an object of any size."""
UNPACKED = 4
"""So many times as large as a pack may be at most are all objects together that it stands for."""
FEW = 1000
"""Objects of a pack up to which they are kept one by one: many packs make every command slow."""
_WHO = b"subdeck <subdeck@localhost> 0 +0000"
_ODD = "zeroPaddedFilemode=warn"
"""What old programs wrote into trees that are otherwise sound."""
_PARTS = (".pack", ".rev", ".idx")
"""Of a pack; git looks for the last one first."""


def carrier_content(tree: str) -> bytes:
    """Return the carrier of a tree, a commit as git stores it."""
    return _commit(tree, (), b"Files that travel\n")


def result_content(tree: str, carrier: str) -> bytes:
    """Return the commit of a tree that was made of that of a carrier."""
    return _commit(tree, (carrier,), b"What became of them\n")


def _commit(tree: str, parents: Iterable[str], message: bytes) -> bytes:
    lines = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents)]
    return b"\n".join([*lines, b"author " + _WHO, b"committer " + _WHO, b"", message])


def write_commit(git: Git, content: bytes) -> str:
    """Write such a commit; return its id. Raises GitError."""
    return os.fsdecode(git.run("hash-object", "-t", "commit", "-w", "--stdin", input=content)).strip()


def has_commit(git: Git, commit: str, content: bytes) -> bool:
    """Return whether a commit is there, and is that one. Raises GitError."""
    answer = git.ask("cat-file", "commit", commit)
    return not answer.code and answer.output == content


def write_pack(git: Git, file: IO[bytes], commit: str, known: str = "") -> int:
    """Write into a file what the other side needs of a commit that has the commit `known`, empty for nothing; return
    how many bytes that are. Raises GitError and OSError.

    Where nothing is known nothing is compressed by differences: that takes a minute and saves little. What is known
    need not come before the commit (`--shallow` has git compare with it all the same).
    """
    size = 0

    def take(part: bytes) -> None:
        nonlocal size
        size += file.write(part)

    arguments = ("pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
    more = ("--thin", "--shallow") if known else ("--window=0",)
    wanted = f"{commit}\n{known and f'^{known}'}\n"
    code, said = git.feed(take, *arguments, *more, input=wanted.encode())
    if code:
        raise failure(arguments, Answer(code, b"", said), git.directory)
    file.flush()
    return size


class Intake:
    """A pack that came from elsewhere, in a place apart: what is wrong with it never gets into the repository."""

    def __init__(self, git_dir: str, objects: str, place: str, *, directory: str = "", is_own: bool = False) -> None:
        """`objects` are those of the repository, `place` a directory that is made, and removed by `close`. Only in a
        repository of ours (`is_own`) its settings are not looked at.
        """
        self._objects = objects
        self._place = place
        self._apart = os.path.join(place, "objects")
        files.remove_tree(place)
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
        """Knows what came, and what was there before."""
        self._came = Git(
            directory or git_dir,
            git_dir=git_dir,
            objects=self._apart,
            is_own=is_own,
            patience=PACKING_S,
            memory=MEMORY,
        )

    def read(self, pack: IO[bytes], most: int) -> None:
        """Take a pack of at most so many bytes; each object is looked at as git does with what is pushed by strangers,
        and all that they name has to be there. Raises GitError where it is refused.
        """
        size = os.fstat(pack.fileno()).st_size
        self.git.patience = min(PACKING_S, LEAST_S + size / LEAST_PACE)
        self.git.run(
            *("index-pack", "--stdin", "--fix-thin", f"--strict={_ODD}", f"--max-input-size={most}"), input=pack
        )
        self.git.patience = PACKING_S
        sizes = self._came.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectsize)")
        if (total := sum(map(int, sizes.split()))) > UNPACKED * most:
            raise GitError(f"it stands for {total:,} bytes of files, more than is taken", where=self._place)

    def keep(self, pack: IO[bytes], git: Git) -> None:
        """Have the repository, which `git` is for, keep what came. Raises GitError and OSError."""
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
        files.remove_tree(self._place)


def _count(pack: IO[bytes]) -> int:
    """Return how many objects a pack says that it has."""
    pack.seek(0)
    head = pack.read(12)
    if len(head) < 12 or head[:4] != b"PACK":
        raise GitError("not a pack file")
    count: int = struct.unpack(">I", head[8:12])[0]
    return count
