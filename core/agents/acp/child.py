"""The running side of ACP agents."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...run.environment import child_environment
from ...run.model import RunMeta, ToolPolicy
from ...run.outcome import last_words
from .._finalize_tool import NAMES, SERVER, server_command
from .._json_lines import decode, mapping
from ..child import Child, Command, Start, existing
from ._programs import READ_ONLY_MODES, bridge_command, program_in
from ._stream import AcpStream, is_general

ALLOWED_KINDS = "read,search"
"""Calls allowed when an agent asks, because they change nothing. No user is there to decide others."""


_BRIDGE_ERROR = "Error: "
_EXITED = r" ended with exit code \S+$"


class AcpChild:
    def knows(self, lines: Sequence[bytes]) -> bool:
        return any(map(_is_acp, lines))

    def command(self, start: Start) -> Command:
        meta = start.meta
        argv = bridge_command(_wishes(start), meta.agent_command)
        return Command(argv, child_environment(meta), pipe=meta.talk is True)

    def stream(self, start: Start | None = None) -> AcpStream:
        if start is None or not start.meta.talk:
            return AcpStream()
        from ._conversation import AcpConversation  # imported while the agent starts

        return AcpConversation(start)

    def explain(self, meta: RunMeta, stderr: str) -> str:
        """Return the bridge's error; if it does not name a cause, add the agent's last words."""
        lines = stderr.rstrip().splitlines()
        if not lines or not lines[-1].startswith(_BRIDGE_ERROR):
            return ""
        error = lines.pop().removeprefix(_BRIDGE_ERROR)
        if not (is_general(error) or re.search(_EXITED, error)):
            return error
        return ": ".join(filter(None, (error, last_words("\n".join(lines)))))


def _wishes(start: Start) -> dict[str, str]:
    meta = start.meta
    wishes = {"task": "lines"} if meta.talk else {"allow": ALLOWED_KINDS}
    if meta.resolved_model:
        wishes["model"] = meta.resolved_model
    if meta.thinking:
        wishes["thinking"] = meta.thinking
    if meta.tools.policy in (ToolPolicy.ALLOW, ToolPolicy.DENY):  # others are refused at launch
        wishes["mode"] = ",".join(READ_ONLY_MODES)
    if meta.finalize:
        import json  # 5 ms that other runs save

        program, *args = server_command()
        wishes["servers"] = json.dumps([{"name": SERVER, "command": program, "args": args, "env": []}])
        if not meta.talk:
            wishes["allow-tools"] = ",".join(sorted(NAMES))
    if meta.system_prompt_path:
        path = os.path.join(start.run_dir, meta.system_prompt_path)
        wishes["before"] = existing(path, "start the run again")
    if start.session_id:
        wishes["resume"] = start.session_id
        if program_in(meta.agent_command).loses_sessions:
            from ._earlier import write_earlier

            wishes["earlier"] = write_earlier(start.run_dir, is_begun=start.number > 1)
    return wishes


def _is_acp(line: bytes) -> bool:
    fields = decode(line)
    if fields is None:
        return False
    sent = mapping(fields.get("sent"))
    result = mapping(fields.get("result"))
    is_from_agent = fields.get("method") == "session/update" or "agentCapabilities" in result
    return is_from_agent or sent.get("method") == "initialize"


CHILD: Child = AcpChild()
