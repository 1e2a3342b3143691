"""Agent sessions: every run that keeps one returns its id, and a run with that id continues the conversation."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import LaunchError, UsageError
from subdeck.core.launch.child_session import ChildSession, own_session, prepare
from subdeck.core.paths import Project
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import (
    make_finished,
    make_meta,
    open_engine,
    result_of,
    run_dir,
    start,
    started,
    wait_for_end,
    wait_until_gone,
    write_settings,
)
from tests.waiting import wait_until

from ..command_line import subdeck
from ..conversing import CONVERSING, ask, parts, prompts_in, run, script, session_entries, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]

FIRST = parts(script("say One.", "finish"))
SECOND = parts(script("say Two.", "finish"))


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir)
    return open_engine(project_dir, CONVERSING)


def kept(run: RunSnapshot) -> str:
    """Return the session file of a run."""
    assert run.meta.session_path
    return run.meta.session_path


def refused(engine: Engine, request: RunRequest) -> str:
    """Check that a request is refused before anything exists; return the error."""
    before = sorted(os.listdir(engine.project.runs)) if os.path.isdir(engine.project.runs) else []
    checked = engine.check(request)
    with pytest.raises(UsageError) as caught:
        engine.launch([request], background=True)
    there = sorted(os.listdir(engine.project.runs)) if os.path.isdir(engine.project.runs) else []
    assert before == there
    assert [str(caught.value)] == [str(problem) for problem in checked]
    return str(caught.value)


def test_each_run_gives_the_id_of_its_session(engine: Engine) -> None:
    """Meta, result and the agent's own header name the same session; each run begins a new one."""
    runs = [run(engine, FIRST), run(engine, FIRST), wait_for_end(engine, start(engine, FIRST).run_id)]
    ids = [each.meta.child_session_id for each in runs]

    assert 3 == len({*ids} - {None})
    assert ids == [result_of(engine, each).child_session_id for each in runs]
    assert ids == [session_entries(kept(each))[0]["id"] for each in runs]
    assert [str(run_dir(engine, each) / "child-session.jsonl") for each in runs] == [kept(each) for each in runs]


def test_an_id_goes_on_with_its_conversation(engine: Engine) -> None:
    """A continuing run works on a copy of the earlier run's conversation, which stays unchanged."""
    first = run(engine, FIRST)
    second = run(engine, SECOND, child_session=first.meta.child_session_id)
    third = run(engine, FIRST, child_session=first.meta.child_session_id)

    assert first.meta.child_session_id == third.meta.child_session_id == result_of(engine, third).child_session_id
    assert [[FIRST], [FIRST, SECOND], [FIRST, SECOND, FIRST]] == [
        prompts_in(kept(each)) for each in (first, second, third)
    ]


def test_the_newest_run_of_a_session_counts(project_dir: Path) -> None:
    """Of runs launched within one second the later one is continued, regardless of their ids."""
    project = Project(str(project_dir))
    metas = [("ffffff", "2026-11-21T00:00:00.100Z"), ("000000", "2026-11-21T00:00:00.900Z"), ("888888", "")]
    for digits, created_at in metas:
        run_id = f"20261121-000000-{digits}"
        path = os.path.join(project.run_dir(run_id), paths.CHILD_SESSION)
        meta = make_meta(run_id, preset="scout", child_session_id="s1", session_path=path, created_at=created_at)
        make_finished(project, meta)
        Path(path).touch()
    found = own_session(project, session_id="s1", preset="scout", cwd=os.getcwd())

    assert ChildSession("s1", source=f"{project.run_dir('20261121-000000-000000')}/child-session.jsonl") == found


def test_an_ad_hoc_conversation_goes_on(engine: Engine) -> None:
    """Runs without a preset share their sessions with each other, but with no preset."""
    first = wait_for_end(engine, start(engine, FIRST).run_id)
    second = wait_for_end(engine, start(engine, SECOND, child_session=first.meta.child_session_id).run_id)

    assert [FIRST, SECOND] == prompts_in(kept(second))
    said = refused(engine, ask(SECOND, child_session=first.meta.child_session_id))
    assert f'no agent session "{first.meta.child_session_id}" of the preset "scout" in ' in said


def test_the_command_line_goes_on(engine: Engine, project_dir: Path) -> None:
    """`--session-id` continues the session named in an earlier run's result."""
    first = subdeck("run", "scout", FIRST, "--json", cwd=project_dir)
    named = first.document["childSessionId"]
    second = subdeck("run", "scout", SECOND, "--json", "--session-id", named, cwd=project_dir)

    assert (0, named) == (second.code, second.document["childSessionId"])
    (newest, *_) = engine.snapshots()
    assert [FIRST, SECOND] == prompts_in(kept(newest))


def test_the_command_line_refuses_an_unknown_id(engine: Engine, project_dir: Path) -> None:
    """An unknown session id is an error, and nothing is started."""
    done = subdeck("run", "scout", FIRST, "--json", "--session-id", "0000-none", cwd=project_dir)

    assert (2, "session id") == (done.code, done.error["where"])
    assert 'no agent session "0000-none" of the preset "scout" in ' in done.error["what"]
    assert not (project_dir / ".pi" / "subagents" / "runs").exists()


@pytest.mark.parametrize(
    "wanted", ["", " ", "../../etc/passwd", "-x", "a_b", "a b", "x" * 200, "é", "a\nb", "#(touch x)"]
)
def test_what_is_no_id(engine: Engine, wanted: str) -> None:
    """An invalid session id never becomes part of a path."""
    assert "is not an agent session id" in refused(engine, ask(FIRST, child_session=wanted))


def test_a_session_belongs_to_its_preset(engine: Engine, project_dir: Path) -> None:
    """The id of another preset's run is unknown."""
    write_preset(project_dir, name="other")
    first = run(engine, FIRST)

    assert "of the preset" in refused(engine, ask(SECOND, preset="other", child_session=first.meta.child_session_id))


def test_a_session_belongs_to_its_directory(engine: Engine, project_dir: Path) -> None:
    """The id of a run in another directory is unknown; another path to the same directory is accepted."""
    inside = project_dir / "inside"
    inside.mkdir()
    (project_dir / "link").symlink_to(inside)
    first = run(engine, FIRST, cwd="inside")
    wanted = first.meta.child_session_id
    second = run(engine, SECOND, cwd="link", child_session=wanted)

    assert f"in {project_dir}\n" in refused(engine, ask(SECOND, child_session=wanted))
    assert [FIRST, SECOND] == prompts_in(kept(second))


def test_a_session_that_is_in_use(engine: Engine) -> None:
    """The session of a running run cannot be continued; the error names the run."""
    (busy,) = engine.launch([ask(parts("hang"))], background=True)
    said = refused(engine, ask(SECOND, child_session=busy.meta.child_session_id))
    engine.stop([busy.run_id])
    wait_for_end(engine, busy.run_id)

    assert f"run {busy.meta.short_id} is still using the agent session" in said
    assert f"subdeck wait {busy.meta.short_id}" in said


def test_the_session_of_a_lost_run(engine: Engine) -> None:
    """The session of a run whose wrapper died can be continued, even before the run is finished as lost."""
    (lost,) = engine.launch([ask(parts("hang"))], background=True)
    pids = started(engine, lost)
    wait_until(lambda: prompts_in(kept(lost)), "the child to be at work")
    os.kill(pids.pid, signal.SIGKILL)
    wait_until_gone(pids.pid)
    second = run(engine, SECOND, child_session=lost.meta.child_session_id)

    assert ("lost", "done") == (result_of(engine, lost).reason, second.reason)
    assert [parts("hang"), SECOND] == prompts_in(kept(second))
    wait_until_gone(pids.child_pid)


def test_a_session_whose_runs_are_gone(engine: Engine) -> None:
    """A session is deleted and restored together with its runs."""
    first = run(engine, FIRST)
    engine.delete([first.run_id])
    assert "no agent session" in refused(engine, ask(SECOND, child_session=first.meta.child_session_id))
    engine.restore([first.run_id])

    assert "done" == run(engine, SECOND, child_session=first.meta.child_session_id).reason


def test_no_session_leaves_nothing(engine: Engine, project_dir: Path, home: Path) -> None:
    """`session: none` leaves no file, no id to continue, and no id in the result."""
    write_preset(project_dir, "session: none")
    ended = run(engine, FIRST)

    assert ("done", None, None) == (ended.reason, ended.meta.child_session_id, ended.meta.session_path)
    assert None is result_of(engine, ended).child_session_id
    assert [] == [*project_dir.rglob("child-session.jsonl"), *home.rglob("subagent-sessions"), *home.rglob("*session*")]


def test_no_session_has_no_id(engine: Engine, project_dir: Path) -> None:
    """A preset without sessions cannot continue one."""
    first = run(engine, FIRST)
    write_preset(project_dir, "session: none")
    said = refused(engine, ask(SECOND, child_session=first.meta.child_session_id))

    assert 'the preset "scout" saves no agent session to continue' in said


def test_sessions_are_private(engine: Engine) -> None:
    """Only the user may read a conversation, even with an open umask."""
    before = os.umask(0)
    try:
        first = run(engine, FIRST)
        second = run(engine, SECOND, child_session=first.meta.child_session_id)
    finally:
        os.umask(before)

    assert [0o600, 0o600] == [stat.S_IMODE(os.stat(kept(each)).st_mode) for each in (first, second)]


def test_a_session_that_cannot_be_copied(project_dir: Path, tmp_path: Path) -> None:
    """A conversation that vanished between planning and launch is an OSError for the launch to report."""
    with pytest.raises(FileNotFoundError):
        prepare(ChildSession("s1", source=str(tmp_path / "gone")), str(tmp_path), str(project_dir))


def test_a_launch_that_cannot_keep_its_session(engine: Engine, project_dir: Path, home: Path) -> None:
    """If a session cannot be written, nothing is started, no run directory stays, and the error names the path."""
    write_preset(project_dir, "sticky: true")
    (home / ".pi").mkdir(exist_ok=True)
    (home / ".pi" / "subagent-sessions").write_text("a file where a directory should be")
    with pytest.raises(LaunchError, match="cannot write the agent session") as caught:
        engine.launch([ask(FIRST)], background=True)

    assert str(home / ".pi" / "subagent-sessions") in caught.value.where
    assert [] == [name for name in os.listdir(engine.project.runs) if not name.startswith(".slots")]
    assert [] == os.listdir(engine.project.active)


def test_the_offline_agent_goes_on(project_dir: Path) -> None:
    """The built-in agent uses the given session id, and knows its earlier task."""
    write_preset(project_dir)
    write_settings(agent="offline")
    engine = Engine.open(str(project_dir))
    first = run(engine, "what is here")
    second = run(engine, "and what else", child_session=first.meta.child_session_id)

    assert first.meta.child_session_id == result_of(engine, second).child_session_id
    assert ["what is here", "and what else"] == prompts_in(kept(second))
    assert [first.meta.child_session_id] == [
        entry["id"] for entry in session_entries(kept(second)) if entry["type"] == "session"
    ]
