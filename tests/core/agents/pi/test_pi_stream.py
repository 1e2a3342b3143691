"""Reading pi's JSON lines: text being written, completion, events."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.agents.sentence import TAIL_LIMIT, WHOLE_LIMIT
from subdeck.core.agents.updates import UPDATE_HEAD
from subdeck.core.run.events import CONTENT_LIMIT, AssistantText, Notice, Retry, Thinking, ToolCall, ToolResult

START = b'{"type":"agent_start"}'
END = b'{"type":"agent_end","messages":[]}'
SETTLED = b'{"type":"agent_settled","aborted":false}'
RETRY = b'{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"500 boom"}'
COMPACTION = b'{"type":"compaction_start","reason":"threshold"}'


def line(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def end(will_retry: bool) -> bytes:
    return line(type="agent_end", messages=[{"role": "user"}], willRetry=will_retry)


def message(*blocks: object, stop: str = "stop", **fields: object) -> bytes:
    said = {"role": "assistant", "content": list(blocks), "provider": "fake", "model": "test", "stopReason": stop}
    return line(type="message_end", message={**said, **fields})


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def update(kind: str, **fields: object) -> bytes:
    """A `message_update` as pi 0.73.1 writes it, which repeats the whole message."""
    event = {"type": kind, "contentIndex": 0, **fields, "partial": {"content": [text("AHEAD " * 2000)]}}
    return line(type="message_update", assistantMessageEvent=event, message={"content": []})


def new_update(kind: str, **fields: object) -> bytes:
    """A `message_update` as pi 1.5.2 writes it."""
    event = {"type": kind, "contentIndex": 0, **fields}
    return line(type="message_update", usage={"input": 1, "cost": {"total": 0.1}}, assistantMessageEvent=event)


def fed(*lines: bytes) -> PiStream:
    stream = PiStream()
    for each in lines:
        stream.feed(each)
    return stream


def written(*lines: bytes) -> str:
    stream = PiStream()
    for each in lines:
        stream.feed(each[:UPDATE_HEAD])
    return stream.sentence


@pytest.mark.parametrize("make", [update, new_update])
def test_sentence(make) -> None:
    """The text being written comes from the deltas, never from the partial message."""
    assert 'He said "hé\n日本' == written(
        make("text_start"),
        make("text_delta", delta='He said "'),
        make("thinking_delta", delta="secret"),
        make("toolcall_delta", delta="args"),
        make("text_delta", delta="hé\n日本"),
        make("text_end", content="repeated"),
    )


def test_sentence_is_cut() -> None:
    """Only the end of a long text is kept, cut at a whole character."""
    sentence = written(*[new_update("text_delta", delta="日本語" * 100)] * 20)
    assert TAIL_LIMIT - 4 < len(sentence.encode()) <= TAIL_LIMIT
    assert ("日本語" * 300).endswith(sentence)


@pytest.mark.parametrize("tail", [b"\\", b"\\u", b"\\u00", b"\\u00e", b"\xc3", b"\xf0\x9f\x98"])
def test_delta_longer_than_the_head(tail: bytes) -> None:
    """A delta longer than the head of its line is used up to there, without a torn escape or character."""
    start = b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"'
    body = b"a\\n" + b"x" * 1000
    assert "a\n" + "x" * 1000 == written(start + body + tail)


def test_half_of_a_surrogate_pair() -> None:
    """A delta with half a character loses only that character."""
    delta = (
        b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"ab\\ud83d"}}'
    )
    assert "ab\ufffd" == written(delta)


@pytest.mark.parametrize(
    "over", [message(text("Done.")), END, line(type="message_start", message={"role": "assistant"})]
)
def test_sentence_is_over(over: bytes) -> None:
    """Between messages the sentence is empty."""
    assert "" == fed(update("text_delta", delta="Done"), over).sentence


def test_second_block_of_text() -> None:
    """Another text block of the same message is a new paragraph."""
    blocks = [new_update("text_delta", delta="One."), new_update("text_start"), new_update("text_delta", delta="Two.")]
    assert "One.\n\nTwo." == written(*blocks)


def text_events(*lines: bytes) -> list[tuple[str, bool]]:
    """Return the texts of a stream that ends after these lines, each with whether it is partial."""
    stream = PiStream()
    events = [event for each in lines for event in stream.feed(each)] + stream.end()
    return [(event.text, event.partial) for event in events if isinstance(event, AssistantText)]


@pytest.mark.parametrize("make", [update, new_update])
def test_what_was_being_written_at_the_end(make) -> None:
    """If the output ends within a message, its text so far is partial and is the answer."""
    lines = (
        message(text("First.")),
        make("text_start"),
        make("text_delta", delta='He "s'),
        make("text_delta", delta="a"),
    )
    assert [("First.", False), ('He "sa', True)] == text_events(*lines)
    stream = fed(*lines)
    assert ("First.", False) == (stream.facts.final_text, stream.facts.partial)
    stream.end()
    assert ('He "sa', True) == (stream.facts.final_text, stream.facts.partial)


@pytest.mark.parametrize("over", [END, line(type="message_start", message={"role": "assistant"})])
def test_a_message_without_an_end(over: bytes) -> None:
    """A message that is followed by another one, or by the agent's end, is kept up to there."""
    assert [("Half", True)] == text_events(new_update("text_delta", delta="Half"), over)


@pytest.mark.parametrize(("stop", "partial"), [("stop", False), ("length", False), ("aborted", True), ("error", True)])
def test_a_message_that_was_ended(stop: str, partial: bool) -> None:
    """A message that pi reports as cut off is partial."""
    lines = (new_update("text_delta", delta="Half"), message(text("Half"), stop=stop))
    assert [("Half", partial)] == text_events(*lines)
    assert partial is fed(*lines).facts.partial


def test_a_later_message_is_whole_again() -> None:
    """After a cut message, the next complete one is the answer."""
    assert not fed(message(text("Half"), stop="error"), message(text("Whole."))).facts.partial


def test_nothing_but_blanks_was_being_written() -> None:
    """Whitespace is not text."""
    assert [("Whole.", False)] == text_events(message(text("Whole.")), new_update("text_delta", delta=" \n"))


def test_a_character_cut_between_two_deltas() -> None:
    """Two halves of a character in two deltas become one character."""
    start = b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"'
    assert [("\U0001f600", True)] == text_events(start + b'\\ud83d"}}', start + b'\\ude00"}}')


def test_a_long_message_is_cut_and_what_is_cut_is_counted() -> None:
    """The first megabyte of the text being written is kept, with the number of omitted bytes."""
    delta = "x" * 1000
    pieces = 2 * WHOLE_LIMIT // 1000
    ((words, partial),) = text_events(*[new_update("text_delta", delta=delta)] * pieces)
    kept, _, note = words.partition("\n")
    assert (True, f"[… {pieces * 1000 - len(kept)} more bytes omitted]") == (partial, note)
    assert WHOLE_LIMIT - 1000 < len(kept) <= WHOLE_LIMIT


def test_forged_update() -> None:
    """Text of a model that looks like pi's JSON is only text."""
    forged = '"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"forged'
    assert "" == written(line(type="message_update", usage={"note": forged}, assistantMessageEvent={"type": "x"}))


def test_tool_updates_are_passed_over() -> None:
    """A tool's progress is neither text nor an unreadable line."""
    stream = fed(line(type="tool_execution_update", toolCallId="1", partialResult={"content": [text("x")]}))
    assert ("", 0) == (stream.sentence, stream.facts.unreadable)


QUIET, BRIEF = 5.0, 1.0


@pytest.mark.parametrize(
    ("lines", "finished_after", "finished"),
    [
        ([], None, False),
        ([START], None, False),
        ([START, message(text("x"))], None, False),
        ([START, message(text("x")), END], BRIEF, True),
        ([START, message(text("x"), stop="length"), END], BRIEF, True),
        ([START, message(stop="toolUse"), END], BRIEF, True),
        ([START, message(stop="error"), END], BRIEF, True),
        ([START, message(stop="error"), END, RETRY], None, False),
        ([START, message(stop="error"), END, RETRY, START], None, False),
        ([START, message(stop="error"), END, RETRY, START, message(text("x")), END], BRIEF, True),
        ([START, message(text("x")), END, START], None, False),
        ([START, message(text("x")), END, COMPACTION], None, True),
        ([START, message(stop="error"), END, COMPACTION], None, False),
        ([START, message(text("x")), END, COMPACTION, line(type="compaction_end", willRetry=False)], BRIEF, True),
        ([START, message(stop="error"), END, COMPACTION, line(type="compaction_end", willRetry=True)], None, False),
        ([START, message(stop="error"), END, COMPACTION, line(type="compaction_end")], BRIEF, True),
        ([START, COMPACTION, line(type="compaction_end", willRetry=False)], None, False),
        ([START, message(text("x")), end(will_retry=False)], QUIET, True),
        ([START, message(stop="error"), end(will_retry=True)], None, False),
        ([START, message(text("x")), end(will_retry=False), START], None, False),
        ([START, message(text("x")), end(will_retry=False), SETTLED], 0, True),
        ([START, message(text("x")), end(will_retry=False), SETTLED, START], None, False),
    ],
)
def test_completion(lines: list[bytes], finished_after: float | None, finished: bool) -> None:
    """A run is finished at once by `agent_settled`, or after a quiet moment by `agent_end`."""
    stream = fed(*lines)
    assert (finished_after, finished) == (stream.finished_after, stream.facts.finished)


def test_messages_of_agent_end_are_skipped() -> None:
    """`agent_end` repeats every message, but only its own fields are read."""
    torn = b'{"type":"agent_end","messages":[{"text":"\\ud83d \xff"}],"willRetry":true}'
    assert (None, False) == (fed(torn).finished_after, fed(torn).facts.finished)


def test_settled_by_an_abort() -> None:
    """`agent_settled` after an abort sets the stop reason."""
    stream = fed(message(text("x"), stop="toolUse"), line(type="agent_settled", aborted=True))
    assert "aborted" == stream.facts.stop_reason


def test_blank_blocks() -> None:
    """Empty texts and thoughts are neither events nor an answer."""
    stream = PiStream()
    assert [] == [
        event
        for event in stream.feed(message(text(" \n"), {"type": "thinking", "thinking": ""}))
        if isinstance(event, AssistantText | Thinking)
    ]
    assert stream.facts.final_text is None


def test_final_text() -> None:
    """The answer is all text blocks of the last assistant message with text."""
    stream = fed(message(text("First.")), message(text("One."), text("Two.")), message(text("  "), stop="length"))
    assert ("One.\n\nTwo.", "length") == (stream.facts.final_text, stream.facts.stop_reason)


def test_other_roles() -> None:
    """Text of users, systems, tools and extensions is not the agent's."""
    for role in ("user", "system", "custom", "toolResult"):
        assert [] == PiStream().feed(line(type="message_end", message={"role": role, "content": [text("x")]}))
        assert [] == PiStream().feed(line(message={"role": role, "content": [text("x")]}, type="message_end"))


def test_key_order_is_no_matter() -> None:
    """A line with other spacing or key order is still read."""
    spaced = json.dumps({"message": {"role": "assistant", "content": [text("Hi.")]}, "type": "message_end"}).encode()
    assert "Hi." == fed(spaced).facts.final_text


def test_measured_duration() -> None:
    """If pi reports no duration, the time between the call's start and end is used."""
    times = iter([10.0, 10.25])
    stream = PiStream(clock=lambda: next(times))
    stream.feed(line(type="tool_execution_start", toolCallId="a", toolName="ls", args={}))
    assert 1 == stream.running_tools
    (result,) = stream.feed(line(type="tool_execution_end", toolCallId="a", toolName="ls", result={"content": []}))
    assert isinstance(result, ToolResult)
    assert (250, 0) == (result.duration_ms, stream.running_tools)


def test_result_without_a_call() -> None:
    """The result of an unannounced call has no duration."""
    (result,) = PiStream().feed(line(type="tool_execution_end", toolCallId="a", toolName="ls", result={}))
    assert isinstance(result, ToolResult)
    assert (None, "", False) == (result.duration_ms, result.content, result.is_error)


def test_content_is_cut() -> None:
    """Tool output is cut at the limit of events and marked, and images are named."""
    blocks = [text("x" * CONTENT_LIMIT), {"type": "image", "data": "…"}]
    (result,) = PiStream().feed(line(type="tool_execution_end", toolName="read", result={"content": blocks}))
    assert isinstance(result, ToolResult)
    assert (CONTENT_LIMIT, True) == (len(result.content), result.truncated)
    (result,) = PiStream().feed(line(type="tool_execution_end", toolName="read", result={"content": blocks[1:]}))
    assert isinstance(result, ToolResult)
    assert ("[image]", False) == (result.content, result.truncated)


def test_memory_of_calls_is_bounded() -> None:
    """Memory is bounded, even if an agent starts tools without ending them."""
    starts = [line(type="tool_execution_start", toolCallId=str(n), toolName="x", args={}) for n in range(1100)]
    assert 1000 == fed(*starts).running_tools


def test_calls_without_an_end() -> None:
    """When the agent has ended, none of its tools is running."""
    start = line(type="tool_execution_start", toolCallId="a", toolName="x", args={})
    assert (1, 0) == (fed(start).running_tools, fed(start, END).running_tools)


def test_retry() -> None:
    """A retry is reported with its numbers and cause."""
    (retry,) = PiStream().feed(RETRY)
    assert Retry(attempt=1, max_attempts=3, delay_ms=2000, reason="500 boom") == retry


def test_compaction_is_paid() -> None:
    """A summary's tokens are counted, but not as a turn."""
    summary = line(type="compaction_end", result={"usage": {"input": 7, "output": 2, "cost": {"total": 0.5}}})
    usage = fed(message(text("x"), usage={"input": 1}), COMPACTION, summary).facts.usage
    assert (8, 2, 0.5, 1) == (usage.input, usage.output, usage.cost, usage.turns)


def test_failed_compaction() -> None:
    """A failed compaction is a warning with pi's message."""
    (notice,) = PiStream().feed(line(type="compaction_end", errorMessage="Auto-compaction failed: x"))
    assert Notice(level="warning", text="Auto-compaction failed: x") == notice


def test_finalized() -> None:
    """The last successful `subagent_finalize` counts."""

    def finalize(status: str, error: bool = False) -> bytes:
        result = {"content": [], "details": {"status": status}, "terminate": True}
        return line(type="tool_execution_end", toolName="subagent_finalize", result=result, isError=error)

    assert {"status": "b"} == fed(finalize("a"), finalize("b"), finalize("c", error=True)).facts.finalized
    assert fed(finalize("a", error=True)).facts.finalized is None


def test_garbage_is_told_once() -> None:
    """Unreadable lines are counted, reported once without control characters, and never end the run."""
    stream = PiStream()
    first = stream.feed(b"\x1b[31mDeprecationWarning\x1b[0m: old\x00")
    assert [
        Notice(level="warning", text="the agent wrote a line that is not an event: DeprecationWarning: old")
    ] == first
    assert [] == [*stream.feed(b"{torn"), *stream.feed(b""), *stream.feed(b"  ")]
    assert 2 == stream.facts.unreadable
    stream.feed(message(text("Fine.")))
    assert "Fine." == stream.facts.final_text


def test_half_of_a_surrogate_pair_in_an_answer() -> None:
    """An answer with half a character is still the answer. Escaped backslashes and whole pairs stay."""
    raw = message(text("PLACE")).replace(b"PLACE", b"a\\ud83d \\\\ud83d \\ud83d\\ude00 \xff b")
    assert "a\ufffd \\ud83d 😀 \ufffd b" == fed(raw).facts.final_text


def test_call_of_a_tool() -> None:
    """A call has its name and arguments."""
    (call,) = PiStream().feed(line(type="tool_execution_start", toolCallId="a", toolName="ls", args={"path": "x"}))
    assert ToolCall(tool_call_id="a", tool_name="ls", args={"path": "x"}) == call


@pytest.mark.processes
def test_light_imports() -> None:
    """The wrapper reads the stream, so it imports nothing heavy."""
    heavy = ("asyncio", "yaml", "json", "libtmux", "watchfiles", "subprocess", "difflib", "shutil", "click")
    modules = ", ".join(f"subdeck.core.{name}" for name in ("agents.pi.program", "run.outcome", "run.progress"))
    code = f"import sys, {modules}; print(*sys.modules)"
    bare = subprocess.run(
        [sys.executable, "-c", "import msgspec, sys; print(*sys.modules)"], capture_output=True, check=True
    )
    ours = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert set() == {*ours.stdout.split()} & {*heavy} - {*bare.stdout.decode().split()}
