"""Random faults, a new seed each time; it is printed, and `--sweep-seed` replays it."""

from __future__ import annotations

import pytest

from tests.killing import IS_WHOLE

from .bed import Bed
from .operator import Operator, Watch
from .sweep import Sweep, draw, new_seed

SECONDS, RUNS = (70.0, 30) if IS_WHOLE else (8.0, 8)
TIMES = 5 if IS_WHOLE else 1


@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", range(TIMES))
def test_faults_at_random(bed: Bed, operator: Operator, watch: Watch, pytestconfig: pytest.Config, number: int) -> None:
    """With any faults at any time, every run completes, was started once, and has complete records."""
    seed = pytestconfig.getoption("sweep_seed")
    plan = draw(new_seed() if seed is None else seed + number, seconds=SECONDS, runs=RUNS, hosts=bed.hosts)
    print(plan)
    assert RUNS == len(Sweep(bed, operator, watch).play(plan))
