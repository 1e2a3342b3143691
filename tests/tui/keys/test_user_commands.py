"""The user's own commands: a key, a program, and its arguments about the run."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.config.settings import OwnCommand, Settings
from subdeck.core.config.workspace import load_settings
from subdeck.core.errors import SettingsError
from subdeck.core.run.model import RunReason, RunResult, RunStatus
from subdeck.tui.keys.keymap import with_own_keys
from subdeck.tui.own_commands import code_fault, filled, own_actions

from ..fake_engine import FakeEngine, a_preset, a_run, run_id
from ..open_deck import Deck, opened


def an_engine(**commands: OwnCommand) -> FakeEngine:
    engine = FakeEngine(a_run(1, "completed", meta_cwd="/src/{run_id} x"), presets=[a_preset()])
    engine.settings = replace(Settings(), commands=commands)
    engine.cwd = "/"
    engine.result = lambda _: RunResult(  # type: ignore[method-assign]
        run_id=run_id(1), status=RunStatus.COMPLETED, reason=RunReason.DONE, written_by="wrapper", final_text="42\x1b[m"
    )
    return engine


def python(code: str, *words: str, **others: object) -> OwnCommand:
    return OwnCommand(key="ctrl+g", argv=(sys.executable, "-c", code, *words), title="my thing", **others)  # type: ignore[arg-type]


async def said(deck: Deck, words: str) -> None:
    await deck.until(lambda: any(words in toast for toast in deck.toasts), words)


async def test_command_is_told_about_the_run() -> None:
    """Placeholders are filled in within their words, and the program's last line is shown without hidden text."""
    code = "import sys; print('first'); print('\x1b[2J', sys.argv[1:-1], open(sys.argv[-1]).read().strip())"
    async with opened(an_engine(x=python(code, "id={run_id}", "{cwd}", "{other}", "{answer_file}"))) as deck:
        await deck.press("ctrl+g")
        await said(deck, f"my thing: ['id={run_id(1)}', '/src/{{run_id}} x', '{{other}}'] 42")


async def test_command_stands_beside_ours() -> None:
    """Footer, help and palette list the command by its title."""
    async with opened(an_engine(x=python("")), (200, 40)) as deck:
        await deck.until_text("^g my thing")
        await deck.press("?")
        await deck.type("my thing")
        await deck.until_text("my thing (your command")
        await deck.press("escape", ":")
        await deck.type("my thing")
        await deck.until_text("my thing  (^g)")


async def test_failure_is_said() -> None:
    """A failure shows the exit code with the last words, or the missing program."""
    failing = python("import sys; sys.exit('no such thing')")
    missing = OwnCommand(key="f9", argv=("/nowhere/at-all",))
    async with opened(an_engine(x=failing, y=missing)) as deck:
        await deck.press("ctrl+g")
        await said(deck, "my thing failed with exit code 1: no such thing")
        await deck.press("f9")
        await said(deck, "Cannot start /nowhere/at-all")


async def test_command_takes_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that needs the terminal gets it."""
    command = python("import sys; open(sys.argv[1], 'w').close()", str(tmp_path / "ran"), terminal=True)
    async with opened(an_engine(x=command)) as deck:
        monkeypatch.setattr(deck.app, "suspend", nullcontext)
        await deck.press("ctrl+g")
        await deck.until((tmp_path / "ran").exists, "the program")
        assert [] == deck.toasts


async def test_key_means_it_in_its_pane_only() -> None:
    """A command for the runs does not work in the transcript."""
    async with opened(an_engine(x=python("print('ran')", where="runs"))) as deck:
        await deck.press("3", "ctrl+g")
        assert [] == deck.toasts
        await deck.press("2", "ctrl+g")
        await said(deck, "my thing: ran")


async def test_readonly_and_foreign_runs_refuse_it() -> None:
    """A read-only app starts no command, and no program gets an untrusted run."""
    async with opened(an_engine(x=python("")), readonly=True) as deck:
        await deck.press("ctrl+g")
        await said(deck, "--readonly")
    engine = an_engine(x=python("", "{cwd}"))
    engine.tell(a_run(1, "completed", foreign=True))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.run is not None and deck.main.run.foreign, "the foreign run")
        await deck.press("ctrl+g")
        await said(deck, "This run is untrusted")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (OwnCommand(key="f9", argv=("a",)), '"f9" is already used for "stop"'),
        (OwnCommand(key="f9", argv=("a",), where="runs"), '"f9" is already used for "stop"'),
        (OwnCommand(key="ctrl+nonsense", argv=("a",)), "is not a key"),
    ],
)
def test_key_that_cannot_be_had_is_an_error(command: OwnCommand, what: str) -> None:
    """A key that you use twice is an error at the start, with the command and the key's other meaning."""
    with pytest.raises(SettingsError, match=what) as error:
        with_own_keys({"stop": "f9"}, own_actions({"mine": command}))
    assert error.value.what.startswith("app.commands.mine.key: ")


def test_settings_of_the_user_only(project_dir: Path) -> None:
    """Only the user's settings may define commands, in the form of the example."""
    project = paths.Project(str(project_dir))
    written = "commands:\n  git: {key: ctrl+g, argv: [lazygit, -p, '{cwd}'], title: git, terminal: true, where: runs}\n"
    user = Path(paths.user_settings_file())
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text(written)
    expected = OwnCommand(key="ctrl+g", argv=("lazygit", "-p", "{cwd}"), title="git", where="runs", terminal=True)
    assert {"git": expected} == load_settings(project).commands
    user.unlink()
    Path(project.home).mkdir(parents=True)
    Path(project.settings_file).write_text(written)
    with pytest.raises(SettingsError, match="commands"):
        load_settings(project)


def test_marks_are_filled_in_once() -> None:
    """A placeholder inside of a path is not filled in."""
    run = a_run(1, meta_cwd="/a/{answer_file}")
    assert ("/a/{answer_file}/x", run.run_id) == filled(("{cwd}/x", "{run_id}"), run, "/tmp/answer")


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "a;touch x", "a\nb", "'", "`x`", "a\x1b[2J"])
def test_a_directory_becomes_no_code(name: str) -> None:
    """A command whose code would contain a directory's name is started only if the name is a plain word."""
    hostile, plain = a_run(1, meta_cwd=f"/src/{name}"), a_run(1, meta_cwd="/src/a-b.c")
    for argv in (("sh", "-c", "cd {cwd}"), ("/usr/bin/env", "bash", "-lc", "x{cwd}"), ("perl", "-e", "{cwd}")):
        assert "would be run as code" in code_fault(argv, hostile)
        assert "" == code_fault(argv, plain) == code_fault((*argv[:-1], "$1", "sh", "{cwd}"), hostile)
    assert "" == code_fault(("lazygit", "-p", "{cwd}"), hostile)


async def test_a_command_whose_code_has_a_directory_in_it() -> None:
    """Such a command is not started, and a message explains how to pass the directory."""
    async with opened(an_engine(x=python("print('started') # {cwd}"))) as deck:
        await deck.press("ctrl+g")
        await said(deck, "would be run as code")
        assert not any("started" in toast and "not started" not in toast for toast in deck.toasts)


async def test_command_gets_what_a_run_changed() -> None:
    """`{patch_file}` is a patch that git can apply; without a patch the command is not started."""
    code = "import sys; print(open(sys.argv[-1]).read().strip())"
    engine = an_engine(x=python(code, "{patch_file}"))
    async with opened(engine) as deck:
        await deck.press("ctrl+g")
        await said(deck, "has no patch.")
        engine.work.patches[run_id(1)] = b"diff --git a/x b/x"
        await deck.press("ctrl+g")
        await said(deck, "my thing: diff --git a/x b/x")
    assert ("{cwd}",) == filled(("{cwd}",), None, "")
