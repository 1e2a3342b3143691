"""Which modules open paths: only `core/system/directory.py` opens paths below `.pi/subagents`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

OPENING = {
    "gzip": {"open"},
    "io": {"FileIO", "open", "open_code"},
    "os": {
        "chmod", "chown", "fwalk", "link", "listdir", "makedirs", "mkdir", "mkfifo", "mknod", "open", "readlink",
        "remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir", "symlink", "truncate", "unlink",
        "utime", "walk",
    },
    "shutil": {"copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "move", "rmtree"},
    "tempfile": {"NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp", "mkstemp"},
}  # fmt: skip
"""Functions that open, create or remove by a path. A check for existence opens nothing."""
WHOLE_MODULES = {"codecs", "dbm", "fileinput", "glob", "mmap", "pathlib", "shelve", "sqlite3", "tarfile", "zipfile"}
"""Importing these needs a reason."""

GUARDED = "core/system/directory.py"
PATHS = {
    "core/agents/claude/program.py": ({"os.listdir"}, "where Claude Code keeps its conversations"),
    "core/agents/codex/_program.py": ({"tempfile.TemporaryDirectory"}, "where Codex writes down its protocol for us"),
    "core/agents/pi/_models.py": ({"open"}, "the catalog that comes with pi"),
    "core/cli/logs.py": ({"open", "shutil.rmtree", "tempfile.mkdtemp"}, "a replay, in a temporary directory"),
    "core/cli/tool_server.py": ({"os.open"}, "/dev/null"),
    "core/cli/output.py": ({"os.open"}, "/dev/null"),
    "core/config/yaml_tree.py": ({"os.readlink"}, "where a preset or a file of settings leads that cannot be read"),
    "core/delegation/parent.py": ({"tempfile.NamedTemporaryFile"}, "what a parent handed over, in a temporary file"),
    "core/git/index.py": ({"open", "os.utime"}, "the index of a repository, to copy it into the user's state"),
    "core/git/program.py": ({"open"}, "a file in memory, which git reads"),
    "core/git/read_settings.py": (
        {"os.readlink", "os.walk"},
        "the settings and hooks of a repository, and the submodules in it",
    ),
    "core/git/repository.py": ({"os.readlink"}, "the HEAD of a repository, which once was a link"),
    "core/git/snapshot.py": ({"os.chmod", "shutil.copy2"}, "an index of ours in the user's state"),
    "core/git/worktrees.py": (
        {"os.chmod", "os.walk", "shutil.rmtree"},
        "worktrees in the user's state, whatever a child made there",
    ),
    "core/demo/__main__.py": ({"shutil.rmtree"}, "the directory of a demo, which has made it"),
    "core/demo/_deck.py": ({"open"}, "a descriptor that the guarded module has opened"),
    "core/demo/_held_run.py": ({"os.utime"}, "the same"),
    "core/demo/playground.py": (
        {"os.listdir", "os.makedirs", "os.open", "os.rename", "shutil.rmtree", "tempfile.mkdtemp"},
        "the directories of demos, each private and locked, beside other temporary files",
    ),
    "core/git/checkout.py": ({"os.walk"}, "what is in the way in a working tree, which git writes"),
    "core/hosts/code/_pool.py": ({"os.utime"}, "the tree of a run that was put aside, in a host's spool"),
    "core/hosts/code/_slot.py": ({"shutil.copy2"}, "an index of ours in a host's spool"),
    "core/launch/child_session.py": ({"os.scandir"}, "the conversations that outlive their runs, beside pi's files"),
    "core/acp_bridge/_session_options.py": ({"open"}, "the prompt in the run directory that it is told"),
    "core/mcp/clients.py": ({"open", "os.unlink"}, "the settings of Claude Code and Codex"),
    "core/alerts/dispatch.py": ({"os.open"}, "the pipe in the user's state that wakes up the sender of alerts"),
    "core/notify/_serve.py": ({"os.mkfifo", "os.open"}, "the same"),
    "core/offline_agent/_directory.py": (
        {"open", "os.open", "os.scandir", "os.walk"},
        "what a child agent reads or edits for its task",
    ),
    "core/offline_agent/_stream.py": ({"open", "os.makedirs", "os.open"}, "the session that a child agent is given"),
    "core/pi_parent/installer.py": ({"open", "os.makedirs", "os.unlink"}, "what is installed into pi's directory"),
    "core/presets/catalog.py": ({"os.listdir"}, "the presets that come with subdeck"),
    "tui/changes/commands.py": ({"open", "tempfile.TemporaryDirectory"}, "a patch for a pager, in a temporary file"),
    "core/permissions/path_patterns.py": (
        {"os.readlink"},
        "where the links on the way of a path lead that an agent wants to open",
    ),
    "core/permissions/_protected_paths.py": ({"os.scandir"}, "names in settings of agents, but for those of runs"),
    "core/work/worktree.py": (
        {
            "open",
            "os.chmod",
            "os.makedirs",
            "os.mkdir",
            "os.open",
            "os.readlink",
            "os.scandir",
            "os.symlink",
            "os.unlink",
            "os.utime",
        },
        "a worktree in the user's state, and copies there of ignored files of a working tree, without .pi",
    ),
    "core/presets/trash.py": (
        {"shutil.copy2", "shutil.move", "tempfile.TemporaryDirectory"},
        "a preset on its way to or from another file system, where none can be renamed",
    ),
    "core/system/cgroup.py": ({"os.mkdir", "os.open", "os.rmdir", "os.walk"}, "/sys/fs/cgroup"),
    "core/system/processes.py": ({"os.listdir", "os.readlink"}, "/proc"),
    "core/wrapper/__main__.py": ({"os.open"}, "/dev/null"),
    "core/wrapper/_check.py": ({"os.open"}, "/dev/null"),
    "core/wrapper/_pane_input.py": ({"codecs"}, "characters that are typed, a byte at a time; no file is opened by it"),
    "core/wrapper/replay.py": ({"gzip.open", "open"}, "a recording that is named by the operator"),
    "tui/app.py": ({"pathlib"}, "the style sheets of the app"),
    "tui/answers/commands.py": ({"tempfile.TemporaryDirectory"}, "a copy for a command"),
    "tui/own_commands.py": ({"tempfile.TemporaryDirectory"}, "a copy for a command"),
    "tui/transcript/commands.py": ({"tempfile.TemporaryDirectory"}, "a copy for the pager"),
    "tui/launch/_inputs.py": ({"os.scandir"}, "directories below what the operator types"),
    "tui/launch/_memory.py": ({"open"}, "what the app remembers of this user"),
    "tui/launch/_tasks.py": ({"open"}, "a task in a file that is named by the operator"),
    "tui/layout_file.py": ({"open"}, "what the app remembers of this user"),
    "tui/main.py": ({"os.open"}, "/dev/null"),
    "tui/terminal/rescue.py": ({"os.open"}, "/dev/null"),
    "tui/palette/_offers.py": ({"open", "os.makedirs"}, "the user's own settings"),
    "tui/terminal/driver.py": ({"codecs"}, "the decoder of what is typed"),
    "tui/terminal/handover.py": (
        {"open", "pathlib", "tempfile.TemporaryDirectory"},
        "a text for the operator's editor, or for a command",
    ),
}
"""The modules that open paths themselves, with their calls, and the origin of those paths."""


def calls_with_paths(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that open a path, and the imports for them."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="open")) if not _has_descriptor(node):
                yield "open"
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in OPENING.get(module, ()):
                yield f"{module}.{name}"
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name in WHOLE_MODULES)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{name.name}" for name in names if name.name in OPENING.get(module, ()))
                yield from ({module} & WHOLE_MODULES)
            case _:
                pass


def _has_descriptor(call: ast.Call) -> bool:
    """Return whether a file is made from a descriptor, or by the guarded module."""
    opener = next((keyword.value for keyword in call.keywords if keyword.arg == "opener"), None)
    if opener is not None:
        return ast.unparse(opener).rpartition(".")[2] == "open_private"
    first = ast.unparse(call.args[0])
    return first == "descriptor" or ("open_regular(" in first and first.endswith(")[0]"))


def test_one_module_opens_what_a_project_keeps() -> None:
    """No other module opens, creates or removes a path, except paths that are certainly elsewhere."""
    unexplained: dict[str, set[str]] = {}
    for path in (*(ROOT / "core").rglob("*.py"), *(ROOT / "tui").rglob("*.py")):
        module = str(path.relative_to(ROOT))
        explained, _ = PATHS.get(module, (set[str](), ""))
        if module != GUARDED and (calls := set(calls_with_paths(ast.parse(path.read_text()))) - explained):
            unexplained[module] = calls
    hint = "use core/system/files.py; or, for a path that cannot lie below .pi/subagents, say in PATHS what it is"
    assert {} == unexplained, hint


def test_every_way_to_open_a_path_is_seen() -> None:
    """A module cannot get around it by another spelling of the import."""
    for code in (
        "open(path)",
        "import os\nos.open(path, 0)",
        "from os import scandir",
        "import pathlib",
        "from pathlib import Path",
        "remove = os.unlink",
        "open(path, opener=os.open)",
    ):
        assert list(calls_with_paths(ast.parse(code))), code
    for code in (
        "open(descriptor, 'rb')",
        "open(path, 'ab', opener=files.open_private)",
        "open(open_regular(path)[0])",
    ):
        assert not list(calls_with_paths(ast.parse(code))), code
