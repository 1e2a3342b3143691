"""An agent that speaks pi's JSON mode and does what its task says, a command a line; see `COMMANDS`.

Standard library only, and modules that take milliseconds are loaded by the few commands that need them: `python -I -S`
has to start it quickly. Paths are relative to its cwd.
"""

import os
import sys
import time


def quoted(text):
    """A JSON string, without the 15 ms of importing json."""
    signs = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return '"' + "".join(signs.get(sign, sign if sign >= " " else f"\\u{ord(sign):04x}") for sign in text) + '"'


def write(line):
    rest = memoryview(line.encode("utf-8", "surrogateescape") + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


def message(content, stop_reason, more=""):
    cost = os.environ.get("PUPPET_COST", "0.5")
    usage = f'{{"input":10,"output":5,"cacheRead":2,"cacheWrite":1,"cost":{{"total":{cost}}}}}'
    write(
        f'{{"type":"message_end","message":{{"role":"assistant","content":[{content}],"provider":"fake",'
        f'"model":"puppet","usage":{usage},"stopReason":"{stop_reason}"{more}}}}}'
    )


def text(said):
    return f'{{"type":"text","text":{quoted(said)}}}'


def say(said):
    message(text(said), "stop")


def ask_for_more(said):
    """A turn after which the agent continues."""
    message(text(said), "toolUse")


def say_many(number):
    for count in range(int(number)):
        say(f"line {count}")


def say_big(size):
    say("x" * int(size))


def cut_off(said):
    message(text(said), "length")


def empty(_):
    message("", "stop")


def error(said):
    message("", "error", f',"errorMessage":{quoted(said)}')


def update(said):
    delta = f'{{"type":"text_delta","contentIndex":0,"delta":{quoted(said)}}}'
    write(f'{{"type":"message_update","assistantMessageEvent":{delta}}}')


def tool(name):
    write(f'{{"type":"tool_execution_start","toolCallId":"c1","toolName":"{name}","args":{{"path":"a.py"}}}}')
    result = '{"content":[{"type":"text","text":"found"}]}'
    write(f'{{"type":"tool_execution_end","toolCallId":"c1","toolName":"{name}","isError":false,"result":{result}}}')


def call(name, args, result="done"):
    """Report a tool call, and its result."""
    words = ",".join(f"{quoted(key)}:{quoted(value)}" for key, value in args.items())
    start = f'"toolCallId":"{name} {words.__hash__()}","toolName":"{name}"'
    write(f'{{"type":"tool_execution_start",{start},"args":{{{words}}}}}')
    content = f'{{"content":[{{"type":"text","text":{quoted(result)}}}]}}'
    write(f'{{"type":"tool_execution_end",{start},"isError":false,"result":{content}}}')


def put(words):
    """Write a file without reporting it: `PATH TEXT`."""
    path, _, content = words.partition(" ")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(content.replace("\\n", "\n"))


def save(words):
    """Write a file with the tool for it."""
    put(words)
    path, _, content = words.partition(" ")
    call("write", {"path": path, "content": content.replace("\\n", "\n")})


def edit(words):
    """Replace a text by another, `PATH OLD NEW`, with the tool for it."""
    path, old, new = words.split(" ")
    with open(path) as file:
        content = file.read()
    put(f"{path} {content.replace(old, new, 1)}")
    call("edit", {"path": path, "oldText": old, "newText": new})


def bash(command):
    import subprocess

    subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=2, check=True)
    call("bash", {"command": command})


def finish(_):
    """Like pi since 0.80.4: it reports that no more output comes."""
    write('{"type":"agent_end","messages":[],"willRetry":false}')
    write('{"type":"agent_settled","aborted":false}')


def finish_old(_):
    """Like pi 0.73.1: the end of the turn is its only report."""
    write('{"type":"agent_end","messages":[]}')


def answer(said):
    say(said)
    finish("")


def raw(escaped):
    write(escaped.encode().decode("unicode_escape"))


def garbage(size):
    os.write(1, os.urandom(int(size)) + b"\n")


def complain(said):
    os.write(2, said.encode() + b"\n")


def close_stdout(_):
    os.close(1)


def leave(code):
    os._exit(int(code))


def die(name):
    import signal

    os.kill(os.getpid(), getattr(signal, name))


def deaf(_):
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def hang(_):
    while True:
        time.sleep(1000)


def touch(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.005)


def linger(seconds):
    time.sleep(float(seconds))


def detach(path, environment=None):
    """Leave a process in a separate session behind, and its pid in a file."""
    import subprocess

    nowhere = subprocess.DEVNULL
    sleeper = subprocess.Popen(
        ["sleep", "1000"], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, env=environment
    )
    with open(path + ".new", "w") as file:
        file.write(str(sleeper.pid))
    os.rename(path + ".new", path)


def detach_unmarked(path):
    kept = ("PATH", "SUBDECK_TEST_ID")
    detach(path, {name: os.environ[name] for name in kept if name in os.environ})


def daemonise(path):
    """Leave an orphaned process behind that has dropped its session and its mark."""
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        detach_unmarked(path)
        os._exit(0)


COMMANDS = {
    function.__name__.replace("_", "-"): function
    for function in (
        say, ask_for_more, say_many, say_big, cut_off, empty, error, update, tool, finish, finish_old, answer, raw,
        garbage, complain, close_stdout, leave, die, deaf, hang, touch, wait_for, linger, detach, detach_unmarked,
        daemonise, put, save, edit, bash,
    )
}  # fmt: skip


def perform(script):
    for line in script.splitlines():
        command, _, argument = line.strip().partition(" ")
        if command:
            COMMANDS[command](argument)


if __name__ == "__main__":
    perform(sys.stdin.buffer.read().decode("utf-8", "replace"))
