"""`subdeck hosts`: its table, start errors, a served host, a trial cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from subdeck.core.cli._hosts_cluster import _leads_to_loopback
from subdeck.core.cli.hosts import COMMANDS
from subdeck.core.config.effective_hosts import kept_cluster, keys_dir, try_file
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts._carrier import Wish
from subdeck.core.hosts.dask.certificates import make_keys
from subdeck.core.hosts.dask.cluster import usual_slots
from subdeck.core.hosts.dask.trial import _free_port
from subdeck.core.hosts.protocol import Said
from subdeck.core.system import processes

from tests.core.command_line import SUBDECK, subdeck, write_preset, write_settings as write_agents
from tests.core.hosts.clusters import UP_S, asking, carrying, may_drop_a_connection, trial
from tests.core.hosts.hosting import host_meta
from tests.factories import write_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands"), may_drop_a_connection]


@contextmanager
def serving(*words: str, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of `subdeck hosts` in the foreground, and end it with ctrl-C."""
    command = [*SUBDECK, "hosts", *words]
    server = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield server
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(project_dir: Path, name: str) -> None:
    """Each command in the table exists, with help, --json and, unless programs call it, its line in the list."""
    done = subdeck("hosts", name, "--help", cwd=project_dir)
    assert (0, "") == (done.code, done.err)
    assert done.out.startswith(f"Usage: subdeck hosts {name} ")
    assert "--json" in done.out
    listed = subdeck("hosts", "--help", cwd=project_dir).out
    assert (name != "agent") == (f"  {name:<11}{COMMANDS[name][1]}" in listed)


def test_a_typing_error_names_the_near_ones(project_dir: Path) -> None:
    """The commands of this table are suggested."""
    error = subdeck("hosts", "serv", "--json", cwd=project_dir).error
    assert ('unknown command "serv"', "did you mean serve?") == (error["what"], error["hint"])
    assert "subdeck hosts --help" in subdeck("hosts", "zzz", cwd=project_dir).err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["serve"], "no scheduler address given"),
        (["scheduler"], "no scheduler address given"),
        (["serve", "head:8786"], "head:8786 is not a valid scheduler address"),
        (["serve", "tcp://head:8786"], "tcp://head:8786 is not encrypted"),
        (["scheduler", "tcp://0.0.0.0:8786"], "tcp://0.0.0.0:8786 is not encrypted"),
        (["scheduler", "tls://0.0.0.0:8786"], "No such file"),
        (["serve", "tls://head:8786", "--keys", "nowhere"], "nowhere/ca.pem: No such file"),
        (["serve", "tcp://localhost:1", "--label", "subdeck=4"], "subdeck=4 is not a valid resource"),
        (["serve", "tcp://localhost:1", "--label", "gpu"], "gpu is not a valid resource"),
        (["serve", "tcp://localhost:1", "--name", "-x"], "-x is not a valid host name"),
        (["serve", "tcp://localhost:1", "--listen=-x"], "-x is not a valid address"),
        (["serve", "tcp://localhost:1", "--slots", "0"], "--slots"),
        (["try", "0"], "COUNT"),
    ],
)
def test_what_keeps_it_from_starting(project_dir: Path, words: list[str], what: str) -> None:
    """A wrong call gives a readable error, and nothing is started."""
    done = subdeck("hosts", *words, "--json", cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert what in done.error["what"]


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["keys"], "cryptography"),
        (["serve", "tcp://localhost:1"], "distributed"),
        (["scheduler"], "distributed"),
        (["try"], "distributed"),
    ],
)
def test_the_extra_is_named(project_dir: Path, words: list[str], package: str) -> None:
    """Without a package for clusters, the error has the command that installs it."""
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda name, *more: None if name == {package!r} else find(name, *more)\n"
        "from subdeck.tui.main import main; sys.argv[0] = 'subdeck'; sys.exit(main())"
    )
    argv = [sys.executable, "-P", "-c", code, "hosts", *words]
    done = subprocess.run(argv, cwd=project_dir, capture_output=True, text=True)
    assert (2, "") == (done.returncode, done.stdout)
    assert f"needs the package {package}" in done.stderr
    assert 'pip install "subdeck[hosts]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_what_keeps_a_host_loads_no_dask(project_dir: Path) -> None:
    """The process that supervises workers stays small, and so does the help."""
    for words in (["hosts"], ["hosts", "serve", "--help"], ["hosts", "serve", "tls://localhost:1"]):
        code = "import sys; from subdeck.tui.main import main; sys.argv[1:] = %r; main(); print(*sys.modules)" % words  # noqa: UP031
        done = subprocess.run([sys.executable, "-P", "-c", code], cwd=project_dir, capture_output=True, text=True)
        assert not {"dask", "distributed", "tornado", "asyncio", "cryptography", "textual"} & set(
            done.stdout.splitlines()[-1].split()
        )


async def test_a_host_is_served(project_dir: Path, tmp_path: Path) -> None:
    """Scheduler and host use certificates, and the host has labels, a name and a spool that no second host gets."""
    write_settings()
    make_keys(keys_dir())
    address = f"tls://127.0.0.1:{_free_port()}"
    spool = tmp_path / "spool"
    options = ["--slots", "3", "--label", "gpu=2", "--name", "h07", "--spool", str(spool)]
    with (
        serving("scheduler", address, cwd=project_dir),
        serving("serve", address, *options, cwd=project_dir),
    ):
        async with carrying(HostsSettings(scheduler=address)) as carrier:
            (link,) = carrier.links.values()
            assert ("h07", 3, {"gpu": 2.0}) == (link.name, link.slots, link.labels)
            relay, meta = await asking(carrier, link.key), host_meta()
            carrier.want({meta.run_id: Wish(meta.run_id, needs={"gpu": 1})})
            while meta.run_id not in (await relay.pull(wait=0.2)).offers:
                continue
            await relay.begin(f"bash env > {tmp_path}/environment", "answer 42", meta=meta)
            assert "42" == (await relay.pull_end(meta.run_id)).final_text
            assert "HOME=" in (tmp_path / "environment").read_text()
            assert "DASK" not in (tmp_path / "environment").read_text()
            assert Said.TOLD == (await relay.ack(meta.run_id)).said
        assert [".git"] == os.listdir(project_dir)
        assert {"id", "tmp"} <= set(os.listdir(spool))
        with serving("serve", address, *options, cwd=project_dir) as second:
            assert second.stderr is not None
            lines = (line.decode() for line in second.stderr)
            busy = f"subdeck: {spool}: another process uses this spool; stop that process, or use another directory\n"
            assert busy == next(line for line in lines if "another process uses this spool" in line)
            assert "exited (exit code 1); starting it again" in next(lines) + next(lines)


def test_a_cluster_to_try_ends_with_ctrl_c(project_dir: Path) -> None:
    """A running trial cluster prints the next step, and ctrl-C ends it with all its runs."""

    async def begin() -> str:
        async with carrying() as carrier:
            (key,) = carrier.links
            relay = await asking(carrier, key)
            run_id = await relay.begin("say Working.", "hang")
            await relay.pull_until(lambda: "Working" in relay.text(run_id, "events.jsonl"), "its first words")
            return run_id

    with trial(cwd=project_dir) as kept:
        cluster = kept_cluster()
        assert cluster is not None and kept.pid == cluster.pid
        again = subdeck("hosts", "try", "--json", cwd=project_dir)
        assert f"already running (process {kept.pid}" in again.error["what"]
        run_id = asyncio.run(begin())
        below = processes.descendants(kept.pid)
        assert processes.marked(run_id)
        kept.send_signal(signal.SIGINT)
        out, err = (text.decode() for text in kept.communicate(timeout=60))
        assert "subdeck run --runner hosts --no-preset" in out
        assert "Stopping 1 run …" in err
        assert "Traceback" not in err
        assert 0 == kept.returncode
        assert not os.path.lexists(try_file())
        assert not os.path.lexists(cluster.key)
        wait_until(lambda: not processes.marked(run_id), "the processes of the run to go")
        wait_until(lambda: not set(below) & set(processes.living()), "all that ran on it to go", UP_S)
        assert [".git"] == os.listdir(project_dir)


def test_a_name_that_no_other_machine_reaches_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a machine's own name resolves to loopback, as on Debian, other machines cannot reach a scheduler there."""
    found = {"head": "127.0.1.1", "six": "::1", "far": "10.0.0.7"}

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host not in found:
            raise OSError("no such name")
        return [(2, 1, 6, "", (found[host], port))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    told = {host: _leads_to_loopback(f"tls://{host}:8786") for host in ("head", "six", "far", "other", "localhost")}
    assert {"head": "127.0.1.1", "six": "::1", "far": "", "other": "", "localhost": ""} == told


def test_nohup_is_heard(project_dir: Path) -> None:
    """A server started with nohup outlives its terminal, and others end with it."""
    for ignored in (True, False):
        words = ["hosts", "scheduler", f"tcp://127.0.0.1:{_free_port()}"]
        wish = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"] if ignored else []
        server = subprocess.Popen([*wish, *SUBDECK, *words], cwd=project_dir, stderr=subprocess.PIPE)
        try:
            assert server.stderr is not None
            assert b"Press ctrl-C to stop" in server.stderr.readline()
            server.send_signal(signal.SIGHUP)
            if ignored:
                (scheduler,) = processes.descendants(server.pid)
                os.kill(scheduler, signal.SIGKILL)
                assert b"the scheduler exited (signal 9); starting it again" in server.stderr.readline()
                server.terminate()
            assert 0 == server.wait(20)
        finally:
            server.kill()
            server.communicate()


def test_slots_are_what_the_machine_can_bear() -> None:
    """At least one slot, and at most four for each core."""
    assert 1 <= usual_slots() <= 4 * (os.cpu_count() or 1)


def test_what_ran_on_it_is_told_as_stopped(project_dir: Path, home: Path) -> None:
    """A run launched on a trial cluster is stopped with it, and its result has the reason."""
    with trial(cwd=project_dir) as kept:
        write_agents(home, slow="echo begun >&2; exec sleep 1000")
        write_preset(project_dir, extra="agent: slow\n")
        launched = subdeck("bg", "scout", "look around", "--runner", "hosts", "--json", cwd=project_dir)
        run_id = launched.document["runId"]
        stderr = project_dir / ".pi/subagents/runs" / run_id / "stderr.log"
        wait_until(lambda: stderr.exists() and b"begun" in stderr.read_bytes(), "the run to begin", UP_S)
        kept.send_signal(signal.SIGINT)
        kept.communicate(timeout=60)
        (run,) = subdeck("status", "--json", cwd=project_dir).document["runs"]
        assert ("aborted", "stopped by hosts try") == (run["status"], run["message"])
        wait_until(lambda: not processes.marked(run_id), "the processes of the run to go")
        relay = int((project_dir / ".pi/subagents/runs/.relay").read_text())
        os.kill(relay, signal.SIGTERM)
        wait_until(lambda: relay not in processes.living(), "the relay to go", UP_S)


def test_a_killed_keeper_takes_its_cluster_along() -> None:
    """If the supervising process is killed, its cluster's processes end."""
    with trial() as kept:
        below = processes.descendants(kept.pid)
        assert len(below) >= 2
        kept.kill()
        wait_until(lambda: not set(below) & set(processes.living()), "its processes to go", UP_S)
        assert kept_cluster() is None
        json.loads(Path(try_file()).read_text())
