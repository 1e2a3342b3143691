"""The agent of a host and the files of runs: from the sent snapshot to the fetched changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.code.transfer import Brought, CodeCarriage, code_of
from subdeck.core.hosts.protocol import Said, Verb
from subdeck.core.run.model import RunMeta
from subdeck.core.work.remote import take

from ...factories import make_finished
from ..git.repositories import git, make, write
from .hosting import RELAY, Asking, host_meta, hosting, until
from .traveling import own

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = own(make(tmp_path / "mine", {"a.txt": "one\n", "src/b.py": "b = 1\n"}))
    write(root, {"a.txt": "one\ntwo\n"})
    return root


class Operator:
    """The user's side: runs on one host, and the files of a repository."""

    def __init__(self, root: Path, agent: HostAgent) -> None:
        self.project = paths.Project(str(root))
        self.root = root
        self.agent = agent
        self.relay = Asking(agent)
        self.carriage = CodeCarriage(RELAY, self.project)

    async def call(self, verb: Verb, message: bytes) -> bytes:
        return await self.agent.answer(verb, message)

    async def begin(self, *script: str, directory: str = "") -> RunMeta:
        cwd = os.path.join(self.root, directory) if directory else str(self.root)
        meta = host_meta(cwd=cwd, preset="scout")
        meta = take(self.project, [meta], ())[meta.run_id]
        assert await self.carriage.send("h1", self.call, meta.run_id) == ""
        await self.relay.begin(*script, meta=meta, code=code_of(self.project, meta.run_id))
        return meta

    async def end(self, meta: RunMeta) -> Brought:
        result = await self.relay.pull_end(meta.run_id)
        assert "completed" == result.status, result
        brought = await self.carriage.fetch(self.call, meta, "h1")
        make_finished(self.project, meta)
        self.carriage.settle(meta.run_id)
        await self.relay.ack(meta.run_id)
        return brought


async def test_a_run_works_with_what_was_sent(root: Path, tmp_path: Path) -> None:
    """A run works in its launch directory, in a tree with the user's files; its changes become a branch here."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        meta = await operator.begin("save made.py x = 1", "bash cp ../a.txt copied.txt", "answer 1", directory="src")
        brought = await operator.end(meta)
        changed = git(root, "diff", "--name-status", brought.snapshot, brought.branch).split("\n")
        assert ["A\tsrc/copied.txt", "A\tsrc/made.py"] == changed
        assert "one\ntwo" == git(root, "show", f"{brought.branch}:src/copied.txt")
        result = operator.relay.results[meta.run_id]
        assert result.changes and [("src/copied.txt", 2), ("src/made.py", 1)] == [
            (one.path, one.added) for one in result.changes.named
        ]
        assert () == agent._files.runs


async def test_a_tree_is_free_when_its_run_has_ended(root: Path, tmp_path: Path) -> None:
    """The next run reuses the tree of a finished one, even before the user has fetched the changes."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        first = await operator.begin("save made.py x = 1", "answer 1")
        await operator.relay.pull_end(first.run_id)
        await until(lambda: not agent._files.unfinished, "the agent to note what the run has left")
        second = await operator.begin("save other.py y = 1", "answer 1")
        assert 1 == len(list((tmp_path / "spool" / "code").glob("*/pool/*")))
        for meta, name in ((second, "other.py"), (first, "made.py")):
            brought = await operator.end(meta)
            assert f"A\t{name}" == git(root, "diff", "--name-status", brought.snapshot, brought.branch)


async def test_another_agent_goes_on(root: Path, tmp_path: Path) -> None:
    """A run keeps its tree when its agent is killed, and the next agent reports its changes."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        meta = await operator.begin(f"wait-for {tmp_path}/go", "save made.py x = 1", "answer 1")
    async with hosting(tmp_path / "spool") as agent:
        operator.agent = operator.relay.agent = agent
        other = await operator.begin("save other.py y = 1", "answer 1")
        assert 2 == len(list((tmp_path / "spool" / "code").glob("*/pool/*")))
        (tmp_path / "go").touch()
        brought = await operator.end(meta)
        assert brought.branch, brought
        assert "A\tmade.py" == git(root, "diff", "--name-status", brought.snapshot, brought.branch)
        await operator.end(other)


async def test_what_has_not_ended_is_not_told(root: Path, tmp_path: Path) -> None:
    """A running run has nothing to fetch yet, and an unknown one has nothing."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        meta = await operator.begin(f"wait-for {tmp_path}/go", "answer 1")
        assert ("it has not finished",) == (await operator.carriage.fetch(operator.call, meta, "h1")).errors
        (tmp_path / "go").touch()
        await operator.end(meta)


async def test_a_start_without_its_files_is_refused(root: Path, tmp_path: Path) -> None:
    """A run whose snapshot was not sent is not started in another directory."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        meta = host_meta(cwd=str(root))
        take(operator.project, [meta], ())
        _, answer = await operator.relay.start("answer 1", meta=meta, code=code_of(operator.project, meta.run_id))
        assert Said.REFUSED == answer.said and "snapshot" in answer.why
        assert () == agent._files.runs


async def test_nobody_shares_a_tree(root: Path, tmp_path: Path) -> None:
    """All changes in a host's tree count as the run's, even if none of its tools reported them."""
    async with hosting(tmp_path / "spool") as agent:
        operator = Operator(root, agent)
        meta = await operator.begin("put made.py x = 1", "save other.py y = 1", "answer 1")
        await operator.end(meta)
        changes = operator.relay.results[meta.run_id].changes
        assert changes and ("", 2) == (changes.shared, changes.files)
