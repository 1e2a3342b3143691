"""The settings of runs on other machines: every key below `hosts:`, and the kinds of values that these have.

Annotations are evaluated here, as in `settings`.
"""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..run.kinds import MOST_SECONDS
from .host_needs import HostName
from .values import Count, Duration, ProjectMay, Setting, Spelling, Switch, Texts, Variable

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smhd]?)", text.strip())
    if found is None:
        raise ValueError
    return float(found[1]) * _UNITS[found[2]]


def _lease(text: str) -> float:
    return 0.0 if text.strip().lower() == "never" else _seconds(text)


_ADDRESS = r"^(tls|tcp)://[^/\s:]+:[0-9]{1,5}$|^(tls|tcp)://\[[0-9a-fA-F:]+\]:[0-9]{1,5}$"


def is_address(text: str) -> bool:
    """Return whether a text is an address of a scheduler, as the settings take it."""
    return re.search(_ADDRESS, text) is not None and "\n" not in text


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address; the host of `tls://[::1]:8786` is `::1`."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(address: str) -> bool:
    """Return whether an address like `tcp://127.0.0.1:8786` is one of this machine alone."""
    host, _ = split_address(address)
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host) is not None


SchedulerAddress = Annotated[
    str,
    Meta(pattern=_ADDRESS),
    Spelling("an address such as tls://head:8786", str.strip),
]
SshHost = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:%-]*$"),
    Spelling("an ssh host, such as me@h1", str.strip),
]
"""Never an option of ssh: it does not begin with a hyphen."""

LongTime = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS),
    Spelling(f"a time such as 90s, 10m, 2h or 7d, at most {MOST_SECONDS / 86400:.0f}d,", _seconds),
]
"""Seconds; `90s`, `10m`, `2h`, `7d`."""
LeaseTime = Annotated[float, Meta(ge=0, le=MOST_SECONDS), Spelling("a time such as 15m, 24h or 7d, or never", _lease)]
"""Seconds; 0 for a lease that never ends."""
KeyFile = Annotated[str, Meta(min_length=1), Spelling("a file")]


class Lease(Struct, frozen=True):
    agent: LeaseTime = 15 * 60.0
    operator: LeaseTime = 24 * 3600.0


class TlsFiles(Struct, frozen=True):
    """Paths, relative to the directory of the user's settings file."""

    ca: KeyFile = ""
    cert: KeyFile = ""
    key: KeyFile = ""

    @property
    def is_complete(self) -> bool:
        return bool(self.ca and self.cert and self.key)


class HostsSettings(Struct, frozen=True):
    """What is below `hosts:`; `core.hosts` reads it."""

    scheduler: Annotated[
        SchedulerAddress | None,
        Setting("Address of the dask scheduler whose cluster runs your runs (with runner: hosts).", "tls://head:8786"),
    ] = None
    tls: Annotated[
        TlsFiles,
        Spelling('"ca:", "cert:" and "key:" below it', dict),
        Setting(
            "TLS certificates for the scheduler (created by subdeck hosts keys), relative to this file.",
            "{ca: hosts/ca.pem, cert: hosts/me.pem, key: hosts/me.key}",
        ),
    ] = TlsFiles()
    ssh: Annotated[
        tuple[SshHost, ...],
        Spelling("a list such as [me@h1, me@h2]", tuple),
        Setting("Hosts to reach over ssh. subdeck must be installed on each.", "[me@h1, me@h2]"),
    ] = ()
    ssh_slots: Annotated[
        Count, Setting("Maximum number of parallel runs on each ssh host, unless the host sets its own.")
    ] = 4
    env: Annotated[
        tuple[Variable, ...],
        Spelling("a list of variables, such as [ANTHROPIC_API_KEY]", tuple),
        Setting("Environment variables to pass to runs on hosts. No others are sent.", "[ANTHROPIC_API_KEY]"),
    ] = ()
    code: Annotated[
        Literal["path", "git"],
        Setting(
            "Files for a run on a host: path (the same directory, on a shared file system) or git (a "
            "snapshot of the project is sent; the changes come back as a branch).",
            "",
            ProjectMay.OVERRIDES,
        ),
    ] = "path"
    sparse: Annotated[
        Texts,
        Setting(
            "With code: git, the project directories to send to hosts. Empty: all.",
            "[src, docs]",
            ProjectMay.OVERRIDES,
        ),
    ] = ()
    lease: Annotated[
        Lease,
        Spelling('lines of the form "agent: 15m" and "operator: 24h", or never,', dict),
        Setting(
            "How long a run continues after losing contact: with the subdeck process on its host "
            "(agent), and with you (operator).",
            "{agent: 15m, operator: 24h}",
        ),
    ] = Lease()
    unreachable_after: Annotated[
        Duration,
        Setting("A host counts as unreachable after this long without an answer, and its runs become unknown.", "15s"),
    ] = 15.0
    keep: Annotated[LongTime, Setting("How long hosts keep runs after delivering their results.", "7d")] = (
        7 * 24 * 3600.0
    )
    keep_unused: Annotated[LongTime, Setting("How long hosts keep a repository's files after its last run.", "30d")] = (
        30 * 24 * 3600.0
    )
    max_running: Annotated[
        Count | None, Setting("Maximum number of parallel runs of the project on hosts.", "16", ProjectMay.LOWERS)
    ] = None
    relay_secrets: Annotated[
        Switch,
        Setting("Allow prompts and variables to pass through the scheduler if a host cannot be reached directly."),
    ] = False
    attach: Annotated[
        dict[HostName, SshHost],
        Spelling('lines of the form "host: me@address"', dict),
        Setting("ssh addresses of cluster hosts, for attaching to their runs.", "{h1: me@h1}"),
    ] = {}

    @property
    def is_set(self) -> bool:
        """Whether there is any host to run on."""
        return bool(self.scheduler or self.ssh)
