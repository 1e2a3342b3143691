"""Senders that are killed at any step, and a receiver that fails: nothing is lost, and nothing is sent twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.alerts import spool
from subdeck.core.alerts.pending import pending
from subdeck.core.alerts.spool import Delivery, Document, Progress
from subdeck.core.config.notification_settings import Notifications
from subdeck.core.notify import _channels, _plan, _sender, _serve as sender

from tests.factories import write_settings
from tests.killing import IS_WHOLE, SAMPLE, kill_at
from tests.waiting import wait_until

from .receiver import RESET, TIMEOUT
from .test_plan import asked, ended

pytestmark = pytest.mark.processes

KILLS = 1000 if IS_WHOLE else 60
ACCEPTED_RESET = -3
"""The receiver takes the document, and resets the connection before it answers."""
ANSWERS = (200, 200, 200, 200, 500, 503, RESET, ACCEPTED_RESET, TIMEOUT)
TAKEN = (200, ACCEPTED_RESET)
MOST_STEPS = 60
"""Steps after which a sender that works on a few alerts has done most of its work."""


class Server:
    """The receiver, in a process of its own: this process must have one thread, because it forks senders."""

    def __init__(self, log: Path, seed: int) -> None:
        self._log = log
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(log, random.Random(seed)))
        server.handle_error = lambda request, client_address: None  # a killed sender breaks its connection off
        self.url = f"http://127.0.0.1:{server.server_address[1]}/"
        self._pid = os.fork()
        if not self._pid:
            try:
                server.serve_forever()
            finally:
                os._exit(0)
        server.server_close()

    def received(self) -> list[tuple[str, list[str], int]]:
        """Return the id of each document, the ids of its alerts, and the answer."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _handler(log: Path, chance: random.Random) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = chance.choice(ANSWERS)
            line = json.dumps([self.headers["Idempotency-Key"], [part["id"] for part in body["alerts"]], answer])
            with log.open("a") as file:
                file.write(f"{line}\n")
            if answer == TIMEOUT:
                self.connection.settimeout(1.0)
                self.rfile.read(1)  # until the sender closes the connection
            elif answer > 0:
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it replaces
            pass

    return Handler


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    print(f"SUBDECK_SAMPLE={SAMPLE} repeats these kills")
    server = Server(tmp_path / "received", SAMPLE)
    write_settings(notifications={"url": server.url, "dwell": "0s"})
    yield server
    server.close()


@pytest.fixture
def attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Counter[str]]:
    """Count the attempts of each delivery that senders begin from now on, as they say themselves: the receiver may log
    a request late.
    """
    log = tmp_path / "attempts"
    log.touch()
    attempt = sender.attempt

    def noted(channel: str, settings: Notifications, document: Document) -> str:
        with log.open("a") as file:
            file.write(f"{document.id}\n")
        return attempt(channel, settings, document)

    monkeypatch.setattr(sender, "attempt", noted)
    return lambda: Counter(log.read_text().split())


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten every wait of the sender."""
    monkeypatch.setattr(_plan, "FIRST_AGAIN_S", 0.002)
    monkeypatch.setattr(_plan, "LAST_AGAIN_S", 0.02)
    monkeypatch.setattr(_plan, "INTERVAL_S", 0.05)
    monkeypatch.setattr(_sender, "INTERVAL_S", 0.05)
    monkeypatch.setattr(_channels.post, "__defaults__", (0.1,))


def forked(step: int | None) -> int:
    """Fork a sender that is killed before its n-th step; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(60)
        if step is not None:
            kill_at(step)
        sender.serve(is_locked=False)
        code = 0
    finally:
        os._exit(code)


def unfinished() -> set[str]:
    """Return the deliveries that the spool does not record as a success."""
    deliveries = spool.read_all(spool.SENDING, Delivery, {}).values()
    return {each.id for each in deliveries if any(one.progress is Progress.WAITING for one in each.channels.values())}


def test_random_kills(server: Server, attempts: Callable[[], Counter[str]]) -> None:
    """Each condition arrives, has one id in all attempts, and is not sent again after its success was recorded."""
    chance = random.Random(SAMPLE)
    conditions: set[str] = set()
    sent: dict[str, int] = {}
    """For each delivery that was recorded as sent: how many attempts there were until then."""
    kills = 0
    while kills < KILLS:
        for _ in range(chance.randrange(3)):
            number = len(conditions)
            alert = chance.choice((asked, ended))(run=f"r{number}", at=time.time())
            conditions.add(alert.id)
            assert spool.add(alert)
        by_step = chance.random() < 0.7
        pid = forked(chance.randrange(1, MOST_STEPS) if by_step else None)
        if not by_step:
            time.sleep(chance.random() * 0.03)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert status in (0, signal.SIGKILL)
        kills += status == signal.SIGKILL
        begun = attempts()
        for delivery_id in begun.keys() - unfinished():
            assert begun[delivery_id] == sent.setdefault(delivery_id, begun[delivery_id])

    def is_done() -> bool:
        os.waitpid(forked(None), 0)
        return not pending()

    wait_until(is_done, "a sender to finish")
    received = server.received()
    documents: dict[str, set[str]] = {}
    for document, alerts, _ in received:
        for alert in alerts:
            documents.setdefault(alert, set()).add(document)
    taken = {alert for _, alerts, answer in received if answer in TAKEN for alert in alerts}
    assert (set(), []) == (conditions - taken, [alert for alert, ids in documents.items() if len(ids) > 1])
    assert [] == spool.failures()
    begun = attempts()
    assert {} == {delivery_id: count for delivery_id, count in sent.items() if begun[delivery_id] != count}
