"""Options, arguments and their types that several commands take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from ..errors import UnknownRun, nearest
from ..run.model import MOST_SECONDS
from ..text.plain import one_line

if TYPE_CHECKING:
    from ..engine import Engine
    from ..run.snapshot import RunSnapshot

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # takes no type before click 8.2

SHOWN = 60
"""Characters of an invalid value that its error repeats."""

strict_option = click.option(
    "--strict", is_flag=True, help="Exit with 1 if a run completed unverified (its agent cannot report errors)."
)

runs_argument = click.argument("refs", metavar="RUN...", nargs=-1, required=True)
"""Ids, short ids or unambiguous beginnings of either; `Engine.find` turns them into ids."""

run_argument = click.argument("ref", metavar="RUN")


def snapshot_of(engine: Engine, run_id: str) -> RunSnapshot:
    """Return the run of an id. Raises UnknownRun."""
    for run in engine.snapshots((run_id,)):
        return run
    raise UnknownRun("not a run, or just deleted", where=engine.project.run_dir(run_id))


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            bounds = _bounds(self.min, self.max)
            self.fail(f'"{one_line(str(value), SHOWN)}": expected a whole number{bounds}', param, ctx)


class OneOf(_Choice):
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            words = [str(word) for word in self.choices]
            near = nearest(str(value), words)
            expected = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
            self.fail(f'"{one_line(str(value), SHOWN)}": expected {expected}{near and f"; {near}"}', param, ctx)


class Number(click.FloatRange):
    """A number from 0 to a maximum; never `nan`, which cannot be compared."""

    expected = "a number"

    def __init__(self, most: float) -> None:
        super().__init__(min=0, max=most)
        self.bounds = _bounds(0, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(self.number(str(value).strip()), param, ctx)
        except (click.BadParameter, ValueError):
            number = math.nan
        if math.isnan(number) or not self.is_allowed(number):
            self.fail(f'"{one_line(str(value), SHOWN)}": expected {self.expected}{self.bounds}', param, ctx)
        return number

    def number(self, text: str) -> float:
        """Parse a number. Raises ValueError."""
        return float(text)

    def is_allowed(self, number: float) -> bool:
        """Whether a number within the bounds is valid."""
        return True


class Dollars(Number):
    """An amount above 0, with or without a dollar sign."""

    expected = "dollars, such as 2.50,"

    def __init__(self) -> None:
        super().__init__(1_000_000)
        self.bounds = " above 0 and at most 1,000,000"

    def number(self, text: str) -> float:
        return float(text.removeprefix("$"))

    def is_allowed(self, number: float) -> bool:
        return number > 0


_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}


class Days(Number):
    """A number of days, or an age as in the app's filter: `3d`, `12h`, `2w`."""

    expected = "a number of days, or an age such as 12h or 2w,"

    def number(self, text: str) -> float:
        days = _DAYS.get(text[-1:].lower())
        return float(text) if days is None else float(text[:-1]) * days


def _bounds(least: float | None, most: float | None) -> str:
    """Return ` of at least 1`, or ` from 0 to 255`."""
    if least is None or most is None:
        return "" if least is None else f" of at least {least:,}"
    return f" from {least:,} to {most:,}"


timeout_option = click.option(
    "--timeout", metavar="S", type=Number(MOST_SECONDS), help="With --wait: stop waiting after S seconds."
)
