"""`subdeck hosts agent`: what ssh starts on a host."""

from __future__ import annotations

import os

import click

from ..paths import spool_dir
from .hosts_cluster import MOST_SLOTS, labels_in
from .options import Whole


@click.command("agent")
@click.option("--spool", metavar="DIR", help="Where runs are kept: on a disk of its own, and never two hosts' in one.")
@click.option(
    "--slots",
    type=Whole(1, MOST_SLOTS),
    help="How many runs at the same time; else what the one says who reaches it (hosts: ssh_slots).",
)
@click.option("--label", "labels", metavar="NAME=COUNT", multiple=True, help="What else it has, such as gpu=2.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON what keeps it from starting.")
def agent(spool: str | None, slots: int | None, labels: tuple[str, ...], as_json: bool) -> None:
    """Answer the one who has runs here and reaches this machine by ssh alone (hosts: ssh: in the settings there).

    ssh starts it as `subdeck hosts agent`. To say here how many runs this machine takes, or what it has, name the
    command in authorized_keys, before the key: command="subdeck hosts agent --slots 8 --label gpu=1". What it starts
    there outlives the connection: it ends when nobody was connected, and no run was open, for ten minutes.
    """
    from ..hosts.ssh.stdio import join

    directory = os.path.abspath(os.path.expanduser(spool)) if spool else spool_dir()
    join(directory, slots=slots or 0, labels=labels_in(labels))
