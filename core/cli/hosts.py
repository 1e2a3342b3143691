"""`subdeck hosts`: what runs on other machines need; a table of commands, as that of `main`."""

from __future__ import annotations

import click

from ._options import json_option
from .main import CommandGroup

COMMANDS = {
    "doctor": ("hosts_doctor", "Check every host, and show how to fix problems."),
    "keys": ("_hosts_cluster", "Create the certificates for a cluster."),
    "scheduler": ("_hosts_cluster", "Serve as the scheduler of a cluster."),
    "serve": ("_hosts_cluster", "Make this machine a host of a cluster."),
    "give-up": ("hosts_give_up", "Abandon runs on hosts that will not come back."),
    "agent": ("hosts_agent", "Serve this machine's runs over ssh (started by ssh)."),
    "try": ("_hosts_cluster", "Try a local cluster on this machine."),
}
"""For each command the module of this package that has it under its name, and one line of help."""


class HostsGroup(CommandGroup):
    table = COMMANDS
    whole = "subdeck hosts"


@click.command("hosts", cls=HostsGroup, invoke_without_command=True)
@json_option
@click.pass_context
def hosts(ctx: click.Context, as_json: bool) -> int:
    """List your hosts: slots used, runs of this project, load, versions and when each was last seen.

    If runs are on hosts, the list shows what their relay knows. Otherwise, every host is asked once. Each subcommand
    also takes --json.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from ._hosts_list import hosts_list

    return hosts_list(as_json=as_json)
