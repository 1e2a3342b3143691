"""pi as a parent."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.pi_parent.installer import installation

from tests.core.command_line import subdeck, write_preset
from tests.isolation import MARKER, carriers
from tests.real.lab import EITHER_PI, NEWER_PI
from tests.real.model_server import ModelServer, called, offered, said, texts
from tests.real.programs import PI
from tests.waiting import wait_until

from .parent import HELD, Parent, ParentLab

pytestmark = pytest.mark.pi

TOOLS = {"subagent", "background_agent", "background_agent_status", "background_agent_send"}
LOOK = {"preset": "looker", "task": "Where is the token checked?"}
HOLD = {"preset": "held", "task": HELD}


@pytest.fixture
def here(
    project_dir: Path,
    home: Path,
    pi_executable: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ParentLab]:
    """Set up a lab; pi finds the extension always at one path, because it caches compiled code by path."""
    agent_dir, compiled = (tmp_path_factory.getbasetemp() / name for name in ("pi-agent", "pi-compiled"))
    shutil.rmtree(agent_dir, ignore_errors=True)
    compiled.mkdir(exist_ok=True)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(agent_dir))
    Path(os.environ["TMPDIR"], "jiti").symlink_to(compiled)
    with ModelServer() as model:
        yield ParentLab(PI, pi_executable, project_dir, home, model)


def shown(result: dict[str, Any]) -> str:
    return result["result"]["content"][0]["text"]


def messages(request: dict[str, Any]) -> str:
    """All texts before a request."""
    return "\n".join(texts(request, "system", "developer", "user", "assistant", "tool"))


def result_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "result.json").read_text())


def ended_by(run: Path) -> str:
    """Wait until a run was ended before it was done; return the reason."""
    wait_until((run / "result.json").exists, "the end of the run")
    assert "aborted" == result_of(run)["status"]
    return result_of(run)["reason"]


def context_comes_first(run: Path) -> bool:
    """Return whether its prompt has the texts of the parent's user, and after them the task."""
    prompt = (run / "prompt.md").read_text()
    return prompt.index("<parent-context>") < prompt.index("4711") < prompt.index(LOOK["task"])


def tools_of(run: Path) -> list[str]:
    return json.loads((run / "meta.json").read_text())["tools"]["resolved"]


def ended(parent: Parent) -> Any:
    return parent.until(parent.told, "the message about the end of the run")


def models_offered(request: dict[str, Any]) -> list[str]:
    """The models in the schema of the tool `subagent`, as the parent's model sees it."""
    (tool,) = (tool for tool in request["tools"] if tool["function"]["name"] == "subagent")
    return tool["function"]["parameters"]["properties"]["model"]["anyOf"][0]["enum"]


@EITHER_PI
def test_a_session_that_delegates(here: ParentLab) -> None:
    """The model runs a task and reads its answer, starts another in the background, and asks for its status."""
    status = called(("background_agent_status", {"includeCompleted": True}))
    here.script(called(("subagent", LOOK)), called(("background_agent", LOOK)), said("Wait."), status, said("Done."))
    with here.parent() as parent:
        parent.prompt("Go.")
        assert TOOLS <= offered(here.requests[0])
        assert "fake/test" in models_offered(here.requests[0])
        updates = parent.of("tool_execution_update", toolName="subagent")
        assert any("looker" in shown({"result": update["partialResult"]}) for update in updates)
        answer = parent.result("subagent")
        assert not answer["isError"]
        assert "notes.md" in shown(answer)
        (row,) = answer["result"]["details"]["runs"]
        assert row["details"]["entries"]
        foreground = row["runId"]
        background = parent.result("background_agent")["result"]["details"]["runId"]
        assert {foreground, background} == {run.name for run in here.runs}
        (message,) = ended(parent)
        parent.until(lambda: parent.footers()[-1] == "bg: 0 running / 1 total", "the footer")
        assert background == message["details"]["runId"]
        assert ["bg-run", "bg-update", "bg-done"] == here.kinds()
        assert [1, 1] == [len(parent.notes()), len(parent.of("agent_start"))]
        parent.prompt("And now?")
        assert message["content"] in messages(here.requests[3])
        (row,) = parent.result("background_agent_status")["result"]["details"]["runs"]
        assert (background, "completed") == (row["runId"], row["status"])
    header = json.loads((here.project.parent / "s.jsonl").read_text().split("\n")[0])
    for run in here.runs:
        launched_by = json.loads((run / "meta.json").read_text())["launchedBy"]
        assert {"session": header["id"], "kind": "pi"} == launched_by


@pytest.mark.lane
@NEWER_PI
def test_a_session_steers_its_run(here: ParentLab) -> None:
    """pi notifies you of a question from a run, and the model can redirect the run in the middle of its turn."""
    for number in (1, 2):
        (here.project / f"more{number}.md").write_text("The token is checked here, too.\n")
    asks = {"preset": "looker", "task": "Where is the token checked? Ask me which file."}
    here.script(called(("background_agent", asks)), said("Wait."))
    with here.parent() as parent:
        parent.prompt("Go.")
        parent.until(lambda: parent.notes(), "the note")
        assert "bg: 1 running / 1 total" in parent.footers()
        (run,) = here.runs
        (note,) = parent.notes()
        assert note.startswith(f"looker {run.name[-6:]} has a question: Which file shall I read?")
        steer = {"runId": run.name, "message": "Where is `auth.py` named?", "interrupt": True}
        here.script(called(("background_agent_send", steer)), said("Steered."))
        parent.prompt("Another question.")
        assert TOOLS <= offered(here.requests[0])
        sent = parent.result("background_agent_send")
        assert (False, "delivered") == (sent["isError"], sent["result"]["details"]["delivery"])
        assert len(ended(parent)) == 1
    assert "done" == result_of(run)["reason"]


@pytest.mark.lane
@NEWER_PI
def test_a_session_goes_on(here: ParentLab) -> None:
    """After a restart of pi, each background run is reported once, whether it ended before or ends later.

    The end of one from before comes with the model's next request; the end of a later one starts no turn.
    """
    later = {"preset": "held", "task": HELD.replace("go", "later", 1)}
    here.script(called(("background_agent", HOLD), ("background_agent", later)), said("Wait."))
    with here.parent() as parent:
        parent.prompt("Go.")
        parent.until(lambda: "bg: 2 running / 2 total" in parent.footers(), "the footer")
    assert [] == [run for run in here.runs if (run / "result.json").exists()]
    here.release()
    wait_until(lambda: any((run / "result.json").exists() for run in here.runs), "a run to end without pi")
    assert ["bg-run", "bg-run"] == here.kinds()
    here.script(said("Seen."))
    with here.parent() as parent:
        parent.prompt("How did it end?")
        message = here.entries()[-1]
        assert message["content"] in messages(here.requests[0])
        assert [1, 1] == [len(parent.notes()), len(parent.of("agent_start"))]
        parent.until(lambda: parent.footers()[-1] == "bg: 1 running / 2 total", "the footer")
        (here.project / "later").touch()
        ended(parent)
        parent.until(lambda: "bg: 0 running / 2 total" in parent.footers(), "the new footer")
        assert [2, 1] == [len(parent.notes()), len(parent.of("agent_start"))]
    here.script(said("Nothing new."))
    with here.parent() as parent:
        parent.prompt("And again?")
        assert ([], ["bg: 0 running / 2 total"]) == (parent.notes(), parent.footers())
    assert ["bg-run", "bg-run", "bg-update", "bg-done", "bg-update", "bg-done"] == here.kinds()


@pytest.mark.lane
@EITHER_PI
def test_no_turn_is_disturbed(here: ParentLab) -> None:
    """If a run finishes during a turn, you are notified at once. The message is added to the session after the turn."""
    here.script(called(("background_agent", LOOK)), called(("subagent", HOLD)), said("Done."), said("Later."))
    with here.parent() as parent:
        parent.begin("Go.")
        parent.until(parent.notes, "the notification")
        assert [] == parent.told()
        here.release()
        (message,) = ended(parent)
        assert message["content"] not in messages(here.requests[2])
        kinds = [event["type"] for event in parent.events]
        assert kinds.index("agent_end") < parent.events.index(
            next(event for event in parent.of("message_end") if event["message"] is message)
        )


@pytest.mark.lane
@NEWER_PI
def test_two_parents_in_one_project(here: ParentLab) -> None:
    """Two pi sessions in one project don't see each other's background runs. The app shows who started which."""
    here.script(called(("background_agent", LOOK)), said("Wait."))
    with here.parent("one.jsonl") as one, here.parent("two.jsonl") as two:
        one.prompt("Go.")
        ended(one)
        here.script(called(("background_agent_status", {"includeCompleted": True})), said("None."))
        two.prompt("How many?")
        details = two.result("background_agent_status")["result"]["details"]
        assert (0, []) == (details["counts"]["total"], details["runs"])
        assert not [footer for footer in two.footers() if footer]
        assert ([], []) == (two.told(), two.notes())
    (run,) = subdeck("status", "--json", cwd=here.project).document["runs"]
    assert here.runs[0].name == run["runId"]


@pytest.mark.lane
@EITHER_PI
def test_whoever_waits_no_more_ends_the_run(here: ParentLab) -> None:
    """The runs that a tool call waits for are cancelled if you stop the turn, and if pi is killed."""
    here.script(called(("subagent", {"tasks": [HOLD, HOLD]})), called(("subagent", HOLD)), said("Never."))
    with here.parent() as parent:
        parent.begin("Go.")
        parent.until(lambda: len(here.children) == 2, "two children")
        parent.send(type="abort")
        parent.until(lambda: parent.of("agent_end"), "the end of the turn")
        stopped = here.runs
        assert ["cancelled", "cancelled"] == [ended_by(run) for run in stopped]
        parent.begin("Again.")
        parent.until(lambda: len(here.children) == 3, "the third child")
        parent.kill()
    (left,) = set(here.runs) - {*stopped}
    assert "cancelled" == ended_by(left)


@pytest.mark.lane
@EITHER_PI
def test_what_a_child_gets_from_its_parent(here: ParentLab) -> None:
    """The parent's conversation goes before the task. The preset's tools are limited to the parent's."""
    write_preset(here.project, "looker", extra="tools: read, grep\n")
    here.script(called(("subagent", LOOK)), said("Done."))
    with here.parent("s.jsonl", "--tools", "read,subagent") as parent:
        parent.prompt("The number is 4711.")
    (run,) = here.runs
    assert context_comes_first(run)
    assert ["read"] == tools_of(run)


@pytest.mark.lane
@EITHER_PI
def test_what_a_child_gets_from_a_parent_without_a_file(here: ParentLab) -> None:
    """Without a session file, the parent's conversation goes before the task as well.

    A subagent gets the listed tools that pi has, on or off. The model is told which tools are missing.
    """
    write_preset(here.project, "looker", extra="tools: read, grep, find, ls, webfetch\n")
    here.script(called(("subagent", LOOK)), said("Done."))
    with here.parent(None) as parent:
        parent.prompt("The number is 4711.")
    (run,) = here.runs
    assert context_comes_first(run)
    assert ["read", "grep", "find", "ls"] == tools_of(run)
    assert "webfetch is left out: the parent does not have it" in messages(here.requests[1])


@pytest.mark.lane
@NEWER_PI
def test_a_new_session_begins_with_nothing(here: ParentLab) -> None:
    """After /new, the footer is empty, and results of earlier runs are reported in their own session."""
    here.script(called(("background_agent", HOLD)), said("Wait."), said("New."))
    with here.parent() as parent:
        parent.prompt("Go.")
        parent.until(lambda: parent.footers()[-1] == "bg: 1 running / 1 total", "the footer")
        parent.send(type="new_session")
        parent.until(lambda: parent.of("response", command="new_session"), "the new session")
        assert parent.footers()[-1] is None
        here.release()
        wait_until((here.runs[0] / "result.json").exists, "the end of the run")
        parent.prompt("And now?")
        assert ([], [], None) == (parent.told(), parent.notes(), parent.footers()[-1])
    assert ["bg-run"] == here.kinds()


UNKNOWN_ROLE = """
export default function (pi) {
	const cyclic = {};
	cyclic.self = cyclic;
	pi.events.on("model:resolve", (probe) => {
		if (!probe.ref.startsWith("@")) return;
		probe.error ??= "no such role";
		probe.available ??= { roles: { fast: "fake/test", odd: cyclic }, models: cyclic };
	});
}
"""

WRONG_CALLS = [
    ("subagent", {"preset": "nobody", "task": "Look."}, "nobody"),
    ("subagent", {"chain": [LOOK]}, "call subagent once per step"),
    ("subagent", {**HOLD, "model": "fake/nope"}, 'the model "fake/nope" is not available'),
    ("subagent", {**HOLD, "model": "@fst"}, "no such role"),
    ("subagent", {**HOLD, "model": "@fst"}, "@fast (fake/test)"),
    ("subagent", {"tasks": [{**LOOK, "modle": "x"}]}, "did you mean model?"),
    ("background_agent", {**LOOK, "chain": [LOOK]}, "background_agent does not accept chain"),
]


@pytest.mark.lane
@EITHER_PI
def test_wrong_calls_are_answered_in_our_words(here: ParentLab, tmp_path: Path) -> None:
    """Invalid calls reach subdeck. The model reads why each was refused and how to correct it, such as by known names.

    If another extension can't resolve a model role, the error lists the roles that it knows.
    """
    other = tmp_path / "other.ts"
    other.write_text(UNKNOWN_ROLE)
    here.script(*(called((tool, params)) for tool, params, _ in WRONG_CALLS), said("I see."))
    with here.parent("s.jsonl", "-e", str(other)) as parent:
        parent.prompt("Go.")
        answers = parent.of("tool_execution_end")
    assert [True] * len(WRONG_CALLS) == [answer["isError"] for answer in answers]
    assert [] == [
        words for answer, (_, _, words) in zip(answers, WRONG_CALLS, strict=True) if words not in shown(answer)
    ]
    valid = [answer["result"]["details"]["error"].get("valid") for answer in answers]
    assert [{"looker", "held"}, ["@fast"]] == [set(valid[0]), valid[3]]
    assert [] == here.runs


@pytest.mark.lane
@NEWER_PI
def test_without_a_ui(here: ParentLab) -> None:
    """Without a user interface, the tools work, the output has only pi's events, and pi exits while runs continue."""
    here.script(called(("background_agent", HOLD)), said("Started."))
    done = here.ask("--model", "fake/test", "--session", str(here.project.parent / "s.jsonl"))
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"extension_ui_request" not in done.stdout
    assert ["bg-run"] == here.kinds()
    here.release()
    wait_until((here.runs[0] / "result.json").exists, "the end of the run")
    here.script(said("Seen."))
    here.ask("--model", "fake/test", "--session", str(here.project.parent / "s.jsonl"))
    assert ["bg-run", "bg-update", "bg-done"] == here.kinds()


@pytest.mark.lane
@NEWER_PI
def test_what_the_model_is_offered(here: ParentLab, home: Path) -> None:
    """The tool's schema lists the models of this pi only, and a preset that is added appears with the next request.

    pi expands a prompt template with your text, and the model doesn't see subdeck's file header.
    """
    config = home / ".config" / "subdeck" / "config.yaml"
    config.write_text(json.dumps({**json.loads(config.read_text()), "models": ["other/one", "fake/two"]}))
    here.script(said("One."), said("Two."))
    with here.parent() as parent:
        parent.prompt("/inspect where the token is checked")
        write_preset(here.project, "newcomer")
        parent.prompt("And now?")
    offered_models = models_offered(here.requests[0])
    assert "fake/test" in offered_models
    assert {"fake", "github-copilot"} == {model.partition("/")[0] for model in offered_models}
    assert "fake/two" not in offered_models
    first, second = (json.dumps(request["tools"]) for request in here.requests)
    assert "looker" in first
    assert "newcomer" not in first
    assert "newcomer" in second
    asked = str(texts(here.requests[0]))
    assert "Find out: where the token is checked" in asked
    assert "put here by" not in asked


OTHER_EXTENSION = """
export default function (pi) {
	pi.events.on("model:resolve", (probe) => {
		if (probe.ref === "@fast") Object.assign(probe, { resolved: "fake/test", model: {} });
	});
	for (const name of ["created", "started", "completed", "failed"]) {
		pi.events.on(`subagents:${name}`, ({ id }) => pi.appendEntry("seen", { name, id }));
	}
}
"""


@pytest.mark.lane
@NEWER_PI
def test_other_extensions(here: ParentLab, tmp_path: Path) -> None:
    """Another extension can resolve a model role, and receives the events of each run."""
    other = tmp_path / "other.ts"
    other.write_text(OTHER_EXTENSION)
    here.script(called(("subagent", {**HOLD, "model": "@fast"})), said("Done."))
    here.release()
    with here.parent("s.jsonl", "-e", str(other)) as parent:
        parent.prompt("Go.")
        (run,) = here.runs
        session = here.project.parent / "s.jsonl"

        def seen() -> list[str]:
            found = [json.loads(line) for line in session.read_text().split("\n") if '"customType":"seen"' in line]
            assert {run.name} >= {entry["data"]["id"] for entry in found}
            return [entry["data"]["name"] for entry in found]

        parent.until(lambda: "completed" in seen(), "the last channel")
        names = seen()
        assert ("created", "completed") == (names[0], names[-1])
        assert {"started"} == set(names[1:-1])
    meta = json.loads((run / "meta.json").read_text())
    assert "fake/test" == meta["resolvedModel"]


@pytest.mark.lane
@NEWER_PI
def test_a_pi_that_is_an_agent(here: ParentLab) -> None:
    """A pi that runs as an agent doesn't get subdeck's tools.

    If the variable is set, its requests to GitHub Copilot are marked as sent by an agent, as those of its parent are.
    """
    models = Path(os.environ["PI_CODING_AGENT_DIR"], "models.json")
    known = json.loads(models.read_text())
    known["providers"]["github-copilot"] |= {"api": "openai-completions", "models": [{"id": "any"}]}
    models.write_text(json.dumps(known))
    here.script(said("One."))
    flags = ("--model", "github-copilot/any", "--no-session")
    here.ask(*flags, PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR="agent")
    done = here.ask(*flags, PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR="agent", PI_SUBAGENTS_CHILD="1")
    here.ask(*flags)
    assert (0, b"") == (done.returncode, done.stderr)
    assert [TOOLS, set(), TOOLS] == [TOOLS & offered(request) for request in here.requests]
    assert ["agent", "agent", "user"] == [asked.headers.get("x-initiator") for asked in here.model.requests]


@pytest.mark.lane
@NEWER_PI
def test_a_watcher_that_dies_is_replaced(here: ParentLab) -> None:
    """A run's result is reported even if the process that watched it was killed."""
    here.script(called(("background_agent", HOLD)), said("Wait."))
    with here.parent() as parent:
        parent.prompt("Go.")
        (watcher,) = [pid for pid, words in carriers(os.environ[MARKER]).items() if words.endswith("tool watch")]
        os.kill(watcher, signal.SIGKILL)
        here.release()
        ended(parent)
        assert 1 == len(parent.notes())


@pytest.mark.lane
@NEWER_PI
@pytest.mark.parametrize("command", [("/gone/python",), ("/bin/echo", "nonsense"), ("/bin/false",)], ids=" ".join)
def test_a_subdeck_that_does_not_answer(here: ParentLab, command: tuple[str, ...]) -> None:
    """If the subdeck command is missing or broken, pi reports it once and works without the tools."""
    agent_dir = os.environ["PI_CODING_AGENT_DIR"]
    installation(agent_dir, command).install()
    here.script(said("One."), said("Two."))
    with here.parent() as parent:
        parent.prompt("Go.")
        parent.prompt("Again.")
        (note,) = parent.notes()
        assert note.startswith("subdeck: ")
        assert ("/gone/python" in command) == ("subdeck connect pi" in note)
    assert set() == TOOLS & offered(here.requests[1])


@pytest.mark.lane
@NEWER_PI
def test_broken_settings(here: ParentLab, home: Path) -> None:
    """If a settings file is invalid, pi reports it once and works without the tools."""
    config = home / ".config" / "subdeck" / "config.yaml"
    config.write_text("agnet: offline\n")
    here.script(said("One."))
    with here.parent() as parent:
        parent.prompt("Go.")
        (note,) = parent.notes()
        assert "agnet" in note
        assert str(config) in note
    assert set() == TOOLS & offered(here.requests[0])
