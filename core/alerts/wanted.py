"""Whether the user wants a kind of alert: decided when an alert is due, by the current settings.

Reading the settings takes longer than everything else a wrapper does for an alert, and needs the YAML reader. So the
sender leaves what it has read in a record, with a stamp of the settings file; while the stamp fits, the record counts.
Otherwise an alert is queued if the file has the word, and the sender decides. Annotations are evaluated here, as
in `run.model`.
"""

import os

from msgspec import Struct

from ..paths import user_settings_file
from ..run.enumerations import AlertKind
from ..system import files
from ..system.record import read_record
from .pending import directory

RECORD = "settings"
_WORD = b"notifications"


class Budgets(Struct, frozen=True, omit_defaults=True):
    """The daily budgets in the user's file; dollars."""

    day: float | None = None
    project: float | None = None
    projects: dict[str, float] = {}
    """By directory, as written."""


class Wanted(Struct, frozen=True):
    """What the sender has last read."""

    path: str
    """The settings file."""
    stamp: tuple[int, ...]
    kinds: tuple[AlertKind, ...]
    """Empty if notifications are not sent anywhere."""
    budgets: Budgets = Budgets()


def is_wanted(kind: AlertKind) -> bool:
    """Return whether the user may want this kind of alert; costs a stat and a small file."""
    path = user_settings_file()
    if not (stamp := stamp_of(path)):
        return False
    record = read_record(directory(RECORD), Wanted)
    if record is not None and (record.path, record.stamp) == (path, stamp):
        return kind in record.kinds
    return _WORD in files.content(path)


def budgets() -> Budgets | None:
    """Return the user's daily budgets; None if the sender has not read the current settings."""
    path = user_settings_file()
    record = read_record(directory(RECORD), Wanted)
    return record.budgets if record and (record.path, record.stamp) == (path, stamp_of(path)) else None


def stamp_of(path: str) -> tuple[int, ...]:
    """Return a value that differs once a file was changed; empty for a missing file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino
