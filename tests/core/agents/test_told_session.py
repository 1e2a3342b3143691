"""Conversation ids from the agent are recorded from the first line on, even if the wrapper is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from subdeck.core.agents._stream import AgentStream
from subdeck.core.engine import Engine
from subdeck.core.errors import UsageError
from subdeck.core.run.model import RunReason
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import CHILDREN, result_of, started, wait_for_end, wait_until_gone, write_settings
from tests.waiting import wait_until

from ..command_line import subdeck
from ..conversing import ask, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

TOLD = "ses_01a2019b.6975:7ac0"
"""As ACP agents create them. Other agents have UUIDs, which are simpler."""

MODEL = {"claude": (), "codex": ("model: openai/m",), "acp": ()}


@pytest.fixture(params=MODEL)
def engine(request: pytest.FixtureRequest, project_dir: Path) -> Engine:
    return keeping(project_dir, request.param, TOLD)


def keeping(project: Path, kind: str, told: str) -> Engine:
    """Set up an agent of this kind that reports this id."""
    program = [sys.executable, "-I", "-S", str(CHILDREN / "keeper.py"), kind, told]
    write_settings(agents={"keeper": {"kind": kind, "command": program}}, agent="keeper", default_model="")
    write_preset(project, *MODEL[kind], prompt="")
    return Engine.open(str(project))


def at_work(engine: Engine) -> RunSnapshot:
    """Start a run, and wait until the id of its conversation is known."""
    (run,) = engine.launch([ask("Work.")], background=True)
    return wait_until(lambda: _told(engine, run), "the id of the conversation")


def _told(engine: Engine, run: RunSnapshot) -> RunSnapshot | None:
    (now,) = engine.snapshots([run.run_id])
    return now if TOLD == now.child_session_id else None


def killed(engine: Engine) -> str:
    """Kill the wrapper of a working run. Return the run's id."""
    run = at_work(engine)
    wrapper = started(engine, run).pid
    os.kill(wrapper, signal.SIGKILL)
    wait_until_gone(wrapper)
    return run.run_id


def resumed(engine: Engine) -> list[str]:
    return Path(engine.cwd, "resumed").read_text().splitlines()


def test_a_run_whose_wrapper_was_killed_goes_on(engine: Engine) -> None:
    """The id from the agent is enough to continue, even before the run is found lost, and its result has it."""
    lost = killed(engine)
    (again,) = engine.launch([ask("And again.", child_session=TOLD)], background=True)
    ended = wait_for_end(engine, again.run_id)
    assert (RunReason.DONE, TOLD) == (ended.reason, ended.child_session_id), result_of(engine, ended).error_message
    assert ["", TOLD] == resumed(engine)
    before = result_of(engine, wait_for_end(engine, lost))
    assert (RunReason.LOST, TOLD) == (before.reason, before.child_session_id)


def test_a_run_that_still_runs(engine: Engine) -> None:
    """Its id is shown, and no other run can continue the conversation."""
    run = at_work(engine)
    shown = subdeck("status", run.run_id, "--json", cwd=Path(engine.cwd)).document
    assert TOLD == shown["runs"][0]["childSessionId"]
    with pytest.raises(UsageError, match=f"is still using the agent session {TOLD}"):
        engine.launch([ask("And again.", child_session=TOLD)], background=True)
    engine.stop([run.run_id], force=True)
    wait_for_end(engine, run.run_id)


def make_sticky(engine: Engine) -> None:
    preset = Path(engine.cwd, ".pi", "subagents", "scout.md")
    preset.write_text(preset.read_text().replace("description", "sticky: true\ndescription"))


@pytest.mark.parametrize("kind", MODEL)
def test_an_id_that_is_no_id(project_dir: Path, kind: str) -> None:
    """An id that a program would read as an option is not recorded, stored or passed on."""
    engine = keeping(project_dir, kind, "--dangerously-skip-permissions")
    make_sticky(engine)
    for _ in range(2):
        (run,) = engine.launch([ask("And again.")], background=True)
        ended = wait_for_end(engine, run.run_id)
        assert ended.reason in (RunReason.DONE, RunReason.UNVERIFIED), result_of(engine, ended).error_message
        assert not (ended.child_session_id or "").startswith("-")
    assert not [each for each in resumed(engine) if each.startswith("-")]


@pytest.mark.parametrize(
    "told", ["-x", "../../x", "a/../../x", "a b", "a\x1b[2J", "a\0", "é", "x" * 201, "/etc/passwd"]
)
def test_what_no_id_is(told: str) -> None:
    """An id that is an option, a path elsewhere or other text is ignored, and the earlier one stays."""
    stream = AgentStream()
    for each in (TOLD, told):
        stream.note(session_id=each)
        assert TOLD == stream.facts.session_id


def test_a_sticky_conversation_goes_on_after_a_kill(engine: Engine) -> None:
    """The next run of the preset continues it, because the id is stored as soon as it is reported."""
    make_sticky(engine)
    wait_for_end(engine, killed(engine))
    (again,) = engine.launch([ask("And again.")], background=True)
    assert TOLD == wait_for_end(engine, again.run_id).child_session_id
    assert ["", TOLD] == resumed(engine)
