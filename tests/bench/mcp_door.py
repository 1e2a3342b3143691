"""The time until `subdeck mcp` answers its client, and its memory while it waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .figures import Figure, in_turn_ms, resident_mb, usually

PRESETS = usually(20, smoke=2)
REPEATS = usually(9, smoke=1)
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}

LEAST = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""
"""A minimal server."""


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        presets = Path(directory, ".pi", "subagents")
        presets.mkdir(parents=True)
        Path(directory, ".git").mkdir()
        for number in range(PRESETS):
            text = f"---\nname: scout-{number}\ndescription: looks at part {number} of the tree\n---\nBe brief.\n"
            (presets / f"scout-{number}.md").write_text(text)
        ours = [os.path.join(os.path.dirname(sys.executable), "subdeck"), "mcp"]
        lists: list[tuple[float, float, float]] = []
        floor, first, _ = in_turn_ms(
            (
                lambda: _greet([sys.executable, "-c", LEAST], directory),
                lambda: _greet(ours, directory),
                lambda: lists.append(_to_list(ours, directory)),
            ),
            REPEATS,
        )
        listed, again, resident = (sorted(values)[len(values) // 2] for values in zip(*lists, strict=True))
    floor_text = f"a loop over stdin: {floor:.0f} ms"
    yield Figure(
        "subdeck mcp: start to the answer of initialize", f"{first:.0f} ms", floor_text, "150 ms", first <= 150
    )
    yield Figure("subdeck mcp: start to the end of tools/list", f"{listed:.0f} ms", floor_text, "250 ms", listed <= 250)
    yield Figure("subdeck mcp: tools/list once more", f"{again:.1f} ms", "", "30 ms", again <= 30)
    yield Figure("subdeck mcp: resident before the first call", f"{resident:.0f} MB", "", "40 MB", resident <= 40)


def _greet(command: Sequence[str], directory: str) -> None:
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        _ask(server, 1, "initialize", CLIENT)
        server.kill()


def _to_list(command: Sequence[str], directory: str) -> tuple[float, float, float]:
    """Start a server, list its tools, list them again; return the milliseconds of both, and its memory in MiB."""
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        _ask(server, 1, "initialize", CLIENT)
        _send(server, {"method": "notifications/initialized"})
        assert _ask(server, 2, "tools/list", {})["tools"], "the server offers no tools"
        listed = time.perf_counter()
        _ask(server, 3, "tools/list", {})
        again = time.perf_counter()
        _ask(server, 4, "prompts/list", {})
        weight = resident_mb(server.pid)
        # Its own exit takes a moment that is not measured here.
        server.kill()
    return (listed - begun) * 1000, (again - listed) * 1000, weight


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
