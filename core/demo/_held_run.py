"""A run held by this process as by a wrapper: locked, recorded, interactive; its agent is made up."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from .. import paths
from ..agents.sentence import Sentence
from ..paths import Project, iso_time
from ..run import artifacts
from ..run.artifacts import RunnerFacts
from ..run.events import AssistantText, Event, Interrupted, Message, RunStarted, UsageReported, encode_event
from ..run.fold import add_usage
from ..run.model import STATUS_OF, MessageState, RunMeta, RunnerKind, RunReason, RunResult, Usage, Verdict
from ..system import files, processes
from ..work.attribution import changes_by_tools
from ..wrapper.mailbox import Mailbox
from ..wrapper.records import Records, header
from ..wrapper.supervise import conclude


class Listener:
    """Receives messages for a made-up agent; its run's script reads them."""

    talks = True
    is_stdin_done = False

    def __init__(self) -> None:
        self.is_waiting = False
        self.is_interrupted = False
        """Whether its turn should end."""
        self.messages: list[tuple[str, str]] = []
        """Unanswered messages, each with its id."""
        self.verdict: tuple[Verdict, str] | None = None
        """The reply to its request."""

    def tell(self, message_id: str, text: str) -> None:
        self.messages.append((message_id, text))

    def interrupt(self, *, stays: bool) -> None:
        self.is_interrupted = True

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        self.verdict = verdict, text

    def denied(self, what: str) -> None:
        """Do nothing: the run's script handles it."""

    def close(self) -> None:
        self.is_waiting = False


class HeldRun:
    """Held until it is ended or closed."""

    def __init__(
        self, project: Project, meta: RunMeta, began: float, history: Sequence[tuple[float, Event]] = ()
    ) -> None:
        """Hold a run that `began` at a time, in seconds since 1970; `history` has its events since, with times."""
        self.meta = meta
        self._began = began
        self._run_dir = project.run_dir(meta.run_id)
        self._lock = artifacts.create_run(project.runs, meta, meta.task)
        pid = os.getpid()
        started = processes.start_time(pid)
        here = (processes.host(), processes.boot_id(), processes.pid_namespace())
        facts = RunnerFacts(RunnerKind.PROCESS, *here, pid, started, processes.machine_id())
        files.write_whole(f"{self._run_dir}/{paths.RUNNER}", msgspec.json.encode(facts))
        first = RunStarted(
            pid=pid,
            child_pid=pid,
            pid_started=started,
            child_pid_started=started,
            boot_id=here[1],
            pid_namespace=here[2],
            attempt=1,
            max_attempts=1,
        )
        past = [(began, first), *history]
        numbered = (replace(event, seq=seq, ts=iso_time(at)) for seq, (at, event) in enumerate(past, 1))
        files.write_new(f"{self._run_dir}/{paths.EVENTS}", b"".join(map(encode_event, numbered)))
        files.make_private_directory(project.active)
        activity = f"{project.active}/{meta.run_id}"
        self._records = Records(self._run_dir, activity, caps=meta.log_caps, written=len(past), show=lambda piece: None)
        descriptor = files.open_file(activity, os.O_WRONLY)
        os.utime(descriptor, (past[-1][0], past[-1][0]))
        os.close(descriptor)
        self._records.transcript(header(meta))
        self._records.started_at = iso_time(began)
        self._sentence = Sentence()
        self._usage = Usage()
        self.child = Listener()
        self._mailbox = Mailbox(meta, self._run_dir, self._records)
        self._mailbox.attach(self.child)
        self.last_message = ""
        """The agent's last message."""

    @property
    def run_id(self) -> str:
        return self.meta.run_id

    def write(self, event: Event) -> None:
        """Record an agent's event, which ends the text it was writing."""
        self._sentence.clear()
        match event:
            case UsageReported():
                self._usage = add_usage(self._usage, event)
            case AssistantText(text=text):
                self.last_message = text
            case _:
                pass
        self._mailbox.take(event)
        self.touch()

    def writing(self, piece: str) -> None:
        """Show more of the sentence that the agent is writing."""
        self._sentence.add(msgspec.json.encode(piece)[1:-1])
        self._records.sentence(self._sentence)
        self.touch()

    def touch(self) -> None:
        """Write pending records that are due, for readers."""
        self._records.touch(time.monotonic())

    def hear(self) -> None:
        """Read the run's inbox: replies, messages, interrupts."""
        self._mailbox.look()

    def deliver(self) -> str:
        """Take the agent's next message; return its text, empty if there is none."""
        if not self.child.messages:
            return ""
        message_id, text = self.child.messages.pop(0)
        self.child.is_waiting = False
        self._mailbox.take(Message(id=message_id, state=MessageState.DELIVERED))
        return text

    def pause(self) -> None:
        """End the interrupted turn, and wait for a message."""
        self.child.is_interrupted, self.child.is_waiting = False, True
        self._sentence.clear()
        self._mailbox.take(Interrupted())
        self.touch()

    def wanted_end(self) -> RunReason | None:
        """Return the reason of a stop request; None without one."""
        stop = artifacts.read_stop(self._run_dir)
        if stop is None:
            return None
        return RunReason.KILLED if stop.force else RunReason(stop.reason)

    def end(self, reason: RunReason) -> None:
        """Write its result, and release it."""
        self._mailbox.detach()
        self._mailbox.close("the run ended first")
        is_done = reason is RunReason.DONE
        result = RunResult(
            run_id=self.run_id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by="wrapper",
            stop_reason="stop" if is_done else None,
            final_text=self.last_message or None,
            partial=not is_done and bool(self.last_message),
            resolved_model=self.meta.resolved_model,
            usage=self._usage,
            started_at=iso_time(self._began),
            ended_at=paths.now_iso(),
            duration_ms=round((time.time() - self._began) * 1000),
            changes=changes_by_tools(self.meta, self._run_dir),
        )
        conclude(self._run_dir, self._records, result)
        os.close(self._lock)

    def close(self) -> None:
        """Release it without a result, as a dying wrapper does."""
        self._records.close()
        os.close(self._lock)
