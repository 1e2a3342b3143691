"""A run that this process holds as a wrapper does: locked, recorded, talked to; what its child does is made up."""

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
    """Takes what is said to a made-up child; the script of its run looks at what came."""

    talks = True
    is_stdin_done = False

    def __init__(self) -> None:
        self.is_waiting = False
        self.is_interrupted = False
        """Whether its turn is to end."""
        self.told: list[tuple[str, str]] = []
        """Messages that it has not answered, each with its id."""
        self.verdict: tuple[Verdict, str] | None = None
        """The reply to what it asked."""

    def tell(self, message_id: str, text: str) -> None:
        self.told.append((message_id, text))

    def interrupt(self, *, stays: bool) -> None:
        self.is_interrupted = True

    def reply(self, request_id: str, verdict: Verdict, text: str) -> None:
        self.verdict = verdict, text

    def denied(self, what: str) -> None:
        """Do nothing: the script of the run knows."""

    def close(self) -> None:
        self.is_waiting = False


class HeldRun:
    """Held until it is ended or closed."""

    def __init__(
        self, project: Project, meta: RunMeta, began: float, history: Sequence[tuple[float, Event]] = ()
    ) -> None:
        """Hold a run that `began` at a time, in seconds since 1970; `history` is what happened since, with times."""
        self.meta = meta
        self._began = began
        self._run_dir = project.run_dir(meta.run_id)
        self._lock = artifacts.create_run(project.runs, meta, meta.task)
        own = os.getpid()
        started = processes.start_time(own)
        here = (processes.host(), processes.boot_id(), processes.pid_namespace())
        facts = RunnerFacts(RunnerKind.PROCESS, *here, own, started, processes.machine_id())
        files.write_whole(f"{self._run_dir}/{paths.RUNNER}", msgspec.json.encode(facts))
        first = RunStarted(
            pid=own,
            child_pid=own,
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
        self.said = ""
        """What its child said last."""

    @property
    def run_id(self) -> str:
        return self.meta.run_id

    def write(self, event: Event) -> None:
        """Record what the child does; what it was writing is done with that."""
        self._sentence.clear()
        match event:
            case UsageReported():
                self._usage = add_usage(self._usage, event)
            case AssistantText(text=text):
                self.said = text
            case _:
                pass
        self._mailbox.take(event)
        self.touch()

    def writing(self, piece: str) -> None:
        """Show more of the sentence that the child is writing."""
        self._sentence.add(msgspec.json.encode(piece)[1:-1])
        self._records.sentence(self._sentence)
        self.touch()

    def touch(self) -> None:
        """Write what waits for its time, so that readers see it."""
        self._records.touch(time.monotonic())

    def hear(self) -> None:
        """Take what was sent to the run: replies, messages, interrupts."""
        self._mailbox.look()

    def deliver(self) -> str:
        """Take the next message that was said to the child; return its text, empty where there is none."""
        if not self.child.told:
            return ""
        message_id, text = self.child.told.pop(0)
        self.child.is_waiting = False
        self._mailbox.take(Message(id=message_id, state=MessageState.DELIVERED))
        return text

    def pause(self) -> None:
        """End the turn that was interrupted, and wait for what is said next."""
        self.child.is_interrupted, self.child.is_waiting = False, True
        self._sentence.clear()
        self._mailbox.take(Interrupted())
        self.touch()

    def wanted_end(self) -> RunReason | None:
        """Return how somebody wants it ended; None where nobody does."""
        stop = artifacts.read_stop(self._run_dir)
        if stop is None:
            return None
        return RunReason.KILLED if stop.force else RunReason(stop.reason)

    def end(self, reason: RunReason) -> None:
        """Write its end and let go of it."""
        self._mailbox.detach()
        self._mailbox.close("the run ended first")
        is_done = reason is RunReason.DONE
        result = RunResult(
            run_id=self.run_id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by="wrapper",
            stop_reason="stop" if is_done else None,
            final_text=self.said or None,
            partial=not is_done and bool(self.said),
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
        """Let go of it without an end, as a wrapper that dies does."""
        self._records.close()
        os.close(self._lock)
