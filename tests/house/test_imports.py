"""The modules that a process really loads; pyproject.toml defines what modules may import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from subdeck.core.agent_kinds import KINDS

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]

NOUNS = {
    f"subdeck.core.{name}"
    for name in (
        "agent_kinds",
        "errors",
        "paths",
        "run.changes",
        "run.events",
        "run.enumerations",
        "run.inputs",
        "run.limits",
        "run.model",
        "run.placement",
        "run.prices",
        "run.snapshot",
        "system.directory",
        "system.files",
        "system.line_file",
        "system.record",
        "text.decoder",
        "text.plain",
    )
}

APP = "import sys; from subdeck.tui.main import main; sys.argv[0] = 'subdeck'; sys.exit(main())"
"""The code of the console script."""

ROOTS = {"subdeck.core", "subdeck.tui"}
FOR_THEMSELVES = {"subdeck.core.hosts.relay"}
"""Packages with one module that is started or imported, and no other entry."""
OF_KINDS = {f"{kind.package}.{part}" for kind in KINDS.values() for part in ("agent", "child", "interactive", "paths")}
"""Imported by name by `agents.loader`."""

LIGHT_COMMANDS = (
    ["--help"],
    ["status"],
    ["status", "--all"],
    ["status", "--json"],
    ["run", "--help"],
    ["mcp", "--help"],
    ["mcp"],
)
HEAVY = {"asyncio", "libtmux", "mcp", "rich", "textual", "watchfiles", "yaml"}
LEFT_OUT = {"_socket", "ast", "decimal", "gettext", "inspect", "locale", "platform", "textwrap", "tokenize"}
"""Loaded by click and msgspec without the care of `core/system/imports.py`; `typing_extensions` would load `_socket`.
"""


def loaded(code: str, *arguments: str, cwd: Path) -> set[str]:
    """Run code in a fresh process; return the top-level packages that it loaded at any time."""
    return {name.partition(".")[0] for name in loaded_modules(code, *arguments, cwd=cwd)}


def loaded_modules(code: str, *arguments: str, cwd: Path) -> set[str]:
    """Run code in a fresh process; return the full names of all modules that it loaded at any time."""
    command = [sys.executable, "-P", "-X", "importtime", "-c", code, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    imports = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    errors = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 0, "\n".join(errors)
    return {line.rpartition("|")[2].strip() for line in imports}


def test_the_engine_loads_no_screen(project_dir: Path) -> None:
    """A program that uses the engine never pays for textual or rich."""
    packages = loaded("import subdeck.core.engine", cwd=project_dir)
    assert "subdeck" in packages
    assert set() == packages & {"asyncio", "libtmux", "rich", "textual", "watchfiles", "yaml"}


def test_a_waiting_wrapper_loads_less(project_dir: Path) -> None:
    """Two hundred wrappers may wait in a queue: none has loaded what only the others need."""
    bare = loaded("pass", cwd=project_dir)
    packages = loaded("import subdeck.core.wrapper.__main__", cwd=project_dir) - bare
    assert packages.isdisjoint({"collections", "contextlib", "functools", "json", "msgspec", "re", "subprocess"})


def test_the_wrapper_loads_little(project_dir: Path) -> None:
    """The process beside each agent is small."""
    packages = loaded("from subdeck.core.wrapper import __main__; __main__._load()", cwd=project_dir)
    assert "msgspec" in packages
    assert set() == packages & (HEAVY | LEFT_OUT | {"click", "selectors", "threading"})


@pytest.mark.parametrize("arguments", LIGHT_COMMANDS, ids=" ".join)
def test_quick_commands_load_nothing_heavy(arguments: list[str], project_dir: Path) -> None:
    """Help and status start without modules that only the app, the watcher, tmux or a settings file needs."""
    packages = loaded(APP, *arguments, cwd=project_dir)
    assert "subdeck" in packages
    assert set() == packages & (HEAVY if "--help" in arguments else HEAVY | LEFT_OUT)  # help unfolds docstrings


def test_a_list_of_runs_needs_no_settings(project_dir: Path) -> None:
    """Without settings files, the table of settings is loaded only when a setting is needed."""
    modules = loaded_modules(APP, "status", cwd=project_dir)
    assert "subdeck.core.project.registry" in modules
    assert set() == {name for name in modules if name.startswith("subdeck.core.config")}


def test_settings_bring_yaml(project_dir: Path, home: Path) -> None:
    """YAML is only loaded for a settings file of more than plain lines, and nothing else is."""
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("notifications:\n  bell: true\n")
    packages = loaded("from subdeck.core.engine import Engine; Engine.open()", cwd=project_dir)
    assert {"yaml"} == packages & HEAVY


def test_a_follower_loads_only_the_native_watcher(project_dir: Path) -> None:
    """A follower of runs watches with the native part of watchfiles, without the package around it."""
    code = (
        "import sys, threading; from subdeck.core.engine import Engine\n"
        "updates = Engine.open().updates(threading.Event())\n"
        "while not next(updates).is_quiet: pass\n"
        "assert 'watchfiles._rust_notify' in sys.modules"
    )
    assert set() == loaded_modules(code, cwd=project_dir) & {
        "anyio",
        "asyncio",
        "json",
        "logging",
        "multiprocessing",
        "watchfiles",
    }


def test_commands_of_the_app_load_no_screen(project_dir: Path) -> None:
    """The list of actions, which every screen uses for its keys, loads no screen and no dialog."""
    modules = loaded_modules("import subdeck.tui.keys.actions", cwd=project_dir)
    parts = {name.removeprefix("subdeck.tui.").split(".")[-1] for name in modules if name.startswith("subdeck.tui.")}
    assert "commands" in parts
    assert set() == parts & {"screen", "_screen", "ask", "reader", "plan", "pick", "keymap", "pane", "handover"}


def test_nouns_import_only_nouns() -> None:
    """Everything in core depends on a few modules that know nothing about the rest."""
    graph = grimp.build_graph("subdeck.core", "subdeck.tui", cache_dir=None)
    upward = {
        (noun, imported)
        for noun in NOUNS
        for imported in graph.find_modules_directly_imported_by(noun)
        if imported not in NOUNS | {"subdeck.core", "subdeck.core.run", "subdeck.core.system", "subdeck.core.text"}
    }
    assert set() == upward


def test_private_modules_are_private() -> None:
    """No module outside a package imports a module of it whose name begins with an underscore."""
    graph = grimp.build_graph("subdeck.core", "subdeck.tui", cache_dir=None)
    private = [name for name in graph.modules if name.rpartition(".")[2].startswith("_") and not name.endswith("__")]
    assert len(private) > 100
    outside = {
        (importer, name)
        for name in private
        for importer in graph.find_modules_that_directly_import(name)
        if not f"{importer}.".startswith(f"{name.rpartition('.')[0]}.")
    }
    assert set() == outside


def test_public_modules_are_used_from_outside() -> None:
    """A module imported only by its own package has a private name, so that a listing shows a package's entries."""
    graph = grimp.build_graph("subdeck.core", "subdeck.tui", cache_dir=None)
    inner = set()
    for name in graph.modules:
        package, _, last = name.rpartition(".")
        if (
            last.startswith("_")
            or package in ROOTS
            or name in OF_KINDS
            or package in FOR_THEMSELVES
            or graph.find_children(name)
        ):
            continue
        importers = graph.find_modules_that_directly_import(name)
        if importers and all(f"{importer}.".startswith(f"{package}.") for importer in importers):
            inner.add(name)
    assert set() == inner


def test_the_contract_knows_the_command_line_only() -> None:
    """The tests of all kinds of agents load nothing from subdeck, so they are independent of its code."""
    modules = [f"tests.contract.{path.stem}" for path in sorted((ROOT / "tests" / "contract").glob("*.py"))]
    loaded = "[name for name in sys.modules if name.startswith('subdeck')]"
    code = f"import importlib, sys; [*map(importlib.import_module, {modules})]; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(modules) > 5
    assert "[]\n" == done.stdout
