"""Recorded streams of all agents, cut, mixed up and damaged: none becomes a success without reporting it."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import pytest
from subdeck.core.agents.child import Stream
from subdeck.core.agents.loader import recorded_kind, running_side
from subdeck.core.run.model import RunStatus
from subdeck.core.run.outcome import ChildExit, Outcome, decide
from subdeck.core.wrapper._intake import LineSplitter

from tests.fuzzed import EXAMPLES
from tests.killing import sampled
from tests.replay import RECORDINGS

pytestmark = pytest.mark.fuzz

CASES = sorted(str(file.parent.relative_to(RECORDINGS)) for file in RECORDINGS.rglob("exit.txt"))
LINES_MOST = 200
"""Most lines of a recording for mutating each line in several ways."""

DAMAGES = EXAMPLES // 5
"""Damaged copies of each recording."""

LAST_WORDS = {
    "pi": (b'{"type":"agent_end"', b'{"type":"agent_settled"'),
    "claude": (b'"type":"result"',),
    "codex": (b'{"type":"turn.completed"', b'{"method":"turn/completed"'),
    "acp": (b'"stopReason"',),
}
"""By kind: text in the line that reports the agent's end."""


@cache
def lines_of(case: str) -> tuple[bytes, ...]:
    file = RECORDINGS / case / "stdout.jsonl"
    packed = file.with_name("stdout.jsonl.gz")
    content = file.read_bytes() if file.exists() else gzip.decompress(packed.read_bytes())
    return tuple(content.split(b"\n"))


def kind_of(case: str) -> str:
    return recorded_kind(lines_of(case)[:20]) or "pi"


def stream_of(case: str) -> Stream:
    return running_side(kind_of(case)).stream()


def is_last_word(case: str, line: bytes) -> bool:
    return any(words in line for words in LAST_WORDS[kind_of(case)])


def outcome_of(stream: Stream) -> Outcome:
    """Return the outcome of an agent that exited with 0 after this stream."""
    return decide(stream.facts, exit=ChildExit.of(0))


def played(case: str, lines: Iterator[bytes] | list[bytes]) -> Stream:
    """Feed lines as the wrapper does."""
    stream = stream_of(case)
    splitter = LineSplitter(stream.updates)
    for line in splitter.split(b"\n".join(lines) + b"\n"):
        stream.feed(line)
    stream.end()
    return stream


def ended(stream: Stream) -> tuple[object, ...]:
    end = outcome_of(stream)
    return end.status, end.reason, stream.facts.final_text, stream.facts.usage


def as_objects(case: str) -> list[Any]:
    return [json.loads(line) for line in lines_of(case) if line.strip()]


def encoded(value: object, **how: Any) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_completed_before_its_last_word(case: str) -> None:
    """A stream cut before its end, or without it, is not a success, even with exit code 0."""
    stream = stream_of(case)
    for line in lines_of(case):
        stream.feed(line)
        if outcome_of(stream).status is RunStatus.COMPLETED:
            assert is_last_word(case, line), line[:200]
            break
    speechless = [line for line in lines_of(case) if not is_last_word(case, line)]
    assert RunStatus.COMPLETED is not outcome_of(played(case, speechless)).status


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_known_changes_nothing(case: str) -> None:
    """Lines and fields of another version, and output of other programs between them, are skipped."""
    foreign = (
        *(b'{"type":"no_such","subtype":"x","session_id":"s"}', b'{"method":"no/such","params":{}}', b""),
        *(b'{"type":"system","subtype":"no_such"}', b'{"jsonrpc":"2.0","method":"session/no_such"}', b"npm warn x"),
    )
    expected = ended(played(case, list(lines_of(case))))
    between = (each for line in lines_of(case) for each in (line, *foreign))
    assert expected == ended(played(case, between))

    newer = (
        {**line, "no_such": {"type": "result", "id": 3}} if isinstance(line, dict) else line
        for line in as_objects(case)
    )
    assert expected == ended(played(case, [encoded(line, separators=(",", ":")) for line in newer]))


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_keys_and_blanks_mean_nothing(case: str) -> None:
    """JSON with other spacing or key order has the same meaning."""
    turned = [dict(reversed(line.items())) if isinstance(line, dict) else line for line in as_objects(case)]
    expected, found = (ended(played(case, lines)) for lines in (list(lines_of(case)), list(map(encoded, turned))))
    if "h_sig" in case:  # a message that pi did not end is read only in pi's own order
        expected, found = expected[:2], found[:2]
    assert expected == found


@pytest.mark.parametrize("case", CASES)
def test_damage_is_survived(case: str) -> None:
    """Missing or wrong fields, and swapped, repeated or missing lines, raise nothing. A run completed despite them has
    an answer.
    """
    chance = random.Random(case)
    whole = as_objects(case)
    for _ in range(DAMAGES):
        lines = [json.loads(encoded(line)) for line in whole] if len(whole) <= LINES_MOST else list(whole)
        for _ in range(chance.randint(1, 4)):
            _damage(lines, chance)
        stream = played(case, [encoded(line, separators=(",", ":")) for line in lines])
        if outcome_of(stream).status is RunStatus.COMPLETED:
            assert (stream.facts.final_text or "").strip() or stream.facts.finalized


WRONG: tuple[Any, ...] = (None, 5, -1.5, True, "x", [], {}, [{}], ["x"], {"type": 3}, "\ud800", 10**30)


@pytest.mark.parametrize(
    "case",
    [
        *("acp/claude/bash-refused", "acp/codex/bash-refused", "agents/claude-code/permission-denied"),
        *("codex/exec-fail", "codex/app-ask-accept", "1.5.2/i_resume_2"),
    ],
)
def test_every_field_may_be_anything(case: str) -> None:
    """Each value of a recording is replaced by values of other types, and nothing raises."""
    whole = as_objects(case)
    turn = count()
    encoded_whole = [encoded(line, separators=(",", ":")) for line in whole]
    for number, line in enumerate(whole):
        for holder, key in list(_places(line)):
            right = holder[key]
            for wrong in sampled(WRONG, 3, turn=next(turn)):
                holder[key] = wrong
                lines = [*encoded_whole]
                lines[number] = encoded(line, separators=(",", ":"))
                recorded_kind(lines[:20])
                played(case, lines)
            holder[key] = right


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every position in a value, as its container and key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)


def _damage(lines: list[Any], chance: random.Random) -> None:
    place = chance.randrange(len(lines)) if lines else None
    if place is None:
        return
    match chance.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[chance.randrange(len(lines))])
        case 2:
            lines.insert(chance.randrange(len(lines)), lines.pop(place))
        case how:
            holder = _some_mapping(lines[place], chance)
            if holder:
                key = chance.choice(sorted(holder))
                if how == 3:
                    del holder[key]
                else:
                    holder[key] = chance.choice(WRONG)


def _some_mapping(value: Any, chance: random.Random) -> dict[str, Any] | None:
    """Choose a mapping in a line, at any depth."""
    found: list[dict[str, Any]] = []

    def look(each: Any) -> None:
        if isinstance(each, dict) and each:
            found.append(each)
        for inner in each.values() if isinstance(each, dict) else each if isinstance(each, list) else ():
            look(inner)

    look(value)
    return chance.choice(found) if found else None
