"""`subdeck hosts agent`: the server that ssh starts on a host."""

from __future__ import annotations

import os

import click

from ..paths import spool_dir
from ._command import command
from ._hosts_cluster import ERRORS_AS_JSON, MOST_SLOTS, labels_in
from ._options import Whole


@command(
    "agent",
    "ssh h1 subdeck hosts agent",
    "subdeck hosts agent --slots 8 --label gpu=1 # in authorized_keys",
    json_help=ERRORS_AS_JSON,
)
@click.option("--spool", metavar="DIR", help="Directory for the runs: on a local disk, never shared by two hosts.")
@click.option(
    "--slots",
    type=Whole(1, MOST_SLOTS),
    help="Maximum number of parallel runs (default: ssh_slots in the settings of the connecting user).",
)
@click.option(
    "--label",
    "labels",
    metavar="NAME=COUNT",
    multiple=True,
    help="A resource of this host, such as gpu=2; may be repeated.",
)
def agent(spool: str | None, slots: int | None, labels: tuple[str, ...]) -> None:
    """Serve this machine's runs over ssh, for a user who lists it under hosts: ssh: in their settings.

    ssh starts it as `subdeck hosts agent`. To set slots and resources on this machine, put the command before the key
    in authorized_keys: command="subdeck hosts agent --slots 8 --label gpu=1". The server process outlives the
    connection. It exits after ten minutes without a connection and without an open run.
    """
    from ..hosts.ssh.stdio import join

    directory = os.path.abspath(os.path.expanduser(spool)) if spool else spool_dir()
    join(directory, slots=slots or 0, labels=labels_in(labels))
