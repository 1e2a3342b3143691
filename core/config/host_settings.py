"""The settings of hosts, and a run's requirements for its host: a name, and amounts by label.

Annotations are evaluated here, as in `settings`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ..errors import UsageError
from ..run.enumerations import MOST_SECONDS
from ..text.decoder import UNDECODABLE, fit
from ..text.plain import one_line
from .values import Count, Duration, ProjectMay, Setting, Spelling, Switch, Texts, Variable

HostName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"),
    Spelling("the name of a host", str.strip),
]
MOST_LABELS, MOST_NEEDED = 32, 1e9
SLOTS = "subdeck"
"""The carriers' name for a slot; no label may use it."""


def _amount(text: str) -> float:
    return float(text)


LabelName = Annotated[
    str,
    Meta(pattern=rf"^(?!{SLOTS}$)[A-Za-z0-9_][A-Za-z0-9_.-]{{0,63}}$"),
    Spelling("the name of a resource, such as gpu", str.strip),
]
Needed = Annotated[
    float, Meta(gt=0, le=MOST_NEEDED), Spelling(f"a number above 0, at most {MOST_NEEDED:,.0f},", _amount)
]
Needs = Annotated[
    Annotated[dict[LabelName, Needed], Meta(max_length=MOST_LABELS)],
    Spelling(
        'lines of the form "resource: number", such as {gpu: 1},',
        dict,
        {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
    ),
]
"""Amounts that a host must have, by label."""


def checked_host(name: str) -> str:
    """Return a host's name, empty for any. Raises UsageError if invalid."""
    if name.strip() and not _fits(name.strip(), HostName):
        hint = "use letters, digits, _, . and -; subdeck hosts lists your hosts"
        raise UsageError(f'"{one_line(name, 60)}" is not a valid host name', where="host", hint=hint)
    return name.strip()


def checked_needs(needs: Mapping[str, float]) -> dict[str, float]:
    """Return a run's requirements. Raises UsageError for invalid labels and amounts."""
    if len(needs) > MOST_LABELS:
        hint = f"use at most {MOST_LABELS}"
        raise UsageError(f"too many requirements: {len(needs)}", where="needs", hint=hint)
    for name, amount in needs.items():
        if not (_fits(name, LabelName) and _fits(amount, Needed)):
            what = f'invalid requirement "{one_line(name, 60)}={amount:g}"'
            raise UsageError(what, where="needs", hint="use LABEL=NUMBER with a number above 0, such as gpu=1")
    return dict(needs)


def _fits(value: object, kind: Any) -> bool:
    try:
        fit(value, kind)
    except UNDECODABLE:
        return False
    return True


def read_needs(texts: Iterable[str]) -> dict[str, float]:
    """Parse `gpu=1`; `gpu` means one. Raises UsageError."""
    needs: dict[str, float] = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            number = float(amount.strip() or "1")
        except ValueError:
            what = f'invalid requirement "{one_line(text, 60)}": expected LABEL=NUMBER'
            raise UsageError(what, where="needs", hint="use LABEL=NUMBER, such as gpu=1") from None
        if name.strip() in needs:
            raise UsageError(f'"{one_line(name.strip(), 60)}" is required twice', where="needs", hint="write it once")
        needs[name.strip()] = number
    return checked_needs(needs)


def needs_words(needs: Mapping[str, float]) -> str:
    """Return `gpu 1, mem 32`; empty for none."""
    return ", ".join(f"{one_line(name, 64)} {amount:g}" for name, amount in needs.items())


# --- the hosts of the settings ---------------------------------------------------------------------------------------

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


def _seconds(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([smhd]?)", text.strip())
    if match is None:
        raise ValueError
    return float(match[1]) * _UNITS[match[2]]


def _lease(text: str) -> float:
    return 0.0 if text.strip().lower() == "never" else _seconds(text)


_ADDRESS = r"^(tls|tcp)://[^/\s:]+:[0-9]{1,5}$|^(tls|tcp)://\[[0-9a-fA-F:]+\]:[0-9]{1,5}$"


def is_address(text: str) -> bool:
    """Return whether a text is a valid scheduler address."""
    return re.search(_ADDRESS, text) is not None and "\n" not in text


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address; the host of `tls://[::1]:8786` is `::1`."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(address: str) -> bool:
    """Return whether an address such as `tcp://127.0.0.1:8786` can be reached only from this machine."""
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
"""Cannot be an option of ssh, because it does not begin with a hyphen."""

LongTime = Annotated[
    float,
    Meta(gt=0, le=MOST_SECONDS),
    Spelling(f"a time such as 90s, 10m, 2h or 7d, at most {MOST_SECONDS / 86400:.0f}d,", _seconds),
]
"""Seconds; `90s`, `10m`, `2h`, `7d`."""
LeaseTime = Annotated[float, Meta(ge=0, le=MOST_SECONDS), Spelling("a time such as 15m, 24h or 7d, or never", _lease)]
"""Seconds; 0 for a lease that never expires."""
KeyFile = Annotated[str, Meta(min_length=1), Spelling("a file")]


class Lease(Struct, frozen=True):
    agent: LeaseTime = 15 * 60.0
    operator: LeaseTime = 24 * 3600.0


class TlsFiles(Struct, frozen=True):
    """Paths relative to the directory of the user's settings file."""

    ca: KeyFile = ""
    cert: KeyFile = ""
    key: KeyFile = ""

    @property
    def is_complete(self) -> bool:
        return bool(self.ca and self.cert and self.key)


class HostsSettings(Struct, frozen=True):
    """The settings below `hosts:`, used by `core.hosts`."""

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
            is_rare=True,
        ),
    ] = TlsFiles()
    ssh: Annotated[
        tuple[SshHost, ...],
        Spelling("a list such as [me@h1, me@h2]", tuple),
        Setting("Hosts to reach over ssh. subdeck must be installed on each.", "[me@h1, me@h2]"),
    ] = ()
    ssh_slots: Annotated[
        Count, Setting("Maximum number of parallel runs on each ssh host, unless the host sets its own.", is_rare=True)
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
            is_rare=True,
        ),
    ] = ()
    lease: Annotated[
        Lease,
        Spelling('lines of the form "agent: 15m" and "operator: 24h", or never,', dict),
        Setting(
            "How long a run continues after losing contact: with the subdeck process on its host "
            "(agent), and with you (operator).",
            "{agent: 15m, operator: 24h}",
            is_rare=True,
        ),
    ] = Lease()
    unreachable_after: Annotated[
        Duration,
        Setting(
            "A host counts as unreachable after this long without an answer, and its runs become unknown.",
            "15s",
            former=("hosts.reach",),
            is_rare=True,
        ),
    ] = 15.0
    keep: Annotated[
        LongTime, Setting("How long hosts keep runs after delivering their results.", "7d", is_rare=True)
    ] = 7 * 24 * 3600.0
    keep_unused: Annotated[
        LongTime, Setting("How long hosts keep a repository's files after its last run.", "30d", is_rare=True)
    ] = 30 * 24 * 3600.0
    max_running: Annotated[
        Count | None,
        Setting("Maximum number of parallel runs of the project on hosts.", "16", ProjectMay.LOWERS, is_rare=True),
    ] = None
    relay_secrets: Annotated[
        Switch,
        Setting(
            "Allow prompts and variables to pass through the scheduler if a host cannot be reached directly.",
            is_rare=True,
        ),
    ] = False
    attach: Annotated[
        dict[HostName, SshHost],
        Spelling('lines of the form "host: me@address"', dict),
        Setting("ssh addresses of cluster hosts, for attaching to their runs.", "{h1: me@h1}", is_rare=True),
    ] = {}

    @property
    def is_set(self) -> bool:
        """Whether any host is configured."""
        return bool(self.scheduler or self.ssh)
