"""`subdeck logs --answer`: a run's answer, or a code block of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine import Engine
from ..errors import UsageError
from ..run.markdown import CodeBlock, code_blocks
from ..run.model import RunReason, RunResult, RunStatus
from ._command import Document
from .output import Note, Output, Piece, Verbatim

NO_ANSWER = 1
"""The exit code of a run without an answer."""


class Code(Document, frozen=True):
    """A code block of an answer."""

    language: str
    """The word behind the fence; empty without one."""
    text: str
    """Its lines, each with its newline."""


class Answer(Document, frozen=True):
    """A run's answer."""

    run_id: str
    status: RunStatus | None
    """Null until the run has ended."""
    reason: RunReason | None
    """Why it ended."""
    answer: str | None
    """The agent's text, unchanged. Null without one."""
    partial: bool
    """Whether the run ended while the agent was writing the answer."""
    error: str | None
    """Error message of a failed run."""
    code: tuple[Code, ...]
    """Code blocks of the answer, in order."""


def answer(engine: Engine, run_id: str, number: int | None) -> Output[Answer]:
    """Return a run's answer, or its code block of this number, from 1."""
    result = engine.result(run_id)
    text = (result and result.final_text) or ""
    blocks = code_blocks(text)
    if number is not None and text.strip():
        blocks = (_chosen(blocks, number),)
    document = Answer(
        run_id=run_id,
        status=result.status if result else None,
        reason=result.reason if result else None,
        answer=text or None,
        partial=result.partial if result else False,
        error=result.error_message if result else None,
        code=tuple(Code(*block) for block in blocks),
    )
    shown = text if number is None or not text.strip() else blocks[0].text
    return Output(document, _text(run_id[-6:], result, shown), 0 if text.strip() else NO_ANSWER)


def _text(name: str, result: RunResult | None, shown: str) -> Iterator[Piece]:
    if result is None:
        yield Note(f"run {name} has no answer yet; wait for it with subdeck wait {name}")
    elif not (result.final_text or "").strip():
        yield Note(f"run {name} ended without an answer ({result.status}: {result.reason})")
    else:
        yield Verbatim(shown)
        if result.partial:
            yield Note("the answer is incomplete: the run ended while the agent was writing it")


def _chosen(blocks: tuple[CodeBlock, ...], number: int) -> CodeBlock:
    if number <= len(blocks):
        return blocks[number - 1]
    count = f"{len(blocks)} code block{'' if len(blocks) == 1 else 's'}" if blocks else "no code block"
    raise UsageError(f"the answer has {count}", where="--code", hint="print the whole answer without --code")
