"""The log of faults: the file named by `SUBDECK_LOG` gets each with its traceback; without it nothing is written."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from .files import open_private

if TYPE_CHECKING:
    from logging import Logger

VARIABLE = "SUBDECK_LOG"


def log_fault(doing: str, fault: BaseException) -> None:
    """Write the failed action and the traceback of its fault, if a log is set."""
    if path := os.environ.get(VARIABLE):
        _logger(path).error(doing, exc_info=fault)


def log_thread_faults() -> None:
    """Write faults that end threads of this process, if a log is set."""
    if not os.environ.get(VARIABLE):
        return
    import threading

    def note(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None:
            log_fault(f"in the thread {ended.thread.name if ended.thread else '?'}", ended.exc_value)
        threading.__excepthook__(ended)

    threading.excepthook = note


@cache
def _logger(path: str) -> Logger:
    import logging

    logger = logging.getLogger("subdeck")
    logger.propagate = False
    try:
        os.close(open_private(path, os.O_WRONLY | os.O_APPEND))
        handler: logging.Handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError:
        handler = logging.NullHandler()  # a log that cannot be written must not be a fault itself
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(threadName)s: %(message)s"))
    logger.addHandler(handler)
    return logger
