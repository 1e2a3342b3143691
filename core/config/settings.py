"""Every setting: its type and bounds, its default, what it means, and what a project may do with it.

This is the one table of them, with what is below `hosts:` in `host_settings`. The files are read by it, and the example
file is written from it.
"""

# Without the usual `from __future__ import annotations`: the keys are made of these annotations, and to evaluate them
# from text takes longer than all else here.

import os
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import astuple

from ..agent_kinds import KINDS
from ..errors import SettingsError
from ..run.model import Limits, LogCaps, Permissions, RunnerKind, WorktreeFrom
from . import app_names
from .host_settings import HostsSettings
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
)

MEGABYTE = 1024 * 1024
_OVERRIDES, _ADDS, _LOWERS = ProjectMay.OVERRIDES, ProjectMay.ADDS, ProjectMay.LOWERS


def _argv(words: Sequence[str]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError
    return (os.path.expanduser(words[0]), *words[1:])


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
RoleModel = Annotated[str, Meta(min_length=1), Spelling("a model like provider/id")]
ModelName = Annotated[str, Meta(min_length=1), Spelling("the name of a model")]
Directory = Annotated[str, Meta(min_length=1), Spelling("a directory")]
Key = Annotated[str, Meta(min_length=1), Spelling('a key like "ctrl+r"', app_names.keys)]
ActionName = Annotated[str, Spelling("the name of an action", app_names.action)]
Theme = Annotated[str, Spelling("the name of a theme", app_names.theme)]
Columns = Annotated[
    tuple[Annotated[str, Spelling("the name of a column", app_names.column)], ...],
    Spelling("a list of columns like [state, task, cost]", app_names.columns),
]


class AgentSettings(Struct, frozen=True):
    command: Annotated[tuple[Verbatim, ...], Spelling('a list like ["/opt/bin/pi", "--flag"]', _argv)]
    """The program and its leading arguments, never empty; a leading `~` of the program is already expanded."""
    kind: Annotated[str, Spelling(f"one of {', '.join(KINDS)}", _kind)] = ""
    """Empty means that of its name, else pi."""
    env: Annotated[dict[Variable, Verbatim], Spelling('lines of the form "NAME: value"', dict)] = {}
    """Added to the environment of its children; kept in no record."""


class PresetDir(Struct, frozen=True, omit_defaults=True):
    """A directory of agent files that are written for another program."""

    path: Annotated[str, Meta(min_length=1), Spelling("a directory")]
    agent: AgentName = ""
    """Which agent runs them, and, where `form` does not say it, whose files they are."""
    form: Annotated[str, Spelling("claude, codex or opencode")] = ""


class OwnCommand(Struct, frozen=True):
    """A program of the operator's that the app starts; never named by a project."""

    key: Key
    argv: Annotated[tuple[Verbatim, ...], Spelling('a list like [lazygit, -p, "{cwd}"]', _argv)]
    """Never a line for a shell. `{run_id}`, `{cwd}`, `{answer_file}` and `{patch_file}` stand for those of the
    highlighted run.
    """
    title: Words = ""
    where: Literal["deck", "presets", "runs", "transcript"] = "deck"
    """The pane in which the key means it."""
    terminal: Switch = False
    """Whether it gets the terminal until it ends."""


class TmuxSettings(Struct, frozen=True):
    socket: Annotated[Socket, Setting("The name of the private tmux server.")] = "subdeck"


class LimitSettings(Limits, frozen=True):
    timeout: Annotated[
        Duration | None, Setting("Ends a run after this time; a preset may only ask for less.", "30m", _LOWERS)
    ] = None
    max_turns: Annotated[Count | None, Setting("Ends a run after this many turns.", "100", _LOWERS)] = None
    stall: Annotated[
        Duration | None, Setting("Ends a run whose child is silent that long while no tool runs.", "10m", _LOWERS)
    ] = None
    budget: Annotated[Dollars | None, Setting("Ends a run that has spent this many dollars.", "2.50", _LOWERS)] = None
    max_tokens: Annotated[
        Count | None, Setting("Ends a run that has used this many tokens, those of the cache too.", "5000000", _LOWERS)
    ] = None


class PriceSettings(Struct, frozen=True):
    """What a million tokens of a model cost, in dollars."""

    input: PriceOfTokens
    output: PriceOfTokens
    cache_read: PriceOfTokens | None = None
    cache_write: PriceOfTokens | None = None


class PermissionSettings(Permissions, frozen=True):
    allow: Annotated[
        Rules,
        Setting(
            "What children may do without asking, as rules: a tool, or what it is called with. A pattern of bash covers"
            " one simple command, one of edit files below the run's directory.",
            "[read, 'bash(git diff *)', edit(src/**)]",
        ),
    ] = ()
    ask: Annotated[
        Rules, Setting("What they have to ask for, whatever is allowed.", "['bash(git push *)']", _ADDS)
    ] = ()
    deny: Annotated[
        Rules, Setting("What they may not do, whatever is allowed.", "['bash(sudo *)', edit(.git/**)]", _ADDS)
    ] = ()


class Inheritance(Struct, frozen=True):
    """How much of a parent's conversation is handed over; only the operator decides that."""

    recent_turns: Annotated[Count, Setting("How many pairs of turns are handed over.")] = 6
    tool_output_window: Annotated[CountOrZero, Setting("In how many of the newest turns tool outputs stay whole.")] = 2
    max_chars: Annotated[Count, Setting("How many characters are handed over at most.")] = 24_000


class Logs(Struct, frozen=True):
    stdout_mb: Annotated[Megabytes, Setting("How much of a child's stdout is kept.", "", _LOWERS)] = 64.0
    stderr_mb: Annotated[Megabytes, Setting("How much of a child's stderr is kept.", "", _LOWERS)] = 8.0

    events_mb: Annotated[
        Megabytes, Setting("How much of a run's events is kept; the last text and the end always are.", "", _LOWERS)
    ] = 256.0
    transcript_mb: Annotated[
        Megabytes, Setting("How much of a run's transcript is kept; the same holds for it.", "", _LOWERS)
    ] = 64.0

    @property
    def caps(self) -> LogCaps:
        return LogCaps(*(int(megabytes * MEGABYTE) for megabytes in astuple(self)))


class Notifications(Struct, frozen=True):
    toasts: Annotated[Switch, Setting("Whether the app announces in toasts that runs have ended.")] = True
    bell: Annotated[Switch, Setting("Whether the terminal's bell rings too.")] = False
    desktop: Annotated[
        Literal["off", "osc9", "osc777"],
        Setting(
            "How the terminal is asked for a desktop notification: off, osc9 (iTerm2, Windows Terminal, kitty)"
            " or osc777 (foot, Ghostty, urxvt).",
            "osc9",
        ),
    ] = "off"
    title: Annotated[Switch, Setting("Whether the terminal's title shows how many runs are running.")] = True


class Retention(Struct, frozen=True):
    """Which finished runs a clean-up leaves; all None means that nothing is ever taken."""

    days: Annotated[
        Days | None,
        Setting(
            "Runs that ended longer ago go to the trash, at each start of the app; so with the next two rules.", "30"
        ),
    ] = None
    keep: Annotated[Count | None, Setting("How many finished runs are kept; older ones go to the trash.", "500")] = None
    max_mb: Annotated[
        Megabytes | None,
        Setting("The oldest finished runs go to the trash until all runs take no more room than this.", "2000"),
    ] = None

    @property
    def is_set(self) -> bool:
        return (self.days, self.keep, self.max_mb) != (None, None, None)


class SettingFault(Struct, frozen=True):
    """A wrong value, in the parts of a SettingsError."""

    what: str
    where: str
    hint: str

    @property
    def error(self) -> SettingsError:
        return SettingsError(self.what, where=self.where, hint=self.hint)


class Settings(Struct, frozen=True, kw_only=True):
    agent: Annotated[
        AgentName,
        Setting(
            f"The child program: auto (the first that is installed and can serve the model), {', '.join(KINDS)},"
            " or a name below agents."
        ),
    ] = "auto"
    agents: Annotated[
        dict[Name, Annotated[AgentSettings, Spelling('a "command:" below it', dict)]],
        Spelling('lines of the form "name:" with a "command:" below each', dict),
        Setting(
            "More agents: for each the command, a list of words and never a line for a shell; the kind, pi unless it is"
            " said; and the environment, added to what its children get.",
            '{my-pi: {command: [~/bin/pi, "--offline"]}}',
        ),
    ] = {}
    default_model: Annotated[
        Words | None,
        Setting(
            "The model where neither the call nor the preset names one;"
            " inherit: the parent's, else the agent's default.",
            "anthropic/claude-haiku-4-5",
            _OVERRIDES,
        ),
    ] = None
    models: Annotated[
        Texts, Setting("Models to offer beside those the agent knows.", "[my-provider/my-model]", _ADDS)
    ] = ()
    """The user's first, then the project's."""
    roles: Annotated[
        dict[Role, RoleModel],
        Spelling('lines of the form "role: provider/id"', dict),
        Setting(
            'Names for models: the model "@fast" is the one named "fast" here.'
            " They override providers.json in the agent's directory.",
            "{fast: anthropic/claude-haiku-4-5, deep: anthropic/claude-opus-4-5:high}",
            _ADDS,
        ),
    ] = {}
    """By name without `@`; the project's go before the user's."""
    preset_dirs: Annotated[
        tuple[Annotated[str, Meta(min_length=1), Spelling("a text")] | PresetDir, ...],
        Spelling("a list of directories like [.pi/agents, {path: .claude/agents, agent: claude}]", tuple),
        Setting(
            "More directories with presets, relative to the project; with an agent (claude, codex, opencode) those of"
            " its own agent files.",
            "[.pi/agents, {path: .claude/agents, agent: claude}]",
            _ADDS,
        ),
    ] = ()
    """Absolute; the project's first, then the user's. A text is a directory of presets of ours."""
    trusted: Annotated[
        Texts,
        Setting("Directories whose projects are used although they are another user's; * for all.", "[/srv/shop]"),
    ] = ()
    bundled_presets: Annotated[
        Switch, Setting("Whether the presets that come with subdeck are offered.", "", _OVERRIDES)
    ] = False
    runner: Annotated[RunnerKind, Setting("How children are run.")] = RunnerKind.PROCESS
    tmux: TmuxSettings = TmuxSettings()
    worktree: Annotated[
        Begins,
        Setting(
            "Whether runs work in a git worktree of their own where preset and call do not say: true or files (of the"
            " files as they are), head (of the commit that is checked out) or false.",
            "",
            _OVERRIDES,
        ),
    ] = WorktreeFrom.NONE
    worktree_copy: Annotated[
        Texts,
        Setting(
            "Files and directories that git ignores and a worktree needs: a name wherever it is, or a path from the"
            " root, with * and ?. They are copied, without taking room where the file system can share blocks.",
            "[.env, node_modules]",
        ),
    ] = ()
    worktree_link: Annotated[
        Texts,
        Setting(
            "The same, linked: what a child writes there it writes in your own files.", "[.cache/models, data/*.bin]"
        ),
    ] = ()
    worktree_setup: Annotated[
        tuple[Verbatim, ...],
        Spelling("a list like [npm, ci, --prefer-offline]", _argv),
        Setting(
            "A command that is run in each new worktree before the child starts, a list of words and never a line for a"
            " shell; where it fails the run does not start.",
            "[npm, ci, --prefer-offline]",
        ),
    ] = ()
    worktree_setup_timeout: Annotated[Duration, Setting("How long that command may take.", "10m")] = 600.0
    max_parallel: Annotated[Count, Setting("How many runs of one group run at the same time.", "", _LOWERS)] = 4
    max_running: Annotated[
        Count | None, Setting("How many runs of the project run at the same time.", "8", _LOWERS)
    ] = None
    grace_seconds: Annotated[Seconds, Setting("Seconds that a stopped child has to exit before it is killed.")] = 3.0
    cgroup: Annotated[
        Literal["auto", "scope", "off"],
        Setting(
            "What keeps a run's processes together: auto (a control group of its own where one can be made),"
            " scope (one that systemd-run --user makes), or off."
        ),
    ] = "auto"
    limits: LimitSettings = LimitSettings()
    day_budget: Annotated[
        Dollars | None,
        Setting("Dollars that all runs of a day may spend; beyond it nothing is launched, but as it is allowed.", "20"),
    ] = None
    project_budget: Annotated[
        Dollars | None, Setting("Dollars that the runs of one project may spend in a day.", "10", _LOWERS)
    ] = None
    project_budgets: Annotated[
        dict[Directory, Dollars],
        Spelling('lines of the form "directory: dollars"', dict),
        Setting("The same for single projects, by directory, with all below it.", "{~/src/shop: 5}"),
    ] = {}
    prices: Annotated[
        dict[ModelName, Annotated[PriceSettings, Spelling('"input:" and "output:" below it', dict)]],
        Spelling('lines of the form "model:" with "input:" and "output:" below each', dict),
        Setting(
            "What a million tokens of a model cost in dollars, for agents that tell no price; cache_read and"
            " cache_write cost as input does unless they are said. A * stands for any characters.",
            '{"gpt-5*": {input: 1.25, output: 10, cache_read: 0.125}}',
        ),
    ] = {}
    interactive: Annotated[
        Switch,
        Setting("Whether children that can do so take messages and ask while they run; a preset may say otherwise."),
    ] = True
    permissions: PermissionSettings = PermissionSettings()
    reply_timeout: Annotated[
        Duration,
        Setting(
            "How long a request of a child waits for a reply; then it is denied, and the child goes on.", "10m", _LOWERS
        ),
    ] = 600.0
    idle_timeout: Annotated[
        Duration,
        Setting("How long an interrupted child waits for what is said next; then its run ends.", "30m", _LOWERS),
    ] = 1800.0
    max_attempts: Annotated[
        Count, Setting("How often at most a child is asked for its result, with structured_result: true.", "", _LOWERS)
    ] = 3
    inherit_context: Annotated[
        Switch,
        Setting("Whether a known parent's conversation is handed over where the preset does not say.", "", _OVERRIDES),
    ] = True
    expose_isolated: Annotated[
        Switch, Setting('Whether the tools have the argument "isolated", for a parent to decide that.')
    ] = False
    inheritance: Inheritance = Inheritance()
    hosts: HostsSettings = HostsSettings()
    logs: Logs = Logs()
    theme: Annotated[
        Theme | None,
        Setting(
            "The app's theme: subdeck-dark, subdeck-light, terminal (its own colours), or one of Textual's,"
            " such as nord.",
            "subdeck-light",
        ),
    ] = None
    columns: Annotated[
        Columns,
        Setting(
            "The columns of the app's list of runs, in their order: state, preset, task, now, host, age, elapsed,"
            " tokens, cost, changes, agent, model, id. Where there is little room, those that matter least are left"
            " out.",
            "[state, task, now, age, model, cost]",
        ),
    ] = ()
    """Empty for the usual ones."""
    keys: Annotated[
        dict[ActionName, Key],
        Spelling('lines of the form "action: key"', dict),
        Setting("Keys of the app, by action.", '{stop: "ctrl+x"}'),
    ] = {}
    """A value may be several keys with commas between them."""
    diff_pager: Annotated[
        tuple[Verbatim, ...],
        Spelling('a list like [delta, "--paging=always"]', _argv),
        Setting("The program that shows a patch in the app, on its stdin; without one your pager does.", "[delta]"),
    ] = ()
    commands: Annotated[
        dict[Name, Annotated[OwnCommand, Spelling('a "key:" and an "argv:" below it', dict)]],
        Spelling('lines of the form "name:" with a "key:" and an "argv:" below each', dict),
        Setting(
            "Your own commands in the app: key, title, argv (a list of words, never a line for a shell; {run_id},"
            " {cwd}, {answer_file} and {patch_file} are those of the highlighted run), where (deck, presets, runs or"
            " transcript), and terminal: true for a program that needs the screen.",
            '{git: {key: "ctrl+g", title: lazygit, argv: [lazygit, -p, "{cwd}"], terminal: true}}',
        ),
    ] = {}
    """By name; their actions are called `own_` and that name."""
    checks: Annotated[
        dict[Name, Annotated[tuple[Verbatim, ...], Spelling("a list like [make, test]", _argv)]],
        Spelling('lines of the form "name: [program, argument]"', dict),
        Setting(
            "Commands that look at what a run left, by name: each a list of words, never a line for a shell. A preset"
            " names the one that is run in the run's directory when its child has ended (check: tests).",
            "{tests: [make, test], types: [npx, tsc, --noEmit]}",
        ),
    ] = {}
    check_timeout: Annotated[Duration, Setting("Ends a check after this time.", "10m")] = 600.0
    notifications: Notifications = Notifications()
    retention: Retention = Retention()
    notices: tuple[str, ...] = ()
    """Not a key: what of the project's file has no effect, and why (a cap above the user's)."""
    faults: tuple[SettingFault, ...] = ()
    """Not a key: wrong values of keys that only change how the app looks, in whose place the defaults are used."""

    @property
    def has_day_budget(self) -> bool:
        """Whether there is a limit to what may be spent in a day, by all runs or by those of a project."""
        return bool(self.day_budget or self.project_budget or self.project_budgets)
