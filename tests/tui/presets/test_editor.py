"""Presets are written and edited in the app: checked while typing, never saved broken, no typed text lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from subdeck.tui.deck.screen import MainScreen
from subdeck.tui.dialogs.ask import ConfirmScreen
from subdeck.tui.presets._editor import ChangedFileScreen, PresetArea, PresetEditorScreen

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import Deck, opened
from ..real_engine import SCOUT, presets_opened, project_directory, until_screen, user_place

SIZES = [(80, 24), (120, 30)]


def area(deck: Deck) -> PresetArea:
    return deck.app.screen.query_one(PresetArea)


async def until_saved(deck: Deck) -> None:
    await until_screen(deck, MainScreen)
    await deck.until(lambda: any(toast.startswith("Saved") for toast in deck.toasts), "the toast")


@pytest.mark.parametrize("size", SIZES)
async def test_create_from_the_template(project_dir: Path, size: tuple[int, int]) -> None:
    """A new preset is a template with the cursor behind the name, and names missing fields until they are there."""
    async with presets_opened(project_dir, size=size) as deck:
        await deck.act("create_preset")
        await until_screen(deck, PresetEditorScreen)
        await deck.until_text("✗ name is missing")
        await deck.type("scout")
        await deck.until_text("✗ description is missing")
        await deck.press("ctrl+s")
        await deck.until_text("Not saved.")
        assert not (project_dir / ".pi").exists()
        await deck.press("down", "end")
        await deck.type("Finds things")
        await deck.until_text("✓ no problems")
        await deck.press("ctrl+s")
        await until_saved(deck)
        text = (project_dir / ".pi/subagents/scout.md").read_text()
        assert text.startswith("---\nname: scout\ndescription: Finds things\nmodel: \n")
        await deck.until(lambda: deck.main.presets.preset and deck.main.presets.preset.name == "scout", "the preset")


async def test_create_for_all_projects(project_dir: Path) -> None:
    """The form offers the directory for all projects, and notes which preset hides the new one."""
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.act("create_preset")
        await until_screen(deck, PresetEditorScreen)
        await deck.type("scout")
        await deck.press("down", "end")
        await deck.type("d")
        await deck.until_text('✗ line 2: the name "scout" is already used by scout.md in the same directory')
        await deck.press("shift+tab", "right")
        await deck.until_text("saved in ~/.pi/agent/subagents")
        await deck.until_text("hidden by the project preset of this name")
        await deck.press("ctrl+s")
        await until_saved(deck)
        assert (user_place() / "scout.md").is_file()


async def test_edit_the_highlighted_file(project_dir: Path) -> None:
    """`e` opens the file's real text; saving keeps its permissions and all unchanged characters."""
    async with presets_opened(project_dir, SCOUT) as deck:
        file = project_directory(project_dir) / "scout.md"
        file.chmod(0o640)
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.until_text("# ours")
        await deck.press("ctrl+s")
        await until_saved(deck)
        assert (SCOUT, 0o640) == (file.read_text(), file.stat().st_mode & 0o777)
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.press("up", "ctrl+end")
        await deck.type("More")
        await deck.press("ctrl+s")
        await deck.until(lambda: file.read_text() == SCOUT + "More", "the text in the file")


async def test_warnings_are_shown_while_typing(project_dir: Path) -> None:
    """Unknown tools and keys do not prevent saving, and are named below the text."""
    async with presets_opened(project_dir, SCOUT, size=(80, 24)) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        area(deck).move_cursor((5, 100))
        await deck.type(", grepp")
        await deck.until_text("! grepp is left out: the agent does not have it")


async def test_what_is_broken_is_not_saved(project_dir: Path) -> None:
    """Saving broken text reports the problem and its place, moves the cursor there and keeps the text."""
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        area(deck).move_cursor((4, 0))
        await deck.type("name: twice")
        await deck.press("enter")
        await deck.press("ctrl+end", "ctrl+s")
        await deck.until_text('Not saved. ✗ line 5: "name" appears twice, first on line 3')
        assert (4, 0) == area(deck).cursor_location
        assert "name: twice\n" in area(deck).text
        assert SCOUT == (project_directory(project_dir) / "scout.md").read_text()


async def test_a_broken_file_is_mended(project_dir: Path) -> None:
    """A broken file opens as it is, and is a preset once it is fixed and saved."""
    async with presets_opened(project_dir, SCOUT.replace("name: scout", "nam: scout")) as deck:
        await deck.until(lambda: deck.main.presets.problem, "the broken file")
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.until_text("✗ name is missing")
        area(deck).move_cursor((2, 3))
        await deck.type("e")
        await deck.press("ctrl+s")
        await until_saved(deck)
        await deck.until(lambda: deck.main.presets.preset, "the preset")


async def test_escape_asks_before_text_is_lost(project_dir: Path) -> None:
    """Escape asks before it discards unsaved text; without any it just closes."""
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.press("escape")
        await until_screen(deck, MainScreen)
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.type("x")
        await deck.press("escape")
        await until_screen(deck, ConfirmScreen)
        await deck.press("enter")
        await until_screen(deck, PresetEditorScreen)
        assert f"x{SCOUT}" == area(deck).written
        await deck.press("escape")
        await until_screen(deck, ConfirmScreen)
        await deck.press("y")
        await until_screen(deck, MainScreen)
        assert SCOUT == (project_directory(project_dir) / "scout.md").read_text()


@pytest.mark.parametrize("wish", ["over", "reload", "back"])
async def test_a_file_that_changed_meanwhile(project_dir: Path, wish: str) -> None:
    """No text is lost: overwriting and reloading ask first, and undo restores the typed text."""
    file = project_directory(project_dir) / "scout.md"
    theirs = SCOUT.replace("Look.", "Look twice.")
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.press("ctrl+end")
        await deck.type("mine")
        file.write_text(theirs)
        await deck.press("ctrl+s")
        await until_screen(deck, ChangedFileScreen)
        await deck.until_text("The file was changed by another program")
        await deck.press(*{"over": ["tab", "tab", "enter"], "reload": ["tab", "enter"], "back": ["enter"]}[wish])
        if wish == "over":
            await until_saved(deck)
            assert f"{SCOUT}mine" == file.read_text()
            return
        await until_screen(deck, PresetEditorScreen)
        assert theirs == file.read_text()
        if wish == "reload":
            await deck.until(lambda: area(deck).written == theirs, "their text")
            await deck.press("ctrl+z")
        await deck.until(lambda: area(deck).written == f"{SCOUT}mine", "the typed text")


async def test_a_file_that_was_deleted_meanwhile(project_dir: Path) -> None:
    """A deleted file cannot be reloaded, but the text can be written again."""
    file = project_directory(project_dir) / "scout.md"
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        file.unlink()
        await deck.press("ctrl+s")
        await until_screen(deck, ChangedFileScreen)
        assert "Reload" not in deck.screen_text
        await deck.press("tab", "enter")
        await deck.until(file.is_file, "the file")
        await until_screen(deck, MainScreen)
        assert SCOUT == file.read_text()


async def test_a_full_disk_loses_nothing(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the reason is shown, and the text stays on the screen to be saved later."""
    file = project_directory(project_dir) / "scout.md"
    async with presets_opened(project_dir, SCOUT, size=(80, 24)) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        await deck.press("ctrl+end")
        await deck.type("more")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            await deck.press("ctrl+s")
            await deck.until_text("cannot write the preset: No space left on device")
        assert (SCOUT, f"{SCOUT}more") == (file.read_text(), area(deck).written)
        await deck.press("ctrl+s")
        await deck.until(lambda: file.read_text() == f"{SCOUT}more", "the text in the file")


async def test_a_place_that_cannot_be_written(project_dir: Path) -> None:
    """If the directory cannot be made, its path is reported and the text stays."""
    async with presets_opened(project_dir) as deck:
        shutil.rmtree(project_dir / ".pi", ignore_errors=True)
        (project_dir / ".pi").write_text("in the way")
        await deck.act("create_preset")
        await until_screen(deck, PresetEditorScreen)
        area(deck).text = SCOUT
        await deck.press("ctrl+s")
        await deck.until_text("cannot write the preset")
        assert SCOUT == area(deck).written


async def test_the_editor_goes_on_outside(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ctrl+e opens the text in $EDITOR and reloads it, unsaved and checked; ctrl+z undoes that."""
    monkeypatch.setattr(
        "subdeck.tui.presets._editor.edit_text", lambda _app, text, *, name: (f"{name}\n{text}\x1b", "")
    )
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.press("ctrl+e")
        await deck.until_text("✗ line 1: the file has no frontmatter")
        assert f"scout.md\n{SCOUT}\x1b" == area(deck).written
        assert "␛" in deck.screen_text
        await deck.press("ctrl+z")
        assert SCOUT == area(deck).written
        monkeypatch.setattr(
            "subdeck.tui.presets._editor.edit_text", lambda _app, text, *, name: (text, "vi ended with 1")
        )
        await deck.press("ctrl+e")
        await deck.until_text("✗ vi ended with 1")
        assert not any(worker.group == "check" and worker.is_running for worker in deck.app.workers)


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]0;title\x07",
        "\x9b31m",
        "\u202egnp",
        "[red]markup[/]",
        "👩‍👩‍👧 名前 " * 40,
        "x" * 10_000,
        "\r\n",
        "\x85\u2028\x0b",
    ],
)
async def test_hostile_text_is_shown_and_kept(project_dir: Path, hostile: str) -> None:
    """No raw text reaches the screen, and saving another change keeps every byte."""
    file = project_directory(project_dir) / "scout.md"
    content = SCOUT.replace("Look.", f"Look {hostile} there.").encode()
    async with presets_opened(project_dir, SCOUT, size=(80, 24)) as deck:
        file.write_bytes(content)
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)
        await deck.press("ctrl+end")
        await deck.until_text("no problems")
        assert not set("\x1b\x07\x9b\u202e\x85\u2028\x0b\r") & set(deck.screen_text)
        await deck.type("z")
        await deck.press("ctrl+s")
        await deck.until(lambda: file.read_bytes() == content + b"z", "the bytes in the file")


async def test_what_is_no_text_goes_to_another_editor(project_dir: Path) -> None:
    """A file that is not UTF-8 cannot be edited here, as the message reports by line."""
    async with presets_opened(project_dir, SCOUT) as deck:
        (project_directory(project_dir) / "scout.md").write_bytes(b"---\nname: \xff\n")
        await deck.press("e")
        await deck.until_text(":2: the file is not UTF-8 text")


async def test_nothing_is_selected() -> None:
    """Without a preset the keys suggest what would help, with the effective keys."""
    async with opened(FakeEngine(a_run(1))) as deck:
        said = "No preset is highlighted. :create preset creates one."
        await deck.press("1")
        for key in ("e", ":edit_preset_outside"):
            await deck.press(key)
            await deck.until_text(said)
            await deck.press("escape")
        await deck.press("d")
        assert [said] == deck.toasts
        assert 3 == sum(said in toast.plain for toast in deck.app.toasts.entries())


async def test_readonly_leaves_presets_alone() -> None:
    """A read-only app refuses to write preset files."""
    from subdeck.tui.keys.actions import BY_ID
    from subdeck.tui.keys.command import ActionContext, KeyContext

    action_context = ActionContext(key_context=KeyContext.PRESETS, preset=a_preset(), readonly=True)
    for action in ("create_preset", "edit_preset", "edit_preset_outside", "copy_preset", "delete_preset"):
        assert "--readonly" in BY_ID[action].refusal(action_context)
    assert BY_ID["doctor"].allowed(action_context)
