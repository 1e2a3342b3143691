"""A run's changes, on their own screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from subdeck.core.errors import SubdeckError
from subdeck.core.run.changes import ChangedFile, Changes, ChangesSource, FileStatus
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SQUASH, Operation
from subdeck.tui.changes._screen import ChangedFiles, ChangesScreen
from subdeck.tui.terminal import handover

from ..fake_engine import FakeEngine, a_run
from ..open_deck import Deck, opened

PATCH = """\
diff --git a/src/auth.py b/src/auth.py
index 1111111..2222222 100644
--- a/src/auth.py
+++ b/src/auth.py
@@ -11,5 +11,6 @@ import tokens
 import users
 def authenticate(request):
-    token = request.headers["Authorization"]
+    token = bearer(request)
+    if token is None:
+        raise Unauthorized("no bearer token")
     return User.of(token)
-# end
@@ -40,2 +41,2 @@ def later():
-    return  1
+    return 1
     # more
diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
diff --git a/logo.png b/logo.png
index 3333333..4444444 100644
GIT binary patch
literal 3
KcmZQzWMT#Y01f~L

literal 2
JcmZQzWB>pF00RI3

"""
CHANGES = Changes(files=3, added=4, removed=3, tree="t" * 40)


def an_engine(run: RunSnapshot, patch: str = PATCH) -> FakeEngine:
    engine = FakeEngine(run)
    engine.work.patches[run.run_id] = patch.encode()
    return engine


@asynccontextmanager
async def shown(
    engine: FakeEngine, size: tuple[int, int] = (120, 30), *, readonly: bool = False
) -> AsyncIterator[Deck]:
    async with opened(engine, size, readonly=readonly) as deck:
        await deck.press("c")
        await deck.until(lambda: isinstance(deck.app.screen, ChangesScreen), "the changes")
        await deck.until(lambda: screen_of(deck).shown, "what was changed")
        yield deck


def screen_of(deck: Deck) -> ChangesScreen:
    assert isinstance(deck.app.screen, ChangesScreen)
    return deck.app.screen


async def test_files_and_their_differences() -> None:
    """Each file has its added and removed lines, and its hunks with line numbers, or the reason why it has none."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        await deck.until_text("raise Unauthorized")
        text = deck.screen_text
        for part in (
            "3 files +4 −3",
            "▾ src/auth.py  +4 −3",
            "13-     token = request.headers",
            "13+     token = bearer(request)",
            "▾ old.txt → new.txt  +0 −0  renamed",
            "renamed",
            "binary file, not shown",
            "line 11 · hunk 1 of 2  import tokens",
        ):
            assert part in text, part


async def test_moving_by_hunks_and_files() -> None:
    """The list of files follows the cursor, and a message appears after the last one."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        view = screen_of(deck).view
        await deck.press("}", "}")
        assert view.line == 13
        await deck.press("tab")
        assert view.file is not None and view.file.path == "new.txt"
        assert screen_of(deck).query_one(ChangedFiles).cursor == 1
        await deck.press("tab", "tab")
        await deck.until(lambda: "No next file." in deck.toasts, "the refusal")
        await deck.press("shift+tab", "shift+tab", "}")
        assert view.line == 4


async def test_folding_and_finding() -> None:
    """A folded file is one row; a search match in it unfolds it."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        await deck.press("enter")
        await deck.until_text("▸ src/auth.py")
        assert "bearer" not in deck.screen_text
        await deck.press("/")
        await deck.type("bearer")
        await deck.press("enter")
        await deck.until_text("token = bearer(request)")
        view = screen_of(deck).view
        assert view.line == 8
        await deck.press("n")
        assert view.line == 10
        await deck.press("escape")
        assert not view.wanted and isinstance(deck.app.screen, ChangesScreen)
        await deck.press("escape")
        await deck.until(lambda: not isinstance(deck.app.screen, ChangesScreen), "the deck")


async def test_old_and_new_side_by_side() -> None:
    """A wide screen shows old and new side by side at once, others by a key; matching lines are aligned."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES)), (180, 40)) as deck:
        await deck.until_text("raise Unauthorized")
        (row,) = (line for line in deck.screen_text.splitlines() if "token = request.headers" in line)
        assert "token = bearer(request)" in row
        await deck.press("t")
        await deck.until(lambda: "│   13" not in deck.screen_text, "side-by-side")
        (row,) = (line for line in deck.screen_text.splitlines() if "token = request.headers" in line)
        assert "bearer" not in row


async def test_blanks_can_be_left_out() -> None:
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        assert "40-     return  1" in deck.screen_text
        await deck.press("ctrl+w")
        await deck.until(lambda: "40-     return  1" not in deck.screen_text, "the line to go")
        assert "41      return 1" in deck.screen_text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (None, "This run's changes are unknown."),
        (Changes(), "No changes."),
        (
            Changes(
                files=1,
                added=2,
                source=ChangesSource.TOOLS,
                named=(ChangedFile(path="a.py", status=FileStatus.ADDED, added=2, removed=0),),
            ),
            "a.py  +2 −0",
        ),
        (Changes(files=1, note="git is not installed"), "git is not installed"),
        (Changes(files=1, shared="other runs there: scout 4ae0bd"), "other runs there: scout 4ae0bd"),
    ],
)
async def test_where_there_is_no_patch(changes: Changes | None, said: str) -> None:
    """Without a patch its place shows the reason."""
    async with shown(an_engine(a_run(1, "completed", changes=changes), "")) as deck:
        await deck.until_text(said)


async def test_what_goes_on_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of a running run are reloaded, and the cursor stays on its line of its file."""
    monkeypatch.setattr("subdeck.tui.changes._screen.REFRESH_SECONDS", 0.05)
    run = a_run(1)
    engine = an_engine(run)
    async with shown(engine) as deck:
        view = screen_of(deck).view
        await deck.press("}", "}", "down")
        head = "diff --git a/a.py b/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+first\n"
        engine.work.patches[run.run_id] = (head + PATCH).encode()
        await deck.until_text("first")
        assert view.file is not None and view.file.path == "src/auth.py"
        document = screen_of(deck).document
        assert document is not None and document.position_at(view.cursor) == ("src/auth.py", 41)


async def test_marks_stay_on_their_hunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new hunk above a marked one does not take its mark: exactly the marked hunks are applied. A marked hunk that
    changes loses its mark, with a message.
    """
    monkeypatch.setattr("subdeck.tui.changes._screen.REFRESH_SECONDS", 0.05)
    run = a_run(1)
    engine = an_engine(run)
    engine.work.plans[APPLY] = SubdeckError("not here")
    first = "@@ -11,5 +11,6 @@"
    async with shown(engine) as deck:
        await deck.press("}", "space", "space")
        await deck.until(lambda: len(screen_of(deck).view.marked) == 2, "two marks")
        changed = PATCH.replace(first, "@@ -1 +1 @@\n-one\n+two\n" + first).replace(
            "    if token is None:", "    if not token:"
        )
        engine.work.patches[run.run_id] = changed.encode()
        await deck.until_text("if not token")
        assert screen_of(deck).view.marked == {("src/auth.py", 3)}
        assert "Deselected 1 changed hunk." in deck.toasts
        await deck.press("p")
        await deck.until(lambda: bool(engine.work.asked), "the plan")
        operation, planned, options = engine.work.asked[0]
        assert (APPLY, run.run_id, (), {"src/auth.py": [3]}) == (operation, planned, options["files"], options["hunks"])


async def test_hostile_text_is_drawn_safely() -> None:
    """Control, partial and wide characters, tabs and a line without an end are drawn safely."""
    lines = "+\x1b[31mred\x07\n+\tend\r\n+宽宽宽\n+" + "x" * 3_000_000 + "\n"
    patch = f"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,4 @@ \x1b]0;t\x07\n{lines}"
    engine = an_engine(a_run(1, "completed", changes=CHANGES), "")
    engine.work.patches[a_run(1).run_id] = patch.encode() + b"\\ No newline at end of file\n"
    async with shown(engine) as deck:
        await deck.until_text("no newline at end of file")
        assert "\x1b" not in deck.screen_text and "\x07" not in deck.screen_text
        assert "宽宽宽" in deck.screen_text and "xxx…" in deck.screen_text


async def test_copying_and_marking() -> None:
    """A hunk is copied as an applicable patch; marking it moves to the next one."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        await deck.press("}", "}", "y")
        assert deck.app.clipboard.startswith("diff --git a/src/auth.py") and "@@ -40,2 +41,2 @@" in deck.app.clipboard
        assert "@@ -11,5" not in deck.app.clipboard
        await deck.press("{", "space")
        assert screen_of(deck).view.marked == {("src/auth.py", 1)}
        await deck.until_text("◆ line 11")


async def test_nothing_acts_when_read_only() -> None:
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES)), readonly=True) as deck:
        for key in "PFpMQCDeS|":
            await deck.press(key)
            await deck.until_text("Not possible: the app was opened with --readonly.")
            if isinstance(deck.app.screen, ChangesScreen):
                deck.app.clear_notifications()
            else:
                await deck.press("escape")
                await deck.until(lambda: isinstance(deck.app.screen, ChangesScreen), "the changes")


async def test_undo_and_help_are_there() -> None:
    """Undo and help work on the changes screen."""
    async with shown(an_engine(a_run(1, "completed", changes=CHANGES))) as deck:
        await deck.press("u")
        await deck.until(lambda: "Nothing to undo." in deck.toasts, "the refusal")
        await deck.press("?")
        await deck.until_text("Apply the selected hunks")


RUN = a_run(1, "completed", changes=CHANGES)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (("P",), (APPLY, RUN.run_id, {})),
        (("F",), (APPLY, RUN.run_id, {"files": ["src/auth.py"]})),
        (("tab", "F"), (APPLY, RUN.run_id, {"files": ["new.txt", "old.txt"]})),
        (
            ("}", "}", "p"),
            (APPLY, RUN.run_id, {"files": (), "hunks": {"src/auth.py": [2]}, "tree": CHANGES.tree}),
        ),
        (
            ("}", "space", "space", "p"),
            (APPLY, RUN.run_id, {"files": (), "hunks": {"src/auth.py": [1, 2]}, "tree": CHANGES.tree}),
        ),
        (("M",), (MERGE, RUN.run_id, {})),
        (("Q",), (SQUASH, RUN.run_id, {})),
        (("C",), (COMMIT, RUN.run_id, {})),
        (("D",), (DISCARD, RUN.run_id, {})),
    ],
)
async def test_what_the_keys_take_over(keys: tuple[str, ...], asked: tuple[Operation, str, dict[str, object]]) -> None:
    """The keys apply the whole run, the file or the hunks under the cursor: exactly that is planned and shown first."""
    engine = an_engine(RUN)
    engine.work.plans[asked[0]] = SubdeckError("this cannot be done here")
    async with shown(engine) as deck:
        await deck.press(*keys)
        await deck.until_text("this cannot be done here")
        assert [asked] == engine.work.asked and [] == engine.work.done


async def test_looking_at_it_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The editor opens the file at the line under the cursor, the pager and a command get the whole patch."""
    opened_at: list[tuple[str, int]] = []
    lent: list[tuple[str, bytes]] = []

    def lend(_app: object, path: str, command: str, cwd: str = "") -> str:
        lent.append((command, Path(path).read_bytes()))
        return ""

    monkeypatch.setattr(handover, "edit_file", lambda _, path, line: opened_at.append((path, line)))
    monkeypatch.setattr(handover, "pipe_file", lend)
    monkeypatch.setattr(handover, "page_with", lambda app, pager, path: lend(app, path, "pager"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "auth.py").touch()
    run = a_run(1, "completed", changes=CHANGES, meta_cwd=str(tmp_path))
    async with shown(an_engine(run)) as deck:
        await deck.press("}", "}", "e")
        await deck.until(lambda: bool(opened_at), "the editor")
        assert [(str(tmp_path / "src" / "auth.py"), 41)] == opened_at
        await deck.press("tab", "e")
        await deck.until(lambda: any("new.txt does not exist" in toast for toast in deck.toasts), "the refusal")
        await deck.press("|")
        await deck.until_text("Pipe the changes of")
        await deck.type("diffstat")
        await deck.press("enter")
        await deck.until(lambda: lent == [("diffstat", PATCH.encode())], "the command")
        await deck.press("v")
        await deck.until(lambda: lent[1:] == [("pager", PATCH.encode())], "the pager")


async def test_an_edited_worktree_is_named_as_such() -> None:
    """A worktree that was edited since its run ended is shown as such, with and without changes."""
    engine = FakeEngine(a_run(1, "completed", changes=Changes(edited=True)))
    async with opened(engine) as deck:
        await deck.press("2", "c")
        await deck.until_text("The worktree was edited since the run ended")
        await deck.until_text("The worktree has no changes now.")
