"""An agent that continues its session file, as pi does, and otherwise behaves like the puppet.

A task is a script of several parts; see `scripted/player.py`. Unlike the scripted pi it sends nothing on its own, not
even the end of a turn.
"""

import json
import os
import sys

sys.path[:0] = [HERE := os.path.dirname(os.path.abspath(__file__)), os.path.join(HERE, "scripted")]

from pi import Session
from player import part_for
from puppet import perform

prompt = sys.stdin.buffer.read().decode()
session = Session()
session.add("user", prompt)
print(json.dumps(session.header), flush=True)
perform(part_for(session.prompts))
