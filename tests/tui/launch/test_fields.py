"""The fields of the launch dialog: completion, attempts, last values, problems beside their fields."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.errors import AgentUnavailable, ModelError, RunnerUnavailable, UsageError
from subdeck.core.launch.model_choices import ModelChoice
from subdeck.core.run.model import Limits, WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.tui.keys.actions import ACTIONS
from subdeck.tui.keys.command import READONLY, ActionContext, KeyContext
from subdeck.tui.launch._fields import REST
from subdeck.tui.launch._form import LaunchForm
from subdeck.tui.launch._inputs import PathInput, matching_paths
from subdeck.tui.launch._memory import LastValues, change_memory, read_memory
from subdeck.tui.launch._models import ModelsScreen
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.launch._values import LaunchValues
from subdeck.tui.widgets.form import Choice, ModelInput, Problem
from textual.widgets import Button, Input, Static

from tests.core.git.repositories import make

from ..fake_engine import FakeEngine, a_preset, a_run
from ..launch_dialog import dialog_of, request_of
from ..open_deck import Deck, opened

CHOSEN = LastValues(model="b/c", cwd="/tmp", runner="tmux", copies=3)


class GroupingEngine(FakeEngine):
    """An engine that records groups launched together."""

    def __init__(self, *runs: RunSnapshot, **options: object) -> None:
        super().__init__(*runs, **options)  # type: ignore[arg-type]
        self.calls: list[tuple[RunRequest, ...]] = []

    def launch(self, requests: Sequence[RunRequest], *, background: bool) -> tuple[RunSnapshot, ...]:
        self.calls.append(tuple(requests))
        return super().launch(requests, background=background)


async def dialog_on(deck: Deck, key: str = "n") -> LaunchScreen:
    await deck.until(lambda: deck.main.presets.row_count, "the preset")
    return await dialog_of(deck, key)


def problem_of(dialog: LaunchScreen, field: str) -> str:
    shown = dialog._fields._problems.get(dialog._fields._rows[field])
    return shown.text if shown else ""


# --- budget ---------------------------------------------------------------------------------------------------------


async def test_a_budget_is_asked_for_where_it_is_written() -> None:
    """An empty budget field shows the default budget, which then applies."""
    engine = FakeEngine()
    engine.settings = Settings(limits=Limits(budget=2.5))
    async with opened(engine) as deck:
        dialog = await dialog_of(deck, "n")
        assert "$2.50" == dialog.query_one("#budget", Input).placeholder
        assert (None, None) == (request_of(dialog).budget, request_of(dialog).max_tokens)
        dialog._fields.task_area.text = "t"
        dialog.query_one("#budget", Input).value = "$0.40"
        dialog.query_one("#max-tokens", Input).value = "200,000"
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
    assert [(0.4, 200_000)] == [(asked.budget, asked.max_tokens) for asked in engine.launched]


@pytest.mark.parametrize(
    ("written", "dollars", "tokens", "wrong"),
    [
        ({}, None, None, []),
        ({"budget": "$1,200.5", "max_tokens": "2_000"}, 1200.5, 2000, []),
        ({"budget": "0", "max_tokens": "0"}, 0, 0, ["budget", "max-tokens"]),
        ({"budget": "$", "max_tokens": "_"}, 0, 0, ["budget", "max-tokens"]),
        ({"budget": ".", "max_tokens": " "}, 0, None, ["budget"]),
    ],
)
def test_amounts_as_they_are_written(written: Any, dollars: float | None, tokens: int | None, wrong: list[str]) -> None:
    """An amount that is not above zero is reported beside its field."""
    values = LaunchValues(task="t", limits=written)
    assert (dollars, tokens) == (values.limit("budget"), values.limit("max_tokens"))
    assert wrong == [problem.where for problem in LaunchForm(None, Settings(), "/p").problems(values)]


# --- where -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("src/shop", "src/shoes", "src/.hidden", "src/tabs\there"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "src/shelf.md").write_text("")
    return tmp_path


def test_paths_go_on_as_typed(tree: Path) -> None:
    """Completion offers directories in order, files only on request, hidden ones after a dot, and keeps `~`."""
    base = str(tree / "src")
    assert matching_paths("sh", base, files=False) == ("shoes/", "shop/")
    assert matching_paths("sh", base, files=True) == ("shelf.md", "shoes/", "shop/")
    assert matching_paths("", base, files=False) == ("shoes/", "shop/")
    assert matching_paths(".h", base, files=False) == (".hidden/",)
    assert matching_paths(f"{base}/shop", "/", files=False) == (f"{base}/shop/",)
    assert matching_paths("none/x", base, files=False) == ()
    Path(os.environ["HOME"], "work").mkdir()
    assert matching_paths("~", base, files=False) == ("~/",)
    assert matching_paths("~/w", base, files=False) == ("~/work/",)


async def test_a_directory_is_completed(tree: Path) -> None:
    """Tab accepts the suggestion, then leaves; down shows the next; the request has no slash at the end."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        field = dialog.query_one("#cwd", PathInput)
        field.focus()
        await deck.press("backspace")
        field.insert_text_at_cursor(f"{tree}/src/sh")
        await deck.until(lambda: field._suggestion.endswith("/shoes/"), "the completion")
        await deck.press("tab")
        assert (field.value, field.has_focus) == (f"{tree}/src/shoes/", True)
        assert request_of(dialog).cwd == f"{tree}/src/shoes"
        await deck.press("tab")
        assert dialog.focused is dialog.query_one("#runner")
        field.focus()
        field.value = f"{tree}/src/s"
        await deck.press("down", "down")
        assert field.value == f"{tree}/src/shop/"


async def test_tab_right_behind_a_text_completes_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tab accepts the completion of what was just typed, even if the directory is read slowly."""
    matching = PathInput.matching

    async def slowly(field: PathInput, typed: str) -> Sequence[str]:
        await asyncio.sleep(0.2)
        return await matching(field, typed)

    monkeypatch.setattr(PathInput, "matching", slowly)
    async with opened(FakeEngine(presets=[a_preset()]), (80, 24)) as deck:
        field = (await dialog_on(deck)).query_one("#cwd", PathInput)
        field.focus()
        await deck.press("backspace")
        field.insert_text_at_cursor(f"{tree}/src/sh")
        await deck.press("tab")
        assert (field.value, field.has_focus) == (f"{tree}/src/shoes/", True)


async def test_tab_changes_nothing_that_was_not_typed(tree: Path) -> None:
    """Tab through the fields does not complete a directory that was not typed."""
    (tree / "src/shop-old").mkdir()
    engine, shop = FakeEngine(presets=[a_preset()]), str(tree / "src/shop")
    change_memory(engine.project, lambda memory: memory.after_launch("repo-scout", "t", LastValues(cwd=shop)))
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        field = dialog.query_one("#cwd", PathInput)
        assert field.suggester and await field.suggester.get_suggestion(field.value) is None
        field.focus()
        await deck.press("right", "tab")
        assert dialog.focused is dialog.query_one("#runner")
        assert request_of(dialog).cwd == shop


# --- keys --------------------------------------------------------------------------------------------------------


async def test_a_key_chooses_a_worktree(tmp_path: Path) -> None:
    """A key chooses a worktree, with its content beside it; the default is not part of a request."""
    root = make(tmp_path / "shop", {"a.py": "a"})
    (root / "new.py").write_text("new")
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (100, 30)) as deck:
        dialog = await dialog_on(deck)
        dialog.query_one("#cwd", PathInput).put(str(root))
        assert request_of(dialog).worktree is None
        await deck.press("ctrl+t")
        words = dialog.query_one("#worktree-words", Static)
        await deck.until(lambda: "with 1 uncommitted" in str(words.content), "what the worktree will be")
        assert request_of(dialog).worktree is WorktreeFrom.FILES
        await deck.press("ctrl+t")
        await deck.until(lambda: "without 1 uncommitted" in str(words.content), "the same of HEAD")
        assert request_of(dialog).worktree is WorktreeFrom.HEAD


async def test_enter_goes_on_and_launches_nothing() -> None:
    """Enter in a line or a choice goes to the next field."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        model = dialog.query_one("#model")
        model.focus()
        await deck.until(lambda: model.has_focus, "the focus")
        order: list[str | None] = []
        for _ in range(7):
            order.append(dialog.focused.id if dialog.focused else None)
            await deck.press("enter")
        assert order == ["model", "cwd", "runner", "copies", "worktree", "budget", "max-tokens"]
        assert dialog.focused is dialog.query_one("#go")
        assert (engine.launched, dialog.query_one("#runner", Choice).value) == ([], "process")


async def test_a_second_press_launches_nothing_more() -> None:
    """ctrl+s twice is one launch."""
    engine = GroupingEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        dialog.action_start()
        dialog.action_start()
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.calls == [(RunRequest(task="find it", preset="repo-scout"),)]


def test_a_read_only_app_launches_nothing() -> None:
    """A read-only app refuses to start runs, but not to load a text."""
    action_context = ActionContext(
        key_context=KeyContext.RUNS, preset=a_preset(), run=a_run(1, "completed"), readonly=True
    )
    refused = {action.id for action in ACTIONS if action.refusal(action_context) == READONLY}
    assert refused >= {"launch", "ad_hoc", "rerun", "rerun_edited", "follow_up", "with_context", "start"}
    assert not refused & {"edit_task", "load_task", "earlier_tasks"}


# --- attempts ----------------------------------------------------------------------------------------------------


async def test_copies_are_one_group() -> None:
    """Up increases the number of attempts, the button shows it, and all are launched together."""
    engine = GroupingEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        dialog.query_one("#copies").focus()
        await deck.press("up", "up")
        await deck.until_text("Launch 3")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.calls, "the launch")
        assert engine.calls == [(RunRequest(task="find it", preset="repo-scout"),) * 3]


@pytest.mark.parametrize(
    ("preset", "copies", "said"),
    [
        ({"sticky": True}, "2", "a sticky preset"),
        ({}, "17", "a number from 1 to 16"),
        ({}, "0", "a number from 1 to 16"),
    ],
)
async def test_copies_that_cannot_be(preset: dict[str, Any], copies: str, said: str) -> None:
    """The dialog shows at once why attempts are impossible, and nothing is launched."""
    engine = FakeEngine(presets=[a_preset(**preset)])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        dialog.query_one("#copies", Input).value = copies
        await deck.until_text(said)
        await deck.press("ctrl+s")
        await deck.until(lambda: dialog.focused is dialog.query_one("#copies"), "the cursor in the field")
        assert engine.launched == []


# --- last values -------------------------------------------------------------------------------------------------


async def test_last_values_are_remembered() -> None:
    """Values changed at a launch, but not the task, are in the preset's next dialog, with a note."""
    engine = GroupingEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        dialog.query_one("#model", Input).value = "b/c"
        dialog.query_one("#copies", Input).value = "2"
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert read_memory(engine.project).values_of("repo-scout") == LastValues(model="b/c", copies=2)
        dialog = await dialog_on(deck)
        await deck.until_text("from last launch: model, attempts")
        expected = LaunchValues(agent="auto", model="b/c", cwd="/src/shop", runner="process", copies="2")
        assert dialog._fields.values == expected
        assert "b/c" in deck.screen_text


async def test_the_way_back_to_the_presets_own() -> None:
    """A button resets all remembered values; clearing only the model uses the preset's."""
    engine = FakeEngine(presets=[a_preset()])
    change_memory(engine.project, lambda memory: memory.after_launch("repo-scout", "t", CHOSEN))
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until_text("from last launch: model, where, runner, attempts")
        assert request_of(dialog) == RunRequest(task="", preset="repo-scout", model="b/c", cwd="/tmp", runner="tmux")
        dialog.query_one("#model", Input).value = ""
        await deck.until_text("fake/test from the preset")
        assert request_of(dialog).model is None
        await deck.pilot.click("#defaults")
        await deck.until(lambda: "from last launch" not in deck.screen_text, "the note to go")
        assert request_of(dialog) == RunRequest(task="", preset="repo-scout")
        dialog._fields.task_area.text = "t"
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert read_memory(engine.project).last == {}


async def test_what_is_typed_goes_before_what_is_remembered() -> None:
    """Remembered values that load after the first key do not change that key's field."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        dialog.query_one("#model", Input).value = "typed/first"
        dialog._fields.remember(CHOSEN, "a draft")
        assert (request_of(dialog).model, request_of(dialog).runner) == ("typed/first", "tmux")


async def test_remembered_values_that_fail_are_said() -> None:
    """A remembered directory that no longer exists is reported like any other problem."""
    engine = FakeEngine(presets=[a_preset()])
    change_memory(engine.project, lambda memory: memory.after_launch("repo-scout", "t", LastValues(cwd="/gone")))
    asked: list[RunRequest] = []

    def check(request: RunRequest) -> tuple[UsageError, ...]:
        asked.append(request)
        return (UsageError("/gone does not exist", where="cwd"),) if request.cwd == "/gone" else ()

    engine.check = check  # type: ignore[method-assign]
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until(lambda: problem_of(dialog, "cwd") == "! /gone does not exist", "the problem")


# --- problems ----------------------------------------------------------------------------------------------------


async def test_problems_stand_beside_their_fields() -> None:
    """Agent, model, directory and runner have their problems beside them; others are at the foot."""
    engine = FakeEngine(presets=[a_preset()])
    engine.problems = (
        ModelError("no model", hint="choose one"),
        UsageError("/x does not exist", where="cwd"),
        RunnerUnavailable("tmux is not installed", where="runner tmux", hint="apt install tmux"),
        AgentUnavailable("pi is not on PATH", where="agents.pi.command", hint="install it"),
        UsageError("no key", where="key"),
    )
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.until_text("key: no key")
        assert [problem_of(dialog, field) for field in ("agent", "model", "cwd", "runner")] == [
            "! pi is not on PATH: install it",
            "! no model: choose one",
            "! /x does not exist",
            "! tmux is not installed: apt install tmux",
        ]
        rows = deck.screen_text.splitlines()
        row_of = {text: next(at for at, row in enumerate(rows) if text in row) for text in ("Where  ", "/x does not")}
        assert row_of["/x does not"] == row_of["Where  "] + 1


async def test_an_unknown_model_is_one_line() -> None:
    """The dialog names the nearest model and the key that lists all, not the whole list."""
    engine = FakeEngine(presets=[a_preset()])
    hint = f"Known ids: {', '.join(f'model-{number}' for number in range(60))}"
    engine.problems = (
        ModelError('the model "b/d" is not known here', hint=hint, brief_hint="did you mean b/c?"),
        ModelError("no model", hint="choose one for this run (--model)", brief_hint="choose one here"),
    )
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        dialog._fields.show_models([ModelChoice("b/c", "pi", "known")])
        dialog._fields.show_problems(engine.problems)
        assert problem_of(dialog, "model").split("\n") == [
            '! the model "b/d" is not known here: did you mean b/c?  (↓ lists all)',
            "! no model: choose one here  (↓ lists all)",
        ]
        assert await dialog.query_one(ModelInput).matching("x/y") == ["b/c"]


async def test_models_that_come_while_their_list_opens() -> None:
    """Models that arrive before the open list has its lines are added to it."""
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        listed = ModelsScreen(())
        deck.app.push_screen(listed)
        listed.show_known([ModelChoice("b/c", "pi", "known")])
        await deck.until_text("1 of 1")
        await deck.until_text("b/c")


async def test_a_dialog_that_was_closed_is_left_alone() -> None:
    """Results that arrive after the dialog is closed are dropped."""
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        dialog = await dialog_on(deck)
        fields = dialog._fields
        await deck.press("escape")
        await deck.until(lambda: not fields.is_attached or not fields.query("#last-note"), "the fields to go")
        fields._tell_changed()


async def test_a_refused_launch_goes_to_the_field() -> None:
    """A refused launch moves the cursor to the field to fix."""
    engine = FakeEngine(presets=[a_preset()])
    engine.launch_error = ModelError("no model", hint="choose one")
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck)
        await deck.type("find it")
        await deck.press("ctrl+s")
        await deck.until_text("! no model: choose one")
        assert dialog.focused is dialog.query_one("#model")


@pytest.mark.parametrize(
    ("key", "field", "expected"),
    [("N", "tools", "! no tool is left: name one"), ("n", REST, "! tools: no tool is left: name one")],
)
async def test_an_error_is_said_once(key: str, field: str, expected: str) -> None:
    """An error is shown once: beside its field, or at the foot with its place, and hostile text is plain."""
    engine = FakeEngine(presets=[a_preset()])
    engine.problems = (UsageError("no tool is left\x1b[31m", where="tools", hint="name one"),)
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck, key)
        await deck.until(lambda: problem_of(dialog, field), "the problem")

        assert [expected] == [problem.text for problem in dialog.query(Problem) if problem.text]


@pytest.mark.parametrize("size", [(80, 24), (20, 5)])
async def test_everything_is_reached_on_a_low_screen(size: tuple[int, int]) -> None:
    """With all fields and problems the button stays on the screen, and the fields scroll to the cursor."""
    engine = FakeEngine(a_run(1, "completed"), presets=[a_preset()])
    engine.problems = tuple(UsageError(f"problem {number}", hint="mend it") for number in range(5))
    change_memory(engine.project, lambda memory: memory.after_launch("", "t", CHOSEN))
    async with opened(engine, size) as deck:
        dialog = await dialog_on(deck, "N")
        dialog._fields.task_area.text = "check {previous}"
        name = dialog.query_one("#save-name", Input)
        name.value = "x"
        name.focus()
        await deck.until(lambda: problem_of(dialog, REST), "the problems")
        await deck.until(lambda: name.region.y in range(*dialog._fields.region.line_span), "the field in sight")
        if size == (80, 24):
            assert dialog.query_one(".dialog").region.contains_region(dialog.query_one("#go", Button).region)


def test_a_directory_is_asked_for_as_it_is_shown() -> None:
    """`~` and a slash at the end do not change the requested directory."""
    form = LaunchForm(a_preset(), Settings(), os.path.expanduser("~"))
    assert form.request(LaunchValues(task="t", cwd="~/", runner="process")).cwd is None
    assert form.request(LaunchValues(task="t", cwd="~/x/", runner="process")).cwd == os.path.expanduser("~/x")
    assert form.request(LaunchValues(task="t", cwd="/", runner="process")).cwd == "/"
