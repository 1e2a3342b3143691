"""`python -m tests.core.hosts.hostile_cluster WHAT DIRECTORY [RUN]`: a hostile dask scheduler and host.

Both are dask's own and listen on loopback, with spoiled answers. An unpickled object leaves a file in the
directory, named after the way it was sent. With WHAT `claims` the host claims that it has that run. The program
prints the scheduler's address, and ends with its stdin.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from distributed import Scheduler
from distributed.core import Server, Status
from distributed.protocol.serialize import Serialize, ToPickle
from subdeck.core.hosts.protocol import Answer, Bell, Chunk, End, Pulled, Said, Verb, encode

HONEST = "honest"
SPOOL = "c" * 32


class Evil:
    """Leaves a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (os.mkdir, (self.path,))


class Cluster:
    def __init__(self, what: str, directory: Path, run_id: str = "") -> None:
        self.what = what
        self.run_id = run_id
        self.directory = directory
        self.host = Server({"subdeck": self.answer})
        self.identities = self.odd_identities() if what == "identities" else self.evils("identity")
        self.answers = self.odd_answers() if what == "answers" else self.evils("answer")

    async def run(self) -> None:
        await self.host.listen("tcp://127.0.0.1:0")
        self.scheduler = await Scheduler(host="127.0.0.1", port=0, dashboard=False)
        self.usual = self.scheduler.handlers["identity"]
        self.scheduler.handlers["identity"] = self.identity
        print(self.scheduler.address, flush=True)
        sending = asyncio.create_task(self.tell()) if self.what == "stream" else None
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        if sending:
            sending.cancel()
        os._exit(0)

    def evils(self, way: str) -> Iterator[Any]:
        """Yield an object to be unpickled, in each way that dask has for one."""
        if self.what != way:
            return
        yield ToPickle(self.evil(f"{way}-ToPickle"))
        yield {"deeper": [ToPickle(self.evil(f"{way}-deeper"))]}
        yield Serialize(self.evil(f"{way}-Serialize"))
        for field in ("exception", "traceback"):
            content = pickle.dumps(self.evil(f"{way}-{field}"))
            for spoiled in (content, Serialize(content), ToPickle(content)):
                told = {"status": "uncaught-error", "exception_text": "boom", "traceback_text": ""}
                yield {**told, "exception": "x", "traceback": None, field: spoiled}
        yield {"__Enum__": True, "__module__": "distributed.cli.dask_ssh", "__name__": "main", "name": "x"}

    def evil(self, way: str) -> Evil:
        return Evil(str(self.directory / way))

    # --- the scheduler ---

    def identity(self, comm: Any, n_workers: int = -1) -> Any:
        if n_workers == -1:
            for spoiled in self.identities:
                return spoiled(comm) if callable(spoiled) else spoiled
        return {**self.usual(n_workers=0), "workers": {self.host.address: self.worker()}}

    def worker(self, name: Any = "h1", **others: Any) -> dict[str, Any]:
        return {"status": "running", "resources": {"subdeck": 2}, "subdeck": {"name": name}, **others}

    def odd_identities(self) -> Iterator[Any]:
        yield from ("x", None, 7, {}, {"workers": 5}, {"workers": [1]}, {"workers": {5: {}}}, b"x" * 1000)
        yield {"workers": {f"tcp://10.1.{number >> 8}.{number & 255}:1": self.worker() for number in range(5000)}}
        yield {"workers": {f"tcp://127.0.0.1:{number}": {"status": "\x1b[2J" * 20} for number in range(5000)}}
        yield {"workers": {"../../x\x1b[2J[red]": self.worker(), "inproc://127.0.0.1/1/1": self.worker()}}
        names = ("../h1", "h1\x1b[2J", "[red]x[/red]", "x" * 65, "", "-oProxyCommand=x", 5, None, ["h1"])
        yield {"workers": {f"tcp://127.0.0.1:{port + 1}": self.worker(name) for port, name in enumerate(names)}}
        yield {"workers": {self.host.address: self.worker(resources={"\x1b" * 100: 1.0})}}
        yield {"workers": {self.host.address: self.worker(resources={str(n): 1.0 for n in range(1000)})}}
        yield from (self.raw(content) for content in bad_messages())

    def raw(self, content: bytes) -> Callable[[Any], Any]:
        def write(comm: Any) -> Any:
            comm.stream.write(content)
            return Status.dont_reply

        return write

    async def tell(self) -> None:
        """Send each client unrequested messages, again and again."""
        while True:
            await asyncio.sleep(0.05)
            for client in list(self.scheduler.client_comms.values()):
                for told in self.reports():
                    try:
                        client.send(told)
                    except Exception as error:  # the client has gone
                        print(error, file=sys.stderr)

    def reports(self) -> Iterator[dict[str, Any]]:
        def dumped(way: str) -> bytes:
            return pickle.dumps(self.evil(f"stream-{way}"))

        yield {"op": "event", "topic": "warn", "event": (0, {"message": dumped("warn")})}
        yield {"op": "event", "topic": "warn", "event": (0, {"message": b"", "category": dumped("category")})}
        yield {"op": "event", "topic": "print", "event": (0, {"args": ("\x1b[2J",)})}
        yield {"op": "adjust-heartbeat-interval", "interval": 1e-9}
        yield {"op": "error", "exception": dumped("error")}
        yield {"op": "no such thing", "x": 1}
        for key in list(self.scheduler.tasks):
            yield {"op": "key-in-memory", "key": key, "type": dumped("type"), "workers": []}
            yield {"op": "task-erred", "key": key, "exception": dumped("erred"), "traceback": dumped("traceback")}
            yield {"op": "task-erred", "key": key, "exception": ToPickle(self.evil("stream-object"))}
            yield {"op": "task-erred", "key": key, "exception": Serialize(self.evil("stream-Serialize"))}

    # --- the host ---

    async def answer(self, comm: Any, verb: str, message: bytes) -> Any:
        if self.what == "claims":
            return self.claims(verb)
        for spoiled in self.answers:
            if isinstance(spoiled, str) and spoiled == "never":
                await asyncio.Event().wait()
            return spoiled(comm) if callable(spoiled) else spoiled
        return HONEST.encode()

    def claims(self, verb: str) -> bytes:
        """Claim a run that another host has, and one that never existed."""
        if verb != Verb.PULL:
            (self.directory / f"asked-{verb}").touch()
            return encode(Answer(Said.KNOWN))
        runs = (self.run_id, "20260101-000000-abcdef")
        result = b'{"runId":"x","status":"completed","reason":"done","writtenBy":"wrapper","endedAt":"2026-01-01"}'
        told = Pulled(
            spool=SPOOL,
            host="h1",
            known=runs,
            offers=runs,
            chunks=tuple(Chunk(run, name, 0, b"forged\n") for run in runs for name in ("stdout.log", "events.jsonl")),
            bells=tuple(Bell(run, b"{}") for run in runs),
            ends=tuple(End(run, result) for run in runs),
        )
        return encode(told)

    def odd_answers(self) -> Iterator[Any]:
        yield from ("x", None, 7, {}, ["x"], {"status": "uncaught-error"}, {"status": "error", "exception": 5})
        yield {"status": "uncaught-error", "exception": "x", "exception_text": "\x1b[2J" * 1000}
        yield "never"
        yield from (self.raw(content) for content in bad_messages())


def bad_messages() -> Iterator[bytes]:
    """Yield malformed dask messages, each with its announced size."""

    def framed(*frames: bytes, count: int | None = None, size: int | None = None) -> bytes:
        head = struct.pack("Q", len(frames) if count is None else count)
        head += b"".join(struct.pack("Q", len(frame)) for frame in frames)
        content = head + b"".join(frames)
        return struct.pack("Q", len(content) if size is None else size) + content

    yield framed(b"\xc0", size=2**62)
    yield framed(b"\xc0", size=0)
    yield framed(b"\xc0", size=3)
    yield framed(b"\xc0", count=2**61)
    yield framed(b"\xc0", count=0)
    yield struct.pack("QQQ", 16, 1, 2**62)
    yield framed(b"\xc1")
    yield framed(b"\xc0\xc0")
    yield framed(b"\xa1\xff")
    yield framed(b"\x91" * 100_000 + b"\xc0")
    yield framed(b"\xdd\x00\xff\xff\xff" + b"\x80" * 0xFFFFFF)
    yield framed(b"\xdd\xff\xff\xff\xff\xc0")
    yield framed(b"\x81\x80\xc0")
    yield framed(b"\x81\xabas-list\xc0")
    yield framed(b"\x82\xa7__Set__\xc3\xa7as-list\x05")


if __name__ == "__main__":
    asyncio.run(Cluster(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]).run())
