"""A child program that goes on with its session file, as pi does, and does what the puppet does.

A task is a script of several parts: after a line `parts`, with a line `then` between two of them. The first prompt of a
task is answered by the first part, each further prompt in the same session, whatever it says, by the next one.
"""

import io
import json
import os
import sys

PUPPET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "puppet.py")


def user_message(said, entries):
    number, parent = f"{len(entries) + 1:08x}", entries[-1]["id"] if entries else None
    message = {"role": "user", "content": [{"type": "text", "text": said}]}
    return {"type": "message", "id": number, "parentId": parent, "message": message}


def prompts_of(entries):
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]


def part_for(prompts):
    """Return the part of the last script that its newest prompt is answered by."""
    scripts = [number for number, prompt in enumerate(prompts) if "parts\n" in prompt]
    parts = prompts[scripts[-1]].partition("parts\n")[2].split("\nthen\n")
    return parts[min(len(prompts) - 1 - scripts[-1], len(parts) - 1)]


prompt = sys.stdin.buffer.read().decode()
entries, header = [], {"type": "session", "id": "in-memory"}
if "--session" in sys.argv:
    path = sys.argv[sys.argv.index("--session") + 1]
    with open(path, "rb") as session:
        header, *entries = map(json.loads, session.read().splitlines())
    with open(path, "ab") as session:
        session.write(json.dumps(user_message(prompt, entries)).encode() + b"\n")
print(json.dumps(header), flush=True)
sys.stdin = io.TextIOWrapper(io.BytesIO(part_for([*prompts_of(entries), prompt]).encode()))
with open(PUPPET) as puppet:
    exec(compile(puppet.read(), PUPPET, "exec"))
