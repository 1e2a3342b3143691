"""What a person decides on: a request is kept whole, marked if a part of it cannot be seen, and its answer is bound to
it by a hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from ..text.visible import is_hiding, is_hiding_name
from .events import CUT, Field, Request

REQUEST_LIMIT = 1_000_000
"""Characters of a request that are kept."""
MOST_NAMES = 10_000
"""Paths, choices, or fields that are kept."""
HASH = 32
"""Digits of the hash of a request: too many to find two requests with the same one."""
UNSEEN = "invisible characters are shown as <U+…>: no rule can allow this"

_UNHASHED = frozenset({"seq", "ts", "usual", "display"})
"""Fields that are not decided on."""


@lru_cache(16)
def is_marked(request: Request) -> bool:
    """Whether a request has characters that cannot be seen. No rule allows such a request: a person decides on it."""
    names = (request.title, request.tool_name, request.cwd, *request.paths, *request.choices)
    fields = ((field.name, field.title, field.text, *field.choices) for field in request.fields)
    texts = (request.text, request.diff, *(text for field in fields for text in field))
    return (
        is_hiding(request.command)
        or any(map(is_hiding_name, names))
        or any(is_hiding(text, is_file=True) for text in texts)
    )


def request_hash(run_id: str, request: Request) -> str:
    """Return the hash of all that a person who answers a request of a run decides on."""
    decided = [getattr(request, name) for name in request.__struct_fields__ if name not in _UNHASHED]
    import hashlib  # few programs answer a request

    return hashlib.sha256(msgspec.json.encode([run_id, *decided])).hexdigest()[:HASH]


def kept_request(request: Request, limit: int = REQUEST_LIMIT) -> Request:
    """Return a request with at most so many characters in all, and how many are missing."""
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
    """Cuts one text after the other, once there is no room left."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self.missing = 0

    def kept(self, text: str) -> str:
        kept = text[: self._room]
        self._room -= len(kept)
        self.missing += len(text) - len(kept)
        return text if len(kept) == len(text) else kept + CUT

    def kept_all(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Keep as many as `MOST_NAMES`."""
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
    """Yield what a person has to know before deciding: what cannot be seen, and what is missing."""
    if is_marked(request):
        yield UNSEEN
    if request.missing:
        yield missing_words(request)


def missing_words(request: Request) -> str:
    return f"{request.missing:,} characters are missing: you can only deny this"
