"""`subdeck hosts`: what runs on other machines need; a table of commands, as that of `main`."""

from __future__ import annotations

import click

from .main import CommandGroup
from .options import json_option

COMMANDS = {
    "doctor": ("hosts_doctor", "Check what runs need on every host, and how to fix it."),
    "keys": ("hosts_cluster", "Make the certificates of a cluster."),
    "scheduler": ("hosts_cluster", "Serve as the scheduler of a cluster."),
    "serve": ("hosts_cluster", "Make this machine a host of a cluster."),
    "give-up": ("hosts_give_up", "End runs here whose host does not come back."),
    "agent": ("hosts_agent", "Answer who reaches this machine by ssh alone; ssh starts it."),
    "try": ("hosts_cluster", "Try it: a cluster of this machine alone."),
}
"""For each command the module of this package that has it under its name, and one line of help."""


class HostsGroup(CommandGroup):
    table = COMMANDS
    whole = "subdeck hosts"


@click.command("hosts", cls=HostsGroup, invoke_without_command=True)
@json_option
@click.pass_context
def hosts(ctx: click.Context, as_json: bool) -> int:
    """List the hosts that runs can be on: slots used, runs of this project, load, versions, when last heard of.

    Where runs are on hosts that is as their relay knows it; else every host is asked once. Each of the commands takes
    --json, too.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from .hosts_list import hosts_list

    return hosts_list(as_json=as_json)
