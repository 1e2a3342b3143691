"""The deck of an operator in the middle of a day: 300 runs, of which 30 go on; none of them is a process."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.paths import Project, iso_time, project_key, state_file
from subdeck.core.run import artifacts
from subdeck.core.run.events import (
    AssistantText,
    Event,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.model import STATUS_OF, Group, PresetSource, RunMeta, RunReason, RunResult, Usage
from subdeck.core.system import files

from tests.bench import made_up
from tests.bench.made_up import HeldRun

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
LAST_WORDS = "The queue is read. Now its workers."
SILENT_FOR_S = 367
NEEDLE = "reconciliation_window"
"""Stands in one transcript alone."""

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


class MadeDeck:
    """The runs by what is special about them; those that go on do so until `close`."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._chance = random.Random(7)
        self._now = time.time()
        self._number = 0
        for number in range(ENDED - 10):
            self._usual(number)
        self.fixed = self._fixed()
        self.found = self._found()
        self.failed = tuple(self._crashed() for _ in range(3))
        self.asks = self._end("reviewer", "review the status codes", 4 * 60, (AssistantText(text=QUESTION),), QUESTION)
        self.new = tuple(self._usual(number, 60.0 * number + 60) for number in range(4))
        self.group = self._group()
        self.silent = tuple(self._silent(task) for task in ("look for races in the mailer", "list who calls coupons"))
        self.working = tuple(self._working() for _ in range(RUNNING - len(self.group) - len(self.silent)))
        seen = state_file("seen", project_key(project.root))
        files.write_state(seen, f"since {iso_time(self._now - 10 * 60)}\n".encode())

    def close(self) -> None:
        for run in (*self.group, *self.silent, *self.working):
            run.close()

    def _meta(self, preset: str, task: str, age: float) -> RunMeta:
        self._number += 1
        agent, model = MODELS[preset]
        at = self._now - age
        return replace(
            made_up.meta(self._number, self._project.root),
            run_id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{self._number:06x}",
            task=task,
            agent=agent,
            agent_command=(f"/usr/bin/{agent}",),
            created_at=iso_time(at),
            preset=preset,
            preset_source=PresetSource.PROJECT,
            resolved_model=model,
        )

    def _task(self) -> tuple[str, str]:
        preset = self._chance.choice(tuple(TASKS))
        return preset, self._chance.choice(TASKS[preset]).format(self._chance.choice(PLACES))

    def _usual(self, number: int, age: float | None = None) -> str:
        preset, task = self._task()
        reason = RunReason.DONE
        if age is None:
            age = 40 * 60 + number * 14 * DAY / ENDED
            reason = (RunReason.MODEL_ERROR, RunReason.STOPPED)[number % 2] if number % 13 == 0 else RunReason.DONE
        answer = f"{task[:1].upper()}{task[1:]}: it is decided in src/{preset[:4]}_{number % 7}.py:{number + 12}."
        events = (*(replace(made_up.at_work(n), seq=0) for n in range(number, number + 10)), AssistantText(text=answer))
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
        """Write a run that has ended so many seconds ago; return its id."""
        took = self._chance.uniform(20, 400)
        made = self._meta(preset, task, age + took)
        os.close(artifacts.create_run(self._project.runs, made, made.task))
        run_dir = self._project.run_dir(made.run_id)
        began = self._now - age - took
        all_events = (RunStarted(pid=1, child_pid=1, attempt=1, max_attempts=1), *events)
        end = RunEnded(status=STATUS_OF[reason], reason=reason)
        with open(os.path.join(run_dir, paths.EVENTS), "wb") as file:
            for seq, event in enumerate((*all_events, end), 1):
                at = iso_time(began + took * (seq - 1) / len(all_events))
                file.write(encode_event(replace(event, seq=seq, ts=at)))
        cost = round(self._chance.uniform(0.01, 0.6), 4)
        result = RunResult(
            run_id=made.run_id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by="wrapper",
            error_message=error,
            final_text=answer,
            resolved_model=made.resolved_model,
            usage=Usage(input=9000, output=self._chance.randrange(300, 4000), cost=cost, turns=4, tool_uses=6),
            started_at=iso_time(began),
            ended_at=iso_time(self._now - age),
            duration_ms=round(took * 1000),
        )
        with open(os.path.join(run_dir, paths.RESULT), "wb") as file:
            file.write(msgspec.json.encode(result))
        return made.run_id

    def _fixed(self) -> str:
        """A run that has edited a file."""
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
        """An old run with a word that nothing else has."""
        events = (AssistantText(text=f"The nightly job reads {NEEDLE} from the settings."),)
        return self._end("repo-scout", "find what the nightly job reads", 9 * DAY, events, "It reads one setting.")

    def _crashed(self) -> str:
        preset, task = self._task()
        error = "its wrapper died unexpectedly; what it left running was ended"
        events = [replace(made_up.at_work(n), seq=0) for n in range(5)]
        return self._end(preset, task, 5 * 60 + self._number, events, None, RunReason.LOST, error)

    def _held(self, preset: str, task: str, age: float, group: Group | None = None) -> HeldRun:
        made = replace(self._meta(preset, task, age), group=group)
        return HeldRun(self._project, 0, made, iso_time(self._now - age))

    def _silent(self, task: str) -> HeldRun:
        run = self._held("reviewer", task, 9 * 60)
        for pause in range(30, 0, -1):  # by its way: something each second
            run.write(AssistantText(text=f"I read part {30 - pause} of its queue."), self._now - SILENT_FOR_S - pause)
        run.write(AssistantText(text=LAST_WORDS), self._now - SILENT_FOR_S)
        return run

    def _group(self) -> tuple[HeldRun, ...]:
        """Runs that were launched together, whose tasks differ in the middle alone."""
        size = 8
        first = self._meta("fixer", "", 3 * 60).run_id
        self._number -= 1
        runs: list[HeldRun] = []
        for index in range(size):
            group = Group(first, index, size, size)
            run = self._held("fixer", GROUP_TASK.format(PLACES[index]), 3 * 60, group)
            self.work(run)
            runs.append(run)
        return tuple(runs)

    def _working(self) -> HeldRun:
        preset, task = self._task()
        run = self._held(preset, task, self._chance.uniform(15, 900))
        self.work(run)
        return run

    def work(self, run: HeldRun, steps: int = 6) -> None:
        """Have a run do some more."""
        begin = self._chance.randrange(0, 1000)
        for number in range(begin, begin + steps):
            event = made_up.at_work(number)
            if not isinstance(event, ToolCall | ToolResult):
                run.write(event)
        run.writing("The handler is mounted twice, so I look at which one comes fir")
