"""One project in a separate world, the processes in it, and their roles.

The process that plays a trial is a subreaper: all processes of a trial stay below it, even with another session,
environment or parent, so that none can be overlooked.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from subdeck.core.paths import Project
from subdeck.core.system import processes

from tests import isolation
from tests.repositories import make_repository, pinned

from .plan import Scene

HERE = Path(__file__).parent
PUPPET = (sys.executable, "-I", "-S", str(HERE / "puppet.py"))
TIME_LIMIT_S = 3
"""Of every run, so that each child that hangs is ended."""
GRACE_S = 0.2
SOCKET = "soak"
FILES = 60
"""Of a repository in which worktrees are made."""

WRAPPER_SHIM = """#!/bin/sh
case "$*" in *subdeck.core.wrapper*) exec {before} {python} "$@";; esac
exec {python} "$@"
"""
TMUX_SHIM = """#!/bin/sh
case "$*" in *subdeck.core.wrapper*)
    number=0
    until mkdir "{counter}$number" 2>&-; do number=$((number + 1)); done
    test $number -ne {which} || exec {before} {tmux} "$@";;
esac
exec {tmux} "$@"
"""


class Arena:
    """A world below `root`; entering one replaces the environment of this process."""

    def __init__(self, root: Path, scene: Scene, *, has_groups: bool = True) -> None:
        self.root = root
        self.directory = root / "project"
        self.project = Project(str(self.directory))
        self.runs = Path(self.project.runs)
        self.journals = root / "journals"
        self.told = root / "told"
        self.output = root / "output"
        for directory in (self.directory, self.journals, self.output):
            directory.mkdir(parents=True)
        environment = isolation.variables(root)
        environment["PATH"] = isolation.search_path(environment.get("PATH", os.defpath), root / "bin")
        isolation.enter(environment)
        tempfile.tempdir = None
        os.chdir(self.directory)
        self.pinned: list[str] = []
        """The repository's content before there was any worktree."""
        if scene is Scene.WORKTREE:
            make_repository(self.directory, **{f"file{number}_txt": "text\n" * number for number in range(FILES)})
            (self.directory / "uncommitted.txt").write_text("not committed\n")
            self.pinned = pinned(self.directory)
        else:
            (self.directory / ".git").mkdir()
            (self.directory / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self._settings(scene, has_groups)
        self._preset(scene)

    def _settings(self, scene: Scene, has_groups: bool) -> None:
        settings = {
            "agents": {"puppet": {"command": list(PUPPET)}},
            "agent": "offline" if scene is Scene.OFFLINE else "puppet",
            "default_model": "fake/puppet",
            "models": ["fake/puppet"],
            "grace_seconds": GRACE_S,
            "tmux": {"socket": SOCKET},
            "cgroup": "auto" if has_groups else "off",
        }
        if scene is Scene.QUEUE:
            settings["max_running"] = 1
        file = Path(os.environ["XDG_CONFIG_HOME"], "subdeck", "config.yaml")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings, indent=1))

    def _preset(self, scene: Scene) -> None:
        file = Path(self.project.home, "scout.md")
        file.parent.mkdir(parents=True)
        more = {Scene.STICKY: "sticky: true\n", Scene.WORKTREE: "worktree: true\n"}.get(scene, "")
        file.write_text(
            f"---\nname: scout\ndescription: looks around\ntimeout: {TIME_LIMIT_S}s\n{more}---\nBe brief.\n"
        )

    def journal(self, run: int) -> Path:
        return self.journals / str(run)

    def task(self, run: int, behaviour: str) -> str:
        """Return the task of a run; the offline agent treats it as a question, and searches for its words."""
        return f"soak {behaviour} {self.journal(run)}"

    def start(self, name: str, command: Sequence[str], *, fed: bool = False) -> subprocess.Popen[bytes]:
        """Start a command in the project, with a pipe as stdin if `fed`; its output is in `output`."""
        with (self.output / f"{name}.err").open("ab") as stderr, (self.output / f"{name}.out").open("ab") as stdout:
            stdin = subprocess.PIPE if fed else subprocess.DEVNULL
            return subprocess.Popen(command, cwd=self.directory, stdin=stdin, stdout=stdout, stderr=stderr)

    def shim(self, name: str, before: Sequence[str]) -> str:
        """Make a program that starts wrappers after `before`, and is Python for everything else; return its path."""
        return self._program(self.root / name, WRAPPER_SHIM.format(before=" ".join(before), python=sys.executable))

    def tmux_shim(self, which: int, before: Sequence[str]) -> None:
        """Start the client of this number that opens a window after `before`."""
        directory = self.root / "shims"
        directory.mkdir(exist_ok=True)
        tmux = shutil.which("tmux")
        counter = directory / "client"
        text = TMUX_SHIM.format(counter=counter, which=which, before=" ".join(before), tmux=tmux)
        self._program(directory / "tmux", text)
        os.environ["PATH"] = f"{directory}{os.pathsep}{os.environ['PATH']}"

    def _program(self, path: Path, text: str) -> str:
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def run_dirs(self) -> list[Path]:
        """Return the directories of runs that are visible to others."""
        try:
            return sorted(path for path in self.runs.iterdir() if not path.name.startswith("."))
        except OSError:
            return []

    def number_of(self, run_dir: Path) -> int:
        """Return the number in the plan of a directory's run, from its task."""
        return int(json.loads((run_dir / "meta.json").read_bytes())["task"].rpartition("/")[2])


def below() -> dict[int, str]:
    """Return pid and command line of every living process below this one."""
    return {pid: command_line(pid) for pid in processes.descendants(os.getpid())}


def command_line(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def wrapper_of(run_dir: Path) -> int | None:
    """Return the process that supervises a run: it is below this process and has the run's lock open, but is neither a
    launcher nor the wrapper of another run, which finishes this one.
    """
    wanted = str(run_dir / "lock")
    for pid, command in below().items():
        is_python = "subdeck.core.wrapper" in command and not command.startswith(("strace", "/bin/sh", "tmux"))
        if is_python and wanted in _open_files(pid) and processes.is_marked(pid, run_dir.name):
            return pid
    return None


def tmux_server() -> int | None:
    for pid in processes.descendants(os.getpid()):
        try:
            if Path("/proc", str(pid), "comm").read_text().startswith("tmux: server"):
                return pid
        except OSError:
            continue
    return None


def standby() -> int | None:
    """Return a wrapper on standby without a run; not a child that it has forked, which looks like it until it has
    become its program.
    """
    commands, parents = below(), processes.living()
    waiting = {
        pid for pid, command in commands.items() if command.startswith(sys.executable) and "--standby" in command
    }
    own = (pid for pid in waiting if parents.get(pid) not in waiting)
    return next((pid for pid in own if not any(map(_is_lock, _open_files(pid)))), None)


def _is_lock(path: str) -> bool:
    """Return whether an open file is the lock of a run, or was until it was removed."""
    return path.removesuffix(" (deleted)").endswith("/lock")


def _open_files(pid: int) -> set[str]:
    found: set[str] = set()
    directory = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(directory):
            found.add(os.readlink(f"{directory}/{name}"))
    except OSError:
        pass  # gone on the way
    return found


def kill(pid: int | None) -> bool:
    """Kill a living process; return whether there was one."""
    return pid is not None and processes.send(pid, signal.SIGKILL)


def kill_all() -> bool:
    """Kill every living process below this one; return whether there was any except those watching it."""
    killed = False
    while there := below():  # processes started during this are found by the next look
        for pid in there:
            processes.send(pid, signal.SIGSTOP)  # or one would still see another die
        for pid, command in there.items():
            killed |= kill(pid) and not command.startswith("strace ")
    return killed


def reap() -> None:
    """Reap the processes handed to this one."""
    processes.reap(keep=0)


def clear() -> None:
    """Kill everything below this process until the kernel reports nothing."""
    while True:
        for pid in processes.descendants(os.getpid()):
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.002)
