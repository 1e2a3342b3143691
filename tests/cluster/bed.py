"""An operator, a head and hosts on one machine, each in separate namespaces, joined by a bridge.

Every host has its own network, pid, mount and uts namespace, machine id, HOME and spool, and a shell as its init that
restarts `subdeck hosts serve` whenever that ends. A link can be cut and healed; a host can die with all its processes,
and boot again. Needs root. The names of the namespaces contain the pid of their maker, so that the next bed removes one
whose maker was killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests import isolation
from tests.waiting import wait_until

TAG = "sdbed"
NET = "10.77.0"
PORT = 8786
HEAD, OPERATOR = "head", "op"
NEW_NET = 0x40000000
"""CLONE_NEWNET: the namespace for `setns`."""
MARK = "SUBDECK_BED_PLACE"
"""In the environment of every process of a bed: its place."""
WORKER, SCHEDULER = "dask_worker", "hosts scheduler"
"""In the commands of processes to kill and stop; the first is restarted by its parent."""
SUBDECK = (sys.executable, "-P", "-m", "subdeck.tui.main")
STEADY_SOON = (
    "import sys; from subdeck.core.hosts.dask import cluster; from subdeck.tui.main import main; "
    "cluster.LASTED_S = 2.0; sys.argv[0] = 'subdeck'; sys.exit(main())"
)
"""subdeck that always restarts a killed worker at once, even if it has not lasted long."""
TOOLS = ("ip", "unshare", "setpriv", "mount")
COMM_TIMEOUT_S = 12
"""Below 11 s distributed fails an assertion at every connection."""
WORKER_TTL_S = 15
UNLESS_ALONE = 'test "$PPID" = "$0" && exec "$@"'
"""The parent may have been killed before the kernel knew to kill the child with it."""
INIT = """
hostname {name}
[ ! -e /etc/machine-id ] || mount --bind {home}/machine-id /etc/machine-id
mount --bind {home}/boot-id /proc/sys/kernel/random/boot_id
cd {home}
while :; do {serve} >>worker.log 2>&1; sleep 0.3; done
"""


def why_not() -> str:
    """Return why a bed is not possible here; empty if it is."""
    if os.geteuid() != 0:
        return "namespaces of networks need root"
    if missing := [tool for tool in TOOLS if not shutil.which(tool, path=_path())]:
        return f"{missing[0]} is not installed"
    name = f"{TAG}-{os.getpid()}-try"
    try:
        _ip(f"netns add {name}")
        subprocess.run(("unshare", "-pfmu", "--mount-proc", "true"), check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        return f"namespaces are not allowed here: {error.stderr.decode(errors='replace').strip()}"
    finally:
        subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)
    return ""


class Bed:
    """A bed below `base`, a short path; `settings` are further keys of the hosts' own settings."""

    def __init__(self, base: Path, *, hosts: int = 2, slots: int = 4, **settings: Any) -> None:
        self.base, self.slots, self.settings = base, slots, settings
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        self.address = f"tls://{NET}.2:{PORT}"
        self.keys = base / "keys"
        self.programs = base / "bin"
        """First on PATH everywhere."""
        self._tag = f"{TAG}-{os.getpid()}"
        kept = ("LANG", "TZ", isolation.MARKER)  # the session's mark: processes started later belong to no test
        self._kept = {name: os.environ[name] for name in kept if name in os.environ}
        self._inits: dict[str, subprocess.Popen[bytes]] = {}
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Bed:
        remove_left_overs()
        try:
            self._lay_cables()
            self.programs.mkdir(parents=True)
            self._make_keys()
            self.start_scheduler()
            for host in self.hosts:
                self.boot(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            _kill_group(process)
        for name in self._names():
            _remove(f"{self._tag}-{name}")

    def environment(self, place: str) -> dict[str, str]:
        """Return the environment of processes in a place."""
        home = self.home(place)
        return self._kept | {
            "PATH": f"{self.programs}{os.pathsep}{_path()}",
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_RUNTIME_DIR": str(home / "tmp"),
            "PI_CODING_AGENT_DIR": str(home / ".pi" / "agent"),
            "PI_OFFLINE": "1",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{WORKER_TTL_S} s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{COMM_TIMEOUT_S}s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
            MARK: f"{self._tag}-{place}",
        }

    def home(self, place: str) -> Path:
        home = self.base / place
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        return home

    def spool(self, host: str) -> Path:
        return self.base / host / "spool"

    def log(self, host: str) -> str:
        """Return the output of the host's worker."""
        path = self.base / host / "worker.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def write_settings(self, place: str, **others: Any) -> None:
        """Write the user's settings of a place: the cluster's address, and `others`."""
        tls = {"ca": str(self.keys / "ca.pem"), "cert": str(self.keys / "me.pem"), "key": str(self.keys / "me.key")}
        hosts = {"scheduler": self.address, "tls": tls, **others.pop("hosts", {})}
        file = self.home(place) / ".config" / "subdeck" / "config.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**self.settings, **others, "hosts": hosts}, indent=1))

    def start_scheduler(self) -> None:
        self.write_settings(HEAD)
        command = (*SUBDECK, "hosts", "scheduler")
        self._start(HEAD, command, self.base / "scheduler.log")

    def boot(self, host: str) -> None:
        """Start a host; its spool is unchanged since it died."""
        home = self.home(host)
        self.write_settings(host)
        machine_id = home / "machine-id"
        if not machine_id.exists():
            machine_id.write_text(f"{uuid.uuid4().hex}\n")
        (home / "boot-id").write_text(f"{uuid.uuid4()}\n")
        words = ("hosts", "serve", "--slots", str(self.slots), "--name", host, "--spool", str(self.spool(host)))
        init = INIT.format(name=host, home=home, serve=shlex.join((sys.executable, "-P", "-c", STEADY_SOON, *words)))
        command = ("unshare", "-pfmu", "--mount-proc", "--kill-child=KILL", "bash", "-c", init)
        self._inits[host] = self._start(host, command, self.base / f"{host}.log")

    def power_off(self, host: str) -> None:
        """Kill a host with all its processes, at once."""
        _kill_group(self._inits.pop(host))
        wait_until(lambda: not self.find("", host), f"{host} to be dead")

    def cut(self, place: str) -> None:
        """Take a host, or the head, off the network."""
        _ip(f"-n {self._tag}-{OPERATOR} link set {self._cable(place)} down")

    def heal(self, place: str) -> None:
        _ip(f"-n {self._tag}-{OPERATOR} link set {self._cable(place)} up")

    def find(self, word: str, place: str) -> list[int]:
        """Return the pids, as seen from here, of a place's processes with a word in their command; not its init."""
        mark = f"{MARK}={self._tag}-{place}".encode()
        found: list[int] = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                argv = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
                environment = Path("/proc", pid, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            is_init = os.path.basename(argv[0]) in (b"sh", b"bash", b"sleep", b"unshare", b"setpriv", b"ip")
            if mark in environment and not is_init and word.encode() in b" ".join(argv):
                found.append(int(pid))
        return found

    def send(self, number: int, word: str, place: str) -> list[int]:
        """Send a signal to all processes found by `find` that have not ended by then; return them."""
        pids = self.find(word, place)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """Put this thread, and its new sockets and processes, on the network of a place."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            with open(f"/run/netns/{self._tag}-{place}") as there:
                _join(there.fileno())
            try:
                yield
            finally:
                _join(own)
        finally:
            os.close(own)

    def _names(self) -> list[str]:
        return [OPERATOR, HEAD, *self.hosts]

    def _cable(self, place: str) -> str:
        return f"sd{os.getpid() % 1_000_000}{place}"  # the name of an interface has 15 characters at most

    def _lay_cables(self) -> None:
        op = f"{self._tag}-{OPERATOR}"
        _ip(f"netns add {op}", f"-n {op} link set lo up", f"-n {op} link add name bridge type bridge")
        _ip(f"-n {op} link set bridge up", f"-n {op} addr add {NET}.1/24 dev bridge")
        for number, name in enumerate((HEAD, *self.hosts), start=2):
            space, cable = f"{self._tag}-{name}", self._cable(name)
            _ip(f"netns add {space}", f"-n {space} link set lo up")
            _ip(f"link add {cable} netns {op} type veth peer name eth0 netns {space}")
            _ip(f"-n {op} link set {cable} master bridge up", f"-n {space} link set eth0 up")
            _ip(f"-n {space} addr add {NET}.{number}/24 dev eth0")

    def _make_keys(self) -> None:
        command = (*SUBDECK, "hosts", "keys", str(self.keys))
        subprocess.run(command, check=True, capture_output=True, env=self.environment(HEAD), cwd=self.base)

    def _start(self, place: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a command that ends when this process does."""
        space = ("ip", "netns", "exec", f"{self._tag}-{place}", "setpriv", "--pdeathsig", "KILL")
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*space, "sh", "-c", UNLESS_ALONE, str(os.getpid()), *command],
                cwd=self.home(place),
                env=self.environment(place),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._started.append(process)
        return process


def remove_left_overs() -> None:
    """Remove the namespaces of beds whose makers have gone, and their processes."""
    listed = subprocess.run(("ip", "netns", "list"), check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        maker = name.removeprefix(f"{TAG}-").partition("-")[0]
        if name.startswith(f"{TAG}-") and not os.path.exists(f"/proc/{maker}"):
            _remove(name)


def _remove(name: str) -> None:
    """Remove a namespace after killing its processes."""
    listed = subprocess.run(("ip", "netns", "pids", name), check=False, capture_output=True, text=True)
    for pid in map(int, listed.stdout.split()):
        try:
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)  # the init of a host takes its whole pid namespace along
    except ProcessLookupError:
        pass
    process.wait()


def _join(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, NEW_NET):
        raise OSError(ctypes.get_errno(), "setns")


def _path() -> str:
    own = os.path.dirname(sys.executable)
    return os.pathsep.join((own, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def _ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(("ip", *command.split()), check=True, capture_output=True)
