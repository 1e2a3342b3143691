"""A run that a person has open in the agent: it waits here, without an agent process, until it is returned and told how
to continue.

To the mailbox this is the stream of a waiting agent: messages to the run are passed to it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from .. import paths
from ..agents.child import Start
from ..agents.loader import interactive_side
from ..errors import SubdeckError, in_one_line
from ..run import artifacts
from ..run.environment import for_agent
from ..run.events import Decision, HandedBack, Notice, Request, TakenOver, UsageReported
from ..run.fold import add_usage
from ..run.inbox import InboxEntry
from ..run.model import NoticeLevel, RequestKind, RunReason, StopRequest, Usage, Verdict
from ..run.outcome import Outcome, StreamFacts, decide
from ..run.requests import BY_AGENT, FINISH_HERE, GO_ON
from ..system import files, processes
from ..system.line_file import LineTail
from ..system.log import log_fault
from ..text.plain import one_line
from ._wakeup import read_available, wake_on_signals

if TYPE_CHECKING:
    from ..agents.interactive import Interactive
    from ._queue import Signals
    from ._spending import Spending
    from .mailbox import Mailbox
    from .records import Records

GO_ON_WORDS = "Continue."
"""The agent's prompt if no message was sent."""
ARRIVAL_S = 10.0
"""Seconds that a run started for a person waits for one before it asks how to continue."""
LOOK_S = 1.0
"""Seconds between checks that the conversation is still open; a signal triggers one at once."""
ENDING_S = 2.0
"""Seconds beyond the grace that a stopped run waits for the person's terminal to end the agent's program."""
_ASKED = "hand"
"""The id of the question asked here."""


class Hand:
    """One run's wait, from the end of its agent to the start of the next one, or to its end."""

    talks = True
    is_waiting = True
    is_stdin_done = False

    def __init__(self, start: Start, records: Records, signals: Signals, mailbox: Mailbox, spending: Spending) -> None:
        self._start = start
        self._run_dir = start.run_dir
        self._records = records
        self._signals = signals
        self._mailbox = mailbox
        self._spending = spending
        self._program: Interactive | None = interactive_side(start.meta.kind)
        self._began = time.monotonic()
        self._by = ""
        """Its last holder."""
        self._is_out = False
        """Whether a person has it open."""
        self._is_asked = False
        self._seen: tuple[str, int] | None = None
        """The conversation's file and its size before."""
        self._messages: dict[str, str] = {}
        """Messages to the run since, by id."""
        self._finishes = False
        self._goes_on = False
        self._stop: StopRequest | None = None
        self._signal: str | None = None
        self.not_ended: tuple[str, ...] = ()
        self.facts: StreamFacts | None = None
        """Facts of the conversation; None without any."""
        self.seconds = 0.0
        """How long it took; no limit counts this time."""

    def run(self) -> str | None:
        """Wait for a decision on how to continue; return the agent's next prompt, or None if the run ends."""
        woken = wake_on_signals()
        poller = select.poll()
        poller.register(woken, select.POLLIN)
        foot = self._mailbox.foot
        if foot:
            poller.register(foot.descriptor, select.POLLIN)
        self._mailbox.attach(self)
        try:
            while not self._is_over():
                now = time.monotonic()
                self._records.touch(now)
                due = self._records.activity.due()
                wait = LOOK_S if due is None else min(LOOK_S, max(0.001, due - now))
                for descriptor, _ in poller.poll(1000 * wait):
                    if foot and descriptor == foot.descriptor and not foot.read():
                        poller.unregister(descriptor)
                for _ in read_available(woken):
                    continue
        finally:
            self._forget_invitation()
            self._mailbox.detach()
            self.seconds = time.monotonic() - self._began
        if self._stop or self._signal or not self._goes_on:
            return None
        self._mailbox.put_into_next_prompt(self._messages)
        return "\n\n".join(text.strip() for text in self._messages.values()) or GO_ON_WORDS

    def outcome(self, before: StreamFacts) -> Outcome:
        """Return the result of a run that ends here; `before` has the facts of its agent."""
        facts = self.facts or before
        if facts.finished and facts.stop_reason != "aborted":
            facts = replace(facts, ended=None)
        else:
            why = "the run was opened in the agent and ended there without a complete answer"
            facts = replace(facts, finished=False, ended=RunReason.INTERRUPTED, error_message=why)
        return decide(facts, stop=self._stop, signal=self._signal, finalize=self._start.meta.finalize)

    def _is_over(self) -> bool:
        self._look_for_stop()
        if self._stop or self._signal:
            self._end_by_force()
            return True
        self._mailbox.look()
        if not self._is_out and (wish := self._mailbox.take_wish()):
            self._hand_out(wish)
        if self._is_out and not self._is_held():
            self._take_back()
        if self._is_out:
            return False
        if self._messages and not self._finishes:
            self._goes_on = True
        if self._finishes or self._goes_on or not os.path.exists(self._run_dir):
            return True
        self._ask()
        self._mailbox.advance(time.monotonic())
        return self._finishes or self._goes_on

    # --- open in the agent ---

    def _hand_out(self, wish: InboxEntry) -> None:
        """Write how to start the agent's program, for the waiting process."""
        self._withdraw_question()
        self._by = wish.by
        try:
            invitation = self._invitation(wish.id)
            files.write_whole(os.path.join(self._run_dir, paths.INVITATION), invitation)
        except (SubdeckError, OSError) as error:
            self._mailbox.refuse(wish, one_line(in_one_line(error), 300))
            return
        self._is_out = True
        self._records.event(TakenOver(by=wish.by, message=wish.id))
        self._mailbox.settle(wish)

    def _invitation(self, wish_id: str) -> bytes:
        """Return how to start its program. Raises SubdeckError if it has none, or has nothing to open."""
        if self._program is None:
            raise SubdeckError(f"{self._start.meta.agent} does not have its own UI")
        command = self._program.command(self._start)
        path = self._program.conversation(self._start)
        self._seen = (path, _size(path)) if path else None
        environment = for_agent(command.env, command.unset, self._start.meta.cwd)
        invitation = {"id": wish_id, "argv": command.argv, "cwd": self._start.meta.cwd, "environment": environment}
        return msgspec.json.encode({**invitation, "grace": self._start.meta.grace_seconds})

    def _is_held(self) -> bool:
        """Whether the conversation is open, according to the kernel: `takeover` or only the program lives."""
        try:
            lock = files.open_file(os.path.join(self._run_dir, paths.HAND), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            words = os.pread(lock, 100, 0).split()
            return not files.try_lock(lock) or (
                len(words) == 2 and all(map(bytes.isdigit, words)) and processes.is_alive(int(words[0]), int(words[1]))
            )
        except OSError:
            return True
        finally:
            os.close(lock)

    def _take_back(self) -> None:
        """Read the conversation, now that it is complete."""
        self._is_out = False
        self._forget_invitation()
        self._read()
        self._records.event(HandedBack(by=self._by))

    def _read(self) -> None:
        program = self._program
        path = program.conversation(self._start) if program else None
        if program is None or path is None:
            return
        before = self._seen[1] if self._seen and self._seen[0] == path else 0
        try:
            if _size(path) < before:
                raise OSError("its file was rewritten")
            conversation = program.read(LineTail(path, before).lines(), self._by)
        except Exception as error:
            log_fault("reading the interactive conversation", error)
            text = f"cannot read the interactive conversation: {one_line(str(error), 200)}"
            self._records.event(Notice(level=NoticeLevel.WARNING, text=text))
            return
        used = Usage(tool_uses=conversation.facts.usage.tool_uses)
        for event in conversation.events:
            if isinstance(event, UsageReported):
                event = self._spending.take(event)
                used = add_usage(used, event)
            self._records.event(event)
        if conversation.events:
            facts = conversation.facts
            self.facts = replace(facts, usage=used) if self._start.meta.prices else facts

    def _forget_invitation(self) -> None:
        files.remove(os.path.join(self._run_dir, paths.INVITATION))

    # --- how to continue ---

    def _ask(self) -> None:
        """Ask how to continue, once the run was returned."""
        if self._is_asked or (not self._by and time.monotonic() < self._began + ARRIVAL_S):
            return
        self._is_asked = True
        self._mailbox.take(
            Request(
                id=_ASKED,
                kind=RequestKind.CHOICE,
                title="was returned",
                text="Finish here, or continue? A message to the run also continues it.",
                choices=(FINISH_HERE, GO_ON),
            )
        )

    def _withdraw_question(self) -> None:
        if self._is_asked:
            self._is_asked = False
            self._mailbox.take(Decision(request=_ASKED, verdict=Verdict.WITHDRAWN, by=BY_AGENT))

    def tell(self, message_id: str, text: str) -> None:
        self._messages[message_id] = text

    def interrupt(self, *, stays: bool) -> None: ...

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        self._is_asked = False
        if verdict is Verdict.REPLY and text != FINISH_HERE:
            self._goes_on = True
            self._messages |= {} if text == GO_ON else {"": text}
        else:
            self._finishes = True

    def denied(self, what: str) -> None:
        """Do nothing: a denial ends nothing here."""

    def close(self) -> None:
        """Assume that no more messages come."""
        self._finishes = True

    # --- stopping ---

    def _look_for_stop(self) -> None:
        with suppress(OSError):  # a check each second follows
            self._stop = artifacts.read_stop(self._run_dir, certain=True)
        if self._signals.caught and not self._stop:
            self._signal = signal.Signals(self._signals.caught[0]).name
        self._signals.caught.clear()

    def _end_by_force(self) -> None:
        """Wait until `takeover` has ended the agent's program, then kill it from here."""
        if not self._is_out:
            return
        patience = 0.0 if self._stop and self._stop.force else self._start.meta.grace_seconds + ENDING_S
        deadline = time.monotonic() + patience
        while self._is_held() and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._is_held():
            from ..project.liveness import LeftOvers

            try:
                left_overs = LeftOvers(os.path.basename(self._run_dir), self._run_dir, None, None)
                self.not_ended = left_overs.end()
            except OSError as error:
                log_fault("ending the processes of an interactive session", error)
        self._take_back()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
