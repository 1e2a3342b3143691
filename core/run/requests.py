"""A run's messages, requests and decisions in words; pure, and the same on every surface.

A request is kept whole, and marked if a part of it is invisible; its reply is bound to it by a hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..paths import WORKS, WORKTREE, hex_digest, is_run_id
from ..text.plain import one_line, plain
from ..text.visible import is_hiding, is_hiding_name, visible, visible_line, visible_name
from .events import CUT, Field, Request
from .model import MessageState, Verdict, by_session, session_words

if TYPE_CHECKING:
    from .events import Decision, Interrupted, Message

SUBJECT = 200
"""Characters of the subject of a request or a decision."""
TITLE = 80
"""Characters of a request's title in a line."""

BY_RULE, BY_TIMEOUT, BY_AGENT = "rule", "timeout", "agent"
"""Deciders other than a user: a rule of the run's permissions, the timeout, or the agent withdrawing its request."""

FINISH_HERE, GO_ON = "finish here", "continue"
"""Choices after the user has returned a run from the agent's UI."""

_VERDICTS = {
    Verdict.ALLOW: "Allowed",
    Verdict.ALLOW_RUN: "Allowed in this run",
    Verdict.DENY: "Denied",
    Verdict.REPLY: "Replied",
    Verdict.WITHDRAWN: "Withdrawn",
}
_STATES = {
    MessageState.ACCEPTED: "queued",
    MessageState.DELIVERED: "delivered",
    MessageState.REFUSED: "refused",
    MessageState.LATE: "too late",
}
WORDS = (*_VERDICTS.values(), *_STATES.values(), "by the rule agent Interrupted Waiting for your message matched in")
"""Every word that this module writes on its own."""


def subject_of(request: Request, limit: int | None = SUBJECT, cwd: str = "") -> str:
    """Return the subject of a request, in a line; paths as in `shown_path`."""
    paths = ", ".join(shown_path(path, cwd) for path in request.paths)
    return visible_line(request.command or paths or request.text or request.title, limit)


def shown_path(path: str, cwd: str) -> str:
    """Return a path relative to `cwd`, the run's directory, if it is certainly inside it or the worktree around it.

    Any other path is unchanged, so that nothing outside can pass for a file of the run.
    """
    if len(cwd) < 2 or not os.path.isabs(path) or os.path.normpath(path) != path:
        return visible_name(path)
    bases = filter(None, (cwd.rstrip("/"), worktree_around(cwd)))
    is_inside = any(f"{path}/".startswith(f"{base}/") for base in bases)
    return visible_name(os.path.relpath(path, cwd) if is_inside else path)


def place_in_worktree(request: Request, cwd: str) -> str:
    """Return `its worktree`, or `src in its worktree`, if a request would run there; otherwise empty."""
    tree, where = worktree_around(cwd), os.path.normpath(os.path.join(cwd, request.cwd))
    if not tree or not f"{where}/".startswith(f"{tree}/"):
        return ""
    inside = os.path.relpath(where, tree)
    return "its worktree" if inside == "." else f"{visible_name(inside)} in its worktree"


def worktree_around(cwd: str) -> str:
    """Return the root of the run worktree that contains a directory; empty if there is none."""
    parts = cwd.split("/")
    for at in range(3, len(parts)):
        if parts[at] == WORKTREE and parts[at - 3] == WORKS and is_run_id(parts[at - 1]):
            return "/".join(parts[: at + 1])
    return ""


def request_line(request: Request, limit: int = SUBJECT, cwd: str = "") -> str:
    """Return `wants to run a command: rm -rf build`; a marked request begins with `!`."""
    mark = "! " if is_marked(request) else ""
    title = visible_line(request.title, TITLE)
    head = f"{mark}{title}: "
    subject = subject_of(request, max(1, limit - len(head)), cwd)
    return mark + title if subject in ("", title) else head + subject


def run_rule_line(request: Request) -> str:
    """Return the rule that would apply for the rest of the run, and the files it adds; empty if there is none."""
    rule = visible_line(request.run_rule)
    if not rule.endswith("(**)"):
        return rule
    kept = ", except protected ones" if rule.startswith("edit") else ""
    return f"{rule} (every file below the run's directory{kept})"


def request_text(request: Request, cwd: str = "") -> str:
    """Return the exact request, in lines: the command, the paths, the change, the choices.

    With `cwd`, the run's directory, its paths are relative to it.
    """
    return "\n".join(_lines(request, cwd))


def _lines(request: Request, cwd: str) -> Iterator[str]:
    yield visible_line(request.title) or "has a question"
    for warning in warnings(request):
        yield f"  ! {warning}"
    if request.command:
        yield from _indented(request.command)
    for path in request.paths:
        yield f"  {shown_path(path, cwd)}"
    if request.cwd:
        yield f"  in {place_in_worktree(request, cwd) or visible_name(request.cwd)}"
    if request.text.strip():
        yield from _indented(request.text)
    if request.diff:
        yield from _indented(request.diff)
    for number, choice in enumerate(request.choices, 1):
        yield f"  {number} {visible_name(choice)}"
    for field in request.fields:
        yield f"  {_field(field)}"
    if request.rule:
        yield f"  matched rule {one_line(request.rule)}"


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in visible(text).strip("\n").split("\n"))


def _field(field: Field) -> str:
    """Return `name*: title, purpose (one / two)`."""
    choices = f" ({' / '.join(visible_name(choice) for choice in field.choices)})" if field.choices else ""
    title = "" if field.title == field.name else visible_line(field.title)
    description = ", ".join(filter(None, (title, visible_line(field.text))))
    return f"{visible_name(field.name)}{'*' if field.required else ''}: {description}{choices}".rstrip(": ")


def message_text(message: Message) -> str:
    """Describe a message to the run and its state; its text is only in its first event."""
    state = _STATES.get(message.state, one_line(message.state, 40))
    why = f": {one_line(message.reason, SUBJECT)}" if message.reason else ""
    text = plain(message.text).strip("\n")
    if not text:
        return f"▸ {state}{why}"
    by = session_words(message.by) or "somebody"
    return f"▸ {by}, {state}{why and f' ({one_line(message.reason, SUBJECT)})'}: {text}"


def decision_line(decision: Decision) -> str | None:
    """Describe a decision; None if a rule allowed a call without a request, the most common case."""
    if decision.verdict is Verdict.ALLOW and decision.by == BY_RULE and not decision.request:
        return None
    word = _VERDICTS.get(decision.verdict, one_line(decision.verdict, 40))
    by = _by(decision)
    text = one_line(decision.text, SUBJECT)
    subject = one_line(decision.subject, SUBJECT)
    parts = (text, "") if decision.verdict is Verdict.REPLY else (subject, text)
    details = " — ".join(filter(None, parts))
    return f"{word}{by}: {details}" if details else f"{word}{by}"


def answered_words(decision: Decision) -> str:
    """Return `q1 is no longer pending: allowed by the user`."""
    word = _VERDICTS.get(decision.verdict, one_line(decision.verdict, 40))
    return f"{one_line(decision.request, 40)} is no longer pending: {word.lower()}{_by(decision)}"


def _by(decision: Decision) -> str:
    if decision.by == BY_RULE:
        return f" by the rule {one_line(decision.rule, 80)}" if decision.rule else " by a rule"
    if decision.by == BY_TIMEOUT:
        return ""  # the text explains it
    return " by the agent" if decision.by == BY_AGENT else by_session(decision.by)


def interrupted_line(event: Interrupted) -> str:
    return f"Interrupted{by_session(event.by)}. Waiting for your message"


# --- the basis of a person's decision --------------------------------------------------------------------------------

REQUEST_LIMIT = 1_000_000
"""Characters kept of a request."""
MOST_NAMES = 10_000
"""Paths, choices, or fields kept."""
HASH = 32
"""Digits of the hash of a request: too many to find two requests with the same one."""
UNSEEN = "invisible characters are shown as <U+…>: no rule can allow this"

_UNHASHED = frozenset({"seq", "ts", "usual", "display"})
"""Fields that are not part of the decision."""


@lru_cache(16)
def is_marked(request: Request) -> bool:
    """Return whether a request has invisible characters. No rule allows such a request: the user decides."""
    names = (request.title, request.tool_name, request.cwd, *request.paths, *request.choices)
    fields = ((field.name, field.title, field.text, *field.choices) for field in request.fields)
    texts = (request.text, request.diff, *(text for field in fields for text in field))
    return (
        is_hiding(request.command)
        or any(map(is_hiding_name, names))
        or any(is_hiding(text, is_file=True) for text in texts)
    )


def request_hash(run_id: str, request: Request) -> str:
    """Return the hash of everything that the user decides on when answering a run's request."""
    decided = [getattr(request, name) for name in request.__struct_fields__ if name not in _UNHASHED]
    return hex_digest(msgspec.json.encode([run_id, *decided]), HASH)


def kept_request(request: Request, limit: int = REQUEST_LIMIT) -> Request:
    """Return a request cut to `limit` characters in all, with the number of missing ones."""
    keeper = _Keeper(limit)
    return replace(
        request,
        title=keeper.kept(request.title),
        tool_name=keeper.kept(request.tool_name),
        command=keeper.kept(request.command),
        cwd=keeper.kept(request.cwd),
        paths=keeper.kept_all(request.paths),
        text=keeper.kept(request.text),
        choices=keeper.kept_all(request.choices),
        fields=keeper.kept_fields(request.fields),
        diff=keeper.kept(request.diff),
        missing=request.missing + keeper.missing,
    )


class _Keeper:
    """Cuts one text after the other once there is no room left."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self.missing = 0

    def kept(self, text: str) -> str:
        kept = text[: self._room]
        self._room -= len(kept)
        self.missing += len(text) - len(kept)
        return text if len(kept) == len(text) else kept + CUT

    def kept_all(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Keep at most `MOST_NAMES`."""
        self.missing += sum(max(1, len(text)) for text in texts[MOST_NAMES:])
        return tuple(map(self.kept, texts[:MOST_NAMES]))

    def kept_fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        for field in fields[MOST_NAMES:]:
            texts = (field.title, field.text, *field.choices)
            self.missing += max(1, len(field.name)) + sum(map(len, texts))
        return tuple(map(self._kept_field, fields[:MOST_NAMES]))

    def _kept_field(self, field: Field) -> Field:
        return replace(
            field,
            name=self.kept(field.name),
            title=self.kept(field.title),
            text=self.kept(field.text),
            choices=self.kept_all(field.choices),
        )


def warnings(request: Request) -> Iterator[str]:
    """Yield warnings to read before deciding: invisible or missing characters."""
    if is_marked(request):
        yield UNSEEN
    if request.missing:
        yield missing_words(request)


def missing_words(request: Request) -> str:
    return f"{request.missing:,} characters are missing: you can only deny this"
