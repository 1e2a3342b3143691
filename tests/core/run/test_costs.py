"""The costs of runs, added up."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.cost_sheet import Period, Spent, cost_sheet, money
from subdeck.core.run.describe import cost_words
from subdeck.core.run.model import Usage
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.command_line import subdeck
from tests.factories import make_finished, make_meta
from tests.tui.fake_engine import a_run

pytestmark = pytest.mark.usefixtures("forked_commands")

NOW = datetime(2026, 11, 22, 12, 0).astimezone()


def run(number: int, days: float, cost: float, status: str = "completed", **fields: object) -> RunSnapshot:
    launched = (NOW - timedelta(days=days)).isoformat()
    return a_run(number, status, usage=Usage(input=100, cost=cost), meta_created_at=launched, **fields)


def test_costs_by_period() -> None:
    """Today starts at midnight, the week six days earlier; undated runs are in the total, untrusted ones nowhere."""
    runs = [
        run(1, 0.4, 1.0),
        run(2, 0.6, 2.0, "failed"),
        run(3, 6.4, 4.0),
        run(4, 7, 8.0),
        run(5, 0, 99.0, foreign=True),
    ]
    runs.append(a_run(6, "completed", usage=Usage(cost=16.0), meta_created_at="?"))
    total = cost_sheet(runs, NOW).total
    assert (1.0, 7.0, 31.0) == tuple(total[period].cost for period in Period)
    assert Spent(runs=3, tokens=300, cost=7.0, failed=1) == total[Period.WEEK]


def test_costs_by_name() -> None:
    """Each preset, model and agent has a line, most expensive first, with control characters removed from its name."""
    runs = [
        run(1, 0, 1.0, meta_preset="a\x1b[31m", meta_resolved_model="m/1"),
        run(2, 0, 3.0, meta_preset="", meta_resolved_model="", meta_requested_model=""),
        run(3, 0, 1.5, meta_preset="a", meta_resolved_model="m/1", meta_agent="pi"),
    ]
    sheet = cost_sheet(runs, NOW)
    assert ["ad hoc", "a"] == [line.name for line in sheet.by_preset]
    assert ["no model", "m/1"] == [line.name for line in sheet.by_model]
    assert [("offline", 4.0), ("pi", 1.5)] == [(line.name, line.spent[Period.ALL].cost) for line in sheet.by_agent]


def test_money() -> None:
    """Money is shown in cents; less than a cent is not shown as zero."""
    assert ["–", "<$0.01", "$0.31", "$1,204.50"] == [money(cost) for cost in (0, 0.001, 0.31, 1204.5)]


@pytest.mark.processes
def test_report(project_dir: Path) -> None:
    """The report command lists the same costs, in JSON too; without runs it prints dashes."""
    project = paths.Project(str(project_dir))
    assert "total" in subdeck("report", cwd=project_dir).out
    make_finished(project, make_meta(preset="scout", resolved_model="m/1"), usage=Usage(input=1000, cost=1.25))
    done = subdeck("report", cwd=project_dir)
    assert (0, "") == (done.code, done.err)
    assert ["total", "$1.25", "$1.25", "$1.25", "1.0k", "1"] in [line.split() for line in done.out.splitlines()]
    assert ["scout", "$1.25", "$1.25", "$1.25", "1.0k", "1"] in [line.split() for line in done.out.splitlines()]
    document = subdeck("report", "--json", cwd=project_dir).document
    assert {"total", "byPreset", "byModel", "byAgent"} == document.keys()
    (model,) = document["byModel"]
    expected = {"runs": 1, "tokens": 1000, "cost": 1.25, "failed": 0, "unpriced": 0}
    assert ("m/1", expected) == (model["name"], model["spent"]["today"])


@pytest.mark.processes
def test_a_cost_that_is_not_known(project_dir: Path) -> None:
    """An unknown cost is shown as a question mark, and a sum without it gets a plus sign."""
    project = paths.Project(str(project_dir))
    make_finished(project, make_meta(preset="told"), usage=Usage(input=1000, cost=1.25))
    make_finished(project, make_meta(preset="untold"), usage=Usage(input=1000, unpriced=1000))
    shown = subdeck("report", cwd=project_dir).out
    figures = {words[0]: words[1:4] for words in map(str.split, shown.splitlines()) if len(words) > 3}
    assert (["$1.25"] * 3, ["?"] * 3, ["$1.25+"] * 3) == (figures["told"], figures["untold"], figures["total"])
    assert "? and +: the agent reported no price for some tokens, 1.0k in total." in shown


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(), ""),
        (Usage(input=7), ""),
        (Usage(input=7, unpriced=7), "unknown: the agent reported no price"),
        (Usage(input=7, cost=0.5), "$0.5000"),
        (Usage(input=7, cost=0.5, unpriced=2), "at least $0.5000"),
    ],
)
def test_a_cost_in_words(usage: Usage, words: str) -> None:
    """A free run and a run of unknown cost have different words."""
    assert words == cost_words(usage)
