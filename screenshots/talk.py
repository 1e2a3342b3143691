"""Pictures of talking to runs: one that waits, a question about an edit, a message on its way; the runs are made up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from subdeck.core.agents.agent import AgentChoice
from subdeck.core.run.events import AssistantText, Event, Message, Request, RunStarted, ToolCall, ToolResult
from subdeck.core.run.model import MessageState, RequestKind
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.app import SubdeckApp

from tests.tui.fake_engine import FakeEngine, a_run, run_id
from tests.tui.open_deck import opened

Picture = Callable[[SubdeckApp, str], None]

DIFF = """--- a/src/auth.py
+++ b/src/auth.py
@@ -6,4 +6,6 @@
 def authenticate(request):
     \"\"\"Return the customer of a request; raises Unauthorized.\"\"\"
-    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
+    token = bearer(request)
+    if token is None:
+        raise Unauthorized("no bearer token")
     return decode(token).customer
"""
BEGAN = datetime.now(UTC) - timedelta(minutes=4)


def at(second: int) -> str:
    return (BEGAN + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def a_question(seq: int, title: str, **fields: Any) -> Request:
    return Request(id="q1", seq=seq, ts=at(198), kind=RequestKind.PERMISSION, title=title, **fields)


COMMAND = a_question(
    6,
    "wants to run a command",
    tool_name="bash",
    command="rm -rf build && make",
    rule="bash (preset)",
    run_rule="bash(=rm -rf build && make)",
)
EDIT = a_question(
    6,
    "wants to edit a file",
    tool_name="edit",
    paths=("src/auth.py",),
    diff=DIFF,
    rule="edit(src/**)",
    run_rule="edit(src/auth.py)",
)


def some_runs(*asked: tuple[int, Request], undelivered: int = 0) -> list[RunSnapshot]:
    requests = dict(asked)

    def run(number: int, preset: str, task: str, activity: str, **fields: Any) -> RunSnapshot:
        fields |= {"meta_preset": preset, "meta_task": task, "meta_talk": True, "meta_cwd": "/src/shop"}
        fields |= {"meta_agent": "claude", "meta_resolved_model": "anthropic/claude-sonnet-4-5"}
        fields |= {"started_at": at(0), "activity": activity, "meta_answer_timeout": 600.0}
        if number in requests:
            fields["requests"] = (requests[number],)
        return a_run(number, **fields)

    return [
        run(1, "docs-writer", "write the migration guide for 2.0", "Reading docs/upgrade.md"),
        run(2, "security-auditor", "check the error paths of refunds", "Reading src/refunds.py"),
        run(3, "reviewer", "review the parser change", "$ pytest -q tests/parser", undelivered=undelivered),
        run(4, "refactorer", "let every view take its token from one place", "Editing src/auth.py"),
    ]


def story(said: str, path: str, more: str) -> list[Event]:
    return [
        RunStarted(seq=1, ts=at(0), pid=1, child_pid=2, attempt=1, max_attempts=1),
        AssistantText(seq=2, ts=at(9), text=said),
        ToolCall(seq=3, ts=at(10), tool_call_id="1", tool_name="read", args={"path": path}),
        ToolResult(seq=4, ts=at(10), tool_call_id="1", tool_name="read", is_error=False, content="x\n"),
        AssistantText(seq=5, ts=at(190), text=more),
    ]


class Claude(FakeEngine):
    """An engine on a machine with Claude Code."""

    def agent(self) -> AgentChoice:
        return AgentChoice("claude", ("claude",), ("Read", "Edit", "Bash"), True, version="2.1.330", kind="claude")


async def talk(picture: Picture) -> None:
    """Take each picture."""
    engine = Claude(*some_runs((2, COMMAND), (4, EDIT)))
    measures = "The refund is booked before the error is raised. I want a clean build before I measure."
    engine.write(run_id(2), *story("I follow a refund that fails.", "src/refunds.py", measures), COMMAND)
    one = "Two views read the header themselves. The first one is in src/auth.py."
    engine.write(run_id(4), *story("I look for who reads the token.", "src/auth.py", one), EDIT)
    async with opened(engine) as deck:
        for number, name in ((2, "waiting"), (4, "question")):
            await deck.press("2")
            deck.main.runs.select(run_id(number))
            await deck.press("enter")
            await deck.until(lambda: deck.main.request.has_focus, "the question")
            await deck.until_text("? wants to run a command: rm" if number == 2 else "? wants to edit a file: src")
            deck.app.clear_notifications()
            await deck.pilot.pause(0.3)
            picture(deck.app, name)
    engine = Claude(*some_runs(undelivered=1))
    engine.write(
        run_id(3),
        *story("The grammar first, then the tokenizer.", "src/parser.py", "The tests of the parser take a while."),
        Message(
            seq=6,
            ts=at(200),
            id="m1",
            state=MessageState.ACCEPTED,
            by="operator",
            text="leave the parser alone, only the tokenizer",
        ),
        Message(seq=7, ts=at(203), id="m1", state=MessageState.DELIVERED),
        AssistantText(seq=8, ts=at(206), text="Understood: the parser stays as it is. I look at the tokenizer."),
        Message(
            seq=9, ts=at(237), id="m2", state=MessageState.ACCEPTED, by="operator", text="and say how you tested it"
        ),
    )
    async with opened(engine) as deck:
        deck.main.runs.select(run_id(3))
        await deck.press("enter")
        await deck.until_text("and say how you tested it")
        await deck.pilot.pause(0.3)
        picture(deck.app, "message")
