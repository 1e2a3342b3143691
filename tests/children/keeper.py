"""An agent that keeps its own conversation and reports its id, like Claude Code, Codex or an ACP agent.

    keeper.py claude|codex|acp ID [FLAG…]

It records in the file `resumed` of its directory which conversation it had to continue, reports ID for a new one, and
answers "Again." to a task with the word "again"; with any other task it keeps working.
"""

import json
import sys
import time

KIND, ID, *FLAGS = sys.argv[1:]
USED = {"input_tokens": 10, "output_tokens": 2}


def say(**fields):
    print(json.dumps(fields, separators=(",", ":")), flush=True)


def resumed(session):
    with open("resumed", "a") as file:
        file.write(f"{session}\n")
    return session or ID


def work(task):
    while "again" not in task:
        time.sleep(60)


def claude():
    session = resumed(FLAGS[FLAGS.index("--resume") + 1] if "--resume" in FLAGS else "")
    say(type="system", subtype="init", session_id=session, model="m")
    work(sys.stdin.readline() if "--input-format" in FLAGS else sys.stdin.read())
    content = {"id": "m1", "content": [{"type": "text", "text": "Again."}], "stop_reason": None}
    say(type="assistant", session_id=session, message=content)
    say(type="result", session_id=session, subtype="success", is_error=False, result="Again.")


def codex():
    if "app-server" in FLAGS:
        sys.exit("there is none")
    session = resumed(FLAGS[FLAGS.index("resume") + 1] if "resume" in FLAGS else "")
    say(type="thread.started", thread_id=session)
    work(sys.stdin.read())
    say(type="item.completed", item={"id": "i", "type": "agent_message", "text": "Again."})
    say(type="turn.completed", usage=USED)


def acp():
    for line in sys.stdin:
        message = json.loads(line)
        params, result = message.get("params", {}), {}
        match message.get("method"):
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            case "session/new":
                result = {"sessionId": resumed("")}
            case "session/load":
                resumed(params["sessionId"])
            case "session/prompt":
                work(params["prompt"][0]["text"])
                text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Again."}}
                update = {"sessionId": params["sessionId"], "update": text}
                say(jsonrpc="2.0", method="session/update", params=update)
                result = {"stopReason": "end_turn"}
        if "id" in message:
            say(jsonrpc="2.0", id=message["id"], result=result)


{"claude": claude, "codex": codex, "acp": acp}[KIND]()
