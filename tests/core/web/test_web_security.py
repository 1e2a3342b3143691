"""What the reply page refuses: other sites, other names, old forms, used links, and everything without a pairing."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from subdeck.core.engine import Engine
from subdeck.core.project.talk import Sent as TalkSent
from subdeck.core.run.events import Decision, Event, Request
from subdeck.core.run.inbox import EntryKind, InboxEntry
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import log
from subdeck.core.web._attempts import PER_ADDRESS
from subdeck.core.web._runs import Runs
from subdeck.core.web.address import proxied_origin
from subdeck.core.web.devices import Devices

from tests.core.talking import Listening, answering, listening, permission
from tests.factories import make_finished

from .browsing import Answer, Browser, at_once, serving


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return Engine.open(str(project_dir))


@pytest.fixture
def run(engine: Engine) -> Iterator[Listening]:
    with listening(engine.project, permission()) as run:
        yield run


@pytest.fixture
def browser(engine: Engine) -> Iterator[Browser]:
    with serving(engine) as browser:
        yield browser


def decided(entry: InboxEntry) -> list[Event]:
    """Decide like the run's wrapper."""
    assert entry.verdict
    return [Decision(request=entry.request, verdict=entry.verdict, text=entry.text, by=entry.by, message=entry.id)]


@contextmanager
def answered(run: Listening) -> Iterator[list[InboxEntry]]:
    """Collect the run's entries, and decide requests."""
    taken: list[InboxEntry] = []

    def take(entry: InboxEntry) -> list[Event]:
        taken.append(entry)
        return decided(entry)

    with answering(run, take):
        yield taken


def pages_of(run: Listening) -> list[str]:
    at = f"/run/{run.run_id}"
    sent = "0" * 12
    return ["/", at, f"{at}/changes", f"{at}/q1", f"{at}/q1/{sent}", f"{at}/message/{sent}", "/changes"]


def test_nothing_is_shown_without_a_pairing(run: Listening, browser: Browser) -> None:
    """Every page asks to pair, with the name of no run, no request and no project; no form is accepted."""
    for path in pages_of(run):
        page = browser.get(path)
        assert (401, "Pair this device") == (page.status, page.heading)
        assert not re.search(r"rm -rf|project|answer ok|wants to", page.html.replace("this project", ""))
        assert run.short_id not in page.html
    for path in (f"/run/{run.run_id}/q1", f"/run/{run.run_id}/message"):
        assert 401 == browser.post(path, {"verdict": "allow", "text": "x", "token": "x", "shown": "x"}).status
    browser.cookie = f"subdeck={'0' * 64}"
    assert 401 == browser.get("/").status
    assert [] == run.take()


def test_pairing_needs_the_form(run: Listening, browser: Browser) -> None:
    """Opening the link pairs nothing and leaves the code usable; sending its form pairs, once."""
    code = Devices().new_code()
    browser.get(f"/pair?code={code}")
    page = browser.get(f"/pair?code={code}")
    assert (200, "") == (page.status, browser.cookie)
    assert 200 == browser.submit(page, {"name": "Phone"}).status
    assert "needs input" in browser.get("/").heading
    other = Browser(browser.port)
    assert 403 == other.submit(page, {"name": "Phone"}).status
    assert "" == other.cookie


def test_the_cookie_is_for_the_page_only(engine: Engine) -> None:
    """Scripts cannot read it, other sites cannot send it, and behind TLS it travels only there, under a bound name."""
    with serving(engine, proxied_origin("https://box.example.ts.net")) as browser:
        browser.pair()
        flags = set(browser.set_cookies[0].split("; ")[1:])
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= flags
        assert browser.set_cookies[0].startswith("subdeck=")
        proxied = Browser(browser.port, "box.example.ts.net", "https://box.example.ts.net")
        proxied.pair()
        assert {"HttpOnly", "SameSite=Strict", "Path=/", "Secure"} <= set(proxied.set_cookies[0].split("; ")[1:])
        assert proxied.set_cookies[0].startswith("__Host-subdeck=")
        assert "Domain" not in proxied.set_cookies[0]


def test_a_reported_address_counts_only_behind_a_proxy(engine: Engine) -> None:
    """A header names the browser's address only for the name of a proxy, and only its last entry, the proxy's own."""
    forwarded = {"X-Forwarded-For": "1.2.3.4, 100.64.0.7"}
    with serving(engine, proxied_origin("https://box.example.ts.net")) as browser:
        browser.pair()
        browser.get("/", **forwarded)
        assert ["127.0.0.1"] == [device.address for device in Devices().devices()]
        proxied = Browser(browser.port, "box.example.ts.net", "https://box.example.ts.net")
        proxied.pair()
        proxied.get("/", **forwarded)
        assert ["127.0.0.1", "100.64.0.7"] == [device.address for device in Devices().devices()]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example"])
def test_another_host_is_refused(run: Listening, browser: Browser, host: str) -> None:
    """A name that leads here is not served, so that no page of another site can read this one."""
    browser.pair()
    browser.host = host
    for path in ("/", "/pair", "/style.css", "/nosuch", f"/run/{run.run_id}/q1"):
        answer = browser.get(path)
        assert answer.status in (400, 421)
        assert "rm -rf" not in answer.html


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_another_origin_is_refused(run: Listening, browser: Browser, origin: str | None) -> None:
    """A form of another site is not accepted, whatever it contains."""
    browser.pair()
    page = browser.get(f"/run/{run.run_id}/q1")
    form = page.document.form(value="allow")
    headers = {"Origin": origin and origin.format(port=browser.port)}
    assert 403 == browser.post(form.action, {**form.fields, "verdict": "allow"}, headers).status
    assert 403 == browser.post("/pair", {"code": Devices().new_code(), "name": "x"}, headers).status
    assert [] == run.take()
    assert 1 == len(Devices().devices())


def test_only_the_shown_text_is_answered(engine: Engine, run: Listening, browser: Browser) -> None:
    """If the request has changed since it was shown, nothing is sent, and the new one is shown with its own form."""
    browser.pair()
    page = browser.get(f"/run/{run.run_id}/q1")
    run.write(Decision(request="q1", verdict=Verdict.WITHDRAWN, by="agent"), permission(command="rm -rf /"))
    changed = browser.press(page, "allow")
    assert 409 == changed.status
    assert "The request has changed" in changed.text
    assert "rm -rf /\n" in changed.document.text("pre")
    assert [] == run.take()
    with answered(run) as taken:
        assert "Reply sent" == browser.press(changed, "allow").heading
    assert [Verdict.ALLOW] == [entry.verdict for entry in taken]


def test_a_form_is_for_one_request_and_browser(engine: Engine, browser: Browser) -> None:
    """A token of another request, another browser, or with other text, sends nothing."""
    with listening(engine.project, permission(), permission(2, command="make")) as run:
        browser.pair()
        other = Browser(browser.port)
        other.pair()
        at = f"/run/{run.run_id}"
        own, second = (browser.get(f"{at}/{name}").document.form(value="allow").fields for name in ("q1", "q2"))
        foreign = other.get(f"{at}/q1").document.form(value="allow").fields
        wrong = (
            second,
            {**own, "token": second["token"]},
            {**own, "shown": second["shown"]},
            foreign,
            {**own, "token": ""},
            {"shown": own["shown"]},
            {},
        )
        for fields in wrong:
            assert 409 == browser.post(f"{at}/q1", {**fields, "verdict": "allow"}).status
            assert 409 == browser.post(f"{at}/message", {**fields, "text": "hello"}).status
        assert 404 == browser.post(f"{at}/q3", {**own, "verdict": "allow"}).status
        assert [] == run.take()


def test_looking_sends_nothing(run: Listening, browser: Browser) -> None:
    """No GET replies, sends a message or uses up anything, with any fields in its address."""
    browser.pair()
    fields = browser.get(f"/run/{run.run_id}/q1").document.form(value="allow").fields
    for path in pages_of(run)[:-1]:
        browser.get(f"{path}?{urlencode({**fields, 'verdict': 'allow', 'text': 'hello'})}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert browser.ask(method, f"/run/{run.run_id}/q1").status in (403, 405)
    assert [] == run.take()


def test_a_link_replies_once(run: Listening, browser: Browser) -> None:
    """Opening a link shows its request and nothing more; its first reply counts, and then it is used up."""
    token = Devices().new_link(run.run_id, "q1")
    browser.get(f"/link/{token}")
    page = browser.get(f"/link/{token}")
    assert "rm -rf build" in page.document.text("pre")
    assert [] == run.take()
    with answered(run) as taken:
        result = browser.press(page, "deny", reason="not now")
        assert "Denied by the user with a link at 127.0.0.1: not now" in result.text
        assert 410 == browser.press(page, "allow").status
    assert ["not now"] == [entry.text for entry in taken]
    assert (410, 401) == (browser.get(f"/link/{token}").status, browser.get("/").status)
    assert 410 == browser.get(f"/link/{'0' * 64}").status


def test_a_link_used_at_the_same_moment_replies_once(
    run: Listening, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several browsers with the same link one replies, even before the run has taken its reply."""
    sent: list[str] = []

    def reply(runs: Runs, run: RunSnapshot, request: Request, verdict: Verdict, text: str, by: str) -> TalkSent:
        sent.append(by)
        return TalkSent(run.run_id, "0" * 12, EntryKind.REPLY, 0)

    monkeypatch.setattr(Runs, "reply", reply)
    page = browser.get(f"/link/{Devices().new_link(run.run_id, 'q1')}")
    found = at_once(*[lambda: browser.press(page, "allow").status] * 4)
    assert [200, 410, 410, 410] == sorted(found)
    assert ["the user with a link at 127.0.0.1"] == sent


def test_a_link_is_for_its_request(engine: Engine, browser: Browser) -> None:
    """Its form cannot reply to another request, and a changed request does not use it up."""
    with listening(engine.project, permission(), permission(2)) as run:
        token = Devices().new_link(run.run_id, "q1")
        page = browser.get(f"/link/{token}")
        fields = page.document.form(value="allow").fields
        assert 401 == browser.post(f"/run/{run.run_id}/q1", {**fields, "verdict": "allow"}).status
        other = Devices().new_link(run.run_id, "q2")
        assert 409 == browser.post(f"/link/{other}", {**fields, "verdict": "allow"}).status
        run.write(Decision(request="q1", verdict=Verdict.WITHDRAWN, by="agent"), permission(command="rm -rf /"))
        assert 409 == browser.press(page, "allow").status
        assert [] == run.take()
        assert Devices().link(token)
        assert "All runs" not in page.text


def test_read_only_sends_nothing(engine: Engine, run: Listening) -> None:
    """With --readonly no page has a form, and a posted one is refused."""
    with serving(engine, readonly=True) as browser:
        browser.pair()
        assert [] == browser.get(f"/run/{run.run_id}/q1").document.forms
        assert [] == browser.get(f"/run/{run.run_id}").document.forms
        token = Devices().new_link(run.run_id, "q1")
        for path in (f"/run/{run.run_id}/q1", f"/run/{run.run_id}/message", f"/link/{token}"):
            assert 403 == browser.post(path, {"verdict": "allow", "text": "x"}).status
        assert [] == run.take()
        assert Devices().link(token)


def test_guessing_codes_is_slow(browser: Browser) -> None:
    """After five attempts a minute even the right code is refused."""
    for _ in range(PER_ADDRESS):
        assert 403 == browser.post("/pair", {"code": "WRONG", "name": "x"}).status
    answer = browser.post("/pair", {"code": Devices().new_code(), "name": "x"})
    assert 429 == answer.status
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert () == Devices().devices()


def test_a_revoked_device_sees_nothing_more(run: Listening, browser: Browser) -> None:
    """Its open page cannot reply either."""
    browser.pair()
    page = browser.get(f"/run/{run.run_id}/q1")
    (device,) = Devices().devices()
    Devices().revoke([device.id])
    assert 401 == browser.get("/").status
    assert 401 == browser.press(page, "allow").status
    assert [] == run.take()


def test_every_page_has_the_headers(run: Listening, browser: Browser) -> None:
    """Nothing is loaded from elsewhere, framed, guessed, kept, or run if it stands in the page."""
    found: list[Answer] = [browser.get("/"), browser.get("/nosuch"), browser.get("/pair"), browser.post("/pair", {})]
    browser.pair()
    found += [browser.get(path) for path in (*pages_of(run)[:-1], "/style.css", "/page.js")]
    for answer in found:
        parts = (part.strip().partition(" ") for part in answer.headers["Content-Security-Policy"].split(";"))
        policy = {name: source for name, _, source in parts}
        assert {
            "default-src": "'none'", "style-src": "'self'", "script-src": "'self'", "connect-src": "'self'",
            "form-action": "'self'", "base-uri": "'none'", "frame-ancestors": "'none'",
        } == policy  # fmt: skip
        assert ("DENY", "nosniff", "same-origin") == (
            answer.headers["X-Frame-Options"],
            answer.headers["X-Content-Type-Options"],
            answer.headers["Referrer-Policy"],
        )
        assert "Server" not in answer.headers
        if answer.headers["Content-Type"].startswith("text/html"):
            assert "no-store" == answer.headers["Cache-Control"]
            elements = answer.document.elements
            assert not [one for one in elements if any(name.startswith("on") for name in one.attributes)]
            assert not [one for one in elements if one.name == "style" or "style" in one.attributes]
            assert "" == answer.document.text("script")


def test_no_secret_is_logged(
    engine: Engine,
    run: Listening,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No code, cookie or token stands in the log, the output or a file of the project, also if a page fails."""
    monkeypatch.setenv(log.VARIABLE, str(tmp_path / "log"))
    log._logger.cache_clear()
    others = io.StringIO()
    for name in ("access", "application", "general"):
        logger, handler = logging.getLogger(f"tornado.{name}"), logging.StreamHandler(others)
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "level", logging.DEBUG)
    code = Devices().new_code()
    browser.submit(browser.get(f"/pair?code={code}"), {"name": "Phone"})
    token = Devices().new_link(run.run_id, "q1")
    page = browser.get(f"/run/{run.run_id}/q1")

    def fails(*_: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(Runs, "run", fails)
    for path in (f"/link/{token}", f"/run/{run.run_id}/q1?token={token}"):
        assert 500 == browser.get(path).status
    assert 500 == browser.press(page, "allow").status
    monkeypatch.undo()
    logged = (tmp_path / "log").read_text()
    assert "on purpose" in logged
    secrets = [code, token, browser.cookie.partition("=")[2], page.document.form(value="allow").fields["token"]]
    written = [logged, others.getvalue(), *capfd.readouterr()]
    written += [path.read_text(errors="replace") for path in Path(engine.project.root).rglob("*") if path.is_file()]
    assert [] == [secret for secret in secrets for text in written if secret in text]


def test_a_finished_run_takes_nothing(engine: Engine, browser: Browser) -> None:
    """A message to it is refused with the reason, and its page has no box for one."""
    meta = make_finished(engine.project)
    browser.pair()
    page = browser.get(f"/run/{meta.run_id}")
    assert [] == page.document.forms
    assert 404 == browser.get(f"/run/{meta.run_id}/q1").status
    assert 404 == browser.get("/run/20200101-000000-abcdef").status


@pytest.mark.parametrize(
    "path", ["/run/../../etc/passwd", "/run/x", "/link/x", "/templates/base.html", "/devices", "//"]
)
def test_other_addresses_do_not_exist(browser: Browser, path: str) -> None:
    """No file is served but the style sheet and the script."""
    browser.pair()
    assert 404 == browser.get(path).status


def test_an_untrusted_run_is_not_answered(engine: Engine, browser: Browser, project_dir: Path) -> None:
    """A run that came with the checkout has no request here."""
    with listening(engine.project, permission()) as run:
        record = Path(engine.project.run_dir(run.run_id), "meta.json")
        record.write_text(record.read_text().replace("answer ok", "answer no"))
        browser.pair()
        assert "Nothing needs input" == browser.get("/").heading
        assert 404 == browser.get(f"/run/{run.run_id}/q1").status


Ask = Callable[[Browser, Answer], Answer]


@pytest.mark.parametrize(
    ("press", "verdict", "text"),
    [
        (lambda browser, page: browser.press(page, "allow"), Verdict.ALLOW, ""),
        (lambda browser, page: browser.press(page, "allow_run"), Verdict.ALLOW_RUN, ""),
        (lambda browser, page: browser.press(page, "deny"), Verdict.DENY, ""),
        (lambda browser, page: browser.press(page, "deny", reason="use\r\nmake"), Verdict.DENY, "use\nmake"),
    ],
)
def test_each_button_sends_its_reply(run: Listening, browser: Browser, press: Ask, verdict: Verdict, text: str) -> None:
    """Allow, allow in this run, deny, and deny with a reason."""
    browser.pair()
    with answered(run) as taken:
        assert "Reply sent" == press(browser, browser.get(f"/run/{run.run_id}/q1")).heading
    assert [(verdict, text)] == [(entry.verdict, entry.text) for entry in taken]
