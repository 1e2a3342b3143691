"""A scripted pi that talks on its own, and records when it receives and requests something.

`talker.py NOTES PER_SECOND` with flags of pi. Each line of NOTES is a moment (nanoseconds, monotonic), a word and an
argument. A message that begins with `ask` makes it ask.
"""

import os
import sys
import time

SCRIPTED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "children", "scripted")
sys.path[:0] = [SCRIPTED, os.path.dirname(SCRIPTED)]

from pi import Pi
from player import emit


class Talker(Pi):
    def __init__(self, notes, per_second):
        super().__init__()
        self.session.path = ""  # no run continues it
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pause = 1 / per_second if per_second else None

    def note(self, word, argument):
        os.write(self._notes, f"{time.monotonic_ns()} {word} {argument}\n".encode())

    def take(self, message):
        if message["type"] == "extension_ui_response":
            self.note("answered", message["id"])
        elif message["type"] in ("prompt", "steer"):
            self.note("heard", message["message"].replace("\n", " ")[:200])
        super().take(message)

    def show(self, message):
        text = super().show(message)
        if text.startswith("ask"):
            self.note("asks", text)
            emit(type="extension_ui_request", id=text, method="confirm", title=f"May I: {text}?", message="It matters.")
        return text

    def turn(self, prompt):
        """Talk until stdin is closed."""
        emit(type="agent_start")
        emit(type="turn_start")
        self.show(prompt)
        due, said = time.monotonic() + (self._pause or 0), 0
        while self.is_open:
            self.look(max(0.0, due - time.monotonic()) if self._pause else None)
            self.deliver()
            if self._pause and time.monotonic() >= due:
                due += self._pause
                said += 1
                self.message([{"type": "text", "text": f"event {said}"}], "toolUse")


if __name__ == "__main__":
    Talker(sys.argv[1], float(sys.argv[2])).converse()
