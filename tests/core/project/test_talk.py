"""Messages to a run: their files, their refusals, and their outcomes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import RunBusy, SubdeckError, UsageError
from subdeck.core.project.talk import Outcome, UnknownRequest
from subdeck.core.run.events import Decision, Field, Interrupted, Message, Request
from subdeck.core.run.inbox import EntryKind, Inbox
from subdeck.core.run.model import LauncherKind, MessageState, RequestKind, RunReason, Verdict
from subdeck.core.system import processes

from tests.core.project.lost_runs import facts
from tests.core.talking import Listening, choice, listening, permission
from tests.factories import make_finished, make_meta, open_engine, rewrite_meta, write_runner
from tests.waiting import wait_until

EARLIER = "2026-01-01T12:00:00.000Z"


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def test_a_message_is_a_file_that_says_who_said_what(engine: Engine) -> None:
    """The run finds text, sender and time in one private file."""
    with listening(engine.project) as run:
        sent = engine.send(run.run_id, "leave the parser alone\n\x1b[31monly the tokenizer")
        (path,) = (run.directory / paths.INBOX).iterdir()
        assert 0o600 == path.stat().st_mode & 0o777
        (entry,) = run.take()
        assert (sent.id, EntryKind.MESSAGE, "operator") == (entry.id, entry.kind, entry.by)
        assert "leave the parser alone\n\x1b[31monly the tokenizer" == entry.text
        assert entry.at
        assert not [name for name in os.listdir(run.directory) if name.startswith(".inbox")]


def test_two_senders_at_once_lose_nothing(engine: Engine) -> None:
    """Messages from several simultaneous senders each arrive once."""
    with listening(engine.project) as run:

        def send(name: str) -> None:
            for number in range(20):
                engine.send(run.run_id, f"{name} {number}")

        senders = [threading.Thread(target=send, args=(name,)) for name in ("one", "other")]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        texts = [entry.text for entry in run.take()]
        assert sorted(texts) == sorted(f"{name} {number}" for name in ("one", "other") for number in range(20))
        assert [f"one {number}" for number in range(20)] == [text for text in texts if text.startswith("one")]


@pytest.mark.processes
def test_a_sender_killed_in_the_middle_sends_all_or_nothing(engine: Engine, project_dir: Path) -> None:
    """A killed sender leaves no part of a message in the inbox."""
    code = f"""
import os, signal, sys
from subdeck.core.engine import Engine
from subdeck.core.system import files
files.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Engine.open({str(project_dir)!r}).send(sys.argv[1], "half")
"""
    with listening(engine.project) as run:
        done = subprocess.run([sys.executable, "-P", "-c", code, run.run_id])
        assert -signal.SIGKILL == done.returncode
        assert [] == run.take()
        engine.send(run.run_id, "whole")
        assert ["whole"] == [entry.text for entry in run.take()]


def test_who_takes_nothing_says_why(engine: Engine) -> None:
    """Each refusal has its reason in plain words, and a way out."""
    finished = make_finished(engine.project, make_meta(talk=True, child_session_id="s-1", preset="scout"))
    with pytest.raises(RunBusy, match=r"has finished \(done\)") as refused:
        engine.send(finished.run_id, "go on")
    assert "subdeck run scout TASK --session-id s-1" in refused.value.hint
    for talks, why in ((None, "earlier subdeck"), (False, "non-interactive")):
        with listening(engine.project, talk=talks) as run, pytest.raises(SubdeckError, match=why) as refused:
            engine.send(run.run_id, "hello")
        assert "conversation" in refused.value.hint
    with listening(engine.project) as run:
        rewrite_meta(run.directory, schemaVersion=99)
        with pytest.raises(SubdeckError, match="newer"):
            engine.send(run.run_id, "hello")
    with listening(engine.project) as run:
        record = run.directory / paths.META
        record.write_bytes(record.read_bytes().replace(b"answer ok", b"answer no"))
        with pytest.raises(SubdeckError, match="not trusted"):
            engine.send(run.run_id, "hello")
        assert [] == run.take()
    with listening(engine.project) as run:
        write_runner(run.directory, facts(host="elsewhere"))
        run.let_go()
        with pytest.raises(SubdeckError, match="another machine"):
            engine.send(run.run_id, "hello")


def test_a_message_to_a_run_that_has_just_closed_its_inbox_is_too_late(engine: Engine) -> None:
    """A message to a run that has just ended is refused at once as too late."""
    with listening(engine.project) as run:
        Inbox(str(run.directory)).close()
        with pytest.raises(RunBusy, match="too late"):
            engine.send(run.run_id, "hello")


def test_a_queued_run_takes_messages_but_has_no_turn_to_end(engine: Engine) -> None:
    """A queued run takes messages, even a non-interactive one: they go into the prompt."""
    run = Listening(engine.project, talk=False)
    try:
        engine.send(run.run_id, "also this")
        assert ["also this"] == [entry.text for entry in run.take()]
        with pytest.raises(SubdeckError, match="has not started"):
            engine.interrupt(run.run_id)
    finally:
        run.let_go()


@pytest.mark.parametrize(("text", "why"), [(" \n", "empty"), ("ä" * 600_000, "longer than 1024 KB")])
def test_what_is_no_message_is_not_sent(engine: Engine, text: str, why: str) -> None:
    """An empty message and a too long one are not sent."""
    with listening(engine.project) as run:
        with pytest.raises(UsageError, match=why):
            engine.send(run.run_id, text)
        assert [] == run.take()


def test_what_no_file_can_hold_is_replaced(engine: Engine) -> None:
    """Bytes of an argument that are not UTF-8 are replaced, and the rest is sent."""
    with listening(engine.project, choice(1, kind=RequestKind.QUESTION)) as run:
        engine.send(run.run_id, "caf\udcff")
        engine.reply(run.run_id, "q1", Verdict.REPLY, "caf\udcff")
        assert ["caf?", "caf?"] == [entry.text for entry in run.take()]


def test_an_interrupt_is_sent_once(engine: Engine) -> None:
    """A second interrupt is refused, with the advice to send a message."""
    with listening(engine.project) as run:
        engine.interrupt(run.run_id)
        assert [EntryKind.INTERRUPT] == [entry.kind for entry in run.take()]
        run.write(Interrupted(by="operator"))
        with pytest.raises(SubdeckError, match="already interrupted") as refused:
            engine.interrupt(run.run_id)
        assert f"subdeck send {run.short_id}" in refused.value.hint


def test_a_reply_names_the_request(engine: Engine) -> None:
    """A reply needs no request id if only one request is open."""
    with listening(engine.project, permission(1)) as run:
        engine.reply(run.run_id, "", Verdict.ALLOW)
        run.write(permission(2, command="make"))
        engine.reply(run.run_id, "q2", Verdict.DENY, "not now")
        entries = [(entry.request, entry.verdict, entry.text) for entry in run.take()]
        assert [("q1", Verdict.ALLOW, ""), ("q2", Verdict.DENY, "not now")] == entries
        with pytest.raises(UnknownRequest) as refused:
            engine.reply(run.run_id, "", Verdict.ALLOW)
        assert "q1, q2" in refused.value.hint
        with pytest.raises(UnknownRequest, match="q7 is not pending"):
            engine.reply(run.run_id, "q7", Verdict.ALLOW)
    with listening(engine.project) as run, pytest.raises(UnknownRequest, match="has no pending request"):
        engine.reply(run.run_id, "", Verdict.ALLOW)


def test_a_late_reply_is_told_who_was_first(engine: Engine) -> None:
    """The error of a reply to a decided request names the decision and its sender."""
    with listening(engine.project, permission(1)) as run:
        run.write(Decision(request="q1", verdict=Verdict.DENY, by="operator"))
        with pytest.raises(UnknownRequest, match="q1 is no longer pending: denied by the user"):
            engine.reply(run.run_id, "q1", Verdict.ALLOW)
        run.write(permission(2))
        with pytest.raises(UnknownRequest, match="q1 is no longer pending: denied by the user") as refused:
            engine.reply(run.run_id, "q1", Verdict.ALLOW)
        assert "q2" in refused.value.hint
        assert [] == run.take()


def test_a_sender_may_be_named(engine: Engine) -> None:
    """A reply or a message can carry the name of a device instead of the session's."""
    with listening(engine.project, permission(1)) as run:
        engine.reply(run.run_id, "q1", Verdict.ALLOW, by="the user on Phone")
        engine.send(run.run_id, "hello", by="the user on Phone")
        engine.send(run.run_id, "hello")
        assert ["the user on Phone", "the user on Phone", "operator"] == [entry.by for entry in run.take()]


def test_a_reply_fits_what_is_asked(engine: Engine) -> None:
    """A permission request takes allow or deny, a question takes text, and a choice one of its labels or numbers."""
    with listening(engine.project, permission(1, run_rule=""), choice(2)) as run:
        for request, verdict, text, why in (
            ("q1", Verdict.REPLY, "yes", "is a permission request"),
            ("q1", Verdict.ALLOW_RUN, "", "whole run"),
            ("q2", Verdict.ALLOW, "", "is a question"),
            ("q2", Verdict.REPLY, "MySQL", "not one of the choices"),
            ("q2", Verdict.REPLY, "3", "not one of the choices"),
        ):
            with pytest.raises(UsageError, match=why):
                engine.reply(run.run_id, request, verdict, text)
        assert [] == run.take()
        for text in ("PostgreSQL", "2"):
            engine.reply(run.run_id, "q2", Verdict.REPLY, text)
        assert ["PostgreSQL"] * 2 == [entry.text for entry in run.take()]


def test_a_form_is_answered_by_its_fields(engine: Engine) -> None:
    """A form takes a JSON object or lines, with all required fields; for a single field the value is enough."""
    one, two = Field("name", required=True), Field("size", choices=("S", "L"))
    with listening(engine.project, *(form(1, one, two), form(2, one))) as run:
        for text, why in (
            ("Ann", "is a form"),
            ('{"nme": "Ann"}', "is a form"),
            ('{"size": "S"}', "name"),
            ("size: S", "name"),
        ):
            with pytest.raises(UsageError, match=why):
                engine.reply(run.run_id, "q1", Verdict.REPLY, text)
        engine.reply(run.run_id, "q1", Verdict.REPLY, '{ "name": "Ann" }')
        engine.reply(run.run_id, "q1", Verdict.REPLY, "Name: Ann")
        engine.reply(run.run_id, "q2", Verdict.REPLY, "Ann")
        assert ['{"name":"Ann"}'] * 3 == [entry.text for entry in run.take()]


def form(number: int, *fields: Field) -> Request:
    return Request(id=f"q{number}", kind=RequestKind.FORM, title="asks", fields=fields)


def test_the_runs_that_wait_are_listed_the_longest_first(engine: Engine) -> None:
    """Only runs with open requests are listed, the longest waiting first."""
    project = engine.project
    with (
        listening(project, choice(ts=EARLIER)) as first,
        listening(project),
        listening(project, permission()) as second,
    ):
        assert [first.run_id, second.run_id] == [run.run_id for run in engine.requests()]
        second.write(Decision(request="q1", verdict=Verdict.ALLOW))
        assert [first.run_id] == [run.run_id for run in engine.requests()]


def test_what_became_of_a_message_is_read_from_the_events(engine: Engine) -> None:
    """A message's outcome comes from the events; sending it decides nothing."""
    with listening(engine.project) as run:
        first, second, third = (engine.send(run.run_id, text) for text in ("one", "two", "three"))
        assert (None,) == engine.receptions([first], timeout=0)
        run.write(
            *(Message(id=sent.id, state=MessageState.ACCEPTED) for sent in (first, second, third)),
            Message(id=first.id, state=MessageState.DELIVERED),
            Message(id=second.id, state=MessageState.REFUSED, reason="too busy"),
        )
        assert [MessageState.DELIVERED, MessageState.REFUSED, MessageState.ACCEPTED] == [
            outcome and outcome.state for outcome in engine.receptions([first, second, third], timeout=0.2)
        ]
        assert (Outcome(MessageState.REFUSED, "too busy"),) == engine.receptions([second])


def test_replies_and_interrupts_are_settled_by_what_they_did(engine: Engine) -> None:
    """A decision names the reply that made it; of two replies the later one is refused."""
    with listening(engine.project, permission()) as run:
        first, second = (engine.reply(run.run_id, "q1", verdict) for verdict in (Verdict.ALLOW, Verdict.DENY))
        run.write(
            Decision(request="q1", verdict=Verdict.ALLOW, by="operator", message=first.id),
            Message(id=second.id, state=MessageState.REFUSED, reason="q1 is no longer pending"),
        )
        stop = engine.interrupt(run.run_id)
        run.write(Interrupted(by="operator", message=stop.id))
        taken, refused, interrupted = engine.receptions([first, second, stop])
        assert Outcome(MessageState.DELIVERED) == taken == interrupted
        assert Outcome(MessageState.REFUSED, "q1 is no longer pending") == refused


def test_a_run_that_dies_takes_nothing(engine: Engine) -> None:
    """A message to a run whose wrapper was killed is late, and is listed in its result."""
    with listening(engine.project) as run:
        sent = engine.send(run.run_id, "hello?")
        write_runner(run.directory, facts())
        run.let_go()
        (outcome,) = engine.receptions([sent])
        assert outcome and MessageState.LATE is outcome.state
        result = engine.result(run.run_id)
        assert result and RunReason.LOST is result.reason
        assert [sent.id] == [message.id for message in result.undelivered]


@pytest.mark.processes
def test_only_who_waits_for_it_is_woken(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wake-up signal reaches only a wrapper with a handler, never one that would die of it."""
    deaf = "import signal, sys\nprint('up', flush=True)\nsignal.pause()"
    hearing = deaf.replace("\n", "\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))\n", 1)
    for program, catches in ((hearing, True), (deaf, False)):
        with listening(engine.project) as run:
            environment = os.environ | {processes.RUN_MARK: run.run_id}
            with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as wrapper:
                try:
                    assert wrapper.stdout and b"up\n" == wrapper.stdout.readline()
                    started = processes.start_time(wrapper.pid)
                    write_runner(run.directory, facts(pid=wrapper.pid, pid_started=started))
                    assert catches is processes.catches(wrapper.pid, signal.SIGUSR1)
                    engine.send(run.run_id, "wake up")
                    if catches:
                        wait_until(lambda process=wrapper: process.poll() == 7, "the wrapper to be woken")
                    assert catches is not (wrapper.poll() is None)
                finally:
                    wrapper.kill()


def test_by_whom_it_was_said_is_in_words(project_dir: Path) -> None:
    """A parent is named by what it is, not by its session id."""
    open_engine(project_dir)
    parent = Engine.open(str(project_dir), session="s-123", kind=LauncherKind.MCP)
    with listening(parent.project) as run:
        parent.send(run.run_id, "faster")
        assert ["the MCP client"] == [entry.by for entry in run.take()]


def test_suggestions_may_be_taken_by_number_or_left(engine: Engine) -> None:
    """A question with choices also takes any other text."""
    with listening(engine.project, choice(1, kind=RequestKind.QUESTION)) as run:
        for text in ("1", "MySQL", "7"):
            engine.reply(run.run_id, "", Verdict.REPLY, text)
        assert ["SQLite", "MySQL", "7"] == [entry.text for entry in run.take()]


def test_a_child_answers_for_nobody(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent cannot allow its own request by subdeck's commands, and its messages do not count as the user's."""
    with listening(engine.project, permission()) as run:
        monkeypatch.setenv(paths.CHILD, "1")
        with pytest.raises(SubdeckError, match="cannot answer requests"):
            engine.reply(run.run_id, "q1", Verdict.ALLOW)
        engine.send(run.run_id, "hello")
        assert ["an agent"] == [entry.by for entry in run.take()]
