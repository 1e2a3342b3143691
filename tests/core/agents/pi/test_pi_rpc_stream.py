"""Commands to pi in its rpc mode, with lines as pi writes them, without pi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.child import Start
from subdeck.core.agents.pi.conversation import PiConversation
from subdeck.core.run.events import Decision, Event, Interrupted, Message, Notice, Request
from subdeck.core.run.model import MessageState, RequestKind, RunReason, StopRequest, Verdict
from subdeck.core.run.outcome import ChildExit, decide

from tests.factories import make_meta


class Pi:
    """A stream and the lines that pi writes to it."""

    def __init__(self, run_dir: Path, *, settles: bool = True) -> None:
        """`settles`: like pi since 0.80.4."""
        (run_dir / "prompt.md").write_text("  Look.\n")
        self.now = 0.0
        self.settles = settles
        self.stream = PiConversation(Start(make_meta(talk=True), str(run_dir)), lambda: self.now)

    def told(self) -> list[dict[str, Any]]:
        """Return the commands since the last call."""
        return [json.loads(line) for line in self.stream.replies().splitlines()]

    def writes(self, *lines: dict[str, Any]) -> list[Event]:
        return [event for line in lines for event in self.stream.feed(json.dumps(line, separators=(",", ":")).encode())]

    def answers(self, command: dict[str, Any], fault: str = "", **data: Any) -> list[Event]:
        """Answer a command."""
        said: dict[str, Any] = {"error": fault} if fault else {"data": data} if data else {}
        line = {"id": command.get("id"), "type": "response", "command": command["type"], "success": not fault}
        return self.writes(line | said)

    def begins(self, said: str = "Look.") -> list[Event]:
        """Start a turn with this prompt."""
        disposition = {"disposition": "started"} if self.settles else {}
        (prompt,) = self.told()
        assert ("prompt", said) == (prompt["type"], prompt["message"])
        self.answers(prompt, **disposition)
        events = self.writes({"type": "agent_start"}, user(said))
        for command in self.told():
            if command["type"] == "get_state":
                self.answers(command, sessionId="s-1", isStreaming=True)
        return events

    def ends(self, reason: str = "stop", text: str = "Seen.") -> list[Event]:
        """End the turn, until it is settled."""
        content = [{"type": "text", "text": text}] if text else []
        message = {"role": "assistant", "content": content, "stopReason": reason}
        end = {"type": "agent_end"} | ({"willRetry": False} if self.settles else {})
        events = self.writes({"type": "message_end", "message": message}, end)
        if self.settles:
            return [*events, *self.writes({"type": "agent_settled", "aborted": reason == "aborted"})]
        (asked,) = self.told()
        return [*events, *self.answers(asked, isStreaming=False, isCompacting=False)]


def user(text: str) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


@pytest.fixture(params=[True, False], ids=["settles", "old"])
def pi(request: pytest.FixtureRequest, tmp_path: Path) -> Pi:
    return Pi(tmp_path, settles=request.param)


@pytest.fixture
def new(tmp_path: Path) -> Pi:
    return Pi(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Pi:
    return Pi(tmp_path, settles=False)


def states(events: list[Event]) -> list[tuple[str, MessageState]]:
    return [(event.id, event.state) for event in events if isinstance(event, Message)]


def is_done(pi: Pi) -> bool:
    return pi.stream.is_stdin_done and pi.stream.finished_after == 0


def reason(pi: Pi, stop: bool = False) -> RunReason:
    asked = StopRequest(by="operator", force=False, at="") if stop else None
    return decide(pi.stream.facts, exit=ChildExit(code=0), stop=asked).reason


def test_the_prompt_is_said_at_once_and_the_child_ends_with_its_turn(pi: Pi) -> None:
    """The prompt is sent at once, and stdin is closed only after the turn."""
    pi.begins()
    assert "s-1" == pi.stream.facts.session_id
    assert not pi.stream.is_stdin_done
    pi.ends()
    assert is_done(pi)
    assert RunReason.DONE == reason(pi)


def test_nothing_is_told_before_the_turn_has_begun(pi: Pi) -> None:
    """pi loses a message that arrives while a prompt starts."""
    (prompt,) = pi.told()
    pi.stream.tell("m1", "Also this.")
    assert [] == pi.told()
    pi.answers(prompt, disposition="started")
    pi.writes({"type": "agent_start"})
    steers = [command for command in pi.told() if command["type"] == "steer"]
    assert ["Also this."] == [command["message"] for command in steers]
    assert [] == states(pi.writes(user("Look.")))
    assert [("m1", MessageState.DELIVERED)] == states(pi.writes(user("Also this.")))


def test_each_message_is_delivered_when_pi_shows_it(pi: Pi) -> None:
    """Equal texts are matched in order, and texts from extensions are ignored."""
    pi.begins()
    for number in (1, 2):
        pi.stream.tell(f"m{number}", "Faster.")
    pi.told()
    assert [] == states(pi.writes(user("Something that an extension says.")))
    assert [("m1", MessageState.DELIVERED)] == states(pi.writes(user("Faster.")))
    assert [("m2", MessageState.DELIVERED)] == states(pi.writes(user("Faster.")))
    pi.ends()
    assert is_done(pi)


def test_a_template_is_shown_as_what_it_stands_for(new: Pi) -> None:
    new.begins()
    new.stream.tell("m1", "/review it")
    new.told()
    assert [("m1", MessageState.DELIVERED)] == states(new.writes(user("Review everything of it.")))


def test_what_came_too_late_for_the_turn_gets_its_own(new: Pi) -> None:
    """Messages left in pi's queue are taken out and sent again in order. A message that pi dropped is refused."""
    new.begins()
    for number, text in enumerate(("One.", "Two.", "Three."), 1):
        new.stream.tell(f"m{number}", text)
    new.told()
    new.ends()
    assert not new.stream.is_stdin_done
    (clear,) = new.told()
    events = new.answers(clear, steering=["One.", "Three."], followUp=[])
    assert [("m2", MessageState.REFUSED)] == states(events)
    assert [("m1", MessageState.DELIVERED)] == states(new.begins("One."))
    assert [("m3", MessageState.DELIVERED)] == states(new.writes(user("Three.")))
    new.ends()
    assert is_done(new)


def test_an_old_pi_that_keeps_its_queue_is_nudged(old: Pi) -> None:
    """It cannot empty its queue, so a further prompt delivers the messages. Those left after that turn are refused."""
    old.begins()
    for number, text in enumerate(("One.", "Two."), 1):
        old.stream.tell(f"m{number}", text)
    old.told()
    old.ends()
    (clear,) = old.told()
    old.answers({**clear, "id": None}, fault="Unknown command: clear_queue")
    old.begins("One more message from the user follows.")
    assert [("m1", MessageState.DELIVERED)] == states(old.writes(user("One.")))
    old.ends()
    (clear,) = old.told()
    assert [("m2", MessageState.REFUSED)] == states(old.answers({**clear, "id": None}, fault="Unknown command"))
    assert is_done(old)


def test_interrupted_it_waits_and_goes_on(pi: Pi) -> None:
    """The turn is aborted, pi keeps running, and the next message is a prompt."""
    pi.begins()
    pi.stream.interrupt(stays=True)
    (abort,) = pi.told()
    assert "abort" == abort["type"]
    assert any(isinstance(event, Interrupted) for event in pi.ends("aborted", "Half a"))
    assert pi.stream.is_waiting
    assert pi.stream.finished_after is None
    assert not pi.stream.is_stdin_done
    pi.answers(abort)
    pi.stream.tell("m1", "Go on.")
    assert not pi.stream.is_waiting
    assert [("m1", MessageState.DELIVERED)] == states(pi.begins("Go on."))
    pi.ends()
    assert (True, RunReason.DONE) == (is_done(pi), reason(pi))


def test_interrupted_and_left_alone(pi: Pi) -> None:
    """The run ends as interrupted, with its text so far."""
    pi.begins()
    pi.stream.interrupt(stays=True)
    pi.told()
    pi.ends("aborted", "Half a")
    pi.stream.close()
    assert (True, RunReason.INTERRUPTED, "Half a") == (is_done(pi), reason(pi), pi.stream.facts.final_text)


def test_interrupted_before_the_turn_began(pi: Pi) -> None:
    """pi would ignore it then, so it is sent when the turn starts."""
    (prompt,) = pi.told()
    pi.stream.interrupt(stays=True)
    assert [] == pi.told()
    pi.answers(prompt, disposition="started")
    pi.writes({"type": "agent_start"})
    assert "abort" in [command["type"] for command in pi.told()]


def test_an_interrupt_that_comes_after_the_answer(pi: Pi) -> None:
    """A turn that ended normally has an answer."""
    pi.begins()
    pi.stream.interrupt(stays=True)
    pi.told()
    assert not any(isinstance(event, Interrupted) for event in pi.ends())
    assert (True, RunReason.DONE) == (is_done(pi), reason(pi))


@pytest.mark.parametrize("has_begun", [True, False])
def test_stopped(pi: Pi, has_begun: bool) -> None:
    """A running turn is ended and its queue emptied. Then stdin is closed."""
    if has_begun:
        pi.begins()
        pi.stream.tell("m1", "Also this.")
        pi.told()
    pi.stream.interrupt(stays=False)
    if has_begun:
        assert ["clear_queue", "abort"] == [command["type"] for command in pi.told()]
        pi.ends("aborted", "")
    assert (True, RunReason.STOPPED) == (is_done(pi), reason(pi, stop=True))


def test_a_retry_goes_on_with_the_turn(old: Pi) -> None:
    """pi before 0.75.4 doesn't announce retries: its `agent_end` is the end only if no retry follows."""
    old.begins()
    failed = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "500 overloaded"}
    old.writes({"type": "message_end", "message": failed}, {"type": "agent_end"})
    old.writes({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1})
    assert [] == old.told()
    assert not old.stream.is_stdin_done
    old.writes({"type": "agent_start"})
    old.ends()
    assert (True, RunReason.DONE) == (is_done(old), reason(old))


def test_stopped_between_two_tries(old: Pi) -> None:
    """Without a turn, the end of pi's retry ends the run."""
    old.begins()
    failed = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "500 overloaded"}
    old.writes({"type": "message_end", "message": failed}, {"type": "agent_end"})
    old.writes({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1})
    old.stream.interrupt(stays=False)
    *_, abort = old.told()
    old.writes({"type": "auto_retry_end", "success": False})
    old.answers(abort)
    (asked,) = old.told()
    old.answers(asked, isStreaming=False)
    assert (True, RunReason.STOPPED) == (is_done(old), reason(old, stop=True))


def test_a_compaction_after_the_last_turn(old: Pi) -> None:
    """The turn is finished only after the compaction."""
    old.begins()
    message = {"role": "assistant", "content": [{"type": "text", "text": "Seen."}], "stopReason": "stop"}
    old.writes({"type": "message_end", "message": message}, {"type": "agent_end"}, {"type": "compaction_start"})
    assert [] == old.told()
    assert old.stream.finished_after is None
    old.writes({"type": "compaction_end", "result": {}})
    (asked,) = old.told()
    old.answers(asked, isStreaming=False)
    assert (True, RunReason.DONE) == (is_done(old), reason(old))


def test_a_pi_that_does_not_say_that_it_is_over(old: Pi) -> None:
    """After a quiet moment it is asked once more, and then treated as idle with any answer."""
    old.begins()
    message = {"role": "assistant", "content": [{"type": "text", "text": "Seen."}], "stopReason": "stop"}
    old.writes({"type": "message_end", "message": message}, {"type": "agent_end"})
    (asked,) = old.told()
    old.answers(asked, isStreaming=True)
    assert [] == old.told()
    old.now += 2
    (again,) = old.told()
    assert [] == old.told()
    assert not old.stream.is_stdin_done
    old.answers(again, isStreaming=True)
    assert is_done(old)


@pytest.mark.parametrize("fault", ["No API key found for fake.", ""])
def test_a_first_prompt_that_pi_does_not_take(pi: Pi, fault: str) -> None:
    """The run fails as in JSON mode, with pi's reason."""
    (prompt,) = pi.told()
    if fault:
        pi.answers(prompt, fault=fault)
    elif pi.settles:
        pi.answers(prompt, disposition="handled")
    else:
        pi.answers(prompt)
        (asked,) = pi.told()
        pi.answers(asked, isStreaming=False, isCompacting=False)
    assert (True, RunReason.AGENT_EXIT) == (is_done(pi), reason(pi))
    if fault:
        assert fault == decide(pi.stream.facts, exit=ChildExit(code=0)).message


def test_a_message_that_pi_does_not_take(pi: Pi) -> None:
    """Its reason is recorded, and the agent keeps waiting."""
    pi.begins()
    pi.stream.tell("m1", "/dance")
    (steer,) = pi.told()
    assert [("m1", MessageState.REFUSED)] == states(pi.answers(steer, fault="not while it works"))
    pi.stream.interrupt(stays=True)
    pi.told()
    pi.ends("aborted", "")
    pi.stream.tell("m2", "Go on.")
    (prompt,) = pi.told()
    assert [("m2", MessageState.REFUSED)] == states(pi.answers(prompt, fault="no credit"))
    assert pi.stream.is_waiting


def test_what_was_said_before_an_interrupt_goes_on(new: Pi) -> None:
    """pi continues with the message in its queue, but the turn still counts as interrupted."""
    new.begins()
    new.stream.tell("m1", "Rather this.")
    new.stream.interrupt(stays=True)
    new.told()
    aborted = {"role": "assistant", "content": [], "stopReason": "aborted"}
    new.writes({"type": "message_end", "message": aborted}, {"type": "agent_end", "willRetry": False})
    events = new.writes({"type": "agent_start"}, user("Rather this."))
    assert [Interrupted, Message] == [type(event) for event in events]
    new.ends()
    assert (True, RunReason.DONE) == (is_done(new), reason(new))


def test_a_dialog_that_closes_by_itself(new: Pi) -> None:
    """After its timeout, the request is withdrawn and a reply is not sent."""
    new.begins()
    (request,) = new.writes(
        {"type": "extension_ui_request", "id": "u", "method": "input", "title": "Name?", "timeout": 5000}
    )
    assert isinstance(request, Request)
    assert (RequestKind.QUESTION, "Name?") == (request.kind, request.text)
    new.now += 6
    (decision,) = new.writes({"type": "turn_start"})
    assert isinstance(decision, Decision)
    assert ("u", Verdict.WITHDRAWN) == (decision.request, decision.verdict)
    new.stream.reply("u", Verdict.REPLY, "Ada")
    assert [] == new.told()


def asks_leave(tool: str, **args: Any) -> dict[str, Any]:
    about = json.dumps({"id": "call-1", "tool": tool, "args": args})
    title = "subdeck: may this tool be called?"
    return {"type": "extension_ui_request", "id": "u", "method": "input", "title": title, "placeholder": about}


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("bash", {"command": "git log\n-1", "timeout": 5}, {"command": "git log\n-1", "text": "timeout: 5"}),
        ("read", {"path": "a.py", "limit": 3}, {"paths": ("a.py",), "text": "limit: 3"}),
        ("ls", {}, {"paths": (".",), "text": ""}),
        ("ls", {"file_path": "src"}, {"paths": (".", "src"), "text": ""}),
        ("write", {"path": "a", "file_path": "b"}, {"paths": ("a", "b"), "text": ""}),
        ("grep", {"pattern": "x"}, {"paths": (".",), "text": "pattern: x"}),
        ("write", {"path": "a.py", "content": "new\n"}, {"paths": ("a.py",), "text": ""}),
        ("mcp__x__y", {"a": 1}, {"title": "wants to use mcp__x__y", "text": "a: 1"}),
        ("bash", {"command": "a" * 100_000}, {"command": "a" * 100_000}),
        ("bash", {"command": ["rm"]}, {"command": "", "text": 'command: ["rm"]'}),
        ("bash", {"command": "x", "env": {"A": "\x1b"}}, {"command": "x", "text": 'env: {"A":"\x1b"}'}),
        ("write", {"path": "a", "file_path": "b", "content": "c"}, {"paths": ("a", "b"), "text": ""}),
    ],
)
def test_a_permission(new: Pi, tool: str, args: dict[str, Any], expected: dict[str, Any]) -> None:
    """A request has what a rule needs, and nothing uncertain. Without a rule, the call is allowed."""
    new.begins()
    (request,) = new.writes(asks_leave(tool, **args))
    assert isinstance(request, Request)
    assert (RequestKind.PERMISSION, tool, "call-1") == (request.kind, request.tool_name, request.tool_call_id)
    assert Verdict.ALLOW == request.usual
    assert expected == {name: getattr(request, name) for name in expected}


@pytest.mark.parametrize(
    ("verdict", "value"), [(Verdict.ALLOW, "allow"), (Verdict.ALLOW_RUN, "allow"), (Verdict.DENY, "deny: not now")]
)
def test_a_permission_is_answered(new: Pi, verdict: Verdict, value: str) -> None:
    """A denial is never read as permission, even if its reason is "allow"."""
    new.begins()
    new.writes(asks_leave("edit", path="a.py", edits=[{"oldText": "one", "newText": "two"}]))
    new.stream.reply("u", verdict, "not now")
    (answer,) = new.told()
    assert ("extension_ui_response", "u", value) == (answer["type"], answer["id"], answer["value"])
    new.writes(asks_leave("bash", command="x"))
    new.stream.reply("u", Verdict.DENY, "allow")
    (answer,) = new.told()
    assert "deny: allow" == answer["value"]


@pytest.mark.parametrize("depth", [100, 1100, 5000])
def test_a_call_that_cannot_be_read_is_denied(new: Pi, depth: int) -> None:
    """A call nested so deeply that no rule can read its path is denied with a warning."""
    new.begins()
    call = '{"id":"call-1","tool":"read","args":{"path":"secret/key","x":' + "[" * depth + "]" * depth + "}}"
    (warning,) = new.writes({**asks_leave("read"), "placeholder": call})
    assert isinstance(warning, Notice)
    assert "nested too deeply" in warning.text
    (answer,) = new.told()
    assert answer["value"].startswith("deny: ")


def test_an_edit_is_shown(new: Pi) -> None:
    new.begins()
    (request,) = new.writes(asks_leave("edit", path="a.py", edits=[{"oldText": "one\nx", "newText": "two\nx"}]))
    assert isinstance(request, Request)
    assert {"-one", "+two"} <= set(request.diff.splitlines())
    assert "a.py" in request.diff


def test_a_recording_is_read_without_a_word() -> None:
    """Recordings of the rpc mode are read like those of the JSON mode, without sending commands."""
    stream = PiConversation()
    lines: list[dict[str, Any]] = [
        {"type": "response", "command": "get_state", "success": True, "data": {"sessionId": "s-1"}},
        {"type": "agent_start"},
        {"type": "message_end", "message": {"role": "assistant", "content": "Seen.", "stopReason": "stop"}},
        {"type": "agent_end", "willRetry": False},
        {"type": "agent_settled", "aborted": False},
    ]
    for line in lines:
        stream.feed(json.dumps(line, separators=(",", ":")).encode())
    assert (b"", "s-1", "Seen.") == (stream.replies(), stream.facts.session_id, stream.facts.final_text)
    assert (RunReason.DONE, True, 0) == (decide(stream.facts).reason, stream.is_stdin_done, stream.finished_after)
