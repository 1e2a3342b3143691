"""The hits and findings of a sweep, added up and printed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from .sweep import Report
from .verdict import Broken

SHOWN = 5
"""Trials that are listed of each kind."""


class Tally:
    def __init__(self) -> None:
        self.trials = 0
        self.runs = 0
        self.kills: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.disturbances: Counter[str] = Counter()
        self.broken: dict[str, list[tuple[Report, Broken]]] = defaultdict(list)
        self.chance: dict[str, list[tuple[Report, Broken]]] = defaultdict(list)
        """Failures that did not repeat when the trial was replayed."""

    def add(self, report: Report, *, is_chance: bool = False) -> None:
        self.trials += 1
        self.runs += report.runs
        self.kills.update(report.kills)
        self.faults.update(report.faults)
        self.disturbances.update(report.disturbances)
        for broken in report.broken:
            (self.chance if is_chance else self.broken)[broken.kind].append((report, broken))

    def print(self, seconds: float) -> None:
        print(f"{self.trials} trials with {self.runs} runs in {seconds:.0f} s")
        _print_counts("kills by victim", self.kills)
        _print_counts("faults by call", self.faults)
        _print_counts("disturbances", self.disturbances)
        _print_broken("broken", self.broken)
        if self.chance:
            _print_broken("broken once, and not again: to be mended all the same", self.chance)


def _print_broken(title: str, kinds: Mapping[str, list[tuple[Report, Broken]]]) -> None:
    number = sum(map(len, kinds.values()))
    print(f"\n{title}: {number or 'nothing'}")
    for kind, found in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"\n  {kind}: {len(found)}")
        for report, broken in found[:SHOWN]:
            about = f"{report.plan.scene}: {', '.join(report.plan.behaviours)}"
            victims = ", ".join((*report.kills, *report.faults, *report.disturbances)) or "nothing hit"
            print(f"    --seed {report.plan.seed} --trial {report.plan.number} ({about}; {victims})")
            print(f"      {broken.detail.strip()}")
            print(f"      {report.kept}")


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    print(f"\n{title}: {sum(counts.values())}")
    width = max(map(len, counts), default=0)
    for name, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {name.ljust(width)}  {number}")
