"""What several commands take: options, arguments and their types."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import click

from ..text.plain import one_line

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")

runs_argument = click.argument("refs", metavar="RUN...", nargs=-1, required=True)
"""Ids, short ids or unambiguous beginnings of either; `Engine.find` turns them into ids."""

run_argument = click.argument("ref", metavar="RUN")


class Number(click.FloatRange):
    """A number of an option, from 0 to a maximum; never `nan`, which is in no order with other numbers."""

    def __init__(self, most: float) -> None:
        super().__init__(min=0, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            float(value)
        except ValueError:
            self.fail(f"{one_line(str(value), 40)} is not a number", param, ctx)
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{one_line(str(value), 40)} is not a number", param, ctx)
        return number


class Dollars(Number):
    """An amount above nothing, with the sign or without."""

    def __init__(self) -> None:
        super().__init__(1_000_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        amount = super().convert(str(value).strip().removeprefix("$"), param, ctx)
        if amount <= 0:
            self.fail(f"{one_line(str(value), 40)} is not above 0", param, ctx)
        return amount


_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}


class Days(Number):
    """A number of days, also as the app's filter takes an age: `3d`, `12h`, `2w`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        days = _DAYS.get(text[-1:].lower())
        if days is not None:
            with suppress(ValueError):
                text = str(float(text[:-1]) * days)
        return super().convert(text, param, ctx)
