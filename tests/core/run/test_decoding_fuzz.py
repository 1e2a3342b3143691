"""For any bytes, a decoder quickly returns a value or raises its own error, and the displayed text is plain."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from subdeck.core import paths
from subdeck.core.agents.agent import AgentChoice
from subdeck.core.agents.pi import _models
from subdeck.core.agents.pi.session import open_history
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.config.files import read_entries
from subdeck.core.config.settings import Inheritance
from subdeck.core.config.yaml_tree import decode as decode_text, parse_mapping
from subdeck.core.delegation._arguments import background_arguments, status_arguments, subagent_arguments
from subdeck.core.delegation.results import CallRejected, rejection
from subdeck.core.errors import ContentError, ModelError, SubdeckError, UsageError
from subdeck.core.launch._inherit import compact
from subdeck.core.models.resolvers import provider_roles
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.project.diagnosis import Evidence, explain
from subdeck.core.project.registry import finished_snapshot
from subdeck.core.project.session import SessionFile
from subdeck.core.run import artifacts, describe
from subdeck.core.run.events import (
    AssistantText,
    Event,
    EventTail,
    Notice,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolResult,
    UsageReported,
    call_id_of_line,
    decode_beginning,
    decode_event,
    encode_event,
    seq_of_line,
    ts_of_line,
)
from subdeck.core.run.fold import Fold, OpenCalls
from subdeck.core.run.markdown import run_markdown
from subdeck.core.run.model import LogCaps, NoticeLevel, PresetSource, RunMeta, RunReason, RunResult, RunStatus
from subdeck.core.run.outcome import decide
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.text.decoder import UNDECODABLE, decode, encode_shown, why
from subdeck.core.text.plain import one_line, plain
from subdeck.core.wrapper._intake import Intake
from subdeck.core.wrapper.records import Records
from subdeck.tui.detail._facts import facts_rows
from subdeck.tui.feed.lines import View, body_of_line, entry_of_line, full_text
from subdeck.tui.launch._memory import LaunchMemory
from subdeck.tui.runs.filter import parse_filter
from subdeck.tui.transcript._time import parse_time

from tests.core.agents.pi.session_file import HEADER
from tests.factories import make_meta, make_result
from tests.fuzzed import TEXTS, VALUES, documents, dumped, fuzzed
from tests.hostile import controls

pytestmark = pytest.mark.fuzz

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = "20260101-000000-abcdef"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def is_plain(*shown: str | None) -> None:
    assert [] == [found for text in shown for found in controls((text or "").replace("\n", " "))]


def builtin(record: msgspec.Struct) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(record))


META, RESULT = builtin(make_meta(ID)), builtin(make_result(ID))
FACTS = {
    "kind": "process",
    "host": "h",
    "bootId": "b",
    "pidNamespace": "p",
    "pid": 7,
    "tmux": {"socket": "s", "session": "s", "window": "w"},
}
REQUEST = {"by": "operator", "force": False, "at": "2026-01-01T00:00:00Z", "reason": "stopped"}
EVENTS: list[Event] = [
    RunStarted(seq=1, ts="2026-01-01T00:00:00.000Z", pid=1, child_pid=2, attempt=1, max_attempts=1),
    AssistantText(seq=2, ts="2026-01-01T00:00:00.000Z", text="said"),
    ToolCall(seq=3, ts="x", tool_call_id="c", tool_name="bash", args={"command": "ls", "n": [1, {"a": None}]}),
    ToolResult(seq=4, tool_call_id="c", tool_name="bash", is_error=True, content="x", exit_code=1, duration_ms=5),
    UsageReported(seq=5, input=1, output=2, cache_read=3, cache_write=4, cost=0.5, model="m", stop_reason="stop"),
    Notice(seq=6, level=NoticeLevel.WARNING, text="careful"),
    RunEnded(seq=7, status=RunStatus.COMPLETED, reason=RunReason.DONE),
]
LINES = [builtin(event) for event in EVENTS]


@fuzzed
@given(content=documents(META, RESULT, FACTS, REQUEST, {"schemaVersion": 99}))
def test_records(place: Path, content: bytes) -> None:
    """A record is either readable or broken with a reason; a run can be shown and explained in both cases."""
    run_dir = place / ID
    run_dir.mkdir(exist_ok=True)
    for name in (paths.META, paths.RESULT, paths.RUNNER, paths.STOP):
        (run_dir / name).write_bytes(content)
    where = str(run_dir)
    meta, result = artifacts.read_meta(where), artifacts.read_result(where)
    runner, stop = artifacts.read_runner(where), artifacts.read_stop(where)
    for name, record in ((paths.META, meta), (paths.RESULT, result), (paths.RUNNER, runner), (paths.STOP, stop)):
        fault = artifacts.fault_of(where, name)
        assert record is not None or fault.startswith(f"{name} is damaged: ")
        is_plain(fault)
    meta = meta or artifacts.unreadable_meta(where)
    result = result or artifacts.unreadable_result(where)
    run = finished_snapshot(meta, result)
    shown = [
        describe.state(run), describe.elapsed(run, NOW), describe.doing(run), describe.tokens(run.usage.tokens),
        explain(run, Evidence(result=result, stop=stop), NOW), describe.limits_words(meta.limits),
        *(part[0] for rows in facts_rows(run, meta, result, runner, NOW, 80) for row in rows for part in row),
        *run_markdown(run, EventTail(f"{where}/none"), result),
    ]  # fmt: skip
    is_plain(*shown)
    assert msgspec.json.encode(run)


@fuzzed
@given(content=documents({"seq": 5, "sentence": "now"}) | st.just(b""))
def test_the_doorbell(content: bytes) -> None:
    """An activity record is decoded, or None."""
    record = artifacts.decode_activity(content)
    assert record is None or (0 <= record.seq <= 2**53 and isinstance(record.sentence, str))


def shown_by(line: bytes) -> Iterator[str | None]:
    for view in View:
        entry = entry_of_line(view, line, ProgressFormatter())
        yield entry.text if entry else None
        yield from ("".join(shown) for shown in body_of_line(view, line))
        yield full_text(view, line, ProgressFormatter())


@fuzzed
@given(contents=st.lists(documents(*LINES, {"type": "unheard of", "seq": 1}), max_size=6))
def test_events(place: Path, contents: list[bytes]) -> None:
    """Each line is an event or is counted as unreadable; every event can be folded, shown and written again."""
    path = place / paths.EVENTS
    lines = [content.replace(b"\n", b" ") for content in contents]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    tail = EventTail(str(path))
    events = tail.read()
    assert len(events) + tail.unreadable == sum(bool(line.strip()) for line in lines)
    fold, calls, formatter = Fold(), OpenCalls(), ProgressFormatter()
    for event in events:
        fold.apply(event)
        calls.apply(event)
        is_plain(formatter.text(event))
        again = decode_event(encode_event(event))
        assert again == event
    is_plain(fold.activity)
    for line in lines:
        is_plain(*shown_by(line))
        assert seq_of_line(line) >= 0
        assert isinstance(ts_of_line(line), str)
        call_id_of_line(line)
        beginning = decode_beginning(line[: len(line) // 2])
        assert beginning is None or encode_event(beginning)


@fuzzed
@given(
    text=st.text(),
    number=st.integers(0, 2**53),
    args=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_what_is_written_is_read_again(text: str, number: int, args: dict[str, Any]) -> None:
    """Written events, metas and results are read back unchanged."""
    events: list[Event] = [
        AssistantText(seq=number, ts=text, text=text),
        ToolCall(seq=number, tool_call_id=text, tool_name=text, args=args),
        UsageReported(
            input=number, output=0, cache_read=0, cache_write=0, cost=number / 8, model=text, stop_reason=text
        ),
    ]
    with suppress(UnicodeEncodeError):  # halves of surrogate pairs are never written
        text.encode()
        assert events == [decode_event(encode_event(event)) for event in events]
        meta, result = make_meta(ID, task=text, description=text), make_result(ID, final_text=text, duration_ms=number)
        assert meta == decode(msgspec.json.encode(meta), RunMeta)
        assert result == decode(msgspec.json.encode(result), RunResult)


@fuzzed
@given(
    contents=st.lists(
        documents({"type": "custom", "customType": "pi-subagents:bg-run", "data": {"runId": ID}}), max_size=5
    )
)
def test_session_files(place: Path, contents: list[bytes]) -> None:
    """Arbitrary lines in a session file are ignored."""
    project = paths.Project(str(place))
    path = Path(project.session_file("fuzz"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(contents) + b"\n")
    assert all(isinstance(run_id, str) for run_id in SessionFile(project, "fuzz").unreported())


SETTINGS = {
    "agents": {"a": {"command": ["x"]}}, "roles": {"fast": "a/b"}, "logs": {"stdout_mb": 5},
    "limits": {"timeout": "5m"}, "max_parallel": 3, "theme": "x", "retention": {"days": 3}, "keys": {"stop": "x"},
}  # fmt: skip
FRONTMATTER = {"name": "n", "description": "d", "timeout": "5m", "tools": ["read"], "max_turns": 4, "thinking": "high"}


@fuzzed
@given(content=documents(SETTINGS))
def test_settings(content: bytes) -> None:
    """A settings file is readable or raises an error, with its line if there is one."""
    try:
        entries = list(read_entries(parse_mapping(decode_text(content))))
    except ContentError as error:
        is_plain(one_line(error.advice))
    else:
        assert all(entry.line >= 1 for entry in entries)


@fuzzed
@given(content=documents(FRONTMATTER), body=st.binary(max_size=40))
def test_presets(place: Path, content: bytes, body: bytes) -> None:
    """A preset is read, or its problem is returned."""
    path = place / "preset.md"
    path.write_bytes(b"---\n" + content + b"\n---\n" + body)
    read = read_preset(str(path), PresetSource.PROJECT)
    assert read is not None
    if isinstance(read, Preset):
        assert read.limits.timeout is None or 0 < read.limits.timeout <= 365 * 24 * 3600
    else:
        is_plain(read.message)


TEXT = {"type": "text", "text": "t"}
PI_LINES: list[dict[str, Any]] = [
    {"type": "session", "id": "s"},
    {"type": "message_end", "message": {"role": "assistant", "content": [TEXT], "stopReason": "stop",
     "usage": {"input": 1, "output": 2, "cost": {"total": 0.5}}, "provider": "p", "model": "m"}},
    {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "d"}},
    {"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {"command": "ls"}},
    {"type": "tool_execution_end", "toolCallId": "c", "toolName": "bash", "isError": False, "durationMs": 3,
     "result": {"content": [{"type": "text", "text": "t"}], "structuredContent": {"exit_code": 1}}},
    {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 100, "errorMessage": "e"},
    {"type": "compaction_end", "willRetry": False, "result": {"usage": {"input": 1}}},
    {"type": "agent_end", "messages": [], "willRetry": False},
]  # fmt: skip


@fuzzed
@given(contents=st.lists(documents(*PI_LINES), max_size=6), cuts=st.lists(st.integers(0, 2000), max_size=6))
def test_the_stream_of_pi(place: Path, contents: list[bytes], cuts: list[int]) -> None:
    """However an agent's output is split, the same readable events result."""
    written = b"\n".join(contents)
    run_dir = place / "intake"
    run_dir.mkdir(exist_ok=True)
    read: list[list[Event]] = []
    for places in ((), sorted(cuts)):
        path = run_dir / paths.EVENTS
        path.unlink(missing_ok=True)
        records = Records(str(run_dir), str(run_dir / "active"), caps=LogCaps(), written=0, show=lambda _: None)
        stream = PiStream(clock=lambda: 0.0)
        intake = Intake(stream, records)
        ends = [*places, len(written)]
        for start, end in zip((0, *places), ends, strict=True):
            intake.stdout(written[start:end])
        intake.rest()
        records.close()
        tail = EventTail(str(path))
        read.append([msgspec.structs.replace(event, ts="") for event in tail.read()])
        assert 0 == tail.unreadable
        assert decide(stream.facts).reason
        assert msgspec.json.encode(stream.facts)
    assert read[0] == read[1]


@fuzzed
@given(header=documents(HEADER), contents=st.lists(documents(
    {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": [TEXT]}},
    {"type": "message", "id": "b", "parentId": "a", "message": {"role": "assistant", "content": [
        {"type": "toolCall", "name": "x", "arguments": {"a": 1}}, {"type": "thinking", "thinking": "t"}]}},
    {"type": "compaction", "id": "c", "parentId": "b", "summary": "s", "firstKeptEntryId": "a"},
    {"type": "context_edit", "id": "d", "parentId": "c", "entryId": "a", "content": "x"},
), max_size=6))  # fmt: skip
def test_session_files_of_pi(place: Path, header: bytes, contents: list[bytes]) -> None:
    """A parent's conversation is inherited where it is readable, or an error gives the reason."""
    path = place / "session.jsonl"
    path.write_bytes(b"\n".join([header, *contents]))
    with suppress(UsageError), open_history(str(path), 6) as conversation:
        assert isinstance(compact(conversation, Inheritance()).text, str)


@fuzzed
@given(content=documents(
    {"providers": {"p": {"models": [{"id": "m", "reasoning": True}]}}}, {"roles": {"fast": "a/b"}},
    {"key": {"command": "pi"}, "models": [{"provider": "p", "id": "m", "source": "pi"}]},
))  # fmt: skip
def test_model_catalogs(place: Path, content: bytes) -> None:
    """Lists of models and roles are read, or their problem is reported."""
    before = os.environ.get("PI_CODING_AGENT_DIR")
    os.environ["PI_CODING_AGENT_DIR"] = str(place)
    try:
        for name in ("models.json", "providers.json", "settings.json"):
            (place / name).write_bytes(content)
        listing = _models.models_json_listing()
        is_plain(one_line(listing.problem))
        with suppress(ModelError):
            assert all(isinstance(model, str) for model in provider_roles().values())
        cache = Path(_models.cache_file(("pi",)))
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_bytes(content)
        _models.last_listing_of(AgentChoice("pi", ("pi",), (), True))
    finally:
        os.environ.pop("PI_CODING_AGENT_DIR")
        if before is not None:
            os.environ["PI_CODING_AGENT_DIR"] = before


READERS: list[Callable[[object], object]] = [
    lambda params: subagent_arguments(params, isolated=True),
    lambda params: subagent_arguments(params, isolated=False),
    lambda params: background_arguments(params, isolated=True),
    status_arguments,
]


@fuzzed
@given(content=documents(
    {"preset": "scout", "task": "look", "model": "m", "cwd": ".", "isolated": True},
    {"tasks": [{"preset": "scout", "task": "look"}, {"preset": "x", "task": "y", "sessionId": "s"}]},
    {"runId": ID, "includeCompleted": True},
))  # fmt: skip
def test_arguments_of_a_parent(content: bytes) -> None:
    """A parent's arguments are accepted, or rejected with errors that can be returned to it."""
    try:
        params = decode(content)
    except UNDECODABLE as error:
        is_plain(why(error))
        return
    for read in READERS:
        try:
            read(params)
        except CallRejected as rejected:
            answer = rejection(rejected.errors)
            is_plain(answer.text)
            assert msgspec.json.encode(answer.structured)


@fuzzed
@given(content=documents({"last": {"p": {"copies": 3}}, "unsent": [{"preset": "p", "task": "t", "at": "x"}]}))
def test_what_the_app_remembers(content: bytes) -> None:
    """A state file is readable, or counts as empty."""
    with suppress(*UNDECODABLE):
        assert decode(content, LaunchMemory).draft_of("p") is not None


@fuzzed
@given(text=TEXTS | st.text(alphabet="0123456789:.smhd+-%/ ", max_size=30))
def test_what_an_operator_types(text: str) -> None:
    """A time or a filter is parsed, or its mistake is reported."""
    with suppress(SubdeckError):
        parse_time(text)
    parse_filter(text)


@fuzzed
@given(value=VALUES, text=TEXTS)
def test_what_is_shown(value: Any, text: str) -> None:
    """Cleaned text is plain, and cleaning it again changes nothing; every value can be shown."""
    for clean in (plain, one_line, lambda text: one_line(text, 10)):
        is_plain(clean(text))
        assert clean(text) == clean(clean(text))
    with suppress(*UNDECODABLE):
        is_plain(plain(encode_shown(decode(dumped(value)))))


def test_how_deep_it_goes() -> None:
    """The deepest readable nesting can still be shown from deep within a program."""

    def below(levels: int, call: Callable[[], Any]) -> Any:
        return below(levels - 1, call) if levels else call()

    for depth in range(100, 1100, 50):
        line = json.dumps({"type": "tool_call", "seq": 1, "toolCallId": "c", "toolName": "bash"})[:-1].encode()
        line += b',"args":{"a":' + b"[" * depth + b"]" * depth + b"}}"
        for text in below(300, lambda line=line: list(shown_by(line))):
            is_plain(text)
