"""The pages: templates whose every value is made safe to show, and what the templates are given."""

from __future__ import annotations

import html
import os
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tornado.template import Loader

from ..run.describe import ago, elapsed, latest_line, state, status_line
from ..run.events import Field, Request
from ..run.model import RequestKind
from ..run.need import needing_input
from ..run.requests import request_line, run_rule_line
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line, plain
from ..text.visible import visible_line, visible_name

TASK, TITLE = 120, 60
"""Characters of a task and of a title in a list."""


def shown(text: bytes) -> str:
    """Return a text as HTML: without control characters, and with no character that HTML or an attribute interprets.

    Templates apply this to every value, in UTF-8.
    """
    return html.escape(plain(text.decode("utf-8", "replace")), quote=True)


_LOADER = Loader(os.path.join(os.path.dirname(__file__), "templates"), autoescape="shown", namespace={"shown": shown})


def page(template: str, /, **values: Any) -> bytes:
    """Return a page from its template."""
    return _LOADER.load(f"{template}.html").generate(**values)


class Row(NamedTuple):
    """A run in a list."""

    path: str
    state: str
    title: str
    text: str
    """Its request, its activity or the beginning of its answer."""
    when: str


def request_path(run: RunSnapshot, request: Request) -> str:
    return f"/run/{run.run_id}/{request.id}"


def request_rows(run: RunSnapshot) -> list[Row]:
    """Return a row for each request of a run, which leads to its page."""
    now = datetime.now(UTC)
    return [
        Row(
            request_path(run, request),
            state(run),
            title(run),
            request_line(request, cwd=run.meta.cwd),
            ago(request.ts, now),
        )
        for request in run.requests
    ]


def run_row(run: RunSnapshot) -> Row:
    now = datetime.now(UTC)
    when = ago(run.end.ended_at, now) if run.end else elapsed(run, now)
    return Row(f"/run/{run.run_id}", state(run), title(run), latest_line(run, TASK), when)


def title(run: RunSnapshot) -> str:
    """Return `scout 4ae0bd`."""
    return f"{one_line(run.meta.title, TITLE)} {run.meta.short_id}"


def task(run: RunSnapshot) -> str:
    return one_line(run.meta.task, TASK)


def waiting_words(count: int) -> str:
    return needing_input(count) if count else "Nothing needs input"


class Input(NamedTuple):
    """A field of a form."""

    name: str
    """In the form: its number, since an agent chooses its own names."""
    label: str
    about: str
    choices: tuple[str, ...]
    required: bool


def inputs(fields: tuple[Field, ...]) -> list[Input]:
    return [
        Input(
            f"field-{number}",
            visible_line(field.title) or visible_name(field.name),
            visible_line(field.text),
            tuple(map(visible_name, field.choices)),
            field.required,
        )
        for number, field in enumerate(fields)
    ]


class Answers(NamedTuple):
    """The replies that a request allows."""

    allow: bool
    run_rule: str
    """The rule of `Allow in this run`; empty if that is impossible."""
    choices: tuple[str, ...]
    text: bool
    """Whether it can be answered with a text."""
    inputs: list[Input]


def answers_of(request: Request) -> Answers:
    if request.kind is RequestKind.PERMISSION:
        can_allow = not request.missing
        return Answers(can_allow, run_rule_line(request) if can_allow else "", (), False, [])
    choices = tuple(map(visible_name, request.choices))
    if request.kind is RequestKind.FORM and request.fields:
        return Answers(False, "", (), False, inputs(request.fields))
    return Answers(False, "", choices, request.kind is not RequestKind.CHOICE or not choices, [])


def heading(run: RunSnapshot) -> str:
    return f"{title(run)}: {status_line(run)}"
