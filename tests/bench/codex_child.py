"""The cost of Codex as a child, through its app-server."""

from __future__ import annotations

from collections.abc import Iterator

from tests.house.set_up import agent_program
from tests.real.programs import CODEX

from . import agent_child
from .figures import Figure

MINIMAL = """\
import json, subprocess, sys
child = subprocess.Popen([sys.argv[1], "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(**message):
    child.stdin.write(json.dumps(message).encode() + b"\\n")
    child.stdin.flush()
def answer(number):
    for line in child.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
say(id=1, method="initialize", params={"clientInfo": {"name": "bench", "version": "0"}})
answer(1)
say(method="initialized")
say(id=2, method="thread/start", params={"cwd": ".", "model": "mock-model"})
thread = answer(2)["thread"]["id"]
say(id=3, method="turn/start", params={"threadId": thread, "input": [{"type": "text", "text": "Say hello."}]})
for line in child.stdout:
    if b'"method":"turn/completed"' in line:
        break
child.stdin.close()
child.wait()
"""
THREAD, TURN = "01a2019b-6975-7ac0-99c2-350d64d373cf", "01a2019b-699f-7312-9c57-18afae26b650"


def measure() -> Iterator[Figure]:
    program = str(agent_program("codex"))
    return agent_child.measure(agent_child.Case("codex", program, CODEX, MINIMAL, _long_answer, is_asked_first=True))


def _long_answer(megabytes: int) -> Iterator[bytes]:
    ids = f'"threadId":"{THREAD}","turnId":"{TURN}"'
    delta = f'{{"method":"item/agentMessage/delta","params":{{{ids},"itemId":"msg_001_1","delta":"ds one varia"}},'
    line = (delta + '"emittedAtMs":1795323292368}\n').encode()
    yield b'{"id":1,"result":{"userAgent":"x","codexHome":"/"}}\n'
    thread = f'{{"id":"{THREAD}","path":null}}'
    yield f'{{"id":3,"result":{{"thread":{thread},"model":"m","modelProvider":"p"}}}}\n'.encode()
    for _ in range(megabytes):
        yield line * (1_000_000 // len(line))
    said = '{"type":"agentMessage","id":"msg_001_1","text":"done"}'
    yield f'{{"method":"item/completed","params":{{{ids},"item":{said}}}}}\n'.encode()
    turn = f'{{"id":"{TURN}","status":"completed"}}'
    yield f'{{"method":"turn/completed","params":{{{ids},"turn":{turn}}}}}\n'.encode()
