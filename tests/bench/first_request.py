"""The time from `subdeck run` to its model's first request, against pi started by hand."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.house.set_up import MCP_CLIENTS_HOME, NEW_PI_HOME, NEW_PI_VERSION
from tests.real.model_server import ModelServer, said
from tests.real.programs import PI

from .figures import Figure, not_measured, usually

REPEATS = usually(15, smoke=1)
FILES = usually(300, smoke=10)
TASK = "Say hello."


def measure() -> Iterator[Figure]:
    if not os.path.exists(_pi()):
        yield not_measured("first model request of pi", f"{_pi()} is not there")
        return
    with tempfile.TemporaryDirectory() as directory, ModelServer(said("Hello.")) as server:
        project = Path(os.path.realpath(directory)) / "project"
        repository = project.parent / "repository"
        (project / ".git").mkdir(parents=True)
        environment, in_git = _configure(project, server.url), _configure(repository, server.url)
        _make_repository(repository)
        subdeck = (os.path.join(os.path.dirname(sys.executable), "subdeck"), "run", "greeter", TASK)
        by_hand = (_pi(), "--mode", "json", "--model", "fake/test", "--session", str(project / "by-hand.jsonl"))
        starts = (
            (subdeck, project, environment),
            (by_hand, project, environment),
            (subdeck, repository, in_git),
            (by_hand, repository, in_git),
        )
        taken: tuple[list[float], ...] = tuple([] for _ in starts)
        for _ in range(REPEATS):
            for start, times in zip(starts, taken, strict=True):
                times.append(_until_asked(server, *start))
        medians = [statistics.median(times) for times in taken]
        for where, ours, floor in (("", *medians[:2]), (", in a git repository", *medians[2:])):
            ratio = ours / floor
            yield Figure(
                f"exec of subdeck run to the first model request, pi {NEW_PI_VERSION}{where}",
                f"{ratio:.2f}x ({ours:.0f} ms)",
                f"pi by hand: {floor:.0f} ms",
                "1.2x",
                ratio <= 1.2,
            )


def _make_repository(root: Path) -> None:
    """Make a repository of some files there, in which a run's changes are recorded."""
    (root / ".gitignore").write_text("home/\n.pi/\n")
    for number in range(FILES):
        (root / f"file{number}.txt").write_text(f"{number}\n")
    author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "begin")):
        subprocess.run(("git", *words), cwd=root, check=True)


def _until_asked(server: ModelServer, argv: Sequence[str], project: Path, environment: dict[str, str]) -> float:
    """Return the milliseconds from the start of a command to its first request; wait for its end."""
    server.requests.clear()
    started = time.perf_counter()
    process = subprocess.Popen(
        argv,
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, complaint = process.communicate(TASK.encode(), timeout=60)
    if process.returncode or not server.requests:
        raise RuntimeError(f"{argv[0]} asked nothing: {complaint.decode()}")
    return (server.requests[0].at - started) * 1000


def _pi() -> str:
    return str(NEW_PI_HOME / "node_modules" / ".bin" / "pi")


def _configure(project: Path, model_server: str) -> dict[str, str]:
    """Write a preset and pi's models below the project; return the environment for them."""
    home = project / "home"
    presets = project / ".pi" / "subagents"
    presets.mkdir(parents=True)
    PI.configure(home, model_server)
    (presets / "greeter.md").write_text(
        "---\nname: greeter\ndescription: says hello\nmodel: fake/test\n---\nYou are friendly.\n"
    )
    node = MCP_CLIENTS_HOME / "node_modules" / "node" / "bin"
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "PATH": os.pathsep.join((os.path.dirname(_pi()), str(node), os.environ["PATH"]))}
