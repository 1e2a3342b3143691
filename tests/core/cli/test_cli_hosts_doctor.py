"""`subdeck hosts doctor`: every obstacle to runs on a host is named, with its fix."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import __version__
from subdeck.core.config.effective_hosts import kept_cluster
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.doctor import Check, State
from subdeck.core.hosts import survey as survey_module
from subdeck.core.hosts._carrier import Carrier, Link, OutOfReach, Wish
from subdeck.core.hosts._facts import examined
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.dask.certificates import make_keys
from subdeck.core.hosts.dask.security import expiry
from subdeck.core.hosts.doctor import diagnose, question
from subdeck.core.hosts.protocol import PROTOCOL, AgentVersion, Answer, Examine, Examined, HostFacts, Said, Verb, encode
from subdeck.core.hosts.ssh._line import HostLine
from subdeck.core.hosts.survey import NOT_YET, Survey, Surveyed, survey
from subdeck.core.system import processes

from tests.core.command_line import subdeck
from tests.core.hosts.clusters import trial
from tests.core.hosts.hosting import hosting
from tests.core.hosts.sshd import SshHost
from tests.factories import open_engine, write_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

PYTHON = ".".join(map(str, sys.version_info[:3]))
FACTS = HostFacts(slots=4, used=1, subdeck=__version__, python=PYTHON, carrier="", cores=2)
WELL = Examined(
    host="h1",
    spool="/spool",
    facts=FACTS,
    agents=(AgentVersion("mine", "1.0"), AgentVersion("offline")),
    git="2.39.5",
    clock=time.time(),
    protocol=PROTOCOL,
)
SETTINGS = Settings(
    agent="mine",
    agents={"mine": AgentSettings(("/bin/true",), kind="pi")},
    default_model="a/b",
    hosts=HostsSettings(ssh=("me@h1",)),
)


def surveyed(examined: Examined | None = WELL, **fields: Any) -> Surveyed:
    return Surveyed(link=Link("me@h1", "h1"), carrier="ssh", examined=examined, **fields)


def checks(host: Surveyed, settings: Settings = SETTINGS) -> tuple[Check, ...]:
    _, one = diagnose(Survey((host,)), settings)
    return one.checks


def troubles(host: Surveyed, settings: Settings = SETTINGS) -> dict[str, Check]:
    return {check.name: check for check in checks(host, settings) if check.state is not State.OK}


def test_nothing_is_wrong() -> None:
    """A host that is set up correctly has no problems."""
    assert troubles(surveyed()) == {}


@pytest.mark.parametrize(
    ("host", "name", "state", "words"),
    [
        (replace(WELL, facts=replace(FACTS, subdeck="9.9")), "subdeck", State.PROBLEM, "9.9 there"),
        (replace(WELL, facts=replace(FACTS, carrier="distributed 1.0")), "distributed", State.PROBLEM, "1.0 there"),
        (replace(WELL, agents=()), "mine", State.PROBLEM, "it was not checked"),
        (replace(WELL, agents=(AgentVersion("mine", problem="no such"),)), "mine", State.PROBLEM, "no such"),
        (replace(WELL, missing_variables=("SOME_KEY",)), "variables", State.PROBLEM, "SOME_KEY: not set here"),
        (replace(WELL, problems=("file locks do not work",)), "spool", State.PROBLEM, "locks do not"),
        (replace(WELL, git=""), "git", State.PROBLEM, "no usable git"),
        (replace(WELL, problems=("h\x1b[2Jx\n",)), "spool", State.PROBLEM, "x"),
    ],
)
def test_what_is_wrong_on_a_host(host: Examined, name: str, state: State, words: str) -> None:
    """Each problem of a host is found on its own, in plain words."""
    check = troubles(surveyed(host))[name]
    assert check.state is state
    assert words in check.detail
    assert check.detail.isprintable()


def test_variable_that_is_set_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is passed on may be unset on the host."""
    monkeypatch.setenv("SOME_KEY", "secret")
    assert troubles(surveyed(replace(WELL, missing_variables=("SOME_KEY",)))) == {}


def test_python_matters_to_dask_alone() -> None:
    """Another minor version of Python is a problem only with dask."""
    other = surveyed(replace(WELL, facts=replace(FACTS, python="3.99.0")))
    assert troubles(other) == {}
    assert "3.99.0 there" in troubles(replace(other, carrier="dask"))["python"].detail


@pytest.mark.parametrize(
    ("ahead", "words"), [(90.0, "90 s ahead of this machine's"), (-90.0, "90 s behind this machine's")]
)
def test_clock(ahead: float, words: str) -> None:
    """A wrong clock is a warning: it affects the times shown, not the leases."""
    check = troubles(surveyed(clock_ahead=ahead))["clock"]
    assert (State.WARN, True) == (check.state, words in check.detail)
    assert troubles(surveyed(clock_ahead=90.0, seconds=100.0)) == {}


def test_no_answer() -> None:
    """A host that does not answer has only this problem."""
    check = troubles(surveyed(None, fault="no answer within 10 s"))["answer"]
    assert (State.PROBLEM, "no answer within 10 s") == (check.state, check.detail)


def general(found: Survey, settings: Settings = SETTINGS, only: str = "") -> dict[str, Check]:
    return {check.name: check for check in diagnose(found, settings, only)[0].checks}


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("dask: worker tls://h2:1 has no subdeck", "subdeck hosts serve"),
        ("ssh: me@h1: Permission denied (publickey)", "authorized_keys"),
        ("dask: no answer from tls://head:8786: it takes too long", "subdeck hosts scheduler"),
        ("ssh: me@h1: subdeck is not installed there", "pip install"),
    ],
)
def test_what_leads_to_the_hosts(fault: str, step: str) -> None:
    """A missing host is reported with the step that fixes it."""
    check = general(Survey((), (fault,)))["reach"]
    assert (State.PROBLEM, fault, True) == (check.state, check.detail, step in check.fix)


async def test_a_host_of_another_version() -> None:
    """A host with another protocol version is a problem even if it answers, because no run can start there."""
    carrier = Near({"h1": encode(replace(WELL, protocol=PROTOCOL + 1))})
    found = await survey_module._survey((carrier,), question(SETTINGS), 5.0, 5.0)
    check = troubles(found.hosts[0])["messages"]
    assert (State.PROBLEM, True) == (check.state, f"uses protocol version {PROTOCOL + 1}" in check.detail)


def test_named_host() -> None:
    """One host can be checked by its name or its carrier's name, and an unknown one is named."""
    far = Surveyed(link=Link("tls://h2:1", "h2"), carrier="dask", examined=replace(WELL, host="h2"))
    found = Survey((surveyed(), far))
    asked = {"h1": "h1", "me@h1": "h1", "h2": "h2", "tls://h2:1": "h2"}
    assert asked == {only: diagnose(found, SETTINGS, only)[1].host for only in asked}
    assert "unknown host h9" in general(found, only="h9")["hosts"].detail


def test_keys_that_others_can_read(tmp_path: Path) -> None:
    """A key that others can read lets them run programs on every host: this is a problem, with its fix."""
    tls = make_keys(str(tmp_path))
    settings = replace(SETTINGS, hosts=HostsSettings(scheduler="tls://head:8786", tls=tls))
    assert general(Survey((surveyed(),)), settings)["tls"].state is State.OK
    (tmp_path / "me.key").chmod(0o644)
    assert "chmod 600" in general(Survey((surveyed(),)), settings)["tls"].fix
    (tmp_path / "me.key").unlink()
    assert general(Survey((surveyed(),)), settings)["tls"].state is State.PROBLEM
    open_to_all = replace(settings, hosts=HostsSettings(scheduler="tcp://head:8786"))
    assert "is not encrypted" in general(Survey((surveyed(),)), open_to_all)["tls"].detail


@pytest.mark.parametrize(
    ("days", "state", "words"),
    [(31, State.OK, ""), (29, State.WARN, "in 28d"), (0, State.PROBLEM, "the certificates expired on")],
)
def test_certificates_that_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, state: State, words: str
) -> None:
    """Certificates are a warning a month before they expire and a problem afterwards, here and on a host."""
    monkeypatch.setattr("subdeck.core.hosts.dask.certificates.LIFETIME", timedelta(days=days, minutes=-1))
    tls = make_keys(str(tmp_path))
    settings = replace(SETTINGS, hosts=HostsSettings(scheduler="tls://head:8786", tls=tls))
    until = expiry(tls.ca, tls.cert)
    assert abs(until - time.time() - days * 86400) < 120
    for check in (
        general(Survey((surveyed(),)), settings)["tls"],
        *(check for check in checks(surveyed(replace(WELL, certificates_until=until))) if check.name == "tls"),
    ):
        assert (state, True, state is not State.OK) == (check.state, words in check.detail, "keys" in check.fix)


def test_no_host_in_the_cluster() -> None:
    """Without hosts in the cluster, the fix is the command that adds one."""
    assert "subdeck hosts serve" in general(Survey(()))["hosts"].fix


# --- asking ----------------------------------------------------------------------------------------------------------


class Near(Carrier):
    """Passes messages to host agents in this process."""

    name = "near"

    def __init__(self, agents: Mapping[str, HostAgent | bytes | None]) -> None:
        self._agents = agents

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def links(self) -> Mapping[str, Link]:
        return {key: Link(key, key) for key in self._agents}

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        agent = self._agents[key]
        if agent is None:
            raise OutOfReach(f"{key} is gone")
        return agent if isinstance(agent, bytes) else await agent.answer(verb, message)

    def want(self, wishes: Mapping[str, Wish]) -> None:
        assert not wishes


async def test_every_host_is_asked(tmp_path: Path) -> None:
    """All hosts are asked at once, and a host that is gone, refuses or sends nonsense differs from one that answers."""
    refusing = encode(Answer(Said.REFUSED, "its disk is full"))
    async with hosting(tmp_path / "spool", name="h1") as agent:
        carrier = Near({"h1": agent, "h2": None, "h3": refusing, "h4": b"nonsense"})
        found = await survey_module._survey((carrier,), question(SETTINGS), 5.0, 5.0)
    one, *others = found.hosts
    assert one.examined
    assert ("h1", str(tmp_path / "spool"), True) == (one.examined.host, one.examined.spool, abs(one.clock_ahead) < 5)
    assert ["h2 is gone", "its disk is full"] == [host.fault for host in others[:2]]
    assert others[2].fault
    assert found.faults == ()


def test_a_host_that_was_not_tried_yet() -> None:
    """A host that ssh has not tried yet has the text of its status line."""
    assert NOT_YET in HostLine("h1", 1, lambda: None).fault


def test_ssh_that_reaches_nobody() -> None:
    """If ssh fails, its own message is the fault, without waiting for the timeout."""
    began = time.monotonic()
    found = survey(HostsSettings(ssh=("nosuch.invalid",)), Examine(), patience=30)
    assert (0, True) == (len(found.hosts), "nosuch.invalid" in found.faults[0])
    assert time.monotonic() - began < 25


# --- the command -----------------------------------------------------------------------------------------------------


def test_without_hosts(project_dir: Path) -> None:
    """Without hosts, the command prints how to add some."""
    open_engine(project_dir)
    done = subdeck("hosts", "doctor", cwd=project_dir)
    assert (2, True) == (done.code, "subdeck hosts try 3" in done.err)


def test_a_worker_without_subdeck_is_found(project_dir: Path, tmp_path: Path) -> None:
    """A healthy cluster has no problems, and a worker without subdeck is reported by name."""
    with trial(1, cwd=tmp_path):
        well = subdeck("hosts", "doctor", cwd=project_dir)
        assert (0, True) == (well.code, "✓ ok       answer" in well.out), well.out
        assert "✓ ok       tls          until 20" in well.out
        document = subdeck("hosts", "doctor", "h1", "--json", cwd=project_dir).document
        assert (True, [None, "h1"]) == (document["ok"], [one["host"] for one in document["hosts"]])
        cluster = kept_cluster()
        assert cluster
        stranger = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler),
                *("--tls-ca-file", cluster.ca, "--tls-cert", cluster.cert, "--tls-key", cluster.key),
                *("--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ},
        )
        try:

            def found() -> str:
                done = subdeck("hosts", "doctor", cwd=project_dir)
                return done.out if done.code == 1 else ""

            told = wait_until(found, "the stranger to be found", 60)
            assert "has no subdeck" in told
            assert "subdeck hosts serve" in told
        finally:
            stranger.terminate()
            stranger.wait(30)


def test_hosts_that_ssh_reaches(world: Path, home: Path, project_dir: Path) -> None:
    """Hosts over ssh get the same checks. A host without subdeck is named with the fix, and the other has no
    problems.
    """
    with SshHost(world, "h1") as h1, SshHost(world, "h2", has_subdeck=False):
        h1.take_settings()
        open_engine(project_dir, hosts={"ssh": ["h1", "h2"], "env": ["NOWHERE_SET"]})
        one = subdeck("hosts", "doctor", "h1", cwd=project_dir)
        everything = subdeck("hosts", "doctor", "--json", cwd=project_dir)
    assert "answer       by ssh after" in one.out
    assert "✓ ok       puppet" in one.out
    assert "✗ problem  variables    NOWHERE_SET: not set here or there" in one.out
    general, host = everything.document["hosts"]
    (fault,) = (check for check in general["checks"] if check["name"] == "reach")
    assert (1, False, processes.host()) == (everything.code, everything.document["ok"], host["host"])
    assert ("h2: subdeck is not installed there" in fault["detail"], "pip install" in fault["fix"]) == (True, True)


def test_a_missing_agent_is_told_without_the_advice_for_this_machine(home: Path, tmp_path: Path) -> None:
    """The doctor knows the machine and adds the fix, and the problem has the program's path."""
    write_settings(command=("/nosuch/agent",))
    found = examined(Examine(agents=("puppet", "mine")), host="h1", spool=str(tmp_path), facts=FACTS)
    assert ["/nosuch/agent: the program does not exist", 'unknown agent "mine"'] == [
        agent.problem for agent in found.agents
    ]
