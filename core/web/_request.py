"""A request as the page shows it, like the deck, and the hash that binds a reply to the shown text; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..paths import at_home, hex_digest
from ..run.edits import diff_to_decide, margins
from ..run.events import Request
from ..run.model import RequestKind
from ..run.requests import place_in_worktree, request_hash, run_rule_line, shown_path, warnings
from ..run.signature import new_hash
from ..run.snapshot import RunSnapshot
from ..text.visible import visible, visible_line, visible_name

_CLASSES = {"+": "added", "-": "removed"}


class Line(NamedTuple):
    """A line of a request, and its CSS class."""

    text: str
    kind: str = ""


def request_lines(request: Request, cwd: str) -> tuple[Line, ...]:
    """Return the exact request in lines; `cwd` is the run's working directory."""
    return tuple(_lines(request, cwd))


def _lines(request: Request, cwd: str) -> Iterator[Line]:
    yield from (Line(f"! {warning}", "warning") for warning in warnings(request))
    yield from _several(request.command, "command")
    yield from (Line(shown_path(path, cwd), "command") for path in request.paths)
    if request.kind is RequestKind.PERMISSION:
        directory = place_in_worktree(request, cwd) or at_home(visible_name(request.cwd or cwd))
        yield Line(f"in {directory}", "muted")
    if request.text.strip():
        yield from _several(request.text, "")
    yield from _diff(request, cwd)
    yield from (
        Line(f"{number}  {visible_name(choice)}", "command") for number, choice in enumerate(request.choices, 1)
    )
    yield from _rules(request)


def _several(text: str, kind: str) -> Iterator[Line]:
    return (Line(line, kind) for line in visible(text).strip("\n").split("\n")) if text else iter(())


def _diff(request: Request, cwd: str) -> Iterator[Line]:
    diff = diff_to_decide(request.diff)
    shown = visible_name(request.paths[0]) if len(request.paths) == 1 else None
    for line, margin in zip(diff, margins(diff), strict=True):
        if not line.sign and line.text == shown:
            continue
        text = line.text if line.sign else shown_path(line.text, cwd)
        yield Line(margin + text, _CLASSES.get(line.sign, "" if line.sign else "muted"))


def _rules(request: Request) -> Iterator[Line]:
    """Yield why it is asked, and the effect of allowing it."""
    if request.kind is not RequestKind.PERMISSION:
        return
    if request.run_rule:
        yield Line(f"allowing it for this run adds the rule {run_rule_line(request)}", "muted")
    yield Line(f"matched rule {visible_line(request.rule)}" if request.rule else "requested by the agent", "muted")


def shown_hash(run: RunSnapshot, request: Request) -> str:
    """Return the hash of a request and of the text that the page shows for it."""
    shown = "\n".join(line.text for line in request_lines(request, run.meta.cwd))
    fields = "\n".join(f"{field.name}\n{field.title}\n{field.text}" for field in request.fields)
    whole = "\0".join((request_hash(run.run_id, request), request.title, shown, fields))
    return hex_digest(whole.encode("utf-8", "backslashreplace"), 64)


def form_token(secret: str, *parts: str) -> str:
    """Return the token of a form: only the browser with this secret gets it, for this purpose, request and text."""
    keyed = new_hash(key=secret.encode(), digest_size=32, person=b"subdeck form")
    keyed.update("\n".join(parts).encode("utf-8", "backslashreplace"))
    return keyed.hexdigest()


def is_form_token(token: str, secret: str, *parts: str) -> bool:
    # Of hashes, so that the time of the comparison tells nothing of the token; hmac would load OpenSSL.
    return form_token(secret, token) == form_token(secret, form_token(secret, *parts))
