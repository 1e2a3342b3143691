"""Conversations whose id the agent tells: it is on record from the first word on, whatever happens to the wrapper."""

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
"""As agents of ACP make them up; the others have UUIDs, which are simpler."""

MODEL = {"claude": (), "codex": ("model: openai/m",), "acp": ()}


@pytest.fixture(params=MODEL)
def engine(request: pytest.FixtureRequest, project_dir: Path) -> Engine:
    return keeping(project_dir, request.param, TOLD)


def keeping(project: Path, kind: str, told: str) -> Engine:
    """Set up an agent of this kind that tells this id."""
    program = [sys.executable, "-I", "-S", str(CHILDREN / "keeper.py"), kind, told]
    write_settings(agents={"keeper": {"kind": kind, "command": program}}, agent="keeper", default_model="")
    write_preset(project, *MODEL[kind], prompt="")
    return Engine.open(str(project))


def at_work(engine: Engine) -> RunSnapshot:
    """Begin a run, and wait until it is known by which id its agent keeps the conversation."""
    (run,) = engine.launch([ask("Work.")], background=True)
    return wait_until(lambda: _told(engine, run), "the id of the conversation")


def _told(engine: Engine, run: RunSnapshot) -> RunSnapshot | None:
    (now,) = engine.snapshots([run.run_id])
    return now if TOLD == now.child_session_id else None


def killed(engine: Engine) -> str:
    """Kill the wrapper of a run that is at work; return the id of the run."""
    run = at_work(engine)
    wrapper = started(engine, run).pid
    os.kill(wrapper, signal.SIGKILL)
    wait_until_gone(wrapper)
    return run.run_id


def resumed(engine: Engine) -> list[str]:
    return Path(engine.cwd, "resumed").read_text().splitlines()


def test_a_run_whose_wrapper_was_killed_goes_on(engine: Engine) -> None:
    """Nobody looked at it in between; what its agent told is enough, and is in its result then."""
    lost = killed(engine)
    (again,) = engine.launch([ask("And again.", child_session=TOLD)], background=True)
    ended = wait_for_end(engine, again.run_id)
    assert (RunReason.DONE, TOLD) == (ended.reason, ended.child_session_id), result_of(engine, ended).error_message
    assert ["", TOLD] == resumed(engine)
    before = result_of(engine, wait_for_end(engine, lost))
    assert (RunReason.LOST, TOLD) == (before.reason, before.child_session_id)


def test_a_run_that_still_runs(engine: Engine) -> None:
    """Its id is seen, and nobody else goes on with the conversation meanwhile."""
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
    """One that the agent's program would take for an option is neither recorded, nor kept, nor given to a program."""
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
    """An id is no option, no path that leads elsewhere and no text; the one that was told before stays."""
    stream = AgentStream()
    for each in (TOLD, told):
        stream.note(session_id=each)
        assert TOLD == stream.facts.session_id


def test_a_sticky_conversation_goes_on_after_a_kill(engine: Engine) -> None:
    """The next run of the preset gets it, as its id is written when it is told."""
    make_sticky(engine)
    wait_for_end(engine, killed(engine))
    (again,) = engine.launch([ask("And again.")], background=True)
    assert TOLD == wait_for_end(engine, again.run_id).child_session_id
    assert ["", TOLD] == resumed(engine)
