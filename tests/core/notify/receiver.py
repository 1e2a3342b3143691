"""A receiver of notifications, as a webhook and as an ntfy server; it answers, or fails, as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from subdeck.core.alerts import spool
from subdeck.core.alerts.pending import pending

from tests.waiting import wait_until

RESET, TIMEOUT = -1, -2
"""Answers other than a status: the connection is reset after the request, or nothing is answered."""


class Received(NamedTuple):
    at: float
    path: str
    key: str
    """Its `Idempotency-Key`."""
    headers: dict[str, str]
    body: dict[str, Any]
    answer: int


class Receiver:
    """Keeps everything that it was sent."""

    def __init__(self, answer: Callable[[Received], int]) -> None:
        self.received: list[Received] = []
        self.answer = answer
        """Returns the status to answer with, RESET or TIMEOUT."""
        self.is_closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/agents"

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The documents that it has accepted, each once."""
        return list({one.key: one.body for one in self.received if 200 <= one.answer < 300}.values())

    def close(self) -> None:
        self.is_closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A killed sender breaks its connection off."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            body = json.loads(content)  # a request that was broken off raises, and was not received
            known = dict(self.headers.items())
            one = Received(time.time(), self.path, known.get("Idempotency-Key", ""), known, body, 0)
            answer = receiver.answer(one)
            receiver.received.append(one._replace(answer=answer))
            if answer == TIMEOUT:
                receiver.is_closing.wait(60)
            elif answer != RESET:
                self.send_response(answer)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it replaces
            pass

    return Handler


@contextmanager
def receiving(answer: Callable[[Received], int] = lambda _: 200) -> Iterator[Receiver]:
    receiver = Receiver(answer)
    try:
        yield receiver
    finally:
        receiver.close()


def wait_until_sent() -> None:
    """Wait until the spool is empty and its sender has exited."""
    wait_until(lambda: not (spool.is_sending() or pending()), "the sender to finish")
