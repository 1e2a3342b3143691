"""Presets whose agent continues its session, and scripts for it; see `tests/children/conversing.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.run.events import Event, RunStarted
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import CHILDREN, events_of, run_dir, wait_for_end

CONVERSING = (sys.executable, "-I", "-S", str(CHILDREN / "conversing.py"))


def write_preset(project: Path, *fields: str, name: str = "scout", prompt: str = "Look.", file: str = "") -> Path:
    path = project / ".pi" / "subagents" / f"{file or name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["---", f"name: {json.dumps(name)}", "description: d", *fields, "---", prompt, ""]))
    return path


def parts(*scripts: str) -> str:
    """Build a task: the agent's actions at its first prompt, at its second, …"""
    return "parts\n" + "\nthen\n".join(scripts)


def script(*commands: str) -> str:
    return "\n".join(commands)


def raw(event: dict[str, Any]) -> str:
    """Return the command that writes an event unchanged."""
    return "raw " + json.dumps(event).replace("\\", "\\\\")


def call(*, refused: bool = False, call_id: str = "f1", **payload: str) -> str:
    """Call the finalization tool in a separate message; with `refused`, the tool refuses the call as invalid."""
    tool = {"type": "toolCall", "id": call_id, "name": FINALIZE_TOOL, "arguments": payload}
    message = {"role": "assistant", "content": [tool], "stopReason": "toolUse", "usage": {"input": 10}}
    named = {"toolCallId": call_id, "toolName": FINALIZE_TOOL}
    said = {"content": [{"type": "text", "text": "refused" if refused else "handed over"}]}
    return script(
        raw({"type": "message_end", "message": message}),
        raw({"type": "tool_execution_start", **named, "args": payload}),
        raw({"type": "tool_execution_end", **named, "result": {**said, "details": payload}, "isError": refused}),
    )


def hand_over(**payload: str) -> str:
    """Call the finalization tool and end."""
    return script(call(**payload), "finish")


def ask(task: str, *, preset: str | None = "scout", **others: Any) -> RunRequest:
    return RunRequest(task=task, preset=preset, **others)


def run(engine: Engine, task: str, **others: Any) -> RunSnapshot:
    """Run the preset to its end."""
    (launched,) = engine.launch([ask(task, **others)], background=True)
    return wait_for_end(engine, launched.run_id)


def starts(engine: Engine, ended: RunSnapshot) -> list[tuple[int, int]]:
    """Return attempt and number of attempts of each start."""
    found: list[Event] = events_of(engine, ended)
    return [(event.attempt, event.max_attempts) for event in found if isinstance(event, RunStarted)]


def prompt(engine: Engine, ended: RunSnapshot, attempt: int = 1) -> str:
    return (run_dir(engine, ended) / ("prompt.md" if attempt == 1 else f"prompt-{attempt}.md")).read_text()


def session_entries(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def prompts_in(path: str | Path) -> list[str]:
    """Return the user's texts in a session file."""
    messages = [entry["message"] for entry in session_entries(path) if entry["type"] == "message"]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]
