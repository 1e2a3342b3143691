"""Presets are copied, deleted, restored and opened in $EDITOR from their pane; doctor is one key away."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.doctor import Check, State
from subdeck.core.presets.catalog import PresetProblem
from subdeck.core.run.model import PresetSource
from subdeck.tui.deck.screen import MainScreen
from subdeck.tui.dialogs.ask import ConfirmScreen
from subdeck.tui.dialogs.reader import ReadingScreen
from subdeck.tui.presets._copy import CopyPresetScreen
from subdeck.tui.presets._editor import PresetEditorScreen
from subdeck.tui.text.reports import check_lines, summary
from textual.content import Content
from textual.widgets import Input

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import Deck, opened
from ..real_engine import SCOUT, presets_opened, project_directory, until_screen, user_place


async def until_toast(deck: Deck, text: str) -> None:
    await deck.until(lambda: any(text in toast for toast in deck.toasts), f"the toast {text!r}")


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_an_own_preset_is_duplicated(project_dir: Path, size: tuple[int, int]) -> None:
    """A copy suggests the next free name and moves the cursor to the copy; comments and order stay."""
    async with presets_opened(project_dir, SCOUT, SCOUT.replace("name: scout", "name: scout-2"), size=size) as deck:
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        assert deck.app.screen.query_one("#name", Input).value == "scout-3"
        await deck.press("ctrl+s")
        await until_screen(deck, MainScreen)
        await deck.until(lambda: deck.main.presets.preset.name == "scout-3", "the cursor on the copy")
        copy = project_directory(project_dir) / "scout-3.md"
        assert SCOUT.replace("name: scout", "name: scout-3") == copy.read_text()


async def test_an_agent_file_is_shown_and_copied(project_dir: Path) -> None:
    """Another program's agent file shows its warnings and format below the rows, and is copied as our preset."""
    file = project_dir / ".claude" / "agents" / "scout.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: scout\ndescription: d\ndisallowedTools: Bash\nhooks: {}\n---\nLook.\n")
    agents = {"claude": {"command": ["/bin/true"]}}
    dirs = [{"path": str(file.parent), "agent": "claude"}]
    async with presets_opened(project_dir, size=(200, 50), agents=agents, preset_dirs=dirs) as deck:
        await deck.until_text("! hooks is")
        await deck.until_text("agent file, ")
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        await deck.press("ctrl+s")
        await until_screen(deck, MainScreen)
        await deck.until(lambda: deck.main.presets.preset.name == "scout-2", "the cursor on the copy")
        assert "denied_tools: [bash]\n" in (project_directory(project_dir) / "scout-2.md").read_text()


@pytest.mark.parametrize("name", ["a/b", "n" * 300, "", "scout"])
async def test_a_copy_that_cannot_be_written_says_why(project_dir: Path, name: str) -> None:
    """If the copy cannot be written, the dialog stays with the typed text and the reason below it."""
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        deck.app.screen.query_one("#name", Input).value = name
        await deck.press("ctrl+s")
        await deck.until(lambda: str(deck.app.screen.query_one("#problems").render()).strip(), "the reason")
        assert deck.app.screen.query_one("#name", Input).value == name
        assert ["scout.md"] == [path.name for path in project_directory(project_dir).glob("*.md")]


async def test_a_copy_for_all_projects(project_dir: Path) -> None:
    """The dialog offers the directory for all projects, where the same name is possible."""
    async with presets_opened(project_dir, SCOUT) as deck:
        await deck.act("copy_preset")
        await until_screen(deck, CopyPresetScreen)
        deck.app.screen.query_one("#name", Input).value = "scout"
        await deck.press("tab", "right", "ctrl+s")
        await deck.until((user_place() / "scout.md").is_file, "the copy")
        assert SCOUT == (user_place() / "scout.md").read_text()


async def test_a_broken_file_is_not_copied() -> None:
    """The refusal to copy a broken file names the key to fix it, even the user's own."""
    problem = PresetProblem(path="/x.md", message="bad", line=2, source=PresetSource.PROJECT, name="broken")
    async with opened(FakeEngine(a_run(1), problems=[problem])) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the broken file")
        await deck.act("presets", "copy_preset")
        await deck.until_text("This preset file is broken. Fix it first (e).")


async def test_delete_asks_and_undo_brings_back(project_dir: Path) -> None:
    """The question names file, origin and replacement; undo restores every byte and the cursor."""
    file, farther = project_directory(project_dir) / "scout.md", user_place() / "far.md"
    farther.write_text(SCOUT)
    async with presets_opened(project_dir, SCOUT, SCOUT.replace("name: scout", "name: zebra")) as deck:
        await deck.press("d")
        await until_screen(deck, ConfirmScreen)
        await deck.until_text("The global preset with this name replaces it:")
        shown = deck.screen_text
        assert "Delete the preset scout?" in shown
        assert "project: " in shown and ".pi/subagents/scout.md" in shown
        assert "~/.pi/agent/subagents/far.md" in shown
        await deck.press("enter")
        await until_screen(deck, MainScreen)
        assert file.exists()
        await deck.press("d")
        await until_screen(deck, ConfirmScreen)
        await deck.press("y")
        await deck.until(lambda: deck.main.presets.preset.source is PresetSource.GLOBAL, "the farther preset")
        assert not file.exists()
        await until_toast(deck, "Deleted the preset scout. u restores it.")
        await deck.press("u")
        await deck.until(lambda: deck.main.presets.preset.source is PresetSource.PROJECT, "the preset")
        assert SCOUT == file.read_text()
        assert deck.main.presets.preset.path == str(file)


async def test_a_broken_file_can_be_deleted(project_dir: Path) -> None:
    """A broken file can be deleted and restored unchanged."""
    file = project_directory(project_dir) / "scout.md"
    async with presets_opened(project_dir, "nothing at all") as deck:
        await deck.press("d")
        await until_screen(deck, ConfirmScreen)
        await deck.until_text("No other preset has this name.")
        await deck.press("y")
        await deck.until(lambda: not deck.main.presets.row_count, "the file to go")
        await deck.press("u")
        await deck.until(lambda: deck.main.presets.problem, "the file")
        assert "nothing at all" == file.read_text()


async def test_bundled_presets_are_not_deleted(project_dir: Path) -> None:
    """The refusal to delete a bundled preset names the setting to hide it."""
    async with presets_opened(project_dir, bundled_presets=True, roles={"fast": "fake/test"}) as deck:
        await deck.until(lambda: deck.main.presets.preset, "Explore")
        await deck.press("d")
        assert "bundled_presets: false" in deck.toasts[0]


@pytest.mark.parametrize("key", ["e", ":edit_preset_outside"])
async def test_bundled_presets_are_copied_instead_of_edited(project_dir: Path, key: str) -> None:
    """Editing a bundled preset offers a copy, which then belongs to the user."""
    async with presets_opened(project_dir, bundled_presets=True, roles={"fast": "fake/test"}) as deck:
        await deck.until(lambda: deck.main.presets.preset, "Explore")
        await deck.press(key)
        await until_screen(deck, ConfirmScreen)
        await deck.until_text("Bundled presets cannot be changed.")
        await deck.press("enter")
        await until_screen(deck, CopyPresetScreen)
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.main.presets.preset.source is PresetSource.PROJECT, "the copy")
        await deck.press("e")
        await until_screen(deck, PresetEditorScreen)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("sed -i 's/^model.*/modle: x/'", 'scout.md was saved\n! unknown key "modle" is ignored'),
        ("sed -i 's/^name/nam/'", "scout.md is broken: name is missing"),
        ("sed -i 's/Look/Seek/'", "scout.md was saved, no problems"),
        ("rm", "scout.md no longer exists"),
        ("false", "false failed with exit code 1"),
        ("/no/such/editor", "Cannot start /no/such/editor"),
    ],
)
async def test_an_editor_outside_is_checked_after(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, change: str, said: str
) -> None:
    """`E` opens the file itself in $EDITOR, and reports its problems afterwards."""
    from contextlib import nullcontext

    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", change)
    async with presets_opened(project_dir, SCOUT) as deck:
        monkeypatch.setattr(deck.app, "suspend", nullcontext)
        await deck.act("edit_preset_outside")
        await until_toast(deck, said)


async def test_doctor_is_one_key_away(project_dir: Path) -> None:
    """`!` checks again each time, and shows problems first, each with glyph, word and command."""
    async with presets_opened(project_dir, size=(80, 24)) as deck:
        await deck.act("doctor")
        await until_screen(deck, ReadingScreen)
        await deck.until_text("✓ ok      subdeck")
        assert "! warn    presets" in deck.screen_text
        assert "→ subdeck presets shows how to write one" in deck.screen_text
        await deck.until_text("warnings   esc closes")
        await deck.press("pagedown", "escape")
        await until_screen(deck, MainScreen)
        (project_directory(project_dir) / "scout.md").write_text(SCOUT)
        await deck.act("doctor")
        await deck.until_text("✓ ok      subdeck")
        await deck.press("pagedown")
        await deck.until_text("presets     1: scout")


def test_doctor_sums_up() -> None:
    """The number of problems is shown in words, and a hostile detail is one plain line."""
    checks = (Check("a", State.PROBLEM, "x", "do\x1b[31m it"), Check("b", State.WARN, "y"), Check("c", State.WARN, "z"))
    assert summary(checks) == "1 problem, 2 warnings   esc closes"
    assert summary(()) == "no problems   esc closes"
    assert check_lines(checks[0]).plain == "✗ problem a           x\n  → do it"


async def test_a_read_text_is_filtered_and_scrolled() -> None:
    """Words filter whole entries, arrows scroll and Escape closes."""
    async with opened(FakeEngine(a_run(1)), (80, 24)) as deck:
        entries = [Content(f"message {number}\n  more of [b]{number}[/b]") for number in range(60)]
        screen = ReadingScreen("Messages", entries, filterable=True)
        deck.app.push_screen(screen)
        await deck.until_text("more of [b]0[/b]")
        assert "message 59" not in deck.screen_text
        await deck.type("OF 7")
        await deck.until_text("message 7")
        await deck.until(lambda: "message 1\n" not in deck.screen_text, "the others to go")
        await deck.type("zz")
        await deck.until_text("No matches.")
        for _ in "OF 7zz":
            await deck.press("backspace")
        await deck.until_text("message 0")
        await deck.press("down")
        await deck.until(lambda: "message 0" not in deck.screen_text, "the text to scroll")
        screen.show([], "note")
        await deck.until_text("Nothing to show.")
        await deck.press("escape")
        await until_screen(deck, MainScreen)


async def test_empty_state_names_own_keys(project_dir: Path) -> None:
    """The empty state shows the effective keys, and with enough room the install command of a missing program."""
    settings = {"keys": {"create_preset": "f5", "doctor": "f9"}}
    async with presets_opened(project_dir, size=(80, 28), **settings) as deck:
        await deck.until_text("f5  new preset")
        assert "~/.pi/agent/subagents" in deck.screen_text
        await deck.until_text("! pi is missing: install it (npm install -g")
        await deck.until_text("(f9")
        assert "shows details)" in deck.screen_text
        await deck.pilot.resize_terminal(120, 30)
        await deck.until_text("f9 shows details")


async def test_wide_rows_have_model_and_tools() -> None:
    """A zoomed pane shows what a run would get; a narrow one shows it for the highlighted row below the rows."""
    problem = PresetProblem(path="/x.md", message="name is missing", line=2, source=PresetSource.PROJECT, name="broken")
    presets = [a_preset("aaa", denied_tools=("bash",), tools=None), a_preset("bbb", model=None, warnings=("odd",))]
    async with opened(FakeEngine(a_run(1), presets=presets, problems=[problem]), (120, 50)) as deck:
        await deck.until(lambda: deck.main.presets.row_count == 3, "the rows")
        await deck.press("1")
        rows = "\n".join(deck.rows(deck.main.presets))
        for text in ("Finds things.", "model: fake/test", "tools: all but bash"):
            assert text in rows
        await deck.press("z")
        await deck.until(lambda: deck.main.presets.size.width > 100, "the zoom")
        rows = deck.rows(deck.main.presets)
        assert rows[0].split("  ")[0].strip("▌ ") == "aaa"
        assert "fake/test" in rows[0] and "all but bash" in rows[0] and "Finds things." in rows[0]
        assert "no model" in rows[1] and "!bbb" in rows[1]
        assert "line 2: name is missing" in rows[2]
        await deck.press("j")
        await deck.until_text("! odd")


async def test_a_run_is_thought_through(project_dir: Path) -> None:
    """Once the cursor rests, tools that a run of the preset would not get are named below the rows."""
    texts = SCOUT, SCOUT.replace("grep", "grepp").replace("name: scout", "name: zebra")
    async with presets_opened(project_dir, *texts) as deck:
        await deck.press("j")
        await deck.until_text("! grepp is left out:")
        await deck.press("k")
        await deck.until(lambda: "grepp is" not in deck.screen_text, "the warning to go")


async def test_a_full_pane_says_it_at_the_edge() -> None:
    """Without room below the rows, the pane's edge has the warning or the description."""
    presets = [a_preset(f"p{number:02}", warnings=("odd thing",) if number == 0 else ()) for number in range(30)]
    async with opened(FakeEngine(a_run(1), presets=presets), (120, 30)) as deck:
        await deck.until(lambda: deck.main.presets.row_count == 30, "the rows")
        await deck.press("1")
        await deck.until(lambda: "odd thing" in str(deck.main.presets.border_subtitle), "the edge")
        await deck.press("j")
        await deck.until(lambda: "Finds things." in str(deck.main.presets.border_subtitle), "the edge")
