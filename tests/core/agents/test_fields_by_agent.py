"""Each field of a preset with each agent: passed on, refused or warned about, never dropped silently."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from subdeck.core.agents.child import Start
from subdeck.core.agents.codex import agent, child
from subdeck.core.agents.loader import running_side
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.errors import SubdeckError
from subdeck.core.launch.plan import Plan, PlannedRun
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import PresetCatalog
from subdeck.core.presets.fields import FIELDS
from subdeck.core.presets.file import parse_preset
from subdeck.core.run.model import LaunchedBy, LauncherKind, PresetSource
from subdeck.core.spec.request import RunRequest

from .pi.session_file import SessionFile

pytestmark = pytest.mark.processes

AGENTS = {
    "pi": ("0.73.1", "fake/test"),
    "pi-1": ("1.5.2", "fake/test"),
    "claude": ("2.1.330", "anthropic/claude-sonnet-4-5"),
    "codex": ("0.169.0", "openai/gpt"),
    "codex-exec": ("0.100.0", "openai/gpt"),
    "acp": ("", ""),
    "offline": ("", ""),
}
"""By name: a version, and a model that the agent accepts."""


def kind_of(name: str) -> str:
    return name.partition("-")[0]


class Bench:
    """Plans a run of a preset on an agent that looks installed, and returns the agent's command and input."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root
        version, self.model = AGENTS[name]
        package = {"pi": "pi-coding-agent", "claude": "claude-code", "codex": "codex", "acp": "x", "offline": "x"}
        program = root / "installed" / "program"
        program.parent.mkdir()
        (program.parent / "package.json").write_bytes(
            msgspec.json.encode({"name": package[kind_of(name)], "version": version})
        )
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        own = AgentSettings((str(program),), kind=kind_of(name))
        settings = Settings(agents={name: own} if name != "offline" else {}, agent=name)
        self._workspace = Workspace(Project(str(root)), str(root), settings)

    def plan(self, fields: str) -> PlannedRun:
        """Plan a run. Raises SubdeckError if the agent refuses it."""
        model = f"model: {self.model}\n" if self.model and "model:" not in fields else ""
        head = f"name: scout\ndescription: d\n{model}{fields}"
        preset = parse_preset(f"---\n{head}\n---\n", str(self.root / "scout.md"), PresetSource.PROJECT)
        parent = str(self.root / "parent.jsonl")
        request = RunRequest(task="Look.", preset="scout", parent_session=parent)
        plan = Plan(request, self._workspace, lambda: PresetCatalog((preset,), (), ()))
        return plan.decide(background=True, launched_by=LaunchedBy("operator", LauncherKind.CLI))

    def told(self, planned: PlannedRun) -> str:
        """Return argv, environment and stdin, without the values that differ between runs."""
        meta = planned.meta
        run_dir = self.root / "run"
        run_dir.mkdir(exist_ok=True)
        (run_dir / "prompt.md").write_text(planned.prompt)
        if meta.system_prompt_path:
            (run_dir / "system-prompt.md").write_text(meta.system_prompt or "")
            meta = msgspec.structs.replace(meta, system_prompt_path=str(run_dir / "system-prompt.md"))
        start, side = Start(meta, str(run_dir)), running_side(meta.kind)
        command, stream = side.command(start), side.stream(start)
        said = [planned.prompt.encode(), stream.replies()]
        for line in (b'{"id":1,"result":{"userAgent":"x"}}', b'{"id":2,"result":{"config":{}}}') * command.pipe:
            stream.feed(line)
            said.append(stream.replies())
        if command.pipe and self.name == "codex":
            stream.feed(b'{"id":3,"result":{"thread":{"id":"t"}}}')
            said.append(stream.replies())
        shown = repr((command.argv, sorted(command.env.items()), said))
        for changing in (meta.run_id, meta.child_session_id or "no id"):
            shown = shown.replace(changing, "…")
        return shown


@pytest.fixture(params=AGENTS)
def bench(request: pytest.FixtureRequest, project_dir: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    problem = "it has no app-server" if request.param == "codex-exec" else ""
    for module in (agent, child):
        monkeypatch.setattr(module, "app_server_problem", lambda command: problem)
    SessionFile(project_dir / "parent.jsonl").turn("where")
    return Bench(request.param, project_dir)


TOLD, OURS, WARNED, REFUSED, ANYWAY = "told", "ours", "warned", "refused", "anyway"
"""The agent gets the field, the launcher or wrapper enforces it, a warning names the limit, the launch is refused, or
the agent does so by default.
"""

ASKED = "asked"
"""The wrapper enforces it with an agent that asks, and otherwise the launch is refused."""
LISTENS = "listens"
"""The wrapper enforces it in interactive runs. Other runs do so by default."""

CASES: dict[str, dict[str, str]] = {
    "model: x/y": {"": TOLD, "claude codex codex-exec": REFUSED, "offline": ANYWAY},  # prints that it uses none
    "thinking: high": {"": TOLD, "claude": WARNED},
    "thinking: off": {"": TOLD},
    "thinking: minimal": {"": TOLD, "claude": WARNED},
    "thinking: max": {"": TOLD, "pi claude codex codex-exec": WARNED},
    "tools: [read, grep]": {"": TOLD, "codex codex-exec acp": WARNED},  # the launch asks for a mode
    "tools: []": {"": TOLD, "acp": REFUSED},
    "tools: [bash]": {"": TOLD, "acp offline": REFUSED},
    "tools: [read, edit]": {"": TOLD, "codex codex-exec": WARNED, "acp": REFUSED},
    "tools: [read, no_such]": {"": WARNED},
    "denied_tools: [edit, write]": {"": TOLD, "codex codex-exec offline acp": WARNED},
    "denied_tools: [bash]": {"": TOLD, "codex codex-exec acp": REFUSED, "offline": WARNED},
    "denied_tools: [no_such]": {"": TOLD, "codex codex-exec acp": REFUSED, "pi offline": WARNED},
    "denied_tools: [mcp__shop__buy]": {"": TOLD, "codex codex-exec acp": REFUSED, "pi offline": WARNED},
    "prompt: Hi": {"": TOLD, "codex-exec acp": WARNED},
    "prompt: Hi\nprompt_mode: replace": {"": TOLD, "claude": WARNED, "acp": REFUSED},
    "prompt: Hi\nprompt_mode: replace\ncontext_files: true": {"": TOLD, "acp": REFUSED},
    "context_files: true": {"": ANYWAY, "acp": WARNED},
    "context_files: false": {"": TOLD, "claude acp": WARNED},
    "project_resources: true": {"": ANYWAY},
    # The offline agent loads nothing from the project.
    "project_resources: false": {"": WARNED, "pi-1": TOLD, "acp": REFUSED, "offline": ANYWAY},
    "inherit_context: true": {"": ANYWAY},  # like the setting
    "inherit_context: false": {"": TOLD},
    "structured_result: true": {"": TOLD, "codex-exec": REFUSED, "acp": WARNED},  # about the way the tool is passed
    "structured_result: true\nmax_attempts: 5": {"": TOLD, "codex-exec": REFUSED, "acp": WARNED},
    "sticky: true": {"": OURS},
    "session: none": {"": TOLD, "acp": REFUSED},
    "timeout: 5": {"": OURS},
    "stall: 5": {"": OURS},
    "interactive: true": {"": ANYWAY},
    "interactive: false": {"": LISTENS},
    "reply_timeout: 5": {"": OURS},
    "idle_timeout: 5": {"": OURS},
    "permissions: {allow: [read]}": {"": OURS},
    "permissions: {deny: [edit]}": {"": OURS, "pi offline": ASKED, "codex codex-exec acp": WARNED},
    "permissions: {deny: ['edit(x/**)']}": {"": ASKED, "acp": WARNED, "codex-exec": REFUSED},
    "permissions: {ask: ['bash(make *)']}": {"": ASKED, "codex acp": WARNED, "codex-exec": REFUSED},
    "permissions: {ask: [read]}": {"": ASKED, "codex codex-exec acp": REFUSED},
    "budget: 5": {"": OURS, "codex codex-exec acp": REFUSED},
    "max_tokens: 5": {"": OURS, "acp": REFUSED},
    "max_turns: 5": {"": OURS, "codex-exec acp": REFUSED},
}
"""By field: the effect for all agents except the named ones."""

OF_THE_PRESET = {
    "name",
    "description",
    "agent",
    "runner",
    "host",
    "requires",
    "approved_tools",
    "allowed_tools",
    "check",
    "worktree",
}
"""Fields that do not concern the agent, and other names of `tools`."""
SEEN_TO = ("limits", "session_lock", "max_attempts", "talk", "permissions", "answer_timeout", "idle_timeout")
"""Fields of the run's metadata that the wrapper enforces."""


def became(bench: Bench, fields: str) -> tuple[str, str]:
    """Return the effect of a field, and the error or warning."""
    without = bench.plan("")
    try:
        planned = bench.plan(fields)
    except SubdeckError as error:
        return REFUSED, str(error)
    meta = planned.meta
    if warnings := [text for text in meta.all_warnings if text not in without.meta.all_warnings]:
        return WARNED, "\n".join(warnings)
    if any(getattr(meta, name) != getattr(without.meta, name) for name in SEEN_TO if "structured_result" not in fields):
        return OURS, ""
    return (ANYWAY, "") if bench.told(planned) == bench.told(without) else (TOLD, "")


@pytest.mark.parametrize("fields", CASES)
def test_what_becomes_of_a_field(bench: Bench, fields: str) -> None:
    """A refusal names the field, the agent and the way out. A warning names the field or value."""
    table = CASES[fields]
    expected = next((what for names, what in table.items() if bench.name in names.split()), table[""])
    what, words = became(bench, fields)
    if "permissions" in fields and not bench.plan("").meta.talk:
        one_way = {ASKED: REFUSED, OURS: WARNED if "allow" in fields else OURS}
        is_left_out = fields == "permissions: {deny: [edit]}" and bench.name != "acp"
        expected = one_way.get(expected, expected if is_left_out else REFUSED)
    expected = {ASKED: OURS, LISTENS: OURS if bench.plan("").meta.talk else ANYWAY}.get(expected, expected)
    assert expected == what, words
    field, _, value = fields.splitlines()[-1].partition(": ")
    if what is REFUSED:
        refusal, _, way_out = words.partition("\n")
        assert bench.name in words and way_out, words
        assert any(name in refusal for name in (field, *fields.replace(":", "").split())), words
    elif what is WARNED:
        names = (
            field,
            *(name.strip("[]{},") for name in value.split()),
            *(("prompt",) if "structured_result" in fields else ()),
        )
        assert any(name in words for name in names), words


def test_every_field_of_a_preset_is_in_the_table() -> None:
    """A new field needs an entry for each agent."""
    named = {line.partition(":")[0] for fields in CASES for line in fields.splitlines()}
    assert FIELDS.keys() - OF_THE_PRESET == named
