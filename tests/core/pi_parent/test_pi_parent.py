"""The extension for pi and its prompt templates: installed files, untouched files, and their promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib import import_module
from keyword import iskeyword
from pathlib import Path

import click
import pytest
from subdeck.core.cli.main import COMMANDS
from subdeck.core.errors import UsageError
from subdeck.core.pi_parent.installer import Installation, State, installation, own_command

from tests.factories import write_settings
from tests.house.set_up import MCP_CLIENTS_HOME

from ..command_line import subdeck

pytestmark = pytest.mark.usefixtures("forked_commands")

ROOT = Path(__file__).resolve().parents[3]
PROMPTS = ("inspect", "plan", "implement", "review", "revise")
REMOVED = re.compile(r"\b(scout|planner|reviewer|worker|chain)(s|ed|ing)?\b", re.IGNORECASE)
"""Formerly built-in roles, and the former mode."""


@pytest.fixture
def agent_dir() -> Path:
    return Path(os.environ["PI_CODING_AGENT_DIR"])


@pytest.fixture
def here(agent_dir: Path) -> Installation:
    return installation(str(agent_dir))


def files(directory: Path) -> dict[str, str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text() for path in found}


def edit(path: str, text: str = "// mine\n") -> None:
    with open(path, "a") as file:
        file.write(text)


@pytest.mark.processes
def test_install_says_where(agent_dir: Path, project_dir: Path) -> None:
    """One extension and five templates are installed where pi looks for them, and the command names the paths."""
    done = subdeck("connect", "pi", cwd=project_dir)
    assert 0 == done.code, done.err
    expected = {"extensions/subdeck.ts", *(f"prompts/{name}.md" for name in PROMPTS)}
    assert expected == set(files(agent_dir))
    assert str(agent_dir / "extensions" / "subdeck.ts") in done.out
    assert str(agent_dir / "prompts") in done.out
    assert all(f"/{name}" in done.out for name in PROMPTS)


def test_files_of_an_earlier_version_are_replaced(here: Installation) -> None:
    """Files with the mark of 0.1 are known as subdeck's: installing replaces them, and uninstalling removes them."""
    for again in (here.install, here.uninstall):
        here.install()
        for place in here.files:
            path = Path(place.path)
            text = path.read_text().replace("by `subdeck connect pi`", "by `subdeck pi install`")
            path.write_text(text.replace("`subdeck disconnect pi` takes", "`subdeck pi uninstall` takes"))
        assert {State.OUTDATED} == {place.state for place in here.files}
        again()
        assert {place.state for place in here.files} <= {State.CURRENT, State.ABSENT}


@pytest.mark.processes
def test_install_for_a_project(agent_dir: Path, project_dir: Path) -> None:
    """With --project the same files go to the project's .pi, even from a directory below."""
    below = project_dir / "src"
    below.mkdir()
    done = subdeck("connect", "pi", "--project", "--json", cwd=below)
    assert str(project_dir / ".pi" / "extensions" / "subdeck.ts") == done.document["extension"]
    assert 5 == len(done.document["prompts"])
    assert not agent_dir.exists()


def test_installing_again_changes_nothing(here: Installation, agent_dir: Path) -> None:
    """A second install leaves the files unchanged."""
    here.install()
    before = {path: path.stat().st_mtime_ns for path in agent_dir.rglob("*")}
    assert () == here.install()
    assert before == {path: path.stat().st_mtime_ns for path in agent_dir.rglob("*")}


def test_another_version_is_brought_up_to_date(here: Installation, agent_dir: Path) -> None:
    """An earlier subdeck's file, with another command, is replaced."""
    installation(str(agent_dir), ("/gone/python",)).install()
    assert State.OUTDATED == here.extension.state
    here.install()
    assert State.CURRENT == here.extension.state


def test_a_foreign_extension_stops_it(here: Installation, agent_dir: Path) -> None:
    """Another author's extension is never overwritten, and then nothing is written."""
    path = agent_dir / "extensions" / "subdeck.ts"
    path.parent.mkdir(parents=True)
    path.write_text("// mine\n")
    with pytest.raises(UsageError) as refused:
        here.install()
    assert str(path) == refused.value.where
    assert {"extensions/subdeck.ts": "// mine\n"} == files(agent_dir)
    assert ((), ()) == here.uninstall()


def test_edits_are_kept(here: Installation, agent_dir: Path) -> None:
    """A user's edit in one of our files is neither overwritten nor removed."""
    here.install()
    edit(here.extension.path)
    edit(here.prompts[0].path)
    before = files(agent_dir)
    with pytest.raises(UsageError):
        here.install()
    assert before == files(agent_dir)
    removed, edited = here.uninstall()
    assert (here.extension.path, here.prompts[0].path) == edited
    assert 4 == len(removed)
    assert {"extensions/subdeck.ts", "prompts/inspect.md"} == set(files(agent_dir))


@pytest.mark.processes
def test_a_template_of_the_user_goes_before(here: Installation, agent_dir: Path, project_dir: Path) -> None:
    """A template of the same name stays unchanged and is named; the rest is installed."""
    mine = agent_dir / "prompts" / "review.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("Review as I like it.\n")
    done = subdeck("connect", "pi", cwd=project_dir)
    assert 0 == done.code
    assert f"left unchanged, not created by subdeck: {mine}" in done.err
    assert "Review as I like it.\n" == mine.read_text()
    assert State.CURRENT == here.extension.state


def test_a_link_is_not_followed(here: Installation, agent_dir: Path, tmp_path: Path) -> None:
    """A link in place of the extension counts as the user's own file."""
    target = tmp_path / "dotfiles.ts"
    target.write_text(here.extension.content)
    (agent_dir / "extensions").mkdir(parents=True)
    (agent_dir / "extensions" / "subdeck.ts").symlink_to(target)
    assert State.FOREIGN == here.extension.state


@pytest.mark.processes
def test_uninstall_removes_what_was_put(here: Installation, agent_dir: Path, project_dir: Path) -> None:
    """Uninstall removes all our files and no others; a second one finds nothing to remove."""
    here.install()
    neighbour = agent_dir / "prompts" / "mine.md"
    neighbour.write_text("mine\n")
    done = subdeck("disconnect", "pi", cwd=project_dir)
    assert 6 == done.out.count("removed ")
    assert {"prompts/mine.md": "mine\n"} == files(agent_dir)
    assert "Nothing was installed.\n" == subdeck("disconnect", "pi", cwd=project_dir).out


@pytest.mark.processes
def test_status_tells_each_file(here: Installation, project_dir: Path) -> None:
    """The bare command shows each file's state, and the command that the extension would start."""
    absent = subdeck("connect", "--json", cwd=project_dir).document
    assert (False, {"absent"}) == (absent["installed"], {file["state"] for file in absent["files"]})
    here.install()
    edit(here.prompts[1].path)
    told = subdeck("connect", "--json", cwd=project_dir).document
    assert (True, ["current", "current", "edited"]) == (
        told["installed"], [file["state"] for file in told["files"]][:3]
    )  # fmt: skip
    assert list(own_command()) == told["command"]


def test_the_command_is_data(agent_dir: Path) -> None:
    """A path with quotes, dollars and newlines stays one word of a list in the extension."""
    strange = ('/opt/it\'s "quoted"/${x}`y`\n/python', "-m", "subdeck.tui.main")
    code = installation(str(agent_dir), strange).extension.content
    (line,) = [line for line in code.splitlines() if line.startswith("const COMMAND")]
    assert list(strange) == json.loads(line.removeprefix("const COMMAND: string[] = ").removesuffix(";"))


def test_the_extension_imports_nothing_of_pi(here: Installation) -> None:
    """The extension imports nothing of pi, so it works with every npm scope of pi."""
    imported = re.findall(r"""(?:from|import|require)\s*\(?\s*["']([^"']+)""", here.extension.content)
    assert imported
    assert all(name.startswith("node:") for name in imported)


def test_templates_are_what_pi_reads(here: Installation) -> None:
    """Each template has a description, uses `subagent`, and takes the user's text; our mark is not in its body."""
    assert PROMPTS == tuple(Path(prompt.path).stem for prompt in here.prompts)
    for prompt in here.prompts:
        _, header, body = prompt.content.split("---\n", 2)
        assert re.search(r"^description: \S", header, re.MULTILINE)
        assert "$@" in body
        assert "`subagent`" in body
        assert "subdeck" not in body


def test_no_template_names_a_role(here: Installation) -> None:
    """The templates use the user's presets: no formerly built-in role and no chain mode."""
    for prompt in here.prompts:
        assert not REMOVED.search(prompt.content), prompt.path


def test_no_text_promises_what_is_gone() -> None:
    """README, the page about parents and help name no removed role and no chain mode."""
    lines = [line for name in ("README.md", "docs/parents.md") for line in (ROOT / name).read_text().splitlines()]
    lines = [line.replace("repo-scout", "") for line in lines]
    assert [] == [line for line in lines if REMOVED.search(line)]
    for name, (module, about) in COMMANDS.items():
        function = name.replace("-", "_") + "_" * iskeyword(name)
        command: click.Command = getattr(import_module(f"subdeck.core.cli.{module}"), function)
        texts = [part.get_help(click.Context(part)) for part in (command, *getattr(command, "commands", {}).values())]
        assert not REMOVED.search("\n".join((about, *texts))), name


@pytest.mark.processes
@pytest.mark.parametrize(("version", "asks"), [("0.73.1", False), ("0.79.0", True), ("1.5.2", True), (None, True)])
def test_a_project_has_to_be_trusted(
    project_dir: Path, tmp_path: Path, home: Path, version: str | None, asks: bool
) -> None:
    """If pi ignores untrusted projects, installer and status tell how to trust this one."""
    if version:
        pi = tmp_path / "pi" / "bin" / "pi"
        pi.parent.mkdir(parents=True)
        pi.write_text("#!/bin/sh\n")
        pi.chmod(0o755)
        about = {"name": "@earendil-works/pi-coding-agent", "version": version}
        (tmp_path / "pi" / "package.json").write_text(json.dumps(about))
        write_settings(agents={"pi": {"command": [str(pi)]}}, agent="pi")
    installed = subdeck("connect", "pi", "--project", cwd=project_dir)
    shown = subdeck("connect", "--project", cwd=project_dir)
    assert [asks, asks] == ["/trust" in done.err and "--approve" in done.err for done in (installed, shown)]
    assert "/trust" not in subdeck("connect", "pi", cwd=project_dir).err


DRAWN = """
import extension from "EXTENSION";
const renderers = new Map();
extension({ on() {}, registerMessageRenderer: (type, draw) => renderers.set(type, draw) });
const theme = { fg: (colour, text) => `<${colour}>${text}` };
const draw = (message, width) => renderers.get("pi-subagents:bg-done")(message, {}, theme).render(width);
const content = "slow 7fae18 completed (done): look\\x1b[31m at 漢字漢字 and a-very-long-word-without-a-blank";
console.log(JSON.stringify([draw({ content, details: { status: "completed" } }, 24), draw({ content: "x" }, 1)]));
"""


@pytest.mark.processes
def test_the_end_of_a_background_run_is_drawn(tmp_path: Path, here: Installation) -> None:
    """pi shows a background run's end as one line, never wider than the terminal, without control sequences."""
    node = str(MCP_CLIENTS_HOME / "node_modules/.bin/node")
    if not os.access(node, os.X_OK):
        pytest.skip("there is no node that reads TypeScript")
    here.install()
    script = tmp_path / "draw.mjs"
    script.write_text(DRAWN.replace("EXTENSION", here.extension.path))
    done = subprocess.run([node, "--no-warnings", str(script)], capture_output=True, text=True, check=True)
    rows, narrow = json.loads(done.stdout)
    texts = [row.removeprefix(" <success>") for row in rows]
    assert "✓ slow 7fae18" == texts[0]
    assert all(sum(2 if ord(c) >= 0x300 else 1 for c in text) <= 22 for text in texts)
    assert "\x1b" not in done.stdout and "\\u001b" not in done.stdout
    assert "slow7fae18completed(done):look[31mat漢字漢字anda-very-long-word-without-a-blank" in "".join(texts).replace(
        " ", ""
    )
    assert narrow
