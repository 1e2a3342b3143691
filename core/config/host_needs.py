"""What a run asks of the host that it runs on: its name, and what it has to have, by label.

Annotations are evaluated here, as in `settings`.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from ..errors import UsageError
from ..text.decoding import UNDECODABLE, fit
from ..text.plain import one_line
from .values import Spelling

HostName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"),
    Spelling("the name of a host", str.strip),
]
MOST_LABELS, MOST_NEEDED = 32, 1e9
SLOTS = "subdeck"
"""What carriers call a slot: no label has that name."""


def _amount(text: str) -> float:
    return float(text)


LabelName = Annotated[
    str,
    Meta(pattern=rf"^(?!{SLOTS}$)[A-Za-z0-9_][A-Za-z0-9_.-]{{0,63}}$"),
    Spelling("the name of a resource, such as gpu", str.strip),
]
Needed = Annotated[
    float, Meta(gt=0, le=MOST_NEEDED), Spelling(f"a number above 0, at most {MOST_NEEDED:,.0f},", _amount)
]
Needs = Annotated[
    Annotated[dict[LabelName, Needed], Meta(max_length=MOST_LABELS)],
    Spelling(
        'lines of the form "resource: number", such as {gpu: 1},',
        dict,
        {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
    ),
]
"""What a host has to have, each by the name of a label."""


def checked_host(name: str) -> str:
    """Return the name of a host, empty for any. Raises UsageError for what is none."""
    if name.strip() and not _fits(name.strip(), HostName):
        hint = "use letters, digits, _, . and -; subdeck hosts lists your hosts"
        raise UsageError(f'"{one_line(name, 60)}" is not a valid host name', where="host", hint=hint)
    return name.strip()


def checked_needs(needs: Mapping[str, float]) -> dict[str, float]:
    """Return what a host has to have. Raises UsageError for names and numbers that no label has."""
    if len(needs) > MOST_LABELS:
        hint = f"use at most {MOST_LABELS}"
        raise UsageError(f"too many requirements: {len(needs)}", where="needs", hint=hint)
    for name, amount in needs.items():
        if not (_fits(name, LabelName) and _fits(amount, Needed)):
            what = f'invalid requirement "{one_line(name, 60)}={amount:g}"'
            raise UsageError(what, where="needs", hint="use LABEL=NUMBER with a number above 0, such as gpu=1")
    return dict(needs)


def _fits(value: object, kind: Any) -> bool:
    try:
        fit(value, kind)
    except UNDECODABLE:
        return False
    return True


def read_needs(texts: Iterable[str]) -> dict[str, float]:
    """Read `gpu=1`; `gpu` alone asks for one. Raises UsageError."""
    needs: dict[str, float] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            number = float(amount.strip() or "1")
        except ValueError:
            what = f'invalid requirement "{one_line(text, 60)}": expected LABEL=NUMBER'
            raise UsageError(what, where="needs", hint="use LABEL=NUMBER, such as gpu=1") from None
        if name.strip() in needs:
            raise UsageError(f'"{one_line(name.strip(), 60)}" is required twice', where="needs", hint="write it once")
        needs[name.strip()] = number
    return checked_needs(needs)


def needs_words(needs: Mapping[str, float]) -> str:
    """`gpu 1, mem 32`; empty for nothing."""
    return ", ".join(f"{one_line(name, 64)} {amount:g}" for name, amount in needs.items())
