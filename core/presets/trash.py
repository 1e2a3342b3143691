"""Deletes and restores presets by moving the file, so that it is restored byte for byte.

A project's or user's preset goes to `trash/` beside it; one from `preset_dirs`, a directory that subdeck does not own,
goes to the project's. It stays there for a month.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from contextlib import suppress

from msgspec import Struct

from ..errors import PresetError
from ..paths import Project, new_run_id
from ..run.model import PresetSource
from ..system import files
from ..system.directory import opened
from ..text.plain import one_line
from .file import SUFFIX
from .sources import FORMS

KEPT = 30 * 24 * 3600.0
"""Seconds that a deleted preset can be restored."""

_PREFIX = "preset-"
"""Prefix of directories in `trash/` with one preset each; runs are there under their ids."""


class DeletedPreset(Struct, frozen=True):
    path: str
    """Original path."""
    kept: str
    """Path in the trash."""


def delete_preset(path: str, source: PresetSource, project: Project) -> DeletedPreset:
    """Move a preset's file to the trash. Raises PresetError if it is not such a file or cannot be moved."""
    if source is PresetSource.BUNDLED:
        raise PresetError(
            "the preset comes with subdeck and cannot be deleted", where=path, hint="set bundled_presets: false"
        )
    if not path.endswith((SUFFIX, *FORMS.values())) or (os.path.isdir(path) and not os.path.islink(path)):
        raise PresetError("not a preset file", where=path, hint="check it in a shell")
    trash = project.trash if source is PresetSource.DIR else os.path.join(os.path.dirname(path), "trash")
    _purge_old(trash)
    directory = os.path.join(trash, _PREFIX + new_run_id())
    kept = os.path.join(directory, os.path.basename(path))
    try:
        files.make_private_directory(directory)
        with suppress(FileExistsError):
            files.write_new(os.path.join(trash, ".gitignore"), b"*\n")
        try:
            _move(path, kept)
        except BaseException:
            files.remove_tree(directory)
            raise
    except FileNotFoundError:
        raise PresetError("the file no longer exists", where=path) from None
    except OSError as error:
        hint = "check the permissions of its directory; nothing was changed"
        raise PresetError(f"cannot delete the preset: {error.strerror}", where=path, hint=hint) from error
    return DeletedPreset(path, kept)


def restore_preset(deleted: DeletedPreset) -> None:
    """Move it back. Raises PresetError if another file is there now or it cannot be written."""
    hint = f"it is kept in {one_line(deleted.kept)}"
    try:
        files.make_private_directory(os.path.dirname(deleted.path))
        _put_back(deleted)
    except FileExistsError:
        raise PresetError("another file has this name now", where=deleted.path, hint=hint) from None
    except FileNotFoundError:
        raise PresetError("it is no longer in the trash", where=deleted.kept) from None
    except OSError as error:
        raise PresetError(f"cannot restore it: {error.strerror}", where=deleted.path, hint=hint) from error
    files.remove_tree(os.path.dirname(deleted.kept))


def _move(path: str, target: str) -> None:
    try:
        files.rename(path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.move(path, target)


def _put_back(deleted: DeletedPreset) -> None:
    """Link it, which replaces nothing; from another file system, through a copy beside the target."""
    try:
        files.link(deleted.kept, deleted.path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with tempfile.TemporaryDirectory(prefix=".subdeck.", dir=os.path.dirname(deleted.path)) as beside:
            copy = os.path.join(beside, "copy")
            shutil.copy2(deleted.kept, copy, follow_symlinks=False)
            files.link(copy, deleted.path)


def _purge_old(trash: str) -> None:
    oldest = time.time() - KEPT
    try:
        with opened(trash) as directory:
            for name in directory.names():
                if name.startswith(_PREFIX) and directory.status(name).st_mtime < oldest:
                    directory.remove_tree(name)
    except OSError:
        return  # there is none, or another app is purging it
