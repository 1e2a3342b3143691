"""Taking text out of the app: code blocks, a command, a named file."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from subdeck.core.run.events import AssistantText
from subdeck.core.run.model import RunReason, RunResult, RunStatus
from subdeck.tui.answers._locations import locations_in
from subdeck.tui.answers._pipe import PipeScreen
from subdeck.tui.dialogs.pick import PickScreen
from subdeck.tui.terminal import handover

from ..fake_engine import FakeEngine, a_preset, a_run, run_id, stamp
from ..open_deck import Deck, opened

ANSWER = "Look:\n\n```make\nall:\n\techo \x1b[31m1\n```\n\n```sh\nmake\n```\n"


def an_engine(said: str = "nothing", *, cwd: str = "/src/shop", answer: str | None = ANSWER) -> FakeEngine:
    engine = FakeEngine(a_run(1, "completed", last_seq=1, meta_cwd=cwd), presets=[a_preset()])
    engine.write(run_id(1), AssistantText(seq=1, ts=stamp(1), text=said))
    result = RunResult(
        run_id=run_id(1), status=RunStatus.COMPLETED, reason=RunReason.DONE, written_by="wrapper", final_text=answer
    )
    engine.result = lambda _: result  # type: ignore[method-assign]
    engine.cwd = "/"
    return engine


async def dialog(deck: Deck, kind: type) -> None:
    await deck.until(lambda: isinstance(deck.app.screen, kind), kind.__name__)


async def test_code_block_is_chosen_and_copied() -> None:
    """If the answer has code blocks, Y asks for the part to copy; tabs stay, control characters do not."""
    async with opened(an_engine(), (80, 24)) as deck:
        await deck.act("copy_answer")
        await dialog(deck, PickScreen)
        await deck.until_text("the whole answer")
        assert "1  make, 2 lines:  all:" in deck.screen_text
        await deck.press("down", "enter")
        await deck.until(lambda: deck.app.clipboard == "all:\n\techo 1\n", "the block")
        assert ["Copied code block 1 of repo-scout 000001, 3 lines, 13 B."] == deck.toasts
        await deck.act("copy_answer")
        await dialog(deck, PickScreen)
        await deck.press("escape")
        assert deck.app.clipboard == "all:\n\techo 1\n"


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make commands wait for an Enter, to be written to this descriptor."""
    monkeypatch.setenv("SHELL", "/bin/sh")
    (keys, pressed), stdin = os.pipe(), os.dup(0)
    os.dup2(keys, 0)
    os.close(keys)
    yield pressed
    os.dup2(stdin, 0)
    os.close(stdin)
    os.close(pressed)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((), "Look:\n\n```make\nall:\n\techo 1\n```\n\n```sh\nmake\n```\n"), (("tab", "right"), "said it")],
)
async def test_text_is_piped_to_a_command(
    keys: tuple[str, ...], expected: str, lent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The typed command gets the answer or the transcript on its stdin, and is suggested the next time."""
    async with opened(an_engine("said it")) as deck:
        monkeypatch.setattr(deck.app, "suspend", nullcontext)
        await deck.until_text("said it")
        for name in ("one", "two"):
            await deck.press("|")
            await dialog(deck, PipeScreen)
            await deck.type(f"cat > {tmp_path}/{name}; echo $0 >> {tmp_path}/{name}" if name == "one" else "")
            await deck.press(*keys, *(("shift+tab",) if keys else ()))
            os.write(lent, b"\n")  # returns to the deck after the command
            await deck.press("enter")
            await deck.until(lambda: not isinstance(deck.app.screen, PipeScreen), "the end of the dialog")
            await deck.until(lambda: not select.select([0], [], [], 0)[0], "the Enter to be read")
        await deck.until(lambda: (tmp_path / "one").exists(), "the output")
        await deck.until(lambda: "/bin/sh" in (tmp_path / "one").read_text(), "its end")
        text = (tmp_path / "one").read_text()
        assert expected in text
        assert [] == deck.toasts


async def test_answer_that_is_not_there_is_not_piped(lent: int) -> None:
    """Without an answer no command is run, and the reason is shown."""
    async with opened(an_engine(answer=None)) as deck:
        await deck.press("2", "|")
        await dialog(deck, PipeScreen)
        await deck.type("cat")
        await deck.press("enter")
        await deck.until(lambda: deck.toasts, "the reason")
        assert "finished without an answer" in deck.toasts[0]


@pytest.mark.parametrize("key", ["|", ":open_path"])
async def test_nothing_is_run_when_readonly(key: str) -> None:
    """A read-only app starts no command and no editor."""
    async with opened(an_engine(), readonly=True) as deck:
        await deck.press("3", key)
        await deck.until(lambda: deck.toasts, "the refusal")
        assert "--readonly" in deck.toasts[0]


async def test_file_that_is_named_opens_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path under the cursor, relative to the run's directory, is opened in the editor."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/auth.py").write_text("x\n")
    (tmp_path / "src/other.py").write_text("x\n")
    seen: list[tuple[str, int | None]] = []

    def edit(app: object, path: str, *, line: int | None = None) -> str:
        seen.append((path, line))
        return ""

    monkeypatch.setattr(handover, "edit_file", edit)
    async with opened(
        an_engine("It is in `src/auth.py:40`.\nAnd src/auth.py, src/other.py:7:3", cwd=str(tmp_path))
    ) as deck:
        await deck.until_text("It is in")
        await deck.press("3", "k", ":open_path")
        await deck.until(lambda: seen, "the editor")
        assert [(str(tmp_path / "src/auth.py"), 40)] == seen
        await deck.press("j", ":open_path")
        await dialog(deck, PickScreen)
        await deck.press("down", "enter")
        await deck.until(lambda: len(seen) == 2, "the editor")
        assert (str(tmp_path / "src/other.py"), 7) == seen[1]


async def test_line_that_names_no_file_says_so() -> None:
    """A path that does not exist is not opened."""
    async with opened(an_engine("see src/nowhere.py:3")) as deck:
        await deck.until_text("see src")
        await deck.press("3", ":open_path")
        await deck.until(lambda: deck.toasts, "the word")
        assert ["No existing file path under the cursor."] == deck.toasts


def test_places(tmp_path: Path) -> None:
    """Paths are found in prose, diffs, links and arguments, but only of regular files."""
    for name in ("a.py", "-rf", "b c.txt"):
        (tmp_path / name).write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    cwd, path = str(tmp_path), str(tmp_path / "a.py")

    def places(text: str) -> list[tuple[str, int | None]]:
        return [(place.path, place.line) for place in locations_in(text, cwd)]

    assert [(path, None)] == places("+++ b/a.py")
    assert [(path, 12)] == places("(a.py:12)")
    assert [(path, 12)] == places("a.py and then a.py:12-30.")
    assert [(path, 3)] == places(f"{path}#L3-L9, done")
    assert [(path, 5)] == places('File "a.py": offset\npath: a.py\noffset: 5')
    assert [(str(tmp_path / "-rf"), None)] == places("-rf")
    assert [] == places("pipe sub . .. / ~ \0 ~\0x nowhere.py:1")


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("vim", ("+7", "/a/b")),
        ("/usr/bin/nano", ("+7", "/a/b")),
        ("hx", ("/a/b:7",)),
        ("code", ("--goto", "/a/b:7")),
        ("unknown", ("/a/b",)),
    ],
)
def test_editor_is_told_the_line_in_its_own_way(editor: str, expected: tuple[str, ...]) -> None:
    """An unknown editor gets only the file, without the line."""
    assert expected == handover._at_line(editor, "/a/b", 7)
    assert ("/a/b",) == handover._at_line(editor, "/a/b", None)
