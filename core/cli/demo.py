"""`subdeck demo`: a demo project with simulated runs, in a private directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from ..errors import UsageError
from ..paths import is_demo
from ._command import command

OpenApp = Callable[[Sequence[str], bool, bool], int]


@command(
    "demo",
    "subdeck demo",
    "subdeck demo requests # while it is open",
    'subdeck demo reply RUN deny --word "not on a Friday"',
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def demo(open_app: OpenApp, command: tuple[str, ...]) -> int:
    """Open the app on a demo project: 300 simulated runs, 30 of them running, one with a permission request.

    The demo uses none of your agents, keys or settings. It lives in a private temporary directory, which is removed
    at the end. Nothing can be launched.

    With COMMAND, run that command inside the demo that is open in another terminal.
    """
    from ..demo import playground
    from .main import main

    if is_demo():
        raise UsageError("this is already a demo", where="demo", hint="remove the word demo")
    if command:
        directory = playground.running()
        if directory is None:
            raise UsageError("no demo is running", where="demo", hint="start one in another terminal: subdeck demo")
        playground.enter(directory)
        return main(open_app, command)
    with playground.made() as directory:
        playground.enter(directory)
        return open_app((), False, False)
