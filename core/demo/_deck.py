"""A deck in the middle of a day: 300 runs, 30 of them running, which this process holds and plays."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from .. import paths
from ..agent_kinds import bundled
from ..paths import Project, iso_time
from ..project.read_marks import SINCE, line, marks_file
from ..run.events import (
    AssistantText,
    Event,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from ..run.model import (
    STATUS_OF,
    Group,
    LaunchedBy,
    LauncherKind,
    Permissions,
    PresetSource,
    RunMeta,
    RunnerKind,
    RunReason,
    RunResult,
    Usage,
)
from ..run.signature import with_signature
from ..system import files
from ..system.directory import opened
from ..work.attribution import changes_by_tools
from ._held_run import HeldRun
from ._script import begin_request, reading_steps, sentence_of, steps_of

ENDED, RUNNING = 270, 30
DAY = 24 * 3600.0

MODELS = {
    "repo-scout": ("pi", "local/qwen3-coder"),
    "reviewer": ("claude", "anthropic/sonnet"),
    "fixer": ("codex", "openai/gpt-5-codex"),
    "docs-writer": ("pi", "hosted/mistral-large"),
}
TASKS = {
    "repo-scout": ("find where {} is decided", "list who calls {}", "which settings change {}?"),
    "reviewer": ("review the last change to {}", "look for races in {}", "check the errors of {}"),
    "fixer": ("fix the flaky test of {}", "make {} idempotent", "remove the dead code in {}"),
    "docs-writer": ("write a guide to {}", "describe the API of {}", "update the change log for {}"),
}
PLACES = (
    *("the token check", "order placing", "the cart", "refunds", "the price cache", "webhooks", "the mailer"),
    *("stock counts", "the search index", "coupons", "shipping labels", "the admin pages", "currency rounding"),
)
GROUP_TASK = "port the handler of {} to the new router, keep its tests, and say what could not be kept"
QUESTION = "Two callers rely on the old status code. Shall I change them as well?"
FIXED = "Refunds are idempotent now: the key is kept with the order."
READINGS = (
    ("The queue first: who puts orders into it?", "src/queue/put.py"),
    ("Orders come from two places. Now the table that keeps them.", "src/queue/table.py"),
    ("Rows are claimed by id. I check what happens to a claim whose worker dies.", "src/queue/claim.py"),
    ("A claim expires after a minute, which is shorter than the longest job.", "src/queue/settings.py"),
    ("So a slow job runs twice. Is there a guard against that?", "src/queue/guard.py"),
    ("The guard compares ids, but a retry gets a new one.", "src/queue/retry.py"),
    ("Retries wait longer each time, up to an hour.", "src/queue/backoff.py"),
    ("The backoff has no jitter: all retries of an outage come at once.", "src/queue/outage.py"),
    ("Failed jobs go to a second table. Who reads it?", "src/queue/failed.py"),
    ("Only the report. Last, the tests of the queue.", "tests/test_queue.py"),
)
"""Messages and files of a run before it is idle."""
LAST_WORDS = "The queue is read. Now its workers."
SILENT_FOR_S = 367
_SHORT_IDS, _STRIDE = 0x1000000, 0x9E3779
"""Spread short ids over their whole range, like those of real runs."""
_KIND = bundled()[0]
"""The kind of the made-up agents. It needs no program, to list models or to open a run in the agent."""

ANSWERS = {
    "repo-scout": "`{file}:{line}` decides it, and nothing else does.\n\n- `check()` reads it first\n"
    "- the settings only **name** it",
    "reviewer": "## Two findings\n\n1. `{file}:{line}` returns before the lock is released.\n2. The rest is *fine*.",
    "fixer": "Done in `{file}`, and the tests pass.\n\n```python\nif order.was_refunded_with(key):\n"
    "    return order.refund_of(key)\n```",
    "docs-writer": "Written, with **{line} lines**. It links to [the guide]({file}).",
}
"""The agents' answers, by preset."""
NEEDLE = "reconciliation_window"
"""A word in only one transcript."""

DIFF = """--- a/src/refunds.py
+++ b/src/refunds.py
@@ -12,7 +12,9 @@ def refund(order, amount):
     \"\"\"Give money back, once for each key.\"\"\"
-    if order.refunded:
-        raise AlreadyRefunded(order.id)
-    order.refunded = amount
+    key = order.refund_key or new_key()
+    if order.was_refunded_with(key):
+        return order.refund_of(key)
+    order.note_refund(key, amount)
     payments.give_back(order, amount)
-    return None
+    return order.refund_of(key)
"""


def write_presets(project: Project) -> None:
    """Write the presets of the runs."""
    files.make_private_directory(project.home)
    for name, (agent, model) in MODELS.items():
        description = TASKS[name][0].format("orders")
        text = f"---\nname: {name}\ndescription: {description}\nagent: {agent}\nmodel: {model}\n---\n"
        files.write_whole(os.path.join(project.home, f"{name}.md"), text.encode())


class MadeDeck:
    """The deck's runs, grouped by their role; the running ones run until `close`."""

    def __init__(self, project: Project, *, asks_leave: bool = False) -> None:
        """`asks_leave`: one of the running runs has a permission request."""
        self.project = project
        self.chance = random.Random(7)  # noqa: S311 - the same deck each time
        self._now = time.time()
        self._number = 0
        self._runs = opened(project.runs, make=True)
        for number in range(ENDED - 10):
            self._usual(number)
        self.fixed = self._fixed()
        self.found = self._found()
        self.failed = tuple(self._crashed() for _ in range(3))
        self.asks = self._end("reviewer", "review the status codes", 4 * 60, (AssistantText(text=QUESTION),), QUESTION)
        self.new = tuple(self._usual(number, 60.0 * number + 60) for number in range(4))
        self.group = self._group()
        self.silent = tuple(self._silent(task) for task in ("look for races in the mailer", "list who calls coupons"))
        self.waiting = (self.asking(0, 90.0),) if asks_leave else ()
        held = len(self.group) + len(self.silent) + len(self.waiting)
        self.working = tuple(self.starting(self.chance.uniform(15, 900)) for _ in range(RUNNING - held))
        files.write_state(marks_file(project.root), line(SINCE, iso_time(self._now - 10 * 60)))
        self._runs.close()

    def close(self) -> None:
        for run in (*self.group, *self.silent, *self.waiting, *self.working):
            run.close()

    def starting(self, age: float = 0.0) -> HeldRun:
        """Hold another run at work, begun `age` seconds ago."""
        preset, task = self._task()
        return self._at_work(self._meta(preset, task, age), age)

    def asking(self, number: int, age: float = 0.0) -> HeldRun:
        """Hold a run with a permission request; `number` selects its kind."""
        meta = self._meta("fixer", "make refunds idempotent, and push the branch", age)
        meta = replace(meta, permissions=Permissions(ask=("bash", "edit")))
        run = self._held(meta, age)
        begin_request(run, number)
        return run

    def _meta(self, preset: str, task: str, age: float) -> RunMeta:
        self._number += 1
        agent, model = MODELS[preset]
        at = time.time() - age
        return RunMeta(
            run_id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{self._number * _STRIDE % _SHORT_IDS:06x}",
            task=task,
            cwd=self.project.root,
            agent=agent,
            agent_kind=_KIND,
            agent_command=(),
            runner=RunnerKind.PROCESS,
            created_at=iso_time(at),
            launched_by=LaunchedBy("operator", LauncherKind.APP),
            background=True,
            preset=preset,
            preset_source=PresetSource.PROJECT,
            requested_model=model,
            resolved_model=model,
        )

    def _task(self) -> tuple[str, str]:
        preset = self.chance.choice(tuple(TASKS))
        return preset, self.chance.choice(TASKS[preset]).format(self.chance.choice(PLACES))

    def _usual(self, number: int, age: float | None = None) -> str:
        preset, task = self._task()
        reason = RunReason.DONE
        if age is None:
            age = 40 * 60 + number * 14 * DAY / ENDED
            reason = (RunReason.MODEL_ERROR, RunReason.STOPPED)[number % 2] if number % 13 == 0 else RunReason.DONE
        file = f"src/{preset[:4]}_{number % 7}.py"
        answer = ANSWERS[preset].format(file=file, line=number + 12)
        events = (*steps_of(self.chance, 3), AssistantText(text=answer))
        return self._end(preset, task, age, events, answer if reason is RunReason.DONE else None, reason)

    def _end(
        self,
        preset: str,
        task: str,
        age: float,
        events: Sequence[Event],
        answer: str | None,
        reason: RunReason = RunReason.DONE,
        error: str | None = None,
    ) -> str:
        """Write a run that has ended `age` seconds ago; return its id."""
        took = self.chance.uniform(20, 400)
        made = self._meta(preset, task, age + took)
        began = self._now - age - took
        end = RunEnded(status=STATUS_OF[reason], reason=reason)
        all_events = (RunStarted(pid=1, child_pid=1, attempt=1, max_attempts=1), *events, end)
        lines = (
            encode_event(replace(event, seq=seq, ts=iso_time(began + took * (seq - 1) / len(all_events))))
            for seq, event in enumerate(all_events, 1)
        )
        record = msgspec.json.format(msgspec.json.encode(made), indent=1)
        self._runs.make(made.run_id)
        contents = {
            paths.META: with_signature(made.run_id, record),
            paths.PROMPT: task.encode(),
            paths.EVENTS: b"".join(lines),
        }
        self._write(made.run_id, contents)
        result = RunResult(
            run_id=made.run_id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by="wrapper",
            error_message=error,
            final_text=answer,
            resolved_model=made.resolved_model,
            usage=Usage(
                input=9000,
                output=self.chance.randrange(300, 4000),
                cost=round(self.chance.uniform(0.01, 0.6), 4),
                turns=4,
                tool_uses=6,
            ),
            started_at=iso_time(began),
            ended_at=iso_time(self._now - age),
            duration_ms=round(took * 1000),
            changes=changes_by_tools(made, self.project.run_dir(made.run_id)),
        )
        self._write(made.run_id, {paths.RESULT: msgspec.json.encode(result)})
        return made.run_id

    def _write(self, run_id: str, contents: dict[str, bytes]) -> None:
        """Write the files of a run that is not visible yet: one step per file, since there are a thousand of them."""
        with self._runs.inside(run_id) as run_dir:
            for name, content in contents.items():
                with open(run_dir.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb", buffering=0) as file:
                    file.write(content)

    def _fixed(self) -> str:
        """Write a run that has edited a file."""
        edit = {"path": "src/refunds.py", "edits": [{"oldText": "order.refunded", "newText": "order.refund_key"}]}
        events = (
            AssistantText(text="The key has to outlive the request, so I keep it with the order."),
            ToolCall(tool_call_id="1", tool_name="read", args={"path": "src/refunds.py"}),
            ToolResult(tool_call_id="1", tool_name="read", is_error=False, content="def refund(order, amount):\n"),
            ToolCall(tool_call_id="2", tool_name="edit", args=edit),
            ToolResult(tool_call_id="2", tool_name="edit", is_error=False, content="1 block replaced", diff=DIFF),
            UsageReported(
                input=9000, output=800, cache_read=0, cache_write=0, cost=0.04, model="m", stop_reason="stop"
            ),
            AssistantText(text=FIXED),
        )
        return self._end("fixer", "make refunds idempotent", 25 * 60, events, FIXED)

    def _found(self) -> str:
        """Write an old run with a unique word."""
        events = (AssistantText(text=f"The nightly job reads {NEEDLE} from the settings."),)
        return self._end("repo-scout", "find what the nightly job reads", 9 * DAY, events, "It reads one setting.")

    def _crashed(self) -> str:
        preset, task = self._task()
        error = "its wrapper died unexpectedly; what it left running was ended"
        events = tuple(steps_of(self.chance, 1))
        return self._end(preset, task, 5 * 60 + self._number, events, None, RunReason.LOST, error)

    def _held(self, meta: RunMeta, age: float, history: Sequence[tuple[float, Event]] = ()) -> HeldRun:
        """Hold an interactive run that began `age` seconds ago."""
        return HeldRun(self.project, replace(meta, talk=True), time.time() - age, history)

    def _silent(self, task: str) -> HeldRun:
        last_message_at = self._now - SILENT_FOR_S
        steps = [*reading_steps(READINGS)]  # one each second: long enough to learn its usual pause
        history = [(last_message_at - len(steps) + second, step) for second, step in enumerate(steps)]
        age = 9 * 60
        return self._held(
            self._meta("reviewer", task, age), age, [*history, (last_message_at, AssistantText(text=LAST_WORDS))]
        )

    def _group(self) -> tuple[HeldRun, ...]:
        """Hold runs of one launch, whose tasks differ only in the middle."""
        size, age = 8, 3 * 60
        metas = [self._meta("fixer", GROUP_TASK.format(subject), age) for subject in PLACES[:size]]
        grouped = (replace(meta, group=Group(metas[0].run_id, index, size, size)) for index, meta in enumerate(metas))
        return tuple(self._at_work(meta, age) for meta in grouped)

    def _at_work(self, meta: RunMeta, age: float) -> HeldRun:
        """Hold a run whose agent has done some steps, and is writing."""
        steps = [*steps_of(self.chance, 2)] if age else []
        at = time.time()
        history = [(at - age * (len(steps) - number) / (len(steps) + 1), step) for number, step in enumerate(steps)]
        run = self._held(meta, age, history)
        run.writing(sentence_of(self.chance))
        return run
