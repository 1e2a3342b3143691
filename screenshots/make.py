"""Make the pictures in the documents: real runs of real agents, and a made-up busy deck, in the real app."""

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
from subdeck.tui.app import SubdeckApp

from tests import isolation
from tests.real.model_server import ModelServer

from . import film, shop
from .animation import Animation
from .changes import changes
from .day import day, write
from .hosts import hosts
from .talk import talk
from .tour import tour

HERE = Path(__file__).resolve().parent
PNG = HERE.parent / ".cache" / "screenshots"
"""The pictures as PNG, for inspection."""

FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'
"""A picture in a README cannot load a font from elsewhere."""
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_LAST_LINE = re.compile(r'(-clip-terminal">\s*<rect x="0" y="0" width="[0-9.]+" height=")([0-9.]+)')
"""Rich's clipping rectangle, which cuts off the descenders of the last line."""
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
    project, busy, tried = shop.write(home), write(home), film.write(home)
    try:
        with ModelServer(scripts=shop.SCRIPTS | {film.MODEL: film.SCRIPT}) as server:
            set_up(home, pi, server.url)
            os.chdir(project)
            asyncio.run(tour(Engine.open(kind="app"), picture))
            asyncio.run(day(busy, picture))
            asyncio.run(talk(picture))
            os.chdir(tried)
            animated(asyncio.run(film.film(tried, picture)), "tour")
            os.chdir(project)
            asyncio.run(changes(project, picture))
            asyncio.run(hosts(project, picture))
    finally:
        isolation.end_tmux_servers(root)
        left = isolation.end_left_overs(marker)
        shutil.rmtree(root, ignore_errors=True)
    for process in left:
        print(f"was left running: {process}", file=sys.stderr)
    return 1 if left else 0


def set_up(home: Path, pi: str, url: str) -> None:
    """Write the settings, pi in a user's usual place, and its models."""
    settings = home / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"max_running": 3, "grace_seconds": 0.5, "checks": film.CHECKS}))
    programs = home / ".local/bin"
    programs.mkdir(parents=True)
    (programs / "pi").symlink_to(Path(pi).resolve())
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    models = Path(os.environ["PI_CODING_AGENT_DIR"]) / "models.json"
    models.parent.mkdir(parents=True, exist_ok=True)
    models.write_text(json.dumps(shop.providers(url, film.MODEL)))


def animated(made: Animation, name: str) -> None:
    """Write an animated picture, and each frame as PNG."""
    (HERE / f"{name}.svg").write_text(made.svg())
    print(HERE / f"{name}.svg", f"({made.seconds:.0f} s)")
    PNG.mkdir(parents=True, exist_ok=True)
    for number in range(len(made.frames)):
        frame = PNG / f"{name}-{number:02}.png"
        shown = made.svg(number).encode()
        subprocess.run(["rsvg-convert", "--zoom", "1.2", "-o", frame], input=shown, check=True)


def picture(app: SubdeckApp, name: str) -> None:
    """Write the screen as SVG, and as PNG for inspection."""
    svg = _FONT_FACES.sub("", app.export_screenshot(title="subdeck"))
    svg = _FONT_FAMILY.sub(f"font-family: {FONTS};", svg)
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)  # librsvg turns a leading no-break space into a space
    svg = _LAST_LINE.sub(lambda found: f"{found[1]}{float(found[2]) + 6:g}", svg)
    (HERE / f"{name}.svg").write_text(svg)
    PNG.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rsvg-convert", "--zoom", "1.2", "-o", PNG / f"{name}.png", HERE / f"{name}.svg"], check=True)
    print(HERE / f"{name}.svg")


if __name__ == "__main__":
    sys.exit(main())
