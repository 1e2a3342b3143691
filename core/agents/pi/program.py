"""Start pi as a child: the light half, all that the wrapper needs."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec import Struct

from ... import paths
from ...errors import LaunchError
from ...run.model import PromptMode, RunMeta
from ..base import Command
from .stream import PiStream


class _Settings(Struct, rename="camel"):
    default_provider: Any = None


def default_provider(cwd: str) -> str:
    """Read it from pi's settings, those of the directory before the user's; "" where none is set."""
    for path in (os.path.join(cwd, ".pi", "settings.json"), os.path.join(paths.agent_dir(), "settings.json")):
        try:
            with open(path, "rb") as file:
                provider = msgspec.json.decode(file.read(), type=_Settings).default_provider
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(provider, str) and provider:
            return provider
    return ""


COPILOT_PROVIDER = "github-copilot"
COPILOT_INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
_EXTENSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension")
COPILOT_EXTENSION = os.path.join(_EXTENSIONS, "copilot.ts")
FINALIZE_EXTENSION = os.path.join(_EXTENSIONS, "finalize.ts")


class PiProgram:
    """pi in its JSON mode; the task comes by stdin, because pi reads a leading `-` or `@` in argv as something else."""

    name = "pi"

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command:
        """Return argv and environment of one attempt; raises LaunchError when a file that pi needs is missing."""
        copilot = _is_copilot(meta)
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


def _is_copilot(meta: RunMeta) -> bool:
    """Whether the effective model is one of GitHub Copilot; pi does not mind the case of a provider."""
    model = meta.resolved_model
    provider = model.partition("/")[0] if "/" in model else "" if model else default_provider(meta.cwd)
    return provider.lower() == COPILOT_PROVIDER


def pi_flags(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    """Return the flags that every agent speaking pi's JSON mode takes; raises LaunchError as `command` does."""
    return (
        *("--mode", "json"),
        *(("--model", meta.resolved_model) if meta.resolved_model else ()),
        *(("--session", os.path.join(run_dir, meta.session_path)) if meta.session_path else ("--no-session",)),
        *(("--thinking", meta.thinking) if meta.thinking else ()),
        *_tools(meta.tools.resolved),
        *_system_prompt(meta, run_dir),
        *(() if reads_context_files(meta) else ("-nc",)),
        *(("-e", _existing(FINALIZE_EXTENSION, "install subdeck again")) if meta.finalize else ()),
    )


def reads_context_files(meta: RunMeta) -> bool:
    """Whether pi reads AGENTS.md and CLAUDE.md; a replaced system prompt leaves them out, unless they are wished."""
    if meta.context_files is not None:
        return meta.context_files
    return not (meta.prompt_mode == PromptMode.REPLACE and meta.system_prompt_path)


def _tools(resolved: tuple[str, ...] | None) -> tuple[str, ...]:
    if resolved is None:
        return ()
    return ("--tools", ",".join(resolved)) if resolved else ("--no-tools",)


def _system_prompt(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
    if not meta.system_prompt_path:
        return ()
    path = _existing(os.path.join(run_dir, meta.system_prompt_path), "start the run again")
    return ("--system-prompt" if meta.prompt_mode == PromptMode.REPLACE else "--append-system-prompt", path)


def _existing(path: str, hint: str) -> str:
    """pi takes the path of a file that is not there for the prompt itself, and says nothing."""
    if not os.path.isfile(path):
        raise LaunchError("a file that pi has to read is missing", where=path, hint=hint)
    return path
