"""`subdeck send`, `requests` and `reply`: send messages to agents, and answer their requests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import click

from ..engine import Engine
from ..errors import UnknownRun, UsageError
from ..project.talk import Sent, open_request
from ..run.describe import clock, moment
from ..run.documents import RequestDocument, request_document
from ..run.events import Request
from ..run.model import MOST_SECONDS, RequestKind, Verdict
from ..run.requests import place_in_worktree, request_hash, request_line, request_text
from ..run.snapshot import RunSnapshot
from ..text.column import Column
from ..text.plain import one_line
from ..text.visible import visible_name
from ._command import Document, command, is_json, merged
from ._messages import Messages, send_each
from ._options import Number, timeout_option
from ._requests import how_to_reply, reply_command
from ._stdio import read_stdin
from ._table import GAP, table
from .output import (
    Output,
    Piece,
    as_typed,
    is_terminal,
    say,
    terminal_width,
)

REPLY_TIMEOUT = 10.0
"""Seconds to wait for the effect of a reply; a wrapper takes some milliseconds."""

AROUND = (Column(6), Column(8), Column(20, least=8), Column(9, right=True))
REQUEST = Column(160, least=20)
"""The column between them, as wide as possible; a shortened request ends with the number of missing characters."""

ALLOW, DENY = "allow", "deny"


@command(
    "send",
    'subdeck send 4ae0bd "Also update the tests"',
    "subdeck send 4ae0bd 81c2f7 - < notes.md",
)
@click.argument("words", metavar="RUN... TEXT", nargs=-1)
@click.option("--wait", is_flag=True, help="Wait until each message is delivered, refused or too late.")
@timeout_option
def send(words: tuple[str, ...], wait: bool, timeout: float | None) -> Output[Messages]:
    """Send a message to running agents; TEXT "-" reads stdin. A queued run adds the message to its prompt.

    The agent reads the message as soon as it can, even in the middle of a turn. A message counts as delivered only when
    the agent's own output shows it. With --wait the exit code is 0 if all were delivered, 1 if one was refused, 3 if
    one came too late, 124 if --timeout ran out first. 2 always means that nothing was sent.
    """
    if len(words) < 2:
        what = "RUN and TEXT are missing" if not words else "RUN or TEXT is missing"
        raise UsageError(what, where="send", hint='use subdeck send RUN "your message"')
    *refs, text = words
    engine = Engine.open()
    try:
        run_ids = engine.find(refs)
    except UnknownRun as error:
        hint = f"{error.hint}; put a message of several words in quotes" if len(refs) > 1 else error.hint
        raise UnknownRun(error.what, where=error.where, hint=hint, code=error.code) from None
    text = read_stdin("message") if text == "-" else text
    return send_each(engine, run_ids, lambda run_id: engine.send(run_id, text), wait, timeout)


class RequestedBy(Document, frozen=True):
    """The run of a request."""

    run_id: str
    preset: str
    description: str


class Requests(Document, frozen=True):
    """The pending requests, the oldest first."""

    requests: tuple[Annotated[dict[str, Any], RequestedBy, RequestDocument], ...]


@command(
    "requests",
    "subdeck requests",
    "subdeck requests 4ae0bd # in full, with the command that answers it",
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
def requests(refs: tuple[str, ...]) -> Output[Requests]:
    """List pending permission requests and questions, oldest first. For named runs, show each one in full.

    With --json, print one document: {"requests": [{"runId", "id", "hash", "kind", "title", "command", "display", …}]}.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    waiting = [run for run in engine.requests() if not refs or run.run_id in run_ids]
    asked = sorted(((run, request) for run in waiting for request in run.requests), key=lambda pair: pair[1].ts)
    rows = (
        merged(
            RequestedBy(run.run_id, run.meta.preset, run.meta.description),
            request_document(request, run.run_id, run.meta.cwd),
        )
        for run, request in asked
    )
    return Output(lambda: Requests(tuple(rows)), _requests_text(asked, are_named=bool(refs)))


def _requests_text(asked: Sequence[tuple[RunSnapshot, Request]], *, are_named: bool) -> Iterator[Piece]:
    if not asked:
        yield "No pending requests." if not are_named else "These runs have no pending requests."
    elif are_named:
        yield "\n\n".join(_block(run, request) for run, request in asked)
    else:
        around = [(run.meta.short_id, request.id, run.meta.title, _waits(request)) for run, request in asked]
        taken = sum(min(column.most, max(len(cells[at]) for cells in around)) for at, column in enumerate(AROUND))
        room = min(REQUEST.most, max(REQUEST.least, terminal_width() - taken - len(GAP) * len(AROUND)))
        lines = [request_line(request, room, run.meta.cwd) for run, request in asked]
        rows = [(*cells[:3], line, cells[3]) for cells, line in zip(around, lines, strict=True)]
        yield table((*AROUND[:3], REQUEST, AROUND[3]), rows, terminal_width(), lines)
        yield (
            as_typed(
                "\nsubdeck requests RUN shows the whole request; answer with subdeck reply RUN allow, deny or TEXT"
            )
        )


@command(
    "reply",
    "subdeck reply 4ae0bd allow",
    'subdeck reply 4ae0bd deny --word "use the staging branch"',
    'subdeck reply 4ae0bd q2 "src/auth.py"',
)
@click.argument("words", metavar="RUN [REQUEST] allow|deny|TEXT", nargs=-1)
@click.option(
    "--run", "for_run", is_flag=True, help="With allow: also allow similar requests for the rest of this run."
)
@click.option("--request", "asked", metavar="REQUEST", default="", help="Reply to this request (q1, q2, …).")
@click.option("--hash", "read", metavar="HASH", default="", help="Refuse the reply if the request's hash differs.")
@click.option("--word", metavar="TEXT", default="", help="With deny: the reason to give the agent.")
@click.option(
    "--timeout", metavar="S", type=Number(MOST_SECONDS), default=REPLY_TIMEOUT, help="Stop waiting after S seconds."
)
def reply(words: tuple[str, ...], for_run: bool, asked: str, read: str, word: str, timeout: float) -> Output[Messages]:
    """Answer a permission request or question, and report whether the reply counted.

    You can omit REQUEST (q1, q2, …) if the run has only one pending request. Before allow, or the number of a choice,
    the request is then shown for confirmation. Without a terminal the reply is refused, and the exact command is
    printed.

    subdeck requests RUN prints that command: its --hash binds the reply to the request that you have read.

    Answer a permission request with allow or deny. Answer any other question with a text ("-" reads stdin), a choice
    also with its number, a form with a JSON object or lines of NAME: VALUE. deny declines to answer.
    If several people answer, the first reply counts. The exit code is 1 if the reply was refused, 3 if it came too
    late, 124 if the run did not react in time.
    """
    ref, request_id, answer = _reply_words(words)
    if asked and request_id:
        raise UsageError("REQUEST is given twice", where="--request", hint="use only one of them")
    request_id = request_id or asked
    engine = Engine.open()
    (run_id,) = engine.find((ref,))
    (run,) = engine.snapshots((run_id,)) or (None,)
    request = open_request(run, request_id) if run is not None and run.requests else None
    verdict, text = _verdict(request, answer, for_run=for_run, word=word)
    if run and request and not request_id and _needs_request(request, answer):
        _confirm(run, request, answer, for_run=for_run)
    if request and not read:
        read = request_hash(run_id, request)
    name = f"{run_id[-6:]} {request.id if request else request_id}".rstrip()

    def replied(run_id: str) -> Sent:
        return engine.reply(run_id, request.id if request else request_id, verdict, text, read)

    return send_each(engine, (run_id,), replied, True, timeout, done=f"{name} {_DONE[verdict]}")


_DONE = {
    Verdict.ALLOW: "allowed",
    Verdict.ALLOW_RUN: "allowed for the rest of this run",
    Verdict.DENY: "denied",
    Verdict.REPLY: "answered",
}


def _reply_words(words: Sequence[str]) -> tuple[str, str, str]:
    match words:
        case [ref, text]:
            return ref, "", text
        case [ref, request_id, text]:
            return ref, request_id, text
        case [] | [_]:
            hint = "use subdeck reply RUN allow, deny, or the answer in quotes"
            raise UsageError("RUN or the reply is missing", where="reply", hint=hint)
        case _:
            raise UsageError(
                f"{len(words)} arguments given, expected RUN, REQUEST and one reply",
                where=f'"{one_line(words[-1], 60)}"',
                hint="put the reply in quotes",
            )


def _verdict(request: Request | None, answer: str, *, for_run: bool, word: str) -> tuple[Verdict, str]:
    """Return what is meant, and the text that goes with it. Raises UsageError."""
    is_for_leave = request is None or request.kind is RequestKind.PERMISSION
    is_allowed = answer == ALLOW and is_for_leave
    if for_run and not is_allowed:
        raise UsageError("--run requires allow", where="--run", hint="remove it")
    if word and answer != DENY:
        raise UsageError("--word requires deny", where="--word", hint="give the answer as the reply itself")
    if is_allowed:
        return (Verdict.ALLOW_RUN if for_run else Verdict.ALLOW), ""
    if answer == DENY:
        return Verdict.DENY, word
    return Verdict.REPLY, read_stdin("reply") if answer == "-" else answer


def _needs_request(request: Request, answer: str) -> bool:
    """Whether a reply means nothing without the request that it answers: leave, or the number of a choice."""
    return (answer == ALLOW and request.kind is RequestKind.PERMISSION) or (
        bool(request.choices) and answer not in request.choices and answer.strip().isdecimal()
    )


def _confirm(run: RunSnapshot, request: Request, answer: str, *, for_run: bool) -> None:
    """Show a request and ask whether the reply is for it. Raises UsageError without a terminal."""
    if is_json() or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        words = f"{'--run ' if for_run else ''}{answer.strip()}"
        raise UsageError(
            "the reply does not name its request",
            where=f"{run.meta.short_id} {request.id}",
            hint=f"read it with subdeck requests {run.meta.short_id}, then run {reply_command(run, request)} {words}",
        )
    say(_block(run, request))
    question = "Allow it in this run?" if for_run else "Allow it?" if answer == ALLOW else f"Reply {answer.strip()}?"
    if not click.confirm(question, default=False):
        raise UsageError("not confirmed: nothing was sent", where=f"{run.meta.short_id} {request.id}")


def _block(run: RunSnapshot, request: Request) -> str:
    head = f"{run.meta.short_id} {request.id}  {one_line(run.meta.title, 80)}, {_waits(request)}"
    directory = place_in_worktree(request, run.meta.cwd) or visible_name(run.meta.cwd)
    cwd = "" if request.cwd or not (request.command or request.paths) else f"\n  in {directory}"
    return f"{head}\n{request_text(request, run.meta.cwd)}{cwd}\n{how_to_reply(run, request)}{_denied(run, request)}"


def _denied(run: RunSnapshot, request: Request) -> str:
    """Return the time until an unanswered request is denied; empty if it never is."""
    since, timeout = moment(request.ts), run.meta.answer_timeout
    if since is None or timeout is None:
        return ""
    seconds_left = timeout - (datetime.now(UTC) - since).total_seconds()
    return f"; denied in {clock(seconds_left)} without an answer"


def _waits(request: Request) -> str:
    since = moment(request.ts)
    return clock((datetime.now(UTC) - since).total_seconds()) if since else ""
