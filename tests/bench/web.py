"""The reply page: the time from a reply to the agent's stdin, and what the server and its pages weigh."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from subdeck.core.run.snapshot import RunSnapshot

from tests.core.web.browsing import Browser

from .busy import made_project
from .figures import Figure, on_cpu_ms, percentile, resident_mb, usually
from .talk import PATIENCE_S, moments, talkers

REPLIES = usually(60, smoke=3)
PAGES = usually(50, smoke=3)
IDLE_S = usually(30.0, smoke=0.5)
PROGRAM = (sys.executable, "-P", "-m", "subdeck.tui.main")


def measure() -> Iterator[Figure]:
    with made_project() as project, talkers(project, 1, 0) as (engine, (run,), notes), _server(project.root) as server:
        process, browser = server
        sizes: list[int] = []
        posted: dict[str, int] = {}
        for number in range(REPLIES):
            text = f"ask {number}"
            engine.send(run.run_id, text)
            request = _wait_for_request(engine.snapshots, run, text)
            page = browser.get(f"/run/{run.run_id}/{request}")
            sizes.append(len(page.html.encode()))
            posted[text] = time.monotonic_ns()
            browser.press(page, "deny")
        answered = moments(notes, "answered")
        late = [(answered[text] - at) / 1e6 for text, at in posted.items()]
        middle, worst = percentile(late, 0.5), percentile(late, 0.95)
        name = "reply on the page to the agent's stdin, p50 / p95"
        yield Figure(name, f"{middle:.0f} / {worst:.0f} ms", "", "150 ms", worst <= 150)
        for _ in range(PAGES):
            sizes.append(len(browser.get("/").html.encode()))
        shared = sum(len(browser.get(path).html.encode()) for path in ("/style.css", "/page.js"))
        largest = (max(sizes) + shared) / 1000
        yield Figure("a page with its style and script", f"{largest:.0f} kB", "", "30 kB", largest <= 30)
        weight = resident_mb(process.pid)
        yield Figure(f"server after {REPLIES} replies, resident", f"{weight:.1f} MB", "", "30 MB", weight <= 30)
        before, began = on_cpu_ms(process.pid), time.monotonic()
        time.sleep(IDLE_S)
        share = (on_cpu_ms(process.pid) - before) / (time.monotonic() - began) / 10
        yield Figure("server without requests", f"{share:.3f} % of a core", "", "0.1 %", share <= 0.1)


@contextmanager
def _server(root: str) -> Iterator[tuple[subprocess.Popen[str], Browser]]:
    """Serve a project; yield the server and a paired browser."""
    command = (*PROGRAM, "web", "--listen", "127.0.0.1:0")
    server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        port, _, link = (server.stdout.readline() for _ in range(3))
        browser = Browser(int(re.findall(r":(\d+)", port)[-1]))
        browser.submit(browser.get(link.strip().removeprefix(browser.origin)), {"name": "Phone"})
        yield server, browser
    finally:
        server.kill()
        server.communicate()


def _wait_for_request(snapshots: object, run: RunSnapshot, text: str) -> str:
    """Return the id of the run's request about a text, once it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for now in snapshots([run.run_id]):  # type: ignore[operator]
            for request in now.requests:
                if text in request.title or text in request.text:
                    return request.id
        time.sleep(0.01)
    raise AssertionError(f"no request about {text}")
