"""A scripted pi that speaks its JSON and rpc modes like version 1.5: `pi.py --mode json|rpc`, with pi's flags."""

import json
import os
import sys
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from player import MODEL, Interrupted, Player, emit, option, part_for

PERMISSION = "subdeck: may this tool be called?"
FINALIZE = "subagent_finalize"


class Session:
    """The file of a conversation; without one nothing is kept."""

    def __init__(self):
        self.path = option("--session")
        self.header, self._entries = {"type": "session", "version": 3, "id": "in-memory"}, []
        if not self.path:
            return
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                self.header, *self._entries = map(json.loads, file.read().splitlines())
        else:
            self.header["id"] = os.urandom(16).hex()
            self._write(self.header)

    @property
    def prompts(self):
        """The user's prompts that began a turn."""
        said = [entry["message"] for entry in self._entries if entry["type"] == "message" and "steered" not in entry]
        return [message["content"][0]["text"] for message in said if message["role"] == "user"]

    def add(self, role, text, **more):
        number, parent = f"{len(self._entries) + 1:08x}", self._entries[-1]["id"] if self._entries else None
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        self._entries.append({"type": "message", "id": number, "parentId": parent, "message": message, **more})
        if self.path:
            self._write(self._entries[-1])

    def _write(self, entry):
        with open(self.path, "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")


def respond(command, data=None, error=""):
    fields = {"success": False, "error": error} if error else {"success": True, **({"data": data} if data else {})}
    emit(type="response", id=command.get("id"), command=command["type"], **fields)


def payload_fault(payload):
    """Return why the tool for structured results refuses these arguments; empty if it accepts them."""
    if payload["status"] not in ("SUCCESS", "ERROR"):
        return "status must be SUCCESS or ERROR"
    needed = "result" if payload["status"] == "SUCCESS" else "error"
    return "" if payload.get(needed) else f"{payload['status']} requires a non-empty {needed}"


class Pi(Player):
    def __init__(self):
        super().__init__()
        self.session = Session()
        self.prompts = deque()
        self._prompts_said = []
        self._is_working = False
        self._aborts = []
        self._asked_tools = os.environ.get("SUBDECK_ASKED_TOOLS", "").split(",")

    # --- rpc mode ---

    def take(self, message):
        command, kind = message, message["type"]
        if kind == "prompt" and self._is_working:
            respond(command, error="Agent is already processing.")
        elif kind == "prompt":
            self._is_working = True
            self.prompts.append(command["message"])
            respond(command, {"disposition": "started"})
        elif kind == "steer":
            self.messages.append(command["message"])
            respond(command, {"disposition": "queued"})
        elif kind == "clear_queue":
            respond(command, {"steering": list(self.messages), "followUp": []})
            self.messages.clear()
        elif kind == "abort":
            self._aborts.append(command)
            self.is_interrupted = self._is_working
        elif kind == "get_state":
            is_streaming = {"isStreaming": self._is_working, "isCompacting": False}
            respond(command, {"sessionId": self.session.header["id"], **is_streaming})
        elif kind == "extension_ui_response":
            self.answers[command["id"]] = command
        else:
            respond(command, error=f"Unknown command: {kind}")

    def converse(self):
        while True:
            while not self.prompts:
                for command in self._aborts:
                    respond(command)
                self._aborts.clear()
                if not self.is_open:
                    self.finish()
                self.look(None)
            self.turn(self.prompts.popleft())
            self._is_working = self.is_interrupted = False

    # --- turns ---

    def turn(self, prompt):
        emit(type="agent_start")
        emit(type="turn_start")
        self._show_user(prompt)
        self.reply = prompt
        is_aborted = False
        self._prompts_said.append(prompt)
        try:
            self.play(part_for(self.session.prompts if self.session.path else self._prompts_said))
        except Interrupted:
            is_aborted = True
            self.message([{"type": "text", "text": self.written}] if self.written else [], "aborted")
        emit(type="turn_end", message={"role": "assistant"}, toolResults=[])
        emit(type="agent_end", messages=[], willRetry=False)
        emit(type="agent_settled", aborted=is_aborted)

    def show(self, message):
        self._show_user(message, steered=True)
        return message

    def _show_user(self, text, **entry):
        self.session.add("user", text, **entry)
        said = {"role": "user", "content": [{"type": "text", "text": text}]}
        emit(type="message_start", message=said)
        emit(type="message_end", message=said)

    def message(self, content, stop, **more):
        """Write a message of the model; an interrupted one costs nothing."""
        thought, self.thought = self.thought, ""
        if thought:
            content = [{"type": "thinking", "thinking": thought}, *content]
        (given, output), cost = ((0, 0), 0) if stop in ("aborted", "error") else (self.tokens, self.cost)
        usage = {"input": given, "output": output, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": cost}}
        message = {"role": "assistant", "content": content, "provider": "fake", "model": MODEL, "usage": usage}
        if not self.written:
            emit(type="message_start", message={**message, "content": [], "stopReason": "pending"})
        self.written = ""
        emit(type="message_end", message={**message, "stopReason": stop, **more})
        for block in content:
            if block["type"] == "text":
                self.session.add("assistant", block["text"])

    def _call(self, name, args, carry_out):
        """Have the model call a tool; `carry_out` returns its result."""
        call_id = self.call_id()
        self.message([{"type": "toolCall", "id": call_id, "name": name, "arguments": args}], "toolUse")
        about = {"toolCallId": call_id, "toolName": name}
        emit(type="tool_execution_start", **about, args=args)
        text, is_error, details = carry_out(call_id)
        result = {"content": [{"type": "text", "text": text}], "details": details}
        emit(type="tool_execution_end", **about, result=result, isError=is_error)
        said = {"role": "toolResult", **about, "content": result["content"], "isError": is_error}
        emit(type="message_start", message=said)
        emit(type="message_end", message=said)
        emit(type="turn_end", message={"role": "assistant"}, toolResults=[said])
        emit(type="turn_start")
        self.deliver()

    def _ask(self, method, title, **fields):
        dialog = f"dialog-{self.next_id()}"
        emit(type="extension_ui_request", id=dialog, method=method, title=title, **fields)
        return self.answer_to(dialog).get("value", "")

    # --- the script ---

    def do_think(self, words):
        self.thought = words

    def do_say(self, words):
        self.do_write(words)
        self.message([{"type": "text", "text": self.written}], "stop")

    def do_empty(self, _):
        self.message([], "stop")

    def do_cut(self, words):
        self.do_write(words)
        self.message([{"type": "text", "text": self.written}], "length")

    def do_write(self, words):
        if not self.written:
            emit(type="message_start", message={"role": "assistant", "content": [], "stopReason": "pending"})
        self.written += words
        delta = {"type": "text_delta", "contentIndex": 0, "delta": words}
        emit(type="message_update", assistantMessageEvent=delta)

    def do_bash(self, command):
        def carry_out(call_id):
            if "bash" in self._asked_tools:
                about = json.dumps({"id": call_id, "tool": "bash", "args": {"command": command}})
                answer = self._ask("input", PERMISSION, placeholder=about)
                if answer != "allow":
                    why = answer.removeprefix("deny").removeprefix(": ")
                    self.reply = f"Denied: {why}" if why else "Denied."
                    return self.reply, True, {}
            output, code = self.shell(command)
            self.reply = output.strip()
            return output + (f"\nCommand exited with code {code}" if code else ""), code != 0, {}

        self._call("bash", {"command": command}, carry_out)

    def do_question(self, words):
        question, *choices = map(str.strip, words.split("|"))
        self.reply = self._ask("select", question, options=choices)

    def do_hand_over(self, words):
        status, _, text = words.partition(" ")
        payload = {"status": status, "error" if status == "ERROR" else "result": text}
        fault = payload_fault(payload)
        self._call(
            FINALIZE,
            payload,
            lambda _: (fault, True, {}) if fault else ("The result was received.", False, payload),
        )

    def do_fail(self, words):
        self.message([], "error", errorMessage=_error(words))

    def do_retry(self, words):
        self.do_fail(words)
        emit(type="agent_end", messages=[], willRetry=True)
        emit(type="auto_retry_start", attempt=1, maxAttempts=2, delayMs=100, errorMessage=_error(words))
        emit(type="agent_start")
        emit(type="turn_start")


def _error(words):
    status, _, text = words.partition(" ")
    return f"{status}: {json.dumps({'message': text, 'type': 'err', 'code': int(status)})}"


def main():
    agent = Pi()
    if option("--mode") == "rpc":
        agent.converse()
    prompt = sys.stdin.buffer.read().decode().strip()
    agent.is_open = False
    emit(**agent.session.header)
    agent.turn(prompt)
    agent.finish()


if __name__ == "__main__":
    main()
