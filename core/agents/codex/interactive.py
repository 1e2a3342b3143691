"""Codex's own UI on a run's conversation; and reading the messages from its rollout file."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ...errors import LaunchError
from ...run.environment import child_environment
from ...run.events import CONTENT_LIMIT, Event, Message, ToolResult
from ...run.model import MessageState
from .._json_lines import decode, items, mapping, string
from ..child import Command, Start
from ..interactive import Interactive, Said
from ._exec_run import set_up
from ._items import Tokens, as_in_app_server
from ._rollout import conversation_of
from ._stream import CodexStream


class CodexInteractive:
    def command(self, start: Start) -> Command:
        if not start.session_id:
            raise LaunchError("Codex had not begun a conversation yet", where=start.run_dir)
        words = (*start.meta.agent_command, "resume", *set_up(start), start.session_id)
        return Command(words, child_environment(start.meta))

    def conversation(self, start: Start) -> str | None:
        return conversation_of(start.session_id)

    def read(self, lines: Iterable[bytes], by: str) -> Said:
        stream = CodexStream()
        events: list[Event] = []
        ended = False
        for payload in (mapping((decode(line) or {}).get("payload")) for line in lines):
            match payload.get("type"):
                case "item_completed":
                    ended = False
                    item = _item(mapping(payload.get("item")))
                    if item["type"] == "userMessage":
                        text = string(item.get("text"))[:CONTENT_LIMIT]
                        events.append(
                            Message(id=string(item.get("id")), state=MessageState.DELIVERED, text=text, by=by)
                        )
                    else:
                        events += map(_untimed, stream.item_completed(item))
                case "token_count":
                    usage = mapping(mapping(payload.get("info")).get("last_token_usage"))
                    last = Tokens.of(usage, stream.figures.tokens)
                    events += stream.paid(last) if last != Tokens() or stream.figures.are_wrong else []
                case "thread_settings_applied":
                    settings = mapping(payload.get("thread_settings"))
                    names = (string(settings.get("model_provider_id")), string(settings.get("model")))
                    stream.note(model="/".join(filter(None, names)))
                case "task_complete" | "turn_aborted" as how:
                    ended = how == "task_complete"
                case _:
                    continue
        return Said(tuple(events), replace(stream.facts, finished=ended and stream.facts.final_text is not None))


def _item(item: dict[str, Any]) -> dict[str, Any]:
    """Return a rollout's item with the app-server's names: `CommandExecution` becomes `commandExecution`."""
    kind = string(item.get("type"))
    named = as_in_app_server({**item, "type": kind[:1].lower() + kind[1:]})
    if words := items(item.get("command")):
        named["command"] = shlex.join(map(string, words))
    if texts := [string(mapping(block).get("text")) for block in items(item.get("content"))]:
        named.setdefault("text", "\n".join(texts))
    if changes := mapping(item.get("changes")):
        named["changes"] = [{"path": path, **mapping(change)} for path, change in changes.items()]
    return named


def _untimed(event: Event) -> Event:
    """Drop a result's duration, which is not measured here."""
    return replace(event, duration_ms=None) if isinstance(event, ToolResult) else event


INTERACTIVE: Interactive = CodexInteractive()
