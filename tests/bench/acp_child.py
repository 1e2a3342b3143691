"""What an agent of the Agent Client Protocol costs as a child: the adapter of Codex, behind our bridge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.house.set_up import ACP_HOME, agent_program

from . import agent_child, codex_child
from .figures import Figure

MINIMAL = """\
import json, os, subprocess, sys
child = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def ask(number, method, **params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    child.stdin.write(json.dumps(message).encode() + b"\\n")
    child.stdin.flush()
    for line in child.stdout:
        answer = json.loads(line)
        if answer.get("id") == number and "method" not in answer:
            return answer["result"]
ask(1, "initialize", protocolVersion=1, clientCapabilities={})
session = ask(2, "session/new", cwd=os.getcwd(), mcpServers=[])["sessionId"]
ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Say hello."}])
child.stdin.close()
child.terminate()
child.wait()
"""


def measure() -> Iterator[Figure]:
    program = str(ACP_HOME / "node_modules" / ".bin" / "codex-acp")
    return agent_child.measure(
        agent_child.Case("acp", program, "", _environment, MINIMAL, needs=(str(agent_program("codex")),))
    )


def _environment(url: str, home: Path) -> dict[str, str]:
    own = codex_child.environment(url, home)
    return own | {"CODEX_PATH": str(agent_program("codex")), "PATH": os.environ["PATH"]}
