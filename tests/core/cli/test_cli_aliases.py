"""Hidden spellings of commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from subdeck.core.cli._aliases import ALIASES
from subdeck.core.cli.main import COMMANDS
from subdeck.core.paths import Project

from tests.core.command_line import Done, subdeck
from tests.factories import make_finished, make_meta

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

RUN = "20261121-000000-abcdef"

TABLE: list[tuple[str, str, int, str]] = [
    ("answer abcdef", "logs --answer abcdef", 0, "Read this:"),
    ("answer --code 1 --json abcdef", "logs --answer --code 1 --json abcdef", 0, '"language": "sh"'),
    ("answer abcdef --code 2", "logs abcdef --answer --code 2", 2, "the answer has 1 code block"),
    ("attach abcdef", "open abcdef --pane", 2, "has no tmux pane"),
    ("take-over abcdef", "open --agent --yes abcdef", 2, "needs a terminal"),
    ("take-over abcdef --json", "open --agent --yes abcdef --json", 2, "cannot open run abcdef in the agent"),
    ("clean", "rm --retention", 2, "no rule selects old runs"),
    ("clean --keep 0", "rm --keep 0", 2, "add --yes"),
    ("clean --keep 0 --dry-run --json", "rm --keep 0 --dry-run --json", 0, '"going"'),
    ("clean --keep 0 --yes", "rm --yes --keep 0", 0, "1 run moved to the trash"),
    ("clean --purge --older-than 0 --yes", "rm --purge --older-than 0 --yes", 0, "1 run deleted permanently"),
    ("clean abcdef", "rm --retention abcdef", 2, "RUN and a rule"),
    ("interrupt abcdef", "stop --turn abcdef", 2, "has finished"),
    ("interrupt --wait --timeout 3 abcdef", "stop abcdef --turn --wait --timeout 3", 2, "has finished"),
    ("ls", "status", 0, "abcdef"),
    ("ls --all --json", "status --all --json", 0, '"runs"'),
    ("ps abcdef", "status abcdef", 0, "abcdef"),
    ("keep abcdef", "apply abcdef --to-branch", 2, "worktree"),
    ("keep --json abcdef mine", "apply abcdef --json --to-branch=mine", 2, "worktree"),
    ("keep", "apply --to-branch", 2, "RUN is missing"),
    ("merge abcdef --pick --commit", "merge abcdef --squash --commit", 2, "--commit and --squash cannot be combined"),
    ("pi", "connect", 0, "absent"),
    ("pi --json --project status", "connect --json --project", 0, '"installed": false'),
    ("pi status", "connect", 0, "absent"),
    ("pi install", "connect pi", 0, "The extension is"),
    ("pi --project install", "connect pi --project", 0, "The extension is"),
    ("pi uninstall --project", "disconnect pi --project", 0, "Nothing was installed."),
    ("mcp install claude --project", "connect claude --project", 0, "Written to"),
    ("mcp --project install --json codex", "connect --project --json codex", 0, '"changed": true'),
    ("mcp uninstall claude --project", "disconnect claude --project", 0, "subdeck was not in"),
    ("mcp serve --nope", "mcp --nope", 2, "subdeck mcp has no option --nope"),
    ("kill abcdef", "stop --kill abcdef", 0, "had already ended"),
    ("kill --json", "stop --kill --json", 2, "RUN is missing"),
    ("resume abcdef", "open --agent abcdef", 2, "needs a terminal"),
    ("new --dry-run", "init --dry-run", 0, "explore-code"),
    ("help ls", "status --help", 0, "Usage: subdeck status"),
    ("ps --nope", "status --nope", 2, "subdeck status has no option --nope"),
]
"""A line with a hidden spelling, the same in today's spelling, the exit code, and a part of the output."""


@pytest.fixture
def project_dir(project_dir: Path, tmp_path: Path) -> Path:
    """A project with one finished run, and a copy of it in `before`."""
    project = Project(str(project_dir))
    make_finished(project, make_meta(RUN), final_text="Read this:\n```sh\nls\n```\n")
    shutil.copytree(project_dir, tmp_path / "before", symlinks=True)
    return project_dir


def called(line: str, project_dir: Path) -> tuple[Done, list[str]]:
    """Run a command in the project as it was. Return its output, and the names of all files after it."""
    shutil.rmtree(project_dir)
    shutil.copytree(project_dir.parent / "before", project_dir, symlinks=True)
    done = subdeck(*line.split(), cwd=project_dir)
    return done, sorted(str(path.relative_to(project_dir)) for path in project_dir.rglob("*"))


@pytest.mark.parametrize(("old", "new", "code", "part"), TABLE, ids=[row[0] for row in TABLE])
def test_a_hidden_spelling_does_the_same(project_dir: Path, old: str, new: str, code: int, part: str) -> None:
    """A hidden spelling has the output, the exit code and the effect of today's spelling."""
    done, files = called(old, project_dir)
    assert code == done.code, done.err
    assert part in done.out + done.err
    assert (done, files) == called(new, project_dir)


def test_a_client_has_to_be_named(project_dir: Path) -> None:
    """`mcp install` required a client; `connect` does not."""
    for words in (("mcp", "install"), ("mcp", "install", "--project")):
        done = subdeck(*words, cwd=project_dir)
        assert (2, "") == (done.code, done.out)
        assert 'invalid CLIENT ""' in done.err


def test_every_hidden_spelling_is_in_the_table() -> None:
    """The table has each hidden spelling, and none of them is the name of a command."""
    tested = {old.removeprefix("help ") for old, _, _, _ in TABLE}
    assert [alias for alias in ALIASES if not any(f"{line} ".startswith(f"{alias} ") for line in tested)] == []
    assert set() == {*ALIASES} & {*COMMANDS}
