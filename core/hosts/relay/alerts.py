"""The requests of a run on a host, for the user away from the terminal: its wrapper is on another machine, whose
settings do not count.
"""

from __future__ import annotations

import os
import time

from ... import paths
from ...alerts.alert import end_alert, request_alert
from ...alerts.dispatch import dispatch, settle_request
from ...alerts.wanted import is_wanted
from ...run.enumerations import AlertKind
from ...run.events import Decision, EventTail, Request, RunEnded
from ...run.model import RunMeta, RunResult


class RemoteAlerts:
    """Queues the alerts of one run, as its mirrored events arrive. Raises nothing but OSError."""

    def __init__(self, project: paths.Project, meta: RunMeta) -> None:
        self._root = project.root
        self._meta = meta
        self._tail = EventTail(os.path.join(project.run_dir(meta.run_id), paths.EVENTS))
        self._open: dict[str, Request] = {}
        self._queued: set[str] = set()

    def look(self) -> None:
        """Read new events; queue the open requests, and withdraw the others."""
        if not is_wanted(AlertKind.NEEDS_INPUT):
            return
        for event in self._tail.read():
            match event:
                case Request():
                    self._open[event.id] = event
                case Decision():
                    self._open.pop(event.request, None)
                case RunEnded():
                    self._open.clear()
                case _:
                    pass
        for request_id in self._queued - self._open.keys():
            settle_request(self._meta.run_id, request_id)
        for request_id in self._open.keys() - self._queued:
            request = self._open[request_id]
            dispatch(lambda request=request: request_alert(self._meta, self._root, request, at=time.time()))
        self._queued = {*self._open}

    def ended(self, result: RunResult) -> None:
        """Queue the alert of the run's end."""
        dispatch(lambda: end_alert(self._meta, self._root, result, at=time.time()))
