"""How the lines of Claude Code's streaming JSON are told from one another, and its tools' names from ours."""

from __future__ import annotations

import re

from ..updates import BEGUN, QUOTED, Updates

_DELTA = rb'\{"type":"stream_event","event":\{"type":"content_block_delta"'
_THINKING = rb'\{"type":"system","subtype":"thinking_tokens"'
_TEXT = rb'\{"type":"text_delta","text":"'
_OF_THE_MESSAGE = rb'\}\},"session_id":"[^"]*","parent_tool_use_id":null'
"""What a nested agent writes has the id of its call there."""

UPDATES = Updates(
    (b'{"type":"stream_event","event":{"type":"content_block_delta"', b'{"type":"system","subtype":"thinking_tokens"'),
    b'{"type":"text_delta","text":"',
    re.compile(_TEXT + BEGUN, re.DOTALL),
    behind=re.compile(rb'"' + _OF_THE_MESSAGE),
    several=re.compile(rb"(?:(?:" + _DELTA + rb"|" + _THINKING + rb")[^\n]*\n)+"),
    deltas=re.compile(_TEXT + QUOTED + _OF_THE_MESSAGE, re.DOTALL),
)

TOOLS = {"read": "Read", "grep": "Grep", "find": "Glob", "ls": "Glob", "bash": "Bash", "edit": "Edit", "write": "Write"}
"""Our names of tools, and Claude Code's; it lists directories by its tool for finding files."""

OURS = {theirs: ours for ours, theirs in reversed(TOOLS.items())}
