"""Make the pictures in README: real runs of real agents, seen by the real app."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.events import ToolResult
from subdeck.core.runs import RunRequest, RunSnapshot
from subdeck.tui.app import SubdeckApp

from tests import isolation
from tests.fake_llm import FakeLLM
from tests.tui.deck import Deck
from tests.waiting import wait_until

from . import shop

HERE = Path(__file__).resolve().parent
PNG = HERE.parent / ".cache" / "screenshots"
"""Pictures of the pictures, for looking at."""

FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'
"""A picture in a README cannot load a font from elsewhere."""
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_FONT_FAMILY = re.compile(r"font-family: [^;]*;")


def main() -> int:
    pi = os.environ.get("SUBDECK_TEST_PI", "")
    if not os.access(pi, os.X_OK):
        print(f"there is no pi at {pi or 'SUBDECK_TEST_PI'}; `make screenshots` installs it", file=sys.stderr)
        return 1
    root = Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))
    marker = secrets.token_hex(8)
    isolation.enter(isolation.variables(root) | {isolation.MARKER: marker, "SUBDECK_OFFLINE_PACE": "0"})
    home = Path(os.environ["HOME"])
    project = shop.write(home)
    try:
        with FakeLLM(shop.SCENARIO) as server:
            set_up(home, pi, server.base_url)
            os.chdir(project)
            asyncio.run(take_pictures(Engine.open(kind="app")))
    finally:
        isolation.end_tmux_servers(root)
        left = isolation.end_left_overs(marker)
        shutil.rmtree(root, ignore_errors=True)
    for process in left:
        print(f"was left running: {process}", file=sys.stderr)
    return 1 if left else 0


def set_up(home: Path, pi: str, base_url: str) -> None:
    settings = home / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"agents": {"pi": {"command": [pi]}}, "grace_seconds": 0.5}))
    models = Path(os.environ["PI_CODING_AGENT_DIR"]) / "models.json"
    models.parent.mkdir(parents=True, exist_ok=True)
    models.write_text(json.dumps(shop.providers(base_url)))


def earlier_runs(engine: Engine) -> None:
    """Leave an answer, an answer without a model, a run that was stopped, one that failed, and one that goes on."""
    start(engine, "reviewer", "list the public functions of src/")
    start(engine, "offline-scout", "which environment variables are read?")
    stopped = start(engine, "reviewer", "review the token signatures", wait=False)
    wait_for_tool(engine, stopped)
    engine.stop([stopped.run_id])
    engine.wait([stopped.run_id], timeout=30)
    start(engine, "docs-writer", "write the migration guide for 2.0")
    wait_for_tool(engine, start(engine, "reviewer", "review the parser of orders", wait=False))


def start(engine: Engine, preset: str, task: str, *, wait: bool = True) -> RunSnapshot:
    (run,) = engine.launch((RunRequest(task=task, preset=preset),), background=True)
    if wait:
        (run,) = engine.wait([run.run_id], timeout=60)
    return run


def wait_for_tool(engine: Engine, run: RunSnapshot) -> None:
    events = engine.events(run.run_id)
    wait_until(lambda: any(isinstance(event, ToolResult) for event in events.read()), "a child to have used a tool")


async def take_pictures(engine: Engine) -> None:
    await asyncio.to_thread(earlier_runs, engine)
    app = SubdeckApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        deck = Deck(app, pilot)
        await deck.until(lambda: deck.main._begun and deck.main._header._agent, "the first update")
        await deck.press("1")
        while not (preset := deck.main.presets.preset) or preset.name != "repo-scout":
            await deck.press("j")
        await deck.press("n")
        await deck.until_text("Launch repo-scout")
        await deck.type(shop.QUESTION)
        await deck.until_text(shop.QUESTION)
        picture(app, "launch")
        await deck.press("ctrl+s")
        await deck.until_text("so I look at▋")
        picture(app, "deck")
        await pilot.resize_terminal(80, 24)
        await deck.until_text("so I look at▋")
        picture(app, "narrow")
        running = [run.run_id for run in engine.snapshots() if not run.is_terminal]
        await asyncio.to_thread(engine.stop, running, force=True)
        await asyncio.to_thread(engine.wait, running, timeout=30)


def picture(app: SubdeckApp, name: str) -> None:
    """Write the screen as SVG, and for looking at it as PNG."""
    svg = _FONT_FACES.sub("", app.export_screenshot(title="subdeck"))
    svg = _FONT_FAMILY.sub(f"font-family: {FONTS};", svg)
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)  # librsvg takes a leading no-break space for a blank
    (HERE / f"{name}.svg").write_text(svg)
    PNG.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rsvg-convert", "--zoom", "1.2", "-o", PNG / f"{name}.png", HERE / f"{name}.svg"], check=True)
    print(HERE / f"{name}.svg")


if __name__ == "__main__":
    sys.exit(main())
