"""Start pi as a child: the light half, all that the wrapper needs."""

from __future__ import annotations

import os

from ..errors import LaunchError
from ..runs import RunMeta
from .base import Command
from .pi_stream import PiStream

COPILOT_PROVIDER = "github-copilot"
COPILOT_INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
COPILOT_EXTENSION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pi_extension", "copilot.ts")


class PiProgram:
    """pi in its JSON mode; the task comes by stdin, because pi reads a leading `-` or `@` in argv as something else."""

    name = "pi"

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command:
        """Answer argv and environment of one attempt; raises LaunchError when a file that pi needs is missing."""
        copilot = meta.resolved_model.startswith(f"{COPILOT_PROVIDER}/")
        argv = (
            *meta.agent_command,
            *pi_flags(meta, run_dir),
            *(("-e", _existing(COPILOT_EXTENSION, "install subdeck again")) if copilot else ()),
        )
        env = {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": meta.run_id}
        if copilot:
            return Command(argv=argv, env={**env, COPILOT_INITIATOR: "agent"})
        return Command(argv=argv, env=env, unset=(COPILOT_INITIATOR,))

    def stream(self) -> PiStream:
        return PiStream()


def pi_flags(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    """Answer the flags that every agent speaking pi's JSON mode takes; raises LaunchError as `command` does."""
    return (
        *("--mode", "json"),
        *(("--model", meta.resolved_model) if meta.resolved_model else ()),
        *(("--session", os.path.join(run_dir, meta.session_path)) if meta.session_path else ("--no-session",)),
        *(("--thinking", meta.thinking) if meta.thinking else ()),
        *_tools(meta.tools.resolved),
        *_system_prompt(meta, run_dir),
    )


def _tools(resolved: tuple[str, ...] | None) -> tuple[str, ...]:
    if resolved is None:
        return ()
    return ("--tools", ",".join(resolved)) if resolved else ("--no-tools",)


def _system_prompt(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    """A replaced system prompt leaves out pi's context files (AGENTS.md, CLAUDE.md) too."""
    if not meta.system_prompt_path:
        return ()
    path = _existing(os.path.join(run_dir, meta.system_prompt_path), "start the run again")
    return ("--system-prompt", path, "-nc") if meta.prompt_mode == "replace" else ("--append-system-prompt", path)


def _existing(path: str, hint: str) -> str:
    """pi takes the path of a file that is not there for the prompt itself, and says nothing."""
    if not os.path.isfile(path):
        raise LaunchError("a file that pi has to read is missing", where=path, hint=hint)
    return path
