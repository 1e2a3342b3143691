"""The wrapper's handling of a request: decided by the run's rules, or kept for the user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.agents._stream import AgentStream
from subdeck.core.paths import Project
from subdeck.core.run.events import Decision, Event, EventTail, Interrupted, Message, Request
from subdeck.core.run.inbox import EntryKind, put
from subdeck.core.run.model import LogCaps, Permissions, RequestKind, Verdict
from subdeck.core.run.requests import request_hash
from subdeck.core.wrapper.mailbox import Mailbox
from subdeck.core.wrapper.records import Records

from tests.core.talking import Listening, listening


class Child(AgentStream):
    """An agent whose replies are recorded."""

    talks = True

    def __init__(self) -> None:
        super().__init__()
        self.is_stdin_done = False
        self.interrupts = 0
        self.replied: list[tuple[str, Verdict, str]] = []

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        self.replied.append((request_id, verdict, text))

    def interrupt(self, *, stays: bool) -> None:
        self.interrupts += stays


class Talk:
    """The mailbox of a run with an agent, and its recorded events."""

    def __init__(self, run: Listening, permissions: Permissions | None) -> None:
        self.run = run
        self.child = Child()
        directory = str(run.directory)
        records = Records(directory, f"{directory}/.activity", caps=LogCaps(), written=0, show=lambda _: None)
        self.mailbox = Mailbox(replace(run.meta, permissions=permissions), directory, records)
        self.mailbox.attach(self.child)

    def ask(self, number: int, **fields: Any) -> None:
        known: dict[str, Any] = {"kind": RequestKind.PERMISSION, "title": "wants to run a command", "tool_name": "bash"}
        self.mailbox.take(Request(id=f"own-{number}", **(known | fields)))

    def reply(self, verdict: Verdict, request: str = "") -> None:
        asked = next(asked for asked in self.said(Request) if request in ("", asked.id))
        read = request_hash(self.run.run_id, asked)
        put(str(self.run.directory), EntryKind.REPLY, by="operator", verdict=verdict, request=request, read=read)
        self.mailbox.look()

    def interrupt(self, by: str) -> None:
        put(str(self.run.directory), EntryKind.INTERRUPT, by=by)
        self.mailbox.look()

    def said(self, kind: type[Event]) -> list[Any]:
        tail = EventTail(str(self.run.directory / paths.EVENTS))
        return [event for event in tail.read() if isinstance(event, kind)]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Listening]:
    with listening(Project(str(tmp_path)), cwd=str(tmp_path)) as run:
        yield run


RULES = Permissions(allow=("bash(git *)",), ask=("bash(git push *)",), deny=("bash(rm *)",))


def test_rules_decide_before_anybody_is_asked(run: Listening) -> None:
    """A call that a rule allows or denies is answered at once, and the decision names the rule."""
    talk = Talk(run, RULES)
    talk.ask(1, command="git status")
    talk.ask(2, command="ls; rm x")
    why = "denied by the rule bash(rm *) of this run's permissions"
    assert talk.child.replied == [("own-1", Verdict.ALLOW, ""), ("own-2", Verdict.DENY, why)]
    assert talk.said(Request) == [] and not talk.mailbox.waits_for_person
    allowed, denied = talk.said(Decision)
    assert (allowed.verdict, allowed.by, allowed.rule, allowed.request) == (Verdict.ALLOW, "rule", "bash(git *)", "")
    assert (denied.verdict, denied.rule, denied.subject, denied.tool_name) == (
        *(Verdict.DENY, "bash(rm *)", "ls; rm x"),
        "bash",
    )


def test_a_rule_that_asks_is_told_with_the_request(run: Listening) -> None:
    """A request matching an ask rule waits for the user, even if the agent would continue without rules."""
    talk = Talk(run, RULES)
    talk.ask(1, command="git push", usual=Verdict.ALLOW)
    (request,) = talk.said(Request)
    assert (request.rule, request.run_rule, request.usual) == ("bash(git push *)", "bash(git push)", None)
    assert talk.mailbox.waits_for_person and talk.child.replied == []


def test_what_no_rule_mentions_is_as_without_them(run: Listening) -> None:
    """A call that the agent reports only because of rules continues silently; other requests wait for the user."""
    talk = Talk(run, RULES)
    talk.ask(1, command="make", usual=Verdict.ALLOW)
    assert talk.child.replied == [("own-1", Verdict.ALLOW, "")]
    assert talk.said(Request) == talk.said(Decision) == []
    talk.ask(2, command="make")
    assert [request.rule for request in talk.said(Request)] == [""]


def test_leave_for_the_run_holds_for_what_is_like_it(run: Listening) -> None:
    """Allow in this run also allows open and later requests that match the same rule."""
    talk = Talk(run, RULES)
    for number in (1, 2, 3):
        talk.ask(number, command="git push" if number < 3 else "git push --all")
    talk.reply(Verdict.ALLOW_RUN, "q1")
    talk.ask(4, command="git  push")
    talk.ask(5, command="git push; rm x")
    assert [(own, verdict) for own, verdict, _ in talk.child.replied] == [
        ("own-1", Verdict.ALLOW_RUN),
        ("own-2", Verdict.ALLOW),
        ("own-4", Verdict.ALLOW),
        ("own-5", Verdict.DENY),
    ]
    first, second, third, _ = talk.said(Decision)
    assert (first.by, first.rule) == ("operator", "bash(git push)")
    assert {(each.by, each.rule) for each in (second, third)} == {("rule", "bash(git push)")}


@pytest.mark.parametrize("second", ["git status", "git push --force", "rm x"])
def test_two_requests_under_one_id(run: Listening, second: str) -> None:
    """A request reusing an open id withdraws the earlier one: an answer is never given to the other request, and no
    answer is recorded that the agent did not get.
    """
    talk = Talk(run, RULES)
    talk.ask(1, command="git push")
    talk.ask(1, command=second)
    assert talk.said(Decision)[0].verdict is Verdict.WITHDRAWN
    before = list(talk.child.replied)
    talk.reply(Verdict.ALLOW, "q1")
    assert before == talk.child.replied
    assert "q1 is no longer pending: withdrawn by the agent" == talk.said(Message)[-1].reason


def test_leave_for_the_run_is_refused_where_no_rule_would_say_it(run: Listening) -> None:
    """A command of several lines can be allowed once, not for the run."""
    talk = Talk(run, None)
    talk.ask(1, command="a\nb")
    talk.reply(Verdict.ALLOW_RUN)
    assert talk.mailbox.waits_for_person and talk.child.replied == []
    (refused,) = talk.said(Message)
    assert "cannot be allowed for the whole run" in refused.reason


def test_two_who_interrupt_at_once(run: Listening) -> None:
    """A turn is interrupted once, by the first user; the second is refused, and both entries are removed."""
    talk = Talk(run, None)
    talk.interrupt("operator")
    talk.interrupt("somebody else")
    talk.mailbox.take(Interrupted())
    (ended,), (refused,) = talk.said(Interrupted), talk.said(Message)
    assert (ended.by, refused.by, refused.reason) == ("operator", "somebody else", "the run is already interrupted")
    assert talk.child.interrupts == 1
    assert (run.directory / paths.INBOX).is_dir() and not list((run.directory / paths.INBOX).iterdir())


def test_what_cannot_be_seen_is_asked_about(run: Listening) -> None:
    """No rule, not even the agent's default, allows a call with hidden characters; its record shows them."""
    talk = Talk(run, Permissions(allow=("bash",)))
    talk.ask(1, command="ls \x1b]; touch x; \x07", usual=Verdict.ALLOW)
    (asked,) = talk.said(Request)
    assert ([], "") == (talk.child.replied, asked.run_rule)
    assert ("ls \x1b]; touch x; \x07", True) == (asked.command, "ls <U+001B>]; touch x; <U+0007>" in asked.display)


def test_a_reply_to_what_was_not_asked_is_refused(run: Listening) -> None:
    """Allowing needs the hash of the real request: neither a request that the agent forged nor a missing hash allows
    it.
    """
    talk = Talk(run, None)
    talk.ask(1, command="rm -rf /")
    (asked,) = talk.said(Request)
    forged = request_hash(run.run_id, replace(asked, command="ls"))
    for read in (forged, ""):
        put(str(run.directory), EntryKind.REPLY, by="operator", verdict=Verdict.ALLOW, request="q1", read=read)
        talk.mailbox.look()
    assert [True, True] == ["the hashes differ" in message.reason for message in talk.said(Message)]
    assert [] == talk.child.replied
    talk.reply(Verdict.ALLOW, "q1")
    assert [("own-1", Verdict.ALLOW, "")] == talk.child.replied


@pytest.mark.parametrize("verdict", [Verdict.ALLOW, Verdict.ALLOW_RUN])
@pytest.mark.parametrize("target", [".git", "../outside", "src/one"])
def test_leave_is_for_the_file_that_was_shown(run: Listening, target: str, verdict: Verdict) -> None:
    """A call whose path leads elsewhere since its request is denied, and its rule then allows nothing."""
    root = Path(run.meta.cwd)
    for name in (".git/hooks", "src/one", "outside"):
        (root / name).mkdir(parents=True)
    talk = Talk(run, Permissions(ask=("edit",)))
    write = {"tool_name": "write", "title": "wants to write a file"}
    talk.ask(1, paths=("src/ok",), **write)
    talk.ask(2, paths=("src/other",), **write)
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to(target.replace("src", "moved"))
    talk.reply(verdict, "q1")
    assert [("own-1", Verdict.DENY)] == [(own, verdict) for own, verdict, _ in talk.child.replied]
    assert "leads to another file" in talk.said(Decision)[0].text
    assert talk.mailbox.waits_for_person
