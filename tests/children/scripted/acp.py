"""A scripted agent of the Agent Client Protocol, version 1. It asks before each command, as Claude Code does."""

import json
import os
import sys
import uuid
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from player import Interrupted, Player, call_server, emit, part_for

OPTIONS = [
    {"kind": "allow_always", "name": "Always Allow", "optionId": "always"},
    {"kind": "allow_once", "name": "Allow", "optionId": "once"},
    {"kind": "reject_once", "name": "Reject", "optionId": "no"},
]


class Failed(Exception):
    """The prompt is answered with an error."""


class Acp(Player):
    def __init__(self):
        super().__init__()
        self.prompts = deque()
        self._session = ""
        self._said = []
        """The prompts of the session."""
        self._servers = []
        self._message = ""
        self._stop = "end_turn"
        self._used, self._spent = [0, 0], 0.0
        self._is_working = False

    # --- what comes ---

    def take(self, message):
        number, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None:
            self.answers[number] = message.get("result")
        elif method == "initialize":
            self._answer(
                number,
                protocolVersion=1,
                agentCapabilities={"loadSession": True, "promptCapabilities": {}},
                agentInfo={"name": "scripted", "title": "Scripted", "version": "1"},
                authMethods=[],
            )
        elif method == "session/new":
            self._session, self._servers = str(uuid.uuid4()), params["mcpServers"]
            self._answer(number, sessionId=self._session)
        elif method == "session/load":
            self._load(number, params)
        elif method == "session/prompt":
            self.prompts.append((number, "\n\n".join(block["text"] for block in params["prompt"])))
        elif method == "session/cancel":
            self.is_interrupted = self._is_working
        else:
            emit(jsonrpc="2.0", id=number, error={"code": -32601, "message": f"Method not found: {method}"})

    def _answer(self, number, **result):
        emit(jsonrpc="2.0", id=number, result=result)

    def _load(self, number, params):
        self._session, self._servers = params["sessionId"], params["mcpServers"]
        try:
            with open(self._file()) as file:
                self._said = json.load(file)
        except FileNotFoundError:
            emit(jsonrpc="2.0", id=number, error={"code": -32002, "message": "Resource not found"})
            return
        for text in self._said:
            self._update("user_message_chunk", content={"type": "text", "text": text}, messageId=str(uuid.uuid4()))
            self._update("agent_message_chunk", content={"type": "text", "text": "Earlier."}, messageId="earlier")
        self._answer(number)

    def _file(self):
        return os.path.join(os.environ["HOME"], ".scripted-acp", f"{self._session}.json")

    def converse(self):
        while True:
            self.turn(*self.next_of(self.prompts))

    # --- turns ---

    def turn(self, number, prompt):
        self._said.append(prompt)
        os.makedirs(os.path.dirname(self._file()), exist_ok=True)
        with open(self._file(), "w") as file:
            json.dump(self._said, file)
        self._used, self._stop, self._is_working = [0, 0], "end_turn", True
        self.reply = prompt
        try:
            self.play(part_for(self._said))
        except Interrupted:
            self._end(number, "cancelled")
        except Failed as failure:
            emit(jsonrpc="2.0", id=number, error={"code": -32603, "message": f"Internal error: {failure}"})
        else:
            self._end(number, self._stop)
        self._is_working = self.is_interrupted = False
        self.written = ""

    def _end(self, number, reason):
        self._update("usage_update", used=1, size=200000, cost={"amount": self._spent, "currency": "USD"})
        given, output = self._used
        usage = {"inputTokens": given, "outputTokens": output, "cachedReadTokens": 0, "cachedWriteTokens": 0}
        told = {"usage": {**usage, "totalTokens": given + output}} if reason != "cancelled" else {}
        self._answer(number, stopReason=reason, **told)

    def show(self, message):
        raise NotImplementedError("the protocol has no message to a turn that runs")

    def _update(self, kind, /, **fields):
        update = {"sessionUpdate": kind, **fields}
        emit(jsonrpc="2.0", method="session/update", params={"sessionId": self._session, "update": update})

    def _paid(self):
        self._used = [self._used[0] + self.tokens[0], self._used[1] + self.tokens[1]]
        self._spent += self.cost

    def _request(self, method, **params):
        number = self.next_id()
        emit(jsonrpc="2.0", id=number, method=method, params={"sessionId": self._session, **params})
        return self.answer_to(number)

    # --- the script ---

    def do_think(self, words):
        self._update("agent_thought_chunk", content={"type": "text", "text": words}, messageId=str(uuid.uuid4()))

    def do_write(self, words):
        if not self.written:
            self._message = str(uuid.uuid4())
        self.written += words
        self._update("agent_message_chunk", content={"type": "text", "text": words}, messageId=self._message)

    def do_say(self, words):
        self.do_write(words)
        self.written = ""
        self._paid()

    def do_empty(self, _):
        self._paid()

    def do_cut(self, words):
        self.do_say(words)
        self._stop = "max_tokens"

    def _call(self, kind, title, args, carry_out):
        call = {"toolCallId": self.call_id(), "title": title, "kind": kind, "rawInput": args}
        self._update("tool_call", **call, status="pending", content=[])
        asked = {"sessionId": self._session, "options": OPTIONS, "toolCall": call}
        outcome = self._request("session/request_permission", **asked)["outcome"]
        if outcome.get("optionId") in ("once", "always"):
            text, is_error = carry_out()
        else:
            text, is_error = "The user refused permission to run the tool.", True
            self.look()
        status = "failed" if is_error else "completed"
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        self._update("tool_call_update", toolCallId=call["toolCallId"], status=status, rawOutput=text, content=content)
        self.reply = text.strip()
        self._paid()

    def do_bash(self, command):
        def carry_out():
            output, code = self.shell(command)
            return output, code != 0

        self._call("execute", command, {"command": command}, carry_out)

    def do_question(self, words):
        question, *choices = map(str.strip, words.split("|"))
        one = {"type": "string", "title": "Choice", "oneOf": [{"const": choice, "title": choice} for choice in choices]}
        schema = {"type": "object", "properties": {"choice": one}, "required": ["choice"]}
        answer = self._request("elicitation/create", mode="form", message=question, requestedSchema=schema)
        self.look()
        self.reply = answer.get("content", {}).get("choice", answer["action"])

    def do_hand_over(self, words):
        status, _, text = words.partition(" ")
        payload = {"status": status, "error" if status == "ERROR" else "result": text}
        server = next(server for server in self._servers if server["name"] == "subdeck")
        title = "mcp__subdeck__subagent_finalize"
        command = [server["command"], *server["args"]]
        self._call("other", title, payload, lambda: call_server(command, "subagent_finalize", payload))

    def do_fail(self, words):
        raise Failed(f"API Error: {words}")


def main():
    Acp().converse()


if __name__ == "__main__":
    main()
