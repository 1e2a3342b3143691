"""Messages to runs on the command line: send, interrupt, requests, reply, and the output of status, wait and run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.run.events import Decision, Event, Interrupted, Message
from subdeck.core.run.inbox import EntryKind, InboxEntry
from subdeck.core.run.model import MessageState, RunReason, Verdict

from tests.core.command_line import start, subdeck
from tests.core.talking import answering, choice, listening, permission
from tests.factories import make_finished, open_engine
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

EARLIER = "2026-01-01T12:00:00.000Z"


@pytest.fixture
def project(project_dir: Path) -> Project:
    return open_engine(project_dir).project


def deliver(entry: InboxEntry) -> Iterable[Event]:
    """An agent that gets every message."""
    yield Message(id=entry.id, state=MessageState.ACCEPTED, text=entry.text, by=entry.by)
    yield Message(id=entry.id, state=MessageState.DELIVERED, by=entry.by)


def test_a_message_is_sent_to_several_runs(project: Project, project_dir: Path) -> None:
    """One text goes to all runs, with a line for each, also from stdin."""
    with listening(project) as one, listening(project) as other:
        done = subdeck("send", one.short_id, other.short_id, "stop guessing", cwd=project_dir)
        assert (0, f"{one.short_id} sent\n{other.short_id} sent\n") == (done.code, done.out)
        assert ["stop guessing"] == [entry.text for entry in one.take()] == [entry.text for entry in other.take()]
        subdeck("send", one.short_id, "-", cwd=project_dir, stdin=b"first\nsecond\n")
        assert ["first\nsecond\n"] == [entry.text for entry in one.take()]


def test_send_waits_until_the_child_has_it(project: Project, project_dir: Path) -> None:
    """Exit codes: delivered 0, refused 1, too late 3, timeout 124."""
    with listening(project) as run:
        with answering(run, deliver):
            done = subdeck("send", "--wait", run.short_id, "go", cwd=project_dir)
        assert (0, f"{run.short_id} delivered\n") == (done.code, done.out)
        for state, code, said in ((MessageState.REFUSED, 1, "refused: busy"), (MessageState.LATE, 3, "too late: busy")):
            with answering(run, lambda entry, state=state: [Message(id=entry.id, state=state, reason="busy")]):
                done = subdeck("send", "--wait", run.short_id, "go", cwd=project_dir)
            assert (code, f"{run.short_id} {said}\n") == (done.code, done.out)
        done = subdeck("send", "--wait", "--timeout", "0.1", "--json", run.short_id, "go", cwd=project_dir)
        assert (124, "sent") == (done.code, done.document["sent"][0]["state"])


def test_who_cannot_be_told_is_named(project: Project, project_dir: Path) -> None:
    """A message goes to the runs that accept it. The others, with the next step, are on stderr."""
    ended = make_finished(project)
    alone = subdeck("send", ended.short_id, "go", cwd=project_dir)
    assert (2, "") == (alone.code, alone.out)
    assert "has finished (done)" in alone.err
    with listening(project) as run, listening(project, talk=False) as deaf:
        done = subdeck("send", run.short_id, deaf.short_id, ended.short_id, "go", cwd=project_dir)
        assert (1, f"{run.short_id} sent\n") == (done.code, done.out)
        assert f"{deaf.short_id} not sent: run {deaf.short_id} is non-interactive" in done.err
        document = subdeck("send", deaf.short_id, ended.short_id, "go", "--json", cwd=project_dir)
        assert (2, []) == (document.code, document.document["sent"])
        assert [deaf.run_id, ended.run_id] == [row["runId"] for row in document.document["refused"]]


def test_a_message_needs_a_run_and_a_text(project: Project, project_dir: Path) -> None:
    """A missing run or text is reported before anything is looked up."""
    done = subdeck("send", "hello", cwd=project_dir)
    assert 2 == done.code
    assert 'subdeck send RUN "your message"' in done.err
    with listening(project) as run:
        assert "in quotes" in subdeck("send", run.short_id, "stop", "guessing", cwd=project_dir).err
        assert "message is empty" in subdeck("send", run.short_id, " ", cwd=project_dir).err


def test_interrupt_ends_the_turn(project: Project, project_dir: Path) -> None:
    """--wait prints the interrupt once the run has recorded it."""
    with listening(project) as run:
        done = subdeck("stop", "--turn", run.short_id, cwd=project_dir)
        assert (0, f"{run.short_id} is being interrupted\n") == (done.code, done.out)
        assert [EntryKind.INTERRUPT] == [entry.kind for entry in run.take()]
        with answering(run, lambda entry: [Interrupted(by=entry.by, message=entry.id)]):
            done = subdeck("stop", "--turn", "--wait", run.short_id, cwd=project_dir)
        assert (0, f"{run.short_id} interrupted\n") == (done.code, done.out)
        status = subdeck("status", run.short_id, cwd=project_dir).out
        assert status.startswith(f"◔ interrupted  {run.short_id}")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--wait"], "--wait requires --turn"),
        (["--timeout", "3"], "--timeout requires --turn"),
        (["--turn", "--kill"], "--kill and --turn cannot be combined"),
    ],
)
def test_only_the_end_of_a_turn_is_awaited(project_dir: Path, words: list[str], what: str) -> None:
    """`stop` itself does not wait, and points to `wait`."""
    error = subdeck("stop", "abcdef", *words, "--json", cwd=project_dir).error
    assert what == error["what"]
    assert ("subdeck wait RUN" in error["hint"]) == ("requires" in what)


def test_requests_show_exactly_what_is_asked(project: Project, project_dir: Path) -> None:
    """All requests have one line each. For a named run, they are printed in full, with the command that replies."""
    assert "No pending requests.\n" == subdeck("requests", cwd=project_dir).out
    command = "rm -rf build &&\n  make \x1b[31mall"
    with listening(project, permission(command=command, ts=EARLIER)) as run, listening(project, choice()) as other:
        listed = subdeck("requests", cwd=project_dir).out.splitlines()
        assert listed[0].startswith(
            f"{run.short_id}  q1  one-off  ! wants to run a command: rm -rf build && ⏎   make <U+001B>[31mall"
        )
        assert listed[1].startswith(f"{other.short_id}  q1  one-off  asks: Which database?")
        shown = subdeck("requests", run.short_id, cwd=project_dir).out
        assert "\n  rm -rf build &&\n    make <U+001B>[31mall\n" in shown
        (asked, _) = subdeck("requests", "--json", cwd=project_dir).document["requests"]
        command_line = f"subdeck reply {run.short_id} --request q1 --hash {asked['hash']} allow|deny answers"
        assert f"{command_line}; add --run to allow bash(rm *) for" in shown
        assert (run.run_id, "q1", "permission", command) == tuple(
            asked[key] for key in ("runId", "id", "kind", "command")
        )
    with listening(project, permission(), answer_timeout=600.0) as run:
        assert "denied in 9:5" in subdeck("requests", run.short_id, cwd=project_dir).out


def test_status_says_who_waits(project: Project, project_dir: Path) -> None:
    """The list, the counts, the reason and the document show it."""
    with listening(project, permission()) as run:
        done = subdeck("status", run.short_id, cwd=project_dir).out
        assert done.startswith(
            f"? needs input  {run.short_id}  one-off  answer ok  wants to run a command: rm -rf build"
        )
        assert "wants to run a command: rm -rf build" in done
        assert "1 run: 1 running (1 needs input)" in done
        document = subdeck("status", "--json", cwd=project_dir).document
        assert 1 == document["counts"]["waiting"]
        (row,) = document["runs"]
        assert (True, ["q1"], True) == (row["waiting"], [request["id"] for request in row["requests"]], row["canTalk"])


def test_a_reply_says_whether_it_counted(project: Project, project_dir: Path) -> None:
    """Allow, allow for the run, deny with a reason, reply: each is confirmed, and a second reply is refused."""

    def decide(entry: InboxEntry) -> Iterable[Event]:
        assert entry.verdict
        yield Decision(request=entry.request, verdict=entry.verdict, by=entry.by, text=entry.text, message=entry.id)

    with listening(project) as run:
        for number, (words, said, kept) in enumerate(
            (
                (("q1", "allow"), "allowed", (Verdict.ALLOW, "")),
                (("--request", "q2", "--run", "allow"), "allowed for the rest of this run", (Verdict.ALLOW_RUN, "")),
                (("deny", "--word", "use git clean"), "denied", (Verdict.DENY, "use git clean")),
            ),
            1,
        ):
            run.write(permission(number))
            seen: list[InboxEntry] = []
            with answering(run, lambda entry, seen=seen: [seen.append(entry)][1:] or decide(entry)):
                done = subdeck("reply", run.short_id, *words, cwd=project_dir)
            assert (0, f"{run.short_id} q{number} {said}\n") == (done.code, done.out)
            assert [kept] == [(entry.verdict, entry.text) for entry in seen]
        run.write(choice(7))
        with answering(run, decide):
            done = subdeck("reply", run.short_id, "q7", "2", cwd=project_dir)
        assert f"{run.short_id} q7 answered\n" == done.out
        assert "has no pending request" in subdeck("reply", run.short_id, "allow", cwd=project_dir).err
        run.write(permission(8))
        late = [Message(id="", state=MessageState.REFUSED, reason="q8 is no longer pending")]
        with answering(run, lambda entry: [Message(id=entry.id, state=late[0].state, reason=late[0].reason)]):
            done = subdeck("reply", run.short_id, "q8", "deny", cwd=project_dir)
        assert (1, f"{run.short_id} refused: q8 is no longer pending\n") == (done.code, done.out)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("allow",), "RUN or the reply is missing"),
        (("RUN", "q1", "yes", "please"), "put the reply in quotes"),
        (("RUN", "yes"), "is a permission request"),
        (("RUN", "deny", "--run"), "--run requires allow"),
        (("RUN", "allow", "--word", "x"), "--word requires deny"),
        (("RUN", "q9", "allow"), "q9 is not pending"),
    ],
)
def test_a_reply_that_makes_no_sense_is_refused(
    project: Project, project_dir: Path, words: tuple[str, ...], why: str
) -> None:
    """An invalid reply is refused before anything is sent."""
    with listening(project, permission()) as run:
        done = subdeck("reply", *(run.short_id if word == "RUN" else word for word in words), cwd=project_dir)
        assert (2, "") == (done.code, done.out)
        assert why in done.err
        assert [] == run.take()


def test_who_waits_for_a_run_is_told_what_it_asks(project: Project, project_dir: Path) -> None:
    """Each request is printed once, with the command that replies."""
    with listening(project, permission()) as run:
        waiter = start("wait", run.short_id, cwd=project_dir)
        try:
            assert waiter.stderr
            line, hint = waiter.stderr.readline().decode(), waiter.stderr.readline().decode()
            assert f"{run.short_id} needs input: wants to run a command: rm -rf build\n" == line
            assert f"  subdeck reply {run.short_id} --request q1 --hash " in hint
        finally:
            waiter.terminate()
            waiter.communicate()


def test_a_reply_to_a_run_that_has_died_is_too_late(project: Project, project_dir: Path) -> None:
    """A reply to a run that has ended is reported as too late."""
    with listening(project, permission()) as run:
        pending = start("reply", run.short_id, "q1", "allow", cwd=project_dir)
        try:
            wait_until(run.take, "the reply")
            run.let_go()
            out, _ = pending.communicate(timeout=20)
        except BaseException:
            pending.kill()
            raise
        assert (3, True) == (pending.returncode, b"too late" in out)
        result = Engine.open(str(project_dir)).result(run.run_id)
        assert result and RunReason.LOST is result.reason


def test_help_is_worth_reading(project_dir: Path) -> None:
    """The help has the arguments and the exit codes."""
    assert "RUN [REQUEST] allow|deny|TEXT" in subdeck("reply", "--help", cwd=project_dir).out
    assert "124" in subdeck("send", "--help", cwd=project_dir).out
