"""What to do where there are no presets yet: the keys, the places, and what has to be installed; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from ..actions import Action, key_of
from ..actions.help import hint_lines
from ..text.cells import wrap
from ..text.format import short_path

if TYPE_CHECKING:
    from ...core.doctor import Check

WIDE = 56
"""From this many cells on the places make a sentence."""

HINTS = (
    ("create_preset", "create one"),
    ("copy_preset", "copy Explore into this project"),
    ("ad_hoc", "run ad hoc"),
)


def first_steps(
    actions: Sequence[Action], places: Sequence[str], missing: Sequence[Check], *, width: int, height: int
) -> list[str]:
    """Return the lines; where there is little room without blank ones, and with the names alone of what is missing."""
    width = max(10, width)
    blocks = [["No presets yet."], hint_lines(actions, HINTS, width), _place_lines(places, width)]
    if missing:
        room = height - sum(map(len, blocks))
        told = missing_lines(actions, missing, width)
        names = " and ".join(check.name for check in missing)
        fits = len(told) <= room - (0 if width >= WIDE else len(blocks))
        blocks.append(told if fits else wrap(f"{key_of('doctor', actions)}  {names} missing", width))
    blank = [""] if sum(map(len, blocks)) + len(blocks) - 1 <= height else []
    return [line for number, block in enumerate(blocks) for line in ([*blank, *block] if number else block)]


def missing_lines(actions: Sequence[Action], missing: Sequence[Check], width: int) -> list[str]:
    """Say for each program that is missing what it is and the command that mends it."""
    doctor = key_of("doctor", actions)
    said = [f"! {check.name} is missing: {check.fix}   ({doctor} says more)" for check in missing]
    return [row for line in said for row in wrap(one_line(line), width)]


def _place_lines(places: Sequence[str], width: int) -> list[str]:
    if width < WIDE:
        return ["Looked for *.md in", *(f"  {short_path(place, width - 2)}" for place in places)]
    named = " or ".join(short_path(place, width // 2) for place in places)
    return wrap(f"Presets are markdown files in {named}.", width)
