"""Run the benchmarks: all of them, or those named (modules of this package, in `ALL`).

One that fails is reported at the end, and takes no figure from the others. All take about twelve minutes. `long_life`
is the short form: an hour's events in two minutes.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import traceback

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
    figures: list[Figure] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, PI_CODING_AGENT_DIR=home)
        for name in names or ALL:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            try:
                for figure in importlib.import_module(f".{name}", __package__).measure():
                    figures.append(figure)
            except Exception as error:
                traceback.print_exc()
                failed.append(f"{name}: {type(error).__name__}: {error}")
    print_table(figures)
    for reason in failed:
        print(f"FAILED  {reason}")
    return 0 if not failed and all(figure.reached for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
