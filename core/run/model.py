"""The records of a run: its request, the decisions before its start, and its result.

Annotations are evaluated here: written as text, msgspec would compile each one in each process that reads a record.
"""

from msgspec import Struct

from ..agent_kinds import is_interactive, kind_of
from ..text.plain import one_line
from .changes import Changes, CheckResult, WorktreePlan
from .enumerations import (
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
from .limits import Limits as Limits, Usage as Usage
from .prices import Price

SCHEMA_VERSION = 1
"""Schema of the records that this version writes, and the newest that it reads."""
OPERATOR = "operator"
"""The session of a user at the app or a shell."""
SENDER = 90
"""Characters of a sender's name, such as that of a device and its address."""
NO_PRESET = "ad hoc"
"""Preset of a one-off run in output for programs."""


def by_session(session: str) -> str:
    """Return ` by NAME` for readers; empty without a session."""
    return f" by {session_words(session)}" if session.strip() else ""


def session_words(session: str) -> str:
    """Return a session's name for readers."""
    return "the user" if session == OPERATOR else one_line(session, SENDER)


def readable_preset(name: str | None) -> str:
    """Return a preset's name for readers; `name` may be one that programs read."""
    return "one-off" if name in (None, "", NO_PRESET) else name


def newer_schema(version: int) -> str:
    """Explain that a record needs a newer version, and the way out."""
    versions = f"schema {version}, this one reads up to {SCHEMA_VERSION}"
    return f"written by a newer subdeck ({versions}): use that version for it"


class Group(Struct, frozen=True, rename="camel"):
    """Runs that were launched together and share `max_parallel` slots."""

    id: str
    index: Whole
    size: Whole
    max_parallel: Whole


class Tools(Struct, frozen=True, rename="camel", omit_defaults=True):
    policy: ToolPolicy = ToolPolicy.AGENT
    resolved: tuple[str, ...] | None = None
    """Tools passed to the agent; None means no flag, empty means no tools."""
    warnings: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Tools that the agent must not offer; only without `resolved`."""
    starts_servers: bool = True
    """Whether the agent may start the MCP servers that its user has set up for it."""


class Permissions(Struct, frozen=True, omit_defaults=True):
    """What an agent may do without asking, must ask for, and must not do; rules such as `bash(git *)`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class LogCaps(Struct, frozen=True, rename="camel"):
    """Bytes kept of the agent's raw output, of the events and of the transcript."""

    stdout: Whole = 64 * 1024 * 1024
    stderr: Whole = 8 * 1024 * 1024
    events: Whole = 256 * 1024 * 1024
    transcript: Whole = 64 * 1024 * 1024


class LaunchedBy(Struct, frozen=True, rename="camel"):
    session: str
    kind: LauncherKind


class InheritedContext(Struct, frozen=True):
    """How much of its parent's conversation an agent got."""

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
    """A conversation that the agent stores itself."""

    resume: str | None = None
    """Id of the conversation to continue; None begins one."""
    id_file: str | None = None
    """File with the id of a conversation that several runs share; accessed under the lock of the session."""
    source: str | None = None
    """The run that last used the conversation to continue."""


class RunMeta(Struct, frozen=True, kw_only=True, rename="camel"):
    """`meta.json`: everything decided before the start; rewritten only when the run is trusted."""

    run_id: str
    task: str
    """As typed, with `{previous}` filled in."""
    cwd: str
    agent: str
    """Name of the agent: a kind, or a name from the settings."""
    agent_command: tuple[str, ...]
    """The program and its leading arguments, resolved at launch."""
    runner: RunnerKind
    created_at: str
    launched_by: LaunchedBy
    schema_version: Whole = SCHEMA_VERSION
    background: bool = False
    group: Group | None = None
    preset: str = ""
    """Empty for a one-off run."""
    preset_source: PresetSource = PresetSource.ADHOC
    preset_path: str | None = None
    description: str = ""
    requested_model: str = ""
    """As written in the call, the preset or the setting; empty if the agent needs none."""
    resolved_model: str = ""
    """The agent's spelling."""
    thinking: str | None = None
    tools: Tools = Tools()
    system_prompt: str | None = None
    """None in snapshots, which omit it, and if there is none."""
    system_prompt_path: str | None = None
    prompt_mode: PromptMode = PromptMode.APPEND
    context_files: bool | None = None
    """Whether the agent reads AGENTS.md and the like; None: unless its system prompt was replaced."""
    project_resources: bool | None = None
    """False: the agent loads no files that the project provides for it, except context files."""
    child_session_id: str | None = None
    session_path: str | None = None
    """None: the run has no session file."""
    session_lock: str | None = None
    """Lock of a session that several runs share; None for the run's own session."""
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
    """Decisions that differ from the request: a limit, a thinking level, an unknown model."""
    agent_kind: str = ""
    """Kind of the agent program; empty in runs of earlier versions."""
    agent_session: AgentSession | None = None
    """The conversation, if the agent stores it itself; None with `session_path`, and if none is kept."""
    talk: bool | None = None
    """Whether the agent takes messages and asks while it runs; None in runs of earlier versions, which have no
    inbox.
    """
    permissions: Permissions | None = None
    answer_timeout: Period | None = None
    """Seconds after which an unanswered request is denied; None means never."""
    idle_timeout: Period | None = None
    """Seconds that an interrupted agent waits for a message; None means without limit."""
    by_hand: bool = False
    """Whether the user continues the conversation in the agent's own UI before an agent process starts."""
    worktree: WorktreePlan | None = None
    """Its worktree; None if it works in its project's files."""
    check: str = ""
    """Name of the user's check that runs after the agent; empty for none."""
    host: str = ""
    """The host that it must run on; empty for any host, and for a local run."""
    needs: dict[str, Cost] = {}
    """Resources required of its host, such as `gpu: 1`; each is reserved there while the run lasts."""
    prices: tuple[Price, ...] = ()
    """Prices from the user's table, for an agent that reports none; only entries that may match its model."""
    result_signed: bool = False
    """Whether its result and stop requests count only with the user's signature; false in older runs."""
    decided_by: dict[str, str] = {}
    """By field: whether call, preset or settings decided it; empty in older runs."""

    @property
    def origin_cwd(self) -> str:
        """Where it was launched: its directory, or the directory that its worktree copies."""
        return self.worktree.origin if self.worktree else self.cwd

    @property
    def is_in_spool(self) -> bool:
        """Whether this is the record on a host: the launching machine reports its spending to the ledger."""
        return bool(self.host) and self.runner == RunnerKind.PROCESS

    @property
    def kind(self) -> str:
        """The kind of its agent."""
        return self.agent_kind or kind_of(self.agent)

    @property
    def keeps_session(self) -> bool:
        """Whether it has a conversation to continue."""
        return bool(self.session_path or self.agent_session)

    @property
    def why_not_by_hand(self) -> str:
        """Why its conversation cannot be continued in the agent's own UI; empty if it can."""
        if not is_interactive(self.kind):
            return f"the agent {one_line(self.agent, 64)} does not have its own UI"
        return "" if self.keeps_session else "it saves no conversation"

    @property
    def is_newer(self) -> bool:
        """Whether a newer subdeck wrote it; then no other field was read."""
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
    """The structured result that an agent returned."""

    status: FinalizeStatus
    result: str | None = None
    """The answer; with ERROR, partial findings or None."""
    error: str | None = None


class Undelivered(Struct, frozen=True, omit_defaults=True):
    """A message that never reached the agent."""

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
    """`wrapper`, or the process that finished a lost run."""
    schema_version: Whole = SCHEMA_VERSION
    exit_code: ExitCode | None = None
    signal: str | None = None
    stop_reason: str | None = None
    """The model's own word for why its last message ended."""
    error_message: str | None = None
    final_text: str | None = None
    partial: bool = False
    """Whether `final_text` was still being written when the run ended."""
    finalized: Finalized | None = None
    """None if the agent returned none, or did not have to."""
    attempts: Whole = 1
    resolved_model: str = ""
    child_session_id: str | None = None
    usage: Usage = Usage()
    started_at: str | None = None
    ended_at: str = ""
    duration_ms: Whole | None = None
    artifact_errors: tuple[str, ...] = ()
    conversation: str | None = None
    """Where the agent keeps the conversation; None if it is a session file, or unknown."""
    not_ended: tuple[str, ...] = ()
    """Processes of the run that survived repeated kills, each as `sleep (pid 123)`."""
    undelivered: tuple[Undelivered, ...] = ()
    changes: Changes | None = None
    """None if not examined: the run never started, or an earlier version wrote this."""
    check: CheckResult | None = None
    """None if there was no check, or the run ended before it."""
    snapshot: str = ""
    """For a run with files on another machine: the first commit of its branch, with the files as of its launch; empty
    for any other run, and if its changes are unknown.
    """
    branch: str = ""
    """Branch with its changes there, in the repository that it was launched in; empty without changes."""
    tampered: tuple[str, ...] = ()
    """Records of the run that were changed, removed or replaced from outside while it ran, each as a sentence."""
