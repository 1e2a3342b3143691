"""`subdeck completion`: the values that shells complete, in the real shells if they are installed."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from subdeck.core.cli import _completion
from subdeck.core.cli._completion import SCRIPTS
from subdeck.core.engine import Engine
from subdeck.core.run.model import RunMeta

from tests.core.command_line import subdeck, write_preset
from tests.factories import make_finished, make_meta
from tests.house.reference.commands import commands

pytestmark = pytest.mark.processes

PROGRAMS = Path(sys.executable).parent
PATIENCE_S = 20.0
FREE = {
    "ADDRESS", "COMMAND", "CSV", "DAYS", "DEVICE", "DOLLARS", "FILE:N,N…", "HASH", "HOST", "ID", "LABEL=N", "MB", "N",
    "NAME", "NAME=COUNT", "PATTERN", "REQUEST", "S", "TEXT", "URL",
}  # fmt: skip
"""Names of values in the help without completion: free texts and numbers."""


@pytest.fixture
def run(project_dir: Path, home: Path) -> RunMeta:
    """A finished run, with a preset, a role, a model and an agent in the settings."""
    write_preset(project_dir)
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        "agents: {mine: {command: [/bin/true]}}\nagent: mine\nmodels: ['ollama/llama3:8b', 'ollama/llama3:70b']\n"
        "roles: {fast: ollama/llama3:8b}\nchecks: {tests: [make, test]}\n"
    )
    return make_finished(Engine.open(str(project_dir)).project, make_meta(preset="scout", task="find the token"))


def completed(line: str, cwd: Path) -> list[tuple[str, ...]]:
    """Return the completions of a line: kind, value and description of each."""
    done = subdeck("completion", "zsh", "--line", line, cwd=cwd)
    assert (0, "") == (done.code, done.err)
    return [tuple(row.split("\t")) for row in done.out.splitlines()]


def values(line: str, cwd: Path) -> list[str]:
    return [value for _, value, _ in completed(line, cwd)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("subdeck sta", ["status"]),
        ("subdeck hosts ser", ["serve"]),
        ("subdeck wait --ti", ["--timeout"]),
        ("subdeck run ", ["scout"]),
        ("subdeck run scout ", []),
        ("subdeck run --no-preset ", []),
        ("subdeck presets s", ["scout"]),
        ("subdeck run --agent m", ["mine"]),
        ("subdeck run --model ", ["ollama/llama3:8b", "ollama/llama3:70b", "@fast"]),
        ("subdeck run --model=@", ["--model=@fast"]),
        ("subdeck run --check ", ["tests"]),
        ("subdeck run --runner t", ["tmux"]),
        ("subdeck connect c", ["claude", "codex"]),
        ("subdeck completion b", ["bash"]),
        ("FORCE=1 subdeck statu", ["status"]),
        ("subdeck nosuch --", []),
        ("subdeck nosuch ", []),
        ("subdeck status 'zz", []),
        ("subdeck help statu", ["status"]),
        ("subdeck help connect cl", ["claude"]),
    ],
)
def test_what_completes_a_line(line: str, expected: list[str], project_dir: Path, run: RunMeta) -> None:
    """Commands, options and values are completed from the project and the settings."""
    assert values(line, project_dir) == expected


def test_runs_are_completed_with_what_they_are(project_dir: Path, run: RunMeta) -> None:
    """A run completes to its short id, with preset and task, or to a full id that was started. Each appears once."""
    short = run.short_id
    assert completed("subdeck logs ", project_dir) == [("plain", short, "scout: find the token")]
    assert values(f"subdeck logs {short[:3]}", project_dir) == [short]
    assert values(f"subdeck logs {run.run_id[:12]}", project_dir) == [run.run_id]
    assert values(f"subdeck status {short} ", project_dir) == []
    assert values("subdeck --run ", project_dir) == [short]
    assert values("subdeck reply ", project_dir) == [short]
    assert values(f"subdeck reply {short} ", project_dir) == ["allow", "deny"]


def test_deleted_runs_are_completed_for_undo(project_dir: Path, run: RunMeta) -> None:
    """Deleted runs are completed from the trash."""
    assert 0 == subdeck("rm", run.run_id, cwd=project_dir).code
    assert values("subdeck rm ", project_dir) == []
    assert values("subdeck rm --undo ", project_dir) == [run.short_id]


def test_the_directory_option_counts(project_dir: Path, tmp_path: Path, run: RunMeta) -> None:
    """After -C, the runs and presets are those of that directory."""
    assert values(f"subdeck -C {shlex.quote(str(project_dir))} logs ", tmp_path) == [run.short_id]
    assert completed("subdeck -C ", tmp_path) == [("dir", "", "")]


def test_what_cannot_be_read_completes_nothing(project_dir: Path, run: RunMeta, home: Path) -> None:
    """With broken settings, completion prints no error."""
    (home / ".config" / "subdeck" / "config.yaml").write_text("nosuch: [\n")
    assert values("subdeck run --model ", project_dir) == []


def test_no_agent_is_started(project_dir: Path, home: Path, run: RunMeta) -> None:
    """Models come from files, and no agent is started for them."""
    asked = home / "asked"
    programs = home / "programs"
    programs.mkdir()
    for name in ("pi", "claude", "codex"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {asked}\n")
        (programs / name).chmod(0o755)
    (home / ".config" / "subdeck" / "config.yaml").write_text("agent: auto\n")
    for option in ("--model", "--agent"):
        line = f"subdeck run {option} "
        done = subdeck(
            "completion", "bash", "--line", line, "--word", "", cwd=project_dir, PATH=f"{programs}:{os.environ['PATH']}"
        )
        assert (0, "") == (done.code, done.err)
    assert not asked.exists()


def test_texts_from_outside_are_one_plain_line(project_dir: Path, run: RunMeta) -> None:
    """Names of runs and presets can neither write to the terminal nor add a completion."""
    name = "evil\\u001b[31m\\nrm -rf"
    path = project_dir / ".pi" / "subagents" / "evil.md"
    path.write_text(f'---\nname: "{name}"\ndescription: "a\\u001b[31mb\\nc\\td"\n---\nx\n')
    write_preset(project_dir, "fine", extra="")
    fine = project_dir / ".pi" / "subagents" / "fine.md"
    fine.write_text('---\nname: fine\ndescription: "a\\u001b[31mb\\nc\\td"\n---\nx\n')
    done = subdeck("completion", "zsh", "--line", "subdeck run ", cwd=project_dir)
    assert "\x1b" not in done.out
    rows = [row.split("\t") for row in done.out.splitlines()]
    assert ["fine", "scout"] == [row[1] for row in rows]
    assert {3} == {len(row) for row in rows}


def test_every_value_is_completed_or_free() -> None:
    """A new kind of value in the help needs a completion, or an entry in FREE."""
    named = {
        _completion.name_of(command.command, param)
        for command in commands()
        for param in command.command.params
        if param.metavar and not isinstance(param.type, click.Choice) and not getattr(param, "hidden", False)
    }
    known = {*_completion.SOURCES, *_completion.PATHS}
    free = {name.rpartition(" ")[2] if name.endswith(" NAME") else name for name in named - known}
    assert free <= FREE
    assert known <= named


# --- the shells ------------------------------------------------------------------------------------------------------


def shell_environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "ready> "}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_one_of_its_shell(shell: str, project_dir: Path) -> None:
    """The shell reads the script without errors. With --json it is a field."""
    program = _program(shell)
    done = subdeck("completion", shell, cwd=project_dir)
    read = subprocess.run([program, "-n"], input=done.out, capture_output=True, text=True)
    assert (0, "") == (read.returncode, read.stderr)
    document = subdeck("completion", shell, "--json", cwd=project_dir).document
    assert document == {"shell": shell, "script": done.out}


def _program(shell: str) -> str:
    if program := shutil.which(shell):
        return program
    pytest.skip(f"{shell} is not installed here")


class Terminal:
    """A shell in a terminal with typed keys."""

    def __init__(self, *command: str, cwd: Path) -> None:
        self.end, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=shell_environment(),
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def type(self, keys: str, until: str) -> str:
        """Type keys and wait until a pattern is shown. Return the output since then."""
        os.write(self.end, keys.encode())
        deadline = time.monotonic() + PATIENCE_S
        shown = ""
        while not re.search(until, shown):
            if not select.select([self.end], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"waited for {until!r} in {shown!r}")
            shown += os.read(self.end, 65536).decode(errors="replace")
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.end)


def test_bash_completes(project_dir: Path, run: RunMeta) -> None:
    """In bash, a tab completes commands, options, runs, and models with a colon."""
    terminal = Terminal(_program("bash"), "--norc", "--noprofile", "-i", cwd=project_dir)
    try:
        terminal.type("", "ready> ")
        terminal.type('eval "$(subdeck completion bash)"; echo set$((1+1))\n', "set2")
        terminal.type("echo subdeck; subdeck statu\t", "status ")
        terminal.type("\x15subdeck wait --tim\t", "--timeout ")
        terminal.type(f"\x15subdeck logs {run.short_id[:4]}\t", f"{run.short_id} ")
        terminal.type("\x15subdeck run --model ollama/llama3:8\t", "llama3:8b ")
        terminal.type("\x15subdeck run --model=@f\t", "@fast ")
        terminal.type("\x15subdeck import .pi/suba\t", ".pi/subagents/")
    finally:
        terminal.close()


def test_zsh_completes(project_dir: Path, run: RunMeta, home: Path) -> None:
    """In zsh, a tab completes as in bash, and a second one shows descriptions."""
    (home / ".zshrc").write_text("")
    terminal = Terminal(_program("zsh"), "-f", "-i", cwd=project_dir)
    try:
        setup = "autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste; PS1='ready> '"
        terminal.type(f'{setup}; eval "$(subdeck completion zsh)"; echo set$((1+1))\n', "set2")
        terminal.type("subdeck statu\t", "status ")
        terminal.type(f"\x15subdeck logs {run.short_id[:4]}\t", f"{run.short_id} ")
        terminal.type("\x15subdeck run --model ollama/llama3:8\t", "llama3:8b ")
        terminal.type("\x15subdeck run --model=@f\t", "@fast ")
        terminal.type("\x15subdeck import .pi/suba\t", "gents/")
        terminal.type("\x15subdeck st\t\t", "Stop runs")
    finally:
        terminal.close()


def test_fish_completes(project_dir: Path, run: RunMeta) -> None:
    """fish completes like the others, with descriptions."""

    def complete(line: str) -> str:
        script = f"subdeck completion fish | source; complete -C {shlex.quote(line)}"
        done = subprocess.run(
            [_program("fish"), "--no-config", "-c", script],
            cwd=project_dir, env=shell_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    assert "status\tList " in complete("subdeck statu")
    assert f"{run.short_id}\tscout: find the token\n" == complete("subdeck logs ")
    assert "--model=@fast" in complete("subdeck run --model=@f")
    assert "ollama/llama3:8b" in complete("subdeck run --model ollama/llama3:8")
    assert ".pi/subagents/" in complete("subdeck import .pi/suba")
