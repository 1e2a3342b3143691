"""`subdeck grep`: its output and exit codes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText, encode_event

from tests.core.command_line import SUBDECK, start, subdeck
from tests.factories import make_finished, make_meta
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

OLD, NEW = "20261101-000000-aaaaaa", "20261102-000000-bbbbbb"


@pytest.fixture
def project(project_dir: Path) -> Path:
    for run_id, said in ((OLD, "the Needle"), (NEW, "a needle\x1b[2J\nand a needle")):
        made = make_finished(paths.Project(str(project_dir)), make_meta(run_id, preset="scout"), final_text="done")
        event = AssistantText(seq=1, ts="2026-11-01T00:00:00.000Z", text=said)
        _events(project_dir, made.run_id).write_bytes(encode_event(event))
    return project_dir


def _events(project_dir: Path, run_id: str) -> Path:
    return Path(paths.Project(str(project_dir)).run_dir(run_id), paths.EVENTS)


def test_hit_is_a_line_with_run_date_and_place(project: Path) -> None:
    """The newest run comes first, and control characters are removed, even in a pipe."""
    done = subdeck("grep", "needle", cwd=project, TZ="UTC")
    assert (0, "") == (done.code, done.err)
    assert done.out.splitlines() == [
        f"{NEW}  2026-11-01 00:00:00  transcript  a needle",
        f"{NEW}  2026-11-01 00:00:00  transcript  and a needle",
    ]


def test_exit_code_tells_whether_there_is_a_hit(project: Path) -> None:
    """As with grep: 0 for a match, 1 for none, 2 for an invalid search."""
    assert (1, "", "") == subdeck("grep", "nowhere", cwd=project)
    assert 2 == subdeck("grep", "(", "--regex", cwd=project).code
    assert "not a regular expression" in subdeck("grep", "(", "--regex", "--json", cwd=project).error["what"]
    assert 2 == subdeck("grep", "", cwd=project).code


def test_options_narrow_and_widen(project: Path) -> None:
    """A text is literal unless it is marked as an expression. Runs can be named, and listed only by id."""
    assert 3 == len(subdeck("grep", "-i", "needle", cwd=project).out.splitlines())
    assert 1 == subdeck("grep", "ne+dle", cwd=project).code
    assert 2 == len(subdeck("grep", "-E", "ne+dle", cwd=project).out.splitlines())
    assert f"{NEW}\n{OLD}\n" == subdeck("grep", "-il", "needle", cwd=project).out
    assert 1 == len(subdeck("grep", "-m1", "needle", cwd=project).out.splitlines())
    assert [OLD] == subdeck("grep", "-il", "needle", "aaaaaa", cwd=project).out.split()


def test_json_is_one_document(project: Path) -> None:
    """The document has place, offset and the positions of matches in the line. Without a match it is empty."""
    document = subdeck("grep", "needle", "--json", cwd=project).document
    (run,) = document["runs"]
    assert (NEW, "scout", "needle") == (run["runId"], run["preset"], document["pattern"])
    assert run["hits"][1] == {
        "place": "transcript",
        "line": "and a needle",
        "spans": [[6, 12]],
        "at": "2026-11-01T00:00:00.000Z",
        "offset": 0,
        "kind": "assistant_text",
    }
    none = subdeck("grep", "nowhere", "--json", cwd=project)
    assert (1, []) == (none.code, none.document["runs"])


def test_terminal_gets_lines_that_fit(project: Path) -> None:
    """On a terminal, the short id is shown and each line fits one row."""
    _events(project, OLD).write_bytes(encode_event(AssistantText(seq=1, text="needle " + "x" * 500)))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60"}
    done = subprocess.Popen([*SUBDECK, "grep", "needle"], cwd=project, stdout=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # a terminal reports in this way that its last program has exited
    os.close(ours)
    assert 0 == done.wait(30)
    rows = shown.decode().splitlines()
    assert 3 == len(rows) and all(len(row) <= 60 for row in rows)
    assert rows[-1].startswith("aaaaaa  ") and rows[-1].endswith("…")


def test_ctrl_c_ends_a_search_that_would_take_for_ever(project: Path) -> None:
    """ctrl-C ends a search with a slow expression, like any command."""
    _events(project, OLD).write_bytes(encode_event(AssistantText(seq=1, text="a" * 60 + "!")))
    process = start("grep", "-E", "(a+)+$", cwd=project)
    try:
        wait_until(lambda: _cpu_ticks(process.pid) > 60, "the search to be at work")
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(10)
    finally:
        process.kill()
        process.communicate()


def _cpu_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11])
