"""`subdeck answer`: print what a run answered, or a code block of it."""

from __future__ import annotations

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.markdown import CodeBlock, code_blocks
from ._options import Whole, json_option, run_argument
from .output import document, note, pass_on

NO_ANSWER = 1
"""The exit code where there is none."""


@click.command("answer")
@run_argument
@click.option("--code", "number", metavar="N", type=Whole(min=1), help="Print only the N-th code block.")
@json_option
def answer(ref: str, number: int | None, as_json: bool) -> int:
    """Print a run's answer exactly as the agent wrote it.

    The exit code is 1 if there is no answer: the run is still running, or it finished without one. With --json, print
    one document: {"runId", "status", "reason", "answer", "partial", "error", "code": [{"language", "text"}]}.
    """
    engine = Engine.open()
    run_id = engine.find((ref,))[0]
    result = engine.result(run_id)
    text = (result and result.final_text) or ""
    blocks = code_blocks(text)
    if number is not None and text.strip():
        blocks = (_chosen(blocks, number),)
    if as_json:
        document(
            {
                "runId": run_id,
                "status": result.status if result else None,
                "reason": result.reason if result else None,
                "answer": text or None,
                "partial": result.partial if result else False,
                "error": result.error_message if result else None,
                "code": [block._asdict() for block in blocks],
            }
        )
    elif result is None:
        note(f"run {run_id[-6:]} has no answer yet; wait for it with subdeck wait {run_id[-6:]}")
    elif not text.strip():
        note(f"run {run_id[-6:]} ended without an answer ({result.status}: {result.reason})")
    else:
        pass_on(text if number is None else blocks[0].text)
        if result.partial:
            note("the answer is incomplete: the run ended while the agent was writing it")
    return 0 if text.strip() else NO_ANSWER


def _chosen(blocks: tuple[CodeBlock, ...], number: int) -> CodeBlock:
    if number <= len(blocks):
        return blocks[number - 1]
    count = f"{len(blocks)} code block{'' if len(blocks) == 1 else 's'}" if blocks else "no code block"
    raise UsageError(f"the answer has {count}", where="--code", hint="print the whole answer without --code")
