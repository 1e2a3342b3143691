"""Which results commands and parent agents mark as read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from subdeck.core.paths import now_iso
from subdeck.core.project.read_marks import SINCE, line, marks_file
from subdeck.core.system.files import write_state

from tests.core.command_line import SUBDECK, run_dirs, subdeck, write_preset, write_settings
from tests.core.delegation.delegating import Calling, call, parent_engine, running, task

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]


@pytest.fixture
def project(project_dir: Path, home: Path) -> Path:
    write_preset(project_dir)
    (project_dir / "door.py").write_text("def open_door():\n    return 'door'\n")
    write_settings(home, crasher="exit 7")
    write_state(marks_file(str(project_dir)), line(SINCE, now_iso()))
    return project_dir


def marks(project: Path) -> list[str]:
    return Path(marks_file(str(project))).read_text().splitlines()[1:]


@pytest.mark.parametrize("words", [(), ("--json",), ("--agent", "crasher"), ("--agent", "crasher", "--json")])
def test_a_printed_result_is_read(project: Path, words: tuple[str, ...]) -> None:
    """A command that waited for a run and printed its result, of any kind, marks it as read."""
    subdeck("run", "scout", "where is open_door", *words, cwd=project)
    (run_dir,) = run_dirs(project)
    assert [f"seen {run_dir.name}"] == marks(project)


def test_a_result_that_could_not_be_printed_is_unread(project: Path) -> None:
    """A result that could not be printed because the disk behind stdout was full stays unread."""
    with open("/dev/full", "wb") as full:
        subprocess.run([*SUBDECK, "run", "scout", "where is open_door"], cwd=project, stdout=full, stderr=full)
    assert [] == marks(project)


def test_nobody_waits_for_a_background_run(project: Path) -> None:
    """`bg` and `wait` leave a run's result unread."""
    run_id = subdeck("bg", "scout", "where is open_door", cwd=project).out.strip()
    subdeck("wait", run_id, cwd=project)
    assert [] == marks(project)


def test_no_marks_are_kept_before_an_app_was_opened(project: Path) -> None:
    """If no app was ever opened nothing is unread, and no file is made."""
    Path(marks_file(str(project))).unlink()
    assert 0 == subdeck("run", "scout", "where is open_door", cwd=project).code
    assert not Path(marks_file(str(project))).exists()


def test_a_parent_has_the_results_that_it_waited_for(project_dir: Path) -> None:
    """The tool `subagent` marks its returned results as read; a background run stays unread."""
    engine = parent_engine(project_dir)
    write_state(marks_file(str(project_dir)), line(SINCE, now_iso()))
    answer = call(engine, "subagent", task("answer all is well"))
    call(engine, "background_agent", task("answer all is well"))
    (row,) = answer.details["runs"]
    assert [f"seen {row['runId']}"] == marks(project_dir)


def test_a_parent_that_went_away_has_no_results(project_dir: Path) -> None:
    """Results of a cancelled call, also by a client that went away, stay unread."""
    engine = parent_engine(project_dir)
    write_state(marks_file(str(project_dir)), line(SINCE, now_iso()))
    calling = Calling(engine, "subagent", task("hang"))
    running(engine)
    calling.cancelled.set()
    calling.answer()
    assert [] == marks(project_dir)
