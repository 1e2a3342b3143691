"""From the launch to the answer, over networks."""

from __future__ import annotations

from subdeck.core.run import artifacts

from .checks import check
from .operator import Operator, Watch


def test_from_launch_to_answer(operator: Operator, watch: Watch) -> None:
    """Runs are placed on hosts, seen running, and their answers and records come back whole; and nothing twice."""
    runs = operator.launch(4)
    operator.wait("all runs to run", runs, "running")
    operator.finish(runs)
    operator.wait("all runs to end", runs, "done")

    check(operator, watch, runs)
    results = [artifacts.read_result(str(operator.run_dir(run))) for run in runs]
    assert all(result and "said" in (result.final_text or "") for result in results)
    assert {word for run in runs for word in watch.words(run)} <= {"queued", "running", "done"}
