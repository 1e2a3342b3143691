"""The common part of the scripted agents: each plays the script in its task, and speaks one kind of agent's protocol.

A script is the text of a task from a line `parts` on. Its parts are separated by a line `then`: the first prompt of a
conversation gets the first part, each further prompt the next one, regardless of its text. A part has a command a line:

`think TEXT`, `say TEXT` (an answer), `empty` (an answer without text), `write TEXT` (the beginning of an answer), `cut
TEXT` (one that reaches the length limit), `bash COMMAND` (asks for permission as its program does), `question TEXT |
CHOICE | CHOICE`, `hand-over STATUS TEXT` (a structured result), `fail STATUS TEXT` (an error of the model), `retry
STATUS TEXT` (one after which the program tries again), `hear` (waits for a message), and the methods of `Player` below.
`{reply}` stands for the last prompt, message, reply, decision or output.

Standard library only, so that `python -I -S` starts it quickly.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque

from puppet import close_stdout, complain, deaf, die, leave, touch

MODEL = "scripted"
GARBAGE = "}{ this is not a message \x1b[31m\x00 \\ud800"


class Interrupted(Exception):
    """The turn has to end now."""


def part_for(prompts):
    """Return the part of the last script that answers its newest prompt."""
    scripts = [number for number, prompt in enumerate(prompts) if "parts\n" in prompt]
    parts = prompts[scripts[-1]].partition("parts\n")[2].split("\nthen\n")
    return parts[min(len(prompts) - 1 - scripts[-1], len(parts) - 1)]


def emit(**message):
    rest = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


def option(name, default=""):
    """Return the value of a flag in argv."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def call_server(command, tool, arguments):
    """Call a tool of an MCP server; return its text, and whether it is an error."""
    requests = (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    )
    said = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    done = subprocess.run(command, input=said.encode(), stdout=subprocess.PIPE, check=True)
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
    if tool not in [offered["name"] for offered in answers[2]["tools"]]:
        return f"no tool {tool}", True
    return answers[3]["content"][0]["text"], answers[3]["isError"]


class Player:
    def __init__(self):
        self.is_open = True
        """Whether more may come on stdin."""
        self.answers = {}
        """The other side's answers, by the ids of the requests."""
        self.messages = deque()
        """Messages since the turn began that the model has not read."""
        self.is_interrupted = False
        self.reply = ""
        self.thought = ""
        self.written = ""
        """The written part of an unfinished message."""
        self.tokens, self.cost = (100, 20), 0.001
        """Of each message."""
        self._rest = b""
        self._asked = self._called = 0
        self._patience = 0.0

    # --- what comes ---

    def take(self, message):
        """Handle a line of stdin."""
        raise NotImplementedError

    def look(self, seconds=0.0):
        """Read stdin for this time; None waits. Raises Interrupted if the turn has to end."""
        if self.is_open:
            if select.select((0,), (), (), seconds)[0]:
                piece = os.read(0, 1 << 16)
                self.is_open = bool(piece)
                *lines, self._rest = (self._rest + piece).split(b"\n")
                for line in filter(None, lines):
                    self.take(json.loads(line))
        elif seconds is None:
            signal.pause()
        else:
            time.sleep(seconds)
        if self.is_interrupted:
            raise Interrupted

    def answer_to(self, request_id):
        """Wait for an answer. Raises SystemExit if stdin has ended."""
        while request_id not in self.answers:
            if not self.is_open:
                raise SystemExit(0)
            self.look(None)
        return self.answers.pop(request_id)

    def next_id(self):
        self._asked += 1
        return self._asked

    def call_id(self):
        self._called += 1
        return f"call_{os.getpid()}_{self._called}"

    # --- what it does ---

    def play(self, part):
        """Play a part to its end, then answer messages sent during it. Raises Interrupted."""
        for line in part.splitlines():
            command, _, argument = line.strip().partition(" ")
            if command:
                self.look()
                getattr(self, f"do_{command.replace('-', '_')}")(argument.replace("{reply}", self.reply))
        self.look()
        while self.messages:
            self.deliver()
            self.do_say(f"Heard: {self.reply}")

    def deliver(self):
        """Give the model the messages sent during the turn, as its program shows them."""
        while self.messages:
            self.reply = self.show(self.messages.popleft())

    def show(self, message):
        """Show a message that the model gets; return its text."""
        raise NotImplementedError

    def do_say(self, words):
        """Have the model write an answer."""
        raise NotImplementedError

    def shell(self, command):
        """Run a command; return its output and exit code. Raises Interrupted, after its end."""
        process = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                self.look(0.005)
        finally:
            if process.poll() is None:
                process.kill()
            output = process.communicate()[0].decode()
        return output, process.returncode

    def next_of(self, queue):
        """Wait for the next prompt; exit if stdin ends first."""
        while not queue:
            if not self.is_open:
                self.finish()
            self.look(None)
        return queue.popleft()

    def finish(self):
        """Exit as a program whose conversation was closed."""
        time.sleep(self._patience)
        raise SystemExit(0)

    def do_hear(self, _):
        while not self.messages:
            self.look(0.005)
        self.deliver()

    def do_hang(self, _):
        while True:
            self.look(None)

    def do_wait_for(self, path):
        while not os.path.exists(path):
            self.look(0.005)

    def do_usage(self, words):
        """Tokens in and out, and dollars, of each message from now on."""
        given, output, cost = words.split()
        self.tokens, self.cost = (int(given), int(output)), float(cost)

    def do_environment(self, path):
        """Write the environment to a file."""
        with open(f"{path}.new", "w") as file:
            json.dump(dict(os.environ), file)
        os.rename(f"{path}.new", path)

    def do_linger(self, seconds):
        """Take this long to exit."""
        self._patience = float(seconds)

    def do_garbage(self, _):
        os.write(1, GARBAGE.encode() + b"\n")

    def do_touch(self, path):
        touch(path)

    def do_leave(self, code):
        leave(code)

    def do_die(self, name):
        die(name)

    def do_deaf(self, _):
        deaf("")

    def do_complain(self, words):
        complain(words)

    def do_close_stdout(self, _):
        """End all output; later output is lost."""
        close_stdout("")
        signal.pause()
