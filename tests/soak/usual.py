"""How many system calls each process makes when undisturbed: the counts of traps are drawn from these."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from subdeck.core.system import processes

from tests.waiting import wait_until

from . import arena, strace
from .arena import HERE, SOCKET, Arena
from .plan import Scene, Usual, Victim
from .records import told


def measure() -> Usual:
    """Play an undisturbed run of each kind under strace. Takes some seconds."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(_measure).result()


def _measure() -> Usual:
    processes.become_subreaper()
    root = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    try:
        world = Arena(root, Scene.ALONE)
        logs = {victim: root / f"{victim}.log" for victim in Victim}
        _play(world, logs)
        own = (world.project.root, os.environ["XDG_CONFIG_HOME"], f"/{SOCKET}")
        return {victim: strace.usual_calls(log, own) for victim, log in logs.items() if log.exists()}
    finally:
        arena.clear()
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)


def _play(world: Arena, logs: dict[Victim, Path]) -> None:
    wrapped = world.shim("python", strace.counting(logs[Victim.WRAPPER]))

    def start(victim: Victim, *command: str, **options: bool):
        return world.start(victim, [*strace.counting(logs[victim]), sys.executable, *command], **options)

    def subdeck(victim: Victim, python: str, *words: str, **options: bool):
        return start(victim, str(HERE / "launcher.py"), python, *words, **options)

    teller = start(Victim.FOLLOWER, str(HERE / "teller.py"), world.project.root, str(world.told))
    subdeck(Victim.LAUNCHER, wrapped, "bg", "scout", world.task(0, "plain")).wait()
    wait_until(lambda: told(Path(world.project.session_file("operator"))), "the end to be told")
    arena.kill(teller.pid)
    subdeck(Victim.LOOKER, sys.executable, "status").wait()
    server = subdeck(Victim.MCP, sys.executable, "mcp", fed=True)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "0"}}
    call = {"name": "background_agent", "arguments": {"preset": "scout", "task": world.task(1, "plain")}}
    assert server.stdin
    for frame in (
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
        server.stdin.flush()
    _wait_for_runs(world, 2)
    server.stdin.close()
    server.wait()
    world.tmux_shim(1, strace.counting(logs[Victim.TMUX_CLIENT]))
    command = [sys.executable, str(HERE / "launcher.py"), sys.executable, "bg", "scout", world.task(2, "plain")]
    world.start("tmux", [*command, "--runner", "tmux"]).wait()
    _wait_for_runs(world, 3)


def _wait_for_runs(world: Arena, number: int) -> None:
    wait_until(lambda: sum((path / "result.json").exists() for path in world.run_dirs()) == number, "the runs to end")
