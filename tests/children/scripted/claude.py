"""A scripted Claude Code that speaks streaming JSON like version 2.1, with control requests and without."""

import glob
import json
import os
import sys
import uuid
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from player import MODEL, Interrupted, Player, call_server, emit, option, part_for

FINALIZE = "mcp__subdeck__subagent_finalize"
STOPPED = "[Request interrupted by user for tool use]"


def new_id():
    return str(uuid.uuid4())


def projects():
    home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")
    return os.path.join(home, "projects")


class Failed(Exception):
    """The turn ends with an error."""


class Claude(Player):
    def __init__(self):
        super().__init__()
        self.talks = option("--input-format") == "stream-json"
        self.session_id = option("--resume") or option("--session-id") or new_id()
        self.is_error = False
        self._is_kept = "--no-session-persistence" not in sys.argv
        self._prompts = self._earlier()
        self._budget = float(option("--max-budget-usd", "inf"))
        self._spent = self._told = 0.0
        self._used = [0, 0]
        """Tokens since the last result."""
        self._queue = deque()
        self._is_working = self._hooks = False
        self._message_id = ""
        self._answer = ""

    def _earlier(self):
        path = glob.glob(os.path.join(projects(), "*", f"{self.session_id}.jsonl"))
        if "--resume" in sys.argv and not path:
            emit(
                type="result",
                subtype="error_during_execution",
                is_error=True,
                session_id=self.session_id,
                errors=[f"No conversation found with session ID: {self.session_id}"],
            )
            raise SystemExit(1)
        if not path:
            return []
        with open(path[0], "rb") as file:
            return [json.loads(line)["message"]["content"] for line in file]

    def emit(self, **message):
        emit(**{"uuid": new_id(), **message, "session_id": self.session_id})

    # --- what comes ---

    def take(self, message):
        kind, request = message["type"], message.get("request", {})
        if kind == "user" and self._is_working:
            self.messages.append(message)
        elif kind == "user":
            self._queue.append(message)
        elif kind == "control_response":
            response = message["response"]
            emit(type="control_response", response=response)
            self.answers[response["request_id"]] = response["response"]
        elif request.get("subtype") == "initialize":
            self._hooks = bool(request.get("hooks"))
            self._respond(message["request_id"], {})
        elif request.get("subtype") == "interrupt":
            self._respond(message["request_id"], {"still_queued": [each.get("uuid") for each in self.messages]})
            self.is_interrupted = self._is_working
        else:
            raise ValueError(f"unknown message {message}")

    def _respond(self, request_id, response):
        answer = {"subtype": "success", "request_id": request_id, "response": response}
        emit(type="control_response", response=answer)

    def converse(self):
        while True:
            message = self.next_of(self._queue)
            self._is_working = True
            self.turn(message["message"]["content"][0]["text"], message)
            self._is_working = self.is_interrupted = False
            self._queue.extend(self.messages)
            self.messages.clear()

    def _request(self, **request):
        request_id = new_id()
        emit(type="control_request", request_id=request_id, request=request)
        return self.answer_to(request_id)

    # --- turns ---

    def turn(self, prompt, message=None):
        self._prompts.append(prompt)
        self.reply = prompt
        if self._is_kept:
            path = os.path.join(projects(), "scripted", f"{self.session_id}.jsonl")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a") as file:
                file.write(json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}) + "\n")
        servers = [{"name": "subdeck", "status": "connected"}] if "--mcp-config" in sys.argv else []
        self.emit(type="system", subtype="init", cwd=os.getcwd(), model=MODEL, mcp_servers=servers)
        self._answer = ""
        try:
            if message:
                self.show(message)
            self.play(part_for(self._prompts))
        except Interrupted:
            kind = "streaming" if self.written else "tools"
            self._break_off()
            self.emit(type="user", message={"role": "user", "content": [{"type": "text", "text": STOPPED}]})
            self._result("error_during_execution", terminal_reason=f"aborted_{kind}", errors=["interrupted"])
        except Failed as failure:
            subtype, fields = failure.args
            self._result(subtype, **fields)
        else:
            self._result("success", is_error=False, terminal_reason="completed", result=self._answer)

    def show(self, message):
        if self.talks:
            self.emit(
                type="user",
                message=message["message"],
                uuid=message.get("uuid", new_id()),
                parent_tool_use_id=None,
                isReplay=True,
            )
        return message["message"]["content"][0]["text"]

    def _break_off(self):
        if self.written:
            self._line({"type": "text", "text": self.written}, aborted=True)
        self.written = ""

    def _result(self, subtype, *, is_error=True, **fields):
        self.is_error = is_error
        given, output = self._used
        usage = {"inputTokens": given, "outputTokens": output, "costUSD": self._spent - self._told}
        self._used, self._told = [0, 0], self._spent
        self.emit(
            type="result",
            subtype=subtype,
            is_error=is_error,
            total_cost_usd=self._spent,
            model_usage_since_last_result={MODEL: usage} if given else {},
            **fields,
        )

    # --- messages of the model ---

    def message(self, blocks, stop):
        if not self.written:
            self._begin()
        for block in blocks:
            self._line(block)
        self.written = ""
        given, output = self.tokens
        self._event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop},
                "usage": {"input_tokens": given, "output_tokens": output},
            }
        )
        self._event({"type": "message_stop"})
        self._spent += self.cost
        self._used = [self._used[0] + given, self._used[1] + output]
        if self._spent > self._budget:
            errors = [f"Reached maximum budget (${self._budget})"]
            raise Failed("error_max_budget_usd", {"terminal_reason": "budget", "errors": errors})

    def _begin(self):
        self._message_id = f"msg_{new_id()}"
        usage = {"input_tokens": self.tokens[0], "output_tokens": 1}
        self._event({"type": "message_start", "message": {"id": self._message_id, "model": MODEL, "usage": usage}})
        if self.thought:
            self._line({"type": "thinking", "thinking": self.thought})
        self.thought = ""

    def _event(self, event):
        self.emit(type="stream_event", event=event, parent_tool_use_id=None)

    def _line(self, block, **more):
        message = {"id": self._message_id, "role": "assistant", "model": MODEL, "content": [block], "stop_reason": None}
        self.emit(type="assistant", message=message, parent_tool_use_id=None, **more)

    # --- tools ---

    def _call(self, name, args, carry_out):
        call_id = self.call_id()
        self.message([{"type": "tool_use", "id": call_id, "name": name, "input": args}], "tool_use")
        try:
            text, is_error = carry_out(call_id)
        except Interrupted:
            text = "The user doesn't want to proceed with this tool use."
            self._tool_result(call_id, text, is_error=True)
            raise
        self._tool_result(call_id, text, is_error=is_error)
        self.deliver()

    def _tool_result(self, call_id, text, *, is_error):
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
        self.emit(type="user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)

    def _denial(self, name, args, call_id):
        """Return why a call is not made; empty if it is. Hooks come before permissions, and those before people."""
        called = {"tool_name": name, "tool_input": args, "tool_use_id": call_id}
        is_asked = False
        if self._hooks:
            about = {"hook_event_name": "PreToolUse", "cwd": os.getcwd(), **called}
            said = self._request(subtype="hook_callback", callback_id="hook", input=about, tool_use_id=call_id)
            is_asked = said.get("hookSpecificOutput", {}).get("permissionDecision") == "ask"
        if not is_asked and name in option("--allowedTools").split(","):
            return ""
        if not self.talks or option("--permission-mode") == "dontAsk":
            why = f"Permission to use {name} has been denied because nobody can be asked."
            self.emit(type="system", subtype="permission_denied", tool_name=name, tool_use_id=call_id, message=why)
            return why
        answer = self._request(subtype="can_use_tool", tool_name=name, input=args, tool_use_id=call_id)
        return "" if answer["behavior"] == "allow" else answer["message"]

    # --- the script ---

    def do_think(self, words):
        self.thought = words

    def do_say(self, words):
        self.do_write(words)
        self._answer = self.written
        self.message([{"type": "text", "text": self.written}], "end_turn")

    def do_write(self, words):
        if not self.written:
            self._begin()
        self.written += words
        delta = {"type": "text_delta", "text": words}
        self._event({"type": "content_block_delta", "index": 0, "delta": delta})

    def do_empty(self, _):
        self.message([], "end_turn")

    def do_cut(self, words):
        """Try to continue three times, then fail."""
        for _ in range(4):
            self.do_write(words)
            self.message([{"type": "text", "text": self.written}], "max_tokens")
        self._fail("Claude's response exceeded the 32000 output token maximum.", None)

    def do_bash(self, command):
        args = {"command": command, "description": "shell"}

        def carry_out(call_id):
            if denial := self._denial("Bash", args, call_id):
                self.reply = denial
                return denial, True
            output, code = self.shell(command)
            self.reply = output.strip()
            return (f"Exit code {code}\n" if code else "") + output, code != 0

        self._call("Bash", args, carry_out)

    def do_question(self, words):
        question, *choices = map(str.strip, words.split("|"))
        options = [{"label": choice, "description": ""} for choice in choices]
        args = {"questions": [{"question": question, "header": "Choice", "options": options, "multiSelect": False}]}

        def carry_out(call_id):
            answer = self._request(subtype="can_use_tool", tool_name="AskUserQuestion", input=args, tool_use_id=call_id)
            is_denied = answer["behavior"] != "allow"
            self.reply = answer["message"] if is_denied else answer["updatedInput"]["answers"][question]
            return self.reply, is_denied

        self._call("AskUserQuestion", args, carry_out)

    def do_hand_over(self, words):
        status, _, text = words.partition(" ")
        payload = {"status": status, "error" if status == "ERROR" else "result": text}
        server = json.loads(option("--mcp-config"))["mcpServers"]["subdeck"]
        command = [server["command"], *server["args"]]
        self._call(FINALIZE, payload, lambda _: call_server(command, "subagent_finalize", payload))

    def do_fail(self, words):
        status, _, text = words.partition(" ")
        self._fail(f"{status} {text}", int(status))

    def _fail(self, words, status):
        said = f"API Error: {words}"
        content = [{"type": "text", "text": said}]
        self.emit(
            type="assistant", message={"id": new_id(), "model": "<synthetic>", "content": content}, error="unknown"
        )
        fields = {"terminal_reason": "api_error", "api_error_status": status, "result": said}
        raise Failed("success", fields)

    def do_retry(self, words):
        status, _, text = words.partition(" ")
        self.emit(
            type="system",
            subtype="api_retry",
            attempt=1,
            max_retries=2,
            retry_delay_ms=596,
            error_status=int(status),
            error=text,
        )


def main():
    agent = Claude()
    if agent.talks:
        agent.converse()
    prompt = sys.stdin.buffer.read().decode()
    agent.is_open = False
    agent.turn(prompt)
    sys.exit(1 if agent.is_error else 0)


if __name__ == "__main__":
    main()
