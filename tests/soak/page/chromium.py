"""Headless Chromium over a pipe, with its DevTools protocol: JSON messages, each with a zero byte after it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 30.0
WIDTH, HEIGHT = 390, 844
"""CSS pixels of a usual phone."""
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
"""By name: code, and text."""


def program() -> str | None:
    """Return the browser on PATH; None if there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """A running browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._last, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        number = self._last
        answer = self._until(lambda one: one.get("id") == number, method)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, method: str, session: str) -> None:
        """Wait for an event that has come since the last call of `forget`."""

        def is_it(one: dict[str, Any]) -> bool:
            return one.get("method") == method and one.get("sessionId") == session

        if not any(map(is_it, self.events)):
            self._until(is_it, method)

    def forget(self) -> None:
        self.events.clear()

    def _until(self, is_it: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            head, zero, rest = self._rest.partition(b"\0")
            if zero:
                self._rest = rest
                message = json.loads(head)
                if is_it(message):
                    return message
                self.events.append(message)
            elif not select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"the browser gave no answer to {what}")
            elif not (block := os.read(self._from, 1 << 16)):
                raise AssertionError(f"the browser ended during {what}")
            else:
                self._rest += block


class Tab:
    """A page in a browser context of its own, so without cookies of another one."""

    def __init__(
        self, browser: Chromium, *, scheme: str, scripts: bool, width: int = WIDTH, height: int = HEIGHT
    ) -> None:
        self._browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime"):
            self._call(f"{domain}.enable")
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width == WIDTH}
        self._call("Emulation.setDeviceMetricsOverride", **metrics)
        self.prefer(scheme)
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def prefer(self, scheme: str) -> None:
        """Prefer the light or the dark colours of a page."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self._browser.forget()
        self._call("Page.navigate", url=url)
        self._browser.wait("Page.loadEventFired", self._session)

    def value(self, expression: str) -> Any:
        """Evaluate an expression in the page."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        code, text = KEYS[key]
        known = {"key": key, "code": key.strip() or "Space", "windowsVirtualKeyCode": code}
        self._call("Input.dispatchKeyEvent", type="keyDown", **known, **({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **known)

    def press_and_load(self, key: str) -> None:
        """Press a key that leads to another page."""
        self._browser.forget()
        self.press(key)
        self._browser.wait("Page.loadEventFired", self._session)

    def tab_to(self, selector: str) -> None:
        """Press Tab until the element has the focus."""
        for _ in range(60):
            self.press("Tab")
            if self.value(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"Tab never reaches {selector}")

    def until(self, expression: str, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise AssertionError(f"the page never shows {what}")
            time.sleep(0.05)

    def picture(self, path: Path) -> None:
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def chromium(executable: str) -> Iterator[Chromium]:
    """Start a browser; it ends with the context."""
    to_read, to_browser = os.pipe()
    from_browser, to_write = os.pipe()
    inner = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in (to_read, to_write)]

    def place() -> None:
        for number, one in enumerate(inner, 3):
            os.dup2(one, number)

    flags = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-extensions"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        process = subprocess.Popen(
            [executable, *flags, f"--user-data-dir={directory}", "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for one in (to_read, to_write, *inner):
            os.close(one)
        try:
            yield Chromium(to_browser, from_browser)
        finally:
            os.close(to_browser)
            os.close(from_browser)
            process.terminate()
            process.wait(PATIENCE_S)
