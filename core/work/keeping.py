"""Deleting runs with what they did outside their directories, so that nothing is lost and nothing is left.

Everybody who deletes, restores or purges runs comes here; `core/project/trash.py` moves their directories.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from .. import paths
from ..config.settings import Retention
from ..errors import SubdeckError
from ..project import trash
from ..project.ownership import check_own
from ..project.trash import Selection
from ..run import artifacts
from ..run.describe import runs_word
from ..run.model import PresetSource
from ..system.log import log_fault
from ..text.plain import one_line
from .acts import ActKind, record

if TYPE_CHECKING:
    from ..presets.trash import DeletedPreset

TITLE = 40
"""Characters of the name of a run."""


class Cleaned(Struct, frozen=True):
    moved: tuple[str, ...]
    """Ids of the runs that went."""
    left: tuple[tuple[str, str], ...]
    """Those that did not, each with the reason."""


def delete(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Move finished runs to the trash, as one act; return their ids. Raises RunBusy for one that is still held."""
    wanted = tuple(run_ids)
    titles = {run_id: _title(project, run_id) for run_id in wanted[:1]}
    moved: list[str] = []
    try:
        for run_id in wanted:
            moved += trash.delete(project, (run_id,))
    finally:
        _remember(project, moved, titles)
    return tuple(moved)


def clean(project: paths.Project, run_ids: Iterable[str], *, for_good: bool) -> Cleaned:
    """Move runs to the trash, or remove them for good; one that cannot go, or is foreign, keeps no other from going."""
    moved: list[str] = []
    left: list[tuple[str, str]] = []
    titles: dict[str, str] = {}
    for run_id in run_ids:
        title = "" if moved else _title(project, run_id)
        try:
            check_own(project, run_id)
            gone = trash.delete(project, (run_id,))
        except SubdeckError as error:
            left.append((run_id, error.what))
            continue
        moved += gone
        titles.setdefault(run_id, title)
        if for_good:
            purge(project, gone)
    if not for_good:
        _remember(project, moved[::-1], titles)  # the newest one first: it is what the cursor goes to
    return Cleaned(tuple(moved), tuple(left))


def apply_retention(project: paths.Project, rule: Retention, now: float) -> tuple[Selection, Cleaned]:
    """Move to the trash what the rules of the settings take; what was not reported yet stays, for nobody is asked."""
    stock = trash.read_stock(project)
    selection = trash.choose(stock, rule, now, needed=stock.unreported)
    own = (run_id for run_id in selection.run_ids if not artifacts.is_newer(project.run_dir(run_id)))
    return selection, clean(project, own, for_good=False)


def restore(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Take deleted runs back; return the ids of those that were still in the trash."""
    return trash.restore(project, run_ids)


def purge(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove deleted runs for good."""
    trash.purge(project, run_ids)


def purge_old(project: paths.Project) -> None:
    """Remove for good what was deleted a day ago."""
    purge(project, trash.old_runs(project))


def delete_preset(project: paths.Project, path: str, source: PresetSource, words: str) -> DeletedPreset:
    """Move the file of a preset to the trash, as an act of that name. Raises PresetError."""
    from ..presets.trash import delete_preset as move

    deleted = move(path, source, project)
    _record(project, ActKind.DELETE_PRESET, words, {"path": deleted.path, "kept": deleted.kept})
    return deleted


def _title(project: paths.Project, run_id: str) -> str:
    """Name a run as lists do; by its id alone where its record cannot be read."""
    meta = artifacts.read_meta(project.run_dir(run_id)) if paths.is_run_id(run_id) else None
    return f"{one_line(meta.title, TITLE)} {meta.short_id}" if meta else run_id[-6:]


def _remember(project: paths.Project, run_ids: list[str], titles: dict[str, str]) -> None:
    if run_ids:
        words = runs_word(len(run_ids)) if len(run_ids) > 1 else titles.get(run_ids[0], run_ids[0][-6:])
        _record(project, ActKind.DELETE_RUNS, words, {"runIds": run_ids})


def _record(project: paths.Project, kind: ActKind, words: str, data: dict[str, object]) -> None:
    """Put a deletion on the stack; where that cannot be written it is deleted all the same, and in the trash."""
    try:
        record(project, kind, words, data)
    except OSError as error:
        log_fault("while remembering what was deleted", error)
