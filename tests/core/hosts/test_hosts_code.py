"""The files of runs on hosts: sent there once, prepared for each run, and fetched as branches."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from subdeck.core.errors import LaunchError
from subdeck.core.git import packs
from subdeck.core.git.packs import Intake
from subdeck.core.git.program import GitError
from subdeck.core.hosts._carrier import OutOfReach
from subdeck.core.hosts.code import _cache, _pool, _slot
from subdeck.core.hosts.code.transfer import NoRoom
from subdeck.core.hosts.protocol import PIECE
from subdeck.core.paths import Project
from subdeck.core.work import remote
from subdeck.core.work.remote import take

from ...factories import make_meta
from ..git.repositories import commit, git, make, write
from ..git.test_git_snapshot import everything_of
from .traveling import Machines, make_machines, own

pytestmark = pytest.mark.processes


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return make_machines(tmp_path)


def below(root: Path) -> dict[str, bytes]:
    """Return the files below a directory with their content, except git's."""
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


async def test_a_run_begins_with_the_files_as_they_were(machines: Machines) -> None:
    """A run on a host has the user's files as of the launch, with uncommitted ones and without ignored ones."""
    (meta,) = machines.launch()
    write(machines.root, {"a.txt": "later\n"})
    place = await machines.begin(meta)
    assert {
        "a.txt": b"one\ntwo\n", "new.txt": b"new\n", "src/b.py": b"b = 1\n", "docs/c.md": b"c\n",
        ".gitignore": b"*.o\n.pi/\n",
    } == below(place)  # fmt: skip
    assert git(place, "status", "--porcelain") == ""
    assert git(place, "rev-parse", "HEAD") == machines.code(meta).carrier


async def test_nothing_of_the_operators_is_touched(machines: Machines) -> None:
    """Neither a launch nor a fetch changes the user's files, index, HEAD or branches."""
    git(machines.root, "add", "new.txt")
    before = {
        name: entry for name, entry in everything_of(machines.root).items()
        if "/.git/objects" not in name and not name.endswith("/.git")
    }  # fmt: skip
    branch = git(machines.root, "symbolic-ref", "HEAD")
    head = git(machines.root, "rev-parse", "HEAD")
    (meta,) = machines.launch()
    place = await machines.begin(meta)
    write(place, {"a.txt": "theirs\n"})
    await machines.end(meta)
    after = everything_of(machines.root)
    changed = [name for name, entry in before.items() if after.get(name) != entry]
    kept = (".git/refs", ".git/logs", "/.pi")
    assert not [name for name in changed if not any(part in name for part in kept)]
    assert (branch, head) == (git(machines.root, "symbolic-ref", "HEAD"), git(machines.root, "rev-parse", "HEAD"))
    assert "subdeck" not in git(machines.root, "for-each-ref", "refs/heads/main", "refs/tags")


async def test_twenty_children_of_one_state_are_one_transfer(machines: Machines) -> None:
    """A snapshot is sent to a host once, even if 20 runs begin with it at the same time."""
    metas = machines.launch(20)
    said = await asyncio.gather(*map(machines.send, metas))
    assert [""] * 20 == said
    assert 1 == len([piece for piece in machines.told if getattr(piece, "last", False)])


async def test_the_next_snapshot_travels_as_the_difference(machines: Machines) -> None:
    """Content that a host has from an earlier snapshot is not sent again, even if some lines have changed."""
    write(machines.root, {"large.bin": os.urandom(300_000)})
    await machines.begin(machines.launch()[0])
    first = machines.sent
    assert first > 300_000
    content = (machines.root / "large.bin").read_bytes()
    write(machines.root, {"large.bin": content + b"more", "d.txt": "d\n"})
    place = await machines.begin(machines.launch()[0])
    assert machines.sent - first < 3_000
    assert content + b"more" == (place / "large.bin").read_bytes()


async def test_a_transfer_goes_on_where_it_broke(machines: Machines) -> None:
    """After a break only the missing pieces are sent, even by another relay and to another agent."""
    write(machines.root, {"large.bin": os.urandom(3 * PIECE)})
    (meta,) = machines.launch()
    machines.fails_after = 3  # one query and two pieces
    with pytest.raises(OutOfReach):
        await machines.send(meta)
    assert 2 * PIECE == machines.sent
    again = Machines(machines.root, machines.spool)
    await again.begin(meta)
    assert again.sent < 2 * PIECE


async def test_another_pack_than_the_one_that_began(machines: Machines) -> None:
    """If the user's prepared pack is gone, the transfer begins again, and the host never mixes two packs."""
    write(machines.root, {"large.bin": os.urandom(2 * PIECE)})
    (meta,) = machines.launch()
    machines.fails_after = 2
    with pytest.raises(OutOfReach):
        await machines.send(meta)
    for pack in Path(os.environ["HOME"]).rglob(".packs/*"):
        pack.unlink()
    machines.fails_after = -1
    place = await machines.begin(meta)
    assert (machines.root / "large.bin").read_bytes() == (place / "large.bin").read_bytes()


async def test_what_a_run_leaves_becomes_a_branch(machines: Machines) -> None:
    """A run's branch has one commit with all changes, on a commit of the files at launch, which is on HEAD."""
    (meta,) = machines.launch()
    place = await machines.begin(meta)
    write(place, {"a.txt": "one\ntwo\nthree\n", "made/new.py": "x\n", "docs/c.md": None, "junk.o": "o"})
    git(place, "add", "-A")
    git(place, "commit", "-qm", "by the child")
    write(place, {"late.txt": "not committed\n"})
    brought = await machines.end(meta)
    assert (f"subdeck/scout-{meta.short_id}", ()) == (brought.branch, brought.errors)
    root = machines.root
    assert brought.snapshot == git(root, "rev-parse", f"{brought.branch}^")
    assert git(root, "rev-parse", "HEAD") == git(root, "rev-parse", f"{brought.branch}^^")
    assert "new\n" == git(root, "show", f"{brought.snapshot}:new.txt") + "\n"
    assert ["M\ta.txt", "D\tdocs/c.md", "A\tlate.txt", "A\tmade/new.py"] == git(
        root, "diff", "--name-status", brought.snapshot, brought.branch
    ).split("\n")
    assert "Ada" == git(root, "log", "-1", "--format=%an", brought.branch)
    assert "" == git(root, "for-each-ref", "refs/subdeck/runs")
    git(root, "fsck", "--strict")


async def test_nothing_changed_is_no_branch(machines: Machines) -> None:
    """A run without changes leaves no branch, and sends nothing."""
    (meta,) = machines.launch()
    await machines.begin(meta)
    brought = await machines.end(meta)
    assert ("", ()) == (brought.branch, brought.errors)
    assert brought.snapshot
    assert "" == git(machines.root, "for-each-ref", "refs/heads/subdeck")


async def test_all_that_is_committed_has_no_commit_in_between(machines: Machines) -> None:
    """If nothing was uncommitted at the launch, the branch begins at HEAD itself."""
    head = commit(machines.root)
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "x\n"})
    brought = await machines.end(meta)
    assert head == brought.snapshot == git(machines.root, "rev-parse", f"{brought.branch}^")


async def test_fetching_goes_on_where_it_broke(machines: Machines) -> None:
    """A run's changes are fetched in pieces, and after a break from where the fetch stopped."""
    (meta,) = machines.launch()
    content = os.urandom(3 * PIECE)
    write(await machines.begin(meta), {"large.bin": content})
    await machines.host.finish(meta.run_id)
    machines.fails_after = 2
    with pytest.raises(OutOfReach):
        await machines.carriage.fetch(machines.call, meta, "h1")
    machines.restart()
    machines.fails_after = -1
    machines.told.clear()
    brought = await machines.end(meta)
    assert 2 == len(machines.told)
    shown = git(machines.root, "rev-parse", f"{brought.branch}:large.bin")
    (machines.root / "same").write_bytes(content)
    assert shown == git(machines.root, "hash-object", "same")


async def test_a_relay_that_is_killed_makes_no_second_branch(machines: Machines) -> None:
    """Changes fetched twice, because the relay died before it published the result, make one branch."""
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "x\n"})
    first = await machines.carriage.fetch(machines.call, meta, "h1")
    again = await machines.end(meta)
    assert first == again
    assert first == await machines.carriage.fetch(machines.call, meta, "h1")
    assert 1 == len(git(machines.root, "for-each-ref", "refs/heads/subdeck").split("\n"))


async def test_a_branch_of_that_name_is_left_alone(machines: Machines) -> None:
    """An existing branch with the run's branch name stays unchanged."""
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "x\n"})
    git(machines.root, "branch", f"subdeck/scout-{meta.short_id}")
    brought = await machines.end(meta)
    assert f"subdeck/scout-{meta.short_id}-2" == brought.branch


async def test_a_tree_serves_one_run_after_another(machines: Machines) -> None:
    """A reused tree has no files, settings, hooks or branches of the last run."""
    (first,) = machines.launch()
    place = await machines.begin(first)
    git(place, "config", "core.hooksPath", "/tmp/evil")
    git(place, "config", "filter.x.smudge", "touch /tmp/evil")
    git(place, "update-index", "--assume-unchanged", "docs/c.md")
    git(place, "switch", "-qc", "other")
    write(place, {"docs/c.md": "hidden\n", "junk.o": "o", "deep/er/x": "x", "a.txt": "x\n"})
    (place / "nested").mkdir()
    git(place / "nested", "init", "-q")
    (place / "src" / "b.py").chmod(0o755)
    (place / "new.txt").unlink()
    (place / "new.txt").symlink_to("/etc/passwd")
    os.mkdir(place / "closed")
    write(place, {"closed/x": "x"})
    os.chmod(place / "closed", 0o500)
    await machines.end(first)
    (second,) = machines.launch()
    again = await machines.begin(second)
    assert place == again
    assert {"a.txt", "new.txt", "src/b.py", "docs/c.md", ".gitignore"} == set(below(again))
    assert b"c\n" == (again / "docs" / "c.md").read_bytes()
    assert not (again / "new.txt").is_symlink()
    assert 0o644 == (again / "src" / "b.py").stat().st_mode & 0o777
    assert not (again / "nested").exists()
    assert git(again, "status", "--porcelain", "--ignored") == ""
    assert "hooks" not in git(again, "config", "--local", "--list").lower()
    assert "main" == git(again, "branch", "--format=%(refname:short)")


@pytest.mark.parametrize("damage", ["rm -rf .git", "rm -rf .git && ln -s / .git", "rm -rf ../tree", "rm -rf ../ours"])
async def test_a_child_cannot_lead_us_elsewhere(machines: Machines, damage: str) -> None:
    """If an agent damages its repository or tree, the next run still gets a sound one."""
    (first,) = machines.launch()
    place = await machines.begin(first)
    os.system(f"cd {place} && {damage}")
    await machines.host.finish(first.run_id)
    await machines.host.forget(first.run_id)
    place = await machines.begin(machines.launch()[0])
    assert {"a.txt", "new.txt", "src/b.py", "docs/c.md", ".gitignore"} == set(below(place))


@pytest.mark.parametrize("damage", ["rm -rf .git/objects", "echo x > .git/index", "rm -rf .git", "rm .git/HEAD"])
async def test_what_a_child_has_broken_comes_back_all_the_same(machines: Machines, damage: str) -> None:
    """The files of a run are fetched even if its agent damaged the repository."""
    (meta,) = machines.launch()
    place = await machines.begin(meta)
    write(place, {"a.txt": "one\ntwo\nthree\n", "more.txt": "more\n"})
    git(place, "add", "-A")
    git(place, "commit", "-qm", "by the child")
    os.system(f"cd {place} && {damage}")
    brought = await machines.end(meta)
    assert ["M\ta.txt", "A\tmore.txt"] == git(
        machines.root, "diff", "--name-status", brought.snapshot, brought.branch
    ).split("\n")


async def test_runs_at_the_same_time_have_trees_of_their_own(machines: Machines) -> None:
    """There are as many trees as runs were open at once; a free tree is used before another is made."""
    metas = machines.launch(3)
    places = [await machines.begin(meta) for meta in metas]
    assert 3 == len(set(places))
    await machines.end(metas[1])
    (later,) = machines.launch()
    assert places[1] == await machines.begin(later)


async def test_a_killed_agent_finds_who_has_which_tree(machines: Machines) -> None:
    """A new agent keeps an open run's tree, and never gives it to another run."""
    first, second = machines.launch(2)
    place = await machines.begin(first)
    machines.restart()
    assert place == Path(await machines.host.prepare(first.run_id, machines.code(first)))
    assert place != await machines.begin(second)
    assert {first.run_id, second.run_id} == set(machines.host.runs)


async def test_an_agent_that_was_killed_over_a_tree_readies_it_again(machines: Machines) -> None:
    """A tree that was not ready when the agent was killed is prepared again when the run is requested again."""
    (meta,) = machines.launch()
    place = await machines.begin(meta)
    (record,) = machines.spool.glob("code/runs/*.json")
    record.write_text(record.read_text().replace('"is_ready":true', '"is_ready":false'))
    (place / "a.txt").unlink()
    machines.restart()
    assert place == Path(await machines.host.prepare(meta.run_id, machines.code(meta)))
    assert b"one\ntwo\n" == (place / "a.txt").read_bytes()


async def test_old_snapshots_are_let_go(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's repository nor a host keeps every snapshot that was ever sent."""
    monkeypatch.setattr(remote, "MOST_CARRIERS", 2)
    monkeypatch.setattr(_cache, "MANY_PACKS", 0)
    monkeypatch.setattr(_cache, "CARRIERS_S", -1.0)
    monkeypatch.setattr(packs, "FEW", 0)
    for number in range(4):
        write(machines.root, {"a.txt": f"{number}\n"})
        (meta,) = machines.launch()
        place = await machines.begin(meta)
        assert f"{number}\n" == (place / "a.txt").read_text()
        await machines.end(meta)
    assert 2 == len(git(machines.root, "for-each-ref", "refs/subdeck/carriers").split("\n"))
    assert 1 == len(list(machines.spool.glob("code/*/cache.git/refs/subdeck/carriers/*")))
    monkeypatch.setattr(remote, "OLD_S", -1.0)
    remote.sweep(machines.project)
    assert "" == git(machines.root, "for-each-ref", "refs/subdeck")
    (meta,) = machines.launch()
    await machines.begin(meta)


async def test_nothing_of_a_checkout_runs(machines: Machines, tmp_path: Path) -> None:
    """No filter, hook or setting from the repository or the host's user runs in a checkout."""
    mark = tmp_path / "ran"
    Path(os.environ["HOME"], ".gitconfig").write_text(
        f'[filter "x"]\n\tsmudge = touch {mark}; cat\n\trequired = true\n'
    )
    write(machines.root, {".gitattributes": "*.txt filter=x\n"})
    (meta,) = machines.launch()
    mark.unlink(missing_ok=True)
    place = await machines.begin(meta)
    write(place, {"new.txt": "changed\n"})
    brought = await machines.end(meta)
    assert not mark.exists()
    assert "changed" == git(machines.root, "cat-file", "blob", f"{brought.branch}:new.txt")
    assert any("filtered files (x)" in warning for warning in meta.warnings)


async def test_the_run_works_where_it_was_launched(machines: Machines) -> None:
    """A run works in the same directory of the repository on the host, even in one without tracked files."""
    (machines.root / "empty" / "one").mkdir(parents=True)
    (meta,) = machines.launch(directory="src")
    assert "src" == (await machines.begin(meta)).name
    (meta,) = machines.launch(directory="empty/one")
    place = await machines.begin(meta)
    assert place.is_dir() and (place / ".." / ".." / "a.txt").exists()


async def test_only_some_directories_travel_into_the_tree(machines: Machines) -> None:
    """With a cone the tree has only its directories and the files above; all other files come back unchanged."""
    write(machines.root, {"src/deep/x.py": "x\n", "other/y": "y\n"})
    (meta,) = machines.launch(sparse=("src",), directory="docs")
    place = await machines.begin(meta)
    root = place.parent
    assert {"a.txt", "new.txt", "src/b.py", "src/deep/x.py", "docs/c.md", ".gitignore"} == set(below(root))
    assert git(root, "status", "--porcelain") == ""
    write(root, {"src/b.py": "b = 2\n"})
    brought = await machines.end(meta)
    assert "M\tsrc/b.py" == git(machines.root, "diff", "--name-status", brought.snapshot, brought.branch)
    (whole,) = machines.launch()
    assert (await machines.begin(whole) / "other" / "y").exists()


@pytest.mark.parametrize("directory", ["../up", "a/../../b", ".git", "", "a\nb"])
def test_a_cone_is_of_directories_of_the_project(machines: Machines, directory: str) -> None:
    """A directory that is not in the snapshot is refused at the launch."""
    with pytest.raises(LaunchError, match="not a directory of the snapshot"):
        machines.launch(sparse=(directory,))


def test_what_cannot_travel_is_refused_in_words(tmp_path: Path) -> None:
    """Without a repository, a commit or a working tree nothing is launched, and the error has a hint."""
    make(tmp_path / "unborn")
    make(tmp_path / "bare", None, "--bare")
    (tmp_path / "none").mkdir()
    for name, why in (("unborn", "no commit yet"), ("bare", "bare"), ("none", "not a git repository")):
        meta = make_meta(cwd=str(tmp_path / name))
        with pytest.raises(LaunchError, match=why) as refused:
            take(Project(str(tmp_path / name)), [meta], ())
        assert refused.value.hint


def test_what_does_not_travel_is_told(machines: Machines) -> None:
    """Files too large for a snapshot, and submodules, are warnings of the run."""
    with open(machines.root / "huge.bin", "wb") as file:
        file.truncate(21 * 1024 * 1024)
    write(machines.root, {".gitmodules": ""})
    (meta,) = machines.launch()
    assert any(warning.startswith("huge.bin is not on the host") for warning in meta.warnings)
    assert any("submodules" in warning for warning in meta.warnings)


async def test_a_shallow_clone_travels_whole(machines: Machines, tmp_path: Path) -> None:
    """A run from a clone without history has all its files."""
    commit(machines.root)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{machines.root}", "shallow")
    shallow = Machines(own(tmp_path / "shallow"), tmp_path / "other spool")
    (meta,) = shallow.launch()
    write(await shallow.begin(meta), {"a.txt": "x\n"})
    brought = await shallow.end(meta)
    assert "M\ta.txt" == git(shallow.root, "diff", "--name-status", brought.snapshot, brought.branch)


async def test_sha256(tmp_path: Path) -> None:
    """Repositories with SHA-256 object names travel as well as others."""
    root = own(make(tmp_path / "mine", {"a.txt": "one\n"}, "--object-format=sha256"))
    machines = Machines(root, tmp_path / "spool")
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "x\n"})
    brought = await machines.end(meta)
    assert "M\ta.txt" == git(root, "diff", "--name-status", brought.snapshot, brought.branch)


async def test_a_full_disk_of_the_host_is_told(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without space for a run's changes reports that, keeps the tree, and tries again when asked."""
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "x\n"})

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_slot, "write_pack", full)
        brought = await machines.carriage.fetch(machines.call, meta, "h1")
        assert "No space left" in brought.errors[0] and not brought.branch
    assert (await machines.carriage.fetch(machines.call, meta, "h1")).branch


async def test_a_host_without_room_for_the_files(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without space for the files reports that, and accepts them later."""
    (meta,) = machines.launch()

    def full(*_: object) -> None:
        raise GitError("unpack-objects failed", stderr="fatal: write error: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Intake, "read", full)
        with pytest.raises(NoRoom, match="unpack-objects failed"):
            await machines.carriage.send("h1", machines.call, meta.run_id)
    assert not await machines.carriage.send("h1", machines.call, meta.run_id)


async def test_what_cannot_be_packed_is_put_aside(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a host cannot pack a run's changes, the files stay there, and the error names their directory."""
    (meta,) = machines.launch()
    write(await machines.begin(meta), {"a.txt": "precious\n"})

    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(_slot, "write_pack", broken)
    (why,) = (await machines.end(meta)).errors
    place = Path(why.rpartition(" in ")[2])
    assert "precious\n" == (place / "a.txt").read_text()
    (again,) = machines.launch()
    await machines.begin(again)
    assert "precious\n" == (place / "a.txt").read_text()
    monkeypatch.setattr(_pool, "ASIDE_S", -1.0)
    await machines.host.purge(86400.0)
    assert not place.exists()


async def test_a_repository_that_nobody_comes_with_is_removed(machines: Machines) -> None:
    """A repository unused for days is removed with its trees, but never during a run; later runs send it again."""
    (first,) = machines.launch()
    place = await machines.begin(first)
    (used,) = machines.spool.glob("code/*/used")
    long_ago = time.time() - 10 * 86400

    async def purged() -> bool:
        os.utime(used, (long_ago, long_ago))
        await machines.host.purge(7 * 86400.0)
        return not used.parent.exists()

    assert not await purged()
    write(place, {"a.txt": "theirs\n"})
    await machines.end(first)
    await machines.host.purge(11 * 86400.0)
    assert used.parent.exists()
    (second,) = machines.launch()
    assert await machines.send(second) == ""
    await machines.host.purge(7 * 86400.0)
    assert used.parent.exists()
    assert await purged()
    assert ["runs"] == [path.name for path in (machines.spool / "code").iterdir()]
    (third,) = machines.launch()
    assert b"one\ntwo\n" == below(await machines.begin(third))["a.txt"]
    await machines.end(third)


async def test_removing_a_repository_goes_on(machines: Machines) -> None:
    """The next agent completes a removal that a killed agent began."""
    left = machines.spool / "code" / f"{'a' * 16}.removed" / "pool"
    left.mkdir(parents=True)
    await machines.host.purge(7 * 86400.0)
    assert not left.parent.exists()


@pytest.mark.parametrize("is_known", [False, True], ids=["first", "next"])
async def test_a_shallow_clone_is_sent_as_any(tmp_path: Path, machines: Machines, is_known: bool) -> None:
    """A shallow clone sends all its files, as files travel without history; the branch is on its commit."""
    commit(machines.root, "first")
    write(machines.root, {"a.txt": "one\ntwo\nthree\n"})
    commit(machines.root, "second")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{machines.root}", str(clone))
    shallow = Machines(own(clone), machines.spool)
    assert git(clone, "rev-parse", "--is-shallow-repository") == "true"
    if is_known:
        (first,) = shallow.launch()
        await shallow.begin(first)
        await shallow.end(first)
    write(clone, {"docs/c.md": "c\nd\n", "new.txt": None})
    (meta,) = shallow.launch()
    place = await shallow.begin(meta)
    assert {name: text for name, text in below(clone).items() if not name.startswith(".pi/")} == below(place)
    write(place, {"a.txt": "theirs\n", "made.txt": "made\n"})
    brought = await shallow.end(meta)
    assert brought.errors == ()
    changed = git(clone, "diff", "--name-status", brought.snapshot, brought.branch).split("\n")
    assert ["M\ta.txt", "A\tmade.txt"] == changed
    assert git(clone, "rev-list", "--count", brought.branch) == "3"
    git(clone, "fsck", "--strict")


def test_a_partial_clone_is_refused(tmp_path: Path, machines: Machines) -> None:
    """A partial clone, which leaves files on its server, is refused; a shallow one is not."""
    commit(machines.root, "first")
    git(machines.root, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{machines.root}", str(clone))
    with pytest.raises(LaunchError, match="is an incomplete partial clone"):
        Machines(own(clone), machines.spool).launch()
