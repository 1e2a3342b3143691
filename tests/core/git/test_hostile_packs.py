"""A hostile host's answers for a run's files: they cost no more than the limit, and lead nowhere."""

from __future__ import annotations

import hashlib
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.git import packs
from subdeck.core.hosts.protocol import PIECE, Fetched, FetchPiece, Verb, decode_asked, encode
from subdeck.core.run.model import RunMeta

from ..hosts.test_hosts_code_hostile import answering, kept, made_by_host, tree_of
from ..hosts.traveling import Machines, make_machines
from .repositories import git, make

pytestmark = pytest.mark.processes

MB = 1024 * 1024
COMMIT, TREE, BLOB, REF_DELTA = 1, 2, 3, 7
KINDS = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return make_machines(tmp_path)


def head(kind: int, size: int) -> bytes:
    """Return the header of an object in a pack."""
    first, size = kind << 4 | size & 15, size >> 4
    found = bytearray()
    while size:
        found.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    return bytes((*found, first))


def number(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def whole(kind: int, content: bytes) -> tuple[bytes, bytes]:
    """Return an object and its id."""
    made = hashlib.sha1(KINDS[kind] + b" %d\0" % len(content) + content, usedforsecurity=False).digest()
    return head(kind, len(content)) + zlib.compress(content), made


def pack_of(*objects: bytes) -> bytes:
    body = b"PACK" + struct.pack(">II", 2, len(objects)) + b"".join(objects)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def of_zeros(size: int) -> Iterator[bytes]:
    """Return the base of a blob of `size` zeros, and the delta that git expands into it: some hundred bytes."""
    base = bytes(65536)
    content, base_id = whole(BLOB, base)
    delta = number(len(base)) + number(size) + b"\x80" * (size // len(base))  # each byte copies the whole base
    yield content
    yield head(REF_DELTA, len(delta)) + base_id + zlib.compress(delta)


def id_of_zeros(size: int) -> str:
    found = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for _ in range(size // MB):
        found.update(bytes(MB))
    return found.hexdigest()


def bomb(machines: Machines, meta: RunMeta, size: int) -> Fetched:
    """Return a pack of a few hundred bytes with a file of zeros, as a host would send it."""
    tree, tree_id = whole(TREE, b"100644 zeros\0" + bytes.fromhex(id_of_zeros(size)))
    content = packs.result_content(tree_id.hex(), machines.code(meta).carrier)
    commit, commit_id = whole(COMMIT, content)
    pack = pack_of(commit, tree, *of_zeros(size))
    return Fetched(len(pack), pack, tree_id.hex(), commit_id.hex())


async def test_a_small_pack_of_a_huge_file(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that expands above the limit is refused, however few bytes it has."""
    (meta,) = machines.launch()
    fetched = bomb(machines, meta, 64 * MB)
    assert len(fetched.content) < 1000
    monkeypatch.setattr("subdeck.core.work.remote.MOST", 8 * MB)
    before = kept(machines)
    brought = await machines.carriage.fetch(answering(machines, fetched), meta, "h1")
    assert "more than is taken" in brought.errors[0]
    assert not brought.branch
    assert before == kept(machines)


async def test_a_pack_gets_no_more_memory_than_it_may(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """git stops at the memory limit, before the machine runs out of memory."""
    (meta,) = machines.launch()
    fetched = bomb(machines, meta, 256 * MB)
    monkeypatch.setattr(packs, "MEMORY", 128 * MB)
    before = kept(machines)
    brought = await machines.carriage.fetch(answering(machines, fetched), meta, "h1")
    assert "memory" in brought.errors[0]
    assert not brought.branch
    assert before == kept(machines)


async def test_what_is_taken_still_is(machines: Machines) -> None:
    """A file of zeros of the maximum size comes back."""
    (meta,) = machines.launch()
    brought = await machines.carriage.fetch(answering(machines, bomb(machines, meta, 64 * MB)), meta, "h1")
    assert not brought.errors
    assert str(64 * MB) == git(machines.root, "cat-file", "-s", f"{brought.branch}:zeros").strip()


@pytest.mark.parametrize("kind", ["a link", "an address that is an option", "a path that is an option"])
async def test_submodules_that_would_run_something(machines: Machines, kind: str) -> None:
    """Submodule settings that old versions of git obeyed are refused, with the whole pack."""
    (meta,) = machines.launch()
    elsewhere = make(machines.spool / "elsewhere", {"x": "x\n"})
    git(elsewhere, "fetch", "-q", str(machines.root), "+refs/subdeck/*:refs/subdeck/*")
    machines.spool = elsewhere
    lines = {
        "a link": "../../../.gitconfig",
        "an address that is an option": '[submodule "a"]\n\tpath = a\n\turl = --upload-pack=touch ran\n',
        "a path that is an option": '[submodule "a"]\n\tpath = --exec\n\turl = https://example.org/a\n',
    }
    blob = git(elsewhere, "hash-object", "-w", "--stdin", given=lines[kind].encode())
    mode = "120000" if kind == "a link" else "100644"
    tree = tree_of(elsewhere, (mode, ".gitmodules", blob))
    pack, commit = made_by_host(machines, meta, tree)
    before = kept(machines)
    brought = await machines.carriage.fetch(answering(machines, Fetched(len(pack), pack, tree, commit)), meta, "h1")
    assert brought.errors and not brought.branch
    assert before == kept(machines)


@pytest.mark.parametrize("sizes", [(1, 0), (7, 3), (PIECE - 1, PIECE - 1)], ids=["drips", "shrinks", "falls short"])
async def test_a_pack_that_never_ends(machines: Machines, sizes: tuple[int, int]) -> None:
    """A host that repeatedly sends less than it announced is asked only a few times."""
    (meta,) = machines.launch()
    asked: list[int] = []

    async def call(verb: Verb, message: bytes) -> bytes:
        piece: FetchPiece = decode_asked(verb, message)
        asked.append(piece.offset)
        assert len(asked) < 20
        return encode(Fetched(500 * MB, b"x" * sizes[len(asked) % 2], "2" * 40, "3" * 40))

    brought = await machines.carriage.fetch(call, meta, "h1")
    assert "less of it than it says" in brought.errors[0]


async def test_a_pack_of_which_the_size_changes(machines: Machines) -> None:
    """Fetching ends even if the host announces another size each time."""
    (meta,) = machines.launch()
    asked: list[int] = []

    async def call(verb: Verb, message: bytes) -> bytes:
        piece: FetchPiece = decode_asked(verb, message)
        asked.append(piece.offset)
        assert len(asked) < 20
        return encode(Fetched(PIECE + 1 if len(asked) % 2 else 5, b"x" * PIECE, "2" * 40, "3" * 40))

    began = time.monotonic()
    brought = await machines.carriage.fetch(call, meta, "h1")
    assert brought.errors and time.monotonic() - began < 30


@pytest.mark.parametrize(("tree", "commit"), [("--batch", "HEAD"), ("2" * 40, "--filters"), ("2" * 41, "3" * 40)])
async def test_ids_that_are_none(machines: Machines, tree: str, commit: str) -> None:
    """A host's invalid id never reaches a command line."""
    (meta,) = machines.launch()
    brought = await machines.carriage.fetch(answering(machines, Fetched(5, b"12345", tree, commit)), meta, "h1")
    assert "no Fetched" in brought.errors[0]
