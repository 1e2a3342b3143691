"""Taking back what was done last: each kind of act by who did it."""

from __future__ import annotations

import os

from msgspec import Struct

from .. import paths
from ..errors import RunBusy, SubdeckError
from ..system import files
from ..text.decoding import UNDECODABLE, fit
from .acts import Act, ActKind, drop, file_of, last


class TakenBack(Struct, frozen=True):
    said: str
    """What became of it, for a person: `brought back 3 runs`."""
    run_ids: tuple[str, ...] = ()
    """Runs that are there again."""
    path: str = ""
    """Of the preset that is."""


class _Runs(Struct, frozen=True, rename="camel"):
    run_ids: tuple[str, ...]


class _Preset(Struct, frozen=True):
    path: str
    kept: str


def last_act(project: paths.Project) -> Act | None:
    """Return what would be taken back now; what has left the trash meanwhile is passed over."""
    return last(project, lambda act: _is_void(project, act))


def take_back(project: paths.Project, act: Act) -> TakenBack:
    """Take back one act, which then leaves the stack; with it what was done as a part of the same.

    Raises SubdeckError where that cannot be done, all of it or some; what is gone from the trash leaves the stack, too.
    """
    back = _take_back_one(project, act)
    count = 1
    while act.part_of and (before := last(project)) and before.part_of == act.part_of:
        _take_back_one(project, before)
        count += 1
    return back if count == 1 else TakenBack(f"undid {act.part_of}")


def _take_back_one(project: paths.Project, act: Act) -> TakenBack:
    try:
        return _take_back(project, act)
    except UNDECODABLE as error:
        what = f"cannot undo {act.title}: its record is damaged, or from another version of subdeck"
        hint = f'remove the line with "{act.id}" from that file to undo the action before it'
        raise SubdeckError(what, where=file_of(project), hint=hint) from error


def _take_back(project: paths.Project, act: Act) -> TakenBack:
    match act.kind:
        case ActKind.DELETE_RUNS:
            back = _restore_runs(project, act)
        case ActKind.DELETE_PRESET:
            back = _restore_preset(act)
        case ActKind.APPLY:
            from ._reversing import take_back_applied

            back = TakenBack(take_back_applied(project, act))
        case ActKind.MERGE | ActKind.PICK:
            from ._reversing import take_back_merged

            back = TakenBack(take_back_merged(project, act))
        case ActKind.COMMIT:
            from .branches import take_back_commit

            back = TakenBack(take_back_commit(act))
        case ActKind.KEEP:
            from .branches import take_back_kept

            back = TakenBack(take_back_kept(act))
        case ActKind.DISCARD:
            from .discarding import take_back_discarded

            back = TakenBack(take_back_discarded(project, act))
        case _:
            raise SubdeckError(f"this version of subdeck cannot undo {act.title}", hint="use the version that did it")
    drop(project, act.id)
    return back


def _is_void(project: paths.Project, act: Act) -> bool:
    """Return whether nothing is left that could be brought back."""
    try:
        match act.kind:
            case ActKind.DELETE_RUNS:
                run_ids = fit(act.data, _Runs).run_ids
                return not any(files.exists(os.path.join(project.trash, run_id)) for run_id in run_ids)
            case ActKind.DELETE_PRESET:
                return not os.path.lexists(fit(act.data, _Preset).kept)
            case _:
                return False
    except UNDECODABLE:
        return True


def _restore_runs(project: paths.Project, act: Act) -> TakenBack:
    from .deletion import restore

    run_ids = fit(act.data, _Runs).run_ids
    back = restore(project, run_ids)
    never_went = [
        run_id for run_id in run_ids if run_id not in back and act.begun and files.exists(project.run_dir(run_id))
    ]
    if len(back) + len(never_went) < len(run_ids):
        drop(project, act.id)
        came = f"{len(back)} of {len(run_ids)} restored" if back else "nothing was restored"
        raise RunBusy(came, hint="the missing runs were deleted permanently")
    return TakenBack(f"restored {act.words}", run_ids=back)


def _restore_preset(act: Act) -> TakenBack:
    from ..presets.trash import DeletedPreset, restore_preset

    kept = fit(act.data, _Preset)
    restore_preset(DeletedPreset(kept.path, kept.kept))
    return TakenBack(f"restored {act.words}", path=kept.path)
