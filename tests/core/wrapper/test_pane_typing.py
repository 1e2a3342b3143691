"""Typing at the foot of a run's pane: messages, and answers to its agent's requests."""

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
from subdeck.core.wrapper._pane_input import BY, Foot
from subdeck.core.wrapper.records import pane

from tests.factories import events_of, open_engine, result_of, start, wait_for_end, write_settings
from tests.waiting import wait_until

from ..conversed import current, wait_for_request
from ..offline_agent.offline_reader import SHOP, write_tree
from ..runners.test_runners_tmux import SOCKET, screen, tmux
from ..talking import Listening, listening

LEAVE = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", run_rule="bash(ls *)")
ONCE = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command")
CHOICE = Request(id="q1", kind=RequestKind.CHOICE, title="asks", choices=("one", "two"))


class Pane:
    """A foot on its own terminal, and its output."""

    def __init__(self, run: Listening, asked: Request | None = None) -> None:
        self.keyboard, own = os.openpty()
        self.asked = asked
        self.run = run
        self.own = own
        self._shown = ""
        self.foot = Foot(str(run.directory), pane(own), lambda: self.asked, terminal=own, delay=0)

    def type(self, text: str) -> list[tuple[str, str, Verdict | None]]:
        """Press keys; return the sent entries as kind, text and verdict."""
        os.write(self.keyboard, text.encode())
        self.foot.read()
        sent = self.run.take()
        assert {BY} >= {entry.by for entry in sent}
        return [(entry.kind, entry.text, entry.verdict) for entry in sent]

    def wait_for(self, end: str) -> None:
        """Wait until the output ends with this text, which the kernel passes through the terminal."""
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
    """A line is edited as in a shell and sent by Enter; keys without a meaning add nothing."""
    pane = open_pane()
    assert [] == pane.type("no\x15stop gessing\x17gue")
    assert [("message", "stop guéssing", None)] == pane.type("\x7féssing\x1b[A\x1bOP\x07\r")
    assert [] == pane.type("\r")


def test_the_transcript_goes_on_above_it(open_pane: Callable[..., Pane]) -> None:
    """New output appears above the typed line, and a narrow pane shows the line's end."""
    pane = open_pane()
    pane.type("half a li")
    pane.foot.show(b"It works.\n")
    pane.wait_for("half a li\r\x1b[KIt works.\r\n› half a li")
    pane.type("x" * 200 + "end")
    pane.wait_for("xend")


def test_a_paste(open_pane: Callable[..., Pane]) -> None:
    """A pasted text of several lines is one message, sent only by Enter."""
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
    """Keys answer the agent's request unless a line is being typed."""
    assert sent == open_pane(asked).type(keys)


def test_a_run_that_takes_nothing_more(open_pane: Callable[..., Pane]) -> None:
    """A line that cannot be sent returns to the prompt with the reason."""
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
    """A message is shown as queued and delivered, a digit answers a choice, and the records name the sender."""
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
    """Text typed while the run is queued is not shown or sent, and the pane notes that."""
    engine = open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET}, max_running=1)
    first = start(engine, "wait-for go", "say Done.", "finish")
    run = start(engine, "say Begun.", "finish")
    wait_until(lambda: current(engine, run).status == "queued", "the run to wait")
    type_in(engine, run, "too", "Space", "soon", "Enter")
    (project_dir / "go").touch()
    wait_for_end(engine, first.run_id)
    wait_for_end(engine, run.run_id)
    assert "[what was typed before the run had started was not sent]" in screen(engine, run)
    assert "too soon" not in screen(engine, run)


@pytest.mark.tmux
def test_a_run_that_is_one_way(project_dir: Path) -> None:
    """Text typed to a non-interactive agent is refused visibly, none of it is lost, and no key reaches a shell."""
    engine = open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET})
    run = start(engine, "say Begun.", "wait-for go", "finish")
    wait_until(lambda: "Begun." in screen(engine, run), "the child to begin")
    type_in(engine, run, "stop", "Space", "guessing", "Enter")
    wait_until(lambda: "refused" in screen(engine, run), "the refusal")
    (project_dir / "go").touch()
    ended = wait_for_end(engine, run.run_id)
    assert ["stop guessing"] == [message.text for message in result_of(engine, ended).undelivered]
    assert "completed" == current(engine, run).status
    assert {BY} == {event.by for event in events_of(engine, run) if isinstance(event, Message)}


def test_a_key_is_not_for_a_request_that_has_just_come(open_pane: Callable[..., Pane]) -> None:
    """A key typed for an earlier request does not answer a new one; a line answers the request it was begun for."""
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
