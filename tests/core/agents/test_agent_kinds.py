"""Kinds of agents: the protocol suffices for a new one, and only the table and their packages name them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core.agent_kinds import KINDS, kind_of
from subdeck.core.agents.choice import choose_agent
from subdeck.core.agents.loader import launching_side, running_side
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.engine import Engine
from subdeck.core.mcp.clients import client
from subdeck.core.run.artifacts import read_result
from subdeck.core.run.model import RunReason, RunResult

from tests.factories import make_meta, make_run, run_to_end, write_settings

ROOT = Path(__file__).resolve().parents[3]
MAY_NAME_KINDS = {
    "core/cli/_aliases.py": "the former command `subdeck pi`",
    "core/cli/connect.py": "the command `subdeck connect pi`",
    "core/demo/_deck.py": "the agents of made-up runs",
    "core/engine.py": "the text for a kind of launcher",
    "core/mcp/clients.py": "programs with a settings file, each in its own format",
    "core/offline_agent/_stream.py": "the provider of its model",
    "core/presets/forms/claude.py": "a format of agent files",
    "core/presets/forms/codex.py": "a format of agent files",
    "core/presets/sources.py": "formats of agent files",
    "core/presets/recognition.py": "formats of agent files",
    "core/run/enumerations.py": "a stored kind of launcher",
}
"""Files with a string that is the name of a kind, and what it means there."""

TENTH = """
import sys
from subdeck.core.agents.child import Command
from subdeck.core.run.environment import child_environment
from subdeck.core.agents._stream import AgentStream
from subdeck.core.run.events import AssistantText

class Stream(AgentStream):
    def __init__(self, start):
        super().__init__()
        self.is_stdin_done = False
        self.say(open(start.prompt_path, "rb").read() + b"\\n")

    def take(self, line):
        if line.startswith(b"?"):
            self.say(b"yes" * int(line[1:]) + b"\\n")
            return []
        self.note(final_text=line.decode(), finished=True)
        self.finished_after, self.is_stdin_done = 0, True
        return [AssistantText(text=line.decode())]

class Tenth:
    def knows(self, lines): return lines[:1] == [b"tenth"]
    def command(self, start): return Command(start.meta.agent_command, child_environment(start.meta), pipe=True)
    def stream(self, start=None): return Stream(start)
    def explain(self, meta, stderr): return ""

CHILD = Tenth()
"""
"""A minimal agent for the wrapper: it gets its task on a pipe, and sends a request before it answers."""

WRAPPER = (
    "import sys; from subdeck.core.agent_kinds import KINDS, AgentKind; sys.path.insert(0, {place!r})\n"
    "KINDS['tenth'] = AgentKind(name='tenth', title='Tenth', package='tenth')\n"
    "from subdeck.core.wrapper.__main__ import main; main(sys.argv[1:])\n"
)


def run_tenth(project_dir: Path, program: str, **meta: object) -> tuple[RunResult, str]:
    """Supervise an agent of the tenth kind that is this Python program. Return its result and run directory."""
    engine = Engine.open(str(project_dir))
    place = project_dir / "kinds"
    (place / "tenth").mkdir(parents=True)
    (place / "tenth" / "__init__.py").touch()
    (place / "tenth" / "child.py").write_text(TENTH)
    command = (sys.executable, "-c", program)
    run, lock = make_run(engine.project, make_meta(agent="tenth", agent_kind="tenth", agent_command=command, **meta))
    run_dir = engine.project.run_dir(run.run_id)
    arguments = [run_dir, os.path.join(engine.project.active, run.run_id)]
    code = WRAPPER.format(place=str(place))
    subprocess.run([sys.executable, "-P", "-c", code, *arguments], check=True, capture_output=True, timeout=60)
    os.close(lock)
    result = read_result(run_dir)
    assert result is not None
    return result, run_dir


@pytest.mark.processes
def test_a_new_kind_is_a_dozen_lines(project_dir: Path) -> None:
    """A kind from elsewhere defines its agent's command and the meaning of its lines. The wrapper does the rest."""
    program = "task = input(); print('?1', flush=True); print(task + ': ' + input(), flush=True); input()"
    result, run_dir = run_tenth(project_dir, f"try:\n {program}\nexcept EOFError: pass", task="Are you there")

    assert (RunReason.DONE, "Are you there: yes") == (result.reason, result.final_text)
    events = [json.loads(line) for line in Path(run_dir, "events.jsonl").read_text().splitlines()]
    assert ["run_started", "assistant_text", "run_ended"] == [event["type"] for event in events]


@pytest.mark.processes
def test_a_child_that_reads_late_is_waited_for_by_nobody(project_dir: Path) -> None:
    """While a reply larger than a pipe's buffer is sent, the wrapper still reads the agent's output."""
    program = (
        "import sys; input(); print('?2000000', flush=True); sys.stderr.write('x' * 1000000); sys.stderr.flush();"
        " print(len(input()), flush=True)"
    )
    result, run_dir = run_tenth(project_dir, program)
    assert (RunReason.DONE, "6000000") == (result.reason, result.final_text)
    assert 1_000_000 == len(Path(run_dir, "stderr.log").read_bytes())


@pytest.mark.processes
def test_a_child_that_closes_its_stdin(project_dir: Path) -> None:
    """Replies that can no longer be sent are dropped, and the run has the agent's outcome."""
    program = "import os; input(); os.close(0); print('?1000000', flush=True); print('answer', flush=True)"
    result, _ = run_tenth(project_dir, program)
    assert (RunReason.DONE, "answer") == (result.reason, result.final_text)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_both_sides(kind: str) -> None:
    """Every kind in the table exists, with the names of the protocol."""
    assert launching_side(kind).program is not None
    assert running_side(kind).stream().facts.finished is False


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.mcp_client])
def test_every_mcp_client_has_a_file(name: str) -> None:
    """`subdeck connect` knows the settings file of each kind that the table calls an MCP client."""
    assert client(name, project="/project").path.startswith("/project/")


@pytest.mark.parametrize(("agent", "kind"), [("pi", "pi"), ("offline", "offline"), ("my-own", "pi")])
def test_the_kind_of_an_agent_that_says_none(agent: str, kind: str) -> None:
    """Runs of earlier versions, and agents in the settings without a kind, keep their kind."""
    assert kind == kind_of(agent)
    assert kind == make_meta(agent=agent).kind


def test_a_named_agent_of_a_kind() -> None:
    """The settings name an agent, its kind and its environment."""
    own = AgentSettings((sys.executable, "-x"), kind="offline", env={"TOKEN": "secret"})
    choice = choose_agent("reader", Settings(agents={"reader": own}))
    assert ("reader", "offline", {"TOKEN": "secret"}) == (choice.name, choice.kind, choice.env)


@pytest.mark.processes
def test_the_environment_of_a_named_agent_is_its_childs_alone(project_dir: Path) -> None:
    """Variables from the settings reach the agent but no file of the run, because they may be keys."""
    code = "import os, sys; print(os.environ['TOKEN'], 'SUBDECK_AGENT_ENVIRONMENT' in os.environ, file=sys.stderr)"
    write_settings(agents={"puppet": {"command": [sys.executable, "-c", code], "env": {"TOKEN": "a secret"}}})
    engine = Engine.open(str(project_dir))
    run = run_to_end(engine, "answer ok").run_id

    assert "a secret False" == Path(engine.project.run_dir(run), "stderr.log").read_text().strip()
    assert "a secret" not in Path(engine.project.run_dir(run), "meta.json").read_text()


def test_capabilities_are_asked_for_not_names() -> None:
    """Outside of the table and the packages of kinds, a name of a kind stands only where it means something else."""
    name = re.compile(f"([\"'])({'|'.join(KINDS)})\\1")
    files = {str(path.relative_to(ROOT)): path for tree in ("core", "tui") for path in (ROOT / tree).rglob("*.py")}
    naming = {
        file
        for file, path in files.items()
        if not file.startswith("core/agents/") and file != "core/agent_kinds.py" and name.search(path.read_text())
    }
    assert set(MAY_NAME_KINDS) == naming
