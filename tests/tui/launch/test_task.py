"""Entering a task: typed, edited elsewhere, loaded, reused; and never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.errors import LaunchError
from subdeck.core.spec.request import RunRequest
from subdeck.tui.dialogs.ask import AskScreen
from subdeck.tui.launch import _screen as launch_module
from subdeck.tui.launch._inputs import PathInput
from subdeck.tui.launch._memory import memory_file, read_memory
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.launch._tasks import LIMIT, EarlierTask, EarlierTasksScreen, earlier_tasks, matching

from ..fake_engine import FakeEngine, a_preset, a_run, stamp
from ..launch_dialog import dialog_of
from ..open_deck import Deck, opened


async def leave(deck: Deck) -> None:
    await deck.press("escape")
    await deck.until(lambda: deck.app.screen is deck.main, "the deck")


def text_of(dialog: LaunchScreen) -> str:
    return dialog._fields.task_area.text


async def loading(deck: Deck, path: str) -> LaunchScreen:
    """Open the dialog, ask for a file there and name it."""
    dialog = await dialog_of(deck, "n")
    await deck.type("before")
    await deck.press("ctrl+o")
    await deck.until(lambda: isinstance(deck.app.screen, AskScreen), "the question")
    deck.app.screen.query_one(PathInput).value = path
    await deck.press("enter")
    return dialog


async def test_the_editor_gives_the_text_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """ctrl+e opens the task in the editor from any field, and undo restores the earlier text."""
    handed: list[tuple[str, str]] = []

    def edited(_: object, text: str, *, name: str) -> tuple[str, str]:
        handed.append((name, text))
        return "one\ntwo\x1b[31m\n", ""

    monkeypatch.setattr(launch_module, "edit_text", edited)
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await dialog_of(deck, "n")
        await deck.type("short")
        dialog.query_one("#model").focus()
        await deck.press("ctrl+e")
        assert handed == [("task.md", "short")]
        assert (text_of(dialog), dialog.focused) == ("one\ntwo", dialog._fields.task_area)
        await deck.press("ctrl+z")
        assert text_of(dialog) == "short"


async def test_a_failing_editor_leaves_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing editor is reported, and the task is unchanged."""
    monkeypatch.setattr(launch_module, "edit_text", lambda _, text, *, name: (text, "vi could not be started"))
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await dialog_of(deck, "n")
        await deck.type("short")
        await deck.press("ctrl+e")
        assert (deck.toasts, text_of(dialog)) == (["vi could not be started"], "short")


async def test_a_file_is_loaded(tmp_path: Path) -> None:
    """ctrl+o loads the text of a file, and undo restores the earlier text."""
    (tmp_path / "task.md").write_text("from\na file\n")
    async with opened(FakeEngine(presets=[a_preset()]), (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await loading(deck, str(tmp_path / "task.md"))
        await deck.until(lambda: text_of(dialog) == "from\na file", "the text")
        await deck.press("ctrl+z")
        assert text_of(dialog) == "before"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.md", None, "gone.md does not exist"),
        ("", None, "is a directory"),
        ("large.md", b"x" * (LIMIT + 1), "the limit is 256 KB"),
        ("latin.md", b"fine\n\xe9t\xe9\n", "is not UTF-8 text (line 2)"),
    ],
)
async def test_a_file_that_cannot_be_taken(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    """If the file cannot be read, the question stays with the reason, and the task is unchanged."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    async with opened(FakeEngine(presets=[a_preset()]), (120, 30)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await loading(deck, str(tmp_path / name))
        await deck.until(lambda: said in str(deck.app.screen.query_one("#problems").render()), said)
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is dialog, "the launch dialog")
        assert text_of(dialog) == "before"


async def test_earlier_tasks_are_chosen_by_words() -> None:
    """ctrl+r lists the preset's own tasks first; words filter, Enter inserts, undo restores the earlier text."""
    runs = (
        a_run(1, "completed", meta_task="count the tests"),
        a_run(2, "completed", meta_task="review the parser\nslowly", meta_preset="reviewer"),
        a_run(3, "completed", meta_task="find the parser"),
    )
    async with opened(FakeEngine(*runs, presets=[a_preset()]), (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await dialog_of(deck, "n")
        await deck.type("half")
        await deck.press("ctrl+r")
        await deck.until(lambda: isinstance(deck.app.screen, EarlierTasksScreen), "the list")
        await deck.until_text("3 of 3")
        shown = deck.screen_text
        places = [shown.rindex(text) for text in ("find the parser", "count the tests", "review the parser (+1 line)")]
        assert places == sorted(places)
        await deck.type("parser")
        await deck.until_text("2 of 3")
        await deck.press("down", "enter")
        await deck.until(lambda: deck.app.screen is dialog, "the launch dialog")
        assert text_of(dialog) == "review the parser\nslowly"
        await deck.press("ctrl+z")
        assert text_of(dialog) == "half"


async def test_without_earlier_tasks_the_list_says_so() -> None:
    """Without earlier tasks the list says that it is empty, and Enter inserts nothing."""
    async with opened(FakeEngine(presets=[a_preset()]), (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the preset")
        dialog = await dialog_of(deck, "n")
        await deck.press("ctrl+r")
        await deck.until_text("No earlier tasks in this project.")
        await deck.press("enter", "escape")
        await deck.until(lambda: deck.app.screen is dialog, "the launch dialog")


def test_each_task_is_listed_once() -> None:
    """Of equal tasks the newest is listed, own preset first."""
    runs = [a_run(1, meta_task="a"), a_run(2, meta_task="b", meta_preset="x"), a_run(3, meta_task="a")]
    tasks = earlier_tasks(runs, (), "repo-scout")
    assert [(task.task, task.at) for task in tasks] == [("a", stamp(3)), ("b", stamp(2))]
    assert [task.task for task in earlier_tasks(runs, (), "x")] == ["b", "a"]


def test_words_are_looked_for_in_task_and_preset() -> None:
    """All words must match task or preset, in any case, and the list is limited."""
    tasks = [EarlierTask("Find the parser", "scout", ""), EarlierTask("find it", "other", "")]
    assert matching(tasks, "FIND scout", 9) == tasks[:1]
    assert matching(tasks, "find", 1) == tasks[:1]


async def test_a_cancelled_task_is_offered_again() -> None:
    """A cancelled task returns selected, for its preset only: typing replaces it, and it joins the earlier tasks."""
    engine = FakeEngine(presets=[a_preset(), a_preset("reviewer")])
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("half a thought")
        await leave(deck)
        await deck.until(lambda: read_memory(engine.project).unsent, "the file")
        await deck.press("j")
        dialog = await dialog_of(deck, "n")
        assert text_of(dialog) == ""
        await leave(deck)
        await deck.press("k")
        dialog = await dialog_of(deck, "n")
        await deck.until_text("Unsent draft")
        assert text_of(dialog) == "half a thought"
        await deck.type("new")
        assert text_of(dialog) == "new"
        await deck.until(lambda: "Unsent draft" not in deck.screen_text, "the note to go")
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.launched == [RunRequest(task="new", preset="repo-scout")]
        dialog = await dialog_of(deck, "n")
        assert text_of(dialog) == ""
        await deck.press("ctrl+r")
        await deck.until_text("half a thought")
        assert "draft" in deck.screen_text


async def test_a_draft_survives_the_app() -> None:
    """Another app on the project offers the draft too, and launching it removes it."""
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("later")
        await leave(deck)
        await deck.until(lambda: read_memory(deck.main.bridge.engine.project).unsent, "the file")
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        dialog = await dialog_of(deck, "n")
        assert text_of(dialog) == "later"
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert read_memory(engine.project).unsent == ()


async def test_what_cannot_be_kept_is_told() -> None:
    """Without a writable state directory everything works, with a warning, and the app keeps the draft."""
    engine = FakeEngine(presets=[a_preset()])
    state = Path(memory_file(engine.project)).parent.parent
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        state.mkdir(parents=True, exist_ok=True)
        (state / "launches").write_text("")
        await dialog_of(deck, "n")
        await deck.type("later")
        await leave(deck)
        await deck.until(lambda: any("Cannot save your choices" in toast for toast in deck.toasts), "the toast")
        assert text_of(await dialog_of(deck, "n")) == "later"


async def test_leaving_while_it_is_launched() -> None:
    """Escape does not wait for a slow launch; if that fails, a toast reports it and the task is offered again."""
    engine = FakeEngine(presets=[a_preset()])
    gate = engine.disk
    gate.clear()
    launch = engine.launch

    def slow(*arguments: object, **options: object) -> object:
        gate.wait()
        return launch(*arguments, **options)  # type: ignore[arg-type]

    engine.launch = slow  # type: ignore[method-assign,assignment]
    engine.launch_error = LaunchError("the disk is full")
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await dialog_of(deck, "n")
        await deck.type("find it")
        await deck.press("ctrl+s")
        await deck.until_text("launching…")
        await leave(deck)
        gate.set()
        await deck.until(lambda: "Not launched: the disk is full" in deck.toasts, "the toast")
        assert text_of(await dialog_of(deck, "n")) == "find it"
