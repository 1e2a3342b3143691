"""A served page, and a browser for it: an HTTP client that reads HTML and submits forms."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlencode

from subdeck.core.engine import Engine
from subdeck.core.web.address import Address, Origin, Served, served
from subdeck.core.web.devices import Devices
from subdeck.core.web.server import listening, serve

VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


class Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    inside: tuple[str, ...]
    """Names of the elements around it."""


class Form(NamedTuple):
    action: str
    fields: dict[str, str]
    """Fields that a browser sends without input, by name."""
    buttons: list[dict[str, str]]


class Document(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.forms: list[Form] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert [] == self._open, f"elements that are not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        assert len(attributes) == len(attrs), f"an attribute twice: {attrs}"
        self.elements.append(Element(tag, attributes, tuple(name for name, _ in self._open)))
        if tag == "form":
            self.forms.append(Form(attributes["action"], {}, []))
        if tag == "button":
            self.forms[-1].buttons.append(attributes)
        if tag in ("input", "textarea", "select") and attributes.get("type") != "radio":
            self.forms[-1].fields[attributes["name"]] = attributes.get("value", "")
        if tag not in VOID:
            self._open.append((tag, attributes.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(name for name, _ in self._open), data))

    def text(self, within: str = "body") -> str:
        return "".join(data for names, data in self.texts if within in names)

    def all(self, name: str) -> list[Element]:
        return [element for element in self.elements if element.name == name]

    def form(self, **button: str) -> Form:
        """Return the form that has a button with these attributes."""
        return next(
            form for form in self.forms if any(button.items() <= attributes.items() for attributes in form.buttons)
        )


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    html: str

    @property
    def document(self) -> Document:
        return Document(self.html)

    @property
    def text(self) -> str:
        """The text in the main part."""
        return self.document.text("main")

    @property
    def heading(self) -> str:
        return self.document.text("h1")


class Browser:
    """Keeps its cookie, and follows redirects of its own forms."""

    def __init__(self, port: int, host: str = "", origin: str = "") -> None:
        self.port = port
        self.host = host or f"127.0.0.1:{port}"
        self.origin = origin or f"http://{self.host}"
        self.cookie = ""
        self.set_cookies: list[str] = []

    def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str | None] | None = None) -> Answer:
        """Send one request; a header of None is left out."""
        usual: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie or None}
        if method == "POST":
            usual |= {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent = {name: value for name, value in (usual | (headers or {})).items() if value is not None}
            connection.request(method, path, body if method == "POST" else None, sent)
            response = connection.getresponse()
            html = response.read().decode()
            for name, value in response.getheaders():
                if name == "Set-Cookie":
                    self.set_cookies.append(value)
                    self.cookie = value.partition(";")[0]
            return Answer(response.status, dict(response.getheaders()), html)
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, headers=dict(headers))

    def post(self, path: str, fields: dict[str, str], headers: dict[str, str | None] | None = None) -> Answer:
        """Post a form, and follow the redirect to its result."""
        answer = self.ask("POST", path, urlencode(fields).encode(), headers)
        return self.get(answer.headers["Location"]) if answer.status == 303 else answer

    @contextmanager
    def stream(self, path: str) -> Iterator[HTTPResponse]:
        """Open a page that does not end by itself."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Host": self.host, "Cookie": self.cookie})
            yield connection.getresponse()
        finally:
            connection.close()

    def submit(self, page: Answer, fields: dict[str, str] | None = None, **button: str) -> Answer:
        """Fill in the form with this button, and press it."""
        form = page.document.form(**button)
        pressed = {button["name"]: button["value"]} if "name" in button else {}
        return self.post(form.action, {**form.fields, **(fields or {}), **pressed})

    def press(self, page: Answer, verdict: str, **fields: str) -> Answer:
        """Press a button of a reply, in the form that has these fields."""
        form = next(
            form
            for form in page.document.forms
            if any(one.get("value") == verdict for one in form.buttons) and form.fields.keys() >= fields.keys()
        )
        return self.post(form.action, {**form.fields, **fields, "verdict": verdict})

    def pair(self, name: str = "Phone") -> Answer:
        """Pair it with a new code."""
        page = self.get(f"/pair?code={Devices().new_code()}")
        return self.submit(page, {"name": name})


@contextmanager
def serving(engine: Engine, *proxied: Origin, readonly: bool = False) -> Iterator[Browser]:
    """Serve the page of an engine in a thread; yield a browser that is not paired."""
    sockets, address = listening(Address("127.0.0.1", 0))
    names: Served = served(address, is_tls=False, proxied=proxied)
    ready, stops = threading.Event(), []

    def on_ready(stop: object) -> None:
        stops.append(stop)
        ready.set()

    work = threading.Thread(
        target=serve, args=(engine, sockets, names), kwargs={"readonly": readonly, "on_ready": on_ready}
    )
    work.start()
    try:
        assert ready.wait(30)
        yield Browser(address.port)
    finally:
        stops[0]()
        work.join(30)


def at_once(*replies: Callable[[], object]) -> list[Any]:
    """Call these functions at the same moment, each in a thread; return their results."""
    start = threading.Barrier(len(replies))
    results: list[Any] = [None] * len(replies)

    def call(at: int) -> None:
        start.wait()
        results[at] = replies[at]()

    threads = [threading.Thread(target=call, args=(at,)) for at in range(len(replies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def words(text: str) -> str:
    """Return a text with single spaces."""
    return re.sub(r"\s+", " ", text).strip()
