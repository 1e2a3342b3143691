"""Choosing the agent in the launch dialog: its description and the consequences of the choice."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from subdeck.core.agents.choice import choose_agent, model_list
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.engine import Engine
from subdeck.core.models.catalog import Model
from subdeck.tui.dialogs.pick import PickScreen
from subdeck.tui.launch._form import LaunchForm
from subdeck.tui.launch._memory import LastValues, change_memory, read_memory
from subdeck.tui.launch._values import LaunchValues
from subdeck.tui.widgets.form import Choice, ModelInput
from textual.app import App, ComposeResult
from textual.widgets import Input

from ..fake_engine import FakeEngine, a_preset, a_run
from ..launch_dialog import dialog_of, request_of
from ..open_deck import Deck, opened
from .test_fields import dialog_on, problem_of

CODEX_MODEL = "openai/gpt-6-sol"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code 2.1.330 without a login, and Codex 0.169.0 with a login and a list of models."""
    directory = tmp_path / "bin"
    directory.mkdir()
    packages = (("claude", "claude-code", "2.1.330"), ("codex", "codex", "0.169.0"))
    for name, package, version in packages:
        program = tmp_path / name / "cli"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\nexit 9\n")
        program.chmod(0o755)
        (program.parent / "package.json").write_text(json.dumps({"name": f"@x/{package}", "version": version}))
        (directory / name).symlink_to(program)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    (Path.home() / ".codex").mkdir()
    (Path.home() / ".codex/auth.json").write_text('{"OPENAI_API_KEY": "k"}')
    known = model_list(choose_agent("codex", Settings()))
    assert known
    known.keep((Model("openai", "gpt-6-sol", "codex"),), known.key)
    return directory


def agent_field(deck: Deck) -> Choice:
    return deck.app.screen.query_one("#agent", Choice)


async def chosen(deck: Deck, name: str) -> None:
    """Choose an agent in its field."""
    await deck.until(lambda: name in agent_field(deck).words, f"{name} to be offered")
    agent_field(deck).put(name)


async def test_the_dialog_says_what_each_agent_is(programs: Path) -> None:
    """The agent comes first, with version and login; `auto` is chosen and names its current agent."""
    async with opened(FakeEngine(), (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until_text("Agent    (•) auto  ( ) claude  ( ) codex  ( ) offline")
        await deck.until_text("now claude 2.1.330 · not logged in: run claude, then /login")
        rows = deck.screen_text.splitlines()
        at = {
            text: next(at for at, row in enumerate(rows) if text in row) for text in ("Agent ", "should the", "Model ")
        }
        assert sorted(at.values()) == list(at.values())
        assert request_of(dialog).agent is None
        assert dialog.focused is dialog._fields.task_area
        await chosen(deck, "codex")
        await deck.until_text("0.169.0 · logged in")
        assert request_of(dialog).agent == "codex"
        await chosen(deck, "offline")
        await deck.until_text("needs no login, uses no model")


async def test_opening_starts_no_process(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents and models are read from files and caches; agents are asked once the model field has the focus."""
    started: list[object] = []

    def note(*arguments: object, **_: object) -> None:
        started.append(arguments)
        raise OSError("not in this test")

    monkeypatch.setattr(subprocess.Popen, "__init__", note)
    monkeypatch.setattr(os, "posix_spawn", note)
    monkeypatch.setattr("subdeck.core.agents.model_refresh.refresh_apart", note)
    async with opened(FakeEngine(), (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until(dialog._looked_up.is_set, "what files tell")
        await deck.until_text("now claude 2.1.330")
        await chosen(deck, "codex")
        await deck.until(lambda: CODEX_MODEL in dialog.query_one(ModelInput).known, "the kept models")
        await chosen(deck, "claude")
        await deck.until(lambda: "anthropic/sonnet" in dialog.query_one(ModelInput).known, "the models of Claude Code")
        assert started == []
        dialog.query_one(ModelInput).focus()
        await deck.until(lambda: started, "the question for models")


async def test_models_follow_the_agent(programs: Path) -> None:
    """The model field offers the chosen agent's models, and all of them for `auto`."""
    async with opened(FakeEngine(), (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        field = dialog.query_one(ModelInput)
        for name, expected in (
            ("claude", (True, False)),
            ("codex", (False, True)),
            ("offline", (False, False)),
            ("auto", (True, True)),
        ):
            await chosen(deck, name)
            await deck.until(
                lambda expected=expected: expected == ("anthropic/sonnet" in field.known, CODEX_MODEL in field.known),
                f"the models of {name}",
            )


async def test_auto_follows_the_model(programs: Path) -> None:
    """The dialog shows for `auto` the agent that the run would get with this model."""
    async with opened(FakeEngine(), (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until(lambda: CODEX_MODEL in dialog.query_one(ModelInput).known, "the kept models")
        dialog.query_one("#model", Input).value = CODEX_MODEL
        await deck.until_text("now codex 0.169.0 · logged in")
        assert request_of(dialog).agent == "codex"
        assert dialog._fields.values.agent == "auto"


async def test_the_agents_as_a_list(programs: Path) -> None:
    """A key lists all agents with their facts, missing ones with the way out, and chooses one."""
    async with opened(FakeEngine(), (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until(dialog._looked_up.is_set, "the agents")
        await deck.press("ctrl+g")
        await deck.until(lambda: isinstance(deck.app.screen, PickScreen), "the list")
        for text in ("claude   2.1.330 · not logged in", "pi       not usable here: pi is not on PATH", "npm install"):
            assert text in deck.screen_text
        await deck.press("home", "down", "enter")
        await deck.until(lambda: deck.app.screen is dialog, "the dialog")
        assert (dialog._fields.values.agent, request_of(dialog).agent) == ("pi", "pi")


async def test_a_presets_agent_that_is_missing(programs: Path, project_dir: Path) -> None:
    """A preset's missing agent is reported beside the field with the way out, and another one can be chosen."""
    real = Engine.open(str(project_dir))
    engine = FakeEngine(presets=[a_preset(agent="pi", model=None)])
    preset = engine.catalog.presets[0]
    Path(real.project.home).mkdir(parents=True, exist_ok=True)
    Path(real.project.home, "repo-scout.md").write_text(
        f"---\nname: {preset.name}\ndescription: d\nagent: pi\nmodel: inherit\n---\n"
    )
    engine.check = real.check  # type: ignore[method-assign]
    engine.cwd = str(project_dir)
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until(lambda: "pi is not on PATH: install it" in problem_of(dialog, "agent"), "the way out")
        assert (agent_field(deck).value, request_of(dialog).agent) == ("pi", None)
        assert "from the preset" in deck.screen_text
        await chosen(deck, "claude")
        await deck.until(lambda: not problem_of(dialog, "agent"), "no problem")
        assert request_of(dialog).agent == "claude"


async def test_the_last_agent_is_remembered(programs: Path) -> None:
    """The next dialog of the preset begins with the last launch's agent; if that is missing, with neither it nor its
    model.
    """
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        await chosen(deck, "codex")
        dialog.query_one("#model", Input).value = CODEX_MODEL
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert ["codex"] == [request.agent for request in engine.launched]
        assert read_memory(engine.project).values_of("repo-scout") == LastValues(agent="codex", model=CODEX_MODEL)
        dialog = await dialog_on(deck)
        await deck.until_text("from last launch: agent, model")
        assert request_of(dialog).agent == "codex"
    (programs / "codex").unlink()
    async with opened(FakeEngine(presets=[a_preset()]), (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until(dialog._looked_up.is_set, "the agents")
        assert (request_of(dialog).agent, request_of(dialog).model) == (None, None)


async def test_launching_at_once_waits_for_the_remembered_agent(programs: Path) -> None:
    """A task and the launch key in one packet get the agent that the dialog would show."""
    engine = FakeEngine(presets=[a_preset()])
    change_memory(engine.project, lambda memory: memory.after_launch("repo-scout", "t", LastValues(agent="codex")))
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await deck.press("n", "x", "ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
    assert ["codex"] == [request.agent for request in engine.launched]


def test_a_rerun_keeps_its_agent_unless_it_is_changed() -> None:
    """Rerun with edits begins with the agent of the run; a follow-up cannot have another one."""
    from subdeck.tui.launch._form import Reuse

    run = a_run(1, "completed", meta_agent="claude", meta_child_session_id="s")
    form = LaunchForm(a_preset(), Settings(), "/src/shop", run=run, reuse=Reuse.EVERYTHING)
    assert ("claude", "from that run") == (form.first.agent, form.agent_words(form.first, None))
    for agent, expected in (("claude", "claude"), ("codex", "codex"), ("auto", "auto")):
        assert expected == form.request(LaunchValues(task="t", agent=agent)).agent
    going_on = LaunchForm(a_preset(), Settings(), "/src/shop", run=run, reuse=Reuse.SESSION)
    assert "claude" == going_on.request(LaunchValues(task="t", agent="codex")).agent


async def test_a_follow_up_shows_its_agent(programs: Path) -> None:
    """The agent of a conversation is shown in its field, which takes no keys."""
    run = a_run(1, "completed", meta_agent="codex", meta_child_session_id="s", meta_session_path="x")
    async with opened(FakeEngine(run, presets=[a_preset()])) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await dialog_of(deck, "2", "s")
        assert ("codex", True) == (agent_field(deck).value, agent_field(deck).disabled)


async def test_other_machines_may_have_any_agent(programs: Path) -> None:
    """With the runner hosts all agents can be chosen, even ones missing here."""
    engine = FakeEngine(presets=[a_preset()])
    engine.settings = Settings(hosts=HostsSettings(ssh=("me@h07",)))
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until(dialog._looked_up.is_set, "the agents")
        assert "pi" not in agent_field(deck).words
        dialog.query_one("#runner", Choice).put("hosts")
        await chosen(deck, "pi")
        await deck.until_text("not usable here: pi is not on PATH")
        assert (request_of(dialog).agent, request_of(dialog).runner) == ("pi", "hosts")


async def test_a_saved_preset_names_the_agent(programs: Path, project_dir: Path) -> None:
    """A chosen agent is written into the preset made from a one-off task."""
    real = Engine.open(str(project_dir))
    engine = FakeEngine()
    engine.project, engine.cwd = real.project, str(project_dir)
    async with opened(engine) as deck:
        dialog = await dialog_of(deck, "N")
        dialog._fields.task_area.text = "t"
        await chosen(deck, "codex")
        dialog.query_one("#save-name", Input).value = "mine"
        dialog.query_one("#save-description", Input).value = "What it is for."
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
    assert "agent: codex\n" in Path(real.project.home, "mine.md").read_text()


async def test_agents_of_the_settings(programs: Path) -> None:
    """An agent from the settings is listed with the others, and the one they choose is not requested."""
    engine = FakeEngine()
    gemini = AgentSettings(command=(str(programs / "claude"), "--acp"), kind="acp")
    engine.settings = Settings(agent="codex", agents={"gemini": gemini})
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until(lambda: "gemini" in agent_field(deck).words, "the agent of the settings")
        await deck.until_text("0.169.0 · logged in · from your settings")
        assert request_of(dialog).agent is None
        await chosen(deck, "gemini")
        await deck.until_text("version unknown · login unknown")
        assert request_of(dialog).agent == "gemini"


class Chooser(App[None]):
    def compose(self) -> ComposeResult:
        yield Choice(tuple(f"agent-{number}" for number in range(12)), "agent-0", name="agent")


async def test_more_words_than_there_is_room_for() -> None:
    """The chosen word is always visible, signs stand for hidden ones, and a click hits the word under it."""
    async with Chooser().run_test(size=(50, 3)) as pilot:
        choice = pilot.app.query_one(Choice)

        def shown() -> str:
            return choice.render_line(0).text.rstrip()

        assert "(•) agent-0  ( ) agent-1  ( ) agent-2 …" == shown()
        for _ in range(6):
            choice.action_choose(1)
            await pilot.pause()
            assert f"(•) {choice.value}" in shown()
            assert len(shown()) <= 50
        assert shown().startswith("… ( ) ")
        assert shown().endswith(" …")
        await pilot.click(choice, offset=(3, 0))
        assert "agent-4" == choice.value
        for _ in range(7):
            choice.action_choose(1)
        await pilot.pause()
        assert shown().startswith("… ") and shown().endswith("(•) agent-11")
