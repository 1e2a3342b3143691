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
    Spelling("an address like tls://head:8786", str.strip),
]
SshHost = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:%-]*$"),
    Spelling("a host as ssh takes it, like me@h1", str.strip),
]
"""Never an option of ssh: it does not begin with a hyphen."""

LongTime = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS),
    Spelling(f"a time like 90s, 10m, 2h or 7d, at most {MOST_SECONDS / 86400:.0f}d,", _seconds),
]
"""Seconds; `90s`, `10m`, `2h`, `7d`."""
LeaseTime = Annotated[float, Meta(ge=0, le=MOST_SECONDS), Spelling("a time like 15m, 24h or 7d, or never", _lease)]
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
        Setting("The scheduler of a dask cluster on whose hosts runs with runner hosts run.", "tls://head:8786"),
    ] = None
    tls: Annotated[
        TlsFiles,
        Spelling('"ca:", "cert:" and "key:" below it', dict),
        Setting(
            "Certificates for it, as subdeck hosts keys makes them; relative to this file.",
            "{ca: hosts/ca.pem, cert: hosts/me.pem, key: hosts/me.key}",
        ),
    ] = TlsFiles()
    ssh: Annotated[
        tuple[SshHost, ...],
        Spelling("a list like [me@h1, me@h2]", tuple),
        Setting("Hosts that are reached by ssh alone, each with subdeck installed.", "[me@h1, me@h2]"),
    ] = ()
    ssh_slots: Annotated[
        Count, Setting("How many runs each of these runs at the same time, where it does not say.")
    ] = 4
    env: Annotated[
        tuple[Variable, ...],
        Spelling("a list of variables like [ANTHROPIC_API_KEY]", tuple),
        Setting("The variables of your environment that runs on hosts get; no others travel.", "[ANTHROPIC_API_KEY]"),
    ] = ()
    code: Annotated[
        Literal["path", "git"],
        Setting(
            "Which files a run on a host works with: path (the same directory, on a shared file system) or git (a"
            " snapshot of the project, sent there; what comes of it comes back as a branch).",
            "",
            ProjectMay.OVERRIDES,
        ),
    ] = "path"
    sparse: Annotated[
        Texts,
        Setting(
            "With git: the directories of the project that a host gets; all where none is named.",
            "[src, docs]",
            ProjectMay.OVERRIDES,
        ),
    ] = ()
    lease: Annotated[
        Lease,
        Spelling('lines of the form "agent: 15m" and "operator: 24h", or never,', dict),
        Setting(
            "How long a run goes on when nothing is heard any more: of the agent on its host, which could stop it; and"
            " of you.",
            "{agent: 15m, operator: 24h}",
        ),
    ] = Lease()
    unreachable_after: Annotated[
        Duration,
        Setting("After how long without a word a host counts as out of reach; its runs then as unknown.", "15s"),
    ] = 15.0
    keep: Annotated[LongTime, Setting("How long hosts keep what they have delivered.", "7d")] = 7 * 24 * 3600.0
    keep_unused: Annotated[
        LongTime, Setting("How long hosts keep the files of a repository that no run has come with any more.", "30d")
    ] = 30 * 24 * 3600.0
    max_running: Annotated[
        Count | None, Setting("How many runs of the project run on hosts at the same time.", "16", ProjectMay.LOWERS)
    ] = None
    relay_secrets: Annotated[
        Switch,
        Setting(
            "Whether prompts and variables may travel through the scheduler where a host cannot be reached directly."
        ),
    ] = False
    attach: Annotated[
        dict[HostName, SshHost],
        Spelling('lines of the form "host: me@address"', dict),
        Setting("How ssh reaches a host of the cluster, for looking at it.", "{h1: me@h1}"),
    ] = {}

    @property
    def is_set(self) -> bool:
        """Whether there is any host to run on."""
        return bool(self.scheduler or self.ssh)
