"""An agent that continues its session file, as pi does; without `--mode` it is the interactive program.

That adds each typed line to the conversation, and answers it with the same words, until `leave`; `pay 0.5` is an answer
that costs as much.
"""

import json
import os
import sys
import time

CONVERSING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conversing.py")

if "--mode" in sys.argv:
    with open(CONVERSING) as child:
        exec(compile(child.read(), CONVERSING, "exec"))
    sys.exit()

path = sys.argv[sys.argv.index("--session") + 1]


def say(role, text, **fields):
    message = {"role": role, "content": [{"type": "text", "text": text}], **fields}
    with open(path, "ab") as session:
        number = f"{time.monotonic_ns():x}"
        session.write(json.dumps({"type": "message", "id": number, "message": message}).encode() + b"\n")


print("by hand", os.environ.get("SUBDECK_RUN_ID"), flush=True)
for line in map(str.strip, sys.stdin):
    if line == "leave":
        break
    say("user", line)
    if not line.endswith("?"):
        used = {"usage": {"input": 10, "cost": {"total": float(line[4:])}}} if line.startswith("pay ") else {}
        say("assistant", f"You said: {line}", stopReason="stop", provider="fake", model="hand", **used)
    print("said", flush=True)
