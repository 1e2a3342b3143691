"""How `codex exec` is started, where the app-server of a program cannot be used, and what reads it."""

from __future__ import annotations

import os
from typing import Any, cast

import msgspec

from ...run.model import PromptMode, RunMeta
from ..child import Command, Start, child_environment, existing, prompt_of
from .exec_stream import ExecStream
from .own_settings import OwnSettings
from .permissions import permissions_of, servers_config
from .program import home
from .rollout import conversation_of, tokens_before
from .talk import EFFORTS, own_name, settings_of, system_prompt


def exec_stream(start: Start) -> ExecStream:
    """Return what reads it, and says the preset's words and the task to it where the prompt file is not enough."""
    prompt = f"{system_prompt(start)}\n\n{prompt_of(start)}".encode() if _has_words_before_task(start.meta) else b""
    return ExecStream(earlier=tokens_before(start.session_id), prompt=prompt, find=conversation_of)


def exec_command(start: Start) -> Command:
    """Return argv of `codex exec`, which reads the task from stdin.

    Of prompt text nothing stands in it: what is to be appended to Codex's own words comes before the task.
    """
    meta = start.meta
    words = ["exec", "--json", "--skip-git-repo-check", *set_up(start)]
    words += [] if meta.keeps_session else ["--ephemeral"]
    words += ["resume", start.session_id] if start.session_id else []
    return Command((*meta.agent_command, *words, "-"), child_environment(meta), pipe=_has_words_before_task(meta))


def set_up(start: Start) -> list[str]:
    """Return the words by which a program of Codex gets the run's sandbox, model and settings."""
    meta = start.meta
    permissions = permissions_of(meta.tools)
    own = OwnSettings.of_files(home(), meta.cwd)
    config: dict[str, Any] = settings_of(meta, own)
    if meta.thinking:
        config["model_reasoning_effort"] = EFFORTS.get(meta.thinking, meta.thinking)
    if meta.system_prompt_path:
        path = existing(os.path.join(start.run_dir, meta.system_prompt_path), "start the run again")
        if meta.prompt_mode == PromptMode.REPLACE:
            config["model_instructions_file"] = path
    config |= servers_config(meta.tools, own.servers, child_environment(meta))
    words = ["-s", permissions.sandbox] if permissions.sandbox else []
    words += ["-m", own_name(meta.resolved_model)] if meta.resolved_model else []
    for name, value in config.items():
        words += ["-c", f"{name}={_toml(value)}"]
    return words


def _has_words_before_task(meta: RunMeta) -> bool:
    return bool(meta.system_prompt_path) and meta.prompt_mode != PromptMode.REPLACE


def _toml(value: object) -> str:
    """Write a value as TOML, of which the strings of JSON are a part."""
    if isinstance(value, dict):
        pairs = (f"{_toml(name)} = {_toml(item)}" for name, item in cast("dict[str, object]", value).items())
        return f"{{{', '.join(pairs)}}}"
    return msgspec.json.encode(value).decode("utf-8", "replace")
