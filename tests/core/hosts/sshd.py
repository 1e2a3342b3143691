"""Real ssh hosts on loopback: each has an sshd with its own configuration, keys and home."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path
from types import TracebackType

from subdeck.core.system import processes

from tests import isolation
from tests.core.command_line import SUBDECK
from tests.factories import PUPPET
from tests.waiting import wait_until

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
PASSED = ("LANG", "TZ", "VIRTUAL_ENV", isolation.MARKER)
"""Variables that a host's environment takes from the test's."""


class SshHost:
    """A host that `ssh NAME` reaches, private to this test. Its runs and agents are processes of this machine."""

    def __init__(self, world: Path, name: str, *, slots: int = 0, has_subdeck: bool = True, banner: str = "") -> None:
        self.name = name
        self.home = world / name
        """Home of the user who logs in there; the host keeps its files below it."""
        self.port = _free_port()
        self._keys = _keys(world)
        self._sshd: subprocess.Popen[bytes] | None = None
        self.home.mkdir()
        (self.home / "bin").mkdir()
        if has_subdeck:
            words = " ".join((*SUBDECK, '"$@"', *(("--slots", str(slots)) if slots else ())))
            self.write_program(f"{f'echo {banner!r}' if banner else ':'}\nexec {words}")
        self._configure()
        _name_host(world, name, self.port, self._keys)

    @property
    def agents(self) -> list[int]:
        """Pids of the host's agents."""
        mark = f"SUBDECK_TEST_HOST={self.home}".encode()
        return [
            pid
            for pid in processes.living()
            if "subdeck.core.hosts.ssh.server" in processes.arguments(pid)
            and mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        ]

    @property
    def connections(self) -> list[int]:
        """Sshd's processes for current logins."""
        assert self._sshd
        return [pid for pid in processes.descendants(self._sshd.pid) if processes.name(pid).startswith("sshd")]

    def take_settings(self) -> None:
        """Give the host an agent that runs the puppet."""
        target = self.home / ".config" / "subdeck" / "config.yaml"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps({"agents": {"puppet": {"command": list(PUPPET)}}}))

    def write_program(self, script: str) -> None:
        program = self.home / "bin" / "subdeck"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def start(self) -> None:
        with (self.home / "sshd.log").open("wb") as log:
            command = [SSHD, "-D", "-e", "-f", self.home / "sshd_config"]
            self._sshd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        wait_until(self._listens, f"sshd of {self.name} to listen")

    def cut(self) -> None:
        """Kill every connection as a failing network does: neither end is notified."""
        for pid in self.connections:
            processes.send(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Refuse logins, and end all sessions."""
        if self._sshd is not None:
            sessions = self.connections
            self._sshd.kill()
            self._sshd.wait()
            self._sshd = None
            for pid in sessions:
                processes.send(pid, signal.SIGKILL)

    def end_agents(self, number: int = signal.SIGTERM) -> None:
        """End the host's agents; their runs continue."""
        agents = {pid: processes.start_time(pid) for pid in self.agents}
        for pid, started in agents.items():
            processes.send(pid, number, started)
        wait_until(
            lambda: not any(started and processes.is_alive(pid, started) for pid, started in agents.items()),
            "the agents to end",
        )

    def __enter__(self) -> SshHost:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()
        self.end_agents()

    def _listens(self) -> bool:
        assert self._sshd
        if self._sshd.poll() is not None:
            raise AssertionError((self.home / "sshd.log").read_text())
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _configure(self) -> None:
        path = f"{self.home / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        variables = {name: os.environ[name] for name in PASSED if name in os.environ}
        variables |= {"HOME": str(self.home), "PATH": path, "SHELL": "/bin/sh", "SUBDECK_TEST_HOST": str(self.home)}
        lines = (
            "ListenAddress 127.0.0.1",
            f"Port {self.port}",
            f"HostKey {self._keys / 'host'}",
            f"AuthorizedKeysFile {self._keys / 'me.pub'}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            f"SetEnv {' '.join(f'{name}={value}' for name, value in variables.items())}",
        )
        (self.home / "sshd_config").write_text("\n".join((*lines, "")))
        if os.geteuid() == 0:  # sshd separates its privileges if run by root
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)


def with_another_key(world: Path) -> None:
    """Have ssh log in with a key that no host knows."""
    keys = _keys(world)
    _make_key(keys / "stranger")
    config = world / "ssh_config"
    config.write_text(config.read_text().replace(str(keys / "me"), str(keys / "stranger")))


def _keys(world: Path) -> Path:
    keys = world / "keys"
    if not keys.exists():
        keys.mkdir(mode=0o700)
        _make_key(keys / "host")
        _make_key(keys / "me")
    return keys


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, stdin=subprocess.DEVNULL)


def _name_host(world: Path, name: str, port: int, keys: Path) -> None:
    """Make `ssh NAME` reach this host: ssh ignores HOME and looks for its files in the real home."""
    config, known, program = world / "ssh_config", world / "known_hosts", world / "bin" / "ssh"
    entry = (
        f"Host {name}",
        "HostName 127.0.0.1",
        f"Port {port}",
        f"User {getpass.getuser()}",
        f"IdentityFile {keys / 'me'}",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        f"UserKnownHostsFile {known}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "",
    )
    with config.open("a") as file:
        file.write("\n".join(entry))
    with known.open("a") as file:
        file.write(f"[127.0.0.1]:{port} {(keys / 'host.pub').read_text()}")
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
