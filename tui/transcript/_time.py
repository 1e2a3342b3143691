"""Times in a run's events: how to type one, and where it is in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.errors import UsageError
from ...core.run.describe import moment
from ...core.run.events import ts_of_line

if TYPE_CHECKING:
    from ...core.system.line_file import LineFile

FORMS = "20:12, 20:12:34, -5m from the end, +90s from the start, 50%"

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SPAN = re.compile(r"([+-])((?:\d{1,9}(?:\.\d{1,9})?[smhd]){1,4})")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])")
_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?%")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_HEAD = 4096
"""Bytes at the beginning of a line that contain its time."""
_FEW_LINES = 64 * 1024
"""Bytes that are read line by line, once the time is known to be there."""


class Clock(Struct, frozen=True):
    """A local time of day."""

    hour: int
    minute: int
    second: int | None
    """None means any second of the minute."""


class Span(Struct, frozen=True):
    seconds: float
    """From the start, or before the end with `from_end`."""
    from_end: bool


Time = Clock | Span | float
"""A float is a part of the file, from 0 to 1."""


def parse_time(written: str) -> Time:
    """Parse a typed time. Raises UsageError."""
    text = written.strip().lower().replace(" ", "")
    if match := _CLOCK.fullmatch(text):
        clock = Clock(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
        if clock.hour < 24 and clock.minute < 60 and (clock.second or 0) < 60:
            return clock
        raise UsageError(f"{text} is not a time of day", hint="hours up to 23, minutes and seconds up to 59")
    if match := _SPAN.fullmatch(text):
        seconds = sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(match[2]))
        return Span(seconds, match[1] == "-")
    if match := _SHARE.fullmatch(text):
        if float(match[1]) <= 100:
            return float(match[1]) / 100
        raise UsageError(f"{text} is beyond the end", hint="100% is the end")
    raise UsageError("not a time" if text else "enter a time", hint=f"for example {FORMS}")


def offset_at(file: LineFile, time: Time) -> int:
    """Return the offset of the first event at that time or later. Raises UsageError if there is none."""
    mark = file.mark()
    size = file.end_of_lines(mark.size) if mark else 0
    if not size:
        raise UsageError("no events yet")
    if not isinstance(time, Clock | Span):
        return file.end_of_lines(min(size - 1, int(size * time)))
    first, last = next(_times(file, 0, size), None), _last_time(file, size)
    if first is None or last is None:
        raise UsageError("this file contains no times", hint="50% goes to the middle")
    return _bisect(file, size, _target_time(time, first[1], max(first[1], last)))


def _target_time(time: Clock | Span, first: datetime, last: datetime) -> datetime:
    if isinstance(time, Span):
        try:
            span = timedelta(seconds=time.seconds)
            target = last - span if time.from_end else first + span
        except OverflowError:
            raise UsageError("the time span is too long") from None
        return min(max(target, first), last)
    begin, end = first.astimezone(), last.astimezone()
    length = timedelta(seconds=59.999) if time.second is None else timedelta(milliseconds=999)
    target = begin.replace(hour=time.hour, minute=time.minute, second=time.second or 0, microsecond=0)
    if target + length < begin:
        target += timedelta(days=1)
    if target > end:
        raise UsageError(
            "no events at that time",
            hint=f"events range from {_clock(begin, end, begin)} to {_clock(begin, end, end)}",
        )
    return max(target, begin)


def _clock(begin: datetime, end: datetime, when: datetime) -> str:
    return f"{when:%H:%M:%S}" if begin.date() == end.date() else f"{when:%Y-%m-%d %H:%M:%S}"


def _bisect(file: LineFile, size: int, target: datetime) -> int:
    """Return the offset of the first line at that time or later; times are assumed to grow."""
    low, high = 0, size
    while high - low > _FEW_LINES:
        middle = file.end_of_lines((low + high) // 2)
        if middle <= low:
            break
        _, middle_time = next(_times(file, middle, high), (high, target))
        if middle_time >= target:
            high = middle
        else:
            low = middle
    later = (offset for offset, when in _times(file, low, size) if when >= target)
    return next(later, file.end_of_lines(size - 1))


def _times(file: LineFile, start: int, end: int) -> Iterator[tuple[int, datetime]]:
    """Yield the lines with a time between two beginnings of lines, by their offsets."""
    for offset, block, _ in file.blocks(start):
        for line in block.split(b"\n")[:-1]:
            if offset >= end:
                return
            if when := _time_of(line):
                yield offset, when
            offset += len(line) + 1


def _last_time(file: LineFile, end: int) -> datetime | None:
    """Return the last time in the file."""
    while end > 0:
        start = file.end_of_lines(end - 1)
        if when := _time_of(file.read(start, min(_HEAD, end - start))):
            return when
        end = start
    return None


def _time_of(line: bytes) -> datetime | None:
    return moment(ts_of_line(line))
