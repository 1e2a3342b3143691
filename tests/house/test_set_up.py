"""Set-up's preparations beyond installing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.house import set_up


@pytest.mark.processes
def test_tests_are_compiled_before_their_first_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Set-up leaves all test modules compiled as pytest needs them, and does not report broken ones."""
    core = tmp_path / "tests" / "core"
    core.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    for place in (core, core.parent):
        (place / "test_sound.py").write_text("def test_true():\n    assert True\n")
    (core / "test_broken.py").write_text("import no_such_module\n")
    for place in (core, core.parent):
        (place / "__init__.py").touch()
    set_up.compile_tests(Path(sys.executable), tmp_path)
    compiled = {path.relative_to(tmp_path / "tests").parts[0] for path in tmp_path.rglob("test_sound.*-pytest-*.pyc")}
    assert {"core", "__pycache__"} == compiled
    assert ("", "") == capfd.readouterr()
