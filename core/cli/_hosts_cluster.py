"""`subdeck hosts keys`, `scheduler`, `serve` and `try`: the parts of a dask cluster.

Each command imports its own modules when it is called, because they need the packages of the extra `hosts`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.util import find_spec

import click

from ..config.effective_hosts import keys_dir, keys_in
from ..config.files import user_hosts
from ..config.host_settings import HostsSettings, TlsFiles, is_address, is_loopback, split_address
from ..errors import RunnerUnavailable, UsageError
from ..paths import spool_dir
from ..system import files
from ..text.plain import one_line, plain
from ..text.shell import shell_word
from ._command import Document, command
from ._options import Whole
from .output import Note, Output, note, say

MOST_SLOTS, MOST_HOSTS = 10_000, 64

ERRORS_AS_JSON = "Print startup errors as JSON."
"""Help of --json for a command that serves."""
keys_option = click.option(
    "--keys",
    metavar="DIR",
    help="Directory with the certificates (default: from your settings, or where hosts keys creates them).",
)


class KeyFiles(Document, frozen=True):
    """The created files."""

    ca: str
    """Certificate of the authority."""
    cert: str
    """Certificate of all machines."""
    key: str
    """Its private key."""


@command(
    "keys",
    "subdeck hosts keys",
    "subdeck hosts keys ~/cluster-keys",
    json_help="Print JSON.",
)
@click.argument("directory", metavar="[DIR]", required=False)
def keys(directory: str | None) -> Output[KeyFiles]:
    """Create the files that admit machines to a cluster: an authority, and one certificate and key for all machines.

    Anyone with the key can run programs on every host. Existing files are never overwritten.
    """
    _need("cryptography")
    from ..hosts.dask.certificates import make_keys

    made = make_keys(os.path.abspath(os.path.expanduser(directory or keys_dir())))
    where = one_line(os.path.dirname(made.ca))
    is_usual = os.path.dirname(made.ca) == keys_dir()
    option = "" if is_usual else f" --keys {shell_word(where)}"
    parent = os.path.dirname(where)
    path = _from_home(parent) if is_usual else parent
    there = shell_word(path)
    make = f"mkdir -p {there}"  # read by two shells, here and there
    lines = [
        "Copy the three files to the same directory on the scheduler's machine and on every "
        "host, readable only by you:",
        f"  ssh HOST {make if there == path else shell_word(make)}",
        f"  scp -rp {shell_word(where)} HOST:{there}/",
        "Then run these commands, with the scheduler's name or address instead of HEAD:",
        f"  subdeck hosts scheduler tls://HEAD:8786{option}     there",
        f"  subdeck hosts serve tls://HEAD:8786{option}         on every host",
        "and add this to your settings:",
        "  hosts:",
        "    scheduler: tls://HEAD:8786",
    ]
    if not is_usual:
        lines.append(f"    tls: {{ca: {made.ca}, cert: {made.cert}, key: {made.key}}}")
    text = (f"Created ca.pem, me.pem and me.key in {where}", Note(plain("\n".join(lines))))
    return Output(KeyFiles(made.ca, made.cert, made.key), text)


def _from_home(directory: str) -> str:
    """Return a directory relative to the home if it is below it: ssh and scp resolve that in the other home."""
    home = os.path.expanduser("~")
    below = os.path.commonpath((home, directory)) == home and directory != home
    return os.path.relpath(directory, home) if below else directory


@command(
    "scheduler",
    "subdeck hosts scheduler tls://head:8786 --keys ~/cluster-keys",
    "subdeck hosts scheduler tcp://127.0.0.1:8786",
    json_help=ERRORS_AS_JSON,
)
@click.argument("address", required=False)
@keys_option
def scheduler(address: str | None, keys: str | None) -> None:
    """Serve as the scheduler of a cluster at ADDRESS, such as tls://head:8786, until it is stopped.

    It listens only at ADDRESS. An address other than loopback requires certificates from `subdeck hosts keys`.
    """
    _need("distributed")
    from ..hosts.dask.cluster import Keeper, scheduler_program
    from ..hosts.dask.security import certificates
    from ..paths import state_file

    settings = user_hosts()
    scheduler_address = _address(address, settings)
    program = scheduler_program(
        scheduler_address, certificates(scheduler_address, _tls(keys, settings)), state_file("hosts", "scheduler")
    )
    if alone := _leads_to_loopback(scheduler_address):
        note(
            f"! {one_line(scheduler_address)} is {alone} here, which other machines cannot reach: use a network "
            "address of this machine"
        )
    with Keeper(note) as keeper:
        keeper.add(program)
        note(f"The scheduler listens at {one_line(scheduler_address)}. Press ctrl-C to stop.")
        keeper.run()


@command(
    "serve",
    "subdeck hosts serve tls://head:8786 --slots 8 --label gpu=1",
    "subdeck hosts serve tcp://127.0.0.1:8786",
    json_help=ERRORS_AS_JSON,
)
@click.argument("address", required=False)
@keys_option
@click.option(
    "--slots",
    type=Whole(1, MOST_SLOTS),
    help="Maximum number of parallel runs (default: by free memory, 400 MB per agent, and cores).",
)
@click.option(
    "--label",
    "labels",
    metavar="NAME=COUNT",
    multiple=True,
    help="A resource of this host, such as gpu=2; may be repeated.",
)
@click.option("--name", default="", help="Name of the host (default: the machine's name).")
@click.option("--spool", metavar="DIR", help="Directory for the runs: on a local disk, never shared by two hosts.")
@click.option("--listen", metavar="HOST", default="", help="Address at which other machines reach this host.")
def serve(
    address: str | None,
    keys: str | None,
    slots: int | None,
    labels: tuple[str, ...],
    name: str,
    spool: str | None,
    listen: str,
) -> None:
    """Serve this machine as a host of the cluster whose scheduler is at ADDRESS, until it is stopped.

    Runs continue without it, and its next start finds them again. Under systemd this needs KillMode=process.
    """
    _need("distributed")
    from ..hosts.dask.cluster import Host, Keeper, usual_slots
    from ..hosts.dask.security import certificates

    settings = user_hosts()
    scheduler_address = _address(address, settings)
    directory = os.path.abspath(os.path.expanduser(spool)) if spool else spool_dir()
    host = Host(
        scheduler=scheduler_address,
        certificates=certificates(scheduler_address, _tls(keys, settings)),
        slots=slots or usual_slots(),
        spool=directory,
        labels=labels_in(labels),
        name=_name(name),
        listen=_listen(listen),
    )
    with Keeper(note) as keeper:
        keeper.add(host.program)
        if not files.is_local(directory):
            note(f"! {one_line(directory)} may be on a network file system; use --spool to name a local disk")
        note(
            f"Serving as a host of {one_line(scheduler_address)}: {host.slots} slots, runs in "
            f"{one_line(directory)}. Press ctrl-C to stop."
        )
        keeper.run()


@command(
    "try",
    "subdeck hosts try",
    "subdeck hosts try 3 --slots 2",
    json_help=ERRORS_AS_JSON,
)
@click.argument("count", type=Whole(1, MOST_HOSTS), default=2)
@click.option("--slots", type=Whole(1, MOST_SLOTS), default=4, show_default=True, help="Slots per host.")
def try_(count: int, slots: int) -> None:
    """Try runs on hosts: run a cluster with COUNT hosts on this machine until ctrl-C.

    While it is up and your settings name no hosts, runs with --runner hosts use it. When it ends, they are stopped.
    """
    _need("distributed", "cryptography")
    from ..hosts.dask.trial import try_cluster

    try_cluster(count, slots, say=say, report=note)


def _need(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            raise RunnerUnavailable(
                f"a cluster needs the package {package}, which is not installed", hint='pip install "subdeck[hosts]"'
            )


def _address(named: str | None, settings: HostsSettings) -> str:
    address = named or settings.scheduler
    if not address:
        raise UsageError(
            "no scheduler address given",
            where="ADDRESS",
            hint="give its address, such as tls://head:8786, or set hosts.scheduler",
        )
    if not is_address(address):
        raise UsageError(
            f"{one_line(address, 200)} is not a valid scheduler address",
            where="ADDRESS",
            hint="use an address such as tls://head:8786",
        )
    return address


def _leads_to_loopback(address: str) -> str:
    """Return the loopback address that a name resolves to here, as on Debian for its own host name; empty for none."""
    if is_loopback(address):
        return ""
    import socket

    host, port = split_address(address)
    try:
        resolved = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""  # the scheduler reports it
    return resolved if is_loopback(f"tcp://{resolved}:0" if "." in resolved else f"tcp://[{resolved}]:0") else ""


def _tls(directory: str | None, settings: HostsSettings) -> TlsFiles:
    return keys_in(os.path.abspath(os.path.expanduser(directory))) if directory else settings.tls


def labels_in(written: Iterable[str]) -> dict[str, float]:
    """Parse the resources of a host, such as `gpu=2`, into amounts by name. Raises UsageError."""
    labels: dict[str, float] = {}
    for label in written:
        name, _, count = label.partition("=")
        if name == "subdeck" or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}=[0-9]{1,9}(\.[0-9]{1,6})?", label):
            raise UsageError(
                f"{one_line(label, 80)} is not a valid resource",
                where="--label",
                hint="use LABEL=NUMBER, such as gpu=1 or mem=64",
            )
        labels[name] = float(count)
    return labels


def _name(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        raise UsageError(
            f"{one_line(name, 80)} is not a valid host name",
            where="--name",
            hint="use only letters, digits, _, . and -",
        )
    return name


def _listen(host: str) -> str:
    if host and not re.fullmatch(r"[A-Za-z0-9_:\[\]][A-Za-z0-9_.:\[\]-]*", host):
        raise UsageError(
            f"{one_line(host, 80)} is not a valid address", where="--listen", hint="use an address such as 10.0.0.7"
        )
    return host
