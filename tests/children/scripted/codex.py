"""A scripted Codex that speaks the app-server protocol like version 0.169: `codex.py app-server`."""

import json
import os
import sys
import uuid
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from player import MODEL, Interrupted, Player, emit, option, part_for

FINALIZE = "subagent_finalize"
ASKED_FIRST = "untrusted"
"""The policy with which it asks before each command that does more than read."""

SCHEMA = {
    "AgentMessageDeltaNotification": "threadId turnId itemId delta",
    "CommandExecutionRequestApprovalParams": "kind threadId turnId itemId command cwd availableDecisions",
    "ConfigReadParams": "cwd includeLayers",
    "DynamicToolCallParams": "threadId turnId callId tool arguments",
    "DynamicToolCallResponse": "contentItems success",
    "ErrorNotification": "error threadId turnId willRetry",
    "FileChangeRequestApprovalParams": "threadId turnId itemId reason grantRoot",
    "ItemCompletedNotification": "item threadId turnId completedAtMs",
    "ItemStartedNotification": "item threadId turnId startedAtMs",
    "ServerRequestResolvedNotification": "threadId requestId",
    "ThreadResumeParams": "threadId cwd model approvalPolicy approvalsReviewer sandbox developerInstructions config",
    "ThreadStartParams": "cwd model approvalPolicy approvalsReviewer sandbox developerInstructions baseInstructions "
    "config ephemeral dynamicTools",
    "ThreadTokenUsageUpdatedNotification": "threadId turnId tokenUsage",
    "TurnCompletedNotification": "threadId turn",
    "TurnInterruptParams": "threadId turnId",
    "TurnStartParams": "threadId input effort clientUserMessageId",
    "TurnSteerParams": "threadId expectedTurnId input clientUserMessageId",
}
"""Its description of the protocol: the names of its types, and of their members."""


def write_schemas(directory):
    for title, members in SCHEMA.items():
        with open(os.path.join(directory, f"{title}.json"), "w") as file:
            json.dump({"title": title, "properties": {name: {} for name in members.split()}}, file)


def home():
    return os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")


class Failed(Exception):
    """The turn ends with an error."""


class Codex(Player):
    def __init__(self):
        super().__init__()
        self.turns = deque()
        self._thread, self._turn = "", ""
        self._path = ""
        self._prompts = []
        self._is_asked_first = False
        self._total = [0, 0]
        self._item = 0

    # --- what comes ---

    def take(self, message):
        number, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None:
            self.answers[number] = message.get("result")
            emit(method="serverRequest/resolved", params={"threadId": self._thread, "requestId": number})
        elif method == "turn/start":
            self._turn = str(uuid.uuid4())
            self.turns.append(params)
            emit(id=number, result={"turn": {"id": self._turn, "items": [], "status": "inProgress"}})
        elif method == "turn/steer" and params["expectedTurnId"] == self._turn:
            self.messages.append(params)
            emit(id=number, result={"turnId": self._turn})
        elif method == "turn/steer":
            emit(id=number, error={"code": -32600, "message": "no active turn to steer"})
        elif method == "turn/interrupt":
            emit(id=number, result={})
            self.is_interrupted = bool(self._turn)
        elif method != "initialized":
            self._open(number, method, params)

    def _open(self, number, method, params):
        """Answer the requests before the first turn."""
        if method == "initialize":
            emit(id=number, result={"userAgent": "scripted/0.169.0", "codexHome": home(), "platformOs": "linux"})
        elif method == "config/read":
            emit(id=number, result={"config": {"sandbox_mode": "workspace-write"}, "origins": {}, "layers": []})
        elif method == "thread/resume" and not os.path.exists(self._file(params["threadId"])):
            emit(id=number, error={"code": -32600, "message": f"no rollout found for {params['threadId']}"})
        elif method in ("thread/start", "thread/resume"):
            self._open_thread(number, params)
        else:
            emit(id=number, error={"code": -32601, "message": f"unknown method {method}"})

    def _open_thread(self, number, params):
        self._thread = params.get("threadId") or str(uuid.uuid4())
        is_ephemeral = params.get("ephemeral") is True
        self._path = "" if is_ephemeral else self._file(self._thread)
        self._is_asked_first = params.get("approvalPolicy") == ASKED_FIRST
        if self._path and os.path.exists(self._path):
            with open(self._path) as file:
                self._prompts = [json.loads(line)["payload"]["message"] for line in file]
        thread = {"id": self._thread, "path": self._path or None, "ephemeral": is_ephemeral, "parentThreadId": None}
        sandbox = {"type": "dangerFullAccess" if params.get("sandbox") == "danger-full-access" else "workspaceWrite"}
        result = {"thread": thread, "model": params.get("model", MODEL), "modelProvider": "openai", "sandbox": sandbox}
        emit(id=number, result=result)
        emit(method="thread/started", params={"thread": thread})

    def _file(self, thread):
        return os.path.join(home(), "sessions", f"rollout-{thread}.jsonl")

    def converse(self):
        while True:
            self.turn(self.next_of(self.turns))

    # --- turns ---

    def _tell(self, method, **params):
        emit(method=method, params={"threadId": self._thread, "turnId": self._turn, **params}, emittedAtMs=1)

    def turn(self, asked):
        prompt = asked["input"][0]["text"]
        self._prompts.append(prompt)
        self.reply = prompt
        if self._path:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(self._path, "a") as file:
                line = {"type": "event_msg", "payload": {"type": "user_message", "message": prompt}}
                file.write(json.dumps(line) + "\n")
        turn, error = self._turn, None
        emit(method="turn/started", params={"threadId": self._thread, "turn": {"id": turn, "status": "inProgress"}})
        self.show(asked)
        try:
            self.play(part_for(self._prompts))
            status = "completed"
        except Interrupted:
            status = "interrupted"
        except Failed as failure:
            status, error = "failed", failure.args[0]
            self._tell("error", error=error, willRetry=False)
        self._turn, self.written = "", ""
        self.is_interrupted = False
        self.messages.clear()  # it forgets messages that it has not shown
        ended = {"id": turn, "items": [], "status": status, "error": error}
        emit(method="turn/completed", params={"threadId": self._thread, "turn": ended})

    def show(self, message):
        text = message["input"][0]["text"]
        said = {"type": "userMessage", "id": self._item_id(), "clientId": message.get("clientUserMessageId")}
        said["content"] = [{"type": "text", "text": text}]
        self._tell("item/started", item=said)
        self._tell("item/completed", item=said)
        return text

    def _item_id(self):
        self._item += 1
        return f"item_{self._item}"

    def _paid(self):
        given, output = self.tokens
        self._total = [self._total[0] + given, self._total[1] + output]
        usage = {
            name: {"inputTokens": tokens[0], "cachedInputTokens": 0, "outputTokens": tokens[1]}
            for name, tokens in (("total", self._total), ("last", self.tokens))
        }
        self._tell("thread/tokenUsage/updated", tokenUsage=usage)

    def _request(self, method, **params):
        number = self.next_id()
        emit(id=number, method=method, params={"threadId": self._thread, "turnId": self._turn, **params})
        return self.answer_to(number)

    # --- the script ---

    def do_think(self, words):
        thought = {"type": "reasoning", "id": self._item_id(), "summary": [words], "content": []}
        self._tell("item/started", item={**thought, "summary": []})
        self._tell("item/completed", item=thought)

    def do_write(self, words):
        if not self.written:
            self._message_id = self._item_id()
            self._tell("item/started", item={"type": "agentMessage", "id": self._message_id, "text": ""})
        self.written += words
        self._tell("item/agentMessage/delta", itemId=self._message_id, delta=words)

    def do_say(self, words):
        self._say(words)
        self._paid()

    def _say(self, words):
        self.do_write(words)
        self._tell("item/completed", item={"type": "agentMessage", "id": self._message_id, "text": self.written})
        self.written = ""

    def do_empty(self, _):
        self._paid()

    def do_cut(self, words):
        self._say(words)
        words = "Incomplete response returned, reason: max_output_tokens"
        raise Failed({"message": words, "codexErrorInfo": "other", "additionalDetails": None})

    def do_bash(self, command):
        item = {
            "type": "commandExecution",
            "id": self.call_id(),
            "command": f"/bin/bash -lc {_quoted(command)}",
            "cwd": os.getcwd(),
            "status": "inProgress",
            "aggregatedOutput": None,
            "exitCode": None,
        }
        self._tell("item/started", item=item)
        if self._is_asked_first and not self._is_allowed(item):
            self.reply = "declined"
            self._tell("item/completed", item={**item, "status": "declined"})
        else:
            output, code = self.shell(command)
            self.reply = output.strip()
            done = {"status": "failed" if code else "completed", "aggregatedOutput": output, "exitCode": code}
            self._tell("item/completed", item={**item, **done, "durationMs": 1})
        self._paid()
        self.deliver()

    def _is_allowed(self, item):
        about = {"kind": "command", "itemId": item["id"], "command": item["command"], "cwd": item["cwd"]}
        answer = self._request("item/commandExecution/requestApproval", **about)
        return answer["decision"] == "accept"

    def do_question(self, words):
        question, *choices = map(str.strip, words.split("|"))
        options = [{"label": choice, "description": ""} for choice in choices]
        asked = {"id": "choice", "header": "Choice", "question": question, "options": options, "isOther": False}
        answer = self._request("item/tool/requestUserInput", itemId=self.call_id(), questions=[asked])
        self.reply = " ".join(answer["answers"].get("choice", {}).get("answers", []))

    def do_hand_over(self, words):
        status, _, text = words.partition(" ")
        payload = {"status": status, "error" if status == "ERROR" else "result": text}
        item = {"type": "dynamicToolCall", "id": self.call_id(), "tool": FINALIZE, "arguments": payload}
        self._tell("item/started", item={**item, "status": "inProgress"})
        answer = self._request("item/tool/call", callId=item["id"], tool=FINALIZE, arguments=payload)
        status = "completed" if answer["success"] else "failed"
        self._tell("item/completed", item={**item, **answer, "status": status})
        self._paid()

    def do_fail(self, words):
        status, _, text = words.partition(" ")
        raise Failed(self._error(int(status), text))

    def do_retry(self, words):
        status, _, text = words.partition(" ")
        error = {**self._error(int(status), text), "message": "Reconnecting... 1/5"}
        self._tell("error", error={**error, "additionalDetails": text}, willRetry=True)

    def _error(self, status, text):
        info = {"responseTooManyFailedAttempts": {"httpStatusCode": status}}
        message = f"unexpected status {status}: {text}"
        return {"message": message, "codexErrorInfo": info, "additionalDetails": None}


def _quoted(text):
    return "'" + text.replace("'", "'\"'\"'") + "'"


def main():
    if "generate-json-schema" in sys.argv:
        write_schemas(option("--out"))
    else:
        Codex().converse()


if __name__ == "__main__":
    main()
