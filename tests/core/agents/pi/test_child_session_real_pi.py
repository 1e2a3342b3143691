"""pi's sessions: which messages its model sees."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from subdeck.core.run.model import InheritedContext

from tests.factories import result_of
from tests.real.lab import EITHER_PI, Lab
from tests.real.model_server import said, texts

from ...conversing import session_entries

pytestmark = [pytest.mark.pi, EITHER_PI]


def test_an_id_goes_on_with_its_conversation(pi: Lab, home: Path) -> None:
    """A run with a session id continues that conversation. Nothing is written to pi's own sessions."""
    pi.preset()
    pi.script(said("One."), said("Two."))
    first = pi.run("Say one.")
    named = result_of(pi.engine, first).child_session_id
    second = pi.run("Say two.", child_session=named)

    assert [["Say one."], ["Say one.", "Say two."]] == [texts(request) for request in pi.requests]
    assert ["One."] == texts(pi.requests[1], "assistant")
    assert [named] * 2 == [first.meta.child_session_id, result_of(pi.engine, second).child_session_id]
    entries = session_entries(second.meta.session_path or "")
    assert {named} == {entry["id"] for entry in entries if entry["type"] == "session"}  # pi 0.73.1 writes it twice
    assert 0o600 == stat.S_IMODE(os.stat(second.meta.session_path or "").st_mode)
    assert [] == list((home / ".pi" / "agent").rglob("*.jsonl"))


def test_a_sticky_session_is_shared(pi: Lab, home: Path) -> None:
    """Sticky runs share one conversation, one after the other, even if they are launched together."""
    pi.preset("sticky: true")
    pi.script(said("One."), said("Two."), said("Three."))
    together = [pi.wait(run) for run in pi.launch("Say it.", "Say it too.")]
    last = pi.run("Say it again.")

    asked = [texts(request) for request in pi.requests]
    assert [1, 2, 3] == [len(prompts) for prompts in asked]
    assert {"Say it.", "Say it too."} == set(asked[1])
    assert [*asked[1], "Say it again."] == asked[2]
    assert ["done"] * 3 == [run.reason for run in (*together, last)]
    (path,) = (home / ".pi" / "subagent-sessions").rglob("*.jsonl")
    assert [str(path)] * 3 == [run.meta.session_path for run in (*together, last)]
    assert path.name == f"scout_{result_of(pi.engine, last).child_session_id}.jsonl"
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_a_parent_hands_its_conversation_over(pi: Lab) -> None:
    """A run can get the parent's pi session: its model reads that conversation first, then the task."""
    pi.preset()
    pi.script(said("It is in a.py."), said("Seen."))
    parent = pi.run("Where is it?")
    child = pi.run("Read it.", parent_session=parent.meta.session_path)

    block = "<parent-context>\n[user]\nWhere is it?\n\n[assistant]\nIt is in a.py.\n</parent-context>"
    assert [["Where is it?"], [f"{block}\n\nRead it."]] == [texts(request) for request in pi.requests]
    assert ("Read it.", InheritedContext(1, len(block) - 35)) == (child.meta.task, child.meta.inherited)
