"""The facade: one project, its presets and its runs. All calls are synchronous.

Modules needed only to launch are imported by `launch`, which halves the cost of a plain `status`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from . import paths, trust
from .alerts.pending import pending
from .errors import RunBusy, SettingsError, SubdeckError, UnknownRun, UsageError, not_for_agents
from .project.registry import Registry, run_id_of
from .run import artifacts
from .run.model import OPERATOR, LaunchedBy, LauncherKind, RunMeta, RunResult, StopReason, Verdict, newer_schema
from .run.snapshot import RunSnapshot
from .text.plain import one_line

if TYPE_CHECKING:
    from .agents.choice import AgentChoice
    from .budget.allowance import DaySpending
    from .budget.ledger import DayBook
    from .config.settings import Settings
    from .config.workspace import Workspace
    from .launch.plan import Plan
    from .presets.catalog import PresetCatalog
    from .project.follower import Stop, Update
    from .project.session import SessionFile
    from .project.talk import Outcome, Sent
    from .run.events import EventTail
    from .runners.tmux import AttachInfo
    from .search.pattern import Pattern
    from .search.scan import Found
    from .spec.request import RunRequest
    from .system.line_file import LineFile
    from .work.changes import Work
    from .work.deletion import Unmerged
    from .work.operation import Act, TakenBack


_PARENTS = {LauncherKind.MCP: "the MCP client", LauncherKind.PI: "pi"}


class Engine:
    """Opened on one project by one session. Several can be open on the same project."""

    def __init__(self, cwd: str, session: str, kind: LauncherKind, *, readonly: bool) -> None:
        self.project = trust.find_project(cwd)
        if self.project.root.endswith("/tree"):  # the name of a run's worktree directory
            from .work.worktrees import project_of

            self.project = project_of(self.project)
        trust.check(self.project)
        self.cwd = cwd
        self._launched_by = LaunchedBy(session, kind)
        self._workspace: Workspace | None = None
        """None while the settings are the defaults and have not been requested."""
        if paths.has_settings(self.project):
            self.read_settings()
        self._work: Work | None = None
        self._day_book: DayBook | None = None
        """Today's spending, as last read."""
        self._spending: tuple[Settings, DaySpending] | None = None
        """The last spending report, and the settings it was computed with."""
        self._looks_by = None if readonly else kind
        """Signs the results of lost runs; None: lost runs are not finished."""

    @classmethod
    def open(
        cls,
        cwd: str | None = None,
        *,
        session: str = OPERATOR,
        kind: LauncherKind = LauncherKind.CLI,
        readonly: bool = False,
    ) -> Engine:
        """Open the project of a directory (default: the current one).

        Nothing is written; with `readonly` not even by reading, so a lost run stays `unknown`. Raises SettingsError,
        and UsageError for a bad session id, a missing directory, and a project whose directories belong to another user
        or lead out of it.
        """
        if session != OPERATOR:
            from .project.session import checked_session

            checked_session(session)
        where = os.path.abspath(os.path.expanduser(cwd or os.getcwd()))
        if not os.path.isdir(where):
            what = f"{one_line(where)} is not a directory"
            raise UsageError(what, hint="choose an existing directory", code="directory.not_found")
        return cls(where, session, kind, readonly=readonly)

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            from .config.settings import Settings  # 2 ms that a list of runs can skip
            from .config.workspace import Workspace

            self._workspace = Workspace(self.project, self.cwd, Settings())
        return self._workspace

    @property
    def settings(self) -> Settings:
        """The settings as last read: when opened, at a check or at a launch."""
        return self.workspace.settings

    def read_settings(self) -> Settings:
        """Read the settings again, as each launch does. On SettingsError the old ones stay effective. Wrong values that
        only the app reads are errors only for the command line.
        """
        from .config.workspace import load_settings

        settings = load_settings(self.project)
        if settings.faults and self._launched_by.kind is LauncherKind.CLI:
            raise settings.faults[0].error
        if settings != self.settings:
            self._workspace = replace(self.workspace, settings=settings)
        return self.settings

    def presets(self) -> PresetCatalog:
        """Read all presets now."""
        from .presets.catalog import discover

        return discover(self.workspace)

    def agent(self) -> AgentChoice:
        """Return the agent of a launch that names none. Raises AgentUnavailable."""
        from .agents.choice import choose_agent

        return choose_agent(self.settings.agent, self.settings)

    def check(self, request: RunRequest, *, asks: bool = False) -> tuple[SubdeckError, ...]:
        """Return the problems that would prevent a launch now. `asks`: query the agent, as a launch may."""
        try:
            return self._plan((request,), asks=asks)[0].problems
        except SettingsError as error:
            return (error,)

    def limited_spending(self) -> DaySpending | None:
        """Return today's spending and its budget; None without a budget. Costs one stat if nothing changed."""
        is_limited = self._workspace is not None and self._workspace.settings.has_day_budget
        return self.spending() if is_limited else None

    def spending(self) -> DaySpending:
        """Return today's spending, with or without a budget."""
        from .budget.allowance import day_spending, report
        from .budget.ledger import DayBook, local_day

        day, settings = local_day(), self.settings
        if self._day_book is None or self._day_book.day != day:
            self._day_book, self._spending = DayBook(day), None
        if self._day_book.look() or self._spending is None or self._spending[0] is not settings:
            self._spending = settings, day_spending(self._day_book, self.project.root, settings)
            if self._looks_by is not None:
                report(self._spending[1], self.project.root)
        return self._spending[1]

    def launch(self, requests: Sequence[RunRequest], *, background: bool) -> tuple[RunSnapshot, ...]:
        """Start a run for each request. Several form a group that runs `max_parallel` at a time.

        Return after each has given its first sign of life. If a request is wrong, raise a SubdeckError before anything
        exists; later failures are results. Settings and presets are read again.
        """
        from .launch.plan import as_group
        from .launch.start import launch

        plans = self._plan(requests, asks=True)
        planned = [plan.decide(background=background, launched_by=self._launched_by) for plan in plans]
        if len(planned) > 1:
            planned = as_group(planned, self.settings.max_parallel)
        launch(
            self.project,
            planned,
            self.settings,
            on_created=self._session.add_run if background else None,
            over_budget=any(request.over_budget for request in requests),
        )
        metas = [run.meta for run in planned]
        now_by_id = {run.run_id: run for run in self.snapshots([meta.run_id for meta in metas])}
        return tuple(now_by_id[meta.run_id] for meta in metas if meta.run_id in now_by_id)

    @property
    def work(self) -> Work:
        """The changes of the runs, and the actions on them."""
        if self._work is None:
            from .work.changes import Work

            self._work = Work(self.project)
        return self._work

    def find(self, words: Iterable[str], *, deleted: bool = False) -> tuple[str, ...]:
        """Return full run ids, each once, for ids, short ids or unambiguous prefixes. Raises UnknownRun. With
        `deleted`, search the trash.
        """
        names = self.deleted() if deleted else Registry(self.project, by=self._looks_by).names()
        trash = None if deleted else self.deleted
        return tuple(dict.fromkeys(run_id_of(word, names, trash) for word in words))

    def deleted(self) -> list[str]:
        """Return the ids of the runs in the trash, newest first."""
        return sorted(artifacts.run_ids(self.project.trash), reverse=True)

    def snapshots(self, run_ids: Iterable[str] | None = None, *, last: int | None = None) -> tuple[RunSnapshot, ...]:
        """Return the current state of runs, newest first; lost runs are finished first. With `run_ids` only these; with
        `last` the unfinished ones and that many of the newest; otherwise all.
        """
        registry = Registry(self.project, by=self._looks_by, only=run_ids)
        names = registry.names()
        registry.look({*names[:last], *registry.active_names()}, prove=True)
        if self._looks_by is not None and pending():
            from .alerts.dispatch import resume_sending

            resume_sending()
        return registry.snapshots()

    def result(self, run_id: str) -> RunResult | None:
        """Return the complete result; None until the run has finished."""
        return artifacts.read_result(self.project.run_dir(run_id))

    def meta(self, run_id: str) -> RunMeta:
        """Return the complete meta with the system prompt. Raises UnknownRun if it is unreadable."""
        where = self.project.run_dir(run_id)
        meta = artifacts.read_meta(where)
        if meta is None:
            raise UnknownRun(artifacts.fault_of(where, paths.META), where=where)
        _check_schema(meta)
        return meta

    def artifacts(self, run_id: str) -> dict[str, str]:
        """Return a run's existing files, name to path."""
        return artifacts.present(self.project.run_dir(run_id))

    def write_answer(self, run_id: str, answer: str) -> str:
        """Write a run's answer to its own file, for a client that cannot show it in full; return the path. If that
        fails, return the path of the result, which has the answer too.
        """
        from .system import files

        directory = self.project.run_dir(run_id)
        path = os.path.join(directory, paths.ANSWER)
        try:
            files.write_whole(path, answer.encode("utf-8", "replace"))
        except OSError:
            return os.path.join(directory, paths.RESULT)
        return path

    def events(self, run_id: str) -> EventTail:
        """Return a reader of the run's events, which yields each once as it appears."""
        from .run.events import EventTail

        return EventTail(os.path.join(self.project.run_dir(run_id), paths.EVENTS))

    def line_file(self, run_id: str, name: str) -> LineFile:
        """Return a file of a run for random access; it may not exist."""
        from .system.line_file import LineFile

        return LineFile(os.path.join(self.project.run_dir(run_id), name))

    def search(
        self,
        pattern: Pattern,
        run_ids: Iterable[str] | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        apart: bool = False,
    ) -> Iterator[Found]:
        """Yield the runs that match a pattern, newest first, with all hits in each; with `run_ids` only in these.
        `apart` searches in a separate process, which can be killed even if the pattern never ends.
        """
        if apart:
            from .search.process import search_apart as search
        else:
            from .search.scan import search

        names = set(artifacts.run_ids(self.project.runs))
        wanted = names if run_ids is None else names.intersection(run_ids)
        return search(self.project.runs, sorted(wanted, reverse=True), pattern, cancelled)

    def updates(
        self, stop: Stop, *, only: Iterable[str] | None = None, shown: Callable[[], Container[str]] | None = None
    ) -> Iterator[Update]:
        """Yield the project's changes until `stop` is set; the first update has the current state.

        Yields at least five times a second; an update may be empty. With `only`, follow only these runs. `shown` is
        called repeatedly and returns the ids of the runs on screen; other runs are read at most four times a second.
        Without it all are read at once.
        """
        from .project.follower import Follower

        def preset_dirs() -> tuple[str, ...]:
            from .presets.sources import preset_directories

            return tuple(path for preset_dir in preset_directories(self.workspace) for path in preset_dir.directories())

        registry = Registry(self.project, by=self._looks_by, only=only, looks_again=True)
        return Follower(self.project, registry, preset_dirs, shown).updates(stop)

    def follow(self, stop: Stop, *, only: Iterable[str] | None = None) -> Iterator[Update]:
        """Yield `updates`, and continue after a failure. Raises FollowingFailed after several failures."""
        from .project.follower import steady

        return steady(lambda: self.updates(stop, only=only), stop)

    def wait(
        self,
        run_ids: Sequence[str],
        *,
        timeout: float | None = None,
        on_update: Callable[[Update], None] | None = None,
        stop: Stop | None = None,
    ) -> tuple[RunSnapshot, ...]:
        """Block until all these runs have finished, `timeout` seconds have passed or `stop` is set.

        Return their current state, in the given order. `on_update` is called with each of the `updates`.
        """
        import threading  # which listing runs does not need

        deadline = None if timeout is None else time.monotonic() + timeout
        now_by_id: dict[str, RunSnapshot] = {}
        for update in self.follow(stop or threading.Event(), only=run_ids):
            now_by_id |= {run.run_id: run for run in update.runs}
            for run_id in update.removed:
                now_by_id.pop(run_id, None)
            if on_update:
                on_update(update)
            if update.complete and all(run.has_ended for run in now_by_id.values()):
                break
            if deadline is not None and time.monotonic() >= deadline:
                break
        return tuple(now_by_id[run_id] for run_id in run_ids if run_id in now_by_id)

    @property
    def _name(self) -> str:
        """The sender's name for a person: a parent agent's session id means nothing to one, and an agent's message is
        not the user's.
        """
        if paths.is_child():
            return "an agent"
        return _PARENTS.get(self._launched_by.kind, self._launched_by.session)

    def stop(
        self, run_ids: Iterable[str], *, force: bool = False, reason: StopReason = StopReason.STOPPED
    ) -> tuple[str, ...]:
        """Request runs to stop; return the ids of the unfinished ones.

        Soft: the agent gets TERM, and KILL after the grace; `force`: its whole process tree gets KILL at once. Raises
        SubdeckError for an untrusted run, or one that another machine or boot holds.
        """
        from .project.liveness import ask_to_stop

        active = [run for run in self.snapshots(tuple(run_ids)) if not run.has_ended]
        for run in active:
            ask_to_stop(self.project, run, force=force, by=self._name, reason=reason)
        return tuple(run.run_id for run in active)

    def send(self, run_id: str, text: str, *, by: str = "") -> Sent:
        """Leave a message for a run; `receptions` reports its delivery. Raises SubdeckError if the run takes no
        messages: it has finished, is non-interactive or untrusted, or held by another process.

        `by` names the sender in its records, such as a device; by default it is this session.
        """
        from .project.talk import send

        return send(self.project, self._standing(run_id), text, by or self._name)

    def interrupt(self, run_id: str) -> Sent:
        """Interrupt the agent's turn; it then waits for your message. Raises SubdeckError as `send` does."""
        from .project.talk import interrupt

        return interrupt(self.project, self._standing(run_id), self._name)

    def reply(
        self, run_id: str, request_id: str, verdict: Verdict, text: str = "", read: str = "", *, by: str = ""
    ) -> Sent:
        """Reply to a run's request by its id; empty for the only one.

        `text` is the answer, or the reason for a denial; `read` the hash of the request as read; `by` as in `send`.
        Raises SubdeckError as `send` does, and for a reply that does not fit the request.
        """
        from .project.talk import reply

        if paths.is_child():
            raise not_for_agents("answer requests", where=run_id)
        return reply(self.project, self._standing(run_id), request_id, verdict, text, by=by or self._name, read=read)

    def take_over(self, run_id: str) -> tuple[str, ...]:
        """Return the terminal command that lets a person continue a run in the agent's own program.

        A finished run continues as a new run, which is launched here. Raises SubdeckError if that is impossible: the
        agent has no such program, or the run keeps no conversation.
        """
        from .interactive import command, request_by_hand
        from .project.ownership import check_own
        from .project.talk import not_by_hand

        if paths.is_child():
            raise not_for_agents("trust runs", where=run_id)
        check_own(self.project, run_id)
        run = self._standing(run_id)
        if refusal := not_by_hand(run):
            raise refusal
        if run.has_ended:
            (run,) = self.launch([request_by_hand(self.meta(run_id), run.child_session_id)], background=True)
        return command(self.project.run_dir(run.run_id), self._name)

    def requests(self) -> tuple[RunSnapshot, ...]:
        """Return the runs that wait for a reply, in their current state, the longest wait first."""
        waiting = (run for run in self.snapshots(last=0) if run.is_waiting)
        return tuple(sorted(waiting, key=lambda run: run.requests[0].ts))

    def receptions(
        self, sent: Sequence[Sent], *, timeout: float | None = None, stop: Stop | None = None
    ) -> tuple[Outcome | None, ...]:
        """Wait until each of these is settled, `timeout` seconds have passed or `stop` is set. Return their outcomes in
        order; None for one that no wrapper has taken yet.
        """
        import threading

        from .project.talk import Reception

        deadline = None if timeout is None else time.monotonic() + timeout
        receptions = [Reception(self.project, one) for one in sent]
        now_by_id: dict[str, RunSnapshot] = {}
        run_ids = tuple({one.run_id for one in sent})
        for update in self.follow(stop or threading.Event(), only=run_ids) if sent else ():
            now_by_id |= {run.run_id: run for run in update.runs}
            for run_id in update.removed:
                now_by_id.pop(run_id, None)
            for one, reception in zip(sent, receptions, strict=True) if update.complete else ():
                reception.read(now_by_id.get(one.run_id))
            if update.complete and all(reception.is_settled for reception in receptions):
                break
            if deadline is not None and time.monotonic() >= deadline:
                break
        return tuple(reception.outcome for reception in receptions)

    def _standing(self, run_id: str) -> RunSnapshot:
        """Return the current state of one run. Raises UnknownRun."""
        for run in self.snapshots((run_id,)):
            return run
        raise UnknownRun("not a run, or just deleted", where=self.project.run_dir(run_id))

    def move_in_queue(self, run_id: str, step: int) -> int:
        """Move a queued run one place forward (-1) or back (1); return how many runs are ahead.

        Raises SubdeckError for a run that is untrusted or not queued.
        """
        from .project.registry import move

        return move(self.project, Registry(self.project, by=self._looks_by), run_id, step)

    def is_queue_held(self) -> bool:
        from .project.queue import read_state

        return read_state(self.project.slots).held

    def hold_queue(self, held: bool) -> None:
        """Pause the queue, so that no more runs start, or resume it."""
        from .project.ownership import ring
        from .project.queue import hold

        hold(self.project.slots, held)
        ring(self.project)

    def attach_command(self, run_id: str) -> AttachInfo:
        """Return how to show the run's tmux pane in this terminal, and detach. Raises SubdeckError without a pane."""
        from .project.ownership import check_own

        run_dir = self.project.run_dir(run_id)
        check_own(self.project, run_id)
        if meta := artifacts.read_meta(run_dir):
            _check_schema(meta)
        facts = artifacts.read_runner(run_dir)
        if facts is None or facts.tmux is None:
            where = "on another machine" if meta and meta.runner == "hosts" else "as a plain process"
            raise SubdeckError(
                f"run {run_id[-6:]} has no tmux pane",
                where=run_id,
                hint=f"it runs {where}; follow it with subdeck logs -f {run_id[-6:]}",
            )
        from .project.liveness import is_here
        from .runners.tmux import attach_command

        return attach_command(facts.tmux, run_id, os.environ, pid=facts.pid if is_here(facts) else None)

    def claim(self, run: RunSnapshot) -> bool:
        """Claim the report of the end of one of this session's background runs; True once, for one caller.

        A run of a newer subdeck is left to that version, which knows how it ended; an untrusted run is never reported.
        """
        ours = run.meta.background and run.meta.launched_by.session == self._launched_by.session
        return ours and run.has_ended and not run.is_left_alone and self._session.claim(run)

    def unseen(self) -> tuple[RunSnapshot, ...]:
        """Return this session's finished background runs that were not reported yet."""
        unreported = self._session.unreported()
        runs = self.snapshots(unreported) if unreported else ()
        return tuple(run for run in runs if run.has_ended and not run.is_left_alone)

    def give_up(self, run_id: str) -> None:
        """Abandon a run on a host that does not return, at the user's request. Raises SubdeckError if it is online or
        has finished.
        """
        from .project.abandoned import give_up

        if paths.is_child():
            raise not_for_agents("abandon runs", where=run_id)
        give_up(self.project, self._standing(run_id))

    def delete(self, run_ids: Iterable[str], *, for_good: bool = False) -> tuple[str, ...]:
        """Move finished runs to the trash; return their ids. Raises RunBusy for a trusted run that has not finished.
        With `for_good` the caller purges them next, so no undo is recorded.
        """
        from .project.abandoned import not_heard
        from .work.deletion import delete

        wanted = tuple(run_ids)
        for run in self.snapshots(wanted):
            if run.is_out_of_reach and not run.foreign:
                raise not_heard(run)
            if not (run.has_ended or run.elsewhere or run.foreign):
                raise RunBusy(f"run {run.meta.short_id} is {run.status}", where=run.run_id, hint="stop it first")
        return delete(self.project, wanted, for_good=for_good)

    def is_own(self, run_id: str) -> bool:
        """Whether this user's subdeck created a run. An untrusted run can only be viewed, or moved to the trash."""
        from .project.ownership import is_own

        return is_own(self.project.run_dir(run_id))

    def adopt(self, run_ids: Iterable[str]) -> None:
        """Trust runs: from now on they are this user's. Raises SubdeckError for a run that cannot be trusted."""
        from .project.ownership import adopt

        for run_id in run_ids:
            adopt(self.project, run_id)

    def restore(self, run_ids: Iterable[str]) -> tuple[str, ...]:
        """Restore deleted runs; return the ids of those restored."""
        from .work.deletion import restore

        return restore(self.project, run_ids)

    def purge(self, run_ids: Iterable[str] | None = None) -> None:
        """Remove these deleted runs for good, or all that were deleted more than a day ago."""
        from .work import deletion

        if run_ids is None:
            deletion.purge_old(self.project)
        else:
            deletion.purge(self.project, run_ids)

    def unmerged(self, run_ids: Iterable[str]) -> tuple[Unmerged, ...]:
        """Return the runs, including deleted ones, whose work is only in their worktrees."""
        from .work.deletion import unmerged

        return unmerged(self.project, run_ids)

    def last_act(self) -> Act | None:
        """Return the action that undo would revert next, whether from the app or the command line."""
        from .work.acts import last_act

        return last_act(self.project)

    def take_back(self, act: Act) -> TakenBack:
        """Undo the last action. Raises SubdeckError if that fails in full or in part."""
        from .work.acts import take_back

        return take_back(self.project, act)

    @cached_property
    def _session(self) -> SessionFile:
        from .project.session import SessionFile

        return SessionFile(self.project, self._launched_by.session)

    def _plan(self, requests: Sequence[RunRequest], *, asks: bool) -> list[Plan]:
        """Read the settings again and plan the requests with them. Raises SettingsError."""
        from .launch.plan import plan_all

        self.read_settings()
        return plan_all(requests, self.workspace, asks=asks)


def _check_schema(meta: RunMeta) -> None:
    if meta.is_newer:
        raise SubdeckError(
            f"run {meta.short_id} was {newer_schema(meta.schema_version)}",
            where=meta.run_id,
            hint="subdeck rm moves it to the trash",
        )
