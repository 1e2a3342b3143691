"""Compare a deck's screen with `subdeck status --all --json` and the events on disk; pure, except for their count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from subdeck.core.run.describe import (
    ELSEWHERE_GLYPH,
    FOREIGN,
    GLYPHS,
    INTERRUPTED,
    INTERRUPTED_GLYPH,
    SILENT,
    SILENT_GLYPH,
    TAKEN_OVER,
    TAKEN_OVER_GLYPH,
    WAITS,
    WAITS_GLYPH,
)
from subdeck.core.run.model import RunStatus
from subdeck.core.run.need import Need

from .view import Row, View

TEXT = 36
"""Characters of a text that are searched in the transcript: they fit into one of its lines."""
SHORT = 400
"""Characters of a text whose beginning is still on the screen when its end is."""

Document = dict[str, Any]


def current(document: Document, runs: Path) -> list[Any]:
    """Return the state that must not change between two looks at a quiet point."""
    return [
        (
            *(run[name] for name in ("runId", "status", "reason", "foreign", "unknown", "waiting", "interrupted")),
            *(run[name] for name in ("ahead", "held", "takenOver")),
            len(_events(runs / run["runId"])),
        )
        for run in document["runs"]
    ]


def differences(view: View | None, document: Document, runs: Path) -> Iterator[str]:
    """Yield each difference as a sentence."""
    if view is None:
        yield "the screen does not show the deck"
        return
    known = [run for run in document["runs"] if not run["foreign"]]
    active = [run for run in known if run["status"] == RunStatus.RUNNING]
    queued = [run for run in known if run["status"] == RunStatus.QUEUED]
    in_shell = sum(not run["background"] for run in active)
    yield from _differing("header: running", view.running, len(active))
    yield from _differing("header: running in a shell", view.in_shell, in_shell)
    yield from _differing("header: queued", view.queued, len(queued))
    waiting = sum(run["waiting"] and not run["unknown"] for run in known)
    yield from _differing("header: needs input", view.needs.get(Need.WAITING, 0), waiting)
    background = [run for run in known if run["background"]]
    open_background = [run for run in background if run["status"] in (RunStatus.RUNNING, RunStatus.QUEUED)]
    yield from _differing("footer", view.background, (len(open_background), len(background)))
    yield from _rows(view, document)
    yield from _transcript(view, runs)


def _differing(what: str, shown: object, expected: object) -> Iterator[str]:
    if shown != expected:
        yield f"{what}: the screen shows {shown}, expected {expected}"


def _rows(view: View, document: Document) -> Iterator[str]:
    expected = {run["runId"][-6:]: run for run in document["runs"]}
    for short_id in view.rows.keys() - expected.keys():
        yield f"row {short_id}: the run is not in the status"
    if view.is_whole:
        for short_id in expected.keys() - view.rows.keys() - set(_hidden(view, document)):
            yield f"row {short_id}: missing on the screen"
    for short_id, row in view.rows.items():
        run = expected.get(short_id)
        if run is not None and not any(_is_alike(row, state) for state in _states(run)):
            yield f"row {short_id}: the screen shows {row.glyph} {row.word}, expected {_states(run)[0]}"


def _hidden(view: View, document: Document) -> Iterator[str]:
    """Yield the short ids of runs hidden by folded groups: Enter folds the group whose head has the cursor."""
    groups: dict[str, list[str]] = {}
    for run in document["runs"]:
        if run["group"]:
            groups.setdefault(run["group"]["id"], []).append(run["runId"][-6:])
    folded = list(view.folded)
    for members in groups.values():
        if len(members) in folded and not view.rows.keys() & members:
            folded.remove(len(members))
            yield from members


def _is_alike(row: Row, state: tuple[str, str]) -> bool:
    return row.glyph == state[0] and row.word in ("", state[1])


def _states(run: Document) -> list[tuple[str, str]]:
    """Return glyph and word of a run; several if the clock decides between them."""
    status = RunStatus(run["status"])
    if run["foreign"] or run["unknown"]:
        return [(ELSEWHERE_GLYPH, FOREIGN if run["foreign"] else status)]
    if run["waiting"]:
        return [(WAITS_GLYPH, WAITS)]
    if run["interrupted"]:
        return [(INTERRUPTED_GLYPH, INTERRUPTED)]
    if run["takenOver"]:
        return [(TAKEN_OVER_GLYPH, TAKEN_OVER)]
    states = [(GLYPHS[status], str(status))]
    return [*states, (SILENT_GLYPH, SILENT)] if status is RunStatus.RUNNING else states


def _transcript(view: View, runs: Path) -> Iterator[str]:
    if view.selected and view.transcript_of[-6:] != view.selected:
        yield f"transcript: it is of {view.transcript_of or 'no run'}, but the cursor is on {view.selected}"
        return
    if not view.transcript_of:
        return
    lines = _events(runs / view.transcript_of)
    if not lines:
        return
    yield from _differing(f"transcript of {view.transcript_of[-6:]}: events", view.events, len(lines))
    wanted = _last_words(lines) if view.is_following else ""
    if wanted and not any(wanted in line for line in view.transcript):
        yield f"transcript of {view.transcript_of[-6:]}: {wanted!r} is not at its end"


def _last_words(lines: list[bytes]) -> str:
    """Return the text that the end of a transcript must show: the run's result, or the agent's last text."""
    try:
        last = json.loads(lines[-1])
        if last["type"] == "run_ended":
            return f"{last['status']}: {last['reason']}"
        texts = (json.loads(line) for line in reversed(lines) if b'"assistant_text"' in line)
        said = next((event["text"] for event in texts if event["type"] == "assistant_text"), "")
    except (ValueError, KeyError):
        return ""
    return said.split("\n")[0][:TEXT].rstrip() if len(said) <= SHORT and said.isascii() else ""


def _events(run_dir: Path) -> list[bytes]:
    try:
        return (run_dir / "events.jsonl").read_bytes().splitlines()
    except OSError:
        return []
