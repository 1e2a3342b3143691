"""Errors that scripts handle have a stable code, and `--json` prints it."""

from __future__ import annotations

import ast
import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core import errors
from subdeck.core.error_codes import CODES, EXIT_CODES
from subdeck.core.git.program import GitResult, failure
from subdeck.core.models.catalog import Catalog, Listing, read_literal

from tests.core.command_line import SUBDECK, run_dirs, subdeck, write_preset
from tests.core.offline_agent.offline_reader import SHOP, write_tree
from tests.factories import write_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

CORE = Path(errors.__file__).resolve().parent
TREES = (CORE, CORE.parent / "tui")
ASKS = "Where is the token checked? Ask me which file."


class World:
    """A project for runs, and its user's home."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self.home = home
        write_tree(project, SHOP)
        write_preset(project)
        self.settings("agent: offline")

    def settings(self, *lines: str) -> None:
        path = self.home / ".config" / "subdeck" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")

    def code(self, *words: str, **environment: str) -> str:
        """Run a command that fails. Return its error code."""
        cut = words.index("--") if "--" in words else len(words)
        done = subdeck(*words[:cut], "--json", *words[cut:], cwd=self.project, **environment)
        assert done.code not in (0, 1), done
        assert set(done.error) == {"code", "what", "where", "hint"}
        return done.error["code"]

    def run(self, *words: str) -> str:
        return subdeck("run", "scout", "list files", *words, "--json", cwd=self.project).document["runId"]

    def asking(self) -> str:
        run_id = subdeck("bg", "scout", ASKS, "--json", cwd=self.project).document["runId"]
        wait_until(lambda: subdeck("requests", "--json", cwd=self.project).document["requests"], "its request")
        return run_id

    def code_while_asking(self, *words: str) -> str:
        """Run a command on a run with a question, and stop the run."""
        run_id = self.asking()
        try:
            return self.code(words[0], run_id, *words[1:])
        finally:
            subdeck("stop", run_id, "--kill", cwd=self.project)
            subdeck("wait", run_id, cwd=self.project)


@pytest.fixture
def world(project_dir: Path, home: Path) -> World:
    return World(project_dir, home)


def launch(*words: str) -> Callable[[World], str]:
    return lambda world: world.code("run", "scout", "list files", *words)


def call(*words: str) -> Callable[[World], str]:
    return lambda world: world.code(*words)


def with_settings(*lines: str, words: tuple[str, ...] = ("status",)) -> Callable[[World], str]:
    def result(world: World) -> str:
        world.settings(*lines)
        return world.code(*words)

    return result


def agent_unavailable(world: World) -> str:
    program = world.home / "agent"
    program.write_text("")
    world.settings("agents:", f"  mine: {{command: [{program}]}}")
    return launch("--agent", "mine")(world)


def broken_preset(world: World) -> str:
    write_preset(world.project, "broken", extra="tools: {}\n")
    return world.code("presets", "broken")


def unenforceable(world: World) -> str:
    write_preset(world.project, extra="talk: false\npermissions: {ask: ['bash(git *)']}\n")
    return launch()(world)


def ambiguous(world: World) -> str:
    first, _ = world.run(), world.run()
    return world.code("status", first[:4])


def deleted(world: World) -> str:
    run_id = world.run()
    assert 0 == subdeck("rm", run_id, cwd=world.project).code
    return world.code("status", run_id)


def untrusted_run(world: World) -> str:
    run_id = world.run()
    (world.home / ".local" / "state" / "subdeck" / "key").unlink()
    return world.code("send", run_id, "more")


def untrusted_project(world: World) -> str:
    home = world.project / ".pi" / "subagents"
    home.rename(world.home / "elsewhere")
    home.symlink_to(world.home / "elsewhere")
    return world.code("status")


def not_interactive(world: World) -> str:
    write_settings()
    write_preset(world.project, extra="talk: false\n")
    run_id = subdeck("bg", "scout", "hang", "--json", cwd=world.project).document["runId"]
    try:
        return world.code("send", run_id, "more")
    finally:
        subdeck("stop", run_id, "--kill", cwd=world.project)
        subdeck("wait", run_id, cwd=world.project)


def no_repository(world: World) -> str:
    plain = world.home / "plain"
    plain.mkdir()
    write_preset(plain)
    return world.code("-C", str(plain), "run", "scout", "list files", "--worktree")


def unwritable_output(world: World) -> str:
    with open("/dev/full", "wb") as full:
        command = [*SUBDECK, "presets", "--json"]
        done = subprocess.run(command, cwd=world.project, stdout=full, stderr=subprocess.PIPE)
    return json.loads(done.stderr)["error"]["code"]


def unknown_model(_: World) -> str:
    with pytest.raises(errors.ModelError) as fault:
        read_literal("nosuch/model", Catalog((lambda: Listing((), own=True, complete=True, source="a list"),)))
    return fault.value.code


def unlaunchable(world: World) -> str:
    runs = world.project / ".pi" / "subagents" / "active"
    runs.write_text("")
    return launch()(world)


def of_git(said: str) -> Callable[[World], str]:
    return lambda _: failure(("status",), GitResult(128, b"", said), "/shop").code


def of_system(error: Exception) -> Callable[[World], str]:
    return lambda _: errors.explained(error).code


CASES: dict[str, Callable[[World], str]] = {
    "agent.not_installed": launch("--agent", "pi"),
    "agent.unavailable": agent_unavailable,
    "agent.unknown": launch("--agent", "nosuch"),
    "budget.exceeded": with_settings(
        "agent: offline",
        "day_budget: 1",
        "prices: {'*': {input: 1, output: 1}}",
        words=("run", "scout", "list files", "--budget", "5"),
    ),
    "check.not_found": launch("--check", "nosuch"),
    "directory.not_found": call("-C", "nowhere", "status"),
    "disk.full": of_system(OSError(errno.ENOSPC, "No space left on device", "/x")),
    "file.not_found": call("run", "--no-preset", "list files", "--prompt", "nowhere"),
    "file.permission_denied": of_system(PermissionError(errno.EACCES, "Permission denied", "/x")),
    "git.failed": of_git("fatal: bad revision"),
    "git.locked": of_git("fatal: Unable to create '/shop/.git/index.lock': File exists."),
    "git.missing": lambda world: world.code("apply", world.run(), "--yes", PATH="/nowhere"),
    "git.not_a_repository": no_repository,
    "hosts.none": launch("--runner", "hosts"),
    "internal.unexpected": of_system(ValueError("x")),
    "launch.failed": unlaunchable,
    "model.invalid": launch("--model=-x"),
    "model.invalid_role": launch("--model", "@nosuch"),
    "model.missing": with_settings(
        "agents: {mine: {command: [/bin/true]}}", words=("run", "scout", "list files", "--agent", "mine")
    ),
    "model.not_found": unknown_model,
    "output.failed": unwritable_output,
    "permissions.not_enforceable": unenforceable,
    "preset.invalid": broken_preset,
    "preset.not_found": call("run", "nosuch", "list files"),
    "project.untrusted": untrusted_project,
    "request.changed": lambda world: world.code_while_asking("reply", "src/auth.py", "--hash", "0000"),
    "request.not_found": lambda world: world.code_while_asking("reply", "q9", "src/auth.py"),
    "run.ambiguous": ambiguous,
    "run.busy": lambda world: world.code_while_asking("rm"),
    "run.deleted": deleted,
    "run.finished": lambda world: world.code("send", world.run(), "more"),
    "run.not_found": call("status", "nosuch"),
    "run.not_interactive": not_interactive,
    "run.untrusted": untrusted_run,
    "runner.tmux_missing": lambda world: world.code("run", "scout", "x", "--runner", "tmux", PATH="/nowhere"),
    "runner.unavailable": launch("--runner", "nosuch"),
    "settings.invalid": with_settings("nosuch: 1"),
    "task.empty": call("run", "scout", " "),
    "undo.nothing": call("undo", "--yes"),
    "usage.confirmation_required": call("init"),
    "usage.invalid_value": call("clean", "--keep", "-3"),
    "usage.missing_argument": call("logs"),
    "usage.terminal_required": lambda world: world.code("watch", world.run()),
    "usage.unexpected_argument": call("presets", "a", "b"),
    "usage.unknown_command": call("nosuch"),
    "usage.unknown_option": call("status", "--nosuch"),
}


@pytest.mark.parametrize("code", CODES)
def test_an_error_has_its_code(code: str, world: World) -> None:
    """The command, or the function that makes its error, fails with this code."""
    assert CASES[code](world) == code


def test_every_code_is_described() -> None:
    """Every code in the source is in the table, and every code in the table is in the source."""
    written: set[str] = set()
    for path in (path for tree in TREES for path in tree.rglob("*.py") if path.name != "error_codes.py"):
        text = path.read_text(encoding="utf-8")
        if "code=" not in text and not any(code in text for code in CODES):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CODES:
                written.add(node.value)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(
                ("Error", "Unavailable", "Run", "Busy")
            ):
                written |= {
                    keyword.value.value
                    for keyword in node.keywords
                    if keyword.arg == "code"
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, str)
                }
    assert written == set(CODES)


def test_an_error_without_a_code_has_an_empty_one(world: World) -> None:
    """The field is always present."""
    run_id = world.run()
    assert "" == world.code("status", run_id, "--all")
    assert len(run_dirs(world.project)) == 1


def test_exit_codes_are_described() -> None:
    """Every exit code of the command line is in the table."""
    from subdeck.core.cli import output

    named = {value for name, value in vars(output).items() if name.isupper() and isinstance(value, int)}
    sizes = {output.ERROR_LINE, output.WIDE, output.LEAST, output.BLOCK}
    assert named - sizes | set(output.EXIT_CODES.values()) | {0} == set(EXIT_CODES)
