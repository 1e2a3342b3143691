"""Queueing alerts: which are wanted, and one sender at a time without a lost wake-up."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from subdeck.core.alerts import dispatch as dispatching, spool
from subdeck.core.alerts.dispatch import dispatch, resume_sending
from subdeck.core.alerts.pending import pending
from subdeck.core.alerts.wanted import is_wanted
from subdeck.core.paths import CHILD
from subdeck.core.run.enumerations import AlertKind
from subdeck.core.system import files

from tests.factories import write_settings
from tests.waiting import wait_until

from .receiver import receiving, wait_until_sent
from .test_plan import asked

pytestmark = pytest.mark.processes


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the senders that are started."""
    pids: list[int] = []
    start: Callable[[int], int] = dispatching._start

    def counted(lock: int) -> int:
        pids.append(start(lock))
        return pids[-1]

    monkeypatch.setattr(dispatching, "_start", counted)
    return pids


def test_without_settings_nothing_happens(starts: list[int]) -> None:
    """Without a settings file, or without the word in it, nothing is written and no process is started."""
    dispatch(asked)
    write_settings()
    dispatch(asked)
    assert ([], False) == (starts, os.path.exists(spool.directory()))


def test_what_the_sender_has_read_decides(starts: list[int]) -> None:
    """The first alert starts a sender, which records what the user wants; until the file changes, that decides."""
    write_settings(notifications={"bell": True})
    assert is_wanted(AlertKind.FAILED)
    dispatch(asked)
    wait_until_sent()
    assert 1 == len(starts) and not is_wanted(AlertKind.NEEDS_INPUT)
    dispatch(lambda: asked(2))
    assert 1 == len(starts) and not pending()
    write_settings(notifications={"command": ["/bin/true"], "when": ["failed"]})
    assert is_wanted(AlertKind.NEEDS_INPUT)  # not read yet
    dispatch(lambda: asked(3))
    wait_until_sent()
    assert (False, True) == (is_wanted(AlertKind.NEEDS_INPUT), is_wanted(AlertKind.FAILED))


def test_many_alerts_at_once(starts: list[int]) -> None:
    """Even if many processes queue something at the same time, one sender runs, and everything arrives."""
    with receiving() as receiver:
        write_settings(notifications={"url": receiver.url})
        forks: list[int] = []
        for number in range(20):
            if not (pid := os.fork()):
                try:
                    dispatch(partial(asked, run=f"r{number}"))
                finally:
                    os._exit(0)
            forks.append(pid)
        for pid in forks:
            os.waitpid(pid, 0)
        resume_sending()
        wait_until_sent()
    parts = [part["id"] for document in receiver.documents for part in document["alerts"]]
    assert sorted(f"r{number}.q1" for number in range(20)) == sorted(parts)


def test_a_running_sender_is_woken_up() -> None:
    """An alert that comes while the sender waits is sent at once."""
    with receiving(lambda one: 500 if one.key == "r1.q1" else 200) as receiver:
        write_settings(notifications={"url": receiver.url})
        dispatch(lambda: asked(run="r1"))
        wait_until(lambda: len(receiver.received) >= 4, "the sender to wait for eight seconds")
        pid = dispatching._started[0]
        dispatch(lambda: asked(run="r2"))
        wait_until(lambda: receiver.documents, "the second alert", 4.0)
        os.kill(pid, 9)
        wait_until(lambda: not files.names(f"/proc/{pid}/fd"), "the sender to be gone")
    assert [pid] == dispatching._started
    dispatching._reap()


def test_an_agent_starts_no_sender(starts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's own subdeck queues what it finds, but the sender would end with the agent."""
    write_settings(notifications={"command": ["/bin/true"]})
    monkeypatch.setenv(CHILD, "1")
    dispatch(asked)
    assert ([], {"r1.q1"}) == (starts, pending())
    monkeypatch.delenv(CHILD)
    resume_sending()
    wait_until_sent()


def test_the_spool_is_private() -> None:
    """Only the user can read what waits."""
    write_settings(notifications={"command": ["/bin/true"]})
    spool.add(asked())
    place = Path(spool.directory(spool.QUEUE))
    assert [0o700, 0o700] == [path.stat().st_mode & 0o777 for path in (place, place.parent)]
    assert 0o600 == (place / "r1.q1").stat().st_mode & 0o777
