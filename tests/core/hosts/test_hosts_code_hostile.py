"""Both ends check the objects of another machine before a repository accepts them."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest
from subdeck.core.git.packs import carrier_content, result_content, write_commit, write_pack
from subdeck.core.git.program import Git
from subdeck.core.hosts.protocol import CodePiece, Fetched, FetchPiece, Verb, decode_asked, encode
from subdeck.core.run.model import RunMeta

from ..git.repositories import git, make, write
from .traveling import RELAY, Machines, make_machines

pytestmark = pytest.mark.processes


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return make_machines(tmp_path)


def packed(root: Path, commit: str, known: str = "") -> bytes:
    """Return a pack of a commit with any content."""
    file = io.BytesIO()
    write_pack(Git(str(root)), file, commit, known)
    return file.getvalue()


def tree_of(root: Path, *entries: tuple[str, str, str]) -> str:
    """Make a tree of modes, names and ids as no git command would."""
    content = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(id_) for mode, name, id_ in entries)
    made = subprocess.run(
        ("git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"), cwd=root, input=content,
        check=True, capture_output=True,
    )  # fmt: skip
    return made.stdout.decode().strip()


def evil_tree(root: Path, kind: str) -> str:
    blob = git(root, "hash-object", "-w", "--stdin", given=b"x\n")
    match kind:
        case "a file of git's own":
            inner = tree_of(root, ("100644", "config", blob))
            return tree_of(root, ("40000", ".git", inner))
        case "a way out":
            return tree_of(root, ("40000", "..", tree_of(root, ("100644", "x", blob))))
        case "a path":
            return tree_of(root, ("100644", "a/b", blob))
        case "an object that is missing":
            return tree_of(root, ("100644", "x", "1" * 40))
        case _:
            return tree_of(root, ("100644", "x", blob), ("100644", "x", blob))


EVIL = ("a file of git's own", "a way out", "a path", "an object that is missing", "a name twice")


def answering(machines: Machines, fetched: Fetched):
    """Return a host that gives this answer to every request."""

    async def call(verb: Verb, message: bytes) -> bytes:
        asked: FetchPiece = decode_asked(verb, message)
        return encode(Fetched(fetched.total, fetched.content[asked.offset :], fetched.tree, fetched.commit))

    return call


def kept(machines: Machines) -> str:
    return git(machines.root, "for-each-ref") + git(machines.root, "count-objects", "-v")


def made_by_host(machines: Machines, meta: RunMeta, tree: str) -> tuple[bytes, str]:
    """Return the pack that a host would send for a tree, and its commit."""
    elsewhere = Git(str(machines.spool))
    carrier = machines.code(meta).carrier
    commit = write_commit(elsewhere, result_content(tree, carrier))
    file = io.BytesIO()
    arguments = ("pack-objects", "--revs", "--stdout", "--quiet")
    try:
        write_pack(elsewhere, file, commit, carrier)
    except Exception:  # if a tree is incomplete, pack the objects themselves
        listed = f"{commit}\n{tree}\n".encode()
        return elsewhere.run(*arguments[:1], "--stdout", "--quiet", input=listed), commit
    return file.getvalue(), commit


@pytest.mark.parametrize("kind", EVIL)
async def test_a_host_sends_what_no_repository_may_have(machines: Machines, kind: str) -> None:
    """A broken tree, or one with git's own file names, is refused, and none of its objects are kept."""
    (meta,) = machines.launch()
    git(machines.spool.parent, "clone", "-q", str(machines.root), str(machines.spool / "elsewhere"))
    machines.spool = machines.spool / "elsewhere"
    git(machines.spool, "fetch", "-q", str(machines.root), "+refs/subdeck/*:refs/subdeck/*")
    tree = evil_tree(machines.spool, kind)
    pack, commit = made_by_host(machines, meta, tree)
    before = kept(machines)
    brought = await machines.carriage.fetch(answering(machines, Fetched(len(pack), pack, tree, commit)), meta, "h1")
    assert (("", "")) == (brought.branch, brought.snapshot)
    assert brought.errors[0].startswith("cannot fetch its changes: ")
    assert before == kept(machines)
    assert not list(Path(os.environ["HOME"]).rglob("apart"))


async def test_a_host_names_another_commit_than_it_sends(machines: Machines) -> None:
    """Only the commit of the reported tree, on the run's base, is accepted."""
    (meta,) = machines.launch()
    head = git(machines.root, "rev-parse", "HEAD")
    pack = packed(machines.root, head)
    for tree, commit in (("2" * 40, head), (machines.code(meta).tree, head), ("--all", "--all"), ("x\ny", "HEAD")):
        fetched = Fetched(len(pack), pack, tree, commit)
        brought = await machines.carriage.fetch(answering(machines, fetched), meta, "h1")
        assert brought.errors and not brought.branch
    assert "" == git(machines.root, "for-each-ref", "refs/heads/subdeck")


@pytest.mark.parametrize("pack", [b"", b"PACK", b"no pack at all", b"PACK\0\0\0\2\0\0\0\1" + b"x" * 40])
async def test_a_host_sends_no_pack(machines: Machines, pack: bytes) -> None:
    """Content that is not a pack is reported, and not requested further."""
    (meta,) = machines.launch()
    fetched = Fetched(len(pack) or 5, pack, "2" * 40, "3" * 40)
    brought = await machines.carriage.fetch(answering(machines, fetched), meta, "h1")
    assert brought.errors and not brought.branch


@pytest.mark.parametrize("kind", EVIL)
async def test_an_operator_sends_what_no_tree_may_have(machines: Machines, kind: str, tmp_path: Path) -> None:
    """A host refuses a broken snapshot with the reason, and keeps none of it."""
    (meta,) = machines.launch()
    root = make(tmp_path / "evil")
    tree = evil_tree(root, kind)
    evil = Git(str(root))
    carrier = write_commit(evil, carrier_content(tree))
    try:
        pack = packed(root, carrier)
    except Exception:
        pack = evil.run("pack-objects", "--stdout", "--quiet", input=f"{carrier}\n{tree}\n".encode())
    code = machines.code(meta)
    piece = CodePiece(RELAY, type(code)(code.repository, tree, carrier), content=pack, last=True)
    said = await machines.host.answer_code(piece)
    assert said.why and not said.has_all
    assert not (await machines.host.answer_code(CodePiece(RELAY, piece.code))).size
    assert not list(machines.spool.rglob("*.pack"))


async def test_a_snapshot_under_another_name(machines: Machines, tmp_path: Path) -> None:
    """A host accepts only the snapshot that the message names."""
    (meta,) = machines.launch()
    root = make(tmp_path / "other", {"x": "x\n"})
    commit = git(root, "rev-parse", "HEAD")
    code = machines.code(meta)
    for named in (commit, code.carrier):
        piece = CodePiece(RELAY, type(code)(code.repository, code.tree, named), content=packed(root, commit), last=True)
        said = await machines.host.answer_code(piece)
        assert said.why and not said.has_all


async def test_a_link_in_the_way_of_the_directory(machines: Machines, tmp_path: Path) -> None:
    """No directory is made outside of the tree, even if the snapshot has a link in its place."""
    from subdeck.core.errors import SubdeckError

    (machines.root / "way").symlink_to(tmp_path)
    (meta,) = machines.launch()
    await machines.begin(meta)
    code = machines.code(meta)
    for directory in ("way/made", "../made", "/made", ".git/made"):
        odd = type(code)(code.repository, code.tree, code.carrier, directory)
        with pytest.raises(SubdeckError):
            await machines.host.prepare(f"20260101-000000-{os.urandom(3).hex()}", odd)
    assert not (tmp_path / "made").exists()
    assert (meta.run_id,) == machines.host.runs


async def test_links_of_a_child_lead_nowhere(machines: Machines, tmp_path: Path) -> None:
    """A link that an agent left is cleaned as a link: its target stays."""
    (meta,) = machines.launch()
    place = await machines.begin(meta)
    precious = tmp_path / "precious"
    write(precious, {"x": "x\n", ".git/config": "x\n"})
    os.system(f"cd {place} && rm -rf .git docs && ln -s {precious} docs && ln -s {precious}/.git .git")
    await machines.end(meta)
    await machines.begin(machines.launch()[0])
    assert {"x", "config"} == {path.name for path in precious.rglob("*") if path.is_file()}
