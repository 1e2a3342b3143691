"""The messages between relay and host agent: msgpack values, independent of the carrier.

The size of everything received is bounded here; anything larger is invalid. Annotations are evaluated here, as in
`run.model`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..run.enumerations import Cost, Period, Whole
from ..text.decoder import UNDECODABLE, unpack
from ..text.plain import one_line

T = TypeVar("T", bound=Struct)

PROTOCOL = 1
"""Version of the messages; relay and agent refuse each other if it differs. It is always sent, because the reader's
default is the reader's version.
"""
BUDGET = 1024 * 1024
"""Most bytes of files in one answer to `pull`."""
PIECE = 1024 * 1024
"""Bytes of a bundle per message."""
MOST_MESSAGE = 64 * 1024 * 1024
"""Most bytes of an encoded message."""
MOST_RUNS = 20_000
"""Most runs covered by one answer."""
WAIT_S = 5.0
"""Seconds that a pull waits for news."""

# \Z, because $ also matches before a final newline.
RunId = Annotated[str, Meta(pattern=r"^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}\Z")]
RelayId = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}\Z")]
"""12 hex digits, from the project's root and the operator's machine, user and key."""
SpoolId = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")]
FileName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9.-]{0,63}\Z")]
"""Name of a file in a run's directory; `_mirror` lists the accepted ones."""
TreeId = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?\Z")]
AnyTreeId = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}([0-9a-f]{24})?)?\Z")]
"""Empty for none."""
Short = Annotated[str, Meta(max_length=1000)]
"""Untrusted text for a person."""


class Verb(StrEnum):
    PULL = "pull"
    START = "start"
    STOP = "stop"
    ACK = "ack"
    MESSAGE = "message"
    HOLD = "hold"
    """Offer a run to the host and hold one of its slots until the run has finished, as a ticket does. Long-running."""
    EXAMINE = "examine"
    """The doctor's questions."""
    CODE = "code"
    """Ask what the host lacks of a snapshot, and send it in pieces."""
    FETCH = "fetch"
    """Fetch a piece of the bundle with a run's changes."""


class Have(Struct, frozen=True, omit_defaults=True):
    """How much of a run the operator has."""

    sizes: dict[FileName, Whole] = {}
    """Mirrored bytes by file name."""
    bell: Annotated[bytes, Meta(max_length=16384)] = b""
    """Content of its activity file as last sent."""


class Pull(Struct, frozen=True):
    relay: RelayId
    have: dict[RunId, Have]
    """The operator's open runs whose permit names this spool."""
    wait: Annotated[float, Meta(ge=0, le=60)] = WAIT_S
    budget: Annotated[int, Meta(ge=0, le=8 * BUDGET)] = BUDGET
    protocol: Whole = PROTOCOL


class Chunk(Struct, frozen=True, array_like=True):
    run: RunId
    file: FileName
    offset: Whole
    content: Annotated[bytes, Meta(max_length=8 * BUDGET)]


class Bell(Struct, frozen=True, array_like=True):
    run: RunId
    content: Annotated[bytes, Meta(max_length=16384)]


class End(Struct, frozen=True, array_like=True):
    """The result of a run; with this answer the operator has all its files."""

    run: RunId
    result: Annotated[bytes, Meta(max_length=MOST_MESSAGE // 2)]


class AgentVersion(Struct, frozen=True, omit_defaults=True):
    """An agent on the host."""

    name: Annotated[str, Meta(max_length=64)]
    version: Annotated[str, Meta(max_length=200)] = ""
    problem: Short = ""
    """Why it is unusable; empty if it works."""


class HostFacts(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A host's report about itself, sent with each pull."""

    slots: Annotated[int, Meta(ge=1, le=100_000)] = 1
    used: Whole = 0
    """Slots held by all operators' runs."""
    labels: Annotated[dict[Annotated[str, Meta(max_length=64)], Cost], Meta(max_length=64)] = {}
    """Other resources, such as `gpu: 2`."""
    load: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    """Load average of the last minute."""
    cores: Whole = 0
    memory_mb: Whole = 0
    """Free memory."""
    subdeck: Annotated[str, Meta(max_length=40)] = ""
    python: Annotated[str, Meta(max_length=40)] = ""
    carrier: Annotated[str, Meta(max_length=80)] = ""
    """Software of the carrier, such as `distributed 2026.8.0`."""


class Pulled(Struct, frozen=True, kw_only=True):
    spool: SpoolId
    host: HostName
    facts: HostFacts = HostFacts()
    known: Annotated[tuple[RunId, ...], Meta(max_length=MOST_RUNS)] = ()
    """All runs of this relay in the spool that are not acknowledged."""
    offers: Annotated[tuple[RunId, ...], Meta(max_length=MOST_RUNS)] = ()
    """Runs that have a slot on the host but are not in its spool."""
    chunks: Annotated[tuple[Chunk, ...], Meta(max_length=MOST_RUNS)] = ()
    bells: Annotated[tuple[Bell, ...], Meta(max_length=MOST_RUNS)] = ()
    ends: Annotated[tuple[End, ...], Meta(max_length=MOST_RUNS)] = ()
    lease_left: float | None = None
    """Seconds left of the operator's lease before this pull; None if it never expires."""
    protocol: Whole = PROTOCOL


class Code(Struct, frozen=True, omit_defaults=True):
    """The snapshot that a run works with, by its git ids."""

    repository: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
    """Name of the host's cache for the operator's repository, in hex digits."""
    tree: TreeId
    carrier: TreeId
    """The commit of the tree that is sent."""
    subdirectory: Annotated[str, Meta(max_length=4096)] = ""
    """The run's directory in the tree."""
    sparse: Annotated[tuple[Annotated[str, Meta(max_length=4096)], ...], Meta(max_length=1000)] = ()


class Start(Struct, frozen=True, omit_defaults=True, kw_only=True):
    relay: RelayId
    run: RunId
    spool: SpoolId
    """The permit's spool."""
    meta: bytes
    """The run's `meta.json`."""
    prompt: bytes
    env: dict[str, str] = {}
    """Variables of the operator's environment that the settings list."""
    agent_env: dict[str, str] = {}
    """Variables that the settings add for the agent."""
    session: bytes = b""
    """The conversation to continue; empty for a new one."""
    check: bytes = b""
    """The operator's check as JSON; empty for none."""
    head: str = ""
    """With `code: path`, the commit of the operator's checkout of that directory; empty outside git."""
    code: Code | None = None
    """None: the same path."""
    lease_agent: Period = 900.0
    lease_operator: Period = 86400.0
    """Seconds; 0 for never."""
    keep: Period = 604800.0
    keep_unused: Period = 2592000.0


class Said(StrEnum):
    """An agent's answer to a request about one run."""

    KNOWN = "known"
    """The run is or was in the spool."""
    NOT_MINE = "not_mine"
    """The permit names another spool."""
    REFUSED = "refused"
    NOT_NOW = "not_now"
    """Start: the disk is full, nothing has begun, and the request may be repeated."""
    TOLD = "told"
    UNKNOWN = "unknown"
    """The run is not in the spool."""
    OVER = "over"
    """Ticket: its run has finished."""
    NO_PERMIT = "no_permit"
    """Ticket: no permit came in time."""
    REPLACED = "replaced"
    """Ticket: a later one holds the slot of its run."""


class Answer(Struct, frozen=True, omit_defaults=True):
    said: Said
    why: Short = ""


class Stop(Struct, frozen=True):
    relay: RelayId
    run: RunId
    request: Annotated[bytes, Meta(max_length=16384)]
    """Content of `stop.json`."""


class Ack(Struct, frozen=True):
    relay: RelayId
    run: RunId


class Message(Struct, frozen=True):
    relay: RelayId
    run: RunId
    entry: Annotated[bytes, Meta(max_length=16 * 1024 * 1024)]
    """An entry of the run's inbox as JSON; accepted once per id."""


class Hold(Struct, frozen=True):
    relay: RelayId
    run: RunId


class CodePiece(Struct, frozen=True, omit_defaults=True):
    """Without content it asks what the host lacks."""

    relay: RelayId
    code: Code
    parents: tuple[TreeId, ...] = ()
    """Carriers that the bundle may build on, newest first."""
    offset: Whole = 0
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    last: bool = False


class CodeSaid(Struct, frozen=True, omit_defaults=True):
    has_all: bool = False
    parent: AnyTreeId = ""
    """The newest carrier among `parents` that the host has; empty for none."""
    size: Whole = 0
    """Bytes received of an unfinished bundle: the offset to continue at."""
    why: Short = ""
    """Why it was refused; empty if it was not."""
    not_now: bool = False
    """Whether the disk was full, so that it may be sent again."""


class FetchPiece(Struct, frozen=True):
    relay: RelayId
    run: RunId
    offset: Whole = 0


class Fetched(Struct, frozen=True, omit_defaults=True):
    total: Whole = 0
    """Bytes of the whole bundle; 0 if nothing was changed."""
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    tree: AnyTreeId = ""
    commit: AnyTreeId = ""
    """The commit in the bundle."""
    why: Short = ""
    """Why there is none, or which files it lacks."""


class Examine(Struct, frozen=True, omit_defaults=True):
    variables: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=1000)] = ()
    """Names to check; the host reports which are set, never their values."""
    agents: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=100)] = ()


class Examined(Struct, frozen=True, omit_defaults=True, kw_only=True):
    host: HostName
    spool: Short = ""
    """Path of the spool."""
    facts: HostFacts = HostFacts()
    agents: tuple[AgentVersion, ...] = ()
    missing_variables: tuple[Annotated[str, Meta(max_length=200)], ...] = ()
    git: Annotated[str, Meta(max_length=40)] = ""
    """Git's version; empty without git."""
    clock: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """Time of the answer, in seconds since 1970."""
    problems: tuple[Short, ...] = ()
    """Problems found there, such as a spool that is not writable or locks that do not exclude."""
    certificates_until: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """Expiry of the carrier's certificates, in seconds since 1970; 0 for none or unknown."""
    protocol: Whole = 0
    """Protocol version; always sent."""


ASKED: dict[Verb, type[Struct]] = {
    Verb.PULL: Pull,
    Verb.START: Start,
    Verb.STOP: Stop,
    Verb.ACK: Ack,
    Verb.MESSAGE: Message,
    Verb.HOLD: Hold,
    Verb.EXAMINE: Examine,
    Verb.CODE: CodePiece,
    Verb.FETCH: FetchPiece,
}
ANSWERED: dict[Verb, type[Struct]] = {
    Verb.PULL: Pulled,
    Verb.EXAMINE: Examined,
    Verb.CODE: CodeSaid,
    Verb.FETCH: Fetched,
}
"""Answer type by verb; `Answer` for all others."""


def other_version(protocol: int, subdeck: str) -> str:
    """Return why a host with this protocol version cannot be used; empty for this version."""
    if protocol == PROTOCOL:
        return ""
    return (
        f"subdeck {one_line(subdeck, 40)} there uses protocol version {protocol}, this one uses "
        f"version {PROTOCOL}; install the same version on both machines"
    )


class BadMessage(Exception):
    """The content is not a valid message of this protocol."""


encode: Callable[[Struct], bytes] = msgspec.msgpack.encode


def decode_asked(verb: Verb, content: bytes) -> Any:
    """Decode a request. Raises BadMessage."""
    return decoded(content, ASKED[verb])


def decode_answer(verb: Verb, content: bytes) -> Any:
    """Decode an answer. Raises BadMessage."""
    return decoded(content, ANSWERED.get(verb, Answer))


def decoded(content: bytes, kind: type[T]) -> T:
    """Decode a value of a type. Raises BadMessage."""
    if len(content) > MOST_MESSAGE:
        raise BadMessage(f"a message of {len(content):,} bytes is too large")
    try:
        return unpack(content, kind)
    except UNDECODABLE as error:
        raise BadMessage(f"no {kind.__name__}: {error}") from error
