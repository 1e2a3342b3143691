"""Recordings of real agents contain nothing about the machine that they ran on."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from tests.replay import RECORDINGS

NEUTRAL = {b"srv", b"dev", b"bin", b"src"}
"""Directories and shells that exist on every machine and may be in a recording; `/src/` is a piece of a path."""


def recorded() -> Iterator[tuple[str, bytes]]:
    for path in sorted(filter(Path.is_file, RECORDINGS.rglob("*"))):
        data = path.read_bytes()
        yield str(path.relative_to(RECORDINGS)), gzip.decompress(data) if path.suffix == ".gz" else data


def test_recordings_name_neutral_directories() -> None:
    """Every absolute path is below `/srv`, or is a device."""
    absolute = re.compile(rb"(?<![\w.~/:*)-])/(\w+)/")
    named = {name: set(absolute.findall(data)) - NEUTRAL for name, data in recorded()}
    assert {} == {name: tops for name, tops in named.items() if tops}
