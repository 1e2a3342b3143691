"""The user's current settings of notifications, for the sender: only the user's own file is read.

A project can never name a command or an address. What was read is kept in the spool with a stamp of the file, so that
the next sender starts without the YAML reader, and wrappers know which alerts are wanted. Annotations are evaluated
here, as in `run.model`.
"""

import msgspec

from ..alerts.pending import directory
from ..alerts.wanted import RECORD, Budgets, Wanted, stamp_of
from ..config.notification_settings import Notifications
from ..paths import user_settings_file
from ..system import files
from ..system.record import read_record


class _Record(Wanted, frozen=True):
    settings: Notifications = Notifications()
    has_reply_links: bool = False
    """Whether links may reply without a paired device."""


class CurrentSettings:
    """Reads the settings again when the file has changed."""

    def __init__(self) -> None:
        self._record: _Record | None = None

    @property
    def has_reply_links(self) -> bool:
        """Whether links to requests may reply without a paired device, in the settings that were last read."""
        return self._record is not None and self._record.has_reply_links

    def read(self) -> Notifications:
        """Return the settings; the last ones while the file cannot be parsed."""
        path = user_settings_file()
        stamp = stamp_of(path)
        record = self._record or read_record(directory(RECORD), _Record)
        if record is None or (record.path, record.stamp) != (path, stamp):
            record = _read(path, stamp, record)
        self._record = record
        return record.settings


def _read(path: str, stamp: tuple[int, ...], before: _Record | None) -> _Record:
    from ..config.files import user_settings  # the YAML reader

    if (whole := user_settings()) is not None:
        settings = whole.notifications
        budgets, has_links = Budgets(whole.day_budget, whole.project_budget, whole.project_budgets), whole.web.links
    elif before and before.path == path:
        settings, budgets, has_links = before.settings, before.budgets, before.has_reply_links
    else:
        settings, budgets, has_links = Notifications(), Budgets(), False
    record = _Record(path, stamp, settings.when if settings.is_sent else (), budgets, settings, has_links)
    try:
        files.write_state(directory(RECORD), msgspec.json.encode(record))
    except OSError:
        pass  # the next one reads the file again
    return record
