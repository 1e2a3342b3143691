"""Rules for paths: which files pi opens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from subdeck.core.run.events import Request, ToolResult
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.house.set_up import NEW_PI_HOME, NEW_PI_PACKAGE, PI_HOME, PI_PACKAGE
from tests.killing import IS_WHOLE
from tests.real.lab import EITHER_PI, PATIENCE, Lab
from tests.real.model_server import called, said, texts
from tests.waiting import wait_until

from ...conversed import current, decisions, of
from ...permissions.path_spellings import (
    GLOBS,
    HUSH,
    NAMES,
    SPELLINGS,
    TRIED,
    asked,
    decided,
    hide,
    landed,
    lay_out,
    secrets_of,
    ways_to,
    written,
)

pytestmark = pytest.mark.pi


def answer_all(pi: Lab, run: RunSnapshot, seen: dict[str, Request], look: Callable[[], object] = int) -> None:
    """Allow everything that is asked until the run has ended, and keep the requests by their calls."""

    def ended() -> bool:
        now = current(pi.engine, run)
        for request in now.requests:
            if request.tool_call_id not in seen:
                seen[request.tool_call_id] = request
                look()
                pi.engine.reply(run.run_id, request.id, Verdict.ALLOW)
        return now.has_ended

    wait_until(ended, "the run to end", timeout=300)
    look()


@EITHER_PI
@pytest.mark.timeout(400)
def test_where_a_write_lands(pi: Lab, home: Path) -> None:
    """An allow rule covers only unprotected files below its directory. A deny rule covers every spelling of a path that
    leads there.
    """
    outside, cwd = lay_out(pi.project), os.path.realpath(pi.project)
    pi.preset("permissions: {ask: [edit]}")
    paths = [written(spelling, cwd, outside) for spelling in TRIED]
    marks = {f"mark {path!a}": path for path in paths}
    pi.script(
        *(called(("write", {"path": path, "content": f"{mark}\n"})) for mark, path in marks.items()), said("Done.")
    )
    run = pi.start("Write.")
    files: dict[str, str] = {}
    seen: dict[str, Request] = {}
    answer_all(pi, run, seen, lambda: files.update(landed(pi.project, outside, home)))
    assert [(path,) for path in paths] == [request.paths for request in seen.values()]
    assert len(files) > len(paths) // 2
    allowed = 0
    for mark, file in files.items():
        request = asked("write", marks[mark])
        is_allowed = decided("pi", request, cwd, allow="edit(src/**)")[0] is Verdict.ALLOW
        is_denied = decided("pi", request, cwd, deny="edit(.git/**)")[0] is Verdict.DENY
        allowed += is_allowed
        assert not is_allowed or file.startswith(f"{cwd}/src/"), (mark, file)
        assert is_denied or not file.startswith(f"{cwd}/.git/"), (mark, file)
        is_kept = decided("pi", request, cwd, allow="edit(**)")[0] is not Verdict.ALLOW
        assert is_kept or not any(part in file for part in ("/.git/", "/.claude/", "/.mcp.json")), (mark, file)
    assert allowed >= 4


@EITHER_PI
def test_what_a_read_opens(pi: Lab) -> None:
    """If pi could open a file with a similar name instead, an allow rule doesn't cover the path, and a deny
    rule does.
    """
    outside, cwd = lay_out(pi.project), os.path.realpath(pi.project)
    secret = pi.project / "my secret.txt"
    secret.write_text("hush\n")
    (outside / "key").write_text("hush\n")
    pi.preset(
        f"permissions: {{allow: ['read(src/**)'], ask: [read], deny: ['read(my secret.txt)', 'read({outside}/**)']}}"
    )
    paths = (
        *(
            "src/a'b",
            "src/caf\u00e9",
            "src/Shot 9 PM.png",
            "my\u00a0secret.txt",
            "@my secret.txt",
            "./my\u2009secret.txt",
        ),
        *(f"file://{cwd}/my%20secret.txt", f"@file://localhost{outside}/key", "src/kept"),
    )
    pi.script(called(*(("read", {"path": path}) for path in paths)), said("Done."))
    run = pi.start("Read.")
    answer_all(pi, run, {})
    results = of(ToolResult, pi.engine, run)
    assert len(paths) == len(results)
    assert not any("hush" in result.content for result in results)
    assert any("kept" in result.content for result in results)
    assert len(paths) - 1 == sum(each.verdict is Verdict.DENY for each in decisions(pi.engine, run))


@EITHER_PI
def test_leave_for_the_run_reaches_no_further(pi: Lab) -> None:
    """Allowing a write for the run covers other plain paths in the project. Unclear, protected and outside paths are
    asked about again.
    """
    outside, cwd = lay_out(pi.project), os.path.realpath(pi.project)
    pi.preset("permissions: {ask: [write]}")
    paths = ("src/ok", "src/more", f"@file://{outside}/a", f"file://localhost{outside}/a", ".git/hooks/x", "up/y")
    pi.script(*(called(("write", {"path": path, "content": "x"})) for path in paths), said("Done."))
    run = pi.start("Write.")
    seen: list[tuple[str, str]] = []

    def ended() -> bool:
        now = current(pi.engine, run)
        for request in now.requests:
            if (request.paths[0], request.run_rule) not in seen:
                seen.append((request.paths[0], request.run_rule))
                verdict = Verdict.ALLOW_RUN if len(seen) == 1 else Verdict.DENY
                pi.engine.reply(run.run_id, request.id, verdict)
        return now.has_ended

    wait_until(ended, "the run to end", timeout=PATIENCE)
    assert [("src/ok", "edit(**)"), *((path, "") for path in paths[2:])] == seen
    assert (pi.project / "src" / "more").exists()
    assert not (outside / "a").exists() and not (pi.project / ".git" / "hooks" / "x").exists()
    assert cwd


@EITHER_PI
def test_a_protected_file_is_asked_about_in_a_run_with_other_rules(pi: Lab) -> None:
    """A run with any rules asks before it changes protected settings. Other files follow the rules."""
    lay_out(pi.project)
    pi.preset("permissions: {ask: ['bash(rm *)']}")
    write = ("write", {"path": ".claude/settings.json", "content": "{}"})
    pi.script(called(("write", {"path": "src/free", "content": "x"})), called(write), said("Done."))
    run = pi.start("Write.")
    seen: dict[str, Request] = {}
    answer_all(pi, run, seen)
    assert [("protected path .claude", "")] == [(request.rule, request.run_rule) for request in seen.values()]
    assert (pi.project / "src" / "free").exists() and (pi.project / ".claude" / "settings.json").exists()


HIDDEN = (
    f"permissions: {{deny: [{', '.join(f'{tool}(secret/**)' for tool in ('read', 'grep', 'find', 'ls', 'edit'))}]}}"
)


@EITHER_PI
@pytest.mark.timeout(400)
def test_no_way_leads_to_a_denied_file(pi: Lab) -> None:
    """A deny rule holds for every tool and every spelling of a path, through links, `/proc` and `/dev/fd`."""
    hide(pi.project)
    before = secrets_of(pi.project)
    files = [*ways_to(pi.project, "key"), *(f"secret/{name}" for name in NAMES)]
    directories = ways_to(pi.project, "")
    calls = [
        *(("read", {"path": path}) for path in files),
        *(("grep", {"pattern": ".", "path": path, "context": 1}) for path in (*files, *directories)),
        *(("grep", {"pattern": ".", "path": "src", "glob": glob}) for glob in ("../secret/*", "--follow")),
        *((tool, {"pattern": "*", "path": path}) for tool in ("find", "ls") for path in directories),
        *(("find", {"pattern": pattern, "path": "src"}) for pattern in GLOBS),
        *(("write", {"path": f"{path}new", "content": "x"}) for path in directories),
        *(("edit", {"path": path, "edits": [{"oldText": HUSH, "newText": "x"}]}) for path in files),
        ("read", {"path": "src/plain"}),
    ]
    pi.preset("tools: read, grep, find, ls, edit, write", HIDDEN)
    pi.script(*(called(*calls[at : at + 20]) for at in range(0, len(calls), 20)), said("Done."))
    run = pi.start("Look.")
    answer_all(pi, run, {})
    results = of(ToolResult, pi.engine, run)
    assert len(calls) == len(results)
    assert [] == [result.content for result in results if HUSH in result.content]
    assert results[-1].content.startswith("plain")
    assert before == secrets_of(pi.project)


@EITHER_PI
def test_a_call_that_cannot_be_read(pi: Lab) -> None:
    """A call is denied if its arguments are nested so deeply that subdeck can't read them."""
    hide(pi.project)
    pi.preset("tools: read, write", HIDDEN)
    deep = '"x":' + "[" * 1500 + "]" * 1500
    read: Any = ("read", f'{{"path":"secret/key",{deep}}}')
    write: Any = ("write", f'{{"path":"secret/new","content":"x",{deep}}}')
    pi.script(called(read, chunk_size=5000), called(write, chunk_size=5000), said("Done."))
    run = pi.start("Look.")
    answer_all(pi, run, {})
    told = texts(pi.requests[-1], "tool")
    assert [True, True] == [text.startswith("Denied: subdeck cannot read the call") for text in told]
    assert not (pi.project / "secret" / "new").exists()


@EITHER_PI
def test_a_link_that_changes_while_a_person_decides(pi: Lab) -> None:
    """If a link changes while you decide, allowing the write doesn't cover the link's new target."""
    hide(pi.project)
    pi.preset("permissions: {ask: [write]}")
    pi.script(called(("write", {"path": "src/sub/x", "content": "x"})), said("Done."))
    run = pi.start("Write.")

    def swap() -> None:
        if not (pi.project / "moved").exists():
            (pi.project / "src" / "sub").rename(pi.project / "moved")
            (pi.project / "src" / "sub").symlink_to("../.git/hooks")

    answer_all(pi, run, {}, swap)
    assert "leads to another file" in texts(pi.requests[-1], "tool")[-1]
    assert [] == os.listdir(pi.project / ".git" / "hooks")


# --- pi's own code, without a model ---

READER = """
import readline from "node:readline";
const tools = await import(process.argv[1]);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { tool, path, cwd } = JSON.parse(line);
  let opened = null;
  try { opened = (tool === "read" ? tools.resolveReadPath : tools.resolveToCwd)(path, cwd); } catch {}
  console.log(JSON.stringify(opened));
}
"""


class Reader:
    """The module of one pi version that resolves a path to the file to be opened."""

    def __init__(self, home: Path, package: str) -> None:
        module = home / "node_modules" / package / "dist" / "core" / "tools" / "path-utils.js"
        node = shutil.which("node")
        if node is None or not module.exists():
            pytest.skip(f"no node, or no {module}")
        command = [node, "--input-type=module", "-e", READER, module.as_uri()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def opened(self, tool: str, path: str, cwd: str) -> str | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps({"tool": tool, "path": path, "cwd": cwd}).encode() + b"\n")
        stdin.flush()
        return json.loads(stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def readers() -> Iterator[list[Reader]]:
    readers = [Reader(PI_HOME, PI_PACKAGE), Reader(NEW_PI_HOME, NEW_PI_PACKAGE)]
    yield readers
    for reader in readers:
        reader.end()


@pytest.fixture(scope="module")
def laid_out() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "project")
        project.mkdir()
        lay_out(project)
        yield project


ENDS = (
    "",
    "@",
    "@@",
    "file://",
    "@file://",
    "file://localhost",
    "file:",
    "file:/",
    "~",
    "~/",
    "\u00a0",
    " ",
    "./",
    "/",
    "'",
)
PARTS = (
    *("src", "out", "..", "...", ".", "down", "up", "one", "a", "key", "outside", "project", ".git", "git", "config"),
    *(
        "a'b",
        "a\u2019b",
        "caf\u00e9",
        "cafe\u0301",
        "Shot 9 PM.png",
        "my secret.txt",
        "my\u00a0dir",
        "%2e%2e",
        "%2E.",
        "%2f",
    ),
    *(
        "..\\",
        "\\..",
        "?x",
        "#",
        "%00",
        "%ff",
        "\t..",
        ".\n.",
        "\u200b",
        "~",
        "@a",
        "c:",
        "C|",
        "",
        "\u3000",
        ".GIT",
        "kept",
    ),
)
EXAMPLES = 3000 if IS_WHOLE else 300
paths_of_a_model = st.builds(
    lambda first, base, parts, last: first + base + "/".join(parts) + last,
    st.sampled_from(ENDS),
    st.sampled_from(("", "{cwd}/", "{outside}/", "{cwd}/src/", "src/")),
    st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=6),
    st.sampled_from(("", "", "/", " ", "\u00a0", "?", "#")),
)


@pytest.mark.timeout(400)
@settings(
    max_examples=3000 if IS_WHOLE else 300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(spelling=paths_of_a_model, tool=st.sampled_from(("read", "write", "grep")))
def test_what_is_surely_inside_is_inside(readers: list[Reader], laid_out: Path, spelling: str, tool: str) -> None:
    """A path that an allow rule covers opens a file in the rule's directory. A path that opens a denied file is
    denied.
    """
    cwd, outside = os.path.realpath(laid_out), os.path.realpath(laid_out.parent / "outside")
    path = written(spelling, cwd, outside)
    if "\ud800" <= max(path, default="") <= "\udfff":
        return
    word = "edit" if tool == "write" else tool
    request = asked(tool, path)
    is_allowed = decided("pi", request, cwd, allow=f"{word}(src/**)")[0] is Verdict.ALLOW
    is_kept = decided("pi", request, cwd, deny=f"{word}(.git/**)")[0] is Verdict.DENY
    is_out_of_reach = decided("pi", request, cwd, deny=f"{word}({outside}/**)")[0] is Verdict.DENY
    for reader in readers:
        opened = reader.opened(tool, path, cwd)
        if opened is None or "\0" in opened:
            continue
        real = os.path.realpath(opened)
        assert not is_allowed or f"{real}/".startswith(f"{cwd}/src/"), (opened, real)
        assert is_kept or not f"{real}/".startswith(f"{cwd}/.git/"), (opened, real)
        assert is_out_of_reach or not f"{real}/".startswith(f"{outside}/"), (opened, real)


def test_the_table_of_spellings(readers: list[Reader], laid_out: Path) -> None:
    """No special spelling of a path counts as inside a directory if pi opens a file elsewhere."""
    cwd, outside = os.path.realpath(laid_out), os.path.realpath(laid_out.parent / "outside")
    sure: set[str] = set()
    for spelling in SPELLINGS:
        path = written(spelling, cwd, outside)
        for tool, word in (("read", "read"), ("write", "edit"), ("ls", "ls")):
            verdict, _ = decided("pi", asked(tool, path), cwd, allow=f"{word}(src/**)")
            if verdict is not Verdict.ALLOW:
                continue
            sure.add(spelling)
            for reader in readers:
                opened = os.path.realpath(reader.opened(tool, path, cwd) or "/")
                assert f"{opened}/".startswith(f"{cwd}/src/"), (spelling, tool, opened)
    assert {"src/a", "./src/a", "other/../src/a", "{cwd}/src/a", "@src/a", "src/my dir/a", "src/one/../a"} <= sure
