"""The behavior of made-up agents: they read, search, run tests, edit, announce steps, and sometimes request permission.

A script is a generator that plays one run: it does a step, and yields the seconds until the next one.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Iterator

from ..run.events import AssistantText, Event, Request, Thinking, ToolCall, ToolResult, UsageReported
from ..run.model import RequestKind, RunReason, Verdict
from ._held_run import HeldRun

Script = Generator[float]

FILES = (
    *("src/refunds.py", "src/cart.py", "src/auth/tokens.py", "src/webhooks.py", "src/mailer/queue.py"),
    *("src/stock.py", "src/search/index.py", "src/coupons.py", "tests/test_refunds.py", "docs/api.md"),
)
WORDS = ("refund_key", "check_token", "place_order", "price_cache", "on_webhook", "retry_after", "round_half_even")
SAYINGS = (
    "The handler is mounted twice, so I look at which one comes first and whether `{word}` is called in both.",
    "`{file}` checks the token before the handler runs. Next I look at where it is mounted.",
    "Nothing else writes to this table, so the lock in `{word}` can go. I check the tests for it.",
    "The test fails only when the clock moves between the two reads. I give both the same time.",
    "That explains the second call. I follow `{word}` to its other caller in `{file}`.",
    "The old status code is still expected by two callers; I list them before I change anything.",
    "`{word}` rounds twice, once here and once in `{file}`. One of the two has to go.",
    "The retry starts before the first call has failed. I look for the timeout in `{file}`.",
    "Two tests cover this branch, and both pass an empty list. I add one with a single order.",
    "The index is built at import time, so `{word}` never sees the new setting.",
    "`{file}` opens the file twice. The second handle is the one that leaks.",
    "The cache key lacks the currency, so two prices share one entry.",
    "The mailer drops a message if the queue is full. I check whether `{word}` is told.",
    "Deleting the fallback is safe: its only caller went away with the old router.",
    "I compare the two implementations of `{word}` line by line before I merge them.",
    "The migration adds a column that `{file}` reads before it exists. I swap the two steps.",
)
THOUGHTS = (
    "The middleware may be mounted twice, so the order of the two matters.",
    "If the key outlives the request, the retry can find the first refund.",
)
CODE = """def {word}(order, key):
    if order.was_done_with(key):
        return order.result_of(key)
    result = apply(order, key)
    order.note(key, result)
    return result
"""
TICK_S = 0.25
_PIECE = 18
"""Characters that an agent writes per tick."""
_FINAL = (
    "Done: `{file}` is changed, and its **{count} tests** pass.\n\n- `{word}` keeps the key\n- no caller had to change"
)

_COMMAND = "git push origin refunds-idempotent"
_EDIT = """--- src/refunds.py
+++ src/refunds.py
@@ -12,2 +12,3 @@
     payments.give_back(order, amount)
-    return None
+    order.note_refund(key, amount)
+    return order.refund_of(key)
"""


def steps_of(chance: random.Random, rounds: int) -> Iterator[Event]:
    """Yield an agent's events in some rounds."""
    for _ in range(rounds):
        yield AssistantText(text=sentence_of(chance))
        yield from _tool_use(chance)
        yield _paid(chance)


def reading_steps(readings: Iterable[tuple[str, str]]) -> Iterator[Event]:
    """Yield events of an agent that says a sentence and reads a file, for each pair of the two."""
    for number, (text, path) in enumerate(readings):
        call = f"read-{number}"
        yield AssistantText(text=text)
        yield ToolCall(tool_call_id=call, tool_name="read", args={"path": path})
        yield ToolResult(tool_call_id=call, tool_name="read", is_error=False, content=CODE.format(word="claim"))


def sentence_of(chance: random.Random) -> str:
    return chance.choice(SAYINGS).format(file=chance.choice(FILES), word=chance.choice(WORDS))


def at_work(run: HeldRun, chance: random.Random, rounds: int) -> Script:
    """Play an agent that works for some rounds, and ends."""
    for _ in range(rounds):
        if chance.random() < 0.3:
            run.write(Thinking(text=chance.choice(THOUGHTS)))
            yield chance.uniform(0.5, 2)
        yield from say(run, sentence_of(chance))
        for event in _tool_use(chance):
            run.write(event)
            yield chance.uniform(0.5, 3)
        run.write(_paid(chance))
    final = _FINAL.format(file=chance.choice(FILES), word=chance.choice(WORDS), count=chance.randrange(3, 40))
    yield from say(run, final)
    run.end(RunReason.DONE)


def begin_request(run: HeldRun, number: int) -> None:
    """Add a permission request to a run: to run a command, or, for an odd `number`, to change a file."""
    if number % 2:
        text = "One line is missing: the refund has to be noted under its key."
        tool, args = "edit", {"path": "src/refunds.py", "edits": [{"oldText": "return None", "newText": "…"}]}
        asked = Request(
            id="ask", kind=RequestKind.PERMISSION, title="wants to change a file", tool_name=tool,
            paths=("src/refunds.py",), diff=_EDIT, tool_call_id="call_1",
        )  # fmt: skip
    else:
        text = "Refunds are idempotent now, and all 24 tests pass. I push the branch, so that CI can look at it."
        tool, args = "bash", {"command": _COMMAND}
        asked = Request(
            id="ask", kind=RequestKind.PERMISSION, title="wants to run a command", tool_name=tool,
            command=_COMMAND, tool_call_id="call_1",
        )  # fmt: skip
    run.write(AssistantText(text=text))
    run.write(ToolCall(tool_call_id="call_1", tool_name=tool, args=args))
    run.write(asked)


def after_request(run: HeldRun, number: int) -> Script:
    """Wait for the reply, and act on it."""
    while run.child.verdict is None:
        yield TICK_S
    verdict, reason = run.child.verdict
    is_edit, is_allowed = bool(number % 2), verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN)
    yield 2 * TICK_S
    if is_allowed:
        content = "Successfully replaced 1 block(s) in src/refunds.py." if is_edit else "To origin\n * [new branch]"
        text = "The refund is noted under its key." if is_edit else "The branch is pushed. CI runs on it now."
    else:
        content = f"Denied: {reason}" if reason else "Denied."
        what = "leave `src/refunds.py` as it is" if is_edit else "do **not** push"
        because = f" You said: {reason}" if reason else ""
        text = f"You denied that, so I {what}.{because}"
    run.write(
        ToolResult(
            tool_call_id="call_1",
            tool_name="edit" if is_edit else "bash",
            is_error=not is_allowed,
            content=content,
            diff=_EDIT if is_edit and is_allowed else "",
        )
    )
    yield from say(run, text)
    run.end(RunReason.DONE)


def silent() -> Script:
    """Play an idle agent."""
    while True:
        yield 1.0


def say(run: HeldRun, text: str) -> Script:
    """Write a text piece by piece, as a model does."""
    for begin in range(0, len(text), _PIECE):
        run.writing(text[begin : begin + _PIECE])
        yield TICK_S
    run.write(AssistantText(text=text))
    yield TICK_S


def _tool_use(chance: random.Random) -> Iterator[Event]:
    call_id = f"call_{chance.randrange(10**12):012d}"
    file, word = chance.choice(FILES), chance.choice(WORDS)
    diff, code = "", 0
    match chance.randrange(4):
        case 0:
            tool, args, content = "read", {"path": file}, CODE.format(word=word)
        case 1:
            tool, args, content = "grep", {"pattern": word, "path": "src"}, f"{file}:12: def {word}(order, key):"
        case 2:
            tool, args = "bash", {"command": f"pytest -q {file}"}
            content = f"{chance.randrange(3, 40)} passed in {chance.uniform(0.4, 9):.1f}s"
        case _:
            old, new = f"return {word}(order)", f"return {word}(order, key)"
            tool, args = "edit", {"path": file, "edits": [{"oldText": old, "newText": new}]}
            content = f"Successfully replaced 1 block(s) in {file}."
            diff = f"--- {file}\n+++ {file}\n@@ -40,1 +40,1 @@\n-    {old}\n+    {new}\n"
    yield ToolCall(tool_call_id=call_id, tool_name=tool, args=args)
    yield ToolResult(
        tool_call_id=call_id,
        tool_name=tool,
        is_error=False,
        content=content,
        exit_code=code if tool == "bash" else None,
        duration_ms=chance.randrange(5, 4000),
        diff=diff,
    )


def _paid(chance: random.Random) -> UsageReported:
    return UsageReported(
        input=chance.randrange(50, 900),
        output=chance.randrange(20, 400),
        cache_read=12_000,
        cache_write=210,
        cost=round(chance.uniform(0.001, 0.02), 4),
        model="",
        stop_reason="toolUse",
    )
