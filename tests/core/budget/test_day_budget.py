"""The daily budget: the ledger, and the launches that it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.budget import ledger
from subdeck.core.budget.allowance import Level, Spent, budget_of, reserve
from subdeck.core.budget.ledger import DayBook, LedgerEntry, RunBook, append, day_file, local_day
from subdeck.core.config.settings import Settings
from subdeck.core.engine import Engine
from subdeck.core.errors import BudgetExceeded, LaunchError, UsageError
from subdeck.core.run.events import UsageReported
from subdeck.core.run.model import Limits

from tests.core.command_line import subdeck
from tests.factories import make_meta, open_engine, request, result_of, run_to_end, start, started, wait_for_end
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]

DAY = "2026-11-23"


def used(cost: float) -> UsageReported:
    return UsageReported(input=10, output=0, cache_read=0, cache_write=0, cost=cost, model="m", stop_reason="stop")


def today() -> DayBook:
    book = DayBook(local_day())
    book.look()
    return book


@given(lines=st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100), st.booleans()), max_size=30), data=st.data())
def test_the_last_whole_line_of_each_run_counts(
    lines: list[tuple[str, float, bool]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Despite torn lines and reads in between, the sums are those of the last complete lines."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    try:
        book, expected = DayBook(DAY), dict[str, LedgerEntry]()
        append(DAY, [])
        for run, amount, over in lines:
            if data.draw(st.booleans()):
                with open(day_file(DAY), "ab") as file:
                    file.write(b'{"run":"a","spe')
            entry = LedgerEntry(run, "/p", spent=amount / 2, reserved=amount, over=over)
            append(DAY, [entry])
            expected[run] = entry
            if data.draw(st.booleans()):
                book.look()
        book.look()
        assert expected == book.entries
        assert not book.look()
        assert sum(entry.spent for entry in expected.values()) == pytest.approx(book.sum("/p").spent)
        assert 0 == book.sum("/q").spent
    finally:
        del os.environ["XDG_STATE_HOME"]
        os.environ |= {} if before is None else {"XDG_STATE_HOME": before}


def test_a_run_over_midnight() -> None:
    """Each day counts its own spending, and only the rest of the budget is reserved on the next day."""
    book = RunBook("/p", "r", 5.0, "2026-11-23T12:00:00Z")
    for cost, at in ((1.0, "2026-11-23T12:00:00Z"), (2.0, "2026-11-24T12:00:00Z"), (0.5, "2026-11-24T13:00:00Z")):
        book.add(used(cost), at)
    first, second = book.entries(is_over=False).values()
    assert (1.0, 0.0) == (first.spent, first.held)
    assert (2.5, 4.0, 1.5) == (second.spent, second.reserved, second.held)


def test_many_launchers_at_once(project_dir: Path) -> None:
    """Launchers that reserve at the same time never exceed the budget."""
    settings, refused = Settings(day_budget=1.0), list[str]()

    def launch() -> None:
        try:
            reserve(str(project_dir), [make_meta(limits=Limits(budget=0.25))], settings, over_budget=False)
        except BudgetExceeded as error:
            refused.append(error.what)

    threads = [threading.Thread(target=launch) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (5, 1.0) == (len(refused), today().sum().held)
    assert "$0.00 of $1.00 spent, $1.00 reserved by active runs, and this run may spend $0.25" in refused[0]


def test_a_reservation_of_no_run_holds_nothing(project_dir: Path) -> None:
    """A reservation is released if its launcher was killed before the run existed."""
    old = LedgerEntry(paths.new_run_id(), str(project_dir), "2026-01-01T00:00:00Z", reserved=1.0)
    append(local_day(), [old])
    reserve(str(project_dir), [make_meta(limits=Limits(budget=1.0))], Settings(day_budget=1.0), over_budget=False)


KILLED_LAUNCHER = """
import os, sys
from subdeck.core.engine import Engine
from subdeck.core.launch import start
from subdeck.core.spec.request import RunRequest

def die(*_, **__):
    os.kill(os.getpid(), 9)

setattr(*{"before": (start.artifacts, "create_run"), "after": (start, "_start")}[sys.argv[2]], die)
Engine.open(sys.argv[1]).launch([RunRequest(task="answer a", budget=1.0)], background=True)
"""


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_launcher_is_killed_after_it_has_reserved(project_dir: Path, killed: str) -> None:
    """The reservation is released as soon as the launcher is proven gone, before its run exists or has a wrapper."""
    engine = open_engine(project_dir, day_budget=1.0)
    done = subprocess.run([sys.executable, "-c", KILLED_LAUNCHER, str(project_dir), killed])
    assert (-signal.SIGKILL, 1.0) == (done.returncode, today().sum().held)
    reserve("/elsewhere", [make_meta(limits=Limits(budget=1.0))], engine.settings, over_budget=False)


def test_a_launcher_that_lives_holds_what_it_reserved(project_dir: Path) -> None:
    """A launcher that is alive, or whose state is unknown here, keeps its reservation."""
    launcher, settings = ledger.this_launcher(), Settings(day_budget=1.0)
    for holder in (launcher, replace(launcher, pid=1, place="elsewhere"), None):
        entry = LedgerEntry(paths.new_run_id(), str(project_dir), paths.now_iso(), reserved=1.0, launcher=holder)
        append(local_day(), [entry])
        with pytest.raises(BudgetExceeded):
            reserve(str(project_dir), [make_meta(limits=Limits(budget=1.0))], settings, over_budget=False)
        append(local_day(), [replace(entry, over=True)])


def test_a_run_at_work_holds_what_it_reserved(project_dir: Path) -> None:
    """Its wrapper holds the run's lock."""
    engine = open_engine(project_dir, day_budget=1.0)
    run = start(engine, "hang", budget=0.75)
    with pytest.raises(BudgetExceeded, match=r"\$0\.75 reserved"):
        reserve("/elsewhere", [make_meta(limits=Limits(budget=0.5))], engine.settings, over_budget=False)
    engine.stop([run.run_id], force=True)
    wait_for_end(engine, run.run_id)


def test_a_disk_that_takes_no_run(project_dir: Path) -> None:
    """If no run starts, nothing stays reserved."""
    engine = open_engine(project_dir, limits={"budget": 1})
    active = Path(engine.project.active)
    active.parent.mkdir(parents=True, exist_ok=True)
    active.write_text("a file where the directory should be")
    with pytest.raises(LaunchError):
        engine.launch([request("answer a")], background=True)
    assert [0.0] == [entry.held for entry in today().entries.values()]


def test_a_launch_beyond_the_day(project_dir: Path) -> None:
    """It is refused with the amounts, and can be allowed once. The ledger has the spending of all runs."""
    engine = open_engine(project_dir, day_budget=1.0, limits={"budget": 0.9})
    run_to_end(engine, "answer a")
    assert (0.5, 0.0) == (today().sum().spent, today().sum().held)
    with pytest.raises(
        BudgetExceeded, match=r"does not allow this launch: \$0\.50 of \$1\.00 spent, and this run may spend \$0\.90"
    ):
        engine.launch([request("answer b")], background=True)
    assert 1 == len(engine.snapshots())
    done = subdeck("run", "--no-preset", "answer b", cwd=project_dir)
    assert (2, True) == (done.code, "--over-budget" in done.err)
    assert 0 == subdeck("run", "--no-preset", "--over-budget", "answer b", cwd=project_dir).code
    status = subdeck("status", cwd=project_dir).out
    assert "today $1.00 of $1.00, used up" in status
    spending = subdeck("status", "--json", cwd=project_dir).document["spending"]
    assert (1.0, 1.0) == (spending["today"]["spent"], spending["today"]["budget"])


def test_a_child_cannot_allow_it(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a person can exceed the budget."""
    monkeypatch.setattr(paths, "is_child", lambda: True)
    with pytest.raises(UsageError, match="an agent cannot exceed the budget"):
        reserve(str(project_dir), [], Settings(day_budget=1.0), over_budget=True)


def test_a_lost_run_is_settled_once(project_dir: Path) -> None:
    """The process that finishes it records all its messages' costs and releases its reservation."""
    engine = open_engine(project_dir, limits={"budget": 5})
    run = start(engine, "ask-for-more a", "ask-for-more b", "hang")
    wait_until(lambda: engine.snapshots([run.run_id])[0].usage.cost == 1.0, "two messages")
    assert 5.0 == today().entries[run.run_id].reserved
    os.kill(started(engine, run).pid, signal.SIGKILL)
    ended = wait_for_end(engine, run.run_id)
    assert ("lost", 1.0) == (result_of(engine, ended).reason, result_of(engine, ended).usage.cost)
    assert (1.0, 0.0) == (today().sum().spent, today().sum().held)


def test_a_disk_that_takes_no_ledger(project_dir: Path) -> None:
    """The run has its usual outcome, and its result lists the write error."""
    engine = open_engine(project_dir)
    Path(ledger.directory()).parent.mkdir(parents=True, exist_ok=True)
    Path(ledger.directory()).write_text("a file")
    result = result_of(engine, run_to_end(engine, "answer a"))
    assert ("completed", True) == (result.status, any("ledger" in text for text in result.artifact_errors))


def test_budgets_of_projects(tmp_path: Path) -> None:
    """The nearest parent directory's budget counts, and the lower one if there is a general budget."""
    shop = tmp_path / "shop"
    settings = Settings(project_budgets={str(tmp_path): 9.0, str(shop): 5.0})
    assert [5.0, 9.0, None] == [budget_of(str(path), settings) for path in (shop / "a", tmp_path / "b", Path("/x"))]
    assert 2.0 == budget_of(str(shop), Settings(project_budget=2.0, project_budgets={str(shop): 5.0}))


def test_a_project_lowers_its_own(project_dir: Path) -> None:
    """The project's file can only lower it, and only the project's runs count."""
    open_engine(project_dir, project_budget=3)
    own = project_dir / ".pi" / "subagents" / "config.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("project_budget: 0.4\n")
    engine = Engine.open(str(project_dir))
    append(local_day(), [LedgerEntry(paths.new_run_id(), "/elsewhere", spent=2.0)])
    run_to_end(engine, "answer a")
    with pytest.raises(BudgetExceeded, match="project's budget"):
        engine.launch([request("answer b")], background=True)


@pytest.mark.parametrize(
    ("spent", "unpriced", "words", "level"),
    [
        (6.123, 0, "$6.12 of $20.00", Level.FINE),
        (17.0, 5, "at least $17.00 of $20.00, nearly used up", Level.NEAR),
        (20.0, 0, "$20.00 of $20.00, used up", Level.OVER),
    ],
)
def test_the_words(spent: float, unpriced: int, words: str, level: Level) -> None:
    """Unknown prices are mentioned, and amounts near or over the budget have their level."""
    stands = Spent(spent, 0.0, 20.0, unpriced)
    assert (words, level) == (stands.words, stands.level)


def test_a_look_without_news_adds_nothing_up(project_dir: Path) -> None:
    """Repeated reads give the same object until the file or the settings change."""
    engine = open_engine(project_dir, day_budget=1.0)
    append(local_day(), [LedgerEntry("r", str(project_dir), spent=0.25)])
    before = engine.limited_spending()
    assert engine.limited_spending() is before
    append(local_day(), [LedgerEntry("r", str(project_dir), spent=0.5)])
    assert (now := engine.limited_spending()) and "today $0.50 of $1.00" == now.words
    os.replace(day_file(local_day()), f"{day_file(local_day())}.old")
    append(local_day(), [LedgerEntry("r", str(project_dir), spent=0.75)])
    assert (now := engine.limited_spending()) and "today $0.75 of $1.00" == now.words
