"""Requests on the deck: shown exactly, answered by one key, in turn, and never by a key meant for another one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.config.settings import Notifications, Settings
from subdeck.core.errors import RunBusy
from subdeck.core.run.events import CUT, Decision, Field, Request
from subdeck.core.run.model import RequestKind, Verdict
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.run.requests import request_hash
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.deck._toasts import requests_text
from subdeck.tui.feed.lines import body_of, body_text, entry_of
from subdeck.tui.talk._request_rows import Tone, request_rows

from ...core.run.test_hostile_requests import HIDDEN, PAYLOAD
from ...hostile import EVIL, controls
from ..fake_engine import FakeEngine, a_run, run_id, some_events, stamp
from ..open_deck import Deck, opened

DIFF = """--- a/src/auth.py
+++ b/src/auth.py
@@ -12,2 +12,2 @@
 def authenticate(request):
-    token = request.headers["Authorization"]
+    token = bearer(request)
"""


def a_request(number: int = 1, kind: RequestKind = RequestKind.PERMISSION, **fields: Any) -> Request:
    known: dict[str, Any] = {"title": "wants to run a command", "tool_name": "bash", "command": "rm -rf build && make"}
    if kind is not RequestKind.PERMISSION:
        known = {"title": "has a question", "text": "Which one?"}
    return Request(id=f"q{number}", ts=stamp(number), kind=kind, **(known | fields))


def asking(number: int, *requests: Request, **fields: Any) -> RunSnapshot:
    return a_run(number, requests=requests or (a_request(),), meta_talk=True, **fields)


async def at_block(deck: Deck) -> None:
    """Go to the first request, and read it."""
    await deck.until(lambda: deck.main.run_store.waiting, "a request")
    await deck.press("]")
    await deck.until(lambda: deck.main.request.has_focus, "the keys in the block")
    await deck.pass_time()


async def no_request(deck: Deck, engine: FakeEngine) -> None:
    """Remove the run's requests."""
    engine.tell(a_run(1, meta_talk=True))
    await deck.until(lambda: not deck.main.run_store.waiting, "the end of its request")


async def test_one_key_answers() -> None:
    """`]` goes to the first waiting run; its pane shows command, directory and rule, and `y` allows it."""
    engine = FakeEngine(asking(1, a_request(rule="bash asks", cwd="/src/shop/web")), a_run(2))
    async with opened(engine) as deck:
        await at_block(deck)
        for shown in ("? wants to run a command", "rm -rf build && make", "in /src/shop/web", "matched rule bash asks"):
            assert shown in deck.screen_text
        assert "timers paused" in deck.screen_text
        await deck.press("y")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", "allow", "")]
        await deck.until_text("reply sent")
        await no_request(deck, engine)
        await deck.pass_time()
        await deck.until(lambda: not deck.main.request.is_shown, "the block to go")
        await deck.until(lambda: deck.main.transcript.has_focus, "the keys in the transcript")


@pytest.mark.parametrize(("key", "verdict"), [("Y", "allow_run"), ("n", "deny"), ("y", "allow")])
async def test_the_keys_of_a_permission(key: str, verdict: str) -> None:
    """Allow, allow in this run, deny: a key each."""
    engine = FakeEngine(asking(1, a_request(run_rule="bash(make *)")))
    async with opened(engine) as deck:
        await at_block(deck)
        assert "Y allow for this run" in deck.screen_text
        await deck.press(key)
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", verdict, "")]


async def test_what_cannot_be_allowed_for_the_run() -> None:
    """Without a rule to add, `Y` is not offered and gives the reason, and does not copy the run's answer."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        assert "allow for this run" not in deck.screen_text
        await deck.press("Y")
        await deck.until(lambda: any("for the whole run" in toast for toast in deck.toasts), "the refusal")
        assert not engine.told


async def test_denying_with_a_word() -> None:
    """`e` opens a line for the reason that the agent gets."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("e")
        await deck.until_text("deny with a reason:")
        await deck.type("use make clean")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", "deny", "use make clean")]


async def test_a_question_is_answered_in_words() -> None:
    """Enter opens the line for the answer."""
    engine = FakeEngine(asking(1, a_request(kind=RequestKind.QUESTION)))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until(lambda: any("This is a question" in toast for toast in deck.toasts), "the refusal")
        await deck.press("enter")
        await deck.until_text("reply to: Which one?")
        await deck.type("both")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", "reply", "both")]


async def test_a_choice_by_its_number() -> None:
    """A digit replies with that choice; a higher digit keeps its usual meaning."""
    engine = FakeEngine(asking(1, a_request(kind=RequestKind.CHOICE, choices=("main", "develop"))))
    async with opened(engine) as deck:
        await at_block(deck)
        assert "2  develop" in deck.screen_text
        await deck.press("3")
        assert not engine.told
        await deck.press("2")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", "reply", "develop")]


async def test_a_form_field_by_field() -> None:
    """Each field is asked separately: a digit takes a choice, a wrong value is refused, optional ones may be empty."""
    fields = (
        Field("branch", "Branch", required=True),
        Field("level", "Level", choices=("patch", "minor")),
        Field("note", "Note"),
    )
    engine = FakeEngine(asking(1, a_request(kind=RequestKind.FORM, fields=fields)))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("e")
        await deck.until_text("1 of 3: Branch*")
        await deck.type("main")
        await deck.press("enter")
        await deck.until_text("2 of 3: Level (patch / minor)")
        await deck.type("7")
        await deck.press("enter")
        await deck.until_text("not one of the choices")
        await deck.press("backspace", "2", "enter")
        await deck.until_text("3 of 3: Note")
        await deck.press("enter")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.told == [("reply", run_id(1), "q1", "reply", '{"branch":"main","level":"minor"}')]
        await deck.until(lambda: not deck.main.talk.is_open, "the line to close")
        assert () == deck.main.talk.unsent


async def test_several_requests_in_turn() -> None:
    """After a reply the next request is shown, and a key meant for the one before does not answer it."""
    both = (a_request(1), a_request(2, command="make install"))
    engine = FakeEngine(asking(1, *both))
    async with opened(engine) as deck:
        await at_block(deck)
        assert "1 more" in deck.screen_text
        await deck.press("y")
        await deck.until_text("make install")
        await deck.press("y")
        assert [("reply", run_id(1), "q1", "allow", "")] == engine.told
        await deck.pass_time()
        await deck.press("n")
        await deck.until(lambda: len(engine.told) == 2, "the second reply")
        assert engine.told[1] == ("reply", run_id(1), "q2", "deny", "")


async def test_what_comes_takes_no_keys() -> None:
    """A new request does not take the focus: `y` copies, and replies to nothing."""
    engine = FakeEngine(a_run(1, meta_talk=True))
    async with opened(engine) as deck:
        await deck.press("enter")
        engine.tell(asking(1))
        await deck.until_text("rm -rf build")
        await deck.press("y")
        assert deck.main.transcript.has_focus
        assert not engine.told


async def test_later() -> None:
    """Escape leaves the request open and goes to the transcript; Enter in the runs returns to it."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("escape")
        assert deck.main.transcript.has_focus
        await deck.press("2", "enter")
        await deck.until(lambda: deck.main.request.has_focus, "the keys in the block")
        assert not engine.told


async def test_a_reply_that_comes_too_late() -> None:
    """A request decided elsewhere is reported; while it is open another reply can be sent."""
    engine = FakeEngine(asking(1))
    engine.talk_errors[run_id(1)] = RunBusy("q1 is no longer pending")
    async with opened(engine) as deck:
        await at_block(deck)
        await deck.press("y")
        await deck.until(lambda: any("no longer pending" in toast for toast in deck.toasts), "why not")
        assert deck.main.request.request
        await no_request(deck, engine)
        await deck.until_text("request withdrawn or answered elsewhere")
        await deck.pass_time()
        await deck.until(lambda: not deck.main.request.is_shown, "the block to go")


async def test_the_block_names_the_keys_that_work() -> None:
    """The block names the key to focus it, or with the focus the reply keys, or none while text is typed."""
    engine = FakeEngine(asking(1), a_run(2))
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.run_store.waiting, "a request")
        deck.main.runs.select(run_id(1))
        await deck.until_text("] answer")
        assert "y allow" not in deck.screen_text
        await deck.press("3")
        await deck.until_text("y allow")
        assert "] answer" not in deck.screen_text
        await deck.pass_time()
        await deck.press("escape")
        await deck.until_text("] answer")
        assert "y allow" not in deck.screen_text
        await deck.press("s")
        await deck.until_text("▸ to repo-scout")
        assert "] answer" not in deck.screen_text
        await deck.press("escape")
        await deck.until_text("] answer")
        await deck.press("]")
        await deck.until_text("y allow")


@pytest.mark.parametrize("place", ["runs", "transcript", "request"])
async def test_leaving_a_message_over_a_request(place: str) -> None:
    """Escape from a message's line restores the focus, even if the run has a request."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        if place != "request":
            await deck.press("escape")
        if place == "runs":
            await deck.press("2")
        pane = getattr(deck.main, place)
        await deck.until(lambda: pane.has_focus, "the keys in the pane")
        await deck.press("s")
        await deck.until_text("▸ to repo-scout")
        await deck.press("escape")
        await deck.until(lambda: not deck.main.talk.is_open and pane.has_focus, "the keys back in the pane")


async def test_readonly_shows_and_answers_nothing() -> None:
    """With --readonly the request is shown, without keys."""
    engine = FakeEngine(asking(1))
    async with opened(engine, readonly=True) as deck:
        await at_block(deck)
        assert "y allow" not in deck.screen_text
        await deck.press("y", "n", "e")
        await deck.until(lambda: "with --readonly" in deck.screen_text or deck.toasts, "the refusal")
        assert not engine.told


def test_an_edit_is_shown_as_a_diff() -> None:
    """A diff has line numbers, signs and colours, with the path above it once."""
    request = a_request(title="wants to edit", tool_name="edit", command="", paths=("src/auth.py",), diff=DIFF)
    rows = request_rows(request, "/src/shop", 80)
    assert [row.text for row in (rows[0], *rows[-4:-1])] == [
        "src/auth.py",
        "12   def authenticate(request):",
        '13 -     token = request.headers["Authorization"]',
        "13 +     token = bearer(request)",
    ]
    assert [row.tone for row in rows[-3:-1]] == [Tone.REMOVED, Tone.ADDED]


def test_the_request_comes_before_its_rule() -> None:
    """The command or the change comes first; its rules and the note on timers are the last rows."""
    for fields in ({"command": "make"}, {"command": "", "paths": ("src/auth.py",), "diff": DIFF}):
        rows = request_rows(a_request(**fields, rule="bash asks", run_rule="bash(make *)"), "/src/shop", 120)
        assert rows[0].text in ("make", "src/auth.py")
        assert [row.text for row in rows[-2:]] == [
            "allowing it for this run adds the rule bash(make *)",
            "matched rule bash asks · not run yet · timers paused",
        ]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_a_long_request_gets_most_of_the_height(size: tuple[int, int]) -> None:
    """A long request takes 60 % of the height, from the runs too; their pane grows again after the reply."""
    diff = "@@ -1,0 +1,60 @@\n" + "".join(f"+line {number}\n" for number in range(60))
    engine = FakeEngine(asking(1, a_request(command="", paths=("a.py",), diff=diff)))
    async with opened(engine, size) as deck:
        await at_block(deck)
        deck_height = size[1] - 2
        await deck.until(lambda: deck.main.request.outer_size.height == round(0.6 * deck_height), "the height")
        assert deck.main.transcript.outer_size.height >= 4
        assert "repo-scout" in "".join(deck.rows(deck.main.runs))
        before = deck.main.panes.above.outer_size.height
        await no_request(deck, engine)
        await deck.pass_time()
        await deck.until(lambda: not deck.main.request.is_shown, "the block to go")
        if size[0] < 180:
            await deck.until(lambda: deck.main.panes.above.outer_size.height > before, "the height of the runs")


async def test_a_short_request_leaves_the_runs_their_height() -> None:
    """A request takes only the rows that it needs."""
    engine = FakeEngine(a_run(1, meta_talk=True))
    async with opened(engine, (80, 24)) as deck:
        before = deck.main.panes.above.outer_size.height
        engine.tell(asking(1))
        await at_block(deck)
        assert deck.main.request.outer_size.height == 5
        assert deck.main.panes.above.outer_size.height == before


def test_hostile_texts_are_shown_as_text() -> None:
    """An agent's text in a request neither moves the cursor nor changes the order of letters."""
    evil = dict.fromkeys(("command", "text", "title", "diff", "rule", "run_rule", "cwd"), EVIL)
    request = a_request(**evil, paths=(EVIL,), choices=(EVIL,), fields=(Field(EVIL, EVIL, EVIL, (EVIL,)),))
    for row in request_rows(request, EVIL, 40):
        assert not controls(row.text), row


def test_a_long_command() -> None:
    """A megabyte is laid out up to a limit, and the cut is reported."""
    rows = request_rows(a_request(command="x" * 1_000_000), "/src/shop", 40)
    assert rows[-1].tone is Tone.WARNING
    assert "characters) are not shown. subdeck requests shows the whole request" in rows[0].text
    cut = request_rows(a_request(command=f"make {CUT}", missing=1234), "/src/shop", 40)
    assert any("1,234 characters are missing" in row.text for row in cut)


def test_a_wrapped_line_is_no_new_line() -> None:
    """Wrapped rows are marked, so that a wrapped comment does not hide a command below it."""
    rows = request_rows(a_request(command="# nothing happens here\ntouch x"), "/src/shop", 12)
    assert ["# nothing", "↪ happens", "↪ here", "touch x"] == [row.text for row in rows[:4]]


@pytest.mark.parametrize(("text", "code"), list(HIDDEN.values()), ids=list(HIDDEN))
def test_hidden_characters_are_shown(text: str, code: str) -> None:
    """Hidden characters and all text behind them are shown in the block, the transcript's row and body, the notice and
    the desktop notification.
    """
    line = text.replace("\n", " ")
    edit = {"tool_name": "edit", "command": "", "paths": (line,), "diff": f"+++ a\n@@ -0,0 +1,1 @@\n+{line}"}
    for asked in (a_request(command=text), a_request(**edit)):
        block = "\n".join(row.text for row in request_rows(asked, "/src/shop", 200))
        entry = entry_of(asked, ProgressFormatter())
        assert entry
        opened = body_text(body_of(asked))
        toast = requests_text([asking(1, asked)], 300)
        for shown in (block, entry.text, opened, toast):
            assert (True, True) == (code in shown, PAYLOAD in shown)
            assert [] == controls(shown.replace("\n", ""))


async def test_a_reply_is_bound_to_what_is_shown() -> None:
    """A reply has the hash of the request on the screen, and a changed request is shown before it accepts keys."""
    engine = FakeEngine(asking(1))
    async with opened(engine) as deck:
        await at_block(deck)
        engine.tell(asking(1, a_request(command="rm -rf /")))
        await deck.until_text("rm -rf /")
        await deck.press("y")
        assert not engine.told
        await deck.pass_time()
        await deck.press("y")
        await deck.until(lambda: engine.told, "the reply")
        assert engine.read == [request_hash(run_id(1), a_request(command="rm -rf /"))]


def test_the_block_knows_no_markup(tmp_path: Path) -> None:
    """Brackets in a request are shown unchanged."""
    assert request_rows(a_request(command="[bold]ls[/bold]"), str(tmp_path), 60)[0].text == "[bold]ls[/bold]"


async def test_a_request_in_the_transcript() -> None:
    """A request is a line that expands to its exact text, with the diff of an edit; its decision follows."""
    asked = a_request(title="wants to edit", tool_name="edit", command="", paths=("src/auth.py",), diff=DIFF)
    engine = FakeEngine(a_run(1, last_seq=12))
    decision = Decision(seq=12, ts=stamp(12), request="q1", verdict=Verdict.DENY, by="operator", text="not that file")
    engine.write(run_id(1), *some_events(), replace(asked, seq=11), decision)
    async with opened(engine, (120, 50)) as deck:
        await deck.until_text("? wants to edit: src/auth.py")
        assert "Denied by the user" in deck.screen_text
        await deck.press("3", "up", "enter")
        await deck.until_text("13 +     token = bearer(request)")


async def test_a_toast_says_who_waits() -> None:
    """A new request is notified at once, by bell and desktop as set; one waiting at the start, in few words."""
    engine = FakeEngine(asking(1), a_run(2, meta_talk=True), a_run(3, meta_talk=True))
    engine.settings = Settings(notifications=Notifications(bell=True))
    async with opened(engine) as deck:
        assert deck.toasts == ["1 run needs input."]
        rung: list[bool] = []
        deck.app.bell = lambda: rung.append(True)
        engine.tell(asking(2), asking(3))
        await deck.until(lambda: any("2 runs need input" in toast for toast in deck.toasts), "the toast")
        assert rung
        engine.tell(asking(2, a_request(1), a_request(2, command="make install")))
        await deck.until(lambda: len(rung) == 2, "the bell for a further request")


def test_what_a_toast_says_of_requests() -> None:
    """A toast shows a single request's text, several in a line each, and many by their number."""
    runs = [asking(number) for number in range(1, 7)]
    assert requests_text(runs[:1]).split("\n")[1] == "wants to run a command: rm -rf build && make"
    lines = requests_text(runs).split("\n")
    assert lines[0] == "6 runs need input:"
    assert lines[-1] == "and 3 runs more"


TREE = "/state/subdeck/work/0123456789abcdef/20260101-000000-abcdef/tree"


def test_paths_of_a_worktree_are_short() -> None:
    """The block shows files and directory relative to the worktree, and the command exactly."""
    diff = f"+++ {TREE}/src/a.py\n@@ -1,1 +1,1 @@\n-a\n+b"
    edit = a_request(command="", paths=(f"{TREE}/src/a.py", "/etc/hosts"), diff=diff, cwd="")
    rows = [row.text for row in request_rows(edit, TREE, 80)]
    assert ["src/a.py", "/etc/hosts", "in its worktree"] == rows[:3]
    assert "src/a.py" in rows[3:] and not [row for row in rows if TREE in row]
    exact = [row.text for row in request_rows(a_request(command=f"cat {TREE}/a"), TREE, 200)]
    assert f"cat {TREE}/a" == exact[0]


@pytest.mark.parametrize("width", [160, 200, 240])
@pytest.mark.parametrize("word", ["x", "日"])
async def test_no_line_is_cut_without_saying_by_how_much(width: int, word: str) -> None:
    """The list, a denial's line and the toasts count cut characters as `… (+1,234)`, in cells of any width."""
    asked = a_request(command=word * 3000)
    engine = FakeEngine(asking(1, asked), asking(2, asked))
    async with opened(engine, size=(width, 30)) as deck:
        await at_block(deck)
        listed = [
            line
            for line in deck.screen_text.splitlines()
            if "repo-scout" in line and re.search("run( a command)?: ", line)
        ]
        assert 2 == len(listed) and all("… (+" in line for line in listed), listed
        await deck.press("e")

        def is_counted() -> bool:
            return any("deny with a reason" in line and "… (+" in line for line in deck.screen_text.splitlines())

        await deck.until(is_counted, "a title that says by how much it is cut")
    for cells in (20, 40, 56):
        runs = [asking(1, asked), asking(2, asked)]
        assert all("… (+" in line for line in requests_text(runs, cells).splitlines()[1:])
        assert "… (+" in requests_text(runs[:1], cells)
