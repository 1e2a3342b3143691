"""Start pi, or an agent that takes its flags, as a child: all that the wrapper needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
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


def default_provider(cwd: str) -> str | None:
    """Return the one in pi's settings, those of the directory before the user's; None where none is set."""
    for path in (os.path.join(cwd, ".pi", "settings.json"), os.path.join(paths.agent_dir(), "settings.json")):
        try:
            with open(path, "rb") as file:
                provider = msgspec.json.decode(file.read(), type=_Settings).default_provider
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(provider, str) and provider:
            return provider
    return None


COPILOT_PROVIDER = "github-copilot"
COPILOT_INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
_EXTENSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension")
COPILOT_EXTENSION = os.path.join(_EXTENSIONS, "copilot.ts")
FINALIZE_EXTENSION = os.path.join(_EXTENSIONS, "finalize.ts")


class PiProgram:
    """pi in its JSON mode; the task comes by stdin, because pi reads a leading `-` or `@` in argv as something else."""

    def command(self, meta: RunMeta, run_dir: str, attempt: int) -> Command:
        """Return argv and environment of one attempt; raises LaunchError when a file that pi needs is missing."""
        command = json_mode_command(meta.agent_command, meta, run_dir)
        if not _is_copilot(meta):
            return command
        extension = ("-e", _existing(COPILOT_EXTENSION, "install subdeck again"))
        return Command((*command.argv, *extension), {**command.env, COPILOT_INITIATOR: "agent"})

    def stream(self) -> PiStream:
        return PiStream()


def json_mode_command(program: Sequence[str], meta: RunMeta, run_dir: str) -> Command:
    """Return how any agent that speaks pi's JSON mode is started; raises LaunchError as `PiProgram.command` does."""
    return Command(
        argv=(*program, *_flags(meta, run_dir)),
        env={"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": meta.run_id},
        unset=(COPILOT_INITIATOR,),
    )


def _is_copilot(meta: RunMeta) -> bool:
    """Whether the effective model is one of GitHub Copilot; pi does not mind the case of a provider."""
    reference = meta.resolved_model or f"{default_provider(meta.cwd)}/"
    provider, slash, _ = reference.partition("/")
    return bool(slash) and provider.lower() == COPILOT_PROVIDER


def _flags(meta: RunMeta, run_dir: str) -> tuple[str, ...]:
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
    """Whether pi reads AGENTS.md and CLAUDE.md; not with a replaced system prompt, unless the preset asks for it."""
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
