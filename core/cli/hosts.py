"""`subdeck hosts`: the commands for runs on other machines, in a table like that of `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import click

from ._command import command
from .main import CommandGroup

if TYPE_CHECKING:
    from ._hosts_list import HostList
    from .output import Output

COMMANDS = {
    "doctor": ("hosts_doctor", "Check every host, and show how to fix problems."),
    "keys": ("_hosts_cluster", "Create the certificates for a cluster."),
    "scheduler": ("_hosts_cluster", "Serve as the scheduler of a cluster."),
    "serve": ("_hosts_cluster", "Make this machine a host of a cluster."),
    "give-up": ("hosts_give_up", "Abandon runs on hosts that will not come back."),
    "agent": ("hosts_agent", "Serve this machine's runs over ssh (started by ssh)."),
    "try": ("_hosts_cluster", "Try a local cluster on this machine."),
}
"""By command: the module of this package that defines it, and one line of help."""


class HostsGroup(CommandGroup):
    groups: ClassVar = {"Commands": COMMANDS}
    table = COMMANDS
    unlisted = frozenset(("agent",))
    whole = "subdeck hosts"


@command(
    "hosts",
    "subdeck hosts",
    "subdeck hosts doctor h1",
    "subdeck hosts try 3 # three hosts on this machine",
    cls=HostsGroup,
    invoke_without_command=True,
)
@click.pass_context
def hosts(ctx: click.Context) -> Output[HostList] | None:
    """List your hosts: slots used, runs of this project, load, versions and when each was last seen.

    If runs are on hosts, the list shows what their relay knows. Otherwise, every host is asked once. Each subcommand
    also takes --json.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from ._hosts_list import hosts_list

    return hosts_list()
