"""Delete runs with their files outside the run directories, without losing work and without leftovers.

All deletion, restoring and purging of runs goes through here; `core/project/trash.py` moves their directories.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from .. import paths
from ..config.settings import Retention
from ..errors import NotNoted, RunBusy, SubdeckError, reason
from ..project import trash
from ..project.ownership import check_own, is_own
from ..project.trash import Selection, Stock, Stored, remove_unborn, size_of
from ..run import artifacts
from ..run.describe import runs_word
from ..run.model import PresetSource
from ..system import files
from ..system.log import log_fault
from ..text.decoder import UNDECODABLE, fit
from ..text.plain import one_line
from . import acts, presence, remote
from .acts import expire
from .operation import Act, ActKind, TakenBack
from .records import tree_of, work_dirs
from .worktrees import RunState, Worktree, of_run, remove, sharing, state_of

if TYPE_CHECKING:
    from ..presets.trash import DeletedPreset

TITLE = 40
"""Characters of a run's name."""
BRANCH = 60
BASE = ".base-"
"""Name prefix of stores that make the next snapshot of a repository quick."""


class Cleaned(Struct, frozen=True):
    moved: tuple[str, ...]
    """Ids of the removed runs."""
    left: tuple[tuple[str, str], ...]
    """The remaining runs, each with the reason."""


class Unmerged(Struct, frozen=True):
    """A run whose work would be lost with its worktree."""

    run_id: str
    worktree: Worktree

    @property
    def words(self) -> str:
        """The branch and the size of the change: `subdeck/scout-4ae0bd: 3 files changed, 41 insertions(+)`."""
        state = self.worktree.state
        return f"{one_line(self.worktree.record.branch, BRANCH)}: {state.trouble or state.words}"


def delete(project: paths.Project, run_ids: Iterable[str], *, for_good: bool = False) -> tuple[str, ...]:
    """Move finished runs to the trash, as one act unless they are then purged; return their ids.

    Raises RunBusy for a run still in use, and NotNoted if they were moved but the act could not be recorded.
    """
    ids = tuple(run_ids)
    with _remembered(project, () if for_good else ids) as moved:
        for run_id in ids:
            moved += _delete(project, run_id)
    return tuple(moved)


def clean(project: paths.Project, run_ids: Iterable[str], *, for_good: bool) -> Cleaned:
    """Move runs to the trash, or remove them for good; one that cannot go, or is untrusted, does not block the others.

    Raises NotNoted if they were moved but the act could not be recorded.
    """
    remaining: list[tuple[str, str]] = []
    ids = tuple(run_ids)
    with _remembered(project, () if for_good else ids[::-1]) as moved:  # the cursor goes to the newest
        for run_id in ids:
            try:
                check_own(project, run_id)
                gone = _delete(project, run_id)
            except SubdeckError as error:
                remaining.append((run_id, error.what))
                continue
            moved += gone
            if for_good:
                purge(project, gone)
    return Cleaned(tuple(moved), tuple(remaining))


def read_stock(project: paths.Project) -> Stock:
    """Read every run directory as `trash.read_stock` does, and the runs' work outside of them."""
    stock = trash.read_stock(project)
    kept = {os.path.basename(directory): (directory, size_of(directory)) for directory in work_dirs(project)}
    trees = [size for directory, size in kept.values() if os.path.lexists(tree_of(directory))]
    discarded = acts.discarded_sizes(project)

    def whole(run: Stored) -> Stored:
        return structs.replace(run, size=run.size + kept[run.run_id][1]) if run.run_id in kept else run

    ended = (run.run_id for run in stock.runs if run.ended is not None and run.run_id in kept)
    return structs.replace(
        stock,
        runs=tuple(map(whole, stock.runs)),
        trash=tuple(map(whole, stock.trash)),
        unmerged=frozenset(run.run_id for run in unmerged(project, ended)),
        worktrees=len(trees),
        worktrees_size=sum(trees),
        discarded=len(discarded),
        discarded_size=sum(discarded),
    )


def unmerged(project: paths.Project, run_ids: Iterable[str]) -> tuple[Unmerged, ...]:
    """Return the runs whose work is, or may be, only in their worktrees."""
    runs: list[Unmerged] = []
    for run_id in filter(paths.is_run_id, run_ids):
        worktree = of_run(project, run_id)
        if worktree is not None and not worktree.state.is_safe and _is_own(project, run_id):
            runs.append(Unmerged(run_id, worktree))
    return tuple(runs)


def _is_own(project: paths.Project, run_id: str) -> bool:
    """Whether a run is this user's, even in the trash."""
    return is_own(project.run_dir(run_id)) or is_own(os.path.join(project.trash, run_id))


def apply_retention(project: paths.Project, rule: Retention, now: float) -> tuple[Selection, Cleaned]:
    """Move the runs selected by the settings' rules to the trash.

    Unreported runs stay, and so does work that is nowhere else: the user is not asked.
    """
    stock = read_stock(project)
    selection = trash.choose(stock, rule, now, needed=stock.unreported)
    run_ids = (run_id for run_id in selection.run_ids if not artifacts.is_newer(project.run_dir(run_id)))
    return selection, clean(project, run_ids, for_good=False)


def restore(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Restore deleted runs; return the ids of those still in the trash.

    A worktree whose work is nowhere else was not moved, and neither was its branch.
    """
    return trash.restore(project, run_ids)


def purge(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove deleted runs for good, with their unapplied work.

    A worktree that cannot be removed now stays listed (`subdeck worktrees`), and is removed when possible.
    """
    for run_id in run_ids:
        is_ours = paths.is_run_id(run_id) and is_own(os.path.join(project.trash, run_id))
        trash.purge(project, (run_id,))
        if is_ours:
            _let_go(project, run_id, for_good=True)


def purge_old(project: paths.Project) -> None:
    """Remove for good anything deleted or discarded over a day ago, and the remains of lost runs."""
    purge(project, trash.old_runs(project))
    remove_unborn(project)
    expire(project, paths.iso_time(time.time() - trash.KEPT))
    sweep(project)


def sweep(project: paths.Project) -> None:
    """Remove the work files of runs that are gone, if nothing is lost.

    A run that is being launched has no directory yet, and a project's disk may be unmounted for a while. So only files
    unchanged for a day are removed, and only while the project exists.
    """
    if not os.path.isdir(project.home):
        return
    for directory in work_dirs(project):
        run_id = os.path.basename(directory)
        if _is_old(directory) and state_of(project, run_id) is RunState.LOST:
            _let_go(project, run_id, for_good=False)
    works = paths.works_dir(project)
    for name in files.names(works):
        if name.startswith((BASE, remote.PACKS)) and _is_old(base := os.path.join(works, name)):
            files.remove_tree(base)
    remote.sweep(project)
    try:
        acts.tidy(project)
        presence.sweep()
    except OSError as error:
        log_fault("while cleaning up the user's state", error)


def _is_old(directory: str) -> bool:
    """Whether a work directory was not changed for a day."""
    try:
        return os.stat(directory).st_mtime < time.time() - trash.KEPT
    except OSError:
        return False


def _delete(project: paths.Project, run_id: str) -> tuple[str, ...]:
    """Move a run to the trash, and remove its worktree, unless its work is nowhere else."""
    is_ours = paths.is_run_id(run_id) and is_own(project.run_dir(run_id))
    gone = trash.delete(project, (run_id,))
    if gone and is_ours:
        _let_go(project, run_id, for_good=False)
    return gone


def _let_go(project: paths.Project, run_id: str, *, for_good: bool) -> None:
    """Remove a deleted run's worktree unless others work in it, or, if not for good, work would be lost.

    Files beside it are removed if the run is gone for good.
    """
    directory = paths.work_dir(project, run_id)
    is_gone = state_of(project, run_id) is RunState.LOST
    if is_gone:
        remote.let_go(project, run_id)
    try:
        worktree = of_run(project, run_id)
        if worktree is not None:
            needing = (RunState.THERE, RunState.DELETED) if for_good else (RunState.THERE,)
            users = sharing(project, worktree)
            users.pop(run_id, None)
            if any(state in needing for state in users.values()):
                if worktree.run_id != run_id and is_gone:
                    files.remove_tree(directory)
                return
            if not (for_good or worktree.state.is_safe):
                return
            remove(worktree)
            if state_of(project, worktree.run_id) is RunState.LOST:
                files.remove_tree(worktree.directory)
        if is_gone:
            files.remove_tree(directory)
    except SubdeckError as error:
        log_fault("while removing a worktree", error)


def delete_preset(project: paths.Project, path: str, source: PresetSource, words: str) -> DeletedPreset:
    """Move a preset's file to the trash, as an act of that name. Raises PresetError."""
    from ..presets.trash import delete_preset as move

    deleted = move(path, source, project)
    _record(project, ActKind.DELETE_PRESET, words, {"path": deleted.path, "kept": deleted.kept})
    return deleted


def _title(project: paths.Project, run_id: str) -> str:
    """Return a run's name as in lists; only its id if its record is unreadable."""
    meta = artifacts.read_meta(project.run_dir(run_id)) if paths.is_run_id(run_id) else None
    return f"{one_line(meta.title, TITLE)} {meta.short_id}" if meta else run_id[-6:]


@contextmanager
def _remembered(project: paths.Project, run_ids: tuple[str, ...]) -> Generator[list[str]]:
    """Put the deletion of runs on the stack before the first one is moved; yield the list of moved runs.

    If the stack cannot be written, the runs are still moved to the trash; then NotNoted is raised.
    """
    titles = {run_ids[0]: _title(project, run_ids[0])} if run_ids else {}

    def words(going: Sequence[str]) -> str:
        return runs_word(len(going)) if len(going) > 1 else titles.get(going[0], going[0][-6:])

    act, fault = None, None
    if run_ids:
        try:
            act = acts.record(project, ActKind.DELETE_RUNS, words(run_ids), {"runIds": run_ids}, begun=True)
        except OSError as error:
            fault = error
    moved: list[str] = []
    try:
        yield moved
    finally:
        if act is not None:
            going = [run_id for run_id in run_ids if files.exists(os.path.join(project.trash, run_id))]
            try:
                if going:
                    acts.finish(project, structs.replace(act, words=words(going)), {"runIds": going})
                else:
                    acts.drop(project, act.id)
            except OSError as error:  # a begun act can also be undone
                log_fault("while recording the deletion", error)
    if fault is not None and moved:
        what = f"{runs_word(len(moved))} deleted, but subdeck undo cannot restore it: {reason(fault)}"
        raise NotNoted(what, where=acts.file_of(project), hint=f"use subdeck rm --undo {moved[0][-6:]}")


def _record(project: paths.Project, kind: ActKind, words: str, data: dict[str, object]) -> None:
    """Put a deletion on the stack; if that fails, it is still deleted, and in the trash."""
    try:
        acts.record(project, kind, words, data)
    except OSError as error:
        log_fault("while recording the deletion", error)


# --- undo -------------------------------------------------------------------------------------------------------------


class _Runs(Struct, frozen=True, rename="camel"):
    run_ids: tuple[str, ...]


class _Preset(Struct, frozen=True):
    path: str
    kept: str


def undo(project: paths.Project, act: Act) -> TakenBack:
    """Restore what was deleted. Raises SubdeckError if that fails in full or in part."""
    return _restore_preset(act) if act.kind is ActKind.DELETE_PRESET else _restore_runs(project, act)


def is_void(project: paths.Project, act: Act) -> bool:
    """Whether nothing is left to restore: the trash is emptied after a day."""
    try:
        if act.kind is ActKind.DELETE_PRESET:
            return not os.path.lexists(fit(act.data, _Preset).kept)
        run_ids = fit(act.data, _Runs).run_ids
        return not any(files.exists(os.path.join(project.trash, run_id)) for run_id in run_ids)
    except UNDECODABLE:
        return True


def _restore_runs(project: paths.Project, act: Act) -> TakenBack:
    run_ids = fit(act.data, _Runs).run_ids
    back = restore(project, run_ids)
    never_went = [
        run_id for run_id in run_ids if run_id not in back and act.begun and files.exists(project.run_dir(run_id))
    ]
    if len(back) + len(never_went) < len(run_ids):
        acts.drop(project, act.id)
        came = f"{len(back)} of {len(run_ids)} restored" if back else "nothing was restored"
        raise RunBusy(came, hint="the missing runs were deleted permanently")
    return TakenBack(f"restored {act.words}", run_ids=back)


def _restore_preset(act: Act) -> TakenBack:
    from ..presets.trash import DeletedPreset, restore_preset

    kept = fit(act.data, _Preset)
    restore_preset(DeletedPreset(kept.path, kept.kept))
    return TakenBack(f"restored {act.words}", path=kept.path)
