"""All settings: type and bounds, default, meaning, and what a project may do with each.

This is the only table of them, except those below `hosts:` in `host_settings`. The files are read with it, and the
example file is made from it.
"""

# Without `from __future__ import annotations`: the keys are built from these annotations, and evaluating them from text
# takes longer than everything else here.

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import astuple

from ..agent_kinds import KINDS
from ..errors import SettingsError
from ..run.limits import Limits
from ..run.model import LogCaps, Permissions, RunnerKind, WorktreeFrom
from . import _app_names
from .host_settings import HostsSettings
from .notification_settings import Notifications
from .values import (
    Begins,
    Count,
    CountOrZero,
    Days,
    Dollars,
    Duration,
    Megabytes,
    Name,
    PriceOfTokens,
    ProjectMay,
    Rules,
    Seconds,
    Setting,
    Spelling,
    Switch,
    Texts,
    Variable,
    Verbatim,
    Words,
    argv,
)

MEGABYTE = 1024 * 1024
_OVERRIDES, _ADDS, _LOWERS = ProjectMay.OVERRIDES, ProjectMay.ADDS, ProjectMay.LOWERS


def _kind(word: str) -> str:
    if word.strip() not in KINDS:
        raise ValueError
    return word.strip()


Socket = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$"), Spelling("a name of letters, digits, _ and -")]
AgentName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+$"), Spelling("the name of an agent")]
Role = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"),
    Spelling("letters, digits, _, . and -", lambda name: name.removeprefix("@")),
]
RoleModel = Annotated[str, Meta(min_length=1), Spelling("a model such as provider/id")]
ModelName = Annotated[str, Meta(min_length=1), Spelling("the name of a model")]
Directory = Annotated[str, Meta(min_length=1), Spelling("a directory")]
Key = Annotated[str, Meta(min_length=1), Spelling('a key such as "ctrl+r"', _app_names.keys)]
ActionName = Annotated[str, Spelling("the name of an action", _app_names.action)]
Theme = Annotated[str, Spelling("the name of a theme", _app_names.theme)]
Columns = Annotated[
    tuple[Annotated[str, Spelling("the name of a column", _app_names.column)], ...],
    Spelling("a list of columns, such as [state, task, cost]", _app_names.columns),
]


class AgentSettings(Struct, frozen=True):
    command: Annotated[tuple[Verbatim, ...], Spelling('a list such as ["/opt/bin/pi", "--flag"]', argv)]
    """The program and its first arguments, never empty; a leading `~` of the program is already expanded."""
    kind: Annotated[str, Spelling(f"one of {', '.join(KINDS)}", _kind)] = ""
    """Empty means the kind with the agent's name, or pi."""
    env: Annotated[dict[Variable, Verbatim], Spelling('lines of the form "NAME: value"', dict)] = {}
    """Added to the agent's environment; never recorded."""


class PresetDir(Struct, frozen=True, omit_defaults=True):
    """A directory of another program's agent files."""

    path: Annotated[str, Meta(min_length=1), Spelling("a directory")]
    agent: AgentName = ""
    """Agent that runs them and, without `form`, the program that they were written for."""
    form: Annotated[str, Spelling("claude, codex or opencode")] = ""


class OwnCommand(Struct, frozen=True):
    """The user's own program, started by the app; a project cannot set one."""

    key: Key
    argv: Annotated[tuple[Verbatim, ...], Spelling('a list such as [lazygit, -p, "{cwd}"]', argv)]
    """Never a shell command line. `{run_id}`, `{cwd}`, `{answer_file}` and `{patch_file}` are replaced with those of
    the highlighted run.
    """
    title: Words = ""
    where: Literal["deck", "presets", "runs", "transcript"] = "deck"
    """The pane in which the key works."""
    terminal: Switch = False
    """Whether it gets the terminal until it exits."""


class TmuxSettings(Struct, frozen=True):
    socket: Annotated[Socket, Setting("Name of the private tmux server.", key="advanced.tmux_socket", is_rare=True)] = (
        "subdeck"
    )


class PriceSettings(Struct, frozen=True):
    """Prices of a model per million tokens, in dollars."""

    input: PriceOfTokens
    output: PriceOfTokens
    cache_read: PriceOfTokens | None = None
    cache_write: PriceOfTokens | None = None


class PermissionSettings(Permissions, frozen=True):
    allow: Annotated[
        Rules,
        Setting(
            "Rules for what agents may do without asking: a tool, or a tool with a pattern. A bash "
            "pattern covers one simple command, an edit pattern covers files below the run's "
            "directory.",
            "[read, 'bash(git diff *)', edit(src/**)]",
        ),
    ] = ()
    ask: Annotated[
        Rules, Setting("Rules for what agents must ask for, even if it is allowed.", "['bash(git push *)']", _ADDS)
    ] = ()
    deny: Annotated[
        Rules,
        Setting("Rules for what agents must not do, even if it is allowed.", "['bash(sudo *)', edit(.git/**)]", _ADDS),
    ] = ()


class Inheritance(Struct, frozen=True):
    """How much of a parent's conversation is passed on; only the user decides that."""

    recent_turns: Annotated[
        Count, Setting("Number of recent turn pairs to pass on.", key="parent_context.recent_turns", is_rare=True)
    ] = 6
    tool_output_window: Annotated[
        CountOrZero,
        Setting(
            "Number of the newest turns that keep their full tool outputs.",
            key="parent_context.tool_output_window",
            is_rare=True,
        ),
    ] = 2
    max_chars: Annotated[
        Count, Setting("Maximum number of characters to pass on.", key="parent_context.max_chars", is_rare=True)
    ] = 24_000


class Logs(Struct, frozen=True):
    stdout_mb: Annotated[
        Megabytes, Setting("Maximum size of an agent's saved stdout, in megabytes.", "", _LOWERS, is_rare=True)
    ] = 64.0
    stderr_mb: Annotated[
        Megabytes, Setting("Maximum size of an agent's saved stderr, in megabytes.", "", _LOWERS, is_rare=True)
    ] = 8.0

    events_mb: Annotated[
        Megabytes,
        Setting(
            "Maximum size of a run's saved events, in megabytes. The last text and the result are always kept.",
            "",
            _LOWERS,
            is_rare=True,
        ),
    ] = 256.0
    transcript_mb: Annotated[
        Megabytes,
        Setting(
            "Maximum size of a run's saved transcript, in megabytes. The last text and the result are always kept.",
            "",
            _LOWERS,
            is_rare=True,
        ),
    ] = 64.0

    @property
    def caps(self) -> LogCaps:
        return LogCaps(*(int(megabytes * MEGABYTE) for megabytes in astuple(self)))


class WebSettings(Struct, frozen=True):
    links: Annotated[
        Switch,
        Setting(
            "Allow links that reply to one request without a paired device, once and within five minutes: in "
            "notifications, and those of subdeck web link.",
            is_rare=True,
        ),
    ] = False


class Retention(Struct, frozen=True):
    """Which finished runs a clean-up keeps; by default it removes nothing."""

    days: Annotated[
        Days | None,
        Setting(
            "Move runs that finished more than this many days ago to the trash. This rule and the "
            "next two are applied at each start of the app.",
            "30",
        ),
    ] = None
    keep: Annotated[Count | None, Setting("Keep this many finished runs, and move older ones to the trash.", "500")] = (
        None
    )
    max_mb: Annotated[
        Megabytes | None,
        Setting("Move the oldest finished runs to the trash until all runs use at most this many megabytes.", "2000"),
    ] = None

    @property
    def is_set(self) -> bool:
        return (self.days, self.keep, self.max_mb) != (None, None, None)


class SettingFault(Struct, frozen=True):
    """A wrong value, as the parts of a SettingsError."""

    what: str
    where: str
    hint: str
    key: str = ""
    """The setting."""

    @property
    def error(self) -> SettingsError:
        return SettingsError(self.what, where=self.where, hint=self.hint)


class Settings(Struct, frozen=True, kw_only=True):
    agent: Annotated[
        AgentName,
        Setting(
            "Agent to use: auto (the first installed agent that can serve the model), "
            f"{', '.join(KINDS)}, or a name from agents."
        ),
    ] = "auto"
    agents: Annotated[
        dict[Name, Annotated[AgentSettings, Spelling('a "command:" below it', dict)]],
        Spelling('lines of the form "name:" with a "command:" below each', dict),
        Setting(
            "More agents, by name. Each has a command (a list of words, no shell), a kind (default: "
            "pi) and env, which is added to the agent's environment.",
            '{my-pi: {command: [~/bin/pi, "--offline"]}}',
        ),
    ] = {}
    default_model: Annotated[
        Words | None,
        Setting(
            "Model to use if neither the call nor the preset sets one. inherit: the parent's model, "
            "or the agent's default without a parent.",
            "anthropic/claude-haiku-4-5",
            _OVERRIDES,
        ),
    ] = None
    models: Annotated[
        Texts, Setting("Extra models to list beside those that the agent knows.", "[my-provider/my-model]", _ADDS)
    ] = ()
    """The user's first, then the project's."""
    roles: Annotated[
        dict[Role, RoleModel],
        Spelling('lines of the form "role: provider/id"', dict),
        Setting(
            'Aliases for models: "@fast" is the model named "fast" here. They override '
            "providers.json in the agent's directory.",
            "{fast: anthropic/claude-haiku-4-5, deep: anthropic/claude-opus-4-5:high}",
            _ADDS,
        ),
    ] = {}
    """By name without `@`; the project's override the user's."""
    preset_dirs: Annotated[
        tuple[Annotated[str, Meta(min_length=1), Spelling("text")] | PresetDir, ...],
        Spelling("a list of directories, such as [.pi/agents, {path: .claude/agents, agent: claude}]", tuple),
        Setting(
            "More preset directories, relative to the project. With agent: claude, codex or "
            "opencode, a directory of that program's agent files.",
            "[.pi/agents, {path: .claude/agents, agent: claude}]",
            _ADDS,
        ),
    ] = ()
    """Absolute; the project's first, then the user's. A text is a directory of subdeck presets."""
    bundled_presets: Annotated[Switch, Setting("Include the presets that come with subdeck.", "", _OVERRIDES)] = False
    trusted: Annotated[
        Texts,
        Setting(
            "Directories whose projects you trust even if another user owns them; * for all.",
            "[/srv/shop]",
            is_rare=True,
        ),
    ] = ()
    runner: Annotated[
        RunnerKind,
        Setting("How to run agents: process (detached), tmux (in a tmux window) or hosts (on another machine)."),
    ] = RunnerKind.PROCESS
    max_parallel: Annotated[Count, Setting("Maximum number of parallel runs per group.", "", _LOWERS)] = 4
    max_running: Annotated[Count | None, Setting("Maximum number of parallel runs in the project.", "8", _LOWERS)] = (
        None
    )
    checks: Annotated[
        dict[Name, Annotated[tuple[Verbatim, ...], Spelling("a list such as [make, test]", argv)]],
        Spelling('lines of the form "name: [program, argument]"', dict),
        Setting(
            "Commands that verify a run's result, by name; each is a list of words (no shell). A "
            "preset selects one with check: NAME. It runs in the run's directory after the agent "
            "finishes.",
            "{tests: [make, test], types: [npx, tsc, --noEmit]}",
        ),
    ] = {}
    limits: Limits = Limits()
    """Declared in `run.limits`."""
    worktree: Annotated[
        Begins,
        Setting(
            "Default for running in a separate git worktree: true or files (from your current "
            "files), head (from the last commit) or false.",
            "files",
            _OVERRIDES,
            key="worktree.default",
        ),
    ] = WorktreeFrom.NONE
    worktree_copy: Annotated[
        Texts,
        Setting(
            "Ignored files and directories to copy into each worktree: a name matches anywhere, a "
            "path starts at the root; * and ? are wildcards. If the file system can share blocks, "
            "copies use no extra space.",
            "[.env, node_modules]",
            key="worktree.copy",
        ),
    ] = ()
    worktree_link: Annotated[
        Texts,
        Setting(
            "The same, but linked instead of copied: the agent's writes there change your own files.",
            "[.cache/models, data/*.bin]",
            key="worktree.link",
        ),
    ] = ()
    worktree_setup: Annotated[
        tuple[Verbatim, ...],
        Spelling("a list such as [npm, ci, --prefer-offline]", argv),
        Setting(
            "Command to run in each new worktree before the agent starts, as a list of words (no "
            "shell). If it fails, the run does not start.",
            "[npm, ci, --prefer-offline]",
            key="worktree.setup",
        ),
    ] = ()
    worktree_setup_timeout: Annotated[
        Duration, Setting("Time limit of the setup command.", "10m", key="worktree.setup_timeout", is_rare=True)
    ] = 600.0
    day_budget: Annotated[
        Dollars | None,
        Setting(
            "Daily budget for all runs, in dollars. Once it is used up, each launch needs your confirmation.",
            "20",
            key="budget.day",
        ),
    ] = None
    project_budget: Annotated[
        Dollars | None, Setting("Daily budget for one project, in dollars.", "10", _LOWERS, key="budget.project")
    ] = None
    project_budgets: Annotated[
        dict[Directory, Dollars],
        Spelling('lines of the form "directory: dollars"', dict),
        Setting(
            "Daily budgets for single projects, by directory, including everything below it.",
            "{~/src/shop: 5}",
            key="budget.projects",
            is_rare=True,
        ),
    ] = {}
    prices: Annotated[
        dict[ModelName, Annotated[PriceSettings, Spelling('"input:" and "output:" below it', dict)]],
        Spelling('lines of the form "model:" with "input:" and "output:" below each', dict),
        Setting(
            "Price of a model in dollars per million tokens, for agents that report no price. "
            "cache_read and cache_write default to input. * matches any characters.",
            '{"gpt-5*": {input: 1.25, output: 10, cache_read: 0.125}}',
            key="budget.prices",
        ),
    ] = {}
    interactive: Annotated[
        Switch,
        Setting(
            "Agents accept messages and ask questions while they run, if they can. false: "
            "non-interactive. Presets can override this.",
            key="interactive.default",
            former=("talk",),
        ),
    ] = True
    reply_timeout: Annotated[
        Duration,
        Setting(
            "How long a permission request or question waits for your reply. After that it is "
            "denied, and the agent continues.",
            "10m",
            _LOWERS,
            key="interactive.reply_timeout",
            former=("answer_timeout",),
        ),
    ] = 600.0
    idle_timeout: Annotated[
        Duration,
        Setting(
            "How long an interrupted agent waits for your message. After that its run ends.",
            "30m",
            _LOWERS,
            key="interactive.idle_timeout",
        ),
    ] = 1800.0
    permissions: PermissionSettings = PermissionSettings()
    inherit_context: Annotated[
        Switch,
        Setting(
            "Pass the parent's conversation to the agent, if it is known. Presets can override this.",
            "",
            _OVERRIDES,
            key="parent_context.inherit",
        ),
    ] = True
    expose_isolated: Annotated[
        Switch,
        Setting(
            'Give the delegation tools an "isolated" argument, so that the parent agent decides '
            "whether to pass its conversation.",
            key="parent_context.expose_isolated",
            is_rare=True,
        ),
    ] = False
    inheritance: Inheritance = Inheritance()
    hosts: HostsSettings = HostsSettings()
    theme: Annotated[
        Theme | None,
        Setting(
            "Theme of the app: subdeck-dark, subdeck-light, terminal (the terminal's own colours), "
            "or a Textual theme such as nord.",
            "subdeck-light",
            key="app.theme",
        ),
    ] = None
    columns: Annotated[
        Columns,
        Setting(
            "Columns of the app's run list, in order: {names}. The least important columns are hidden on narrow "
            "screens.",
            "[state, task, now, age, model, cost]",
            names=_app_names.column_names,
            key="app.columns",
        ),
    ] = ()
    """Empty for the default columns."""
    keys: Annotated[
        dict[ActionName, Key],
        Spelling('lines of the form "action: key"', dict),
        Setting("Keys of the app, by action.", '{stop: "ctrl+x"}', key="app.keys", needs_restart=True),
    ] = {}
    """A value may be several keys separated by commas."""
    diff_pager: Annotated[
        tuple[Verbatim, ...],
        Spelling('a list such as [delta, "--paging=always"]', argv),
        Setting(
            "Program that shows a patch in the app, which it reads from stdin (default: your pager).",
            "[delta]",
            key="app.diff_pager",
            is_rare=True,
        ),
    ] = ()
    commands: Annotated[
        dict[Name, Annotated[OwnCommand, Spelling('a "key:" and an "argv:" below it', dict)]],
        Spelling('lines of the form "name:" with a "key:" and an "argv:" below each', dict),
        Setting(
            "Your own commands in the app: key, title, argv (a list of words, no shell; {run_id}, "
            "{cwd}, {answer_file} and {patch_file} come from the highlighted run), where (deck, "
            "presets, runs or transcript), and terminal: true for a program that needs the screen.",
            '{git: {key: "ctrl+g", title: lazygit, argv: [lazygit, -p, "{cwd}"], terminal: true}}',
            key="app.commands",
            needs_restart=True,
        ),
    ] = {}
    """By name; the action of each is named `own_` plus that name."""
    notifications: Notifications = Notifications()
    web: WebSettings = WebSettings()
    retention: Retention = Retention()
    logs: Logs = Logs()
    max_attempts: Annotated[
        Count,
        Setting(
            "Maximum number of attempts to get a structured result (with structured_result: true).",
            "",
            _LOWERS,
            key="advanced.max_attempts",
            is_rare=True,
        ),
    ] = 3
    check_timeout: Annotated[
        Duration, Setting("Stop a check after this time.", "10m", key="advanced.check_timeout", is_rare=True)
    ] = 600.0
    grace_seconds: Annotated[
        Seconds,
        Setting(
            "Seconds that a stopped agent has to exit before it is killed.", key="advanced.grace_seconds", is_rare=True
        ),
    ] = 3.0
    cgroup: Annotated[
        Literal["auto", "scope", "off"],
        Setting(
            "How to contain a run's processes: auto (its own control group if possible), scope (one "
            "from systemd-run --user), or off.",
            key="advanced.cgroup",
            is_rare=True,
        ),
    ] = "auto"
    tmux: TmuxSettings = TmuxSettings()
    notices: tuple[str, ...] = ()
    """Not a key: parts of the project's file without effect, and why (a cap above the user's)."""
    faults: tuple[SettingFault, ...] = ()
    """Not a key: wrong values of keys that only the app uses, replaced by defaults."""

    @property
    def has_day_budget(self) -> bool:
        """Whether daily spending is limited, for all runs or a project's."""
        return bool(self.day_budget or self.project_budget or self.project_budgets)
