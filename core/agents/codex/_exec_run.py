"""Start `codex exec`, for programs whose app-server is unusable, and read its stream."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from ...run.environment import child_environment
from ...run.events import Event, Retry
from ...run.model import PromptMode, RunMeta
from .._json_lines import decode, mapping, string
from ..child import Command, Start, existing, prompt_of
from ._items import Tokens, as_in_app_server, fault_words, reconnecting
from ._program import home
from ._rollout import conversation_of, tokens_before
from ._stream import CodexStream
from ._talk import EFFORTS, own_name, settings_of, system_prompt
from .permissions import OwnSettings, permissions_of, servers_config


def exec_stream(start: Start) -> ExecStream:
    """Return the reader; it writes the preset's prompt and the task to stdin if the prompt file is not enough."""
    prompt = f"{system_prompt(start)}\n\n{prompt_of(start)}".encode() if _has_words_before_task(start.meta) else b""
    return ExecStream(earlier=tokens_before(start.session_id), prompt=prompt, find=conversation_of)


def exec_command(start: Start) -> Command:
    """Return argv of `codex exec`, which reads the task from stdin.

    It contains no prompt text: an appended system prompt is put before the task.
    """
    meta = start.meta
    words = ["exec", "--json", "--skip-git-repo-check", *set_up(start)]
    words += [] if meta.keeps_session else ["--ephemeral"]
    words += ["resume", start.session_id] if start.session_id else []
    return Command((*meta.agent_command, *words, "-"), child_environment(meta), pipe=_has_words_before_task(meta))


def set_up(start: Start) -> list[str]:
    """Return the flags that set the run's sandbox, model and settings."""
    meta = start.meta
    permissions = permissions_of(meta.tools)
    own_settings = OwnSettings.of_files(home(), meta.cwd)
    config: dict[str, Any] = settings_of(meta, own_settings)
    if meta.thinking:
        config["model_reasoning_effort"] = EFFORTS.get(meta.thinking, meta.thinking)
    if meta.system_prompt_path:
        path = existing(os.path.join(start.run_dir, meta.system_prompt_path), "start the run again")
        if meta.prompt_mode == PromptMode.REPLACE:
            config["model_instructions_file"] = path
    config |= servers_config(meta.tools, own_settings.servers, child_environment(meta))
    words = ["-s", permissions.sandbox] if permissions.sandbox else []
    words += ["-m", own_name(meta.resolved_model)] if meta.resolved_model else []
    for name, value in config.items():
        words += ["-c", f"{name}={_toml(value)}"]
    return words


def _has_words_before_task(meta: RunMeta) -> bool:
    return bool(meta.system_prompt_path) and meta.prompt_mode != PromptMode.REPLACE


def _toml(value: object) -> str:
    """Write a value as TOML, which includes JSON's strings."""
    if isinstance(value, dict):
        pairs = (f"{_toml(name)} = {_toml(item)}" for name, item in cast("dict[str, object]", value).items())
        return f"{{{', '.join(pairs)}}}"
    return msgspec.json.encode(value).decode("utf-8", "replace")


# --- the stream of `codex exec` --------------------------------------------------------------------------------------

_TYPE = re.compile(rb'\{"type":"([a-z._]{1,40})"')


class ExecStream(CodexStream):
    """The stream of one `codex exec`, for one prompt."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        earlier: Tokens | None = None,
        prompt: bytes = b"",
        find: Callable[[str | None], str | None] = lambda thread: None,
    ) -> None:
        """`earlier` is the conversation's usage before this run; `prompt` is written if stdin is a pipe; `find` returns
        the file of a thread.
        """
        super().__init__(clock)
        self._earlier = earlier or Tokens()
        self._find = find
        self.say(prompt)
        self.note(silent=True)
        self._readers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "thread.started": self._thread_started,
            "item.started": lambda fields: self.item_started(as_in_app_server(mapping(fields.get("item")))),
            "item.completed": lambda fields: self.item_completed(as_in_app_server(mapping(fields.get("item")))),
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "error": self._error,
        }

    def take(self, line: bytes) -> list[Event]:
        match = _TYPE.match(line)
        if match and match[1].decode("ascii", "replace") not in self._readers:
            return []
        fields = decode(line)
        if fields is None:
            return self.not_understood(line)
        if self.turn_ended:
            return []
        self.note(silent=False)
        reader = self._readers.get(string(fields.get("type")))
        return reader(fields) if reader else []

    def _thread_started(self, fields: dict[str, Any]) -> list[Event]:
        self.note(session_id=string(fields.get("thread_id")) or self.facts.session_id)
        return []

    def _turn_completed(self, fields: dict[str, Any]) -> list[Event]:
        self._called.clear()
        total = Tokens.of(mapping(fields.get("usage")), self.figures.tokens)
        events = self.paid(total.since(self._earlier) or total)
        self.finished(error_message=None, conversation=self._find(self.facts.session_id))
        return events

    def _turn_failed(self, fields: dict[str, Any]) -> list[Event]:
        return [self.failed(mapping(fields.get("error")), conversation=self._find(self.facts.session_id))]

    def _error(self, fields: dict[str, Any]) -> list[Event]:
        """Handle a retry. `turn.failed` repeats any other error; if there is none, this one is final."""
        retry = reconnecting(string(fields.get("message")))
        if retry is None:
            self.note(error_message=fault_words(fields))
            return []
        self.broke_off()
        attempt, most, why = retry
        return [Retry(attempt=attempt, max_attempts=most, delay_ms=0, reason=why)]
