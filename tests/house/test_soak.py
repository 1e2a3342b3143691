"""The sweep of `make soak`: tests without sweeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak import __main__ as command
from tests.soak.plan import Calls, Scene, Victim, draw
from tests.soak.puppet import text_of
from tests.soak.records import Journal
from tests.soak.strace import usual_calls
from tests.soak.sweep import Report
from tests.soak.verdict import Broken

TRIALS = range(400)
USUAL = {victim: {"write": Calls(2, 9), "openat": Calls(300, 340)} for victim in Victim if victim is not Victim.CHILD}


def test_a_trial_is_drawn_from_seed_and_number() -> None:
    """The same seed and number make the same trial; other ones make others."""
    again = [draw(7, number, [], USUAL) for number in TRIALS]
    assert again == [draw(7, number, [], USUAL) for number in TRIALS]
    assert len(TRIALS) == len({str(plan) for plan in again})


def test_every_victim_and_scene_has_its_turn() -> None:
    """A sweep without options hits every kind of process, in every scene."""
    plans = [draw(1, number, [], USUAL) for number in TRIALS]
    assert set(Victim) == set().union(*(plan.victims for plan in plans))
    assert set(Scene) == {plan.scene for plan in plans}


def test_only_some_victims() -> None:
    """`--only` spares all other victims."""
    wanted = command._read(["--only", "wrapper,looker"]).only
    assert set(wanted) >= set().union(*(draw(1, number, wanted, USUAL).victims for number in TRIALS))


def test_traps_lie_among_the_calls_of_the_program() -> None:
    """An error is injected only into the program's own calls, not into those of Python's start."""
    traps = [trap for number in TRIALS for trap in draw(1, number, [], USUAL).traps if trap.error]
    assert traps
    for trap in traps:
        usual = USUAL[trap.victim][trap.call]
        assert usual.before < trap.count
        assert trap.count <= usual.total or trap.victim is Victim.LOOKER


@pytest.mark.processes
@pytest.mark.parametrize(("always", "code"), [(3, 1), (None, 0)])
def test_what_does_not_break_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], always: int | None, code: int
) -> None:
    """With `--again` a sweep fails for a trial that breaks again when replayed; other failures are only named."""
    times: Counter[int] = Counter()

    def play(seed: int, numbers: Iterator[int], *_: object, **__: object) -> Iterator[Report]:
        for number in numbers:
            times[number] += 1
            is_broken = number == always or (number == 5 and times[number] == 1)
            found = (Broken("told twice", f"run {number}"),) if is_broken else ()
            yield Report(draw(seed, number, [], USUAL), kills=("wrapper",), broken=found)

    monkeypatch.setattr(command, "measure", lambda: USUAL)
    monkeypatch.setattr(command, "sweep", play)
    assert code == command.main(["--kills", "8", "--again", "2"])
    broken, _, chance = capsys.readouterr().out.partition("broken once, and not again")
    assert (always is not None, True) == ("run 3" in broken, "run 5" in chance)
    assert 3 == times[5]


def test_a_log_of_strace(tmp_path: Path) -> None:
    """Calls are counted by name, those before the project is first named separately."""
    log = tmp_path / "log"
    log.write_text(
        'openat(AT_FDCWD, "/lib/a") = 3\nread(3, "", 1) = 0\nopenat(AT_FDCWD, "/here/b") = 3\n+++ exited +++\n'
    )
    assert {"openat": Calls(1, 2), "read": Calls(1, 1)} == usual_calls(log, ["/here"])


def test_a_text_that_may_be_whole(tmp_path: Path) -> None:
    """A text that an agent was about to record as written may be on its stream or not."""
    path = tmp_path / "journal"
    path.write_text("1 begun 77\n3 saying 1 0\n4 said 1 0\n")
    assert Journal.read(path).saying is None
    path.write_text("1 begun 77\n3 saying 1 0\n4 said 1 0\n5 saying 2 0\n")
    assert text_of(2) == Journal.read(path).saying


def test_a_journal(tmp_path: Path) -> None:
    """A journal gives the texts that were written completely, and the incomplete sentence."""
    path = tmp_path / "journal"
    path.write_text("1 begun 77\n2 wrote This \n3 saying 1 0\n4 said 1 0\n5 wrote What \n6 wrote was.\n")
    journal = Journal.read(path)
    assert (77, "What was.", 1, 0) == (
        journal.child,
        journal.sentence,
        len(journal.said()),
        len(journal.said(before=4)),
    )
