"""Checkouts made to have git run a program, or to lead it elsewhere."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest
from subdeck.core.git import merges, worktrees
from subdeck.core.git.diff import changed_files, write_patch
from subdeck.core.git.program import Git, GitError
from subdeck.core.git.repository import find
from subdeck.core.git.snapshot import Store

from .repositories import commit, found, git, listed, make, write

pytestmark = pytest.mark.processes

KEYS = (
    "alias.status", "alias.add", "alias.rev-parse", "alias.worktree", "alias.merge-tree",
    "browser.x.cmd", "browser.x.path", "core.alternateRefsCommand", "core.askPass", "core.editor", "core.fsmonitor",
    "core.gitProxy", "core.pager", "core.sshCommand", "core.virtualFilesystem", "credential.helper",
    "credential.https://example.org.helper", "diff.external", "diff.x.command", "diff.x.textconv", "difftool.x.cmd",
    "difftool.x.path", "filter.x.clean", "filter.x.smudge", "filter.x.process", "filter.a=b.c.clean",
    "filter.a=b.c.smudge", "gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand",
    "gpg.x509.program", "guitool.x.cmd", "hook.x.command", "imap.tunnel", "instaweb.browser", "instaweb.httpd",
    "interactive.diffFilter", "man.x.cmd", "man.x.path", "merge.x.driver", "merge.default", "mergetool.x.cmd",
    "mergetool.x.path", "pager.diff", "pager.status", "pager.worktree", "remote.origin.receivepack",
    "remote.origin.uploadpack", "remote.origin.vcs", "sendemail.smtpServer", "sequence.editor", "ssh.variant",
    "submodule.sub.update", "tar.x.command", "trailer.x.cmd", "trailer.x.command", "uploadpack.packObjectsHook",
    "web.browser",
)  # fmt: skip
"""Every key that names a program, or may, in the documentation of git up to 2.52."""
SWITCHES = {
    "commit.gpgSign": "true",
    "core.fsmonitorHookVersion": "2",
    "diff.x.cachetextconv": "true",
    "extensions.partialClone": "origin",
    "extensions.worktreeConfig": "true",
    "filter.x.required": "true",
    "gpg.format": "ssh",
    "hook.x.enabled": "true",
    "hook.x.event": "reference-transaction",
    "log.showSignature": "true",
    "merge.verifySignatures": "true",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "remote.origin.promisor": "true",
    "submodule.recurse": "true",
    "user.signingKey": "x",
}
HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit",
    "pre-merge-commit", "pre-rebase", "prepare-commit-msg", "reference-transaction", "update",
)  # fmt: skip
ATTRIBUTES = "* filter=x diff=x merge=x\n*.other filter=a=b.c\n"


class Canary:
    """A program that records each of its runs, with the setting that started it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.path = directory / "canary"
        self.log = directory / "log"
        self.path.write_text(f'#!/bin/sh\necho "$1" >> {self.log}\nexit 0\n')
        self.path.chmod(0o755)

    def song(self) -> list[str]:
        return sorted(set(self.log.read_text().split())) if self.log.exists() else []

    def settings(self) -> str:
        """Return a settings file in which every key names the canary."""
        lines: list[str] = []
        named = {key: f"{self.path} {key}" for key in KEYS}
        for key, value in (named | SWITCHES | {"remote.origin.url": f"ext::{self.path} url"}).items():
            section, _, rest = key.partition(".")
            middle, _, name = rest.rpartition(".")
            lines.append(f'[{section} "{middle}"]' if middle else f"[{section}]")
            lines.append(f'\t{name} = "{value}"')
        return "\n".join([*lines, ""])

    def plant_hooks(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            (directory / name).write_text(f"#!/bin/sh\nexec {self.path} hook-{name}\n")
            (directory / name).chmod(0o755)


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "cage")


def exercise(root: Path, state: Path) -> None:
    """Do everything that can be done in a repository."""
    repository = found(root)
    assert not repository.trouble
    store = Store(str(state / "store"))
    before = store.take(repository)
    write(root, {"a": "changed\n", "b.other": "changed\n", "new": "x\n"})
    os.utime(root / "c")
    after = store.take(repository)
    at = store.git(repository)
    assert {"a", "b.other", "new"} == {file.path for file in changed_files(at, before.tree, after.tree)}
    write_patch(at, before.tree, after.tree, io.BytesIO(), 1 << 20)
    base = store.take(repository, into_repository=True)
    made = merges.commit(repository.git, base.tree, [str(repository.head)], "base")
    tree = str(state / "tree")
    worktrees.add(repository, tree, "subdeck/x", made)
    assert "changed\n" == (state / "tree/a").read_text()
    worktrees.listed(repository)
    worktrees.branches(repository, "subdeck")
    write(state / "tree", {"a": "changed more\n"})
    again = Store(str(state / "again")).take(found(state / "tree"), into_repository=True)
    theirs = merges.commit(repository.git, again.tree, [made], "theirs")
    merges.merged(repository.git, made, str(repository.head), theirs)
    merges.merged(at, before.tree, after.tree, again.tree)
    store.write(repository, after.tree, before.tree)
    store.write(repository, before.tree, after.tree)
    Git(tree).run("status", "--porcelain=v2", "-z")
    Git(str(root)).run("diff-tree", "-r", "-p", str(repository.head), theirs)
    worktrees.remove(repository, tree)
    assert worktrees.delete_branch(repository, "subdeck/x", made)
    store.write(repository, after.tree, before.tree)
    merges.advance(repository, theirs)
    assert git(root, "rev-parse", "HEAD") == theirs


FILES: dict[str, str | bytes | None] = {"a": "1\n", "b.other": "1\n", "c": "1\n", ".gitattributes": ATTRIBUTES}


def test_no_setting_of_a_checkout_runs_a_program(tmp_path: Path, canary: Canary) -> None:
    """No action in a checkout runs a program that its settings, hooks or attributes name."""
    root = make(tmp_path / "r", FILES)
    with open(root / ".git/config", "a") as config:
        config.write(canary.settings())
    (root / ".git/config.worktree").write_text(canary.settings())
    canary.plant_hooks(root / ".git/hooks")
    exercise(root, tmp_path / "state")
    assert [] == canary.song()
    git(root, "status", check=False)
    git(root, "add", "-A", check=False)
    git(root, "commit", "-m", "x", check=False)
    assert {"core.fsmonitor", "filter.x.process"} <= set(canary.song()), "git alone would have"


@pytest.mark.parametrize("where", ["include.path", "includeIf.gitdir:/.path", "hooks"])
def test_no_detour_runs_a_program(tmp_path: Path, canary: Canary, where: str) -> None:
    """Included settings, and hooks in a configured directory, run no program either."""
    root = make(tmp_path / "r", FILES)
    if where == "hooks":
        canary.plant_hooks(root / "inside")
        (root / ".git/info/exclude").write_text("inside\n")
        git(root, "config", "core.hooksPath", str(root / "inside"))
    else:
        (root / ".git/more").write_text(canary.settings())
        git(root, "config", where, str(root / ".git/more"))
    exercise(root, tmp_path / "state")
    assert [] == canary.song()


def test_submodules_are_not_entered(tmp_path: Path, canary: Canary) -> None:
    """Programs named by a submodule's repository are not run either."""
    make(tmp_path / "sub", {"x": "1\n"})
    root = make(tmp_path / "r", FILES)
    git(root, "submodule", "add", "-q", str(tmp_path / "sub"), "sub")
    commit(root)
    with open(root / ".git/modules/sub/config", "a") as config:
        config.write(canary.settings())
    (root / ".git/modules/sub/info/attributes").write_text(ATTRIBUTES)
    canary.plant_hooks(root / ".git/modules/sub/hooks")
    write(root / "sub", {"x": "2\n"})
    exercise(root, tmp_path / "state")
    assert [] == canary.song()


@pytest.fixture
def older_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a git without the variable against fetching, as before 2.39.4."""
    shim = tmp_path / "older" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize("missing", ["HEAD", "HEAD:a"])
@pytest.mark.parametrize("is_older", [False, True])
def test_nothing_is_fetched(
    tmp_path: Path, canary: Canary, missing: str, is_older: bool, request: pytest.FixtureRequest
) -> None:
    """If objects are missing that a repository promises to fetch, its fetch programs are not run."""
    if is_older:
        request.getfixturevalue("older_git")
    root = make(tmp_path / "r", FILES)
    name = git(root, "rev-parse", missing)
    (root / ".git/objects" / name[:2] / name[2:]).unlink()
    git(root, "config", "core.repositoryFormatVersion", "1")
    with open(root / ".git/config", "a") as config:
        config.write(canary.settings())
    repository = found(root)
    write(root, {"a": "changed"})
    if missing == "HEAD":
        # An older git's helper may die before git has finished with the name.
        assert "missing" in repository.trouble or (is_older and "not allowed" in repository.trouble)
    else:
        store = Store(str(tmp_path / "store"))
        store.take(repository)
        with pytest.raises(GitError):
            repository.git.run("show", missing)
    assert [] == canary.song()
    git(root, "show", missing, check=False)
    assert canary.song(), "git alone would have"


def test_a_program_in_the_checkout_is_not_git(tmp_path: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `git` in the checkout is not run, even if PATH has the current directory in it."""
    root = make(tmp_path / "r", {"git": f"#!/bin/sh\n{canary.path} git\n"})
    (root / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    Store(str(tmp_path / "store")).take(found(root))
    assert [] == canary.song()


def test_what_the_caller_says_of_another_repository_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started from a hook or an alias, with git's variables set, subdeck uses the right repository."""
    root, other = make(tmp_path / "r", {"a": "1"}), make(tmp_path / "other", {"b": "1"})
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"):
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    repository = found(root)
    assert (str(root), "") == (repository.root, repository.trouble)
    store = Store(str(tmp_path / "store"))
    tree = store.take(repository).tree
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert ["a"] == list(listed(store.directory, tree))


def lead_by_core_worktree(root: Path, outside: Path) -> None:
    git(root, "config", "core.worktree", str(outside))


def lead_by_a_git_file(root: Path, outside: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {outside / '.git'}\n")


def lead_by_a_link(root: Path, outside: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").symlink_to(outside / ".git")


def lead_by_commondir(root: Path, outside: Path) -> None:
    (root / ".git/commondir").write_text(f"{outside / '.git'}\n")


def lead_by_a_worktree_of_its_own(root: Path, outside: Path) -> None:
    """Make `.git` name what looks like an added worktree and shares another repository."""
    (root / ".git").rename(root / "own")
    (root / ".git").write_text(f"gitdir: {root / 'own'}\n")
    (root / "own/commondir").write_text(f"{outside / '.git'}\n")
    (root / "own/gitdir").write_text(f"{root / '.git'}\n")


def lead_by_linked_refs(root: Path, outside: Path) -> None:
    shutil.rmtree(root / ".git/refs/heads")
    (root / ".git/refs/heads").symlink_to(outside / ".git/refs/heads")


def lead_by_linked_objects(root: Path, outside: Path) -> None:
    shutil.rmtree(root / ".git/objects")
    (root / ".git/objects").symlink_to(outside / ".git/objects")


@pytest.mark.parametrize(
    "lead",
    [
        lead_by_core_worktree,
        lead_by_a_git_file,
        lead_by_a_link,
        lead_by_commondir,
        lead_by_a_worktree_of_its_own,
        lead_by_linked_refs,
        lead_by_linked_objects,
    ],
)
def test_a_checkout_does_not_lead_elsewhere(tmp_path: Path, lead: object) -> None:
    """A checkout that would make us read or write another repository is not used, and the reason is reported."""
    outside, root = make(tmp_path / "outside", {"secret": "x"}), make(tmp_path / "r", {"a": "1"})
    assert callable(lead)
    lead(root, outside)
    repository = found(root)
    assert repository.trouble
    with pytest.raises(GitError):
        Store(str(tmp_path / "store")).take(repository)


def test_alternates_are_only_read(tmp_path: Path) -> None:
    """A repository's borrowed objects are read from their source, and nothing is written there."""
    outside = make(tmp_path / "outside", {"a": "1"})
    git(tmp_path, "clone", "-q", "--shared", str(outside), str(tmp_path / "r"))
    before = sorted(outside.rglob("*"))
    write(tmp_path / "r", {"a": "2"})
    repository = found(tmp_path / "r")
    taken = Store(str(tmp_path / "store")).take(repository, into_repository=True)
    assert "2" == git(tmp_path / "r", "show", f"{taken.tree}:a")
    assert before == sorted(outside.rglob("*"))


WAITING = ("HEAD", "config", "packed-refs", "refs/heads/main", "commondir", "shallow", "objects/info/alternates")


@pytest.mark.parametrize(
    ("name", "is_linked"),
    [*((name, False) for name in (*WAITING, "index", "info/exclude")), ("config", True), ("packed-refs", True)],
)
def test_a_pipe_in_a_repository_keeps_nobody_waiting(tmp_path: Path, name: str, is_linked: bool) -> None:
    """If a file that git reads is a pipe without a writer, it is skipped, or reported before git blocks."""
    root = make(tmp_path / "r", {"a": "1"})
    path = root / ".git" / name
    if is_linked:
        git(root, "worktree", "add", "-q", str(tmp_path / "w"))
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    repository = find(str(tmp_path / "w" if is_linked else root), patience=30)
    assert repository is not None
    if name in WAITING:
        assert (
            repository.trouble.startswith("git would block on")
            and f"{name}: it is not a regular file" in repository.trouble
        )
    else:
        assert "" == repository.trouble
        assert Store(str(tmp_path / "store")).take(repository, patience=5).tree


@pytest.mark.parametrize("name", [".gitattributes", ".gitignore", "deep/.gitignore"])
def test_a_pipe_in_a_working_tree_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    """If git's own file is a pipe, the error comes at once or when git's time is over."""
    root = make(tmp_path / "r", {"a": "1", "deep/b": "1"})
    write(root, {"deep/new": "x"})
    os.mkfifo(root / name)
    with pytest.raises(GitError, match="took longer than" if "/" in name else "would block on it"):
        Store(str(tmp_path / "store")).take(found(root), patience=0.5)


def test_what_takes_too_long_is_ended_whole(tmp_path: Path) -> None:
    """A user's filter that hangs is killed with git at the timeout; no process is left."""
    root = make(tmp_path / "r", {"a": "1"})
    git(root, "config", "--global", "filter.slow.clean", "sleep 1000")
    write(root, {".gitattributes": "* filter=slow", "new": "x"})
    with pytest.raises(GitError, match="took longer than"):
        Store(str(tmp_path / "store")).take(found(root), patience=0.3)
