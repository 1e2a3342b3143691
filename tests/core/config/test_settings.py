"""Settings: the keys of user and project, merging, and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from msgspec import structs
from subdeck.core.config.files import (
    GROUPS,
    KEYS,
    example_of,
    example_settings,
    parse_settings,
    read_entries,
    value_of,
)
from subdeck.core.config.settings import (
    AgentSettings,
    Inheritance,
    Logs,
    Notifications,
    PermissionSettings,
    Retention,
    Settings,
    TmuxSettings,
)
from subdeck.core.config.values import ProjectMay
from subdeck.core.config.workspace import load_settings
from subdeck.core.engine import Engine
from subdeck.core.errors import SettingsError
from subdeck.core.paths import Project
from subdeck.core.run.limits import Limits
from subdeck.core.run.model import LauncherKind, LogCaps


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.fixture
def user_file(home: Path) -> Path:
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def project_file(project: Project) -> Path:
    path = Path(project.settings_file)
    path.parent.mkdir(parents=True)
    return path


def test_without_files_everything_is_a_default(project: Project) -> None:
    """A settings file is optional."""
    assert Settings() == load_settings(project)


@pytest.mark.processes
def test_yaml_is_imported_only_for_a_file(project: Project, user_file: Path) -> None:
    """The YAML library is loaded only for a settings file that needs it, not without one or for plain lines."""
    code = (
        "import sys\n"
        "from subdeck.core.paths import Project\n"
        "from subdeck.core.launch import model\n"
        "from subdeck.core.presets import catalog\n"
        "from subdeck.core.run import tool_policy\n"
        "from subdeck.core.config.workspace import load_settings\n"
        "load_settings(Project(sys.argv[1]))\n"
        "print('yaml' in sys.modules)"
    )
    argv = [sys.executable, "-c", code, project.root]
    without = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    user_file.write_text("theme: nord\n")
    plain = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    user_file.write_text("notifications:\n  bell: true\n")
    nested = subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert ("False\n", "False\n", "True\n") == (without, plain, nested)


def test_every_key_of_the_user(project: Project, user_file: Path, home: Path) -> None:
    """The user's file sets every key, in its documented unit."""
    user_file.write_text(
        """
agent: mine
agents:
  mine: {command: [~/bin/pi, --flag, "a b"]}
default_model: anthropic/claude-haiku-4-5
roles: {fast: a/one, "@deep": "b/two:high"}
bundled_presets: on
inherit_context: off
expose_isolated: yes
inheritance: {recent_turns: 3, tool_output_window: 0, max_chars: 1000}
max_attempts: 5
models: [a/one, "b/two:high"]
preset_dirs: [.pi/agents, ~/presets, /srv/presets]
runner: tmux
tmux: {socket: my-socket_1}
max_parallel: 8
max_running: 20
grace_seconds: 0.5
limits: {timeout: 10m, max_turns: 30, stall: 90.5s}
logs: {stdout_mb: 1, stderr_mb: 0.5}
theme: nord
keys:
  stop: ctrl+x
  launch: n,enter
notifications: {toasts: off, bell: yes, desktop: osc777}
retention: {days: 14, keep: 100, max_mb: 500.5}
"""
    )

    assert Settings(
        agent="mine",
        agents={"mine": AgentSettings((f"{home}/bin/pi", "--flag", "a b"))},
        default_model="anthropic/claude-haiku-4-5",
        roles={"fast": "a/one", "deep": "b/two:high"},
        bundled_presets=True,
        inherit_context=False,
        expose_isolated=True,
        inheritance=Inheritance(recent_turns=3, tool_output_window=0, max_chars=1000),
        max_attempts=5,
        models=("a/one", "b/two:high"),
        preset_dirs=(f"{project.root}/.pi/agents", f"{home}/presets", "/srv/presets"),
        runner="tmux",
        tmux=TmuxSettings("my-socket_1"),
        max_parallel=8,
        max_running=20,
        grace_seconds=0.5,
        limits=Limits(timeout=600, max_turns=30, stall=90.5),
        logs=Logs(stdout_mb=1, stderr_mb=0.5),
        theme="nord",
        keys={"stop": "ctrl+x", "launch": "n,enter"},
        notifications=Notifications(toasts=False, bell=True, desktop="osc777"),
        retention=Retention(days=14, keep=100, max_mb=500.5),
    ) == load_settings(project)


@pytest.mark.parametrize("word", ["off", "yes", "1e3", "0x10", "2024-01-01", "No"])
def test_a_scalar_for_a_text_is_text(project: Project, user_file: Path, word: str) -> None:
    """A YAML boolean, number or date stays as typed if the key is a text."""
    user_file.write_text(f"models: [{word}]\ndefault_model: {word}\n")
    settings = load_settings(project)

    assert ((word,), word) == (settings.models, settings.default_model)


@pytest.mark.parametrize(
    "text",
    ["", "# only a comment\n", "theme:\nlimits:\nmodels:\n", "theme: ~\nmax_running: null\n", 'default_model: " "\n'],
)
def test_blank_is_absent(project: Project, user_file: Path, text: str) -> None:
    """An empty key, and a file without keys, change nothing."""
    user_file.write_text(text)

    assert Settings() == load_settings(project)


def test_blanks_and_case_of_words(project: Project, user_file: Path) -> None:
    """Whitespace inside quotes and the case of true and false do not matter."""
    user_file.write_text(
        'theme: " nord "\nmodels: [" a/b "]\nrunner: "tmux "\nmax_parallel: " 2 "\n'
        'notifications: {toasts: " FALSE ", bell: "ON "}\nkeys: {stop: " x "}\n'
    )

    assert Settings(
        theme="nord",
        models=("a/b",),
        runner="tmux",
        max_parallel=2,
        notifications=Notifications(toasts=False, bell=True),
        keys={"stop": "x"},
    ) == load_settings(project)


def test_a_file_of_another_editor(project: Project, user_file: Path) -> None:
    """A byte order mark and CR LF line ends do not matter."""
    user_file.write_bytes(b"\xef\xbb\xbftheme: nord\r\nrunner: tmux\r\n")
    settings = load_settings(project)

    assert ("nord", "tmux") == (settings.theme, settings.runner)


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("theme: x\nmax_paralel: 3\n", 2, '"max_paralel" is not a setting', "max_parallel"),
        ("tmux:\n  soket: x\n", 2, '"tmux.soket" is not a setting', "did you mean advanced.tmux_socket?"),
        (
            "qqqq: 1\n",
            1,
            '"qqqq" is not a setting',
            "known here: advanced, agent, agents, app, budget, bundled_presets",
        ),
        ("logs: {zz: 1}\n", 1, '"logs.zz" is not a setting', "known here: stdout_mb, stderr_mb"),
        ("roles: [fast]\n", 1, "roles: expected lines of the form", ""),
        ("roles:\n  fast:\n", 2, "roles.fast: expected a model such as provider/id but found nothing", ""),
        ("roles:\n  fast: [a/b]\n", 2, "roles.fast: expected a model such as provider/id but found a list", ""),
        ("roles:\n  'a b': c/d\n", 2, 'roles: invalid name "a b": use only', ""),
        ("roles:\n  fast: a/b\n  '@fast': c/d\n", 3, 'roles: "fast" appears twice', ""),
        ("roles: {fast: @x}\n", 1, "cannot start any token", '"@x"'),
        ("bundled_presets: sure\n", 1, 'bundled_presets: expected true or false but found "sure"', ""),
        ("inherit_context: 2\n", 1, "inherit_context: expected true or false", ""),
        (
            "expose_isolatd: true\n",
            1,
            '"expose_isolatd" is not a setting',
            "did you mean parent_context.expose_isolated?",
        ),
        (
            "inheritance: {recent_turns: 0}\n",
            1,
            "inheritance.recent_turns: expected a whole number from 1 to 999,999,999",
            "",
        ),
        ("inheritance: {tool_output_window: 1.5}\n", 1, "inheritance.tool_output_window: expected a whole number", ""),
        (
            "inheritance: {max_chars: all}\n",
            1,
            "inheritance.max_chars: expected a whole number from 1 to 999,999,999",
            "",
        ),
        (
            "inheritance: {recentTurns: 6}\n",
            1,
            '"inheritance.recentTurns" is not a setting',
            "did you mean parent_context.recent_turns",
        ),
        (
            "inheritance: 6\n",
            1,
            "inheritance: expected keys below it (recent_turns, tool_output_window, max_chars)",
            "",
        ),
        ("max_attempts: 0\n", 1, "max_attempts: expected a whole number from 1 to 999,999,999", ""),
        (
            "limits: {timeout: 10 minutes}\n",
            1,
            'a time such as 90s, 10m or 2h, at most 8760h, but found "10 minutes"',
            "",
        ),
        ("limits: {stall: 1d}\n", 1, "limits.stall: expected a number of seconds above 0", ""),
        (
            "max_parallel: many\n",
            1,
            'max_parallel: expected a whole number from 1 to 999,999,999 but found "many"',
            "",
        ),
        ("max_parallel: 0\n", 1, 'from 1 to 999,999,999 but found "0"', ""),
        ("max_parallel: 1.5\n", 1, 'found "1.5"', ""),
        ("max_running: [1]\n", 1, "max_running: expected a whole number from 1 to 999,999,999 but found a list", ""),
        ("grace_seconds: -1\n", 1, 'grace_seconds: expected a number of seconds from 0 to 86,400 but found "-1"', ""),
        ("grace_seconds: .nan\n", 1, 'found ".nan"', ""),
        ("grace_seconds: inf\n", 1, 'found "inf"', ""),
        ("limits:\n  timeout: 0\n", 2, "limits.timeout: expected a number of seconds above 0", ""),
        ("limits: 3\n", 1, "limits: expected keys below it (timeout, max_turns, stall, budget, max_tokens)", ""),
        ("logs: {stdout_mb: 0}\n", 1, "logs.stdout_mb: expected a number of megabytes above 0", ""),
        ("runner: screen\n", 1, 'runner: expected process, tmux or hosts but found "screen"', ""),
        ("tmux: {socket: '#(touch x)'}\n", 1, "tmux.socket: expected a name of letters, digits, _ and -", ""),
        ("tmux: {socket: ../x}\n", 1, 'found "../x"', ""),
        ("theme: {a: b}\n", 1, "theme: expected the name of a theme but found keys below it", ""),
        ("models: a/b\n", 1, 'models: expected a list of texts but found "a/b"', ""),
        ("models: [[a]]\n", 1, "models: expected a list of texts", ""),
        ("keys: [a]\n", 1, "keys: expected lines of the form", ""),
        ("keys:\n  stop: []\n", 2, "keys.stop: expected a key such as", ""),
        (
            "retention: {days: 0}\n",
            1,
            'retention.days: expected a number of days above 0, at most 36,500, but found "0"',
            "",
        ),
        ("retention: {keep: 0}\n", 1, "retention.keep: expected a whole number from 1 to 999,999,999", ""),
        ("retention: {max_mb: all}\n", 1, "retention.max_mb: expected a number of megabytes above 0", ""),
        ("retention: 30\n", 1, "retention: expected keys below it (days, keep, max_mb)", ""),
        ("notifications: {bell: maybe}\n", 1, 'notifications.bell: expected true or false but found "maybe"', ""),
        ("agents: [pi]\n", 1, "agents: expected lines of the form", ""),
        ("agents:\n  pi: /usr/bin/pi\n", 2, 'agents.pi: expected a "command:" below it', ""),
        ("agents:\n  pi:\n    command: pi --x\n", 3, 'agents.pi.command: expected a list such as ["/opt/bin/pi"', ""),
        ("agents:\n  pi: {command: []}\n", 2, "agents.pi.command: expected a list", ""),
        ("agents:\n  pi: {command: [pi], x: y}\n", 2, '"agents.pi.x" is not a setting', "command"),
        ("agents:\n  pi: {command: [pi], env: x}\n", 2, 'agents.pi.env: expected lines of the form "NAME: value"', ""),
        ("agents:\n  pi: {command: [pi], env: {a b: x}}\n", 2, 'invalid name "a b"', ""),
        ("agents:\n  x: {command: [pi], kind: gpt}\n", 2, "agents.x.kind: expected one of pi", ""),
        ("agents:\n  'a b': {command: [x]}\n", 2, 'invalid name "a b"', ""),
        ("agent: po\n", 1, 'agent: "po" is not configured', "pi"),
        ("theme: [a\n", 2, "invalid YAML", ""),
        ("a: b: c\n", 1, "invalid YAML: mapping values", "quotes"),
        ("theme: a\ntheme: b\n", 2, '"theme" appears twice, first on line 1', ""),
        ("- theme\n", 1, 'expected lines of the form "key: value" but found a list', ""),
        ("just words\n", 1, "found a plain text", ""),
        ("theme: &a x\nrunner: *a\n", 1, "anchors and aliases", ""),
        ("theme: a\n---\ntheme: b\n", 2, "a second document begins here", ""),
        ("theme: a\nkeys: " + "[" * 500_000, 2, "the file is nested too deeply", ""),
        ("theme: @fast\n", 1, "cannot start any token", '"@fast"'),
        ("keys:\n\t- a\n", 2, "invalid YAML", "indent with spaces"),
        ("? [a]\n: b\n", 1, "a key must be plain text", ""),
        ('agents: {pi: {command: [" "]}}\n', 1, "agents.pi.command: expected a list", ""),
        ("agents:\n  pi: {command: [[pi]]}\n", 2, "agents.pi.command: expected a list", ""),
        ("theme: a\x07b\n", 1, "control character", ""),
    ],
)
def test_a_wrong_file_says_what_and_where(
    project: Project, user_file: Path, text: str, line: int, what: str, hint: str
) -> None:
    """An error names file, line, key, the expected and the actual value, and the nearest known key."""
    user_file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        Engine.open(project.root)

    assert f"{user_file}:{line}" == caught.value.where
    assert what in caught.value.what
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("columns: [foo]\n", 1, 'columns: unknown column "foo"', "known: state, preset, task"),
        ("runner: process\ncolumns:\n  - state\n  - costs\n", 4, 'unknown column "costs"', "did you mean cost?"),
        ("columns: [task, task]\n", 1, 'the column "task" appears twice', "remove one"),
        ("columns: 3\n", 1, "columns: expected a list of columns, such as [state, task, cost]", ""),
        ("theme: nrod\n", 1, 'theme: unknown theme "nrod"', "did you mean nord?"),
        ("keys:\n  stop: K\n  stpo: k\n", 3, 'keys: unknown action "stpo"', "did you mean stop?"),
        ("keys: {stop: ctlr+x}\n", 1, 'keys.stop: "ctlr+x" is not a key', 'use keys such as "k"'),
        ("commands:\n  a: {key: ctlr+x, argv: [a]}\n", 2, 'commands.a.key: "ctlr+x" is not a key', "use keys such as"),
    ],
)
def test_what_only_the_app_reads_is_replaced_by_defaults(
    project: Project, user_file: Path, text: str, line: int, what: str, hint: str
) -> None:
    """A wrong name is recorded as a fault with file, line and the nearest name, and the rest applies."""
    user_file.write_text(text + "max_parallel: 7\n")
    settings = load_settings(project)
    (fault,) = settings.faults
    assert f"{user_file}:{line}" == fault.where
    assert what in fault.what
    assert hint in fault.hint
    assert Settings(max_parallel=7, faults=(fault,)) == structs.replace(settings, runner=Settings().runner)


def test_wrong_names_stop_the_command_line_alone(project: Project, user_file: Path) -> None:
    """A wrong name in a key for the app is an error for commands, but not for the app or a parent agent."""
    user_file.write_text("columns: [foo]\n")
    with pytest.raises(SettingsError, match="unknown column"):
        Engine.open(project.root)
    for kind in (LauncherKind.APP, LauncherKind.MCP, LauncherKind.PI):
        assert () == Engine.open(project.root, kind=kind).settings.columns


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"theme: a\nrunner: \xff\n", ":2", "not UTF-8"),
        (b"theme: a\n\nrunner: \x00\n", ":3", "NUL"),
        (b"theme: " + b"a" * 1_100_000, "", "too large: 1.0 MB"),
    ],
)
def test_a_file_that_is_no_text(project: Project, user_file: Path, content: bytes, where: str, what: str) -> None:
    """Bytes that are not valid settings are refused with their position."""
    user_file.write_bytes(content)
    with pytest.raises(SettingsError, match=what) as caught:
        load_settings(project)

    assert f"{user_file}{where}" == caught.value.where


def test_a_directory_and_a_fifo_are_no_file(project: Project, user_file: Path) -> None:
    """Neither is read, and neither blocks the start."""
    user_file.mkdir()
    with pytest.raises(SettingsError, match="it is a directory"):
        load_settings(project)
    user_file.rmdir()
    os.mkfifo(user_file)
    with pytest.raises(SettingsError, match="not a regular file"):
        load_settings(project)


def test_a_file_without_permission(project: Project, user_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file is an error, not a default."""

    def denied(*_args: object, **_others: object) -> int:
        raise PermissionError(13, "Permission denied")

    user_file.write_text("theme: nord\n")
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(SettingsError, match="cannot read the file: Permission denied"):
        load_settings(project)


def test_a_dangling_link(project: Project, user_file: Path) -> None:
    """A broken link is reported with its target."""
    user_file.symlink_to("/nowhere/config.yaml")
    with pytest.raises(SettingsError, match=r"a link to /nowhere/config\.yaml, which does not exist"):
        load_settings(project)


def test_a_file_where_a_directory_should_be(project: Project) -> None:
    """If `.pi` is a file, the project has no settings."""
    Path(project.root, ".pi").write_text("")

    assert Settings() == load_settings(project)


def test_the_project_goes_before_the_user(project: Project, user_file: Path, project_file: Path) -> None:
    """The project's model wins. Lists are joined, with the project's preset directories first and its models last."""
    user_file.write_text("default_model: mine\nmodels: [a, b]\npreset_dirs: [/srv/presets]\ntheme: nord\n")
    project_file.write_text("default_model: ours\nmodels: [b, c]\npreset_dirs: [.pi/agents, docs/../prompts]\n")
    settings = load_settings(project)

    assert ("ours", ("a", "b", "c"), "nord") == (settings.default_model, settings.models, settings.theme)
    assert (f"{project.root}/.pi/agents", f"{project.root}/prompts", "/srv/presets") == settings.preset_dirs


def test_a_project_has_roles_and_switches(project: Project, user_file: Path, project_file: Path) -> None:
    """The project's roles and switches override the user's."""
    user_file.write_text("roles: {fast: my/one, deep: my/two}\nbundled_presets: no\ninherit_context: yes\n")
    project_file.write_text("roles: {fast: our/one}\nbundled_presets: yes\ninherit_context: no\n")
    settings = load_settings(project)

    assert {"fast": "our/one", "deep": "my/two"} == settings.roles
    assert (True, False) == (settings.bundled_presets, settings.inherit_context)


@pytest.mark.parametrize(
    "text",
    [
        "agent: offline",
        "agents: {pi: {command: [/tmp/evil]}}",
        "runner: tmux",
        "tmux: {socket: x}",
        "grace_seconds: 1",
        "theme: x",
        "keys: {stop: x}",
        "notifications: {bell: true}",
        "retention: {keep: 1}",
        "expose_isolated: true",
        "permissions: {allow: [read]}",
        "interactive: true",
        "inheritance: {max_chars: 9}",
    ],
)
def test_what_a_project_may_not_set(project: Project, project_file: Path, user_file: Path, text: str) -> None:
    """A project sets neither commands nor the behavior of the user's app."""
    project_file.write_text(f"default_model: a/b\n{text}\n")
    with pytest.raises(SettingsError, match="cannot be set by a project") as caught:
        load_settings(project)

    assert (f"{project_file}:2", f"set it in {user_file} instead") == (caught.value.where, caught.value.hint)


@pytest.mark.parametrize(
    ("users", "projects", "expected"),
    [
        ("max_parallel: 4", "max_parallel: 2", Settings(max_parallel=2)),
        ("", "max_parallel: 3", Settings(max_parallel=3)),
        ("", "max_running: 9", Settings(max_running=9)),
        ("limits: {timeout: 60}", "limits: {timeout: 30}", Settings(limits=Limits(timeout=30))),
        ("limits: {timeout: 60}", "limits: {stall: 5}", Settings(limits=Limits(timeout=60, stall=5))),
        ("max_attempts: 5", "max_attempts: 2", Settings(max_attempts=2)),
        ("", "logs: {stdout_mb: 1}", Settings(logs=Logs(stdout_mb=1))),
        ("reply_timeout: 5m", "reply_timeout: 1m", Settings(reply_timeout=60)),
        ("", "idle_timeout: 60", Settings(idle_timeout=60)),
        (
            "permissions: {deny: [bash], allow: [read]}",
            "permissions: {deny: [edit, bash], ask: [read]}",
            Settings(permissions=PermissionSettings(allow=("read",), ask=("read",), deny=("edit", "bash"))),
        ),
    ],
)
def test_a_project_lowers_caps(
    project: Project, user_file: Path, project_file: Path, users: str, projects: str, expected: Settings
) -> None:
    """A project may set lower limits than the user or the default."""
    user_file.write_text(users)
    project_file.write_text(projects)

    assert expected == load_settings(project)


@pytest.mark.parametrize(
    ("users", "key", "projects", "expected"),
    [
        ("max_parallel: 2", "max_parallel", "max_parallel: 3", Settings(max_parallel=2)),
        ("", "max_parallel", "max_parallel: 99", Settings()),
        (
            "limits: {timeout: 60}",
            "limits.timeout",
            "limits: {timeout: 61}",
            Settings(limits=Limits(timeout=60)),
        ),
        ("", "logs.stdout_mb", "logs: {stdout_mb: 65}", Settings()),
    ],
)
def test_a_project_never_raises_caps(
    project: Project, user_file: Path, project_file: Path, users: str, key: str, projects: str, expected: Settings
) -> None:
    """The user's lower limit counts, with a notice about the project's."""
    user_file.write_text(users)
    project_file.write_text(projects)
    settings = load_settings(project)

    assert (f"{project_file}:1: {key} is above your own limit, so your limit applies",) == settings.notices
    assert (expected.max_parallel, expected.limits, expected.logs) == (
        settings.max_parallel,
        settings.limits,
        settings.logs,
    )


@pytest.mark.parametrize("named", ["../elsewhere", "/etc", "~/presets", "~root", "a/../../x", "link"])
def test_a_project_reads_presets_inside_itself(project: Project, project_file: Path, named: str) -> None:
    """A project cannot add directories outside, not even through a symbolic link."""
    Path(project.root, "link").symlink_to("/etc")
    project_file.write_text(f'preset_dirs: ["{named}"]\n')
    with pytest.raises(SettingsError, match="is outside the project") as caught:
        load_settings(project)

    assert f"{project_file}:1" == caught.value.where


@pytest.mark.parametrize("name", ["auto", "pi", "offline"])
def test_built_in_agents_need_no_entry(project: Project, user_file: Path, name: str) -> None:
    """subdeck's own agents, and `auto`, are always available."""
    user_file.write_text(f"agent: {name}\n")

    assert name == load_settings(project).agent


def uncommented(example: str) -> str:
    return "\n".join(line.removeprefix("# ") for line in example.splitlines() if not line.startswith("##"))


def test_the_example_has_the_most_used_keys(project: Project, user_file: Path) -> None:
    """The example changes nothing as printed. Without its comment signs, it is a valid file with the most used keys."""
    example = example_settings()
    user_file.write_text(example)
    assert Settings() == load_settings(project)

    user_file.write_text(uncommented(example))
    load_settings(project)
    entries = list(read_entries(parse_settings(uncommented(example))))
    assert [name for name, key in KEYS.items() if not key.setting.is_rare] == [entry.written for entry in entries]


def test_the_example_is_short() -> None:
    """The example has at most 45 settings, and none of those for advanced users."""
    entries = list(read_entries(parse_settings(uncommented(example_settings()))))
    assert len(entries) <= 45
    assert {"agent", "worktree.copy", "app.keys"} <= {entry.key for entry in entries}
    assert [] == [entry.key for entry in entries if entry.key.startswith("advanced.")]


def test_groups_are_not_scattered() -> None:
    """The settings of a group follow each other, after those without a group."""
    groups = [group for group, _ in groupby(name.partition(".")[0] if "." in name else "" for name in KEYS)]
    assert ["", *GROUPS] == groups


def test_the_example_explains_its_keys() -> None:
    """Each key has a sentence above it, and the keys for projects are marked."""
    lines = example_settings().splitlines()
    for name, key in KEYS.items():
        if key.setting.is_rare:
            continue
        at = next(i for i, line in enumerate(lines) if line.startswith(f"## {key.setting.meaning}"))
        assert lines[at + 1].startswith("# ")
        assert f"{name.rpartition('.')[2]}: {example_of(name)}" in lines[at + 1]
        assert ("[project: " in lines[at]) == (key.setting.project is not ProjectMay.NOTHING)


def test_each_key_has_a_place() -> None:
    """The value of each key is stored in an existing field, and shown in the file's unit."""
    for key in KEYS:
        value_of(Settings(), key)
    assert LogCaps() == Settings().logs.caps
    assert LogCaps(1024, 2048, 3072, 4096) == Logs(1 / 1024, 2 / 1024, 3 / 1024, 4 / 1024).caps
    assert (64, 8) == (value_of(Settings(), "logs.stdout_mb"), value_of(Settings(), "logs.stderr_mb"))
