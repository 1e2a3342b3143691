"""Checks of subdeck's requirements on this machine and in this project, each with the step that fixes a problem.

A check changes nothing. It starts only `node --version`, if pi's package requires a version of node, and git: for its
version, and for the worktrees of runs.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from . import __version__, paths, settings_check, trust
from .agent_kinds import KINDS, AgentKind
from .agents.agent import AgentChoice
from .agents.choice import AUTO, choose_agent, credentials_of, installed_agents, usual_model
from .agents.loader import launching_side
from .agents.program import version_numbers
from .config.settings import Settings
from .config.workspace import Workspace
from .errors import AgentUnavailable, SubdeckError
from .launch.preview import obstacles
from .presets.catalog import discover
from .run.describe import size_text
from .run.signature import check_key
from .settings_check import Severity
from .system import cgroup, files, processes
from .text.plain import one_line
from .text.shell import shell_word

LOW_DISK_BYTES = 100 * 1024 * 1024


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Something works less well, or not yet."""
    PROBLEM = "problem"
    """Runs cannot start here, or their state cannot be proven."""


SYMBOLS = {State.OK: "✓", State.WARN: "!", State.PROBLEM: "✗"}
"""Shown beside the word in the app and on the command line."""


class Check(Struct, frozen=True):
    name: str
    state: State
    detail: str
    fix: str = ""
    """The command or step that fixes it."""


def examine(cwd: str | None = None) -> tuple[Check, ...]:
    """Run all checks, as for a launch from `cwd` (default: the current directory)."""
    where = os.path.abspath(cwd or os.getcwd())
    project = trust.find_project(where)
    findings = settings_check.check(project)
    settings = findings.settings
    return (
        Check("subdeck", State.OK, f"{__version__} in {os.path.dirname(os.path.abspath(__file__))}"),
        Check("python", State.OK, f"{platform.python_version()} ({sys.executable})"),
        *_system(project),
        *_processes(settings),
        _key(),
        *_project(project),
        *_work(project),
        *_settings(findings),
        *_notifications(settings),
        *_presets(Workspace(project, where, settings)),
        *_agent(settings),
        *_recommended_agents(settings),
        *_other_agents(settings),
        *_runtimes(settings),
        _git(),
        *_programs(),
    )


def worst_first(checks: Iterable[Check]) -> list[Check]:
    """Return the checks with the problems first, then the warnings; otherwise in their order."""
    states = list(reversed(State))
    return sorted(checks, key=lambda check: states.index(check.state))


def summary(checks: Sequence[Check]) -> str:
    """Sum up the checks in one line: `1 problem, 2 warnings: fix the problem before you start runs here.`"""
    problems, warnings = (sum(check.state is state for check in checks) for state in (State.PROBLEM, State.WARN))
    counts = [f"{problems or 'No'} problem{'' if problems == 1 else 's'}"]
    if warnings:
        counts.append(f"{warnings} warning{'' if warnings == 1 else 's'}")
    which = "problem" if problems == 1 else "problems"
    advice = f"fix the {which} before you start runs here" if problems else "runs can start here"
    return f"{', '.join(counts)}: {advice}."


def missing_programs(settings: Settings) -> tuple[Check, ...]:
    """Return the programs to install before runs use a model and can be attached to."""
    checks = (*_recommended_agents(settings), _tmux())
    return tuple(check for check in checks if check.state is not State.OK)


def _system(project: paths.Project) -> Iterator[Check]:
    if sys.platform != "linux":
        detail = f"{platform.system()} lacks pidfd and /proc"
        yield Check("system", State.PROBLEM, detail, "use Linux (WSL 2 and containers too)")
        return
    features: dict[str, tuple[Callable[[], bool], str]] = {
        "flock": (lambda: _can_lock(project), "keep the project on a local file system"),
        "pidfd": (_has_pidfd, "use Linux 5.3 or newer, or a sandbox that allows pidfd_open"),
        "/proc": (lambda: processes.start_time(os.getpid()) is not None, "mount /proc"),
    }
    fixes = {name: fix for name, (works, fix) in features.items() if not works()}
    kernel = f"{platform.system()} {platform.release()}"
    if fixes:
        verb = "does" if len(fixes) == 1 else "do"
        detail = f"{kernel}: {', '.join(fixes)} {verb} not work"
        yield Check("system", State.PROBLEM, detail, "; ".join(fixes.values()))
    else:
        yield Check("system", State.OK, f"{kernel}: {', '.join(features)}")


def _processes(settings: Settings) -> Iterator[Check]:
    """Check how a run's processes are kept together, and which could be missed."""
    if sys.platform != "linux":
        return
    systemd_run, home = shutil.which("systemd-run"), cgroup.own()
    scope = "advanced.cgroup: scope"
    if settings.cgroup == "scope":
        if systemd_run is None:
            detail = f"the setting {scope} requires systemd-run, which is not on PATH"
            yield Check("processes", State.PROBLEM, detail, "remove the setting, or install systemd")
        else:
            yield Check("processes", State.OK, f"systemd creates a scope for each run (setting {scope})")
    elif settings.cgroup == "auto" and home is not None and cgroup.can_make_groups(home):
        yield Check("processes", State.OK, f"each run gets a control group below {home}")
    else:
        why = (
            "turned off by the setting advanced.cgroup: off"
            if settings.cgroup == "off"
            else f"cannot create one below {home or 'ours'}"
        )
        detail = f"no control groups ({why}): a detached daemon can outlive a killed wrapper"
        has_manager = os.path.exists(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "systemd", "private"))
        if settings.cgroup == "auto" and systemd_run and has_manager:
            yield Check(
                "processes", State.WARN, detail, f'"advanced: {{cgroup: scope}}" in {paths.user_settings_file()}'
            )
        else:
            yield Check("processes", State.OK, detail)
    if not os.path.exists("/proc/1/stat"):
        detail = (
            "/proc hides the processes of other users (hidepid), including those that an agent starts as another user"
        )
        yield Check("processes", State.WARN, detail, "mount -o remount,hidepid=0 /proc")


def _key() -> Check:
    """Check that runs can be signed as this user's."""
    path = paths.key_file()
    try:
        check_key()
    except SubdeckError as error:
        return Check("key", State.PROBLEM, f"{error.where}: {error.what}", error.hint)
    return Check("key", State.OK, path if os.path.lexists(path) else f"{path} is created by the first launch")


def _can_lock(project: paths.Project) -> bool:
    """Try a lock on an unnamed file in the project's file system; assume success if none can be created."""
    try:
        descriptor = files.open_file(os.path.join(_nearest(project.runs), "."), os.O_TMPFILE | os.O_RDWR)
    except OSError:
        return True
    try:
        return files.try_lock(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _project(project: paths.Project) -> Iterator[Check]:
    if fault := trust.fault_of(project):
        yield Check("project", State.PROBLEM, f"{fault.where}: {fault.what}", fault.hint)
        return
    if os.path.lexists(f"{project.root}/.git") and not paths.is_repository(project.root, trust.is_trusted):
        detail = f"ignoring {project.root}/.git: it belongs to another user or is not a repository"
        yield Check("project", State.WARN, detail, f"git -C {shell_word(project.root)} status says more")
    directory = _nearest(project.home)
    if not os.access(directory, os.W_OK | os.X_OK):
        yield Check("project", State.PROBLEM, f"{directory} is not writable", f"chmod u+rwx {shell_word(directory)}")
        return
    kind = "git repository" if os.path.lexists(os.path.join(project.root, ".git")) else "directory without git"
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if free < LOW_DISK_BYTES:
        detail = f"{project.root}: only {free >> 20} MB of disk are free"
        yield Check("project", State.WARN, detail, "subdeck rm --purge RUN")
    else:
        yield Check("project", State.OK, f"{project.root} ({kind}, writable)")


def _work(project: paths.Project) -> Iterator[Check]:
    """Report the runs' worktrees and the remains of deleted ones, if there are any."""
    from .work import acts
    from .work.worktrees import RunState, left_in_repository, listed

    worktrees = list(listed(project))
    forgotten = len(left_in_repository(project)) if worktrees or os.path.isdir(paths.works_dir(project)) else 0
    lost = sum(worktree.run is RunState.LOST for worktree in worktrees)
    odd = sum(bool(worktree.state.trouble) for worktree in worktrees)
    if worktrees or forgotten:
        counted = f"{len(worktrees)} ({size_text(sum(worktree.size for worktree in worktrees))})"
        named = ((lost, "of lost runs"), (odd, "with problems"), (forgotten, "known to git only"))
        detail = ", ".join([counted, *(f"{count} {what}" for count, what in named if count)])
        fix = "subdeck worktrees" if lost or odd else "git worktree prune" if forgotten else ""
        yield Check("worktrees", State.WARN if fix else State.OK, detail, fix)
    for act in acts.read(project):
        if act.begun:
            yield Check(
                "undo", State.WARN, f"{one_line(act.title, 80)} was interrupted", "press u in the app to undo it"
            )


def _settings(findings: settings_check.Findings) -> Iterator[Check]:
    states = {Severity.ERROR: State.PROBLEM, Severity.WARNING: State.WARN, Severity.NOTICE: State.WARN}
    checks = [Check("settings", states[each.severity], str(each), each.hint) for each in findings.problems]
    if not any(check.state is State.PROBLEM for check in checks):
        detail = ", ".join(findings.files) or f"no file; subdeck would read {paths.user_settings_file()}"
        yield Check("settings", State.OK, detail)
    yield from checks


def _notifications(settings: Settings) -> Iterator[Check]:
    """Report the ways to notify the user away from the terminal, and notifications that could not be delivered."""
    from urllib.parse import urlsplit

    from .alerts import spool

    sent = settings.notifications
    if not sent.is_sent:
        return
    host = urlsplit(sent.url or "").hostname  # the rest of the address may be a secret
    ways = [*([f"command {one_line(sent.command[0], 200)}"] if sent.command else ()), *([host] if host else ())]
    failures = spool.failures()
    if not failures:
        yield Check("notify", State.OK, f"{' and '.join(ways)} (content: {sent.content})")
        return
    last = next(reversed([channel.fault for channel in failures[-1].channels.values() if channel.fault]), "")
    count = f"{len(failures)} notification{'' if len(failures) == 1 else 's'} could not be delivered"
    yield Check("notify", State.WARN, f"{count}; the last one: {last}", "subdeck notify --test")


def _presets(workspace: Workspace) -> Iterator[Check]:
    catalog = discover(workspace)
    agent_dir = paths.agent_dir()
    yield Check("agent dir", State.OK, agent_dir if os.path.isdir(agent_dir) else f"{agent_dir} (does not exist yet)")
    if catalog.presets:
        names = ", ".join(preset.name for preset in catalog.presets)
        yield Check("presets", State.OK, f"{len(catalog.presets)}: {names}")
    elif not catalog.problems:
        detail = f"none in {', '.join(catalog.directories)}"
        yield Check("presets", State.WARN, detail, "subdeck presets shows how to write one")
    for name, reasons in obstacles(catalog.presets, workspace).items():
        yield Check("presets", State.WARN, f"{one_line(name)} cannot start: {reasons[0].what}", reasons[0].hint)
    for problem in catalog.problems:
        fix = "" if os.path.isdir(problem.path) else f"edit {shell_word(problem.path)}"
        yield Check("presets", State.WARN, f"{problem.where}: {problem.message}", fix)


def _agent(settings: Settings) -> Iterator[Check]:
    try:
        choice = choose_agent(settings.agent, settings)
    except SubdeckError as error:
        yield Check("agent", State.PROBLEM, f"{error.where}: {error.what}" if error.where else error.what, error.hint)
        return
    why = f"{choice.label} (setting agent: {settings.agent})"
    if settings.agent == AUTO:
        model = usual_model(settings)
        yield Check("agent", State.OK, f"{why}, for default_model {one_line(model, 80)}" if model else why)
    else:
        yield Check("agent", State.OK, f"{why}; auto would use {choose_agent(AUTO, settings).label}")


def _recommended_agents(settings: Settings) -> Iterator[Check]:
    for name in (kind.name for kind in KINDS.values() if kind.recommended):
        try:
            choice = choose_agent(name, settings)
        except AgentUnavailable as error:
            detail = f"{error.where}: {error.what}" if error.where.startswith(os.sep) else error.what
            usable = [agent.name for agent in installed_agents(settings) if not agent.own_model]
            if usable:
                yield Check(name, State.OK, f"{detail}; usable: {', '.join(usable)}")
            else:
                yield Check(name, State.WARN, f"{detail}; only the offline agent works without it", error.hint)
        else:
            yield Check(name, State.OK, _agent_detail(choice))


def _other_agents(settings: Settings) -> Iterator[Check]:
    """Report the other agents that are installed, and agents from the settings that cannot be used."""
    installed = {agent.name: agent for agent in installed_agents(settings) if not agent.own_model}
    for name in dict.fromkeys((*installed, *settings.agents)):
        if name in KINDS and KINDS[name].recommended:
            continue
        if name in installed:
            yield Check(one_line(name, 40), State.OK, _agent_detail(installed[name]))
            continue
        try:
            choose_agent(name, settings)
        except AgentUnavailable as error:
            yield Check(one_line(name, 40), State.WARN, f"{error.where}: {error.what}", error.hint)


def _agent_detail(agent: AgentChoice) -> str:
    """Describe an agent: version, program, credentials."""
    seen = credentials_of(agent)
    detail = f"{agent.version or 'version unknown'} ({one_line(' '.join(agent.command), 200)})"
    if seen is None:
        return detail
    return f"{detail}; credentials: {', '.join(map(one_line, seen))}" if seen else f"{detail}; no credentials found"


def _runtimes(settings: Settings) -> Iterator[Check]:
    for kind in KINDS.values():
        yield from _runtime(kind, settings)


def _runtime(kind: AgentKind, settings: Settings) -> Iterator[Check]:
    """Check the interpreter that an agent starts with: the one in its command, or the first on PATH."""
    agent, configured = launching_side(kind.name), settings.agents.get(kind.name)
    try:
        command = agent.find(kind.name, configured.command if configured else (agent.program,))
    except AgentUnavailable:
        return
    if (runtime := agent.runtime(command)) is None:
        return
    name, oldest = runtime.program, runtime.oldest
    path = command[0] if os.path.basename(command[0]) == name else shutil.which(name)
    if not path:
        yield Check(name, State.WARN, f"not on PATH; {kind.title} requires it", _install(name))
        return
    version = _version_of(path) if oldest else ""
    if version and version_numbers(version) < version_numbers(oldest):
        agent_version = agent.choose(kind.name, command, {}).version or ""
        detail = f"{path} is {version}, but {kind.title} {agent_version} requires {oldest} or newer"
        state = State.PROBLEM if _is_chosen(kind, settings) else State.WARN
        yield Check(name, state, detail, f"install {name} {oldest} or newer, or {runtime.way_out}")
    else:
        yield Check(name, State.OK, f"{path} ({version})" if version else path)


def _is_chosen(kind: AgentKind, settings: Settings) -> bool:
    """Return whether runs that name no agent get one of this kind; True if that cannot be told."""
    try:
        return choose_agent(settings.agent, settings).kind == kind.name
    except AgentUnavailable:
        return True


def _version_of(path: str) -> str:
    """Return the output of `PROGRAM --version` as `22.19.0`; empty if it is not a version."""
    import subprocess  # only doctor starts it, not the app's list of missing programs

    try:
        output = subprocess.run((path, "--version"), stdin=subprocess.DEVNULL, capture_output=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ".".join(map(str, version_numbers(output[:40].decode("utf-8", "replace"))))


def _git() -> Check:
    """Check that git is installed, and new enough for everything that needs it."""
    from .git.program import MERGING, OLDEST, GitError, GitMissing, program, version

    try:
        path, installed = program(), version()
    except GitMissing:
        detail = "not on PATH; needed to record what runs change, and for worktrees"
        return Check("git", State.WARN, detail, _install("git"))
    except GitError as error:
        return Check("git", State.WARN, error.advice, _install("git"))
    named = f"{path} ({_dotted(installed)})"
    for needed, what_for in ((OLDEST, "record what runs change"), (MERGING, "apply the changes of runs")):
        if installed < needed:
            return Check(
                "git", State.WARN, f"{named}; {_dotted(needed)} is needed to {what_for}", "install a newer git"
            )
    return Check("git", State.OK, named)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _programs() -> Iterator[Check]:
    yield _tmux()
    for kind in KINDS.values():
        for name, tool in kind.tool_programs.items():
            yield _tool_program(name, kind.title, f"{kind.title}'s {tool} tool")


def _tmux() -> Check:
    return _on_path("tmux", shutil.which("tmux"), "the tmux runner")


def _tool_program(name: str, agent: str, use: str) -> Check:
    """Check a program that an agent's tool runs, on PATH or in the agent directory."""
    own_bin = os.path.join(paths.agent_dir(), "bin")
    path = shutil.which(name) or shutil.which(name, path=own_bin)
    if not path and name == "fd" and (debian := shutil.which("fdfind")):
        link = os.path.join(own_bin, "fd")
        fix = f"mkdir -p {shell_word(own_bin)} && ln -s {debian} {shell_word(link)}"
        detail = f"found only as {debian}, which {agent} does not use; needed for {use}"
        return Check(name, State.WARN, detail, fix)
    return _on_path(name, path, use)


def _on_path(name: str, path: str | None, use: str) -> Check:
    if path:
        return Check(name, State.OK, path)
    return Check(name, State.WARN, f"not on PATH; needed for {use}", _install(name))


_PACKAGES: dict[str, dict[str, str]] = {
    "sudo apt install": {"rg": "ripgrep", "fd": "fd-find", "node": "nodejs"},
    "sudo dnf install": {"rg": "ripgrep", "fd": "fd-find", "node": "nodejs"},
    "sudo pacman -S": {"rg": "ripgrep", "node": "nodejs"},
    "sudo apk add": {"rg": "ripgrep", "node": "nodejs"},
    "sudo zypper install": {"rg": "ripgrep", "node": "nodejs"},
    "brew install": {"rg": "ripgrep"},
}
"""Install command -> program -> package, if the package is not named after the program."""


def _install(program: str) -> str:
    for command, names in _PACKAGES.items():
        manager = command.removeprefix("sudo ").partition(" ")[0]
        if shutil.which(manager):
            return f"{command} {names.get(program, program)}"
    return f"install {program} with your system's package manager"


def _nearest(path: str) -> str:
    """Return the path, or its nearest ancestor that is a directory."""
    while not files.is_directory(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path
