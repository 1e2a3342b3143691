"""`subdeck hosts keys`, `scheduler`, `serve` and `try`: what a cluster of dask consists of.

Their own parts are imported when they are called: they need what the extra `hosts` brings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.util import find_spec

import click

from ..config.files import user_hosts
from ..config.host_settings import HostsSettings, TlsFiles, is_address, is_loopback, split_address
from ..config.hosts_in_force import keys_dir, keys_in
from ..errors import RunnerUnavailable, UsageError
from ..paths import spool_dir
from ..system import files
from ..text.plain import one_line, plain
from ..text.shell import shell_word
from .options import Whole
from .output import document, note, say

MOST_SLOTS, MOST_HOSTS = 10_000, 64

errors_as_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON what keeps it from starting.")
keys_option = click.option(
    "--keys",
    metavar="DIR",
    help="Where its certificates are; else what the settings say, or where hosts keys makes them.",
)


@click.command("keys")
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def keys(directory: str | None, as_json: bool) -> None:
    """Make what lets machines into a cluster: an authority, and one certificate and key for all of them.

    Whoever has the key can run programs on every host. Files that are there already are never overwritten.
    """
    _need("cryptography")
    from ..hosts.dask.certificates import make_keys

    made = make_keys(os.path.abspath(os.path.expanduser(directory or keys_dir())))
    if as_json:
        document({"ca": made.ca, "cert": made.cert, "key": made.key})
        return
    where = one_line(os.path.dirname(made.ca))
    say(f"Made ca.pem, me.pem and me.key in {where}")
    is_usual = os.path.dirname(made.ca) == keys_dir()
    option = "" if is_usual else f" --keys {shell_word(where)}"
    parent = os.path.dirname(where)
    path = _from_home(parent) if is_usual else parent
    there = shell_word(path)
    make = f"mkdir -p {there}"  # read by two shells, here and there
    lines = [
        "Copy the three files to the same place on the machine of the scheduler and on every host, for yourself alone:",
        f"  ssh HOST {make if there == path else shell_word(make)}",
        f"  scp -rp {shell_word(where)} HOST:{there}/",
        "Then start, with the scheduler's own name or address in place of HEAD:",
        f"  subdeck hosts scheduler tls://HEAD:8786{option}     there",
        f"  subdeck hosts serve tls://HEAD:8786{option}         on every host",
        "and say in your settings:",
        "  hosts:",
        "    scheduler: tls://HEAD:8786",
    ]
    if not is_usual:
        lines.append(f"    tls: {{ca: {made.ca}, cert: {made.cert}, key: {made.key}}}")
    note(plain("\n".join(lines)))


def _from_home(directory: str) -> str:
    """Return a directory as ssh and scp take it where the home may be another: relative to that, if it is below it."""
    home = os.path.expanduser("~")
    below = os.path.commonpath((home, directory)) == home and directory != home
    return os.path.relpath(directory, home) if below else directory


@click.command("scheduler")
@click.argument("address", required=False)
@keys_option
@errors_as_json
def scheduler(address: str | None, keys: str | None, as_json: bool) -> None:
    """Serve as the scheduler of a cluster, at ADDRESS, such as tls://head:8786; until it is told to end.

    It listens there and nowhere else; anything but loopback only with certificates, which `subdeck hosts keys` makes.
    """
    _need("distributed")
    from ..hosts.dask.keeper import Keeper
    from ..hosts.dask.scheduler import scheduler_program
    from ..hosts.dask.security import certificates
    from ..paths import state_file

    settings = user_hosts()
    place = _address(address, settings)
    program = scheduler_program(place, certificates(place, _tls(keys, settings)), state_file("hosts", "scheduler"))
    if alone := _leads_to_loopback(place):
        note(f"! {one_line(place)} is {alone} here, where no other machine reaches it: name an address of this machine")
    with Keeper(note) as keeper:
        keeper.add(program)
        note(f"The scheduler listens at {one_line(place)}; ctrl-C ends it.")
        keeper.run()


@click.command("serve")
@click.argument("address", required=False)
@keys_option
@click.option(
    "--slots",
    type=Whole(1, MOST_SLOTS),
    help="How many runs at the same time; else what free memory (400 MB a child) and cores allow.",
)
@click.option("--label", "labels", metavar="NAME=COUNT", multiple=True, help="What else it has, such as gpu=2.")
@click.option("--name", default="", help="What it is called; else as the machine.")
@click.option("--spool", metavar="DIR", help="Where runs are kept: on a disk of its own, and never two hosts' in one.")
@click.option("--listen", metavar="HOST", default="", help="The address by which others reach it.")
@errors_as_json
def serve(
    address: str | None,
    keys: str | None,
    slots: int | None,
    labels: tuple[str, ...],
    name: str,
    spool: str | None,
    listen: str,
    as_json: bool,
) -> None:
    """Make this machine a host of the cluster whose scheduler is at ADDRESS, until it is told to end.

    Runs go on without it, and the next one takes them over. systemd needs KillMode=process for that.
    """
    _need("distributed")
    from ..hosts.dask.keeper import Keeper
    from ..hosts.dask.security import certificates
    from ..hosts.dask.worker import Host, usual_slots

    settings = user_hosts()
    place = _address(address, settings)
    directory = os.path.abspath(os.path.expanduser(spool)) if spool else spool_dir()
    host = Host(
        scheduler=place,
        certificates=certificates(place, _tls(keys, settings)),
        slots=slots or usual_slots(),
        spool=directory,
        labels=labels_in(labels),
        name=_name(name),
        listen=_listen(listen),
    )
    with Keeper(note) as keeper:
        keeper.add(host.program)
        if not files.is_local(directory):
            note(f"! {one_line(directory)} may be on a network file system; --spool names a disk of this machine")
        note(f"A host of {one_line(place)}: {host.slots} slots, runs in {one_line(directory)}; ctrl-C ends it.")
        keeper.run()


@click.command("try")
@click.argument("count", type=Whole(1, MOST_HOSTS), default=2)
@click.option("--slots", type=Whole(1, MOST_SLOTS), default=4, show_default=True, help="Of each host.")
@errors_as_json
def try_(count: int, slots: int, as_json: bool) -> None:
    """Try runs on hosts: keep a cluster with COUNT hosts on this machine alone, until ctrl-C.

    As long as it is kept, and no hosts are set, runs with --runner hosts run on it; when it ends, they are stopped.
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
            "which scheduler?", where="ADDRESS", hint="name it, such as tls://head:8786, or set hosts.scheduler"
        )
    if not is_address(address):
        raise UsageError(
            f"{one_line(address, 200)} is no address of a scheduler", where="ADDRESS", hint="such as tls://head:8786"
        )
    return address


def _leads_to_loopback(address: str) -> str:
    """Return the address of this machine alone that a name stands for here, as Debian has it for its own host name."""
    if is_loopback(address):
        return ""
    import socket

    host, port = split_address(address)
    try:
        found = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""  # the scheduler says it
    return found if is_loopback(f"tcp://{found}:0" if "." in found else f"tcp://[{found}]:0") else ""


def _tls(directory: str | None, settings: HostsSettings) -> TlsFiles:
    return keys_in(os.path.abspath(os.path.expanduser(directory))) if directory else settings.tls


def labels_in(written: Iterable[str]) -> dict[str, float]:
    """Return what a host was said to have beside slots, by name. Raises UsageError."""
    labels: dict[str, float] = {}
    for label in written:
        name, _, count = label.partition("=")
        if name == "subdeck" or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}=[0-9]{1,9}(\.[0-9]{1,6})?", label):
            raise UsageError(f"{one_line(label, 80)} is no label", where="--label", hint="such as gpu=1 or mem=64")
        labels[name] = float(count)
    return labels


def _name(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        raise UsageError(
            f"{one_line(name, 80)} is no name of a host", where="--name", hint="letters, digits, _, . and - only"
        )
    return name


def _listen(host: str) -> str:
    if host and not re.fullmatch(r"[A-Za-z0-9_:\[\]][A-Za-z0-9_.:\[\]-]*", host):
        raise UsageError(f"{one_line(host, 80)} is no address", where="--listen", hint="such as 10.0.0.7")
    return host
