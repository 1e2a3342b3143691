"""`subdeck watch`: open the app with only a few runs, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from ..errors import UsageError
from ._command import command
from ._options import runs_argument

MOST = 6
"""Runs that fit side by side."""


@command(
    "watch",
    "subdeck watch 4ae0bd 81c2f7",
    "subdeck watch 4ae0bd --readonly",
)
@runs_argument
@click.option("--readonly", is_flag=True, help="Open it read-only: runs cannot be stopped from here.")
@click.pass_obj
def watch(open_app: Callable[[Sequence[str], bool, bool], int], refs: tuple[str, ...], readonly: bool) -> int:
    """Show up to six runs side by side, live. Press q to close; the runs continue.

    With --json, errors are printed as JSON, as with the other commands.
    """
    if len(refs) > MOST:
        raise UsageError(f"cannot show {len(refs)} runs side by side", where="watch", hint=f"name at most {MOST}")
    return open_app(refs, readonly, True)
