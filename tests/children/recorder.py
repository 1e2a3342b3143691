"""An agent that records its inputs: argv, stdin, environment, cwd and its place among processes."""

import json
import os
import sys

facts = {
    "argv": sys.argv[1:],
    "stdin": sys.stdin.buffer.read().decode("latin-1"),
    "environment": dict(os.environ),
    "cwd": os.getcwd(),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    "session": os.getsid(0),
    "pid": os.getpid(),
}
with open(os.environ["RECORD"], "w") as file:
    json.dump(facts, file)
usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
message = {"role": "assistant", "content": [{"type": "text", "text": "noted"}], "usage": usage, "stopReason": "stop"}
for event in (
    {"type": "message_end", "message": message},
    {"type": "agent_end", "messages": [], "willRetry": False},
    {"type": "agent_settled", "aborted": False},
):
    print(json.dumps(event, separators=(",", ":")), flush=True)
