"""An agent cannot hide its changes by editing the repository's settings."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.git.snapshot import LARGE
from subdeck.core.run.changes import Changes
from subdeck.core.run.model import WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.operation import APPLY

from tests.factories import open_engine, result_of, run_to_end
from tests.waiting import wait_until

from ..command_line import subdeck
from ..git.repositories import git, make, write

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]

BEGIN = {"a.py": "one\ntwo\n", "b.py": "bbb\n", "src/c.py": "c\n", ".gitignore": "*.log\n"}
HIDING = {
    "untracked files": ("git config status.showUntrackedFiles no; echo evil > new.py", {"new.py"}),
    "exclude": ("echo 'new*' >> $(git rev-parse --git-path info/exclude); echo evil > new.py", {"new.py"}),
    "excludes file": ("echo 'new*' > .git/mine; git config core.excludesFile $PWD/.git/mine; >new.py", {"new.py"}),
    "stat": (
        "git config core.checkStat minimal; git config core.trustctime false;"
        "touch -r b.py ../time; printf 'xxx\\n' > b.py; touch -r ../time b.py",
        {"b.py"},
    ),
    "mode": ("git config core.fileMode false; chmod +x b.py", {"b.py"}),
    "assumed": ("git update-index --assume-unchanged b.py; echo evil > b.py", {"b.py"}),
    "skipped": ("git update-index --skip-worktree b.py; echo evil > b.py", {"b.py"}),
    "skipped and gone": ("git update-index --skip-worktree b.py; rm b.py", {"b.py"}),
    "a forged index": (
        "touch b.py; git update-index -q --refresh; touch -r b.py ../time; printf 'xxx\\n' > b.py;"
        "touch -r ../time b.py; touch -d +1day $(git rev-parse --git-path index)",
        {"b.py"},
    ),
    "case": ("git config core.ignoreCase true; echo evil > B.py; echo evil > A.PY", {"A.PY", "B.py"}),
    "sparse": (
        "git config core.sparseCheckout true; echo /a.py > $(git rev-parse --git-path info/sparse-checkout);"
        "echo evil > b.py; rm src/c.py",
        {"b.py", "src/c.py"},
    ),
    "attributes": (
        "git config filter.x.clean 'git cat-file blob HEAD:b.py'; echo 'b.py filter=x' >> $(git rev-parse"
        " --git-path info/attributes); echo evil > b.py",
        {"b.py"},
    ),
    "an included file": ("printf '[status]\\nshowUntrackedFiles=no\\n' > ../more; git config include.path $PWD/../more;"
        "echo evil > new.py", {"new.py"}),
    "a replaced commit": (
        "old=$(git rev-parse HEAD); echo evil > new.py; git add -A; git -c user.name=a -c user.email=a@b commit -qm x;"
        "git replace HEAD $old",
        {"new.py"},
    ),
    "the user's list": ("mkdir -p ~/.config/git; echo 'new*' >> ~/.config/git/ignore; echo evil > new.py", {"new.py"}),
    "the user's settings": (
        "git config --global core.excludesFile ~/mine; echo 'new*' > ~/mine; git config --global core.fileMode false;"
        "echo evil > new.py; chmod +x b.py",
        {"new.py", "b.py"},
    ),
    "a name that git refuses": (
        "mkdir .GIT git~1 src/.git.; for d in .GIT git~1 src/.git.; do echo evil > $d/x; done; ln -s b.py .gitmodules;"
        "echo evil > \"$(printf '.GIT/a\\nIgnoring path b.py')\"",
        {".GIT/x", "git~1/x", "src/.git./x", ".gitmodules"},
    ),
    "a repository inside": ("git init -q src; echo evil > src/new.py", {"src/new.py"}),
    "a monitor that sees nothing": (
        "printf '#!/bin/sh\\nprintf \"x\\\\0\"\\n' > ../mon; chmod +x ../mon; git config core.fsmonitor $PWD/../mon;"
        "git status >/dev/null; echo evil > b.py",
        {"b.py"},
    ),
    "a split index": (
        "git update-index --split-index; git update-index --assume-unchanged b.py; echo evil > b.py", {"b.py"}
    ),
    "line ends": ("git config core.autocrlf input; printf 'bbb\\r\\n' > b.py", {"b.py"}),
    "attributes elsewhere": (
        "echo '*.py text=auto' > ../attrs; git config core.attributesFile $PWD/../attrs; printf 'bbb\\r\\n' > b.py",
        {"b.py"},
    ),
    "objects elsewhere": (
        "mkdir ../alt; o=$(git rev-parse --git-common-dir)/objects; cp -r $o/. ../alt; rm -rf $o/??;"
        "echo $PWD/../alt > $o/info/alternates; echo evil > b.py",
        {"b.py"},
    ),
    "a replaced file": ("o=$(git rev-parse HEAD:b.py); echo evil > b.py; git replace $(git hash-object -w b.py) $o",
        {"b.py"}),
}  # fmt: skip
QUIET = {
    "a name that git refuses",
    "a split index",
    "assumed",
    "skipped",
    "skipped and gone",
    "a forged index",
    "the user's list",
    "the user's settings",
}
"""Tricks that leave the repository's settings unchanged."""


AT_ONCE = 12
"""The number of repositories prepared together, to share the wait of one second."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield directories with equal repositories, a new one each time, made in batches ahead of use."""
    pattern = make(tmp_path_factory.mktemp("pattern") / "repository", BEGIN)

    def places() -> Iterator[Path]:
        while True:
            some = [tmp_path_factory.mktemp("prepared") for _ in range(AT_ONCE)]
            for place in some:
                root = Path(shutil.copytree(pattern, place / "repository"))
                for name in BEGIN:
                    os.utime(root / name, (1_500_000_000, 1_500_000_000))
            yield from some

    return places()


@pytest.fixture
def repository(prepared: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path = next(prepared)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "repository"


def ended(repository: Path, command: str, **options: object) -> tuple[Engine, RunSnapshot, Changes]:
    engine = open_engine(repository)
    run = run_to_end(engine, f"bash {command}", "answer Done.", **options)
    changes = result_of(engine, run).changes
    assert changes is not None
    return engine, run, changes


@pytest.mark.parametrize("way", HIDING)
@pytest.mark.parametrize("worktree", [None, WorktreeFrom.HEAD])
def test_a_change_is_not_hidden(repository: Path, way: str, worktree: WorktreeFrom | None) -> None:
    """A change is recorded although the agent hides it from git, in the working tree and in a worktree."""
    command, expected = HIDING[way]
    if worktree:
        command = command.replace(".git/mine", "../mine")
    changed_at = int((repository / "b.py").stat().st_ctime)
    wait_until(
        lambda: int(time.time()) > changed_at, "the second of its last change to pass, which is all git looks at"
    )
    _, _, changes = ended(repository, command, worktree=worktree)
    assert expected <= {file.path for file in changes.named}, changes.words
    if way not in QUIET | {"a repository inside"}:
        assert "repository settings changed during the run" in changes.words


def test_a_large_file_of_the_same_size_and_time(repository: Path) -> None:
    """A change to a file that is too large to store is reported, even if the agent resets the file's times."""
    with open(repository / "large.bin", "wb") as file:
        file.truncate(LARGE + 1)
    change = (
        "touch -r large.bin ../time; printf X | dd of=large.bin conv=notrunc status=none; touch -r ../time large.bin"
    )
    _, _, changes = ended(repository, change)
    assert ["large.bin"] == [file.path for file in changes.named]
    _, _, changes = ended(repository, "cat large.bin >/dev/null")
    assert not changes.named


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .git; git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x",
        'git clone -q . ../clone; mv .git ../old.git; echo "gitdir: $PWD/../clone/.git" > .git',
        "cp -r . ../copy; git config core.worktree $PWD/../copy",
        "rm -rf .git/objects/??",
    ],
    ids=["another repository", "a link to another repository", "another working tree", "no objects"],
)
def test_what_cannot_be_compared_is_not_called_unchanged(repository: Path, command: str) -> None:
    """A repository that the agent damaged is reported as not recorded."""
    _, _, changes = ended(repository, f"echo evil > b.py; {command}")
    assert "not recorded" in changes.words
    assert not changes.is_nothing


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("git config core.hooksPath ../hooks", "core.hookspath"),
        ("git config --worktree core.fileMode false", "core.filemode"),
        ("echo exit > .git/hooks/post-checkout", "hooks/post-checkout"),
        ("ln -s ../../a.py .git/hooks/pre-push", "hooks/pre-push"),
        ("mkfifo .git/hooks/pre-push", "hooks/pre-push"),
        ("echo x >> .git/info/exclude", "info/exclude"),
        ("echo '*.py -diff' > .git/info/attributes", "info/attributes"),
        ("echo /src > .git/info/sparse-checkout", "info/sparse-checkout"),
        ("echo $(git rev-parse HEAD) > .git/info/grafts", "info/grafts"),
        ("echo '[broken' >> .git/config", "config"),
        ("git config core.worktree ..", "core.worktree"),
        ("git config core.bare true", "core.bare"),
        ("mkdir -p .git/modules/m/hooks; >.git/modules/m/config; >.git/modules/m/hooks/x", "modules/m/hooks/x"),
    ],
)
def test_settings_of_the_repository(repository: Path, command: str, names: str) -> None:
    """Every view reports the agent's changes to repository settings and hooks, even if git no longer works there."""
    _, run, changes = ended(repository, command)
    assert names in changes.settings
    said = "repository settings changed during the run: "
    assert said in changes.words and names in changes.words
    assert "settings" == changes.figure
    assert said in subdeck("diff", run.run_id, cwd=repository).err
    assert said in subdeck("status", run.run_id, cwd=repository).out


def test_settings_that_nobody_changed(repository: Path) -> None:
    """Commits on the run's own branch, and other runs beside it, do not count as changed settings."""
    git(repository, "config", "user.name", "child")
    git(repository, "config", "user.email", "child@test")
    _, _, changes = ended(repository, "git switch -qc mine; echo x > b.py; git add -A; git commit -qm x; git gc -q")
    assert ((), ()) == (changes.settings, changes.ignored)
    _, _, changes = ended(repository, "echo y > b.py; git commit -qam x", worktree=WorktreeFrom.FILES)
    assert ((), ()) == (changes.settings, changes.ignored)


def test_new_ignore_rules(repository: Path) -> None:
    """Files hidden by the agent's new ignore rules are named; files hidden by older rules are not."""
    write(repository, {"old/.gitignore": "*", "old/a": "a", "x.log": "x"})
    command = (
        "mkdir new lib; echo '*' > new/.gitignore; echo evil > new/e.py; echo b > old/b; echo y > y.log;"
        "echo secret >> .gitignore; echo evil > secret; echo m > lib/m.log"
    )
    _, run, changes = ended(repository, command)
    assert (("new/", "secret"), [".gitignore"]) == (changes.ignored, [file.path for file in changes.named])
    assert "hidden by new ignore rules: new/, secret" in subdeck("diff", run.run_id, cwd=repository).err
    _, run, changes = ended(repository, "mkdir -p more/deep; echo '*' > more/.gitignore; echo evil > more/deep/e.py")
    assert (0, ("more/",)) == (changes.files, changes.ignored)
    assert "changed nothing; hidden by" in subdeck("status", run.run_id, cwd=repository).out


def test_what_was_hidden_is_applied(repository: Path) -> None:
    """The changes shown for a worktree are the ones that are applied, and they protect it from cleanup."""
    command = "echo 'new*' >> $(git rev-parse --git-path info/exclude); echo good > new.py; git config core.bare false"
    engine, run, _ = ended(repository, command, worktree=WorktreeFrom.HEAD)
    assert [run.run_id] == [one.run_id for one in engine.unmerged([run.run_id])]
    shown = subdeck("diff", run.run_id, "--name-only", cwd=repository)
    assert ("new.py\n", False) == (shown.out, "edited since" in shown.err)
    engine.work.act(engine.work.plan(APPLY, run))
    assert "good\n" == (repository / "new.py").read_text()
