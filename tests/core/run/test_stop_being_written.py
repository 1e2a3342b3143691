"""A stop request that the wrapper reads while it is still being written is not tampering."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import second_copy
from subdeck.core.run.repair import restore

from tests.factories import make_run

REQUEST = b'{"by":"operator"}'


@pytest.mark.parametrize("is_written", [True, False], ids=["is written", "was removed"])
def test_a_request_in_the_copy_alone(project: Project, is_written: bool) -> None:
    """A request that reaches its copy first, and the other records a moment later, does not count as removed."""
    meta, lock = make_run(project)
    run_dir = project.run_dir(meta.run_id)
    os.close(second_copy.make(run_dir, Path(run_dir, paths.META).read_bytes()))
    restore(run_dir)
    assert [] == restore(run_dir)
    assert second_copy.write(run_dir, paths.STOP, REQUEST)
    if is_written:
        threading.Timer(0.05, Path(run_dir, paths.STOP).write_bytes, (REQUEST,)).start()
    said = restore(run_dir)
    assert ([] if is_written else ["stop.json was removed during the run"]) == said
    assert REQUEST == Path(run_dir, paths.STOP).read_bytes()
    os.close(lock)
