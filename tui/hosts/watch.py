"""The relay's states of the hosts: read in a thread once a second, only while they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.placement import read_host_states
from ..feed.repeater import Repeater
from ._figures import Figures, Reach, back_texts, figures, lost_texts

if TYPE_CHECKING:
    from ...core.run.placement import HostStates
    from ..feed.bridge import Bridge


class HostsLook(NamedTuple):
    """The result of one read: at least the ages have changed since the last one."""

    states: HostStates | None
    figures: Figures
    lost: Sequence[str]
    """Messages on hosts lost since the last read."""
    back: Sequence[str]


class HostsWatch:
    def __init__(self, bridge: Bridge, on_look: Callable[[HostsLook], None]) -> None:
        self._bridge = bridge
        self._on_look = on_look
        self._looking = Repeater(bridge, self._look, "Host states stopped")
        self._mark: tuple[int, ...] | None = None
        """Identifies the version of the file that was read."""
        self._states: HostStates | None = None
        self._reach = Reach()

    def look(self) -> None:
        """Read the states once more; costs only a stat if nothing has changed."""
        self._looking.ask()

    def forget(self) -> None:
        """Forget which hosts were online: they were not checked for a while."""
        self._reach = Reach()

    async def _look(self) -> None:
        await self._bridge.read(self._read)
        now, states = datetime.now(UTC), self._states
        lost, back = self._reach.look(states, now)
        self._on_look(HostsLook(states, figures(states, now), lost_texts(lost), back_texts(back)))

    def _read(self) -> None:
        from ...core.config.effective_hosts import ssh_addresses

        engine = self._bridge.engine
        project = engine.project
        try:
            status = os.stat(project.hosts_file)
        except OSError:
            self._mark = self._states = None
            return
        mark = (status.st_ino, status.st_mtime_ns, status.st_size)
        if mark != self._mark:
            addresses = ssh_addresses(engine.settings.hosts)
            self._mark, self._states = mark, read_host_states(project, addresses)
