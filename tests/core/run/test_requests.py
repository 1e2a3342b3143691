"""Messages, requests and decisions of a run, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from subdeck.core.project.diagnosis import Evidence, explain
from subdeck.core.project.registry import count
from subdeck.core.run import describe
from subdeck.core.run.events import Decision, Event, Field, Interrupted, Message, Request
from subdeck.core.run.model import MessageState, RequestKind, Undelivered, Verdict
from subdeck.core.run.progress import ProgressFormatter, vocabulary
from subdeck.core.run.requests import UNSEEN, request_line, request_text, run_rule_line
from subdeck.core.run.snapshot import Counts

from tests.core.talking import choice, permission
from tests.factories import make_meta, make_result, make_snapshot

NOW = datetime(2026, 1, 1, 12, 0, 42, tzinfo=UTC)


def told(event: Event) -> str | None:
    return ProgressFormatter().text(event)


def test_a_message_is_told_with_who_said_it_and_how_far_it_has_come() -> None:
    """A message is shown once, with its sender and lines; its later states follow."""
    first = Message(id="1", state=MessageState.ACCEPTED, by="operator", text="leave it\n\x1b[31malone")
    assert "▸ the user, queued: leave it\nalone" == told(first)
    assert "▸ delivered" == told(Message(id="1", state=MessageState.DELIVERED, by="operator"))
    assert "▸ too late: the run ended first" == told(
        Message(id="1", state=MessageState.LATE, by="operator", reason="the run ended first")
    )
    refused = Message(id="2", state=MessageState.REFUSED, by="pi", text="more", reason="not now")
    assert "▸ pi, refused (not now): more" == told(refused)


def test_a_request_is_told_exactly() -> None:
    """A request shows every line of the command, directory, change, choices and rule, without terminal control."""
    request = permission(command="make \\\n  all\x1b]0;x\x07", cwd="/src", diff="-a\n+b", rule="bash(*)")
    assert request_text(request).split("\n") == [
        "wants to run a command", f"  ! {UNSEEN}", "  make \\", "    all<U+001B>]0;x<U+0007>",
        "  in /src", "  -a", "  +b", "  matched rule bash(*)",
    ]  # fmt: skip
    assert ["asks", "  Which database?", "  1 SQLite", "  2 PostgreSQL"] == request_text(choice()).split("\n")
    fields = (Field("name", required=True), Field("size", text="How big?", choices=("S", "L")))
    form = Request(id="q1", kind=RequestKind.FORM, title="asks for details", fields=fields)
    assert ["asks for details", "  name*", "  size: How big? (S / L)"] == request_text(form).split("\n")
    assert "wants to run a command: rm -rf build" == request_line(permission())
    assert (told(permission()) or "").startswith("? wants to run a command\n  rm -rf build")


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (Decision(request="q1", verdict=Verdict.ALLOW, by="operator", subject="make"), "Allowed by the user: make"),
        (
            Decision(request="q1", verdict=Verdict.ALLOW_RUN, by="operator", subject="make"),
            "Allowed in this run by the user: make",
        ),
        (
            Decision(request="q1", verdict=Verdict.DENY, by="operator", subject="rm x", text="use git"),
            "Denied by the user: rm x — use git",
        ),
        (
            Decision(request="q1", verdict=Verdict.DENY, by="timeout", subject="rm x", text="nobody replied"),
            "Denied: rm x — nobody replied",
        ),
        (Decision(request="q1", verdict=Verdict.REPLY, by="operator", text="2"), "Replied by the user: 2"),
        (Decision(request="q1", verdict=Verdict.WITHDRAWN, by="agent"), "Withdrawn by the agent"),
        (
            Decision(verdict=Verdict.DENY, by="rule", rule="bash(rm *)", subject="rm"),
            "Denied by the rule bash(rm *): rm",
        ),
        (Decision(verdict=Verdict.ALLOW, by="rule", rule="bash(git *)", subject="git"), None),
    ],
)
def test_a_decision_says_what_and_by_whom(decision: Decision, text: str | None) -> None:
    """A decision shows its verdict and author, unless a rule allowed the call without a request."""
    assert text == told(decision)


def test_an_interrupt_says_what_comes_next() -> None:
    """An interruption shows who asked for it and what comes next."""
    assert "Interrupted by the user. Waiting for your message" == told(Interrupted(by="operator"))


def test_the_words_are_known_to_who_searches_for_them() -> None:
    """A search finds the words that subdeck itself writes."""
    assert {"queued", "delivered", "interrupted", "allowed", "denied", "withdrawn", "late"} <= vocabulary()


def test_a_waiting_run_stands_out_in_lists() -> None:
    """A waiting run has its own glyph, words and count in lists, with its request."""
    run = make_snapshot(status="running", requests=(permission(), choice(2)))
    assert "? needs input" == describe.state(run, silent=True)
    assert "wants to run a command: rm -rf build (and 1 more)" == describe.doing(run) == describe.activity(run)
    counts = count([run, make_snapshot(status="running")])
    assert Counts(running=2, total=2, waiting=1) == counts
    assert "2 runs: 2 running (1 needs input)" == describe.counted(counts)
    assert "bg: 2 running / 2 total" == describe.background_counts(counts)
    interrupted = make_snapshot(status="running", interrupted=True)
    assert "◔ interrupted" == describe.state(interrupted)
    assert "waiting for your message" == describe.doing(interrupted)


def test_why_a_run_is_not_done_says_that_it_waits_for_a_person() -> None:
    """The explanation of a waiting run names the needed answer, the time waited and the messages on their way."""
    asked = permission(ts="2026-01-01T12:00:00.000Z")
    run = make_snapshot(status="running", requests=(asked,), undelivered=2)
    said = explain(run, Evidence(calls=("bash: rm -rf build",)), NOW)
    assert "needs input for 42 s: wants to run a command: rm -rf build · 2 messages not delivered yet" in said
    assert "waiting for bash" not in said
    interrupted = explain(make_snapshot(status="running", interrupted=True), Evidence(), NOW)
    assert interrupted.endswith("interrupted: waiting for your message")
    meta = make_meta()
    result = make_result(meta.run_id, undelivered=(Undelivered("1", "more"),))
    assert "1 message was not delivered" in explain(make_snapshot(meta), Evidence(result=result), NOW)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("edit(**)", "edit(**) (every file below the run's directory, except protected ones)"),
        ("read(**)", "read(**) (every file below the run's directory)"),
        ("bash(git push)", "bash(git push)"),
        ("", ""),
    ],
)
def test_leave_for_the_run_says_which_files_it_adds(rule: str, line: str) -> None:
    assert line == run_rule_line(Request(id="q1", kind=RequestKind.PERMISSION, title="wants", run_rule=rule))
