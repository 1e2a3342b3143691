"""The cost of an ACP agent as a child: Codex's adapter, behind subdeck's bridge."""

from __future__ import annotations

from collections.abc import Iterator

from tests.house.set_up import agent_program
from tests.real.programs import CODEX, Acp

from . import agent_child
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
    codex = str(agent_program("codex"))
    kind = Acp(CODEX, codex)
    return agent_child.measure(agent_child.Case("acp", kind.adapter, kind, MINIMAL, needs=(codex,)))
