"""Launching by keyboard: three keys and a task, nothing by accident, problems reported first."""

from __future__ import annotations

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.errors import BudgetExceeded, LaunchError, ModelError
from subdeck.core.launch.model_choices import ModelChoice
from subdeck.core.run.model import PresetSource
from subdeck.core.spec.request import RunRequest
from subdeck.tui.launch._form import LaunchForm
from subdeck.tui.launch._values import LaunchValues
from textual.widgets import Input, TextArea

from ..fake_engine import FakeEngine, a_preset, a_run
from ..launch_dialog import dialog_of, request_of
from ..open_deck import opened


async def test_select_task_launch() -> None:
    """Enter on a preset, the task, ctrl+s: the run is launched in the background and selected."""
    engine = FakeEngine(presets=[a_preset(), a_preset("reviewer")])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await deck.press("j")
        await dialog_of(deck, "enter")
        await deck.until_text("Launch reviewer")
        await deck.type("find it")
        await deck.press("enter", *"now", "ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert engine.launched == [RunRequest(task="find it\nnow", preset="reviewer")]
        await deck.until(lambda: deck.main.run and deck.main.run.meta.task == "find it\nnow", "the new run")
        assert deck.main.runs.has_focus


async def test_launch_from_anywhere_by_button() -> None:
    """`n` launches the highlighted preset from another pane, and the button acts like ctrl+s."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await deck.press("3")
        await dialog_of(deck, "n")
        await deck.type("look")
        await deck.pilot.click("#go")
        await deck.until(lambda: engine.launched, "the launch")


async def test_empty_task_is_refused() -> None:
    """Without a task the launch is refused, and the dialog stays with the reason."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.press("space", "enter", "ctrl+s")
        await deck.until_text("The task is empty")
        await deck.type("x")
        await deck.until(lambda: "The task is empty" not in deck.screen_text, "the refusal to go")
        assert engine.launched == []


async def test_escape_launches_nothing() -> None:
    """Escape closes the dialog with any text in it."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("find it")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.launched == []


async def test_what_would_fail_is_said_before() -> None:
    """The dialog shows the engine's refusal before anything is launched."""
    engine = FakeEngine(presets=[a_preset(model=None)])
    engine.problems = (ModelError("no model", hint="choose one, or set default_model"),)
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        dialog = await dialog_of(deck, "n")
        await deck.until_text("choose one, or set default_model")
        engine.problems = ()
        dialog.query_one("#model", Input).value = "fake/test"
        await deck.until(lambda: "! no model" not in deck.screen_text, "the problem to go")
        assert request_of(dialog).model == "fake/test"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LaunchError("the disk is full", where="/src/shop", hint="make room"), "the disk is full"),
        (RuntimeError("13"), "an unexpected error (RuntimeError)"),
    ],
)
async def test_text_is_kept_when_launching_fails(error: Exception, reason: str) -> None:
    """A failed launch of any kind is reported in the dialog as a sentence, and the task is kept."""
    engine = FakeEngine(presets=[a_preset()])
    engine.launch_error = error
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        dialog = await dialog_of(deck, "n")
        await deck.type("find it")
        await deck.press("ctrl+s")
        await deck.until_text(reason)
        assert dialog.query_one("#task", TextArea).text == "find it"
        engine.launch_error = None
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the second try")


async def test_over_the_budget_once() -> None:
    """A launch beyond the day's budget is allowed by a question, for that launch only."""
    engine = FakeEngine(presets=[a_preset()])
    engine.launch_error = BudgetExceeded(
        "the day's budget does not allow this launch: $20.10 of $20.00 spent", where="budget"
    )
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("find it")
        await deck.press("ctrl+s")
        await deck.until_text("Launch over budget this once?")
        assert "$20.10 of $20.00 spent" in deck.screen_text
        await deck.press("y")
        await deck.until(lambda: engine.launched, "the launch")
        assert [True] == [request.over_budget for request in engine.launched]


async def test_ad_hoc_run() -> None:
    """`N` also asks for model, tools and prompt, and launches without a preset."""
    engine = FakeEngine()
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "N")
        await deck.type("find it")
        dialog.query_one("#model", Input).value = "fake/test"
        dialog.query_one("#tools", Input).value = "read, grep"
        dialog.query_one("#prompt", TextArea).text = "Be brief."
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert engine.launched == [
            RunRequest(task="find it", model="fake/test", tools=("read", "grep"), prompt="Be brief.")
        ]


async def test_runner_is_chosen_by_keys() -> None:
    """The chosen runner is shown by a sign, not only by colour."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        dialog = await dialog_of(deck, "n")
        assert "(•) process  ( ) tmux" in deck.screen_text
        dialog.query_one("#runner").focus()
        await deck.press("right")
        await deck.until_text("( ) process  (•) tmux")
        assert request_of(dialog).runner == "tmux"


@pytest.mark.parametrize("key", ["n", "N", "?", "X", "d"])
async def test_dialogs_fit_the_smallest_screen(key: str) -> None:
    """At 80x24 the whole dialog is on the screen."""
    run = a_run(1, "completed" if key == "d" else "running", meta_task="long " * 500)
    warned = a_preset(description="words " * 100, warnings=("unknown tool: grepp",) * 5)
    async with opened(FakeEngine(run, presets=[warned]), (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        await deck.press(key)
        await deck.until(lambda: deck.app.screen is not deck.main, "the dialog")
        await deck.pilot.pause()
        region = deck.app.screen.query_one(".dialog").region
        assert deck.app.screen.region.contains_region(region)
        for button in deck.app.screen.query("Button"):
            assert not button.region.size or region.contains_region(button.region)


def test_form_asks_only_for_what_was_changed() -> None:
    """Unchanged values are left to the engine, so that the call overrides only the user's choices."""
    form = LaunchForm(a_preset(), Settings(), "/src/shop")
    assert (form.first.model, form.origin_of(form.first.model)) == ("fake/test", "from the preset")
    unchanged = form.request(LaunchValues(task="t", model="fake/test", cwd="/src/shop", runner="process"))
    assert unchanged == RunRequest(task="t", preset="repo-scout")
    changed = form.request(LaunchValues(task="t", model="b/c", cwd="/tmp", runner="tmux"))
    assert changed == RunRequest(task="t", preset="repo-scout", model="b/c", cwd="/tmp", runner="tmux")


def test_a_chosen_model_leads_to_its_agent() -> None:
    """With `auto` the agent that has the chosen model is requested; unknown models and named agents stay."""
    known = (ModelChoice("@fast"), ModelChoice("a/b", "pi", "128k"), ModelChoice("opus", "claude", "$4/$20"))

    def agent_of(model: str, settings: Settings, **preset: str) -> str | None:
        form = LaunchForm(a_preset(model=None, **preset), settings, "/src/shop")
        form.take_models(known)
        return form.request(LaunchValues(task="t", model=model)).agent

    auto = Settings()
    assert ("claude", "pi", None, None) == tuple(agent_of(model, auto) for model in ("opus", "a/b", "@fast", "x/y"))
    assert agent_of("opus", Settings(agent="pi")) is None
    assert agent_of("opus", auto, agent="codex") is None
    assert agent_of("", auto) is None


def test_a_model_that_several_agents_have() -> None:
    """A typed model belongs to its first agent; one chosen from the list, to the chosen agent."""
    first, second = ModelChoice("a/b", "pi"), ModelChoice("a/b", "codex")
    form = LaunchForm(a_preset(model=None), Settings(), "/src/shop")
    form.take_models((first, second))
    values = LaunchValues(task="t", model="a/b")
    assert form.request(values).agent == "pi"
    form.choose(second)
    assert form.request(values).agent == "codex"


def test_a_default_that_the_agent_does_not_have() -> None:
    """A default model that the agent does not have is neither shown nor requested."""
    form = LaunchForm(a_preset(model=None), Settings(default_model="d/m"), "/")
    form.take_default(leaves=True)
    assert (form.first.model, form.origin_of("")) == ("", "the agent's default")
    assert form.request(LaunchValues(task="t", model="d/m")).model == "d/m"
    named = LaunchForm(a_preset(model="x/y"), Settings(default_model="d/m"), "/")
    named.take_default(leaves=True)
    assert named.first.model == "x/y"


def test_the_default_comes_back_with_its_agent() -> None:
    """default_model is used again after a visit to an agent without it."""
    form = LaunchForm(a_preset(model=None), Settings(default_model="d/m"), "/")
    for leaves, model in ((True, ""), (False, "d/m")):
        form.take_default(leaves=leaves)
        assert form.first.model == model


def test_form_says_where_the_model_comes_from() -> None:
    """The model comes from the preset, then from default_model."""
    bare = a_preset(model=None)
    assert LaunchForm(bare, Settings(default_model="d/m"), "/").origin_of("d/m") == "default_model"
    assert LaunchForm(bare, Settings(), "/").first.model == ""
    assert LaunchForm(None, Settings(), "/").badge == PresetSource.ADHOC.replace("adhoc", "one-off")
