"""Pictures of real runs on a cluster of only this machine, and of its hosts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.run.model import RunnerKind
from subdeck.core.spec.request import RunRequest
from subdeck.core.system import processes
from subdeck.tui.app import SubdeckApp
from subdeck.tui.hosts.screen import HostsScreen

from tests.core.hosts.clusters import trial
from tests.tui.open_deck import Deck
from tests.waiting import wait_until

from . import shop
from .tour import SIZE, Picture, until_screen, wait_for_tool

LOW = (120, 12)
SETTINGS = {"max_running": 20, "grace_seconds": 0.5, "hosts": {"code": "git"}}
ENDED = (shop.REVIEWS[1], "list the public functions of src/")
GOING_ON = (shop.REVIEWS[0], shop.REVIEWS[2], shop.QUEUED, "review README.md", "review how orders are paid")


async def hosts(project: Path, picture: Picture) -> None:
    """Take the pictures `on-hosts` and `hosts`; stop running runs."""
    with trial(3, slots=4, cwd=project) as kept:
        settings = Path(os.environ["HOME"], ".config/subdeck/config.yaml")
        settings.write_text(json.dumps(SETTINGS))
        engine = Engine.open(str(project), kind="app")
        await asyncio.to_thread(launch, engine)
        app = SubdeckApp(engine)
        async with app.run_test(size=SIZE) as pilot:
            deck = Deck(app, pilot)
            await deck.until_text("hosts 3/3")
            await deck.press("2", "g")
            await deck.until_text("so I look at▋")
            app.clear_notifications()
            await deck.pilot.pause(0.5)
            picture(app, "on-hosts")
            await deck.act("hosts")
            await until_screen(deck, HostsScreen)
            await deck.pilot.resize_terminal(*LOW)
            worker = worker_of(kept.pid, "h3")
            processes.send(worker, signal.SIGSTOP)
            await deck.press("G")
            await deck.until(lambda: "h3 · last seen" in deck.screen_text, "a host out of reach", 60)
            app.clear_notifications()
            await deck.pilot.pause(0.5)
            picture(app, "hosts")
            processes.send(worker, signal.SIGCONT)
        await asyncio.to_thread(end, engine)


def worker_of(cluster: int, host: str) -> int:
    """Return the process that acts as this host in the cluster kept by another process."""
    return next(pid for pid in processes.descendants(cluster) if host in processes.arguments(pid))


def launch(engine: Engine) -> None:
    """Launch runs on all hosts, some of them finished, and one that no host can take."""
    ended = [_launch(engine, "reviewer", task) for task in ENDED]
    engine.wait(ended, timeout=60)
    _launch(engine, "fixer", shop.FIX, needs={"gpu": 1.0})
    going_on = [_launch(engine, "reviewer", task) for task in GOING_ON]
    going_on.append(_launch(engine, "repo-scout", shop.QUESTION))
    wait_until(lambda: all(run.status == "running" for run in engine.snapshots(going_on)), "all to be on a host", 60)
    for run in engine.snapshots(going_on):
        wait_for_tool(engine, run)


def _launch(engine: Engine, preset: str, task: str, needs: dict[str, float] | None = None) -> str:
    """Launch a run outside a group, because a group runs only a few at a time."""
    request = RunRequest(task=task, preset=preset, runner=RunnerKind.HOSTS, needs=needs)
    (run,) = engine.launch([request], background=True)
    return run.run_id


def end(engine: Engine) -> None:
    """Stop the runs, and the relay, which would stay for a while."""
    open_runs = [run.run_id for run in engine.snapshots() if not run.has_ended]
    engine.stop(open_runs, force=True)
    engine.wait(open_runs, timeout=60)
    relay = int(Path(engine.project.runs, ".relay").read_text())
    os.kill(relay, signal.SIGTERM)
    wait_until(lambda: relay not in processes.living(), "the relay to go")
