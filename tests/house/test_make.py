"""The make targets, as users and scripts run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.house.set_up import ROOT

PROBE = """
import signal
import subprocess

import pytest

@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_a_child_can_be_interrupted(number):
    with subprocess.Popen(["sleep", "60"]) as child:
        child.send_signal(number)
        try:
            assert -number == child.wait(timeout=5)
        finally:
            child.kill()
"""


@pytest.mark.processes
def test_the_tests_run_in_the_background_of_a_script(tmp_path: Path) -> None:
    """`make test &` in a script, where SIGINT and SIGQUIT are ignored, passes tests whose children need them."""
    (tmp_path / "test_probe.py").write_text(PROBE)
    options = f"-c {ROOT}/pyproject.toml -p tests.conftest -p no:cacheprovider --basetemp {tmp_path}/probe {tmp_path}"
    script = 'make --no-print-directory -C "$0" test SET_UP=true ARGS="$1" & wait "$!"'
    ended = subprocess.run(["sh", "-c", script, ROOT, options], capture_output=True, text=True, timeout=100)
    assert (0, []) == (ended.returncode, [line for line in ended.stdout.splitlines() if "FAILED" in line]), ended
