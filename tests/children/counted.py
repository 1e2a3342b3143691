"""An agent that records its start in a file, and writes at an even pace, as pi's JSON mode does.

Its task is `FILE SECONDS PER_SECOND`: it ends after so many seconds, or earlier if there is a file `FILE.end`. Its
texts begin with the time, in seconds since 1970. Standard library only.
"""

import os
import sys
import time

USAGE = '{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.01}}'


def say(said, stop_reason):
    line = (
        f'{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{said}"}}],'
        f'"provider":"fake","model":"counted","usage":{USAGE},"stopReason":"{stop_reason}"}}}}\n'
    )
    os.write(1, line.encode())


starts, seconds, per_second = sys.stdin.read().split()
record = os.open(starts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.write(record, f"{os.environ['SUBDECK_RUN_ID']} {os.uname().nodename}\n".encode())
os.close(record)
began = time.monotonic()
number = 0
while time.monotonic() - began < float(seconds) and not os.path.exists(f"{starts}.end"):
    number += 1
    say(f"{time.time():.6f} line {number}", "toolUse")
    time.sleep(max(0.0, began + number / float(per_second) - time.monotonic()))
say(f"{time.time():.6f} said {number} lines", "stop")
os.write(1, b'{"type":"agent_end","messages":[],"willRetry":false}\n{"type":"agent_settled","aborted":false}\n')
