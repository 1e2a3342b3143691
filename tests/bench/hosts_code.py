"""The files of a run to a host and back, both on this machine: the first time, and once the host has most of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from subdeck.core import paths
from subdeck.core.hosts.code.host_code import HostCode
from subdeck.core.hosts.code.transfer import CodeCarriage, code_of
from subdeck.core.hosts.protocol import CodePiece, FetchPiece, Verb, decode_asked, encode
from subdeck.core.run.model import RunMeta
from subdeck.core.work.remote import take

from . import made_up
from .figures import Figure, quietly, usually

FILES = usually(5_000, smoke=30)
IN_EACH = usually(50, smoke=5)
SIZE = 10_000
TURNS = usually(5, smoke=1)
RELAY = "0123456789ab"
MOST_FIRST = 3.0
MOST_NEXT_MS = 1_000.0
MOST_BYTES = 5_000
T = TypeVar("T")
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(directory, "repository")
        _make(root)
        floor = _timed(lambda: quietly("git", "clone", "-q", "--depth=1", f"file://{root}", f"{directory}/clone"))
        yield from asyncio.run(_figures(directory, root, floor))


def _make(root: str) -> None:
    for number in range(FILES // IN_EACH):
        place = os.path.join(root, f"package{number}")
        os.makedirs(place)
        for name in range(IN_EACH):
            with open(os.path.join(place, f"module{name}.txt"), "wb") as file:
                file.write(os.urandom(SIZE // 2).hex().encode())
    quietly("git", "init", "-q", cwd=root)
    quietly(*_GIT, "add", "-A", cwd=root)
    quietly(*_GIT, "commit", "-q", "-m", "all", cwd=root)


class _Two:
    """An operator and a host."""

    def __init__(self, directory: str, root: str) -> None:
        self.project = paths.Project(root)
        self.carriage = CodeCarriage(RELAY, self.project)
        self.host = HostCode(os.path.join(directory, "spool"))
        self.sent = 0
        self._number = 0

    async def call(self, verb: Verb, message: bytes) -> bytes:
        asked = decode_asked(verb, message)
        if isinstance(asked, CodePiece):
            self.sent += len(asked.content)
            return encode(await self.host.answer_code(asked))
        assert isinstance(asked, FetchPiece)
        return encode(await self.host.answer_fetch(asked.run, asked.offset))

    async def begin(self) -> tuple[RunMeta, str]:
        """Do the steps between a launch and the start of the child."""
        self._number += 1
        meta = made_up.meta(self._number, self.project.root)
        take(self.project, [meta], ())
        why = await self.carriage.send("h1", self.call, meta.run_id)
        code = code_of(self.project, meta.run_id)
        assert not why and code, why
        return meta, await self.host.prepare(meta.run_id, code)

    async def end(self, meta: RunMeta) -> None:
        """Do the steps between the end of the child and the result."""
        brought = await self.carriage.fetch(self.call, meta, "h1")
        assert brought.branch, brought
        self.carriage.settle(meta.run_id)
        await self.host.forget(meta.run_id)


async def _figures(directory: str, root: str, floor: float) -> Iterator[Figure]:
    two = _Two(directory, root)
    first, (meta, place) = await _took(two.begin)
    size = two.sent
    next_times: list[float] = []
    back_times: list[float] = []
    next_sizes: list[int] = []
    for turn in range(TURNS):
        with open(os.path.join(place, "package1", "module1.txt"), "a", encoding="utf-8") as file:
            file.write("changed\n")
        taken, _ = await _took(lambda meta=meta: two.end(meta))
        back_times.append(taken)
        with open(os.path.join(root, "package2", f"new{turn}.txt"), "w", encoding="utf-8") as file:
            file.write("new\n")
        before = two.sent
        taken, (meta, place) = await _took(two.begin)
        next_times.append(taken)
        next_sizes.append(two.sent - before)
    shutil.rmtree(place, ignore_errors=True)
    later, back = sorted(next_times)[TURNS // 2], sorted(back_times)[TURNS // 2]
    clone = f"git clone: {floor:.0f} ms"
    what = f"{FILES:,} files, {size / 1e6:.0f} MB, to a host"
    ratio = first / floor
    sent = max(next_sizes)
    return iter((
        Figure(f"{what}: the first time", f"{ratio:.2f}x ({first:.0f} ms)", clone, f"{MOST_FIRST:.0f}x",
               ratio <= MOST_FIRST),
        Figure(f"{what}: a file more", f"{later:.0f} ms", clone, f"{MOST_NEXT_MS:.0f} ms", later <= MOST_NEXT_MS),
        Figure(f"{what}: bytes of a file more", f"{sent:,}", "-", f"{MOST_BYTES:,}", sent <= MOST_BYTES),
        Figure(f"{FILES:,} files, one changed on a host: its branch here", f"{back:.0f} ms", clone,
               f"{MOST_NEXT_MS:.0f} ms", back <= MOST_NEXT_MS),
    ))  # fmt: skip


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


async def _took(action: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    began = time.perf_counter()
    result = await action()
    return (time.perf_counter() - began) * 1000, result
