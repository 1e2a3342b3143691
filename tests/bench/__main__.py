"""Run the benchmarks: all of them, or those named (modules of this package, in `ALL`).

They take about twelve minutes. `long_life` is the short form: an hour's events in two minutes.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile

from .figures import Figure, print_table

ENGINE = (
    "start_up",
    "first_request",
    "wrapper",
    "unmatched",
    "following",
    "many_runs",
    "searching",
    "work",
    "hosts_code",
    "parent_session",
    "mcp_door",
    "acp_child",
    "claude_child",
    "codex_child",
    "talk",
    "hosts",
    "hosts_memory",
)
APP = ("app_start", "app_live", "app_cpu", "tiles", "run_list", "big_transcript", "changes", "long_life")
ALL = (*ENGINE, *APP)


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, PI_CODING_AGENT_DIR=home)
        figures: list[Figure] = []
        for name in names or ALL:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            figures += importlib.import_module(f".{name}", __package__).measure()
    print_table(figures)
    return 0 if all(figure.reached for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
