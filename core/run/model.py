"""The records of a run: what was asked, what was decided before its start, and how it ended.

Annotations are evaluated here: written as text, msgspec would compile each one in each process that reads a record.
"""

from msgspec import Struct

from ..agent_kinds import INTERACTIVE, kind_of
from ..text.plain import one_line
from .changes import Changes, CheckResult, WorktreePlan
from .kinds import (
    LARGEST as LARGEST,
    MOST_SECONDS as MOST_SECONDS,
    STATUS_OF as STATUS_OF,
    CheckState as CheckState,
    Cost as Cost,
    ExitCode as ExitCode,
    FinalizeStatus as FinalizeStatus,
    LauncherKind as LauncherKind,
    MessageState as MessageState,
    NoticeLevel as NoticeLevel,
    OpenEnum as OpenEnum,
    Period as Period,
    Pid as Pid,
    PresetSource as PresetSource,
    PromptMode as PromptMode,
    RequestKind as RequestKind,
    RunnerKind as RunnerKind,
    RunReason as RunReason,
    RunStatus as RunStatus,
    StopReason as StopReason,
    ToolPolicy as ToolPolicy,
    Verdict as Verdict,
    WaitsFor as WaitsFor,
    Whole as Whole,
    WorktreeFrom as WorktreeFrom,
)
from .prices import Price, dollars

SCHEMA_VERSION = 1
"""Of the records that this version writes, and the newest that it reads."""
OPERATOR = "operator"
"""The session of a person at the app or a shell."""
NO_PRESET = "ad hoc"
"""Stands for the preset of a one-off run in what programs read."""


def by_session(session: str) -> str:
    """Return ` by NAME` for readers; empty without a session."""
    return f" by {session_words(session)}" if session.strip() else ""


def session_words(session: str) -> str:
    """Return a session's name for readers."""
    return "the user" if session == OPERATOR else one_line(session, 60)


def readable_preset(name: str | None) -> str:
    """Return a preset's name for readers; `name` may be one that programs read."""
    return "one-off" if name in (None, "", NO_PRESET) else name


def newer_schema(version: int) -> str:
    """Say that a record is not for this version to read, and what to do about it."""
    known = f"schema {version}, this one reads up to {SCHEMA_VERSION}"
    return f"written by a newer subdeck ({known}): use that version for it"


class Group(Struct, frozen=True, rename="camel"):
    """Runs that were launched together and share `max_parallel` slots."""

    id: str
    index: Whole
    size: Whole
    max_parallel: Whole


class Tools(Struct, frozen=True, rename="camel", omit_defaults=True):
    policy: ToolPolicy = ToolPolicy.AGENT
    resolved: tuple[str, ...] | None = None
    """What the child is told to offer; None means no flag at all, empty means no tools."""
    warnings: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """What the child is told not to offer of all that it has, where `resolved` is None."""
    starts_servers: bool = True
    """Whether the child may start the MCP servers that its user has set up for it."""


class Usage(Struct, frozen=True, rename="camel"):
    """Sums over a run; tokens, and cost in dollars."""

    input: Whole = 0
    output: Whole = 0
    cache_read: Whole = 0
    cache_write: Whole = 0
    cost: Cost = 0.0
    turns: Whole = 0
    tool_uses: Whole = 0
    unpriced: Whole = 0
    """Tokens of which nobody has told a price: `cost` is without them."""
    estimated: Cost = 0.0
    """How much of `cost` is by the user's table, where the agent may still tell it."""
    uncounted: Whole = 0
    """Messages of which the agent has not told all tokens: sums are without these."""

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Limits(Struct, frozen=True, rename="camel", omit_defaults=True):
    """When a run is ended from outside; None means never."""

    timeout: Period | None = None
    """Seconds."""
    max_turns: Whole | None = None
    stall: Period | None = None
    """Seconds without a byte from the child while no tool runs."""
    budget: Cost | None = None
    """Dollars."""
    max_tokens: Whole | None = None
    """Of all kinds: read, written, and those of the cache."""

    def is_overspent(self, used: Usage) -> bool:
        """Whether there is nothing left of the dollars or the tokens that the run may use."""
        return (self.budget is not None and used.cost >= self.budget) or (
            self.max_tokens is not None and used.tokens >= self.max_tokens
        )

    def spent_words(self, used: Usage) -> str:
        """`spent $0.52 of $0.50`, `used 1,204 of 1,000 tokens`; of the limit that is used up."""
        if self.budget is not None and used.cost >= self.budget:
            return f"spent {dollars(used.cost)} of {dollars(self.budget)}"
        return f"used {used.tokens:,} of {self.max_tokens or 0:,} tokens"


class Permissions(Struct, frozen=True, omit_defaults=True):
    """What a child may do without asking, what it has to ask for, and what it may not; rules as `bash(git *)`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class LogCaps(Struct, frozen=True, rename="camel"):
    """How much is kept of the child's raw output, and of what happened, in bytes."""

    stdout: Whole = 64 * 1024 * 1024
    stderr: Whole = 8 * 1024 * 1024
    events: Whole = 256 * 1024 * 1024
    transcript: Whole = 64 * 1024 * 1024


class LaunchedBy(Struct, frozen=True, rename="camel"):
    session: str
    kind: LauncherKind


class InheritedContext(Struct, frozen=True):
    """How much of its parent's conversation a child was given."""

    turns: Whole = 0
    chars: Whole = 0

    @property
    def words(self) -> str:
        """`3 turns, 1,204 characters`"""
        return f"{self.turns:,} turn{'' if self.turns == 1 else 's'}, {self.chars:,} characters"


class Origin(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Earlier runs this one came from, each by run id."""

    rerun: str | None = None
    follow_up: str | None = None
    previous: str | None = None


class AgentSession(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A conversation that is kept by the agent, in a place of its own."""

    resume: str | None = None
    """The id of the one that goes on; None begins one."""
    id_file: str | None = None
    """Holds the id of one that several runs share; it is read and written under the lock of the session."""
    source: str | None = None
    """The run in which the one that goes on was last at work."""


class RunMeta(Struct, frozen=True, kw_only=True, rename="camel"):
    """`meta.json`: everything decided before the start; written once."""

    run_id: str
    task: str
    """As the person typed it, with `{previous}` filled in."""
    cwd: str
    agent: str
    """Name of the child program: a kind, or a name of the settings."""
    agent_command: tuple[str, ...]
    """The program and its leading arguments, resolved at launch."""
    runner: RunnerKind
    created_at: str
    launched_by: LaunchedBy
    schema_version: Whole = SCHEMA_VERSION
    background: bool = False
    group: Group | None = None
    preset: str = ""
    """Empty for an ad hoc run."""
    preset_source: PresetSource = PresetSource.ADHOC
    preset_path: str | None = None
    description: str = ""
    requested_model: str = ""
    """As written in the call, the preset or the setting; empty when the agent needs none."""
    resolved_model: str = ""
    """The agent's spelling."""
    thinking: str | None = None
    tools: Tools = Tools()
    system_prompt: str | None = None
    """None in snapshots, which do not carry it, and where there is none."""
    system_prompt_path: str | None = None
    prompt_mode: PromptMode = PromptMode.APPEND
    context_files: bool | None = None
    """Whether the child reads AGENTS.md and the like; None: unless its system prompt was replaced."""
    project_resources: bool | None = None
    """False: the child loads nothing that the project brings along for it, but context files."""
    child_session_id: str | None = None
    session_path: str | None = None
    """None means that the child keeps no session."""
    session_lock: str | None = None
    """Lock of a session that several runs share; None for one of the run's own."""
    inherited: InheritedContext | None = None
    isolated: bool | None = None
    finalize: bool = False
    max_attempts: Whole = 1
    max_running: Whole | None = None
    limits: Limits = Limits()
    grace_seconds: Period = 3.0
    log_caps: LogCaps = LogCaps()
    origin: Origin = Origin()
    warnings: tuple[str, ...] = ()
    """What was decided otherwise than written: a limit, a thinking level, a model that is not known."""
    agent_kind: str = ""
    """What the child program speaks; empty in runs of earlier versions."""
    agent_session: AgentSession | None = None
    """The conversation, where the agent keeps it itself; None with `session_path`, and where none is kept."""
    talk: bool | None = None
    """Whether the child takes messages and asks while it runs; None in runs of earlier versions: they have no inbox."""
    permissions: Permissions | None = None
    answer_timeout: Period | None = None
    """Seconds after which a request that nobody replied to is denied; None means never."""
    idle_timeout: Period | None = None
    """Seconds that an interrupted child waits for what is said next; None means as long as it takes."""
    by_hand: bool = False
    """Whether a person goes on with the conversation, in the agent's own program, before any child does."""
    worktree: WorktreePlan | None = None
    """Where it works apart from its project's files; None where it works in them."""
    check: str = ""
    """Name of the operator's check that runs when its child has ended; empty for none."""
    host: str = ""
    """The host that it has to run on; empty for any, and for a run of this machine."""
    needs: dict[str, Cost] = {}
    """What its host has to have, as `gpu: 1`; each taken from what the host has for as long as the run lasts."""
    prices: tuple[Price, ...] = ()
    """What its tokens cost where the agent tells no price, by the user's table; only what may match its model."""
    result_signed: bool = False
    """Whether its result, and what asks it to stop, count only with the user's signature; not in older runs."""
    decided_by: dict[str, str] = {}
    """Of the fields that call, preset or settings decided, which of them did; not in older runs."""

    @property
    def origin_cwd(self) -> str:
        """Where it was launched: its directory, or the one of which its worktree has a copy."""
        return self.worktree.origin if self.worktree else self.cwd

    @property
    def is_in_spool(self) -> bool:
        """Whether this is the record on a host: the machine that launched it tells its ledger what is spent."""
        return bool(self.host) and self.runner == RunnerKind.PROCESS

    @property
    def kind(self) -> str:
        """The kind of its agent."""
        return self.agent_kind or kind_of(self.agent)

    @property
    def keeps_session(self) -> bool:
        """Whether there is a conversation to go on with."""
        return bool(self.session_path or self.agent_session)

    @property
    def why_not_by_hand(self) -> str:
        """Why no person can go on with its conversation in the agent's own program; empty where one can."""
        if self.kind not in INTERACTIVE:
            return f"the agent {one_line(self.agent, 64)} does not have its own UI"
        return "" if self.keeps_session else "it saves no conversation"

    @property
    def is_newer(self) -> bool:
        """Whether a newer subdeck wrote it; then nothing else of it was read."""
        return self.schema_version > SCHEMA_VERSION

    @property
    def all_warnings(self) -> tuple[str, ...]:
        return (*self.warnings, *self.tools.warnings)

    @property
    def short_id(self) -> str:
        return self.run_id[-6:]

    @property
    def title(self) -> str:
        """The preset's name for readers."""
        return readable_preset(self.preset)

    @property
    def stored_title(self) -> str:
        """The preset's name for programs."""
        return self.preset or NO_PRESET


class StopRequest(Struct, frozen=True):
    """`stop.json`: who asked a run to end, and how."""

    by: str
    """A session, or a parent agent in words; may be empty."""
    force: bool
    at: str
    reason: StopReason = StopReason.STOPPED


class Finalized(Struct, frozen=True, omit_defaults=True):
    """What a child handed over as its result."""

    status: FinalizeStatus
    result: str | None = None
    """The answer; with ERROR partial findings, or None."""
    error: str | None = None


class Undelivered(Struct, frozen=True, omit_defaults=True):
    """A message that never reached the child."""

    id: str
    text: str
    """Its beginning."""
    by: str = ""
    reason: str = ""


class RunResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """`result.json`: how a run ended; written exactly once."""

    run_id: str
    status: RunStatus
    reason: RunReason
    written_by: str
    """`wrapper`, or who finished a lost run."""
    schema_version: Whole = SCHEMA_VERSION
    exit_code: ExitCode | None = None
    signal: str | None = None
    stop_reason: str | None = None
    """The model's own word for why its last message ended."""
    error_message: str | None = None
    final_text: str | None = None
    partial: bool = False
    """True where `final_text` is what was being written when the run ended."""
    finalized: Finalized | None = None
    """None where the child handed over nothing, or did not have to."""
    attempts: Whole = 1
    resolved_model: str = ""
    child_session_id: str | None = None
    usage: Usage = Usage()
    started_at: str | None = None
    ended_at: str = ""
    duration_ms: Whole | None = None
    artifact_errors: tuple[str, ...] = ()
    conversation: str | None = None
    """Where the agent keeps the conversation; None where it is a file of ours, and where that is not known."""
    not_ended: tuple[str, ...] = ()
    """Processes of the run that live on although they were killed for a while, each as `sleep (pid 123)`."""
    undelivered: tuple[Undelivered, ...] = ()
    changes: Changes | None = None
    """None where nobody looked: the run never started, or an earlier version wrote this."""
    check: CheckResult | None = None
    """None where none was wanted, or where the run ended before."""
    snapshot: str = ""
    """Of a run that took its files to another machine: the commit that its branch begins with, the files as they were
    at its launch; empty for any other, and where it is not known what it changed."""
    branch: str = ""
    """With what it changed there, in the repository that it was launched in; empty where it changed nothing."""
    tampered: tuple[str, ...] = ()
    """Records of the run that something else wrote to, removed or replaced while it ran, each as a sentence."""
