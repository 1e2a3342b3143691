"""The cost of Claude Code as a child, with its streaming JSON and partial messages."""

from __future__ import annotations

from collections.abc import Iterator

from tests.house.set_up import agent_program
from tests.real.programs import CLAUDE

from . import agent_child
from .figures import Figure

MODEL = CLAUDE.model.rpartition("/")[2]
MINIMAL = f"""\
import subprocess, sys, uuid
words = "-p --output-format stream-json --verbose --include-partial-messages --strict-mcp-config".split()
words += ["--model", "{MODEL}", "--session-id", str(uuid.uuid4())]
child = subprocess.Popen([sys.argv[1], *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b"Say hello.")
child.stdin.close()
for line in child.stdout:
    pass
child.wait()
"""
SESSION = "467db980-2191-44e1-bbdb-838e61fd18e3"


def measure() -> Iterator[Figure]:
    program = str(agent_program("claude"))
    return agent_child.measure(
        agent_child.Case(
            *("claude", program, CLAUDE, MINIMAL, _long_answer),
            deltas="partial messages",
        )
    )


def _long_answer(megabytes: int) -> Iterator[bytes]:
    of_session = f'"session_id":"{SESSION}","parent_tool_use_id":null'

    def streamed(event: str) -> bytes:
        uuid = '"uuid":"91374bf7-4d76-4cfc-b583-1f7035843745","api_message_id":"msg_000001"'
        return f'{{"type":"stream_event","event":{event},{of_session},{uuid}}}\n'.encode()

    yield f'{{"type":"system","subtype":"init","session_id":"{SESSION}","model":"{MODEL}"}}\n'.encode()
    used = '{"input_tokens":100,"output_tokens":20}'
    yield streamed(f'{{"type":"message_start","message":{{"id":"m1","usage":{used}}}}}')
    line = streamed('{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ds one varia"}}')
    for _ in range(megabytes):
        yield line * (1_000_000 // len(line))
    said = '{"id":"m1","content":[{"type":"text","text":"done"}]}'
    yield f'{{"type":"assistant","message":{said},{of_session}}}\n'.encode()
    yield streamed(f'{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{used}}}')
    ended = f'"is_error":false,"result":"done","session_id":"{SESSION}"'
    yield f'{{"type":"result","subtype":"success",{ended}}}\n'.encode()
