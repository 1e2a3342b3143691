"""`subdeck init`: four starter presets for a project or a user, and the user settings that they need."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from .agents.choice import AUTO, choose_agent
from .agents.installed import KnownAgent, known_agents
from .agents.login import LoginState
from .config.edit import add_to_settings
from .config.settings import Settings
from .config.workspace import Workspace
from .config.yaml_tree import read_text
from .errors import ContentError, PresetError, SettingsError
from .launch.preview import Obstacle, obstacles
from .models.catalog import INHERIT
from .paths import agent_dir, user_settings_file
from .presets.catalog import discover
from .presets.file import SUFFIX, Preset, parse_preset, read_preset
from .presets.sources import preset_files, project_directory
from .presets.write import bundled_presets, needs_model, place_preset
from .run.model import PresetSource
from .text.decoder import UNDECODABLE, decode
from .text.plain import one_line

NAMES = ("explore-code", "implement", "review-changes", "fix-tests")
TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "presets", "starter")


class TestCommand(Struct, frozen=True):
    """How a project's tests are run."""

    name: str
    """Name of the check in the settings."""
    argv: tuple[str, ...]
    file: str
    """The file that shows it, relative to the project."""

    __test__ = False  # keeps pytest from collecting it by its name

    @property
    def is_installed(self) -> bool:
        return os.sep in self.argv[0] or shutil.which(self.argv[0]) is not None

    @property
    def words(self) -> str:
        return " ".join(self.argv)


class Starter(Struct, frozen=True):
    name: str
    path: str
    """The file to write, or the existing file."""
    exists: bool
    text: str
    description: str


class SettingLine(Struct, frozen=True):
    """One line for the user's settings."""

    section: str
    name: str
    value: str
    """YAML."""
    reason: str

    @property
    def words(self) -> str:
        return f"{self.section}: {{{self.name}: {self.value}}}"


class StarterPlan(Struct, frozen=True):
    directory: str
    source: PresetSource
    starters: tuple[Starter, ...]
    entries: tuple[SettingLine, ...]
    agents: tuple[KnownAgent, ...]
    """The installed agents that use a model, and whether each is logged in."""
    stand_in: str
    """The agent without a model that runs get although others are installed, which have to be named; may be empty."""
    tests: tuple[TestCommand, ...]
    """The detected commands; the check uses the first."""
    check: str
    """The check of fix-tests; empty without one."""
    cannot_start: dict[str, tuple[Obstacle, ...]]
    """By preset, once everything is written."""

    @property
    def new(self) -> tuple[Starter, ...]:
        return tuple(starter for starter in self.starters if not starter.exists)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.new or self.entries)


def plan_starters(workspace: Workspace, *, for_all: bool) -> StarterPlan:
    """Plan the presets for one project, or for all of the user's projects. Nothing is written or started."""
    settings = workspace.settings
    directory = os.path.join(agent_dir(), "subagents") if for_all else project_directory(workspace)
    source = PresetSource.GLOBAL if for_all else PresetSource.PROJECT
    tests = detect_tests(workspace.project.root)
    there = _names_in(directory)
    check, entries = "", list(_roles(workspace))
    if tests and not for_all:  # one project cannot show the check for all projects
        check = _check_of(there["fix-tests"], tests[0]) if "fix-tests" in there else _check_name(tests[0], settings)
        if check and check not in settings.checks:
            argv = f"[{', '.join(tests[0].argv)}]"
            entries.append(SettingLine("checks", check, argv, "fix-tests runs it at the end"))
    starters = tuple(_starter(name, directory, there, check, tests) for name in NAMES)
    later = _settings_with(entries, settings, tests)
    presets = [parse_preset(starter.text, starter.path, source) for starter in starters if not starter.exists]
    stopped = obstacles(presets, replace(workspace, settings=later))
    here = tuple(agent for agent in known_agents(settings) if agent.is_here)
    agents = tuple(agent for agent in here if agent.login.state is not LoginState.UNNEEDED)
    stand_in = _stand_in(settings) if agents else ""
    return StarterPlan(directory, source, starters, tuple(entries), agents, stand_in, tests, check, stopped)


def write_starters(plan: StarterPlan) -> tuple[tuple[Starter, ...], tuple[str, ...]]:
    """Write the missing files; return the presets written, and a sentence for each failure.

    Nothing is replaced. If the check cannot be added to the settings, fix-tests is written without one. Raises
    PresetError if no preset can be written.
    """
    troubles: list[str] = []
    failed: set[str] = set()
    for entry in plan.entries:
        try:
            add_to_settings(entry.section, entry.name, entry.value)
        except SettingsError as error:
            failed.add(entry.section)
            troubles.append(f"{error.where}: {error.advice}")
    written: list[Starter] = []
    for starter in plan.new:
        text = starter.text
        if starter.name == "fix-tests" and "checks" in failed:
            text = _text("fix-tests", "", plan.tests)
        try:
            place_preset(plan.directory, starter.name, starter.name, text)
        except PresetError as error:
            troubles.append(f"{error.where}: {error.advice}")
        else:
            written.append(starter)
    if plan.new and not written:
        raise PresetError(troubles[-1], hint="check the permissions of the directory")
    return tuple(written), tuple(troubles)


def _names_in(directory: str) -> dict[str, str]:
    """Return a directory's presets: paths by preset name, and by file name without its suffix."""
    try:
        paths = sorted(preset_files(directory))
    except OSError:
        return {}
    names = {os.path.basename(path).removesuffix(SUFFIX): path for path in paths}
    for path in paths:
        if isinstance(preset := read_preset(path, PresetSource.PROJECT), Preset):
            names[preset.name] = path
    return names


def _starter(name: str, directory: str, there: dict[str, str], check: str, tests: Sequence[TestCommand]) -> Starter:
    text = _text(name, check, tests)
    path = there.get(name, os.path.join(directory, name + SUFFIX))
    return Starter(name, path, name in there, text, parse_preset(text, path, PresetSource.PROJECT).description)


def _text(name: str, check: str, tests: Sequence[TestCommand]) -> str:
    text = read_text(os.path.join(TEXTS, name + SUFFIX))
    if name != "fix-tests":
        return text
    comment = "# check: NAME  (a check from your settings that runs the tests at the end)"
    how = f"Run the tests with `{tests[0].words}`." if check else "Find out how to run the tests, and run them."
    return text.replace("{check}", f"check: {check}" if check else comment).replace("{run}", how)


def _stand_in(settings: Settings) -> str:
    """Return the default agent's name if `auto` fell back to one without a model; otherwise empty."""
    if settings.agent != AUTO:
        return ""
    choice = choose_agent(AUTO, settings)
    return choice.name if choice.own_model else ""


def _roles(workspace: Workspace) -> Iterator[SettingLine]:
    """Yield the roles that bundled presets need to start, if bundled presets are on."""
    if not workspace.settings.bundled_presets:
        return
    counted = {preset.path for preset in discover(workspace).presets}
    for preset in bundled_presets():
        role = (preset.model or "").removeprefix("@")
        if preset.path in counted and role != preset.model and needs_model(preset, workspace.settings):
            yield SettingLine("roles", role, INHERIT, f"{preset.name}, which comes with subdeck, requires this role")


def _settings_with(entries: Sequence[SettingLine], settings: Settings, tests: Sequence[TestCommand]) -> Settings:
    checks = {entry.name: tests[0].argv for entry in entries if entry.section == "checks"}
    roles = {entry.name: entry.value for entry in entries if entry.section == "roles"}
    return replace(settings, checks={**settings.checks, **checks}, roles={**settings.roles, **roles})


def _check_of(path: str, tests: TestCommand) -> str:
    """Return the check of an existing fix-tests if it means these tests, as after another user's `init` in this
    project; otherwise empty.
    """
    preset = read_preset(path, PresetSource.PROJECT)
    return tests.name if isinstance(preset, Preset) and preset.check == tests.name else ""


def _check_name(tests: TestCommand, settings: Settings) -> str:
    """Return the check in the settings that runs these tests, or a free name."""
    for name, argv in settings.checks.items():
        if argv == tests.argv:
            return name
    name, number = tests.name, 2
    while name in settings.checks:
        name, number = f"{tests.name}-{number}", number + 1
    return name


# --- how tests are run -----------------------------------------------------------------------------------------------


def detect_tests(root: str) -> tuple[TestCommand, ...]:
    """Detect from a project's files how its tests are run. Commands whose program is installed come first."""
    commands = [*_make(root), *_npm(root), *_cargo(root), *_go(root), *_pytest(root)]
    return tuple(sorted(commands, key=lambda command: not command.is_installed))


def _content(*parts: str) -> str:
    """Return the text of a file; empty if it is missing or cannot be read."""
    try:
        return read_text(os.path.join(*parts))
    except (FileNotFoundError, ContentError):
        return ""


def _is_file(*parts: str) -> bool:
    return os.path.isfile(os.path.join(*parts))


def _make(root: str) -> Iterator[TestCommand]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if re.search(r"^(?:[\w./-]+[ \t]+)*test(?:[ \t]+[\w./-]+)*[ \t]*::?(?!=)", _content(root, name), re.MULTILINE):
            yield TestCommand("make-test", ("make", "test"), name)
            return


def _npm(root: str) -> Iterator[TestCommand]:
    try:
        package = decode(_content(root, "package.json") or "null")
    except UNDECODABLE:
        return
    scripts = cast("dict[str, Any]", package).get("scripts") if isinstance(package, dict) else None
    script = cast("dict[str, Any]", scripts).get("test") if isinstance(scripts, dict) else None
    if not isinstance(script, str) or "no test specified" in script:
        return
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    program = next((program for lock, program in locks.items() if _is_file(root, lock)), "npm")
    yield TestCommand(f"{program}-test", (program, *(("run",) if program == "bun" else ()), "test"), "package.json")


def _cargo(root: str) -> Iterator[TestCommand]:
    if _is_file(root, "Cargo.toml"):
        yield TestCommand("cargo-test", ("cargo", "test"), "Cargo.toml")


def _go(root: str) -> Iterator[TestCommand]:
    if _is_file(root, "go.mod"):
        yield TestCommand("go-test", ("go", "test", "./..."), "go.mod")


def _pytest(root: str) -> Iterator[TestCommand]:
    signs = {
        "pytest.ini": "",
        "conftest.py": "",
        "tests/conftest.py": "",
        "pyproject.toml": "[tool.pytest",
        "setup.cfg": "[tool:pytest]",
        "tox.ini": "[pytest]",
    }
    file = next((name for name, sign in signs.items() if _is_file(root, name) and sign in _content(root, name)), "")
    if not file:
        return
    if _is_file(root, "uv.lock"):
        yield TestCommand("uv-pytest", ("uv", "run", "pytest"), file)
    elif _is_file(root, "poetry.lock"):
        yield TestCommand("poetry-pytest", ("poetry", "run", "pytest"), file)
    elif _is_file(root, ".venv", "bin", "pytest"):
        yield TestCommand("venv-pytest", (os.path.join(".venv", "bin", "python"), "-m", "pytest"), file)
    else:
        yield TestCommand("pytest", ("python3", "-m", "pytest"), file)


# --- in words --------------------------------------------------------------------------------------------------------


def plan_lines(plan: StarterPlan, path: Callable[[str], str] = one_line) -> list[str]:
    """Return the installed agents, the test command and the files to write as lines of text; `path` shortens paths."""
    lines = [
        *_agent_lines(plan.agents),
        f"Tests     {_tests_words(plan)}",
        f"Presets   {path(plan.directory)}",
    ]
    for starter in plan.starters:
        description = f"exists: {one_line(os.path.basename(starter.path))}" if starter.exists else starter.description
        lines.append(f"  {starter.name:<15} {description}")
    if plan.entries:
        lines.append(f"Settings  {path(user_settings_file())}")
    lines += (f"  {one_line(entry.words)}: {entry.reason}" for entry in plan.entries)
    if plan.stand_in:
        name = one_line(plan.agents[0].name)
        lines.append(f'! runs use {plan.stand_in} until you choose an agent: add "agent: {name}" to your settings')
    if any(starter.name == "fix-tests" for starter in plan.new) and not plan.check:
        why = "a preset for all projects" if plan.source is PresetSource.GLOBAL else "no test command was detected"
        lines.append(f'! fix-tests gets no check ({why}): add "check: NAME" to it')
    stopped: dict[str, list[str]] = {}
    for name, reasons in plan.cannot_start.items():
        stopped.setdefault(reasons[0].words, []).append(name)
    lines += (f"! {', '.join(names)} cannot start here yet: {reason}" for reason, names in stopped.items())
    if plan.is_done:
        lines.append("Nothing to write: all of them exist.")
    return lines


def _agent_lines(agents: Sequence[KnownAgent]) -> list[str]:
    if not agents:
        return ["Agents    none; using the offline agent, which has no model (subdeck doctor)"]
    width = max(len(agent.name) for agent in agents)
    names = ["Agents", *[""] * (len(agents) - 1)]
    return [
        f"{head:<10}{one_line(agent.name):<{width}} {one_line(agent.words)}"
        for head, agent in zip(names, agents, strict=True)
    ]


def _tests_words(plan: StarterPlan) -> str:
    if not plan.tests:
        return "no test command detected (make, npm, cargo, go, pytest)"
    first, *others = plan.tests
    also = f"; also {', '.join(other.words for other in others)}" if others else ""
    missing = "" if first.is_installed else f", but {first.argv[0]} is not installed"
    return one_line(f"{first.words}, detected in {first.file}{missing}{also}")
