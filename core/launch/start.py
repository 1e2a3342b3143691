"""Starts planned runs: creates directories, starts wrappers, waits for their first events."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..config.settings import Settings
from ..errors import LaunchError, SubdeckError
from ..project.queue import read_state
from ..project.trash import hold_file, remove_unborn
from ..run import artifacts, second_copy
from ..run.changes import CheckCommand
from ..run.environment import OTHER_REPOSITORY, for_wrapper
from ..run.model import RunMeta, RunnerKind
from ..run.proven import has_result
from ..runners import standby
from ..runners.process import HasGone, WrapperCall, start_wrapper
from ..system import files
from ..system.directory import RefusedError, opened
from .child_session import begin_sticky, prepare
from .plan import PlannedRun

START_TIMEOUT_S = 60.0
"""Seconds to wait for the first event of a wrapper that has not exited; after that its own lock counts."""
EVENT_TIMEOUT_S = 5.0
"""Seconds to wait for the first event of a wrapper that holds its run."""
LOOK_INTERVAL_S = 0.003

OLD_GROUP_S = 3600.0
"""Seconds after which a group without held slots is over; all its wrappers have started long before."""
_PROJECT = "project"
"""Name of the slots shared by all runs of the project; a group's slots are named by its id."""

_REMOVE_IT = "remove it if you did not create it"
_IGNORED = b"/.gitignore\n/active/\n/runs/\n/sessions/\n/trash/\n"


class _Launching(Struct):
    meta: RunMeta
    run_dir: str
    activity_file: str
    lock: int | None = None
    has_gone: HasGone | None = None
    agent_env: Mapping[str, str] = {}
    check: CheckCommand | None = None

    def release(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def launch(
    project: paths.Project,
    planned: Sequence[PlannedRun],
    settings: Settings,
    *,
    on_created: Callable[[RunMeta], None] | None = None,
    over_budget: bool = False,
) -> None:
    """Start one wrapper per run; return when each has written its first event or ended.

    `on_created` is called before each run exists, so that a lost run is already remembered. Raises LaunchError, with no
    wrapper started, if a run cannot be remembered or its files cannot be created; later failures become the results of
    their runs. Raises BudgetExceeded if the day's budget leaves no room, unless `over_budget`.
    """
    metas = [run.meta for run in planned]
    has_budget = settings.has_day_budget or any(meta.limits.budget for meta in metas)
    if has_budget:
        from ..budget.allowance import reserve

        reserve(project.root, metas, settings, over_budget=over_budget)
    created: list[_Launching] = []
    try:
        _prepare(project)
        remove_old_slots(project)
        remove_unborn(project)
        planned = _with_worktrees(project, planned, settings)
        planned = _with_files(project, planned, settings)
        for run in planned:
            run = _with_sticky_session(run)
            run_id = run.meta.run_id
            launching = _Launching(
                *(run.meta, project.run_dir(run_id), os.path.join(project.active, run_id)),
                agent_env=run.agent_env,
                check=run.check,
            )
            created.append(launching)  # before it exists, because an interruption can come at any moment
            if on_created:
                _announce(run.meta, on_created)
            launching.lock = artifacts.create_run(project.runs, run.meta, run.prompt)
            _keep_session(run, launching.run_dir)
            _note_files(project, run.meta, launching.run_dir)
        for launching in created:
            _start(project, launching, settings)
        standby.dismiss()  # these runs could not use it, and no other launch is near
        deadline = time.monotonic() + START_TIMEOUT_S
        for launching in created:
            _await_first_event(project, launching, deadline)
    except BaseException:  # also an interruption: no run may be left without a supervisor
        standby.dismiss()
        for launching in created:
            _take_back(launching)
        _take_back_worktrees(project, planned)
        _take_back_files(project, planned)
        if has_budget:
            from ..budget.allowance import release

            release(project.root, metas)
        raise


def _with_worktrees(project: paths.Project, planned: Sequence[PlannedRun], settings: Settings) -> Sequence[PlannedRun]:
    """Record what the runs' worktrees start from, once for all; return the updated runs. Raises SubdeckError."""
    if not any(run.meta.worktree for run in planned):
        return planned
    from ..work.base import begin

    begun = begin(project, (run.meta for run in planned), settings)
    return [replace(run, meta=begun.get(run.meta.run_id, run.meta)) for run in planned]


def _take_back_worktrees(project: paths.Project, planned: Sequence[PlannedRun]) -> None:
    """Remove the worktree records of runs that do not exist."""
    names = [run.meta.run_id for run in planned if run.meta.worktree]
    unborn = [run_id for run_id in names if not os.path.lexists(project.run_dir(run_id))]
    if unborn:
        from ..work.worktree import take_back

        take_back(project, unborn)


def _with_files(project: paths.Project, planned: Sequence[PlannedRun], settings: Settings) -> Sequence[PlannedRun]:
    """Snapshot the files that runs send to hosts, once for all; return the updated runs."""
    going = [run.meta for run in planned if run.meta.runner is RunnerKind.HOSTS]
    if not going or settings.hosts.code != "git":
        return planned
    from ..work.remote import take

    begun = take(project, going, settings.hosts.sparse)
    return [replace(run, meta=begun.get(run.meta.run_id, run.meta)) for run in planned]


def _note_files(project: paths.Project, meta: RunMeta, run_dir: str) -> None:
    """Note in a run's directory which files it takes along: it works with no others. Raises LaunchError."""
    if meta.runner is not RunnerKind.HOSTS:
        return
    from ..work.records import AWAY_FILE

    taken = files.content(os.path.join(paths.work_dir(project, meta.run_id), AWAY_FILE))
    if not taken:
        return
    try:
        files.write_new(os.path.join(run_dir, paths.CODE), taken)
    except OSError as error:
        what = f"cannot save the files for the host: {error.strerror}"
        raise LaunchError(what, where=run_dir, hint="check disk space and permissions") from error


def _take_back_files(project: paths.Project, planned: Sequence[PlannedRun]) -> None:
    """Release the files of runs that do not exist."""
    names = [run.meta.run_id for run in planned if run.meta.runner is RunnerKind.HOSTS]
    unborn = [run_id for run_id in names if not os.path.lexists(project.run_dir(run_id))]
    if unborn:
        from ..work.remote import take_back

        take_back(project, unborn)


def _announce(meta: RunMeta, on_created: Callable[[RunMeta], None]) -> None:
    """Raise LaunchError if the run cannot be remembered: its end would notify no session."""
    try:
        on_created(meta)
    except OSError as error:
        what = f"cannot write the session to notify: {error.strerror}"
        hint = _REMOVE_IT if isinstance(error, RefusedError) else "check disk space and permissions"
        raise LaunchError(what, where=str(error.filename or meta.run_id), hint=hint) from error


def _prepare(project: paths.Project) -> None:
    """Create a project's directories. Raises LaunchError if another file is in their place."""
    try:
        for directory in (project.home, project.runs, project.active, project.sessions):
            files.make_private_directory(directory)
        if files.exists(project.slots):
            opened(project.slots).close()
        files.write_new(os.path.join(project.home, ".gitignore"), _IGNORED, mode=0o644)
    except RefusedError as refusal:
        raise LaunchError(f"{refusal.strerror}", where=str(refusal.filename), hint=_REMOVE_IT) from refusal
    except OSError:
        return  # already there, or the first run directory reports the problem with its path


def _with_sticky_session(run: PlannedRun) -> PlannedRun:
    """Return the run with its sticky conversation, created here or by another launch. Raises LaunchError."""
    if run.child_session is None or run.child_session.shared is None:
        return run
    try:
        session = begin_sticky(run.child_session, preset=run.meta.preset, cwd=run.meta.origin_cwd, agent=run.keeper)
    except OSError as error:
        raise _unwritable_session(run.meta, error) from error
    meta = replace(
        run.meta,
        child_session_id=session.id,
        session_path=None if session.agent_session else session.shared,
        agent_session=session.agent_session,
        session_lock=session.lock,
    )
    return replace(run, meta=meta, child_session=session)


def _keep_session(run: PlannedRun, run_dir: str) -> None:
    if run.child_session is None or run.child_session.shared or run.child_session.agent_session:
        return
    try:
        prepare(run.child_session, run_dir, run.meta.cwd)
    except OSError as error:
        raise _unwritable_session(run.meta, error) from error


def _unwritable_session(meta: RunMeta, error: OSError) -> LaunchError:
    what = f"cannot write the agent session: {error.strerror}"
    return LaunchError(what, where=meta.session_path or "", hint="check disk space and permissions")


def _start(
    project: paths.Project,
    launching: _Launching,
    settings: Settings,
) -> None:
    try:
        os.close(files.open_private(launching.activity_file, os.O_WRONLY))
    except OSError:
        pass  # readers also check the sizes of open runs
    meta = launching.meta
    session = ("--session", meta.session_lock) if meta.session_lock else ()
    check = ("--check", msgspec.json.encode(launching.check).decode("utf-8", "replace")) if launching.check else ()
    no_group = ("--no-group",) if settings.cgroup == "off" else ()
    call = WrapperCall(
        meta=meta,
        project=project.root,
        run_dir=launching.run_dir,
        arguments=(
            launching.run_dir,
            launching.activity_file,
            *session,
            *_slot_options(project, meta),
            *check,
            *no_group,
        ),
        in_scope=settings.cgroup == "scope",
        is_held=read_state(project.slots).held,
        environment=for_wrapper(launching.agent_env, without=OTHER_REPOSITORY if meta.worktree else ()),
    )
    if meta.runner is not RunnerKind.HOSTS:
        _note_start(launching.run_dir)
    try:
        launching.has_gone = start_wrapper(call, settings.tmux.socket, settings.hosts.env)
    except (SubdeckError, OSError) as error:
        launching.release()
        _fail(launching, error)


def _note_start(run_dir: str) -> None:
    """Note that a wrapper is about to start: it may die while loading, and so may this launcher."""
    try:
        os.close(files.open_private(os.path.join(run_dir, paths.STARTING), os.O_WRONLY))
    except OSError:
        pass  # a full disk does not prevent a start


def _take_back(launching: _Launching) -> None:
    """Delete a run unless its wrapper holds it or it has a result; a wrapper that comes later finds no run."""
    if not (os.path.exists(os.path.join(launching.run_dir, paths.RUNNER)) or has_result(launching.run_dir)):
        files.remove(launching.activity_file)
        files.remove_tree(launching.run_dir)
        second_copy.remove(launching.run_dir)
    launching.release()


def _await_first_event(project: paths.Project, launching: _Launching, deadline: float) -> None:
    if launching.has_gone is None:
        return
    began = time.monotonic()
    run_dir = launching.run_dir
    events = os.path.join(run_dir, paths.EVENTS)
    gone = False
    while not (gone or files.content(events) or has_result(run_dir)):
        if not os.path.isdir(run_dir):
            break  # already deleted: no event will come
        # runner.json shows that the wrapper holds its lock; a full disk may prevent its events.
        held = os.path.exists(os.path.join(run_dir, paths.RUNNER))
        if time.monotonic() > (began + EVENT_TIMEOUT_S if held else deadline):
            break
        gone = launching.has_gone()
        time.sleep(LOOK_INTERVAL_S)
    launching.release()
    _forget_environment(run_dir)
    if gone:
        from ..project.liveness import reconcile

        reconcile(project, launching.meta.run_id, by="launcher")


def _forget_environment(run_dir: str) -> None:
    """Remove the environment of a run that ended without a wrapper: it may contain keys."""
    if has_result(run_dir):
        files.remove(os.path.join(run_dir, paths.ENVIRONMENT))


def _fail(launching: _Launching, error: Exception) -> None:
    from ..project.liveness import hold

    run_dir = launching.run_dir
    lock = hold(run_dir)
    if lock is None:
        _forget_environment(run_dir)
        return  # a wrapper holds it; only the report of its start failed
    files_left = (launching.activity_file, os.path.join(run_dir, paths.STARTING))
    artifacts.fail_launch(launching.meta, run_dir, lock, error, by="launcher", files_left=files_left)


def _slot_options(project: paths.Project, meta: RunMeta) -> tuple[str, ...]:
    """Return the wrapper's options for the slots of its group, then of the project."""
    options: list[str] = []
    if meta.group is not None:
        options += ["--slots", str(meta.group.max_parallel), os.path.join(project.slots, meta.group.id)]
    if meta.max_running is not None:
        options += ["--slots", str(meta.max_running), os.path.join(project.slots, _PROJECT)]
    return tuple(options)


def remove_old_slots(project: paths.Project) -> None:
    """Remove the lock files of finished groups: old, with neither a slot nor the door held."""
    oldest = time.time() - OLD_GROUP_S
    try:
        with opened(project.slots) as slots:
            groups = [
                os.path.join(project.slots, name)
                for name in slots.names()
                if name != _PROJECT and slots.status(name).st_mtime < oldest
            ]
    except OSError:
        return  # there are none, or another launcher is removing them
    for group in groups:
        held = [hold_file(os.path.join(group, name)) for name in files.names(group)]
        if None not in held:
            files.remove_tree(group)
        for lock in held:
            if lock is not None:
                os.close(lock)
