"""The log of faults."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from subdeck.core.system import log


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(log.VARIABLE, str(tmp_path / "subdeck.log"))
    return tmp_path / "subdeck.log"


def fault() -> BaseException:
    try:
        raise ValueError("oh")
    except ValueError as error:
        return error


def test_fault_has_its_traceback(file: Path) -> None:
    """A fault is in the log with what was being done and where it was raised, for nobody else to read."""
    log.log_fault("reading the runs", fault())
    written = file.read_text()
    assert "MainThread: reading the runs\n" in written
    assert 'raise ValueError("oh")' in written
    assert 0o600 == file.stat().st_mode & 0o777


def test_no_log_without_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where nobody asked for it."""
    monkeypatch.delenv(log.VARIABLE)
    log.log_fault("reading the runs", fault())
    assert not file.exists()


def test_log_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A log in a directory that does not exist is given up without a word on the screen."""
    monkeypatch.setenv(log.VARIABLE, "/nowhere/at/all.log")
    log.log_fault("reading the runs", fault())
    assert ("", "") == capfd.readouterr()


def test_fault_that_ends_a_thread(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that dies of a fault leaves it in the log, with its name."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(threading, "__excepthook__", lambda ended: None)
    log.log_thread_faults()

    def fail() -> None:
        raise ValueError("oh")

    thread = threading.Thread(target=fail, name="changes")
    thread.start()
    thread.join()
    assert "in the thread changes" in file.read_text()
