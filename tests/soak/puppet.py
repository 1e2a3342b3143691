"""A child that speaks pi's JSON mode, misbehaves in one way, and keeps a journal of its actions.

Its task is a line `soak BEHAVIOUR JOURNAL`. The journal is the truth that a run's records are compared with: each line
is a moment (nanoseconds, monotonic), a word and an argument. Standard library only, so that `python -I -S` starts it
fast.
"""

import fcntl
import os
import signal
import sys
import time

PACE = 0.05
"""Seconds between two of its actions."""
ESCAPED_S = 30
"""Maximum lifetime of escaped processes."""
FLOOD_TEXTS, FLOOD_BYTES = 15, 200_000

LINK = 'trap "" TERM; [ "$1" -gt 0 ] && { sleep 0.01; sh -c "$0" "$0" $(($1 - 1)) & }'
"""A shell that exits as soon as it has started the next one."""
DEAF_SLEEP = f'trap "" TERM INT HUP; sleep {ESCAPED_S}'


def text_of(number, size=0):
    """The text that a puppet writes; readers of its journal can compute it."""
    said = f"This is what puppet number {number} found out. "
    return said + "x" * max(0, size - len(said))


class Puppet:
    def __init__(self, journal):
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._directory = os.path.dirname(journal)
        self._said = 0

    def note(self, word, argument=""):
        os.write(self._journal, f"{time.monotonic_ns()} {word} {argument}\n".encode())

    def note_others_at(self, session):
        """Hold the agent session that this child continues, and record whether another child holds it."""
        path = os.path.join(self._directory, os.path.basename(session))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.note("beside", "another child")

    def work(self):
        """Leave something in the worktree."""
        with open("found.txt", "w") as file:
            file.write("found\n")
        self.note("worked", os.getcwd())

    def write(self, line):
        rest = memoryview(line.encode())
        while rest:
            rest = rest[os.write(1, rest) :]

    def begin_sentence(self, text):
        """Write a sentence as a model does: piece by piece."""
        middle = len(text) // 2
        for piece in (text[:middle], text[middle:]):
            delta = f'{{"type":"text_delta","contentIndex":0,"delta":"{piece}"}}'
            self.write(f'{{"type":"message_update","assistantMessageEvent":{delta}}}\n')
            self.note("wrote", piece)

    def say(self, size=0, stop_reason="toolUse"):
        self._said += 1
        text = text_of(self._said, size)
        if not size:
            self.begin_sentence(text)
        self.note("saying", f"{self._said} {size}")
        usage = '{"input":10,"output":5,"cacheRead":2,"cacheWrite":1,"cost":{"total":0.5}}'
        self.write(
            '{"type":"message_end","message":{"role":"assistant","provider":"fake","model":"puppet",'
            f'"content":[{{"type":"text","text":"{text}"}}],"usage":{usage},"stopReason":"{stop_reason}"}}}}\n'
        )
        self.note("said", f"{self._said} {size}")
        time.sleep(PACE)

    def finish(self):
        self.say(stop_reason="stop")
        self.note("ending")
        self.write('{"type":"agent_end","messages":[],"willRetry":false}\n{"type":"agent_settled","aborted":false}\n')
        self.note("ended")

    def leave(self, script, environment):
        """Daemonise a shell: two forks, a new session, no inherited descriptors, perhaps no environment either."""
        first = os.fork()
        if first:
            os.waitpid(first, 0)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 256)
        os.open(os.devnull, os.O_RDWR)
        os.dup(0)
        os.dup(0)
        os.execve("/bin/sh", ["sh", "-c", script, script, str(ESCAPED_S * 100)], environment)


def hang():
    while True:
        signal.pause()


def plain(puppet):
    puppet.say()
    puppet.say()
    puppet.finish()


def daemon(puppet):
    puppet.leave(DEAF_SLEEP, dict(os.environ))
    plain(puppet)


def bare_daemon(puppet):
    puppet.leave(DEAF_SLEEP, {})
    plain(puppet)


def chain(puppet):
    puppet.leave(LINK, dict(os.environ))
    plain(puppet)


def bare_chain(puppet):
    puppet.leave(LINK, {})
    plain(puppet)


def deaf(puppet):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    puppet.say()
    hang()


def bare(puppet):
    """Its environment has no marks of its run; see `main`."""
    deaf(puppet)


def flood(puppet):
    for _ in range(FLOOD_TEXTS):
        puppet.say(FLOOD_BYTES)
    puppet.finish()


def endless(puppet):
    """A line that never ends."""
    puppet.say()
    puppet.write('{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"')
    while True:
        puppet.write("x" * 65536)
        time.sleep(PACE / 10)


def stopped(puppet):
    puppet.say()
    os.kill(os.getpid(), signal.SIGSTOP)
    puppet.finish()


def sentence(puppet):
    """Hangs in the middle of its text."""
    puppet.say()
    puppet.begin_sentence("What was on the screen when it was ended.")
    puppet.note("hangs")
    hang()


FINISHING = (plain, daemon, bare_daemon, chain, bare_chain, flood)
HANGING = (deaf, bare, endless, stopped, sentence)
BEHAVIOURS = {function.__name__.replace("_", "-"): function for function in (*FINISHING, *HANGING)}


def main():
    is_bare = sys.argv[1:2] == ["--again"]
    task = sys.argv[2] if is_bare else sys.stdin.buffer.read().decode()
    line = next((line for line in task.splitlines() if line.startswith("soak ")), "")
    if not line:
        return  # called for something else than a run
    _, behaviour, journal = line.split()
    if behaviour == "bare" and not is_bare:
        os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, "--again", task, *sys.argv[1:]], {})
    puppet = Puppet(journal)
    puppet.note("begun", os.getpid())
    if os.path.exists("uncommitted.txt"):
        puppet.work()
    if "--session" in sys.argv:
        puppet.note_others_at(sys.argv[sys.argv.index("--session") + 1])
    BEHAVIOURS[behaviour](puppet)


if __name__ == "__main__":
    main()
