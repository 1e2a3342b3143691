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
    """A fault is logged privately, with the current activity and the traceback."""
    log.log_fault("reading the runs", fault())
    written = file.read_text()
    assert "MainThread: reading the runs\n" in written
    assert 'raise ValueError("oh")' in written
    assert 0o600 == file.stat().st_mode & 0o777


def test_no_log_without_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable nothing is logged."""
    monkeypatch.delenv(log.VARIABLE)
    log.log_fault("reading the runs", fault())
    assert not file.exists()


def test_log_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A log that cannot be written is dropped without output on the screen."""
    monkeypatch.setenv(log.VARIABLE, "/nowhere/at/all.log")
    log.log_fault("reading the runs", fault())
    assert ("", "") == capfd.readouterr()


def test_fault_that_ends_a_thread(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that ends a thread is logged with the thread's name."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(threading, "__excepthook__", lambda ended: None)
    log.log_thread_faults()

    def fail() -> None:
        raise ValueError("oh")

    thread = threading.Thread(target=fail, name="changes")
    thread.start()
    thread.join()
    assert "in the thread changes" in file.read_text()
