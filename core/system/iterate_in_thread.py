"""Take what a blocking source hands out, and get a turn when it is silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")

PARTING = 2.0
"""Seconds to wait for the source when nobody takes from it any more."""


def iterate_in_thread(
    fill: Callable[[Callable[[T], None]], object], patience: Callable[[], float | None]
) -> Iterator[T | None]:
    """Yield what `fill` puts in, in a thread of its own, and None whenever nothing came for `patience()` seconds.

    Ends when `fill` returns; what it raises is raised here. Whoever stops taking has to tell the source itself to end.
    """
    box: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            fill(lambda item: box.put((item,)))
        except BaseException as fault:
            box.put(fault)
        else:
            box.put(None)

    thread = threading.Thread(target=work, name="iterate_in_thread", daemon=True)
    thread.start()
    try:
        while True:
            seconds = patience()
            try:
                item = box.get(timeout=None if seconds is None else max(0.0, seconds))
            except Empty:
                yield None
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        thread.join(PARTING)
