"""`ARCHITECTURE.md` describes the tree as it is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
NAMED = set(re.findall(r"`((?:core|tui)/[\w/.]*)`", TEXT))


def test_what_is_named_exists() -> None:
    """Every module and package that it names is there."""
    assert set() == {name for name in NAMED if not (ROOT / name).exists()}


def test_every_package_is_named() -> None:
    """A stranger finds a line about each package."""
    packages = {
        f"{path.parent.relative_to(ROOT)}/" for tree in ("core", "tui") for path in ROOT.glob(f"{tree}/**/__init__.py")
    }
    assert set() == packages - NAMED


def test_journeys_are_short() -> None:
    """The journeys that CONTRIBUTING promises are there, and each has at most ten stations that name modules."""
    journeys = {
        part.partition("\n")[0]: re.findall(r"^\d+\. .*", part, re.M)
        for part in TEXT.split("\n## ")
        if re.search(r"^\d+\. ", part, re.M)
    }
    assert {"A launch", "A line of output", "An end", "A delegated call"} <= journeys.keys()
    assert max(map(len, journeys.values())) <= 10
    assert [] == [station for stations in journeys.values() for station in stations if "`" not in station]
