"""The earlier runs of a conversation, each folded to a line above the transcript of its latest run.

They get the offsets before the first byte of the file, one each, so that no stored offset changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.run.describe import doing, state
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line, plain
from ..feed.lines import BODY_LIMIT, Kind, TranscriptEntry, shortened_body, text_body
from ..text.format import local_time

if TYPE_CHECKING:
    from ..engine_api import EngineApi

MOST = 100
"""Earlier runs that are shown, the latest ones."""
SHOWN = 120
"""Characters of a task and of an answer in the line."""


class EarlierRun(Struct, frozen=True):
    """Its task and answer."""

    at: str
    state: str
    task: str
    answer: str
    ended: str
    """Its result in a line: the beginning of the answer, or the error."""


def answers_of(engine: EngineApi, runs: Sequence[RunSnapshot]) -> list[EarlierRun]:
    """Read the answers of these runs; blocks."""
    return [_earlier_run(engine, run) for run in runs]


def _earlier_run(engine: EngineApi, run: RunSnapshot) -> EarlierRun:
    result = engine.result(run.run_id)
    answer = (result and result.final_text) or (run.end.message if run.end else "")
    return EarlierRun(run.meta.created_at, state(run), run.meta.task, answer, doing(run, SHOWN))


def entries_of(runs: Sequence[EarlierRun], is_open: Callable[[int], bool]) -> list[TranscriptEntry]:
    """Return a line for each, with its body if it is open; the offsets end before 0."""
    entries: list[TranscriptEntry] = []
    for offset, run in enumerate(runs, -len(runs)):
        text = f"▸ {run.state[0]} {one_line(run.task, SHOWN)}  →  {one_line(run.ended, SHOWN)}"
        body = shortened_body(text_body(said_in(run)), BODY_LIMIT) if is_open(offset) else None
        entries.append(TranscriptEntry(local_time(run.at), Kind.NOTE, text, opens=True, offset=offset, body=body))
    return entries


def said_in(run: EarlierRun) -> str:
    """Return task and answer as text."""
    return "\n\n".join((f"you: {plain(run.task).strip()}", plain(run.answer).strip() or f"({run.state})"))
