"""Feed recorded pi streams to the code that reads them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.agents.updates import UPDATE_HEAD
from subdeck.core.run.events import Event
from subdeck.core.run.outcome import ChildExit, Outcome, StreamFacts, decide

RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Replay:
    """The run that a recording became."""

    stream: PiStream
    events: list[Event]
    outcome: Outcome

    @property
    def facts(self) -> StreamFacts:
        return self.stream.facts

    def of(self, kind: type) -> list:
        """Return the events of one type."""
        return [event for event in self.events if isinstance(event, kind)]


def cases() -> list[str]:
    """Return the names of all recordings of pi, as `0.73.1/a_text`."""
    return sorted(str(file.parent.relative_to(RECORDINGS)) for file in RECORDINGS.glob("[0-9]*/*/exit.txt"))


def stdout(case: str) -> bytes:
    """Return an agent's whole recorded stdout."""
    file = RECORDINGS / case / "stdout.jsonl"
    if file.exists():
        return file.read_bytes()
    return gzip.decompress(file.with_name("stdout.jsonl.gz").read_bytes())


def lines(case: str) -> list[bytes]:
    """Return the lines of a recording, split only on newline bytes."""
    return stdout(case).removesuffix(b"\n").split(b"\n") if stdout(case) else []


def feed(stream: PiStream, recorded: list[bytes]) -> list[Event]:
    """Feed lines like the wrapper: only the head of an update."""
    events: list[Event] = []
    for line in recorded:
        events += stream.feed(line[:UPDATE_HEAD] if line.startswith(stream.updates.prefixes) else line)
    return events


def replay(case: str) -> Replay:
    """Replay one recording up to its outcome."""
    stream = PiStream()
    events = feed(stream, lines(case)) + stream.end()
    code = json.loads((RECORDINGS / case / "exit.txt").read_text())["rc"]
    stderr = (RECORDINGS / case / "stderr.txt").read_text(encoding="utf-8", errors="replace")
    return Replay(stream, events, decide(stream.facts, exit=ChildExit.of(code), stderr=stderr))
