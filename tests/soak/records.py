"""The state on disk when a trial is over: a child's journal, and the files of its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunMeta, RunResult

from .puppet import text_of


class Journal(Struct, frozen=True):
    """A child's record of its actions."""

    entries: tuple[tuple[int, str, str], ...]
    """Nanoseconds (monotonic), word, argument."""

    @classmethod
    def read(cls, path: Path) -> Journal:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            return cls(())
        words = (line.split(" ", 2) for line in lines)
        return cls(tuple((int(at), word, argument) for at, word, argument in words))

    def has(self, word: str) -> bool:
        return any(word == entry[1] for entry in self.entries)

    def count(self, word: str) -> int:
        return sum(word == entry[1] for entry in self.entries)

    @property
    def child(self) -> int | None:
        """The pid of the child that began last."""
        return next((int(argument) for _, word, argument in reversed(self.entries) if word == "begun"), None)

    @property
    def lasted(self) -> float:
        """Seconds between its first and its last word; 0 if it did not finish."""
        began, ended = (
            next((at for at, word, _ in self.entries if word == wanted), 0) for wanted in ("begun", "ended")
        )
        return (ended - began) / 1e9 if ended else 0.0

    def said(self, before: int | None = None) -> list[str]:
        """Return the texts that were completely on the stream at a moment (default: at the end)."""
        return [
            text_of(*map(int, argument.split()))
            for at, word, argument in self.entries
            if word == "said" and (before is None or at < before)
        ]

    @property
    def saying(self) -> str | None:
        """The text that may or may not be complete on the stream: the child ended while writing it."""
        last = next((entry for entry in reversed(self.entries) if entry[1] in ("saying", "said")), None)
        return text_of(*map(int, last[2].split())) if last and last[1] == "saying" else None

    def begins_next(self, text: str) -> bool:
        """Return whether a text begins the child's next text: it may have been killed before it recorded a piece."""
        return text_of(len(self.said()) + 1, 0).startswith(text)

    @property
    def sentence(self) -> str:
        """The text that was being written when the child ended."""
        pieces: list[str] = []
        for _, word, argument in self.entries:
            if word == "wrote":
                pieces.append(argument)
            elif word == "saying":
                pieces.clear()
        return "".join(pieces)


class RunRecords(Struct, frozen=True):
    """One run directory."""

    number: int
    path: Path
    meta: RunMeta
    result: RunResult | None
    events: tuple[dict[str, Any], ...]
    torn: int
    """Invalid lines of `events.jsonl`, and a last one without its newline."""
    journal: Journal

    @classmethod
    def read(cls, run_dir: Path, number: int, journal: Path) -> RunRecords:
        meta = artifacts.read_meta(str(run_dir))
        assert meta is not None
        events, torn = _events(run_dir / "events.jsonl")
        result = artifacts.read_result(str(run_dir))
        return cls(number, run_dir, meta, result, events, torn, Journal.read(journal))

    @property
    def texts(self) -> list[str]:
        return [event["text"] for event in self.events if event.get("type") == "assistant_text"]

    @property
    def ending(self) -> str:
        if self.result is None:
            return "no result"
        message = f": {self.result.error_message}" if self.result.error_message else ""
        return f"{self.result.status}: {self.result.reason}, by {self.result.written_by}{message}"


def _events(path: Path) -> tuple[tuple[dict[str, Any], ...], int]:
    try:
        content = path.read_bytes()
    except OSError:
        return (), 0
    events: list[dict[str, Any]] = []
    torn = int(bool(content) and not content.endswith(b"\n"))
    for line in content.split(b"\n"):
        try:
            events += [json.loads(line)] if line else []
        except ValueError:
            torn += not (torn and content.endswith(line))
    return tuple(events), torn


def told(session_file: Path) -> dict[str, int]:
    """Return how often the result of each run was claimed."""
    counted: dict[str, int] = {}
    try:
        lines = session_file.read_bytes().splitlines()
    except OSError:
        return counted
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("customType") == "pi-subagents:bg-update":
            run_id = entry["data"]["runId"]
            counted[run_id] = counted.get(run_id, 0) + 1
    return counted
