"""Messages, interrupts and dialogs during runs of pi."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.run.events import Notice, Request, Retry, ToolCall, ToolResult
from subdeck.core.run.model import MessageState, RequestKind, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.wrapper.replay import replay

from tests.factories import result_of, run_dir, started
from tests.house.set_up import NEW_PI_VERSION
from tests.real.lab import EITHER_PI, PATIENCE, Lab
from tests.real.model_server import called, said, texts
from tests.waiting import wait_until

from ...conversed import current, decisions, of, reached, wait_for_request, wait_until_interrupted

pytestmark = [pytest.mark.pi, EITHER_PI]

WHOLE = [MessageState.ACCEPTED, MessageState.DELIVERED]


def bash(command: str, text: str = "") -> dict[str, Any]:
    return called(("bash", {"command": command}), text=text)


def extension(text: str) -> None:
    """Install an extension of the user in pi."""
    path = Path(os.environ["PI_CODING_AGENT_DIR"]) / "extensions" / "own.ts"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"export default function (pi: any) {{\n{text}\n}}\n")


def working(pi: Lab, run: RunSnapshot) -> None:
    wait_until(lambda: of(ToolCall, pi.engine, run), "the call", PATIENCE)


def test_a_message_in_the_middle_of_a_tool(pi: Lab, tmp_path: Path) -> None:
    """A message during a tool call is in the next request to the model, and counts as delivered then."""
    pi.preset()
    go = tmp_path / "go"
    pi.script(bash(f"until [ -e {go} ]; do sleep 0.05; done"), said("With bananas."))
    run = pi.start("Count.")
    assert run.can_talk
    working(pi, run)
    sent = pi.engine.send(run.run_id, "Say bananas.\n\u2028Twice.")
    wait_until(lambda: reached(pi.engine, run, sent.id), "the message to be accepted")
    assert [MessageState.ACCEPTED] == reached(pi.engine, run, sent.id)
    go.touch()
    ended = pi.wait(run)
    assert ("done", "With bananas.") == (ended.reason, result_of(pi.engine, ended).final_text)
    assert WHOLE == reached(pi.engine, run, sent.id)
    assert [["Count."], ["Count.", "Say bananas.\n\u2028Twice."]] == [texts(request) for request in pi.requests]


def test_its_output_is_read_again(pi: Lab, tmp_path: Path) -> None:
    """The recorded output of a run with messages can be replayed."""
    pi.preset("tools: bash")
    pi.script(bash("echo hi", "I look."), said("Seen."))
    ended = pi.run()
    again = replay(str(run_dir(pi.engine, ended) / "stdout.log"), str(tmp_path))
    first = result_of(pi.engine, ended)
    assert (first.reason, first.final_text, first.usage) == (again.reason, again.final_text, again.usage)
    assert "done" == again.reason


def test_without_a_key(pi: Lab) -> None:
    """If a key's variable isn't set, the run fails with pi's error message. pi before 0.77 sends a placeholder as the
    key.
    """
    models = Path(os.environ["PI_CODING_AGENT_DIR"]) / "models.json"
    models.write_text(models.read_text().replace("sk-fake", "$NO_SUCH_KEY_AT_ALL"))
    pi.preset()
    pi.script(said("Seen."))
    ended = pi.run()
    result = result_of(pi.engine, ended)
    if NEW_PI_VERSION in pi.program:
        assert ("agent_exit", 0) == (ended.reason, len(pi.requests))
        assert "No API key" in (result.error_message or "")
    else:
        assert "done" == ended.reason


def test_an_interrupted_run_goes_on(pi: Lab) -> None:
    """An interrupt ends the turn and its shell, and keeps pi running. Your next message continues the conversation."""
    pi.preset()
    pi.script(bash("echo begun; sleep 300", "Let me wait."), said("Without waiting."))
    run = pi.start("Wait.")
    working(pi, run)
    pid = started(pi.engine, run).child_pid
    pi.engine.interrupt(run.run_id)
    assert "operator" == wait_until_interrupted(pi.engine, run).by
    assert current(pi.engine, run).is_interrupted
    sent = pi.engine.send(run.run_id, "Do not wait.")
    ended = pi.wait(run)
    assert ("done", "Without waiting.", 0) == (
        ended.reason,
        result_of(pi.engine, ended).final_text,
        result_of(pi.engine, ended).exit_code,
    )
    assert WHOLE == reached(pi.engine, run, sent.id)
    assert ["Wait.", "Do not wait."] == texts(pi.requests[-1])
    assert pid == started(pi.engine, run).child_pid


def test_dialogs_of_an_extension(pi: Lab) -> None:
    """Each dialog of an extension is a question in subdeck, and the extension gets your reply. Its notifications are
    notices.
    """
    extension("""
	pi.registerTool({
		name: "survey", label: "Survey", description: "Ask the user.", parameters: { type: "object", properties: {} },
		async execute(_id: string, _params: any, _signal: any, _update: any, ctx: any) {
			ctx.ui.notify("now it asks", "warning");
			ctx.ui.setStatus("survey", "asking");
			const said = [
				await ctx.ui.select("Which one?", ["red", "green"]),
				await ctx.ui.confirm("Sure?", "It cannot be undone."),
				await ctx.ui.input("A name", "like Ada"),
				await ctx.ui.editor("A text", "Dear"),
				await ctx.ui.select("Which other?", ["red", "green"]),
			];
			return { content: [{ type: "text", text: JSON.stringify(said) }], details: {} };
		},
	});
    """)
    pi.preset()
    pi.script(called(("survey", {})), said("Thanks."))
    run = pi.start("Ask.")
    replies = ((Verdict.REPLY, "green"), (Verdict.REPLY, "Yes"), (Verdict.REPLY, "Eve"), (Verdict.REPLY, "Dear Ada"))
    for number, (verdict, text) in enumerate((*replies, (Verdict.DENY, "")), 1):
        request = wait_for_request(pi.engine, run, number)
        pi.engine.reply(run.run_id, request.id, verdict, text)
    ended = pi.wait(run)
    assert "done" == ended.reason
    choice, question = RequestKind.CHOICE, RequestKind.QUESTION
    assert [
        (choice, "Which one?", ("red", "green")),
        (choice, "Sure?\n\nIt cannot be undone.", ("Yes", "No")),
        (question, "A name\n\nlike Ada", ()),
        (question, "A text\n\nDear", ()),
        (choice, "Which other?", ("red", "green")),
    ] == [(request.kind, request.text, request.choices) for request in of(Request, pi.engine, run)]
    (result,) = of(ToolResult, pi.engine, run)
    assert '["green",true,"Eve","Dear Ada",null]' == result.content
    assert ["now it asks"] == [notice.text for notice in of(Notice, pi.engine, run)]


def test_an_interrupt_takes_a_question_back(pi: Lab) -> None:
    """An interrupt ends the turn, even if an extension's dialog is open."""
    extension("""
	pi.on("tool_call", async (_event: any, ctx: any) => {
		if (!(await ctx.ui.confirm("May it?", ""))) return { block: true, reason: "no" };
	});
    """)
    pi.preset()
    pi.script(bash("touch made.txt"), said("Then not."))
    run = pi.start("Touch it.")
    wait_for_request(pi.engine, run)
    pi.engine.interrupt(run.run_id)
    wait_until_interrupted(pi.engine, run)
    assert [Verdict.WITHDRAWN] == [decision.verdict for decision in decisions(pi.engine, run)]
    pi.engine.send(run.run_id, "Leave it.")
    ended = pi.wait(run)
    assert ("done", False) == (ended.reason, (pi.project / "made.txt").exists())


def test_a_message_that_comes_too_late_for_the_last_turn(pi: Lab, tmp_path: Path) -> None:
    """A message that arrives as the last turn ends gets its own turn, once."""
    ending, go = tmp_path / "ending", tmp_path / "go"
    extension(f"""
	pi.on("agent_end", async () => {{
		const fs = await import("node:fs");
		fs.writeFileSync({str(ending)!r}, "");
		while (!fs.existsSync({str(go)!r})) await new Promise((resolve) => setTimeout(resolve, 20));
	}});
    """)
    pi.preset()
    pi.script(said("First."), said("Second."))
    run = pi.start("Count.")
    wait_until(ending.exists, "the end of the turn", PATIENCE)
    sent = [pi.engine.send(run.run_id, text) for text in ("One more.", "And another.")]
    for one in sent:
        wait_until(lambda one=one: reached(pi.engine, run, one.id), "the message to be accepted")
    go.touch()
    ended = pi.wait(run)
    assert ("done", "Second.") == (ended.reason, result_of(pi.engine, ended).final_text)
    assert [WHOLE] * 2 == [reached(pi.engine, run, one.id) for one in sent]
    heard = texts(pi.requests[-1])
    assert [1, 1] == [heard.count(text) for text in ("One more.", "And another.")]


def test_interrupted_between_two_tries(pi: Lab) -> None:
    """An interrupt also ends the wait before pi's next retry."""
    settings = Path(os.environ["PI_CODING_AGENT_DIR"]) / "settings.json"
    settings.write_text(
        '{"retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 60000, "provider": {"maxRetries": 0}}}'
    )
    pi.preset()
    pi.script({"status": 500, "body": {"error": {"message": "overloaded"}}}, said("Better."))
    run = pi.start("Try.")
    wait_until(lambda: of(Retry, pi.engine, run), "the retry", PATIENCE)
    pi.engine.interrupt(run.run_id)
    wait_until_interrupted(pi.engine, run)
    pi.engine.send(run.run_id, "Again.")
    ended = pi.wait(run)
    assert ("done", "Better.") == (ended.reason, result_of(pi.engine, ended).final_text)


def test_a_command_of_an_extension(pi: Lab) -> None:
    """A message can be a command of a pi extension. pi runs it, and the run continues or ends."""
    extension("""
	pi.registerCommand("jot", { description: "Write.", handler: async (text: string) => {
		(await import("node:fs")).writeFileSync("jotted.txt", text);
	} });
    """)
    pi.preset()
    pi.script(bash("sleep 300"), said("Never."))
    run = pi.start("Wait.")
    working(pi, run)
    pi.engine.interrupt(run.run_id)
    wait_until_interrupted(pi.engine, run)
    sent = pi.engine.send(run.run_id, "/jot this down")
    wait_until(lambda: WHOLE == reached(pi.engine, run, sent.id), "the command to be carried out", PATIENCE)
    assert "this down" == (pi.project / "jotted.txt").read_text()
    pi.engine.stop([run.run_id])
    assert "stopped" == pi.wait(run).reason


def test_permissions(pi: Lab) -> None:
    """pi's own tools follow your rules, and ask you if an `ask` rule matches. Calls that no rule covers are allowed."""
    pi.preset('permissions: {allow: ["bash(echo *)"], ask: [bash, write], deny: ["read(secret*)"]}')
    (pi.project / "secret.txt").write_text("hush")
    write = ("write", {"path": "made.txt", "content": "new\n"})
    pi.script(
        called(("bash", {"command": "echo one"}), ("read", {"path": "secret.txt"})),
        called(("read", {"path": "./notes/none.txt"})),
        called(("bash", {"command": "rm secret.txt"})),
        called(write),
        called(write),
        said("Done."),
    )
    run = pi.start("Work.")
    seen: list[Request] = []
    for number, (verdict, word) in enumerate(
        ((Verdict.ALLOW, ""), (Verdict.DENY, "Keep it."), (Verdict.ALLOW_RUN, "")), 1
    ):
        seen.append(wait_for_request(pi.engine, run, number))
        pi.engine.reply(run.run_id, seen[-1].id, verdict, word)
    ended = pi.wait(run)
    assert ("done", "Done.") == (ended.reason, result_of(pi.engine, ended).final_text)
    assert ["echo one", "rm secret.txt", ""] == [request.command for request in seen]
    assert (("made.txt",), True) == (seen[-1].paths, "+new" in seen[-1].diff)
    assert [
        (Verdict.ALLOW, "operator"),
        (Verdict.DENY, "rule"),
        (Verdict.DENY, "operator"),
        (Verdict.ALLOW_RUN, "operator"),
        (Verdict.ALLOW, "rule"),
    ] == [(decision.verdict, decision.by) for decision in decisions(pi.engine, run)]
    results = of(ToolResult, pi.engine, run)
    assert {"secret.txt", "made.txt"} <= {path.name for path in pi.project.iterdir()}
    assert not any("hush" in result.content for result in results)
    assert any("Denied: Keep it." in result.content for result in results)


def test_a_dialog_is_no_permission(pi: Lab) -> None:
    """Rules never answer the dialog of an extension; only you can."""
    extension("""
	pi.on("tool_call", async (_event: any, ctx: any) => {
		if (!(await ctx.ui.confirm("May it?", "bash(touch *)"))) return { block: true, reason: "no" };
	});
    """)
    pi.preset('permissions: {allow: [bash], deny: ["bash(rm *)"]}')
    pi.script(bash("touch made.txt"), said("Then not."))
    run = pi.start("Touch it.")
    request = wait_for_request(pi.engine, run)
    assert (RequestKind.CHOICE, "", "") == (request.kind, request.tool_name, request.run_rule)
    pi.engine.reply(run.run_id, request.id, Verdict.REPLY, "No")
    assert "done" == pi.wait(run).reason
    assert not (pi.project / "made.txt").exists()


def test_a_one_way_run(pi: Lab) -> None:
    """In a non-interactive run, extensions have no user interface, and the run completes."""
    extension("""
	pi.on("agent_start", async (_event: any, ctx: any) => { if (ctx.hasUI) await ctx.ui.confirm("May it?", ""); });
    """)
    pi.preset("interactive: false")
    pi.script(said("Seen."))
    ended = pi.run()
    result = result_of(pi.engine, ended)
    assert (False, "done", "Seen.", 0) == (ended.meta.talk, ended.reason, result.final_text, result.exit_code)
    assert ended.meta.child_session_id == result.child_session_id
    assert [] == of(Request, pi.engine, ended)
