"""Deck, command line and page reply to the same request at the same moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from subdeck.core.cli.main import main
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.events import Decision, Request
from subdeck.core.run.model import LauncherKind, MessageState, Verdict
from subdeck.core.run.requests import request_hash
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests import bench
from tests.factories import write_settings
from tests.killing import IS_WHOLE
from tests.waiting import wait_until

from .browsing import Browser, at_once, serving

pytestmark = pytest.mark.processes

ROUNDS = 100 if IS_WHOLE else 30
TALKER = Path(bench.__file__).parent / "talker.py"
BY = {"deck": "the user", "command line": "the user", "page": "the user on Phone at 127.0.0.1"}
SAID = {"deck": "from the deck", "command line": "from a shell", "page": "from the page"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What the agent notes: each prompt, request and reply that it gets."""
    return tmp_path / "notes"


@pytest.fixture
def engine(project_dir: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    command = [sys.executable, "-I", "-S", str(TALKER), str(notes), "0"]
    write_settings(agents={"talker": {"kind": "pi", "command": command}}, agent="talker")
    monkeypatch.chdir(project_dir)  # of the command line, which is called in this process
    return Engine.open(str(project_dir), kind=LauncherKind.APP)


@pytest.fixture
def run(engine: Engine) -> Iterator[RunSnapshot]:
    (run,) = engine.launch([RunRequest(task="talk", model="test/talker")], background=True)
    yield run
    engine.stop([run.run_id], force=True)
    engine.wait([run.run_id], timeout=60)


def noted(notes: Path, word: str) -> list[str]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [argument for _, known, argument in (line.split(" ", 2) for line in lines) if known == word]


def on_deck(engine: Engine, run: RunSnapshot, request: Request) -> tuple[bool, str]:
    """Reply like the app. Return whether the reply counted, and the words for the user."""
    try:
        sent = engine.reply(run.run_id, request.id, Verdict.DENY, SAID["deck"], request_hash(run.run_id, request))
    except SubdeckError as error:
        return False, error.what
    (outcome,) = engine.receptions([sent], timeout=30)
    assert outcome
    return outcome.state is MessageState.DELIVERED, outcome.reason


def in_shell(run: RunSnapshot, request: Request) -> bool:
    """Reply with the command. Return whether the reply counted; its words are captured."""
    word = ["--word", SAID["command line"], "--hash", request_hash(run.run_id, request)]
    return 0 == main(lambda *_: 0, ["reply", run.run_id, request.id, "deny", *word])


def on_page(browser: Browser, run: RunSnapshot, request: Request) -> Callable[[], tuple[bool, str]]:
    """Open the page now. Return what replies."""
    page = browser.get(f"/run/{run.run_id}/{request.id}")

    def reply() -> tuple[bool, str]:
        result = browser.press(page, "deny", reason=SAID["page"])
        return result.heading == "Reply sent", result.text

    return reply


def test_one_of_three_replies_wins(
    engine: Engine, run: RunSnapshot, notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundred times exactly one of them counts, the agent gets one reply, and the others learn who replied."""
    wins: list[str] = []
    with serving(engine) as browser:
        browser.pair()
        wait_until(lambda: noted(notes, "heard"), "the agent to start")
        for number in range(1, ROUNDS + 1):
            engine.send(run.run_id, f"ask {number}")
            wait_until(lambda: engine.snapshots([run.run_id])[0].requests, "its request")
            (request,) = engine.snapshots([run.run_id])[0].requests
            capsys.readouterr()
            deck, shell, page = at_once(
                lambda request=request: on_deck(engine, run, request),
                lambda request=request: in_shell(run, request),
                on_page(browser, run, request),
            )
            printed = "".join(capsys.readouterr())
            results: dict[str, tuple[bool, str]] = {
                "deck": deck,
                "command line": (shell, printed),
                "page": page,
            }  # type: ignore[assignment]
            (winner,) = [name for name, (is_counted, _) in results.items() if is_counted]
            for name, (_, words) in results.items():
                assert name == winner or f"is no longer pending: denied by {BY[winner]}" in words
            (decision,) = decisions(engine, run, request)
            assert (SAID[winner], Verdict.DENY) == (decision.text, decision.verdict)
            assert ("operator" if winner != "page" else BY["page"]) == decision.by
            wins.append(winner)
        wait_until(lambda: len(noted(notes, "answered")) >= ROUNDS, "the last reply")
        assert ROUNDS == len(noted(notes, "answered")) == len(set(noted(notes, "answered")))
    assert ROUNDS == len(wins)


def decisions(engine: Engine, run: RunSnapshot, request: Request) -> list[Decision]:
    events = engine.events(run.run_id).read()
    return [event for event in events if isinstance(event, Decision) and event.request == request.id]
