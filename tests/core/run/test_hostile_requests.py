"""A request shows everything that it would run, in every view, and an answer is bound to the request that was read."""

from __future__ import annotations

import json
import os
import pty
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.agents.acp._conversation import AcpConversation as AcpStream
from subdeck.core.agents.acp._requests import form
from subdeck.core.agents.child import Start
from subdeck.core.agents.claude._requests import asked as claude_asked
from subdeck.core.agents.codex._requests import asked as codex_asked
from subdeck.core.agents.pi._dialogs import PERMISSION, asked as pi_asked
from subdeck.core.cli.main import main
from subdeck.core.delegation.call import call_tool
from subdeck.core.delegation.parent import Parent, SessionWatch
from subdeck.core.errors import UsageError
from subdeck.core.mcp._protocol import encode
from subdeck.core.paths import Project
from subdeck.core.permissions.rules import Policy
from subdeck.core.run.describe import asked as asked_line
from subdeck.core.run.documents import request_document
from subdeck.core.run.events import Decision, Event, Field, Request, encode_event
from subdeck.core.run.inbox import InboxEntry
from subdeck.core.run.model import LauncherKind, Permissions, RequestKind, Verdict
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.run.requests import (
    REQUEST_LIMIT,
    is_marked,
    kept_request,
    request_hash,
    request_line,
    request_text,
    shown_path,
)
from subdeck.core.text.visible import (
    is_hiding,
    is_hiding_name,
    recounted,
    visible,
    visible_line,
    visible_name,
)

from tests.core.command_line import SUBDECK, subdeck
from tests.core.talking import answering, choice, listening, permission
from tests.factories import make_meta, open_engine
from tests.hostile import controls

pytestmark = pytest.mark.usefixtures("forked_commands")

PAYLOAD = "touch PWNED"

HIDDEN = {
    "OSC": (f"ls \x1b]; {PAYLOAD}; echo \x07", "<U+001B>"),
    "OSC, C1": (f"ls \x9d; {PAYLOAD}; echo \x9c", "<U+009D>"),
    "APC": (f"ls \x1b_; {PAYLOAD}; \x1b\\", "<U+001B>"),
    "DCS": (f"ls \x1bP; {PAYLOAD}; \x1b\\", "<U+001B>"),
    "PM": (f"ls \x1b^; {PAYLOAD}; \x1b\\", "<U+001B>"),
    "SOS": (f"ls \x1bX; {PAYLOAD}; \x1b\\", "<U+001B>"),
    "SOS, C1": (f"ls \x98; {PAYLOAD}; \x9c", "<U+0098>"),
    "CSI": (f"ls \x1b[;{PAYLOAD};\x1b[K", "<U+001B>"),
    "CSI, C1": (f"ls \x9b;{PAYLOAD}", "<U+009B>"),
    "escape": (f"ls \x1b; {PAYLOAD}", "<U+001B>"),
    "return": (f"{PAYLOAD} #\rls", "<U+000D>"),
    "backspace": (f"{PAYLOAD};\b\b\bls", "<U+0008>"),
    "NUL": (f"ls \x00; {PAYLOAD}", "<U+0000>"),
    "delete": (f"ls \x7f; {PAYLOAD}", "<U+007F>"),
    "vertical tab": (f"ls \x0b; {PAYLOAD}", "<U+000B>"),
    "form feed": (f"ls \x0c; {PAYLOAD}", "<U+000C>"),
    "unit separator": (f"./run.sh\x1f; {PAYLOAD}", "<U+001F>"),
    "no-break space": (f"ls\u00a0; {PAYLOAD}", "<U+00A0>"),
    "ideographic space": (f"ls\u3000; {PAYLOAD}", "<U+3000>"),
    "soft hyphen": (f"ls\u00ad; {PAYLOAD}", "<U+00AD>"),
    "zero width space": (f"ls\u200b; {PAYLOAD}", "<U+200B>"),
    "zero width joiner": (f"l\u200ds; {PAYLOAD}", "<U+200D>"),
    "zero width non-joiner": (f"l\u200cs; {PAYLOAD}", "<U+200C>"),
    "word joiner": (f"l\u2060s; {PAYLOAD}", "<U+2060>"),
    "grapheme joiner": (f"l\u034fs; {PAYLOAD}", "<U+034F>"),
    "byte order mark": (f"\ufeffls; {PAYLOAD}", "<U+FEFF>"),
    "right to left": (f"ls \u202e; {PAYLOAD}\u202c", "<U+202E>"),
    "isolate": (f"ls \u2066; {PAYLOAD}\u2069", "<U+2066>"),
    "Arabic letter mark": (f"ls \u061c; {PAYLOAD}", "<U+061C>"),
    "line separator": (f"# ls\u2028{PAYLOAD}", "<U+2028>"),
    "next line": (f"# ls\x85{PAYLOAD}", "<U+0085>"),
    "Hangul filler": (f"ls \u3164; {PAYLOAD}", "<U+3164>"),
    "halfwidth filler": (f"ls \uffa0; {PAYLOAD}", "<U+FFA0>"),
    "Braille blank": (f"ls \u2800; {PAYLOAD}", "<U+2800>"),
    "selector": (f"l\ufe0fs; {PAYLOAD}", "<U+FE0F>"),
    "further selector": (f"l\U000e0101s; {PAYLOAD}", "<U+E0101>"),
    "tag": (f"ls \U000e0041; {PAYLOAD}", "<U+E0041>"),
    "annotation": (f"ls \ufff9; {PAYLOAD}", "<U+FFF9>"),
    "private": (f"ls \ue000; {PAYLOAD}", "<U+E000>"),
    "unassigned": (f"ls \u0378; {PAYLOAD}", "<U+0378>"),
    "object": (f"ls \ufffc; {PAYLOAD}", "<U+FFFC>"),
    "selector of Duployan": (f"ls\U0001bc9d; {PAYLOAD}", "<U+1BC9D>"),
    "stacker of Myanmar": (f"ls\u1039; {PAYLOAD}", "<U+1039>"),
    "joiner of numbers": (f"ls1\U0001107f; {PAYLOAD}", "<U+1107F>"),
    "many selectors": (f"\u1820\u180b\u180b; {PAYLOAD}", "<U+180B>"),
    "flood of marks": ("l" + "\u0301" * 12 + f"s; {PAYLOAD}", "<U+0301>"),
    "flag of tags": (f"🏴\U000e0067\U000e007f; {PAYLOAD}", "<U+E0067>"),
    "blank of Ogham": (f"ls\u1680; {PAYLOAD}", "<U+1680>"),
    "stray mark": (f"ls \u0336; {PAYLOAD}", "<U+0336>"),
}
CASES = pytest.mark.parametrize(("text", "code"), list(HIDDEN.values()), ids=list(HIDDEN))

SEEN = [
    "ls -la",
    "printf 'a\tb'\nmake all",
    "Ünïcödé – «…» €.txt",
    "e\u0301a\u0323\u0302.txt",
    "日本語/설정/файл.md",
    "👨‍👩‍👧/🏳️‍🌈/👩🏽‍💻/❤️/1️⃣.md",
    "می‌خواهم.txt",
    "क्‍ष/ক্‌ষ/ශ්‍රී.md",
    "葛\U000e0100飾.txt",
    "שָׁלוֹם/ไม่/தமிழ்.md",
]


def by_field(text: str) -> dict[str, Request]:
    """Return requests with this text, one for each field that a decision depends on."""
    line = text.replace("\n", " ")
    return {
        "command": permission(command=text),
        "path": permission(tool_name="edit", command="", paths=(line,)),
        "directory": permission(cwd=line),
        "change": permission(tool_name="edit", command="", paths=("a",), diff=f"+++ a\n@@ -0,0 +1,1 @@\n+{line}"),
        "argument": permission(tool_name="mcp__x__y", command="", text=text),
        "tool": permission(tool_name=f"mcp__{line}", title=f"wants to use {line}", command=""),
        "question": choice(kind=RequestKind.QUESTION, text=text, choices=()),
        "choice": choice(choices=(line, "other")),
        "field": choice(kind=RequestKind.FORM, choices=(), fields=(Field("a", text=line, choices=(line,)),)),
    }


@CASES
def test_whatever_is_hidden_is_shown(text: str, code: str) -> None:
    """Every field shows a hidden character by its code point, with the text around it, in the block and in one line."""
    for field, request in by_field(text).items():
        for shown in (request_text(request), request_text(request, "/src")):
            assert (field, True, True) == (field, code in shown, PAYLOAD in shown)
            assert [] == controls(shown.replace("\n", "")), field
            assert "invisible characters" in shown
        line = request_line(request, 2000)
        assert [] == controls(line) and line.startswith("! ")
        if field not in ("directory", "change", "choice", "field"):  # a line shows less of these
            assert (field, True, True) == (field, code in line, PAYLOAD in line)


@CASES
def test_every_command_shows_it(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: str
) -> None:
    """Lists, status, log, markdown, parents and their users show hidden characters in full."""
    monkeypatch.chdir(project_dir)
    monkeypatch.setenv("COLUMNS", "400")

    def printed(*words: str) -> str:
        assert 0 == main(lambda *_: 0, words)
        return capsys.readouterr().out

    engine = open_engine(project_dir)
    request = permission(command=text)
    with listening(engine.project, request) as run:
        shown = {
            "list": printed("requests"),
            "block": printed("requests", run.short_id),
            "status": printed("status", run.short_id),
            "markdown": printed("logs", "--markdown", run.short_id),
            "log": ProgressFormatter().text(request) or "",
        }
        (snapshot,) = engine.snapshots((run.run_id,))
        shown["line of the app"] = asked_line(snapshot)
        parent = Parent("operator", LauncherKind.CLI)
        result = call_tool(engine, "background_agent_status", {"runId": run.run_id}, parent=parent)
        shown["status for a parent"] = result.text
        (row,) = result.structured["runs"][0]["requests"]
        shown["line for a parent"], shown["display"] = row["asks"], row["display"]
        assert (text, True) == (row["command"], row["marked"])
        lines = SessionWatch("operator", ()).take(next(engine.updates(threading.Event())))
        (shown["notice for a person"],) = [line["notice"]["text"] for line in lines if line["type"] == "asked"]
        documents = printed("requests", "--json"), printed("status", "--json"), encode(result.structured).decode()
    for where, told in shown.items():
        assert (where, True, True) == (where, code in told, PAYLOAD in told)
        assert [] == controls(told.replace("\n", "")), where
    for document in documents:
        found = json.loads(document)
        (asked,) = found["requests"] if "requests" in found else found["runs"][0]["requests"]
        assert (text, True, True) == (asked["command"], asked["marked"], code in asked["display"])
        assert not is_hiding(document)


@pytest.mark.parametrize("text", SEEN)
def test_what_can_be_seen_is_as_it_is(text: str) -> None:
    """Visible text of any script, with its marks and joiners, is not marked, and a rule can allow it."""
    assert (False, text.replace("\t", "    ")) == (is_hiding(text), visible(text))
    if "\n" not in text:
        assert (False, text) == (is_hiding_name(text), visible_name(text))
        request = permission(tool_name="edit", command="", paths=(text,))
        assert Verdict.ALLOW is Policy(Permissions(allow=("edit(**)",)), "/src").decide(request)[0]


def test_no_code_point_goes_unseen() -> None:
    """Every character is shown printable, stands for one character, and changes only if it is marked."""
    for code in (*range(0x3100), *range(0xD7B0, 0x11000), *range(0xE0000, 0xE0200)):
        sign = chr(code)
        shown = visible(f"a{sign}b")
        assert shown.replace("\n", "").isprintable(), hex(code)
        assert is_hiding(f"a{sign}b") is (shown != f"a{sign}b") or sign == "\t", hex(code)


def test_a_line_says_how_much_is_missing() -> None:
    """One line shows newlines by a sign and counts the characters that were cut."""
    assert "ls ⏎ touch x" == visible_line("ls\ntouch x\n")
    assert f"{'x' * 20}… (+2,980)" == visible_line("x" * 3000, 30)
    line = request_line(permission(command=f"ls{' ' * 300}; {PAYLOAD}"), 120)
    assert 120 == len(line) and line.endswith("… (+227)")


@pytest.mark.parametrize("blanks", [" ", "\t", "  \t "])
def test_a_line_that_only_seems_to_go_on(blanks: str) -> None:
    """Whitespace between a backslash and the end of a line is shown: the next line is a separate command."""
    text = f"echo a \\{blanks}\n{PAYLOAD}"
    shown = "".join(f"<U+{ord(sign):04X}>" for sign in blanks)
    assert f"echo a \\{shown}\n{PAYLOAD}" == visible(text)
    assert f"echo a \\{shown} ⏎ {PAYLOAD}" == visible_line(text)
    assert is_marked(permission(command=text))
    assert not is_hiding(text, is_file=True), "files are full of them"
    assert not is_hiding(f"echo a \\\n  b \\ c  \n{PAYLOAD}")


def test_what_was_cut_and_is_cut_again_says_how_much_is_missing() -> None:
    """A line that is cut twice shows the total number of missing characters, measured in cells."""
    line = visible_line("x" * 3000, 100)
    assert "x" * 10 + "… (+2,990)" == recounted(line, 20)
    assert line == recounted(line, 100)
    wide = recounted(visible_line("日" * 500, 100), 40, lambda text: sum(1 + (sign == "日") for sign in text))
    assert wide.endswith("… (+484)") and 16 == wide.count("日")
    assert "" == recounted("ls -la", 0) and "…" == recounted("ls -la /usr", 3)


def test_paths_and_choices_have_visible_ends() -> None:
    """Whitespace at an end and a newline in a name are shown, because they make a different name."""
    assert "a<U+0020>" == shown_path("a ", "/src")
    assert "  1 yes<U+000A>" in request_text(choice(choices=("yes\n", "no")))


# --- rules ---


@CASES
def test_no_rule_allows_it(text: str, code: str) -> None:
    """No allow rule, not even one for this run, allows a request with hidden characters; ask and deny rules apply."""
    allowing = Permissions(allow=("bash", "edit", "mcp__*", f"bash(={text})" if text.isprintable() else "bash(ls *)"))
    for field, request in by_field(text).items():
        if request.kind is not RequestKind.PERMISSION:
            continue
        policy = Policy(allowing, "/src")
        assert (field, None) == (field, policy.decide(request)[0])
        assert "" == policy.run_rule(request)
        policy.allow_in_run(request.tool_name if request.tool_name in ("bash", "edit") else "mcp__*")
        assert policy.decide(request)[0] is None
        tool = request.tool_name if request.tool_name in ("bash", "edit") else "mcp__*"
        assert (Verdict.DENY, tool) == Policy(Permissions(deny=(tool,), allow=(tool,)), "/src").decide(request)
        assert (None, tool) == Policy(Permissions(ask=(tool,), allow=(tool,)), "/src").decide(request)


def test_ends_of_lines_in_files_are_no_mark() -> None:
    """Rules allow an edit of a file with CR LF, but not a command with CR."""
    policy = Policy(Permissions(allow=("bash", "edit(**)")), "/src")
    edit = permission(tool_name="edit", command="", paths=("a",), diff="+++ a\n@@ -0,0 +1,2 @@\n+x\r\n+y\r\n")
    assert Verdict.ALLOW is policy.decide(edit)[0]
    assert "+x<U+000D>" in request_text(edit)
    assert policy.decide(permission(command="ls\r\n")) == (None, "")


# --- what agents ask ---


def pi_request(dialog: dict[str, object]) -> Request | None:
    question = pi_asked(dialog)
    return question and question.request


def pi(tool: str, **args: object) -> Request | None:
    """Return pi's request before a call."""
    about = json.dumps({"tool": tool, "args": args})
    return pi_request({"id": "1", "method": "input", "title": PERMISSION, "placeholder": about})


@CASES
def test_agents_hand_it_on_as_it_is(tmp_path: Path, text: str, code: str) -> None:
    """Each agent's request keeps the exact text of commands, paths, changes, arguments and names."""
    del code
    line = text.replace("\n", " ")

    def claude(tool: str, **args: object) -> Request | None:
        found = claude_asked("1", {"subtype": "can_use_tool", "tool_name": tool, "input": args})
        return found and found.request

    def codex(what: str, change: dict[str, Any] | None = None, **params: object) -> Request | None:
        found = codex_asked("1", what, params, change or {})
        return found and found.request

    def acp(
        title: str = "t", kind: str = "other", option: str = "Allow", server: bool = False, **call: object
    ) -> Request | None:
        (directory := tmp_path / "acp").mkdir(exist_ok=True)
        (directory / "prompt.md").write_text("Look.")
        stream = AcpStream(Start(make_meta(talk=True), str(directory)))
        told = {"toolCallId": "c", "title": title, "kind": kind, **call}
        options = [{"kind": "allow_once", "name": option, "optionId": "a"}]
        asks = {"id": 1, "method": "session/request_permission", "params": {"toolCall": told, "options": options}}
        schema = {"type": "object", "properties": {line: {"type": "string", "enum": [line], "description": text}}}
        form = {"mode": "form", "message": text, "requestedSchema": schema}
        asks = {"id": 1, "method": "elicitation/create", "params": form} if server else asks
        found = [event for event in stream.feed(json.dumps(asks).encode()) if isinstance(event, Request)]
        return found[0] if found else None

    said = {"type": "content", "content": {"type": "text", "text": text}}
    diff = {"type": "diff", "path": line, "oldText": "a", "newText": text}
    added = {"changes": [{"path": line, "kind": "add", "diff": text}]}
    asked: dict[str, Request | None] = {
        "pi bash": pi("bash", command=text),
        "pi write": pi("write", path=line, content=text),
        "pi edit": pi("edit", path="a", edits=[{"oldText": "x", "newText": text}]),
        "pi argument": pi("mcp__x", deep={"a": [text]}),
        "pi tool": pi(f"mcp__{line}"),
        "claude bash": claude("Bash", command=text),
        "claude write": claude("Write", file_path=line, content=text),
        "claude edit": claude("Edit", file_path="a", old_string="x", new_string=text),
        "claude argument": claude("mcp__x", deep={"a": [text]}),
        "claude tool": claude(f"mcp__{line}"),
        "pi choice": pi_request({"id": "1", "method": "select", "title": "t", "options": [line]}),
        "pi confirmation": pi_request({"id": "1", "method": "confirm", "title": "t", "message": text}),
        "claude question": claude("AskUserQuestion", questions=[{"question": text, "options": [{"label": "a"}]}]),
        "claude header": claude("AskUserQuestion", questions=[{"header": line, "question": "a"}, {"question": "b"}]),
        "claude label": claude("AskUserQuestion", questions=[{"question": "a", "options": [{"label": line}]}]),
        "claude meaning": claude(
            "AskUserQuestion",
            questions=[{"question": "a", "options": [{"label": "b", "description": text}]}, {"question": "c"}],
        ),
        "acp title": acp(text, rawInput={"a": 1}),
        "acp kind": acp(kind=line, rawInput={"a": 1}),
        "acp command": acp(kind="execute", rawInput={"command": text}),
        "acp words of a command": acp(kind="execute", rawInput={"command": ["bash", "-lc", text]}),
        "acp directory": acp(kind="execute", rawInput={"command": "ls", "cwd": line}),
        "acp argument": acp(rawInput={"deep": [{"a": text}]}),
        "acp path": acp(kind="edit", rawInput={"path": line}),
        "acp location": acp(kind="edit", rawInput={"a": 1}, locations=[{"path": line}]),
        "acp location of a command": acp(kind="execute", rawInput={"command": "ls"}, locations=[{"path": line}]),
        "acp content": acp(rawInput={"a": 1}, content=[said]),
        "acp link": acp(rawInput={"a": 1}, content=[{"type": "content", "content": {"type": "x", "uri": text}}]),
        "acp change": acp(kind="edit", content=[diff]),
        "acp option": acp(option=line, rawInput={"a": 1}),
        "acp form": acp(server=True),
        "codex question": codex(
            "item/tool/requestUserInput",
            questions=[{"question": "a", "options": [{"label": "b", "description": text}]}, {"question": "c"}],
        ),
        "codex command": codex("item/commandExecution/requestApproval", command=text),
        "codex host": codex("item/commandExecution/requestApproval", networkApprovalContext={"host": line}),
        "codex change": codex("item/fileChange/requestApproval", added),
        "codex permissions": codex("item/permissions/requestApproval", permissions={"fileSystem": {"read": [line]}}),
        "codex server": codex("mcpServer/elicitation/request", mode="form", serverName=line, message=text),
    }  # fmt: skip
    for name, request in asked.items():
        assert request is not None, name
        assert (name, True) == (name, is_marked(request))
        assert (name, True) == (name, PAYLOAD in request_text(request))


def test_a_text_that_looks_like_a_patch_is_shown_whole() -> None:
    """Content to write is shown line by line, even if it looks like a patch."""
    content = f"*** Begin Patch\n{PAYLOAD}\n--- {PAYLOAD}\n\\ {'x' * 80}{PAYLOAD}\n*** End Patch\n"
    request = pi("write", path="a", content=content)
    assert request and [f"+{line}" for line in content.splitlines()] == request.diff.split("\n")[2:]


# --- how much of it ---


def test_a_request_of_which_a_part_is_missing_can_only_be_denied(project_dir: Path) -> None:
    """An incomplete request shows how much is missing, and neither a rule nor a user can allow it."""
    kept = kept_request(permission(command="x" * (REQUEST_LIMIT + 1234)))
    assert 1260 == kept.missing
    assert "! 1,260 characters are missing: you can only deny this" in request_text(kept)
    assert (None, "") == Policy(Permissions(allow=("bash",)), "/src").decide(kept)
    whole = permission(command="x" * 300_000, paths=("a",), diff="y" * 300_000)
    assert whole == kept_request(whole)
    engine = open_engine(project_dir)
    with listening(engine.project, kept) as run, pytest.raises(UsageError, match="are missing: you can only deny this"):
        engine.reply(run.run_id, "q1", Verdict.ALLOW)


def many(number: int) -> list[str]:
    return [f"choice {each}" for each in range(number)]


def all_asked(number: int) -> dict[str, Request | None]:
    """Return each agent's request with this number of choices, fields or questions."""
    options = [{"label": label} for label in many(number)]
    schema = {"properties": {name: {"enum": many(number)} for name in many(2)}}
    fields = {"properties": {name: {} for name in many(number)}}
    questions = [{"id": name, "question": name} for name in many(number)]

    def claude(**arguments: object) -> Request | None:
        found = claude_asked("1", {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": arguments})
        return found and found.request

    def codex(**params: object) -> Request | None:
        found = codex_asked("1", "item/tool/requestUserInput", params, {})
        return found and found.request

    return {
        "pi": pi_request({"id": "1", "method": "select", "title": "t", "options": many(number)}),
        "claude": claude(questions=[{"question": "a", "options": options}]),
        "claude questions": claude(questions=questions),
        "codex": codex(questions=[{"question": "a", "options": options}]),
        "codex questions": codex(questions=questions),
        "form": form("1", {}, schema),
        "fields": form("1", {}, fields),
    }


def test_no_agent_leaves_a_choice_or_a_field_out() -> None:
    """A thousand choices or fields are all shown; a request with more than the limit can only be denied."""
    for agent, request in all_asked(1000).items():
        assert request is not None and not kept_request(request).missing, agent
        shown = request_text(kept_request(request))
        assert [] == [name for name in many(1000) if name not in shown], agent
    for agent, request in all_asked(10_001).items():
        assert request is not None
        kept = kept_request(request)
        assert (agent, True) == (agent, kept.missing > 0)
        assert "are missing: you can only deny this" in request_text(kept)


# --- the answer is bound to the request ---


def test_a_hash_is_of_all_that_is_decided_on() -> None:
    """Another text, run or request has another hash; the time of recording does not change it."""
    request = permission()
    hashes = {request_hash("r", one) for one in (*by_field("x").values(), *by_field("y").values())}
    assert 2 * len(by_field("x")) == len(hashes)
    assert request_hash("r", request) != request_hash("s", request)
    assert request_hash("r", request) == request_hash("r", replace(request, seq=4, ts="2026", display="x"))


def decide(entry: InboxEntry) -> Iterable[Event]:
    assert entry.verdict
    yield Decision(request=entry.request, verdict=entry.verdict, by=entry.by, message=entry.id)


@pytest.mark.processes
def test_allow_without_a_request_needs_a_terminal(project_dir: Path) -> None:
    """Allowing without a request hash needs a terminal; the printed exact command works without one."""
    project: Project = open_engine(project_dir).project
    with listening(project, permission()) as run:
        done = subdeck("reply", run.short_id, "allow", cwd=project_dir)
        assert (2, "") == (done.code, done.out)
        read = request_hash(run.run_id, permission())
        exact = f"subdeck reply {run.short_id} --request q1 --hash {read} allow"
        assert exact in done.err
        assert [] == run.take()
        with answering(run, decide):
            done = subdeck(*exact.split()[1:], cwd=project_dir)
        assert (0, f"{run.short_id} q1 allowed\n") == (done.code, done.out)


@pytest.mark.processes
def test_a_reply_to_another_request_is_refused(project_dir: Path) -> None:
    """A reply with the hash of another request is refused and sends nothing."""
    with listening(open_engine(project_dir).project, permission(command="rm -rf /")) as run:
        read = request_hash(run.run_id, permission())
        for said in ("allow", "deny"):
            done = subdeck("reply", run.short_id, "--request", "q1", "--hash", read, said, cwd=project_dir)
            assert (2, True) == (done.code, "is a different request" in done.err)
        assert [] == run.take()


@pytest.mark.processes
@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 2)])
def test_on_a_terminal_the_request_is_shown_and_asked_about(project_dir: Path, typed: bytes, code: int) -> None:
    """On a terminal the request is shown and confirmed; a refusal sends nothing."""
    with (
        listening(open_engine(project_dir).project, permission(command=HIDDEN["OSC"][0])) as run,
        answering(run, decide),
    ):
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(project_dir)
            os.execv(SUBDECK[0], [*SUBDECK, "reply", run.short_id, "allow"])
        shown = b""
        try:
            while b"[y/N]" not in shown:
                shown += os.read(terminal, 4096)
            os.write(terminal, typed)
            with suppress(OSError):  # the terminal ends with the command
                while piece := os.read(terminal, 4096):
                    shown += piece
        finally:
            os.close(terminal)
            _, status = os.waitpid(pid, 0)
        assert code == os.waitstatus_to_exitcode(status)
        assert b"<U+001B>]; touch PWNED" in shown


def test_the_records_have_both(project_dir: Path) -> None:
    """An event has the exact text and, if that is marked, its displayed form."""
    line = json.loads(encode_event(permission(command="ls \x1b]", display="x")))
    assert ("ls \x1b]", "x") == (line["command"], line["display"])
    document = request_document(permission(), "r", "/src")
    assert (False, request_text(permission(), "/src")) == (document.marked, document.display)
