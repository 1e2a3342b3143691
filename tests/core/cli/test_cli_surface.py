"""The command line from outside: help, errors, presets, doctor, loaded modules."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from subdeck.core.agent_kinds import KINDS
from subdeck.core.cli._page import aligned
from subdeck.core.cli.hosts import COMMANDS as OF_HOSTS, hosts
from subdeck.core.cli.main import COMMANDS, UNLISTED, CommandGroup
from subdeck.core.cli.output import EXIT_CODES, NOTHING_STARTED, UNCHECKED
from subdeck.core.cli.web import COMMANDS as OF_WEB
from subdeck.core.presets.fields import preset_schema

from tests.core.command_line import SUBDECK, subdeck, write_preset
from tests.house.reference.commands import Explained, commands

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

LISTED = "import sys; from subdeck.tui.main import main; sys.argv[1:] = {words}; main(); print(*sys.modules, sep='\\n')"


def modules(*words: str, cwd: Path) -> set[str]:
    """Run one command. Return the modules that it loaded."""
    code = LISTED.format(words=list(words))
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def listed(helped: str) -> dict[str, list[tuple[str, str]]]:
    """Return the commands that a help page lists, by the title of their group."""
    groups: dict[str, list[tuple[str, str]]] = {}
    title = ""
    for line in helped.partition("Options:")[2].splitlines():
        if found := re.fullmatch(r"(\S.*):", line):
            title = found[1]
        elif found := re.fullmatch(r"  (\w\S*(?: \w\S*)?) {2,}(\S.*)", line):
            groups.setdefault(title, []).append((found[1], found[2]))
        elif title in groups and line.strip():
            name, about = groups[title].pop()
            groups[title].append((name, f"{about} {line.strip()}"))
    return {title: rows for title, rows in groups.items() if title and title != "Examples"}


def test_help_lists_the_commands_that_people_type(project_dir: Path) -> None:
    """The list has seven groups with at most 25 commands, and -h prints the same."""
    done = subdeck("--help", cwd=project_dir)
    assert 0 == done.code
    groups = listed(done.out)
    assert [*groups] == [
        "Run", "Follow", "Respond", "Review and apply", "Clean up", "Configure", "Integrate",
    ]  # fmt: skip
    names = [name for rows in groups.values() for name, _ in rows]
    assert len(names) <= 25
    assert {*names} == {*COMMANDS} - UNLISTED
    assert done == subdeck("-h", cwd=project_dir)


@pytest.mark.parametrize(
    "words", [["--help", "--all"], ["--all", "--help"], ["--all"], ["help", "--all"]], ids=" ".join
)
def test_all_commands_are_listed(project_dir: Path, words: list[str]) -> None:
    """With --all, the help also lists commands that are rarely typed, called by programs, or in a group."""
    done = subdeck(*words, cwd=project_dir)
    assert 0 == done.code
    rows = [row for rows in listed(done.out).values() for row in rows]
    assert dict(rows) == {
        **{name: about for name, (_, about) in COMMANDS.items()},
        **{f"hosts {name}": about for name, (_, about) in OF_HOSTS.items()},
        **{f"web {name}": about for name, (_, about) in OF_WEB.items()},
    }


@pytest.mark.parametrize("command", [*commands()], ids=lambda command: command.words)
def test_every_page_has_examples(command: Explained) -> None:
    """The page of each command has two or three examples that call it and fit into 80 columns."""
    assert 2 <= len(command.examples) <= 3
    assert [line for line in command.examples if command.words not in line] == []
    assert [line for line in aligned(command.examples) if len(line) > 76] == []
    with click.Context(command.command, info_name=command.words, terminal_width=78) as context:
        shown = command.command.get_help(context)
    assert all(f"  {line}" in shown.partition("Examples:")[2] for line in aligned(command.examples))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(project_dir: Path, name: str) -> None:
    """Each command in the table exists, with help and --json."""
    done = subdeck(name, "--help", cwd=project_dir)
    assert 0 == done.code
    assert done.out.startswith(f"Usage: subdeck {name} ")
    assert "--json" in done.out


def test_every_kind_of_agent_is_named(project_dir: Path) -> None:
    """The help of `run` and the schema list the values for an agent."""
    helped = subdeck("run", "--help", cwd=project_dir)
    meaning = preset_schema()["properties"]["agent"]["description"]
    for name in ("auto", *KINDS):
        assert f" {name}," in " ".join(helped.out.split())
        assert f" {name}," in f" {meaning}"


def test_help_loads_no_command(project_dir: Path) -> None:
    """Help loads only click: no engine, no codec, no command."""
    loaded = modules("--help", cwd=project_dir)
    ours = {name for name in loaded if name.startswith("subdeck.")}
    assert ours == {
        "subdeck.core", "subdeck.core.cli", "subdeck.core.cli._page", "subdeck.core.cli.main",
        "subdeck.core.cli.output", "subdeck.core.errors",
        "subdeck.core.system", "subdeck.core.system.imports", "subdeck.core.text", "subdeck.core.text.plain",
        "subdeck.core.text.shell",
        "subdeck.tui", "subdeck.tui.main",
    }  # fmt: skip
    assert not {"msgspec", "asyncio", "textual", "libtmux", "watchfiles", "yaml"} & loaded


def test_status_loads_no_other_command(project_dir: Path) -> None:
    """Each command loads only its own module."""
    loaded = modules("status", "--json", cwd=project_dir)
    assert "subdeck.core.cli.status" in loaded
    assert not {f"subdeck.core.cli.{module}" for module, _ in COMMANDS.values() if module != "status"} & loaded
    assert not {"asyncio", "textual", "libtmux", "watchfiles", "yaml"} & loaded


@pytest.mark.parametrize("words", [["status"], ["status", "--all"]], ids=" ".join)
def test_the_plain_list_loads_nothing_that_reads_options(project_dir: Path, words: list[str]) -> None:
    """The plain list, which people use in a prompt, loads no library that it doesn't need."""
    loaded = modules(*words, cwd=project_dir)
    assert "subdeck.core.cli.run_list" in loaded
    assert not {"click", "subdeck.core.cli.main", "subdeck.core.cli._options"} & loaded


def test_a_plain_run_loads_nothing_that_reads_options(project_dir: Path) -> None:
    """A run with just a preset and a task starts without loading the options library."""
    write_preset(project_dir)
    loaded = modules("run", "scout", "list files", cwd=project_dir)
    assert "subdeck.core.cli.execution" in loaded
    assert not {"click", "uuid", "subdeck.core.cli.main", "subdeck.core.cli._options"} & loaded


def test_version(project_dir: Path) -> None:
    """--version is one line."""
    done = subdeck("--version", cwd=project_dir)
    assert (0, "subdeck 0.1.0\n") == (done.code, done.out)


def test_unknown_command_names_the_near_ones(project_dir: Path) -> None:
    """A typing error gets a suggestion."""
    done = subdeck("statsu", cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert 'unknown command "statsu"' in done.err
    assert "did you mean status" in done.err
    assert "subdeck -C" in subdeck("..", cwd=project_dir).err


def test_help_is_a_command_too(project_dir: Path) -> None:
    """`subdeck help` and `subdeck help COMMAND` print what --help prints."""
    for words in ((), ("run",), ("connect", "pi")):
        done = subdeck("help", *words, cwd=project_dir)
        assert (0, subdeck(*words, "--help", cwd=project_dir).out) == (done.code, done.out)
    assert 'unknown command "statsu"' in subdeck("help", "statsu", cwd=project_dir).err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["statsu"], "did you mean status?"),
        (["zzz"], "subdeck --help lists all commands"),
        (["status", "--al"], "did you mean --all?"),
        (["run", "a", "b", "--copies", "3"], 'put a task that begins with "-" after "--"'),
    ],
)
def test_only_what_is_near_is_named(project_dir: Path, words: list[str], hint: str) -> None:
    """Only similar words are suggested, and dashes don't make two options similar."""
    assert subdeck(*words, "--json", cwd=project_dir).error["hint"].startswith(hint)


def test_usage_errors_are_documents_too(project_dir: Path) -> None:
    """With --json, an error of the command line has the usual form of errors."""
    done = subdeck("status", "--nope", "--json", cwd=project_dir)
    assert (2, "", "subdeck status") == (done.code, done.out, done.error["where"])
    assert "--nope" in done.error["what"]
    missing = subdeck("logs", "--json", cwd=project_dir)
    assert "RUN" in missing.error["what"]


def test_wrong_values_are_explained_by_us(project_dir: Path) -> None:
    """Every parameter with bounds or fixed values has its own error, and click's text is never shown."""
    for group in (CommandGroup(), hosts):
        assert isinstance(group, click.Group)
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            assert command is not None
            kinds = {type(param.type) for param in command.params}
            assert not {click.IntRange, click.FloatRange, click.Choice} & kinds, name


@pytest.mark.parametrize(
    ("words", "what", "where"),
    [
        (["rm", "--keep", "-3"], 'invalid --keep "-3": expected a whole number from 0 to 999,999,999', "--keep"),
        (["rm", "--older-than", "3y"], 'expected a number of days, or an age such as 12h or 2w', "--older-than"),
        (["wait", "x", "--timeout", "nan"], 'invalid --timeout "nan": expected a number from 0 to', "--timeout"),
        (["connect", "cluade"], 'invalid CLIENT "cluade": expected pi, claude or codex; did you mean', "CLIENT"),
        (["logs"], "RUN is missing", "RUN"),
        (["presets", "a", "b"], 'unexpected argument "b"', "subdeck presets"),
        (["status", "--json=3"], "--json takes no value", "--json"),
        (["run", "x", "--model"], "--model needs a value", "--model"),
        (["status", "--nope"], "subdeck status has no option --nope", "subdeck status"),
    ],
)  # fmt: skip
def test_usage_errors_say_what_was_expected(project_dir: Path, words: list[str], what: str, where: str) -> None:
    """An error of the command line names the parameter as typed, the typed value and the expected one."""
    command = f"subdeck {words[0]}"
    done = subdeck(words[0], "--json", *words[1:], cwd=project_dir)
    assert (2, "", where) == (done.code, done.out, done.error["where"])
    assert what in done.error["what"]
    assert f"{command} --help shows its usage" == done.error["hint"]


def test_help_names_every_exit_code(project_dir: Path) -> None:
    """The program's help has all exit codes of a run, including that of a failed check."""
    helped = " ".join(subdeck("--help", cwd=project_dir).out.split())
    for code in (*EXIT_CODES.values(), UNCHECKED, NOTHING_STARTED):
        assert re.search(rf"Exit codes:[^.]*\b{code} ", helped)


def test_json_after_two_dashes_is_a_word(project_dir: Path) -> None:
    """A task may be the word --json."""
    done = subdeck("run", "nope", "--", "--json", cwd=project_dir)
    assert 2 == done.code
    assert done.err.startswith("subdeck: unknown preset")


def test_directory_option_is_where_all_begins(project_dir: Path, tmp_path: Path) -> None:
    """-C works like starting there, and a missing directory is an error."""
    write_preset(project_dir)
    done = subdeck("-C", str(project_dir), "presets", "--json", cwd=tmp_path)
    assert ["scout"] == [preset["name"] for preset in done.document["presets"]]
    missing = subdeck("-C", "nowhere", "status", cwd=tmp_path)
    assert 2 == missing.code
    assert "nowhere: No such file or directory" in missing.err


def test_app_needs_a_terminal(project_dir: Path) -> None:
    """Without a command and without a terminal the error names the way out."""
    done = subdeck(cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert "needs a terminal" in done.err


def test_closed_reader_is_no_traceback(project_dir: Path) -> None:
    """`subdeck presets | head -1` ends quietly."""
    for number in range(200):
        write_preset(project_dir, f"scout{number}", extra="tools: read\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*SUBDECK, "presets"], cwd=project_dir, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert b"" == done.stderr


def test_presets_are_listed_with_their_problems(project_dir: Path) -> None:
    """Valid presets come first, then broken ones with path and reason."""
    path = write_preset(project_dir, extra="model: a/b\ntools: read, grep\n")
    broken = path.with_name("broken.md")
    broken.write_text("---\nname: broken\n---\nno description\n")
    done = subdeck("presets", cwd=project_dir)
    assert 0 == done.code
    first, second = done.out.splitlines()
    assert "scout  project  a/b  looks around" == first
    assert second.startswith(f"✗ {broken}")
    document = subdeck("presets", "--json", cwd=project_dir).document
    assert document["presets"] == [
        {
            "name": "scout", "source": "project", "path": str(path), "description": "looks around", "model": "a/b",
            "form": "", "tools": ["read", "grep"], "warnings": [], "cannotStart": [],
        }
    ]  # fmt: skip
    (problem,) = document["problems"]
    assert ["message", "path"] == sorted(problem)


def test_presets_that_cannot_start_are_marked(project_dir: Path, home: Path) -> None:
    """A preset that cannot start here is marked in the list, in JSON and by doctor, with the reason and the fix."""
    write_preset(project_dir)
    write_preset(project_dir, "quick", extra='model: "@fast"\n')
    write_preset(project_dir, "boxed", extra="sticky: true\nworktree: true\n")
    done = subdeck("presets", cwd=project_dir, COLUMNS="200")
    assert 0 == done.code
    rows, reasons = done.out.splitlines()[:3], done.out.splitlines()[3:]
    assert ["✗  boxed", "✗  quick", "   scout"] == [row[:8] for row in rows]
    assert reasons[0].startswith("✗ boxed cannot start: the preset is sticky")
    what = 'the model "@fast" is a role, but no roles are configured here'
    assert reasons[1].startswith(f"✗ quick cannot start: {what}; set")
    assert "fast: inherit" in reasons[1]
    listed = subdeck("presets", "--json", cwd=project_dir).document["presets"]
    by_name = {one["name"]: one["cannotStart"] for one in listed}
    assert ([], [reasons[1].removeprefix("✗ quick cannot start: ")]) == (by_name["scout"], by_name["quick"])
    looked = subdeck("doctor", cwd=project_dir)
    assert 0 == looked.code
    assert f"! warn     presets   quick cannot start: {what}" in looked.out


def test_one_preset_is_shown_whole(project_dir: Path) -> None:
    """A named preset is shown with fields and prompt, as plain text. An unknown one gets similar names and the
    directories.
    """
    path = write_preset(project_dir, prompt="Be \x1b[31mbrief\x1b[0m.")
    done = subdeck("presets", "scout", cwd=project_dir)
    assert str(path) in done.out
    assert done.out.endswith("\nBe brief.\n")
    assert (
        "Be \x1b[31mbrief\x1b[0m."
        == subdeck("presets", "scout", "--json", cwd=project_dir).document["presets"][0]["prompt"]
    )
    unknown = subdeck("presets", "scuot", cwd=project_dir)
    assert 2 == unknown.code
    assert "did you mean scout?" in unknown.err
    assert str(path.parent) in unknown.err


def test_no_presets_teaches_how_to_write_one(project_dir: Path, tmp_path: Path) -> None:
    """The empty list shows a command that creates a preset, and it works."""
    done = subdeck("presets", cwd=project_dir)
    assert 0 == done.code
    script = "\n".join(line.removeprefix("  ") for line in done.out.splitlines() if line.startswith("  "))
    script = script[: script.index("\nEND") + 4]
    subprocess.run(["/bin/sh", "-c", script], cwd=project_dir, check=True)
    (preset,) = subdeck("presets", "--json", cwd=project_dir).document["presets"]
    assert ("repo-scout", []) == (preset["name"], preset["warnings"])


def test_broken_settings_are_an_error_with_a_line(project_dir: Path, home: Path) -> None:
    """Every command that reads the settings reports file, line and key to fix."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agent: offline\ndefault_modle: a/b\n")
    done = subdeck("status", cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert f"{path}:2" in done.err
    assert "default_model" in done.err


def test_doctor_says_what_is_missing(project_dir: Path, home: Path) -> None:
    """Every line has a state, missing parts have their fix, and nothing is created."""
    done = subdeck("doctor", cwd=project_dir)
    assert 0 == done.code
    assert "! warn     pi        pi is not on PATH" in done.out
    assert "npm install -g @earendil-works/pi-coding-agent" in done.out
    assert "offline" in done.out
    lines = [line for line in done.out.splitlines() if not line.startswith(" ")]
    at = next(number for number, line in enumerate(lines) if ": runs can start here." in line)
    assert f"No problems, {at} warning{'s' * (at > 1)}: runs can start here." == lines[at]
    assert [{"!"}, {"✓"}] == [{line[0] for line in part} for part in (lines[:at], lines[at + 1 :])]
    document = subdeck("doctor", "--json", cwd=project_dir).document
    assert document["ok"] is True
    assert {"name", "state", "detail", "fix"} == set(document["checks"][0])
    assert {".git"} == {path.name for path in project_dir.iterdir()}


def test_doctor_works_with_broken_settings(project_dir: Path, home: Path) -> None:
    """Broken settings are reported, and the other checks still run."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agnet: offline\n")
    done = subdeck("doctor", cwd=project_dir)
    assert 2 == done.code
    assert done.out.startswith(f"✗ problem  settings  {path}:1")
    assert re.search(
        r"^1 problem, \d+ warnings?: fix the problem before you start runs here\.$", done.out, re.MULTILINE
    )
    assert "✓ ok       python" in done.out


@pytest.mark.parametrize("line", ["columns: [csot]", "theme: nrod", "keys: {stpo: k}"])
def test_wrong_names_of_the_app_are_reported(project_dir: Path, home: Path, line: str) -> None:
    """doctor and every command report a wrong column, theme or key with file, line and the nearest name, and exit 2."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"max_parallel: 2\n{line}\n")
    for words in (["doctor"], ["status"], ["presets"], ["settings"]):
        done = subdeck(*words, cwd=project_dir)
        assert 2 == done.code
        assert f"{path}:2" in done.out + done.err
        assert "did you mean" in done.out + done.err


def test_app_opens_and_quits(project_dir: Path) -> None:
    """Without a command, on a terminal, the app starts, and q ends it with exit code 0."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(SUBDECK, cwd=project_dir, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        asked = False
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
                if b"running" in shown and not asked:
                    asked = True
                    os.write(ours, b"q")
        except OSError:
            pass  # a terminal reports in this way that its last program has exited
        assert 0 == process.wait(timeout=30), shown[-3000:]
    os.close(ours)
