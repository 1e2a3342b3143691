"""How soon `subdeck mcp` answers its client, and what it weighs while it waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .figures import Figure, in_turn_ms, quietly, resident_mb

PRESETS = 20
REPEATS = 7
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        presets = Path(directory, ".pi", "subagents")
        presets.mkdir(parents=True)
        Path(directory, ".git").mkdir()
        for number in range(PRESETS):
            text = f"---\nname: scout-{number}\ndescription: looks at part {number} of the tree\n---\nBe brief.\n"
            (presets / f"scout-{number}.md").write_text(text)
        weights: list[tuple[float, float]] = []
        floor, first_list = in_turn_ms(
            (lambda: quietly(sys.executable, "-c", "import mcp"), lambda: weights.append(_to_list(directory))), REPEATS
        )
        _, again = sorted(weights, key=lambda weight: weight[1])[len(weights) // 2]
        resident = sorted(weight[0] for weight in weights)[len(weights) // 2]
    ratio = first_list / floor
    yield Figure(
        "subdeck mcp: start to the end of tools/list",
        f"{first_list:.0f} ms ({ratio:.2f}x)",
        f"python -c 'import mcp': {floor:.0f} ms",
        "1.6x",
        ratio <= 1.6,
    )
    yield Figure("subdeck mcp: tools/list once more", f"{again:.1f} ms", "", "30 ms", again <= 30)
    yield Figure("subdeck mcp: resident memory", f"{resident:.0f} MB", "", "110 MB", resident <= 110)


def _to_list(directory: str) -> tuple[float, float]:
    """Start a server, list its tools, list them again; return its memory in MiB and the second list's milliseconds."""
    command = [os.path.join(os.path.dirname(sys.executable), "subdeck"), "mcp"]
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        _ask(server, 1, "initialize", CLIENT)
        _send(server, {"method": "notifications/initialized"})
        assert len(_ask(server, 2, "tools/list", {})["tools"]) == 3
        started = time.perf_counter()
        _ask(server, 3, "tools/list", {})
        again = (time.perf_counter() - started) * 1000
        weight = resident_mb(server.pid)
        # Its own way out takes a moment that is not asked about here, and nothing of it has to be told.
        server.kill()
    return weight, again


def _ask(server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> Any:
    _send(server, {"id": number, "method": method, "params": params})
    assert server.stdout
    while (frame := json.loads(server.stdout.readline())).get("id") != number:
        continue
    return frame["result"]


def _send(server: subprocess.Popen[bytes], frame: dict[str, Any]) -> None:
    assert server.stdin
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
    server.stdin.flush()
