"""What the relay asks a host's agent, and what that answers: values of msgpack, whatever carries them.

Every size that comes from the other side is bounded here; what does not fit is no message at all.
Annotations are evaluated here, as in `run.model`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..run.kinds import Cost, Period, Whole
from ..text.decoding import UNDECODABLE, unpack
from ..text.plain import one_line

T = TypeVar("T", bound=Struct)

PROTOCOL = 1
"""Of the messages; relay and agent refuse each other's where it differs. It is said also where it is this one, which is
another one's default to who reads it.
"""
BUDGET = 1024 * 1024
"""Bytes of files that one answer to `pull` holds at most."""
PIECE = 1024 * 1024
"""Bytes of a bundle that travel in one message."""
MOST_MESSAGE = 64 * 1024 * 1024
"""Bytes of an encoded message."""
MOST_RUNS = 20_000
"""Of which one answer says something."""
WAIT_S = 5.0
"""How long a pull waits for news."""

# \Z, for $ also takes a line break at the end.
RunId = Annotated[str, Meta(pattern=r"^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}\Z")]
RelayId = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}\Z")]
"""12 hex digits: of the project's root, the operator's machine, user and key."""
SpoolId = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")]
FileName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9.-]{0,63}\Z")]
"""Of a run's directory; which are taken is a list of `mirror`."""
TreeId = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?\Z")]
AnyTreeId = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}([0-9a-f]{24})?)?\Z")]
"""Empty where there is none."""
Short = Annotated[str, Meta(max_length=1000)]
"""A text for a person, untrusted."""


class Verb(StrEnum):
    PULL = "pull"
    START = "start"
    STOP = "stop"
    ACK = "ack"
    MESSAGE = "message"
    HOLD = "hold"
    """Offer a run to the host and hold a slot of it until the run has ended: what a ticket does. Long."""
    EXAMINE = "examine"
    """What the doctor wants to know."""
    CODE = "code"
    """What of a snapshot the host lacks, and its pieces."""
    FETCH = "fetch"
    """A piece of the bundle of what a run left."""


class Have(Struct, frozen=True, omit_defaults=True):
    """How much of a run the operator has."""

    sizes: dict[FileName, Whole] = {}
    """Name of a growing file: bytes."""
    bell: Annotated[bytes, Meta(max_length=16384)] = b""
    """The content of its activity file, as it was told last."""


class Pull(Struct, frozen=True):
    relay: RelayId
    have: dict[RunId, Have]
    """All open runs of the operator that this spool has the permit for."""
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
    """The result of a run whose files the operator has all of, with this answer."""

    run: RunId
    result: Annotated[bytes, Meta(max_length=MOST_MESSAGE // 2)]


class AgentVersion(Struct, frozen=True, omit_defaults=True):
    """An agent that the host has."""

    name: Annotated[str, Meta(max_length=64)]
    version: Annotated[str, Meta(max_length=200)] = ""
    problem: Short = ""
    """Why it cannot be used; empty where it can."""


class HostFacts(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a host says of itself; told again with each pull."""

    slots: Annotated[int, Meta(ge=1, le=100_000)] = 1
    used: Whole = 0
    """Slots that runs of all operators hold."""
    labels: Annotated[dict[Annotated[str, Meta(max_length=64)], Cost], Meta(max_length=64)] = {}
    """What else it has, as `gpu: 2`."""
    load: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    """Of the last minute."""
    cores: Whole = 0
    memory_mb: Whole = 0
    """Free."""
    subdeck: Annotated[str, Meta(max_length=40)] = ""
    python: Annotated[str, Meta(max_length=40)] = ""
    carrier: Annotated[str, Meta(max_length=80)] = ""
    """What brings the messages there, as `distributed 2026.8.0`."""


class Pulled(Struct, frozen=True, kw_only=True):
    spool: SpoolId
    host: HostName
    facts: HostFacts = HostFacts()
    known: Annotated[tuple[RunId, ...], Meta(max_length=MOST_RUNS)] = ()
    """All runs of this relay that are in the spool and not acknowledged."""
    offers: Annotated[tuple[RunId, ...], Meta(max_length=MOST_RUNS)] = ()
    """Runs for which the host holds a slot, and which have no permit as far as it knows."""
    chunks: Annotated[tuple[Chunk, ...], Meta(max_length=MOST_RUNS)] = ()
    bells: Annotated[tuple[Bell, ...], Meta(max_length=MOST_RUNS)] = ()
    ends: Annotated[tuple[End, ...], Meta(max_length=MOST_RUNS)] = ()
    lease_left: float | None = None
    """Seconds of the operator's lease that were left before this pull; None where it never ends."""
    protocol: Whole = PROTOCOL


class Code(Struct, frozen=True, omit_defaults=True):
    """A snapshot that a run works with, by what git calls it."""

    repository: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
    """Which cache of the host it is in: hex digits of the operator's repository."""
    tree: TreeId
    carrier: TreeId
    """The commit of it that travels."""
    subdirectory: Annotated[str, Meta(max_length=4096)] = ""
    """Where in it the run works."""
    sparse: Annotated[tuple[Annotated[str, Meta(max_length=4096)], ...], Meta(max_length=1000)] = ()


class Start(Struct, frozen=True, omit_defaults=True, kw_only=True):
    relay: RelayId
    run: RunId
    spool: SpoolId
    """The permit."""
    meta: bytes
    """The run's `meta.json`."""
    prompt: bytes
    env: dict[str, str] = {}
    """Variables of the operator's environment, by the list of the settings."""
    agent_env: dict[str, str] = {}
    """What the settings add for the agent."""
    session: bytes = b""
    """The conversation that goes on; empty where one begins."""
    check: bytes = b""
    """The operator's check, as JSON; empty for none."""
    head: str = ""
    """With `code: path`: the commit that the operator's checkout of that directory is at; empty outside git."""
    code: Code | None = None
    """None: the same path."""
    lease_agent: Period = 900.0
    lease_operator: Period = 86400.0
    """Seconds; 0 for never."""
    keep: Period = 604800.0
    keep_unused: Period = 2592000.0


class Said(StrEnum):
    """What an agent says to a request about one run."""

    KNOWN = "known"
    """The run is in the spool: now, or it was before."""
    NOT_MINE = "not_mine"
    """Another spool has the permit."""
    REFUSED = "refused"
    NOT_NOW = "not_now"
    """Of a start: nothing has begun, for want of room on the disk; it may be asked for again."""
    TOLD = "told"
    UNKNOWN = "unknown"
    """No such run is in the spool."""
    OVER = "over"
    """Of a ticket: its run has ended."""
    NO_PERMIT = "no_permit"
    """Of a ticket: none came in time."""


class Answer(Struct, frozen=True, omit_defaults=True):
    said: Said
    why: Short = ""


class Stop(Struct, frozen=True):
    relay: RelayId
    run: RunId
    request: Annotated[bytes, Meta(max_length=16384)]
    """`stop.json`."""


class Ack(Struct, frozen=True):
    relay: RelayId
    run: RunId


class Message(Struct, frozen=True):
    relay: RelayId
    run: RunId
    entry: Annotated[bytes, Meta(max_length=16 * 1024 * 1024)]
    """An entry of the run's inbox as JSON; taken once, by its id."""


class Hold(Struct, frozen=True):
    relay: RelayId
    run: RunId


class CodePiece(Struct, frozen=True, omit_defaults=True):
    """With no content: asks what the host lacks."""

    relay: RelayId
    code: Code
    parents: tuple[TreeId, ...] = ()
    """Carriers that a bundle may be made from, newest first."""
    offset: Whole = 0
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    last: bool = False


class CodeSaid(Struct, frozen=True, omit_defaults=True):
    has_all: bool = False
    parent: AnyTreeId = ""
    """Of `parents`, the newest carrier that the host has; empty where it has none."""
    size: Whole = 0
    """Bytes of an unfinished bundle that it has: where to go on."""
    why: Short = ""
    """Why it was refused; empty where it was not."""
    not_now: bool = False
    """Whether that was for want of room on the disk: it may be sent again."""


class FetchPiece(Struct, frozen=True):
    relay: RelayId
    run: RunId
    offset: Whole = 0


class Fetched(Struct, frozen=True, omit_defaults=True):
    total: Whole = 0
    """Bytes of the whole bundle; 0 where nothing was changed."""
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    tree: AnyTreeId = ""
    commit: AnyTreeId = ""
    """In the bundle."""
    why: Short = ""
    """Why there is none."""


class Examine(Struct, frozen=True, omit_defaults=True):
    variables: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=1000)] = ()
    """Which of these are set there is told, never their values."""
    agents: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=100)] = ()


class Examined(Struct, frozen=True, omit_defaults=True, kw_only=True):
    host: HostName
    spool: Short = ""
    """Its path."""
    facts: HostFacts = HostFacts()
    agents: tuple[AgentVersion, ...] = ()
    missing_variables: tuple[Annotated[str, Meta(max_length=200)], ...] = ()
    git: Annotated[str, Meta(max_length=40)] = ""
    """Its version; empty without one."""
    clock: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """Seconds since 1970, when this was answered."""
    problems: tuple[Short, ...] = ()
    """What is wrong there, in words: a spool that cannot be written, locks that do not exclude."""
    certificates_until: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """When those expire that its carrier shows, in seconds since 1970; 0 where there are none, or that is not known."""
    protocol: Whole = 0
    """Of its messages; always said."""


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
"""Of each verb; `Answer` where none is named."""


def other_version(protocol: int, subdeck: str) -> str:
    """Say why a host that speaks this version of the messages is not understood; empty for our version."""
    if protocol == PROTOCOL:
        return ""
    return (
        f"subdeck {one_line(subdeck, 40)} there uses protocol version {protocol}, this one uses "
        f"version {PROTOCOL}; install the same version on both machines"
    )


class BadMessage(Exception):
    """What came is no message of this protocol."""


encode: Callable[[Struct], bytes] = msgspec.msgpack.encode


def decode_asked(verb: Verb, content: bytes) -> Any:
    """Return what is asked. Raises BadMessage."""
    return decoded(content, ASKED[verb])


def decode_answer(verb: Verb, content: bytes) -> Any:
    """Return what was answered. Raises BadMessage."""
    return decoded(content, ANSWERED.get(verb, Answer))


def decoded(content: bytes, kind: type[T]) -> T:
    """Return a value of a type. Raises BadMessage."""
    if len(content) > MOST_MESSAGE:
        raise BadMessage(f"a message of {len(content):,} bytes is too large")
    try:
        return unpack(content, kind)
    except UNDECODABLE as error:
        raise BadMessage(f"no {kind.__name__}: {error}") from error
