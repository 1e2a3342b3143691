"""A child that speaks pi's rpc mode without a model, and notes the moments at which it hears and asks something.

`talker.py NOTES PER_SECOND` with flags of pi. Each line of NOTES is a moment (nanoseconds, monotonic), a word and an
argument. A message that begins with `ask` makes it ask. Standard library only: a hundred of them are started.
"""

import json
import os
import select
import sys
import time


def emit(**event):
    os.write(1, json.dumps(event, separators=(",", ":")).encode() + b"\n")


def say(role, text, **more):
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    emit(type="message_start", message={**message, "content": []} if role == "assistant" else message)
    emit(type="message_end", message=message)


class Talker:
    def __init__(self, notes, per_second):
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pause = 1 / per_second if per_second else None
        self._rest = b""
        self._said = 0

    def note(self, word, argument):
        os.write(self._notes, f"{time.monotonic_ns()} {word} {argument}\n".encode())

    def talk(self):
        due = None
        while True:
            left = None if due is None else max(0.0, due - time.monotonic())
            if select.select((0,), (), (), left)[0]:
                if not (piece := os.read(0, 1 << 16)):
                    return
                self._hear(piece)
                due = due or (time.monotonic() + self._pause if self._pause else None)
            if due is not None and self._pause and time.monotonic() >= due:
                due += self._pause
                self._said += 1
                say(
                    "assistant", f"event {self._said}", provider="bench", model="talker", stopReason="toolUse", usage={}
                )

    def _hear(self, piece):
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, command):
        kind, text = command["type"], command.get("message", "")
        if kind == "extension_ui_response":
            self.note("answered", command["id"])
            return
        if kind in ("prompt", "steer"):
            self.note("heard", text.replace("\n", " ")[:200])
        answer = {"id": command.get("id"), "type": "response", "command": kind, "success": True}
        if kind == "get_state":
            answer["data"] = {"sessionId": "talker", "isStreaming": True, "pendingMessageCount": 0}
        emit(**answer)
        if kind == "prompt":
            emit(type="agent_start")
            emit(type="turn_start")
        if text:
            say("user", text)
        if text.startswith("ask"):
            self.note("asks", text)
            emit(type="extension_ui_request", id=text, method="confirm", title=f"May I: {text}?", message="It matters.")


if __name__ == "__main__":
    Talker(sys.argv[1], float(sys.argv[2])).talk()
