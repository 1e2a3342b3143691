"""`subdeck tool`, as called by a parent's extension."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine

from tests.core.command_line import SUBDECK, subdeck, write_preset
from tests.core.delegation.delegating import SESSION, parent_engine, running, task
from tests.factories import start, wait_for_end

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

REGISTER = {"models": ["fake/b", "fake/A"], "key": None}


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return parent_engine(project_dir)


class Talking:
    """One running `subdeck tool`, which is ended at exit."""

    def __init__(self, project: Path, *words: str, **first: Any) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*SUBDECK, "tool", *words], cwd=project, stdin=pipe, stdout=pipe, stderr=pipe)
        self.say(first)

    def __enter__(self) -> Talking:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)

    def say(self, line: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def leave(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.stdin = None

    def next(self, kind: str) -> dict[str, Any]:
        """Read up to the next line of this type."""
        assert self.process.stdout
        for line in self.process.stdout:
            read = json.loads(line)
            if read["type"] == kind:
                return read
        raise AssertionError(f"no line of type {kind}: {self.process.stderr and self.process.stderr.read().decode()}")

    def rest(self) -> list[dict[str, Any]]:
        """Read everything to the end. stderr must be empty, and the exit code 0."""
        out, errors = self.process.communicate(timeout=60)
        assert (0, b"") == (self.process.returncode, errors)
        return [json.loads(line) for line in out.splitlines()]


def calling(project: Path, params: Any, name: str = "subagent", **more: Any) -> Talking:
    return Talking(project, "call", name, params=params, parent={"session": SESSION}, cwd=str(project), **more)


def register(project: Path, line: Any, **environment: str) -> dict[str, Any]:
    done = subdeck("tool", "register", cwd=project, stdin=json.dumps(line).encode() + b"\n", **environment)
    assert (0, "") == (done.code, done.err)
    return json.loads(done.out)


def test_registration(engine: Engine, project_dir: Path) -> None:
    """The tools come with a key. The same models in another order change nothing, other models do."""
    first = register(project_dir, REGISTER)
    assert first["register"]
    assert ["subagent", "background_agent", "background_agent_status", "background_agent_send"] == [
        tool["name"] for tool in first["tools"]
    ]
    assert {"name", "label", "description", "parameters"} == set(first["tools"][0])
    model = first["tools"][0]["parameters"]["properties"]["model"]
    assert ["fake/b", "fake/A"] == model["anyOf"][0]["enum"]
    again = register(project_dir, {"models": ["fake/a", "fake/b"], "key": first["key"]})
    assert {"register": False, "key": first["key"], "tools": []} == again
    other = register(project_dir, {"models": ["fake/a"], "key": first["key"]})
    assert other["register"] and other["key"] != first["key"]


def test_no_models_no_registration(project_dir: Path) -> None:
    """An empty list registers nothing and keeps the key. A later list with models registers them."""
    parent_engine(project_dir, models=[])
    empty = register(project_dir, {"models": [], "key": None})
    assert {"register": False, "key": None, "tools": []} == empty
    assert register(project_dir, {"models": ["fake/b"], "key": empty["key"]})["register"]


def test_children_register_nothing(engine: Engine, project_dir: Path) -> None:
    """In an agent's environment, nothing is registered."""
    assert not register(project_dir, REGISTER, PI_SUBAGENTS_CHILD="1")["register"]


def test_registration_where_the_settings_are_broken(project_dir: Path) -> None:
    """A settings error is printed as JSON, and the old key is kept."""
    (project_dir / ".pi" / "subagents").mkdir(parents=True)
    (project_dir / ".pi" / "subagents" / "config.yaml").write_text("nope: 1\n")
    done = subdeck("tool", "register", cwd=project_dir, stdin=b'{"models":["a/b"],"key":"k"}\n')
    answer = json.loads(done.out)
    assert (2, False, "k", []) == (done.code, answer["register"], answer["key"], answer["tools"])
    assert "config.yaml" in answer["error"]["where"]


def test_a_call_streams_progress_and_one_result(engine: Engine, project_dir: Path) -> None:
    """Progress lines are followed by exactly one result, the tool's answer."""
    with calling(project_dir, task("tool read", "wait-for go", "answer ok")) as call:
        first = call.next("progress")
        assert "scout" == first["details"]["runs"][0]["preset"]
        (project_dir / "go").touch()
        result = call.next("result")
        assert [] == call.rest()
    assert ("result", False) == (result["type"], result["isError"])
    assert result["text"].endswith("ok")
    assert ["tool", "text"] == [entry["kind"] for entry in result["details"]["runs"][0]["details"]["entries"]]
    (run,) = engine.snapshots()
    assert (SESSION, "pi") == (run.meta.launched_by.session, run.meta.launched_by.kind)


def test_the_end_of_stdin_cancels(engine: Engine, project_dir: Path) -> None:
    """If the parent is gone, its foreground run is cancelled."""
    with calling(project_dir, task("hang")) as call:
        running(engine)
        call.leave()
        result = call.rest()[-1]
    assert result["isError"]
    assert ["cancelled"] == [run.reason for run in engine.snapshots()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_cancel(engine: Engine, project_dir: Path, number: signal.Signals) -> None:
    """TERM, INT and HUP cancel the call: its runs end, and the result lists them."""
    with calling(project_dir, {"tasks": [task("hang"), task("hang", preset="other")]}) as call:
        running(engine, 2)
        call.process.send_signal(number)
        result = call.rest()[-1]
    assert ["cancelled"] * 2 == [row["reason"] for row in result["details"]["runs"]]


def test_a_reader_that_goes_cancels(engine: Engine, project_dir: Path) -> None:
    """If the answer's reader is gone, the run is cancelled without a traceback."""
    with calling(project_dir, task("hang")) as call:
        (run,) = running(engine)
        assert call.process.stdout
        call.process.stdout.close()
        assert "cancelled" == wait_for_end(engine, run.run_id).reason
        call.process.stdout = None
        _, errors = call.process.communicate(timeout=30)
        assert b"Traceback" not in errors


def test_a_killed_caller_leaves_the_run(engine: Engine, project_dir: Path) -> None:
    """A killed call cannot cancel its run, which stays visible and can be stopped."""
    with calling(project_dir, task("hang")) as call:
        (run,) = running(engine)
        call.process.kill()
    assert "running" == engine.snapshots()[0].status
    engine.stop([run.run_id])
    assert "stopped" == wait_for_end(engine, run.run_id).reason


@pytest.mark.parametrize("line", [b"", b"\n", b"nope\n", b"[1]\n", b'{"params":{},"parent":3}\n', b"\xff\n"], ids=repr)
def test_a_line_that_is_none_is_answered(project_dir: Path, line: bytes) -> None:
    """Any input on stdin gets one result line and no traceback."""
    done = subdeck("tool", "call", "subagent", cwd=project_dir, stdin=line)
    answer = json.loads(done.out)
    assert (0, "", "result", True) == (done.code, done.err, answer["type"], answer["isError"])
    assert "stdin" == answer["details"]["error"]["where"]


def test_stdin_may_be_closed(project_dir: Path) -> None:
    """A closed stdin is answered like an empty one."""
    shell = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *SUBDECK, "tool", "call", "subagent"]
    done = subprocess.run(shell, cwd=project_dir, capture_output=True, timeout=60)
    assert json.loads(done.stdout)["isError"]
    assert b"Traceback" not in done.stderr


def test_wrong_calls_are_structured(engine: Engine, project_dir: Path) -> None:
    """An error has what, value, valid values, where and hint, also for an unknown tool or a missing directory."""
    for name, params, more, value in (
        ("subagent", task("x", preset="nope"), {}, "nope"), ("Agent", {}, {}, "Agent"), ("", {}, {}, ""),
    ):  # fmt: skip
        with calling(project_dir, params, name, **more) as call:
            error = call.next("result")["details"]["error"]
        assert value == error["value"]
        assert {"what", "value", "valid", "where", "hint"} <= set(error)
    with Talking(project_dir, "call", "subagent", params={}, parent={"session": "s"}, cwd="/nowhere") as call:
        assert "/nowhere" in call.next("result")["details"]["error"]["what"]


def test_foreign_session_names(engine: Engine, project_dir: Path) -> None:
    """A parent may use any session name."""
    first = {"params": task("answer ok"), "parent": {"session": "../a b"}, "cwd": str(project_dir)}
    with Talking(project_dir, "call", "background_agent", **first) as call:
        result = call.next("result")
    assert not result["isError"]
    run = wait_for_end(engine, result["details"]["runId"])
    assert run.meta.launched_by.session.startswith("-a-b-")


def test_the_parent_is_asked_for_models(engine: Engine, project_dir: Path) -> None:
    """With `resolves`, the parent is asked on stdout and answers on stdin before anything is started."""
    write_preset(project_dir, "fast", extra="model: '@fast'\n")
    with calling(project_dir, task("answer ok", preset="fast"), resolves=True) as call:
        asked = call.next("resolve")
        assert "@fast" == asked["ref"]
        assert () == engine.snapshots()
        call.say({"id": asked["id"], "resolved": "fake/puppet", "thinkingLevel": "high", "error": None})
        row = call.next("result")["details"]["runs"][0]
    assert ("completed", "fake/puppet") == (row["status"], engine.snapshots()[0].meta.resolved_model)
    assert "high" == engine.snapshots()[0].meta.thinking


def test_a_parent_without_an_answer(engine: Engine, project_dir: Path) -> None:
    """Without an answer from the parent, the engine resolves the model."""
    with calling(project_dir, task("answer ok", model="fake/puppet"), resolves=True) as call:
        call.say({"id": call.next("resolve")["id"], "resolved": None, "error": None})
        assert not call.next("result")["isError"]


def test_watch_tells_counts_ends_and_events(engine: Engine, project_dir: Path) -> None:
    """The session's background runs are counted, their results reported once, and the channels emitted."""
    with Talking(project_dir, "watch", session=SESSION, cwd=str(project_dir), runs=[]) as watch:
        assert "bg: 0 running / 0 total" == watch.next("counts")["text"]
        other = Engine.open(str(project_dir), session="somebody-else")
        foreign = start(other, "answer ok")
        with calling(project_dir, task("wait-for go", "answer ok"), "background_agent") as call:
            run_id = call.next("result")["details"]["runId"]
        created = watch.next("event")
        assert ("subagents:created", run_id) == (created["channel"], created["payload"]["id"])
        (project_dir / "go").touch()
        end = watch.next("ended")
        assert (run_id, "completed") == (end["run"]["runId"], end["run"]["status"])
        assert run_id == end["entry"]["data"]["runId"]
        wait_for_end(engine, foreign.run_id)
        watch.leave()
        rest = watch.rest()
    assert not [line for line in rest if line["type"] == "ended"]
    assert foreign.run_id not in json.dumps(rest)


def test_watch_tells_foreground_events(engine: Engine, project_dir: Path) -> None:
    """The channels include foreground runs, which are not counted."""
    with Talking(project_dir, "watch", session=SESSION, cwd=str(project_dir)) as watch:
        watch.next("counts")
        with calling(project_dir, task("answer ok")) as call:
            call.next("result")
        told = watch.next("event")
        while told["channel"] != "subagents:completed":
            told = watch.next("event")
        watch.leave()
        assert "counts" not in {line["type"] for line in watch.rest()}


def test_watch_goes_on_after_a_resume(engine: Engine, project_dir: Path) -> None:
    """Runs that the parent has recorded as running are reported at once if they have finished, and otherwise later."""
    over = wait_for_end(engine, start(engine, "answer ok").run_id)
    on = start(engine, "wait-for go", "error boom", "finish")
    first = {"session": SESSION, "cwd": str(project_dir), "runs": [over.run_id, on.run_id], "events": False}
    with Talking(project_dir, "watch", **first) as watch:
        assert over.run_id == watch.next("ended")["run"]["runId"]
        assert "bg: 1 running / 2 total" == watch.next("counts")["text"]
        (project_dir / "go").touch()
        last = watch.next("ended")
        assert (on.run_id, "error") == (last["run"]["runId"], last["notice"]["level"])
        watch.process.send_signal(signal.SIGTERM)
        assert "event" not in {line["type"] for line in watch.rest()}
    assert () == engine.unseen()


def test_watch_survives_a_project_without_runs(project_dir: Path) -> None:
    """Watching creates nothing."""
    with Talking(project_dir, "watch", session="s", cwd=str(project_dir)) as watch:
        watch.next("counts")
        watch.leave()
        watch.rest()
    assert not (project_dir / ".pi").exists()


def test_unknown_actions_are_refused(project_dir: Path) -> None:
    """An unknown action is refused with the names of the three actions."""
    done = subdeck("tool", "list", "--json", cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert all(name in done.error["what"] for name in ("register", "call", "watch"))
