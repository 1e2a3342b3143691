"""What a run was asked for, so that it can be asked for again; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.finalization import FINALIZE_TOOL, INSTRUCTION
from ...core.run.model import PresetSource, RunRequest
from ...core.text.plain import one_line
from .values import NO_TOOLS

if TYPE_CHECKING:
    from ...core.run.model import RunMeta, RunSnapshot


def request_again(run: RunSnapshot) -> RunRequest:
    """Ask for the same as a run did; the prompt of an ad hoc run is not in its snapshot."""
    meta = run.meta
    adhoc = meta.preset_source is PresetSource.ADHOC
    return RunRequest(
        task=meta.task,
        preset=None if adhoc else meta.preset,
        model=asked_model(meta) or None,
        cwd=meta.cwd,
        agent=meta.agent,
        runner=meta.runner,
        description=meta.description,
        tools=meta.tools.resolved if adhoc else None,
        rerun=meta.run_id,
    )


def asked_model(meta: RunMeta) -> str:
    """Answer the model as it was asked for; "" where the agent or a parent decided."""
    from ...core.launch.model import INHERIT

    return "" if meta.requested_model == INHERIT else one_line(meta.requested_model)


def asked_tools(meta: RunMeta) -> str:
    """Answer the tools that a run was given, as the field of an ad hoc run has them."""
    if meta.tools.resolved is None:
        return ""
    return " ".join(tool for tool in meta.tools.resolved if tool != FINALIZE_TOOL) or NO_TOOLS


def asked_prompt(prompt: str, meta: RunMeta) -> str:
    """Take the line about handing over a result from a system prompt: a run without a preset hands over none."""
    return prompt.removesuffix(INSTRUCTION).rstrip("\n") if meta.finalize else prompt
