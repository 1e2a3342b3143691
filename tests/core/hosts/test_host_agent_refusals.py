"""Requests that the agent of a host refuses, and its answers to invalid messages."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.errors import SubdeckError
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.protocol import PROTOCOL, Answer, Have, Pull, Pulled, Said, Verb, encode
from subdeck.core.run.model import AgentSession, RunMeta

from tests.core.hosts.hosting import RELAY, Asking, host_meta, hosting

pytestmark = pytest.mark.processes


async def refusal(agent: HostAgent, meta: RunMeta | None = None, **others: Any) -> str:
    relay = Asking(agent)
    run_id, answer = await relay.start("answer 1", meta=meta, **others)
    assert Said.REFUSED == answer.said, answer
    assert not relay.run_dir(run_id).exists()
    return answer.why


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"runner": "tmux"}, "use the runner hosts"),
        ({"session_lock": "/x.lock", "session_path": "/x"}, "sticky"),
        ({"agent_session": AgentSession(id_file="/x")}, "sticky"),
        ({"by_hand": True}, "opened in the agent only on your own machine"),
        ({"cwd": "/no/such place"}, "h9 has no directory /no/such place; share the file system"),
        ({"cwd": "relative"}, "has no directory"),
        ({"schema_version": 999}, "newer subdeck"),
        ({"agent": "codex", "agent_kind": "codex"}, "codex is not on PATH"),
        ({"agent": "nobody knows it", "agent_kind": "nothing"}, "nothing"),
    ],
)
async def test_what_this_host_cannot_do(tmp_path: Path, others: dict[str, Any], words: str) -> None:
    """A run that the host cannot provide is refused with the reason, before anything of it exists."""
    async with hosting(tmp_path / "spool", name="h9") as agent:
        assert words in await refusal(agent, host_meta(**others))


async def test_another_kind_of_agent(tmp_path: Path) -> None:
    """An agent with the right name but of another kind is refused."""
    async with hosting(tmp_path / "spool") as agent:
        assert "the agent puppet is pi there, but claude here" in await refusal(agent, host_meta(agent_kind="claude"))


async def test_another_commit(tmp_path: Path) -> None:
    """If the directory is at another commit, the refusal names both commits; at the same one the run starts."""
    code = tmp_path / "code"
    for command in (["init", "-q", str(code)], ["-C", str(code), "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], check=True)
    head = subprocess.run(["git", "-C", str(code), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    async with hosting(tmp_path / "spool", name="h9") as agent:
        meta = host_meta(cwd=str(code))
        why = await refusal(agent, meta, head="a" * 40)
        assert f"{code} is at commit aaaaaaaaaaaa, but h9:{code} is at {head.stdout[:12]}" in why
        relay = Asking(agent)
        run_id = await relay.begin("answer 1", meta=meta, head=head.stdout.strip())
        assert "1" == (await relay.pull_end(run_id)).final_text
        nowhere = host_meta()
        assert "at none" in await refusal(agent, nowhere, head="a" * 40)


@pytest.mark.parametrize("meta", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000])
async def test_a_record_that_is_none(tmp_path: Path, meta: bytes) -> None:
    """An unreadable meta is refused with the reason."""
    async with hosting(tmp_path / "spool") as agent:
        assert "cannot read its meta.json here" in await refusal(agent, meta_record=meta)


async def test_a_record_of_another_run(tmp_path: Path) -> None:
    """A meta that names another run than the request is refused."""
    async with hosting(tmp_path / "spool") as agent:
        assert "belongs to another run" in await refusal(agent, meta_record=msgspec.json.encode(host_meta()))


async def test_a_check_that_is_none(tmp_path: Path) -> None:
    """An unreadable check is refused before the run exists."""
    async with hosting(tmp_path / "spool") as agent:
        assert "cannot read its check" in await refusal(agent, check=b"{")


async def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    """If the host's own settings are broken, nothing is started, and the refusal blames them."""
    async with hosting(tmp_path / "spool") as agent:
        Path(paths.user_settings_file()).write_text("agents: [")
        assert "cannot read the host's settings" in await refusal(agent)


@pytest.mark.parametrize("message", [b"", b"\xff", b"\xa3abc", b"\xc1" * 100, bytes(range(256)), b"\x91\x01"])
@pytest.mark.parametrize("verb", list(Verb))
async def test_what_is_no_message(tmp_path: Path, verb: Verb, message: bytes) -> None:
    """Any invalid bytes are refused, and the agent continues."""
    async with hosting(tmp_path / "spool") as agent:
        assert Said.REFUSED == msgspec.msgpack.decode(await agent.answer(verb, message), type=Answer).said
        assert (await Asking(agent).pull(wait=0)).spool == agent.spool_id


@pytest.mark.parametrize("relay", ["", "..", "0123456789a/", "0123456789AB", "0123456789ab\n", "../../../etc"])
async def test_names_that_are_none(tmp_path: Path, relay: str) -> None:
    """Relay and run names must have their fixed form: no path is made from a message."""
    async with hosting(tmp_path / "spool") as agent:
        answer = await agent.answer(Verb.PULL, encode(Pull(relay, {})))
        assert Said.REFUSED == msgspec.msgpack.decode(answer, type=Answer).said
        answer = await agent.answer(Verb.PULL, encode(Pull(RELAY, {"../../x": Have()})))
        assert Said.REFUSED == msgspec.msgpack.decode(answer, type=Answer).said
        assert {".lock", "code", "id"} == {path.name for path in (tmp_path / "spool").iterdir()}


async def test_another_protocol(tmp_path: Path) -> None:
    """A relay of another version gets the agent's version, and nothing else."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        await relay.begin("answer 1")
        pulled: Pulled = await relay.pull(wait=0, protocol=99)
        assert (PROTOCOL, (), ()) == (pulled.protocol, pulled.known, pulled.chunks)
        await relay.pull_end(*relay.files)


@pytest.mark.parametrize("content", ["", "not an id", "f" * 31])
def test_a_spool_whose_id_is_broken(tmp_path: Path, content: str) -> None:
    """A damaged spool id is an error, never replaced, because permits name it."""
    HostAgent(str(tmp_path), slots=1).close()
    (tmp_path / "id").write_text(content)
    with pytest.raises(SubdeckError, match="the spool's id is damaged"):
        HostAgent(str(tmp_path), slots=1)


def test_a_spool_that_others_may_write(tmp_path: Path) -> None:
    """A directory that other users can write is refused as a spool."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o777)
    with pytest.raises(SubdeckError, match="other users can write"):
        HostAgent(str(tmp_path / "spool"), slots=1)


@pytest.mark.parametrize("part", ["system.directory.Directory.write_new", "system.directory.Directory.write_whole"])
async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """A full disk refuses a run only for now: the run leaves no files, and may be sent again."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        with monkeypatch.context() as patch:
            patch.setattr(f"subdeck.core.{part}", full)
            run_id, answer = await relay.start("answer 1", meta=meta)
        assert Said.NOT_NOW == answer.said and "No space left" in answer.why
        assert not relay.run_dir(run_id).exists()
        assert run_id == await relay.begin("answer 1", meta=meta)
        await relay.pull_end(run_id)


async def test_a_disk_that_is_full_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-made run is removed if the disk has no room for the rest."""

    def full(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        monkeypatch.setattr("subdeck.core.hosts._arrival._furnish", full)
        run_id, answer = await relay.start("answer 1")
        assert Said.NOT_NOW == answer.said
        assert not relay.run_dir(run_id).exists()
