"""An earlier conversation, as text for a new session: for a program that loses sessions.

Gemini CLI 0.61.0 overwrites a session that it loads within the minute in which it was created, deletes a loaded session
at its next start, and repeats the loaded messages while the next prompt is already running.
"""

from __future__ import annotations

import os

from ... import paths
from ...run import artifacts
from ...run.events import AssistantText, Event, EventTail, Message, ToolCall
from ...run.model import MessageState
from ...system import files
from ...text.plain import one_line, plain

FILE = "earlier.md"
_MOST = 200_000
"""Maximum characters kept, from the end."""
_MOST_RUNS = 20
"""Maximum runs of one conversation to read."""
_CUT = "[the beginning is left out]\n\n"


def write_earlier(run_dir: str, *, is_begun: bool) -> str:
    """Write the conversation so far to a file and return its path; `is_begun`: this run has started an agent before."""
    text = "\n\n".join(part for each in _run_dirs(run_dir, is_begun=is_begun) for part in _parts_of(each))
    kept = text if len(text) <= _MOST else _CUT + text[-_MOST:]
    path = os.path.join(run_dir, FILE)
    files.write_whole(path, plain(kept).encode("utf-8", "replace"))
    return path


def _run_dirs(run_dir: str, *, is_begun: bool) -> list[str]:
    """Return the directories of a conversation's runs, oldest first."""
    directories = [run_dir] if is_begun else []
    meta = artifacts.read_meta(run_dir)
    while meta and meta.agent_session and (source := meta.agent_session.source) and len(directories) < _MOST_RUNS:
        run_dir = os.path.join(os.path.dirname(run_dir), os.path.basename(source))
        if run_dir in directories:
            break
        directories.append(run_dir)
        meta = artifacts.read_meta(run_dir)
    return directories[::-1]


def _parts_of(run_dir: str) -> list[str]:
    try:
        task = files.read(os.path.join(run_dir, paths.PROMPT)).decode("utf-8", "replace").strip()
        events = EventTail(os.path.join(run_dir, paths.EVENTS)).read()
    except OSError:
        return []
    return [f"User: {task}", *filter(None, map(_part_of, events))]


def _part_of(event: Event) -> str:
    match event:
        case AssistantText(text=text) if text.strip():
            return f"You: {text.strip()}"
        case Message(state=MessageState.ACCEPTED, text=text) if text.strip():
            return f"User: {text.strip()}"
        case ToolCall(tool_name=name, args=args):
            shown = one_line(", ".join(f"{key}: {value}" for key, value in args.items()), 300)
            return f"You used {name} ({shown})"
        case _:
            return ""
