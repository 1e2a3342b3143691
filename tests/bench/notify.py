"""The time from an agent's request to the notification, with busy runs and no open app."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from subdeck.core.alerts import spool
from subdeck.core.alerts.pending import pending
from subdeck.core.run.model import Verdict

from .busy import made_project
from .figures import Figure, percentile, usually
from .talk import moments, talkers

RUNS = usually(20, smoke=2)
PER_SECOND = 5
"""Events that each of them writes."""
ROUNDS = usually(3, smoke=1)
"""Each run is asked once: a second notification for it would wait for a minute."""
PATIENCE_S = 30.0


def measure() -> Iterator[Figure]:
    late: list[float] = []
    with _receiver() as (url, received):
        for _ in range(ROUNDS):
            late += _round(url, received)
    middle, worst = percentile(late, 0.5), percentile(late, 0.95)
    name = f"request to the notification, {RUNS} busy runs, the sender not running, p50 / p95"
    yield Figure(name, f"{middle:.0f} / {worst:.0f} ms", "", "300 ms (p95)", worst <= 300)


def _round(url: str, received: dict[str, int]) -> list[float]:
    """Let each run ask once; return the milliseconds until its notification."""
    settings = {"notifications": {"url": url, "when": ["needs_input"]}}
    with made_project() as project, talkers(project, RUNS, PER_SECOND, **settings) as (engine, runs, notes):
        for number, run in enumerate(runs):
            engine.send(run.run_id, f"ask {number}")
            _wait_for(f"{run.run_id}.q1", received)
            engine.reply(run.run_id, "", Verdict.DENY)
            _wait_until_idle()
        asked = moments(notes, "asks")
    return [(received[f"{run.run_id}.q1"] - asked[f"ask {number}"]) / 1e6 for number, run in enumerate(runs)]


def _wait_for(alert: str, received: dict[str, int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while alert not in received:
        if time.monotonic() > deadline:
            raise AssertionError(f"no notification of {alert}")
        time.sleep(0.005)


def _wait_until_idle() -> None:
    """Wait until the sender has exited, so that the next request has to start one."""
    deadline = time.monotonic() + PATIENCE_S
    while pending() or spool.is_sending():
        if time.monotonic() > deadline:
            raise AssertionError("the sender does not exit")
        time.sleep(0.01)


@contextmanager
def _receiver() -> Iterator[tuple[str, dict[str, int]]]:
    """Serve an address; yield it, and when each alert arrived there, in monotonic nanoseconds."""
    received: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.setdefault(self.headers["Idempotency-Key"], time.monotonic_ns())
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it replaces
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
