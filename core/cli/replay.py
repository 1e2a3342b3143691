"""`subdeck replay`: make a run from a recorded stream of a child agent."""

from __future__ import annotations

import os
import sys
import tempfile

import click

from ..errors import UsageError
from ..paths import EVENTS
from ..run.model import RunStatus
from ..wrapper import replay as recordings
from .outcomes import EXIT_CODES
from .output import document, json_option, note, pass_on


@click.command("replay")
@click.argument("file", metavar="FILE")
@click.option(
    "--agent", type=click.Choice(["pi", "offline"]), default="pi", help="The agent that wrote it (default: pi)."
)
@click.option("--exit-code", metavar="N", type=int, default=0, help="The exit code of the child; -15 means signal 15.")
@click.option("--stderr", metavar="FILE", help="What the child wrote on stderr.")
@click.option("--events", is_flag=True, help="Print the normalized events, one JSON document per line.")
@click.option("--keep", is_flag=True, help="Keep the run directory and print where it is.")
@json_option
def replay(file: str, agent: str, exit_code: int, stderr: str | None, events: bool, keep: bool, as_json: bool) -> int:
    """Make a run from FILE, the recorded stdout of a child agent in JSON mode (may be .gz), at full speed.

    The transcript goes to stderr and the answer to stdout; the exit code is that of `run`.
    """
    if events and as_json:
        raise UsageError("--events and --json cannot both go to stdout", where="replay", hint="leave one of them out")
    quiet = events or as_json
    recording = recordings.Recording(file, agent, stderr, exit_code)
    directory = tempfile.mkdtemp(prefix="subdeck-replay-")
    try:
        run_dir = recordings.replay(recording, directory, show=_nothing if quiet else _show)
        result = recordings.replayed(run_dir)
        if events:
            _print_events(run_dir)
        elif as_json:
            document(result)
        elif result.status is RunStatus.COMPLETED and result.final_text:
            pass_on(result.final_text)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            _remove(directory)
    if keep:
        note(f"kept in {run_dir}")
    return EXIT_CODES[result.status]


def _nothing(piece: bytes) -> None:
    return


def _show(piece: bytes) -> None:
    sys.stderr.write(piece.decode("utf-8", "replace"))


def _print_events(run_dir: str) -> None:
    with open(os.path.join(run_dir, EVENTS), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            pass_on(line)


def _remove(directory: str) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
