"""Presets in the app: resolved facts before a launch, known models, copying the bundled one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from subdeck.core.agents.choice import choose_agent, model_list
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.launch.model_choices import model_choices
from subdeck.core.launch.preview import Obstacle
from subdeck.core.starters import NAMES, plan_starters, write_starters
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.launch._start import written_facts
from subdeck.tui.presets._copy import CopyPresetScreen
from subdeck.tui.widgets.form import ModelInput
from textual.widgets import Input

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import opened
from ..real_engine import offline_engine, until_screen

PRESET = """\
---
name: scout
description: Finds things
model: fake/test
thinking: high
tools: read, grep, grepp
timeout: 10m
finalize: true
---
Look.
"""


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_the_dialog_says_what_a_run_would_get(project_dir: Path, size: tuple[int, int]) -> None:
    """Origin, description, thinking, resolved tools, limits and warnings have one line each."""
    place = project_dir / ".pi/subagents"
    place.mkdir(parents=True)
    (place / "scout.md").write_text(PRESET)
    async with opened(offline_engine(project_dir), size) as deck:  # type: ignore[arg-type]
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await deck.press("n")
        await until_screen(deck, LaunchScreen)
        await deck.until_text("! grepp is left out: the agent does not have it")
        shown = deck.screen_text
        for text in ("project", "Finds things", "Thinking high", "Tools    read, grep, subagent_finalize"):
            assert text in shown
        assert "Limits   timeout 10:00, structured result, at most 3 attempts" in shown


def test_facts_as_written() -> None:
    """Before the lookup the dialog shows the preset's own values."""
    facts = written_facts(a_preset(thinking="low", denied_tools=("bash",), tools=None, max_turns=5))

    assert ("low", "all but bash", "5 turns") == (facts.thinking, facts.tools, facts.limits)


async def test_known_models_are_offered() -> None:
    """The field completes typed text, down goes through matching models, and free text stays."""
    engine = FakeEngine(presets=[a_preset(model=None)])
    engine.settings = Settings(
        agent="offline", models=("anthropic/claude-haiku-4-5", "fake/haiku"), roles={"fast": "fake/haiku"}
    )
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await deck.press("n")
        await until_screen(deck, LaunchScreen)
        field = deck.app.screen.query_one(ModelInput)
        field.focus()
        await deck.until(lambda: len(field.known) == 3, "the known models")
        await deck.type("@fa")
        await deck.until(lambda: field._suggestion == "@fast", "the completion")
        await deck.press("right")
        assert field.value == "@fast"
        field.value = "haiku"
        await deck.press("down")
        assert field.value == "anthropic/claude-haiku-4-5"
        await deck.press("down")
        assert field.value == "fake/haiku"
        await deck.press("up")
        assert field.value == "anthropic/claude-haiku-4-5"
        field.value = "nobody/knows-it"
        await deck.press("down")
        assert field.value == "@fast", "what is like nothing known is a mistake: all are there to choose from"


def test_choices_are_roles_and_models(tmp_path: Path) -> None:
    """Roles come first, then models from settings and models.json; broken roles do not hide the others."""
    agent_dir = Path(os.environ["PI_CODING_AGENT_DIR"])
    agent_dir.mkdir(parents=True, exist_ok=True)
    (agent_dir / "providers.json").write_text("{broken")
    (agent_dir / "models.json").write_text(json.dumps({"providers": {"own": {"models": [{"id": "m"}]}}}))
    pi = tmp_path / "pi"
    pi.write_text("#!/bin/sh\n")
    pi.chmod(0o755)
    settings = Settings(agents={"pi": AgentSettings((str(pi),))}, models=("a/b",), roles={"deep": "own/m"})

    def refs(agent: str) -> list[str]:
        return [choice.ref for choice in model_choices(agent, settings)]

    assert refs("pi") == ["@deep", "a/b", "own/m"]
    assert refs("offline") == ["@deep", "a/b"]
    assert refs("nobody") == ["@deep", "a/b"]


async def test_empty_state_offers_the_bundled_preset(project_dir: Path) -> None:
    """Without presets the palette copies Explore; its role is not set, so `model: inherit` is suggested."""
    async with opened(offline_engine(project_dir), (80, 24)) as deck:  # type: ignore[arg-type]
        await deck.until_text(":copy preset")
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        await deck.until_text("The role @fast is not set")
        assert "inherit" == deck.app.screen.query_one("#model", Input).value
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.main.presets.preset, "the copy in the list")
        assert (project_dir / ".pi/subagents/Explore.md").read_text().count('model: "inherit"') == 1
        assert "Copied Explore" in deck.toasts[-1]


async def test_a_copy_of_the_bundled_preset_needs_a_model(project_dir: Path) -> None:
    """An empty model is refused in the dialog while the role is not set; a typed one is written."""
    async with opened(offline_engine(project_dir), (80, 24)) as deck:  # type: ignore[arg-type]
        await deck.until_text(":copy preset")
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        deck.app.screen.query_one("#model", Input).clear()
        await deck.press("ctrl+s")
        await deck.until_text("the copy, or set fast under roles")
        await deck.type("fake/test")
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.main.presets.preset, "the copy in the list")
        assert (project_dir / ".pi/subagents/Explore.md").read_text().count('model: "fake/test"') == 1


async def test_all_that_starters_write_is_in_the_question(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small screen warnings are cut, with a sign for it, but every file, setting and button is shown."""
    (project_dir / "Makefile").write_text("test:\n")
    engine = offline_engine(project_dir)
    monkeypatch.setattr("subdeck.core.starters.obstacles", lambda *_: {
        name: (Obstacle(f"{name} lacks something", "look for it " * 30),) for name in NAMES
    })  # fmt: skip
    async with opened(engine, (80, 24)) as deck:  # type: ignore[arg-type]
        await deck.until_text(":starter presets")
        await deck.act("init_presets")
        for text in (*(f"  {name}  " for name in NAMES), "checks: {make-test", "look…", "Cancel", "Create "):
            await deck.until_text(text)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_empty_state_offers_starter_presets(project_dir: Path, size: tuple[int, int]) -> None:
    """Without presets `p` shows the files to be written; `y` writes them, and the cursor is on the first preset."""
    (project_dir / "Makefile").write_text("test:\n")
    place, engine = project_dir / ".pi/subagents", offline_engine(project_dir)
    settings = Path(os.environ["HOME"], ".config/subdeck/config.yaml")
    settings.write_text("agent: offline  # no model\n")
    async with opened(engine, size) as deck:  # type: ignore[arg-type]
        await deck.until_text(":starter presets")
        await deck.act("init_presets")
        for text in ("Create four starter presets?", "explore-code", "fix-tests", "make test", "checks: {make-test"):
            await deck.until_text(text)
        assert not list(place.glob("*.md"))
        await deck.press("y")
        await deck.until(lambda: len(deck.main.presets.names) == 4, "the presets in the list")
        await deck.until(lambda: deck.main.presets.preset.name == "explore-code", "the cursor on the first one")
        assert "agent: offline  # no model\n\nchecks:\n  make-test: [make, test]\n" == settings.read_text()
        await deck.until(lambda: any("Created 4 starter presets" in toast for toast in deck.toasts), "the toast")


async def test_starter_presets_are_written_once(project_dir: Path) -> None:
    """If all four exist, `p` reports that there is nothing to write."""
    engine = offline_engine(project_dir)
    write_starters(plan_starters(engine.workspace, for_all=False))
    async with opened(engine) as deck:  # type: ignore[arg-type]
        await deck.until(lambda: len(deck.main.presets.names) == 4, "the presets in the list")
        await deck.act("presets", "init_presets")
        await deck.until_text("All four starter presets already exist")


async def test_copy_for_all_projects(project_dir: Path) -> None:
    """With a role that is set no model is asked for; the copy goes to the directory for all projects."""
    engine = offline_engine(project_dir, bundled_presets=True, roles={"fast": "fake/test"})
    async with opened(engine) as deck:  # type: ignore[arg-type]
        await deck.until_text("bundled")
        await deck.act("presets", "copy_preset")
        await until_screen(deck, CopyPresetScreen)
        assert deck.app.screen.query_one("#model", Input).value == "@fast"
        await deck.press("right", "ctrl+s")
        copy = Path(os.environ["PI_CODING_AGENT_DIR"], "subagents/Explore.md")
        await deck.until(copy.is_file, "the copy")
        await deck.until_text("global")
        assert 'model: "@fast"' in copy.read_text()


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_tries_and_warnings_are_seen(size: tuple[int, int]) -> None:
    """The row and the transcript's title show a second attempt and the number of warnings."""
    run = a_run(1, attempt=2, meta_max_attempts=3, warnings=("x", "y"), activity="Reading a.py")
    async with opened(FakeEngine(run, a_run(2, attempt=1, meta_max_attempts=3)), size) as deck:
        await deck.press("j")
        await deck.until_text("repo-scout (try 2/3, ! 2 warnings) ▸ task 1")
        assert "try 2/3 · " in "\n".join(deck.rows(deck.main.runs))
        assert deck.screen_text.count("try ") == 2


async def test_a_narrow_edge_keeps_what_matters() -> None:
    """The edge shows at any width whether the end is followed, and the preset's origin if there is room."""
    async with opened(FakeEngine(a_run(1, meta_resolved_model="m" * 30)), (120, 30)) as deck:
        await deck.until_text("─ project · process · mmm")
        await deck.pilot.resize_terminal(80, 24)
        await deck.until(lambda: "─ project" not in deck.screen_text, "the origin to give way")
        await deck.until_text("0 events · follow ─╯")


async def test_models_of_all_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has each agent's models below its name, with news of agents asked in the background, and does not wait
    for a hung one. A model chosen there runs on its agent.
    """
    monkeypatch.setattr("subdeck.core.launch.model_choices.PATIENCE_S", 6.0)
    model = {"value": "tiny", "resolvedModel": "claude-tiny-1", "description": "$1/$5 per Mtok"}
    answer = {"type": "control_response", "response": {"response": {"models": [model]}}}
    (tmp_path / "answer").write_text(json.dumps(answer) + "\n")
    scripts = {"claude": f"read line; cat {tmp_path}/answer", "codex": "exec sleep 600"}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    engine = FakeEngine(presets=[a_preset(model=None)])
    engine.settings = Settings(agents={name: AgentSettings((str(tmp_path / name),)) for name in scripts})
    async with opened(engine, (100, 30)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await deck.press("n")
        await until_screen(deck, LaunchScreen)
        dialog = deck.app.screen
        assert isinstance(dialog, LaunchScreen)
        field = dialog.query_one(ModelInput)
        await deck.until(lambda: "anthropic/sonnet" in field.known, "what is known without asking")
        field.focus()
        await deck.until(lambda: "anthropic/tiny" in field.known, "what was told")
        await deck.press("ctrl+l")
        await deck.until_text("claude-tiny-1 $1/$5")
        await deck.type("claude tiny")
        await deck.until_text("1 of ")
        await deck.press("enter")
        await deck.until(lambda: field.value == "anthropic/tiny", "the chosen model")
        await deck.until_text("now claude")
        assert dialog.form.request(dialog._fields.values).agent == "claude"
        known = model_list(choose_agent("codex", engine.settings))
        await deck.until(lambda: known and "no answer within" in known.kept().problem, "the end of what hangs")
