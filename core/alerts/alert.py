"""The alerts that a run's changes produce; pure.

The id of an alert is made from its condition, so that every process that finds the condition makes the same id.
Annotations are evaluated here, as in `run.model`.
"""

import os

from msgspec import Struct

from ..paths import Project, iso_time, project_key
from ..run.enumerations import AlertKind
from ..run.events import Request
from ..run.model import LauncherKind, RequestKind, RunMeta, RunReason, RunResult, RunStatus
from ..run.outcome import REASONS
from ..run.requests import is_marked, request_hash, request_text
from ..run.snapshot import ends_with_question
from ..text.plain import one_line, plain
from ..text.visible import visible

LONGEST_TEXT = 16_000
"""Characters kept of each text of an alert."""
_REQUESTED = (RunReason.STOPPED, RunReason.KILLED, RunReason.CANCELLED, RunReason.INTERRUPTED)
"""Requested ends: there is nothing to report."""
_ASKED = {
    RequestKind.PERMISSION: "a permission request",
    RequestKind.QUESTION: "a question",
    RequestKind.CHOICE: "a question",
    RequestKind.FORM: "a form",
}


class OpenRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that waits for a reply. All texts are as the user may see them: every character visible."""

    id: str
    hash: str
    """Binds a reply to this request: `subdeck reply RUN --request ID --hash HASH`."""
    kind: str
    """permission, question, choice or form."""
    deadline: str = ""
    """When it is denied without a reply; empty for never."""
    text: str = ""
    """The whole request, in lines."""
    command: str = ""
    diff: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()


class Alert(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of one run, or of a day's budget."""

    id: str
    """A file name, the same for every process that finds the condition."""
    kind: AlertKind
    at: float
    """Seconds since 1970."""
    what: str
    """The condition in words, such as `needs input: a question`."""
    run_id: str = ""
    """Empty for a day's budget."""
    project: str = ""
    """Root of the project; empty for the budget of all projects."""
    preset: str = ""
    task: str = ""
    text: str = ""
    """Details, such as the answer or the error."""
    asked: OpenRequest | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether an agent waits for the user: it is sent at once."""
        return self.asked is not None

    @property
    def run_dir(self) -> str:
        """Directory of its run; empty without one."""
        return Project(self.project).run_dir(self.run_id) if self.run_id else ""

    @property
    def subject(self) -> str:
        """Its run, or the budget's project: it limits how often something of one kind is sent."""
        return self.run_id or project_key(self.project or "/")


def request_alert(meta: RunMeta, root: str, request: Request, *, at: float) -> Alert:
    """Return the alert of a request that an agent now waits on."""
    asked = OpenRequest(
        id=request.id,
        hash=request_hash(meta.run_id, request),
        kind=request.kind,
        deadline="" if meta.answer_timeout is None else iso_time(at + meta.answer_timeout),
        text=_kept(request_text(request, meta.cwd)),
        command=_kept(visible(request.command)),
        diff=_kept(visible(request.diff)),
        question=_kept(visible(request.text)),
        choices=tuple(one_line(visible(choice), 200) for choice in request.choices[:50]),
    )
    warning = ", with invisible characters" if is_marked(request) else ""
    return _of_run(
        meta,
        root,
        id=request_alert_id(meta.run_id, request.id),
        kind=AlertKind.NEEDS_INPUT,
        at=at,
        what=f"needs input: {_ASKED.get(request.kind, 'a request')}{warning}",
        asked=asked,
    )


def request_alert_id(run_id: str, request_id: str) -> str:
    """Return the id of the alert of a run's request."""
    return f"{run_id}.{request_id}"


def end_alert(meta: RunMeta, root: str, result: RunResult, *, at: float) -> Alert | None:
    """Return the alert of a run's end; None if it was requested, or if a parent agent waits for it."""
    if is_awaited_by_parent(meta) or (kind := _kind_of_end(result)) is None:
        return None
    has_failed_check = result.check is not None and result.check.failed
    what = {
        AlertKind.FINISHED: "finished",
        AlertKind.NEEDS_INPUT: "finished with a question",
        AlertKind.BUDGET: REASONS[RunReason.BUDGET],
    }.get(kind, f"{result.status}: {REASONS.get(result.reason, result.reason)}")
    if has_failed_check and result.status is RunStatus.COMPLETED:
        what = "finished, but its check failed"
    text = result.error_message or result.final_text or ""
    return _of_run(meta, root, id=f"{meta.run_id}.end", kind=kind, at=at, what=what, text=_kept(plain(text)))


def idle_alert(meta: RunMeta, root: str, last_seq: int, *, at: float) -> Alert:
    """Return the alert of an agent that has been idle since its event `last_seq`."""
    return _of_run(
        meta,
        root,
        id=idle_alert_id(meta.run_id, last_seq),
        kind=AlertKind.IDLE,
        at=at,
        what="idle for longer than usual",
    )


def idle_alert_id(run_id: str, last_seq: int) -> str:
    """Return the id of the alert of an idle run."""
    return f"{run_id}.idle-{last_seq}"


def budget_alert(day: str, project: str, words: str, *, at: float) -> Alert:
    """Return the alert of a daily budget that is used up; `project` is empty for that of all projects.

    `words` has the figures, such as `$20.10 of $20.00`.
    """
    name = project_key(project) if project else "all"
    what = "the project's budget for today is used up" if project else "the day's budget is used up"
    return Alert(id=f"budget.{day}.{name}", kind=AlertKind.BUDGET, at=at, what=what, project=project, text=words)


def is_awaited_by_parent(meta: RunMeta) -> bool:
    """Return whether a parent agent waits for the run's result."""
    return not meta.background and meta.launched_by.kind in (LauncherKind.MCP, LauncherKind.PI)


def _kind_of_end(result: RunResult) -> AlertKind | None:
    if result.reason in _REQUESTED:
        return None
    if result.reason is RunReason.BUDGET:
        return AlertKind.BUDGET
    if result.status is not RunStatus.COMPLETED or (result.check is not None and result.check.failed):
        return AlertKind.FAILED
    return AlertKind.NEEDS_INPUT if ends_with_question(result.final_text or "") else AlertKind.FINISHED


def _of_run(meta: RunMeta, root: str, **fields: object) -> Alert:
    return Alert(
        run_id=meta.run_id,
        project=root.encode("utf-8", "replace").decode("utf-8", "replace"),
        preset=one_line(meta.title, 100),
        task=one_line(meta.description or meta.task, 300),
        **fields,  # type: ignore[arg-type]
    )


def project_name(root: str) -> str:
    """Return a project's name for a person."""
    return one_line(os.path.basename(root.rstrip("/")) or root, 100)


def _kept(text: str) -> str:
    missing = len(text) - LONGEST_TEXT
    return text if missing <= 0 else f"{text[:LONGEST_TEXT]}… (+{missing:,})"
