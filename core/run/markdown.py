"""A whole run as one markdown document, piece by piece.

The agent's text stays markdown. Everything else is quoted, fenced or escaped, so that no tool output, task or file name
can become a heading, a link or the end of its block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from ..text.plain import one_line, plain
from .describe import clock, cost_words, moment, state, tokens_used, unreadable_lines, whereabouts
from .edits import diff_of, diff_text
from .events import (
    AssistantText,
    ErrorReported,
    Event,
    EventTail,
    Message,
    Notice,
    Request,
    RunEnded,
    RunStarted,
    SessionTold,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UsageReported,
)
from .model import NoticeLevel, RunResult
from .progress import ProgressFormatter, arguments_text, tool_word
from .requests import request_line, request_text
from .snapshot import RunSnapshot

TITLE_LENGTH = 100
"""Characters of the task in the heading."""

PIECE = 1024 * 1024
"""Bytes of events read at once."""

_MARKS = re.compile(r"[\\`*_{}\[\]<>#|~&$]")
_TICKS = re.compile(r"`{3,}")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def run_markdown(run: RunSnapshot, tail: EventTail, result: RunResult | None) -> Iterator[str]:
    """Yield the document's pieces in order: facts, task, then everything written so far.

    `result` has the whole error; the snapshot has only one line of it.
    """
    yield f"# {escaped(one_line(f'{run.meta.title} {run.meta.short_id}: {run.meta.task}', TITLE_LENGTH))}\n\n"
    yield "\n".join(f"- {name}: {escaped(one_line(value))}" for name, value in _facts(run, result) if value) + "\n\n"
    yield f"## Task\n\n{fenced(run.meta.task)}\n\n## Transcript\n\n"
    formatter = ProgressFormatter()
    before = -1
    while tail.offset != before:
        before = tail.offset
        for event in tail.read(PIECE):
            if text := _event_text(event, formatter):
                yield f"{text}\n\n"
    if not run.has_ended:
        yield f"*The run was {run.status} when this was written.*\n"
    if unreadable := unreadable_lines(tail.unreadable):
        yield f"*{unreadable}.*\n"


def escaped(text: str) -> str:
    """Escape one plain line for markdown."""
    return _MARKS.sub(r"\\\g<0>", text)


def fenced(text: str, language: str = "text") -> str:
    """Put text into a fence that is longer than any fence in it."""
    shown = plain(text).strip("\n")
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in plain(text).strip("\n").split("\n"))


def closed(text: str) -> str:
    """Close a fence that a text leaves open, so that it does not enclose the text after it."""
    fence = ""
    for line in text.split("\n"):
        if not (match := _FENCE.match(line)):
            continue
        ticks, info = match.groups()
        if not fence:
            fence = "" if ticks[0] == "`" and "`" in info else ticks
        elif ticks.startswith(fence) and not info.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _facts(run: RunSnapshot, result: RunResult | None) -> Iterator[tuple[str, str]]:
    meta = run.meta
    usage = result.usage if result else run.usage
    end = run.end
    yield "run", meta.run_id
    yield "preset", f"{meta.preset} ({meta.preset_source})" if meta.preset else "none (one-off)"
    yield "model", (result and result.resolved_model) or meta.resolved_model
    yield "agent", f"{meta.agent}, runner {meta.runner}"
    yield "where", meta.cwd
    yield "host", whereabouts(run)
    if meta.worktree:
        yield "worktree of", meta.worktree.origin
    yield "branch", one_line(run.branch, 100)
    yield "status", f"{state(run)}, {end.reason}" if end else state(run)
    yield "error", (result and result.error_message) or ""
    yield "launched", meta.created_at
    yield "started", run.started_at or ""
    yield "ended", end.ended_at if end else ""
    yield "took", clock(end.duration_ms / 1000) if end and end.duration_ms is not None else ""
    yield (
        "tokens",
        f"{tokens_used(usage)} (input {usage.input}, output {usage.output}, cache read {usage.cache_read}, "
        f"cache write {usage.cache_write}), {usage.turns} turns, {usage.tool_uses} tool calls",
    )
    yield "cost", cost_words(usage)


def _event_text(event: Event, formatter: ProgressFormatter) -> str:
    """Describe one event; empty for one that a reader does not miss."""
    match event:
        case AssistantText():
            return closed(formatter.text(event) or "")
        case Thinking(text=text):
            return quoted(text) if plain(text).strip() else ""
        case ToolCall():
            diff = diff_text(diff_of(event))
            shown = fenced(diff, "diff") if diff else fenced(arguments_text(event))
            return f"{_line(event, formatter)}\n\n{shown}"
        case ToolResult():
            cut = "\n[the rest was not saved]" if event.truncated else ""
            return f"{_line(event, formatter)}\n\n{fenced((plain(event.content).strip() or '(no output)') + cut)}"
        case Message() if event.text:
            state = _line(replace(event, text=""), formatter)
            return f"{state} {escaped(one_line(event.by, 60))}:\n\n{quoted(event.text)}"
        case Request():
            return f"{_time(event.ts)}**?** {escaped(request_line(event))}\n\n{fenced(request_text(event))}"
        case RunStarted():
            tries = f", attempt {event.attempt} of {event.max_attempts}" if event.max_attempts > 1 else ""
            return f"{_time(event.ts)}*started{tries}*"
        case SessionTold() | UsageReported() | UnknownEvent():
            return ""
        case _:
            return _line(event, formatter)


def _line(event: Event, formatter: ProgressFormatter) -> str:
    text = escaped(one_line(formatter.text(event) or ""))
    match event:
        case ToolCall(tool_name=name):
            return f"{_time(event.ts)}**{escaped(tool_word(name))}** {text}"
        case ToolResult(exit_code=code, duration_ms=took):
            facts = (f"exit code {code}" if code is not None else "", f"{took} ms" if took is not None else "")
            line = " · ".join(filter(None, (text, *facts)))
            return f"{_time(event.ts)}{'**✗** ' if event.is_error else ''}{line}"
        case ErrorReported():
            return f"{_time(event.ts)}**✗ {text}**"
        case Notice(level=NoticeLevel.WARNING):
            return f"{_time(event.ts)}**!** {text}"
        case RunEnded():
            return f"{_time(event.ts)}**{text}**"
        case _:
            return f"{_time(event.ts)}*{text}*" if text else ""


def _time(iso: str) -> str:
    """Return the time of day in the reader's time zone."""
    when = moment(iso)
    return f"`{when.astimezone():%H:%M:%S}` " if when else ""


# --- code blocks of an answer ----------------------------------------------------------------------------------------

_BLOCK_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^\n]*)")


class CodeBlock(NamedTuple):
    language: str
    """The first word after the fence; empty without one."""
    text: str
    """Its lines, each with its newline."""


def code_blocks(answer: str) -> tuple[CodeBlock, ...]:
    """Return the blocks in order; an unclosed one extends to the end."""
    blocks: list[CodeBlock] = []
    lines: list[str] | None = None
    fence = language = indent = ""
    for line in answer.replace("\r\n", "\n").split("\n"):
        match = _BLOCK_FENCE.fullmatch(line)
        if lines is None:
            if match and not (match[2][0] == "`" and "`" in match[3]):
                lines, (indent, fence, info) = [], match.groups()
                language = next(iter(info.split()), "")
        elif match and match[2].startswith(fence) and not match[3].strip():
            blocks.append(CodeBlock(language, "".join(lines)))
            lines = None
        else:
            taken = len(line) - len(line.lstrip(" "))
            lines.append(line[min(len(indent), taken) :] + "\n")
    if lines is not None:
        blocks.append(CodeBlock(language, "".join(lines)))
    return tuple(blocks)
