"""What the pages show: the exact request, hostile text as text, and forms for keyboard, screen reader and phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core import web
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Field, Message, Request
from subdeck.core.run.model import MessageState, RequestKind, RunReason, Verdict
from subdeck.core.web._request import request_lines
from subdeck.core.web._site import KEEP_ALIVE, MOST_WAITING
from subdeck.core.web._templates import shown
from subdeck.tui.talk._request_rows import request_rows

from tests.core.talking import answering, choice, listening, permission
from tests.factories import make_finished, make_meta
from tests.hostile import IN_JSON, controls
from tests.waiting import wait_until

from .browsing import Answer, Browser, serving, words
from .test_web_security import answered

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;</pre></main>{{ 1 + 1 }}{% raw x %}"
"""What HTML, an attribute or a template would interpret."""
DIFF = "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,3 +1,3 @@\n import os\n-print('<b>')\n+print('\u202eevil')\n x = 1\n"

REQUESTS = [
    permission(),
    permission(command="", paths=("/etc/passwd", "src/a.py"), tool_name="edit", diff=DIFF, cwd="/tmp"),
    permission(command=f"echo {MARKUP}\nrm -rf \u200b/", rule="bash(rm *)", run_rule="", text="Why: <i>clean</i>"),
    permission(command="x", missing=5),
    choice(),
    Request(id="q1", kind=RequestKind.QUESTION, title="has a question", text="What now?", choices=("a", "b")),
    Request(
        id="q1",
        kind=RequestKind.FORM,
        title="asks for input",
        text="Fill in",
        fields=(
            Field(name="who", title="Who?", text="A name", required=True),
            Field(name="size", choices=("small", "large")),
        ),
    ),
]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return Engine.open(str(project_dir))


@pytest.fixture
def browser(engine: Engine) -> Iterator[Browser]:
    with serving(engine) as browser:
        browser.pair()
        yield browser


def squeezed(text: str) -> str:
    """Return a text without the blanks and marks that only one of two screens adds."""
    return re.sub(r"\s+|↪", "", text)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.title + str(len(request.paths)))
def test_the_request_is_that_of_the_deck(engine: Engine, browser: Browser, request_: Request) -> None:
    """Each row of the deck's block stands on the page, in the same order and with the same characters."""
    with listening(engine.project, request_, cwd="/srv/shop") as run:
        page = browser.get(f"/run/{run.run_id}/q1")
        on_page, at = squeezed(page.document.text("pre")), 0
        for row in request_rows(replace(request_, fields=()), "/srv/shop", 10_000):
            text = squeezed(re.sub(" · not run yet.*|timers paused until you reply", "", row.text))
            assert text in on_page[at:], row
            at = on_page.index(text, at) + len(text)
        labels = page.document.text("label")
        assert all((field.title or field.name) in labels for field in request_.fields)
        assert request_.title in page.heading


def hostile(text: str) -> list[str]:
    """Return the parts of a page's text that an attacker wanted to be more than text."""
    return controls(text.replace("\n", " "))


def check_is_text(page: Answer, *, least: int) -> None:
    """Fail if anything planted became an element, an attribute, a value of a template or a control character."""
    document = page.document
    assert [] == hostile(page.html)
    names = {element.name for element in document.elements}
    assert not names & {"img", "i", "b", "iframe", "svg", "style"}
    assert 1 == len(document.all("script")) == len(document.all("main"))
    assert ["/page.js"] == [element.attributes.get("src") for element in document.all("script")]
    assert page.html.count("{{ 1 + 1 }}") >= least


def test_every_value_of_a_template_is_made_safe() -> None:
    """Nothing that HTML interprets and no control character is left, whatever a page is given."""
    assert "&lt;a b=&quot;&#x27;&quot;&gt;&amp;amp;" == shown(b'<a b="\'">&amp;')
    assert [] == hostile(shown(IN_JSON.encode()))


def test_hostile_text_is_text_in_every_field(engine: Engine, browser: Browser) -> None:
    """Whatever an agent, a preset or a task contains, pages show its characters and interpret none."""
    evil = f"{MARKUP}{IN_JSON}"
    fields = tuple(Field(name=f"{evil}{n}", title=evil, text=evil, choices=(evil, evil)) for n in range(2))
    diff = f"--- {evil}\n+++ {evil}\n@@ -1 +1 @@\n-{evil}\n+{evil}\n"
    known = {"title": evil, "text": evil, "tool_name": evil, "command": evil, "cwd": evil, "rule": evil}
    asked = [
        permission(1, paths=(evil, f"/{evil}"), diff=diff, **known),
        permission(2, kind=RequestKind.CHOICE, choices=(evil, f"{evil}2"), run_rule=evil, **known),
        permission(3, kind=RequestKind.FORM, fields=fields, **known),
        permission(4, run_rule=f"bash({evil})", **known),
    ]
    with listening(engine.project, *asked, task=evil, preset=evil, description=evil, agent=evil) as run:
        for name in ("q1", "q2", "q3", "q4"):
            check_is_text(browser.get(f"/run/{run.run_id}/{name}"), least=3)
        check_is_text(browser.get("/"), least=4)
        check_is_text(browser.get(f"/run/{run.run_id}"), least=4)
        with answered(run):
            result = browser.press(browser.get(f"/run/{run.run_id}/q1"), "deny", reason=evil)
        check_is_text(result, least=1)
        run.write(Message(id="0" * 12, state=MessageState.REFUSED, reason=evil, by=evil))
        check_is_text(browser.get(f"/run/{run.run_id}/message/{'0' * 12}"), least=1)
    ended = make_finished(
        engine.project,
        make_meta(task=evil, preset=evil),
        final_text=evil,
        error_message=evil,
        reason=RunReason.MODEL_ERROR,
    )
    check_is_text(browser.get(f"/run/{ended.run_id}"), least=3)
    check_is_text(browser.get("/"), least=1)
    check_is_text(browser.get("/pair?code=" + "%3Cscript%3E%7B%7B%201%20%2B%201%20%7D%7D"), least=1)
    other = Browser(browser.port)
    other.pair(evil[:20])
    check_is_text(other.get("/"), least=1)


def test_the_first_page_lists_what_matters(engine: Engine, browser: Browser) -> None:
    """Requests come first, then running runs, then the failed and the finished runs of today, each with a link."""
    failed = make_finished(engine.project, final_text=None, error_message="out of tokens", reason=RunReason.MODEL_ERROR)
    done = make_finished(engine.project, final_text="All good")
    old = make_finished(engine.project, ended_at="2020-01-01T00:00:00.000Z")
    with listening(engine.project, permission()) as run, listening(engine.project) as busy:
        page = browser.get("/")
        links = [element.attributes["href"] for element in page.document.all("a") if "ul" in element.inside]
        assert [f"/run/{run.run_id}/q1", *(f"/run/{one.run_id}" for one in (busy, failed, done))] == links
        assert old.short_id not in page.text
        assert "wants to run a command: rm -rf build" in words(page.text)
        assert ["Needs input", "Running", "Failed today", "Finished today"] == [
            text for names, text in page.document.texts if names[-1:] == ("h2",)
        ]
        assert "1 needs input" in page.document.text("title")


def test_a_finished_run_shows_answer_and_error(engine: Engine, browser: Browser) -> None:
    """Its page has the whole answer, and why it failed."""
    answer = "First line\n\n\tsecond <line>"
    done = make_finished(engine.project, final_text=answer, partial=True)
    page = browser.get(f"/run/{done.run_id}")
    assert "First line\n\n    second <line>" == page.document.text("pre")
    assert "incomplete" in page.text
    failed = make_finished(engine.project, final_text=None, error_message="out of tokens", reason=RunReason.MODEL_ERROR)
    assert "out of tokens" in browser.get(f"/run/{failed.run_id}").text


@pytest.mark.parametrize(
    ("asked", "fields", "text"),
    [
        (REQUESTS[4], {"choice": "1"}, "PostgreSQL"),
        (REQUESTS[5], {"choice": "0", "text": ""}, "a"),
        (REQUESTS[5], {"choice": "0", "text": "neither"}, "neither"),
        (REQUESTS[6], {"field-0": "me", "field-1": "1"}, '{"who":"me","size":"large"}'),
    ],
    ids=["choice", "suggestion", "text", "form"],
)
def test_a_question_is_answered(
    engine: Engine, browser: Browser, asked: Request, fields: dict[str, str], text: str
) -> None:
    """By a choice, a text or the fields of a form."""
    with listening(engine.project, asked) as run:
        page = browser.get(f"/run/{run.run_id}/q1")
        form = page.document.form(value="reply")
        with answered(run) as taken:
            result = browser.post(form.action, {**form.fields, **fields, "verdict": "reply"})
        assert "Reply sent" == result.heading
        assert [(Verdict.REPLY, text)] == [(entry.verdict, entry.text) for entry in taken]


def test_an_incomplete_form_is_shown_again(engine: Engine, browser: Browser) -> None:
    """Without an answer, or without a required field, nothing is sent and the page says why."""
    for asked in REQUESTS[4:]:
        with listening(engine.project, asked) as run:
            page = browser.get(f"/run/{run.run_id}/q1")
            form = page.document.form(value="reply")
            again = browser.post(form.action, {**form.fields, "verdict": "reply"})
            assert (409, True) == (again.status, "Nothing was sent" in again.text)
            assert 409 == browser.post(form.action, {**form.fields, "verdict": "allow"}).status
            assert 409 == browser.post(form.action, {**form.fields, "verdict": "nonsense"}).status
            assert [] == run.take()


def test_an_incomplete_request_can_only_be_denied(engine: Engine, browser: Browser) -> None:
    """If characters are missing, there is no button to allow it."""
    with listening(engine.project, permission(missing=7)) as run:
        page = browser.get(f"/run/{run.run_id}/q1")
        values = {button.get("value") for form in page.document.forms for button in form.buttons}
        assert {"deny"} == values
        assert "7 characters are missing" in page.text


def test_changes_are_pushed(engine: Engine, browser: Browser) -> None:
    """A browser that waits is told of each new request, and of its answer."""
    with listening(engine.project) as run, browser.stream("/changes") as stream:
        assert "text/event-stream" in (stream.getheader("Content-Type") or "")
        wait_for_change(stream)  # at its beginning: something may have changed since the page was made
        run.write(permission())
        wait_for_change(stream)
        run.write(Decision(request="q1", verdict=Verdict.DENY, by="operator"))
        wait_for_change(stream)


def test_only_some_browsers_wait(engine: Engine, browser: Browser) -> None:
    """A further one is refused, until another one has gone: that is seen long before something is written to it."""
    with ExitStack() as stack:
        streams = [stack.enter_context(browser.stream("/changes")) for _ in range(MOST_WAITING)]
        assert [200] * MOST_WAITING == [stream.status for stream in streams]
        assert 503 == browser.get("/changes").status
    patience = KEEP_ALIVE.total_seconds() / 2
    wait_until(lambda: status_of_stream(browser) == 200, "room for another one", patience)


def wait_for_change(stream: HTTPResponse) -> None:
    assert b"event: change\n" in iter(stream.readline, b"")


def status_of_stream(browser: Browser) -> int:
    with browser.stream("/changes") as stream:
        return stream.status


def test_the_loser_is_told_who_replied(engine: Engine, browser: Browser) -> None:
    """A reply that came second names the first one, also if both were sent at once."""
    with listening(engine.project, permission()) as run:
        page = browser.get(f"/run/{run.run_id}/q1")
        refused = "q1 is no longer pending: denied by the user"

        def lose(entry: object) -> list[Message]:
            return [Message(id=entry.id, state=MessageState.REFUSED, reason=refused)]  # type: ignore[attr-defined]

        with answering(run, lose):
            result = browser.press(page, "allow")
        assert ("Your reply did not count", True) == (result.heading, refused in result.text)
        run.write(Decision(request="q1", verdict=Verdict.DENY, by="operator"))
        late = browser.press(page, "allow")
        assert (410, True) == (late.status, refused in late.text)


# --- keyboard, screen reader, phone ----------------------------------------------------------------------------------


def every_page(engine: Engine, browser: Browser) -> Iterator[Answer]:
    """Yield each kind of page."""
    done = make_finished(engine.project, final_text="All good")
    for asked in REQUESTS:
        with listening(engine.project, asked) as run:
            yield browser.get("/")
            yield browser.get(f"/run/{run.run_id}")
            yield browser.get(f"/run/{run.run_id}/q1")
    yield browser.get(f"/run/{done.run_id}")
    yield browser.get(f"/run/{done.run_id}/changes")
    yield browser.get(f"/run/{done.run_id}/q1")
    yield browser.get("/pair")
    yield Browser(browser.port).get("/")


def test_pages_are_labelled(engine: Engine, browser: Browser) -> None:
    """Each field has a label, each section a heading, each page a language, a title and one first heading; ids are
    unique, and the order of the focus is that of the page.
    """
    for page in every_page(engine, browser):
        document = page.document
        ids = [element.attributes["id"] for element in document.elements if "id" in element.attributes]
        assert len(ids) == len(set(ids))
        labelled = {element.attributes["for"] for element in document.all("label") if "for" in element.attributes}
        fields = [one for name in ("input", "textarea", "select") for one in document.all(name)]
        for field in fields:
            if field.attributes.get("type") != "hidden" and "label" not in field.inside:
                assert field.attributes["id"] in labelled
        for element in document.elements:
            for reference in ("aria-labelledby", "aria-describedby", "for"):
                assert element.attributes.get(reference, ids[0]) in ids
            assert int(element.attributes.get("tabindex", "0")) <= 0
        assert ["en"] == [element.attributes["lang"] for element in document.all("html")]
        assert 1 == len(document.all("h1")) == len(document.all("title"))
        assert document.all("section") == [
            one for one in document.all("section") if "aria-labelledby" in one.attributes
        ]
        assert "width=device-width" in document.all("meta")[1].attributes["content"]


def test_pages_are_small(engine: Engine, browser: Browser) -> None:
    """A page with its style and script is at most 30 kB."""
    shared = sum(len(browser.get(path).html) for path in ("/style.css", "/page.js"))
    sizes = [len(page.html.encode()) + shared for page in every_page(engine, browser)]
    assert max(sizes) < 30_000


STYLE = (Path(web.__file__).parent / "style.css").read_text()
PAIRS = [
    *(("text", "page"), ("text", "panel"), ("muted", "page"), ("muted", "panel"), ("link", "page"), ("link", "panel")),
    *(("added", "panel"), ("removed", "panel"), ("warning", "panel"), ("on-button", "button")),
    *(("on-strong", "allow"), ("on-strong", "deny")),
]
"""Colours of text, and those behind them."""


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_text_is_readable(theme: int, pair: tuple[str, str]) -> None:
    """Text has a contrast of at least 4.5 to 1."""
    block = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[theme]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
    darker, lighter = sorted(luminance(colours[name]) for name in pair)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_targets_are_large() -> None:
    """Buttons, links that look like them, fields and rows are at least 44 px high; nothing is wider than a phone."""
    rules = dict(re.findall(r"^([^{}@]+?) \{([^{}]*)\}", STYLE, re.MULTILINE))
    tall = {name.strip() for names, rule in rules.items() if "min-height: 44px" in rule for name in names.split(",")}
    assert {"button", ".button", "input", "select", "textarea", "header a", ".rows a", ".choice"} <= tall
    assert not re.search(r"[^-]width: [0-9]{3,}px", STYLE)


def test_lines_of_a_request_are_whole() -> None:
    """The lines are those of the request, in order, with the sign of each changed line."""
    lines = request_lines(replace(REQUESTS[1], cwd=""), "/srv/shop")
    kinds = {line.kind for line in lines}
    assert {"added", "removed", "command"} <= kinds
    assert any("<U+202E>evil" in line.text for line in lines)
