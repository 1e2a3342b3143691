"""Typing at the foot of a run's pane: a message like any other, and the answer to what its child asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.run.events import Decision, Message, Request
from subdeck.core.run.model import RequestKind, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.core.wrapper._foot import BY, Foot
from subdeck.core.wrapper.records import pane

from tests.factories import events_of, open_engine, result_of, start, wait_for_end, write_settings
from tests.waiting import wait_until

from ..conversed import standing, wait_for_request
from ..offline_agent.offline_reader import SHOP, write_tree
from ..runners.test_runners_tmux import SOCKET, screen, tmux
from ..talking import Listening, listening

LEAVE = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", run_rule="bash(ls *)")
ONCE = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command")
CHOICE = Request(id="q1", kind=RequestKind.CHOICE, title="asks", choices=("one", "two"))


class Pane:
    """A foot on a terminal of its own, and what it shows."""

    def __init__(self, run: Listening, asked: Request | None = None) -> None:
        self.keyboard, own = os.openpty()
        self.asked = asked
        self.run = run
        self.own = own
        self._shown = ""
        self.foot = Foot(str(run.directory), pane(own), lambda: self.asked, terminal=own, delay=0)

    def type(self, text: str) -> list[tuple[str, str, Verdict | None]]:
        """Press keys; return what was sent by them: kind, text and verdict."""
        os.write(self.keyboard, text.encode())
        self.foot.read()
        sent = self.run.take()
        assert {BY} >= {entry.by for entry in sent}
        return [(entry.kind, entry.text, entry.verdict) for entry in sent]

    def wait_for(self, end: str) -> None:
        """Wait until what was shown ends with this; the kernel brings it from one end of a terminal to the other."""
        os.set_blocking(self.keyboard, False)

        def is_shown() -> bool:
            with suppress(BlockingIOError):
                self._shown += os.read(self.keyboard, 65536).decode()
            return self._shown.endswith(end)

        wait_until(is_shown, f"{end!r} on the terminal")

    def close(self) -> None:
        os.close(self.keyboard)
        os.close(self.own)


@pytest.fixture
def open_pane(project_dir: Path) -> Iterator[Callable[..., Pane]]:
    panes: list[Pane] = []
    with listening(Project(str(project_dir))) as run:

        def opened(asked: Request | None = None) -> Pane:
            panes.append(Pane(run, asked))
            return panes[-1]

        yield opened
        for one in panes:
            one.close()


def test_a_message(open_pane: Callable[..., Pane]) -> None:
    """A line is edited as at a shell and sent by Enter; keys that mean nothing there are no part of it."""
    pane = open_pane()
    assert [] == pane.type("no\x15stop gessing\x17gue")
    assert [("message", "stop guéssing", None)] == pane.type("\x7féssing\x1b[A\x1bOP\x07\r")
    assert [] == pane.type("\r")


def test_the_transcript_goes_on_above_it(open_pane: Callable[..., Pane]) -> None:
    """What is shown meanwhile stands above the line, of which a narrow pane shows the end."""
    pane = open_pane()
    pane.type("half a li")
    pane.foot.show(b"It works.\n")
    pane.wait_for("half a li\r\x1b[KIt works.\r\n› half a li")
    pane.type("x" * 200 + "end")
    pane.wait_for("xend")


def test_a_paste(open_pane: Callable[..., Pane]) -> None:
    """A text of several lines that is pasted is one message, sent by Enter only."""
    pane = open_pane()
    assert [] == pane.type("\x1b[200~one\rtwo\x1b[201~")
    assert [("message", "one\ntwo", None)] == pane.type("\r")


@pytest.mark.parametrize(
    ("asked", "keys", "sent"),
    [
        (LEAVE, "y", [("reply", "", Verdict.ALLOW)]),
        (LEAVE, "Y", [("reply", "", Verdict.ALLOW_RUN)]),
        (ONCE, "Y\r", [("message", "Y", None)]),
        (LEAVE, "n", [("reply", "", Verdict.DENY)]),
        (LEAVE, "enot here\r", [("reply", "not here", Verdict.DENY)]),
        (LEAVE, "make it yours\r", [("message", "make it yours", None)]),
        (CHOICE, "2\r", [("reply", "two", Verdict.REPLY)]),
        (CHOICE, "no\r", [("reply", "no", Verdict.REPLY)]),
    ],
    ids=["allow", "allow for the run", "no rule", "deny", "deny with a reason", "a message", "a number", "a text"],
)
def test_answers(
    open_pane: Callable[..., Pane], asked: Request, keys: str, sent: list[tuple[str, str, Verdict | None]]
) -> None:
    """What the child asks is answered by the keys of the deck, where nothing else is being written."""
    assert sent == open_pane(asked).type(keys)


def test_a_run_that_takes_nothing_more(open_pane: Callable[..., Pane]) -> None:
    """What cannot be sent is not lost: the line has it again, and says why."""
    pane = open_pane()
    pane.run.inbox.close()
    pane.type("too late\r")
    pane.wait_for("[not sent: the run accepts no more input]\r\n› too late\r\x1b[K› too late")


@pytest.fixture
def reader(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={}, runner="tmux", tmux={"socket": SOCKET})
    return Engine.open(str(project_dir), session="operator")


def type_in(engine: Engine, run: RunSnapshot, *keys: str) -> None:
    tmux("send-keys", "-t", f"{run.meta.title.replace(' ', '-')}-{run.meta.short_id}", *keys)


@pytest.mark.tmux
def test_in_a_real_pane(reader: Engine) -> None:
    """A message is shown queued and delivered, a choice is answered by its number, and the records say by whom."""
    task = "Where is the token checked? Ask me which file."
    (run,) = reader.launch([RunRequest(task=task)], background=True)
    request = wait_for_request(reader, run)
    wait_until(lambda: "reply ›" in screen(reader, run), "the line at the foot")
    number = request.choices.index("src/app.py") + 1
    type_in(reader, run, str(number), "Enter")
    ended = wait_for_end(reader, run.run_id)
    (decision,) = [event for event in events_of(reader, ended) if isinstance(event, Decision)]
    assert (Verdict.REPLY, "src/app.py", BY) == (decision.verdict, decision.text, decision.by)


@pytest.mark.tmux
def test_before_it_has_started(project_dir: Path) -> None:
    """What is typed while the run waits in its queue is not shown, not sent, and said to be neither."""
    engine = open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET}, max_running=1)
    first = start(engine, "wait-for go", "say Done.", "finish")
    run = start(engine, "say Begun.", "finish")
    wait_until(lambda: standing(engine, run).status == "queued", "the run to wait")
    type_in(engine, run, "too", "Space", "soon", "Enter")
    (project_dir / "go").touch()
    wait_for_end(engine, first.run_id)
    wait_for_end(engine, run.run_id)
    assert "[what was typed before the run had started was not sent]" in screen(engine, run)
    assert "too soon" not in screen(engine, run)


@pytest.mark.tmux
def test_a_run_that_is_one_way(project_dir: Path) -> None:
    """What is typed while no child listens is refused, and shown so; none of it is lost, and no key gets to a shell."""
    engine = open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET})
    run = start(engine, "say Begun.", "wait-for go", "finish")
    wait_until(lambda: "Begun." in screen(engine, run), "the child to begin")
    type_in(engine, run, "stop", "Space", "guessing", "Enter")
    wait_until(lambda: "refused" in screen(engine, run), "the refusal")
    (project_dir / "go").touch()
    ended = wait_for_end(engine, run.run_id)
    assert ["stop guessing"] == [message.text for message in result_of(engine, ended).undelivered]
    assert "completed" == standing(engine, run).status
    assert {BY} == {event.by for event in events_of(engine, run) if isinstance(event, Message)}


def test_a_key_is_not_for_a_request_that_has_just_come(open_pane: Callable[..., Pane]) -> None:
    """What is typed for the one before it answers nothing; a line is sent for what was asked when it was begun."""
    pane = open_pane(LEAVE)
    slow = Foot(str(pane.run.directory), lambda _: None, lambda: pane.asked, terminal=pane.own, delay=60)
    os.write(pane.keyboard, b"y")
    slow.read()
    assert [] == pane.run.take()
    pane.asked = CHOICE
    assert [] == pane.type("1")
    pane.asked = replace(CHOICE, id="q2")
    assert [] == pane.type("\r")
    assert [("reply", "one", Verdict.REPLY)] == pane.type("\r")
