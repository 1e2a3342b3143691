"""The offline agent's only change: its `edit` replaces a text in a file, as pi's edit tool does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.offline_agent._replacement import Replacement, ToolError, edited, replacement_of
from subdeck.core.run.edits import diff_of, diff_text
from subdeck.core.run.events import ToolResult

from .offline_reader import Reading, read, talking, write_tree

PRICES = "def total(items):\n    return sum(items)\n\n\ndef tax(price):\n    return price * 0.19\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "shop", {"src/prices.py": PRICES, "a file.txt": "one\ntwo\n"})


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ('replace "a" with "b" in f.py', ("f.py", "a", "b")),
        ("  Please replace 'a b' with '' in src/f.py.\n", ("src/f.py", "a b", "")),
        ("replace `x` with `y`\nin `my file`", ("my file", "x", "y")),
        (r'replace "say \"hi\"\n" with "C:\\temp\t\d" in f', ("f", 'say "hi"\n', "C:\\temp\t\\d")),
        ('replace "a\nb" with "it\'s" in a file.txt', ("a file.txt", "a\nb", "it's")),
        ('replace "" with "b" in f', ("f", "", "b")),
    ],
)
def test_one_form_of_task_is_read(task: str, expected: tuple[str, str, str]) -> None:
    """Texts are in quotes of one kind, with escapes; the file may be quoted."""
    assert Replacement(*expected) == replacement_of(task)


@pytest.mark.parametrize(
    "task",
    [
        "replace a with b in f.py",
        'replace "a" with "b"',
        'replace "a" with "b" in ',
        'replace "a" with "b" in f.py\nand run the tests',
        'Do not replace "a" with "b" in f.py',
        'replace "a\\" with "b" in f.py',
        'replace "' + '\\"' * 20_000,
    ],
)
def test_any_other_task_changes_nothing(task: str) -> None:
    """A task that does not fully match the form changes no file."""
    assert replacement_of(task) is None


@pytest.mark.processes
def test_a_text_is_replaced_and_the_rest_stays(shop: Path) -> None:
    """The file is changed in place, its mode and hard links stay, and the answer names the line and no model."""
    path, twin = shop / "src/prices.py", shop / "twin.py"
    path.chmod(0o750)
    os.link(path, twin)
    reading = read(shop, 'replace "0.19" with "VAT" in src/prices.py')
    assert PRICES.replace("0.19", "VAT") == path.read_text() == twin.read_text()
    assert 0o750 == stat.S_IMODE(path.stat().st_mode)
    edit = {"path": "src/prices.py", "edits": [{"oldText": "0.19", "newText": "VAT"}]}
    assert [("edit", edit)] == reading.calls
    assert [("edit", False, "Successfully replaced 1 block(s) in src/prices.py.")] == reading.results
    first, _, said = reading.answer.split("\n")
    assert "No model was used: this is the built-in offline agent (offline/reader)." == first
    assert "Replaced `0.19` with `VAT` at `src/prices.py:6`." == said


def diff(reading: Reading) -> str:
    stream = PiStream()
    events = [event for line in reading.stdout.split(b"\n") if line for event in stream.feed(line)]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    return diff_text(diff_of(result))


@pytest.mark.processes
def test_its_diff_is_that_of_pis_edit(shop: Path) -> None:
    """The result has newer pi's patch and older pi's numbered lines, with the lines around the change."""
    reading = read(shop, 'replace "two" with "zwei\\ndrei" in a file.txt')
    details = next(event["result"]["details"] for event in reading.events if event["type"] == "tool_execution_end")
    assert {
        "diff": " 1 one\n-2 two\n+2 zwei\n+3 drei",
        "patch": "--- a file.txt\n+++ a file.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+zwei\n+drei\n",
        "firstChangedLine": 2,
    } == details
    assert "a file.txt\n one\n-two\n+zwei\n+drei" == diff(reading)


@pytest.mark.parametrize(
    ("before", "old", "new", "after", "hunk"),
    [
        (b"a\nb\n", "a\n", "", b"b\n", "@@ -1,2 +1,1 @@\n-a\n b\n"),
        (b"a\n", "a\n", "", b"", "@@ -1,1 +0,0 @@\n-a\n"),
        (b"a\nb\nc\n", "a\nb\n", "a\nB\n", b"a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n", "@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y\n"),
        (b"\xff\na", "a", "b", b"\xff\nb", "@@ -1,2 +1,2 @@\n \ufffd\n-a\n+b\n"),
        (b"a", "a", "a\n", b"a\n", "@@ -1,1 +1,1 @@\n-a\n+a\n"),
    ],
)
def test_bytes_and_newlines_stay(before: bytes, old: str, new: str, after: bytes, hunk: str) -> None:
    """Bytes that are not UTF-8 stay unchanged, and new lines get the file's line ends."""
    changed = edited(before, Replacement("f", old, new))
    assert (after, f"--- f\n+++ f\n{hunk}") == (changed.data, changed.details["patch"])


@pytest.mark.parametrize(
    ("data", "old", "new", "fault"),
    [
        (b"abc", "x", "y", "f: does not contain this text"),
        (b"a\nb a\n", "a", "y", "f: contains this text 2 times (lines 1, 2); quote more of the text around it"),
        (b"a" * 99, "a" * 9, "y", "f: contains this text more than 5 times (line 1); quote more of the text around it"),
        (b"abc", "", "y", "f: the text to replace is empty"),
        (b"abc", "b", "b", "f: the new text equals the old one"),
        (b"a\0b", "a", "y", "f: a binary file"),
    ],
)
def test_what_is_not_exactly_one_change_is_refused(data: bytes, old: str, new: str, fault: str) -> None:
    """The text must occur once, in a text file; the error has a way out."""
    with pytest.raises(ToolError) as refusal:
        edited(data, Replacement("f", old, new))
    assert fault == str(refusal.value)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("gone.txt", "gone.txt: no such file or directory"),
        ("src", "src: not a regular file of at most 1024 KB"),
        ("pipe", "pipe: not a regular file of at most 1024 KB"),
        ("huge.txt", "huge.txt: not a regular file of at most 1024 KB"),
        ("link.txt", "link.txt: a link; name the file that it leads to"),
        ("../outside.txt", "../outside.txt is outside the working directory"),
        ("away/outside.txt", "away/outside.txt is outside the working directory"),
    ],
)
def test_only_a_regular_file_below_the_directory_is_changed(shop: Path, file: str, fault: str) -> None:
    """Links, pipes, directories and outside files stay untouched; the answer has the reason."""
    outside = shop.parent / "outside.txt"
    outside.write_text("two\n")
    os.mkfifo(shop / "pipe")
    (shop / "huge.txt").write_bytes(b"two" + b"\n" * 1024 * 1024)
    (shop / "link.txt").symlink_to("a file.txt")
    (shop / "away").symlink_to(shop.parent)
    reading = read(shop, f'replace "two" with "zwei" in {file}')
    assert [("edit", True, fault)] == reading.results
    assert f"Nothing was changed: `{fault}`." == reading.answer.split("\n")[-1]
    assert "one\ntwo\n" == (shop / "a file.txt").read_text()
    assert "two\n" == outside.read_text()


@pytest.mark.processes
@pytest.mark.parametrize("flags", [("--no-tools",), ("--tools", "read,grep,find,ls")])
def test_without_its_tool_nothing_is_changed(shop: Path, flags: tuple[str, ...]) -> None:
    """Without the tool `edit` the agent makes no call, and the answer has the reason."""
    reading = read(shop, 'replace "two" with "zwei" in a file.txt', *flags)
    assert [] == reading.calls
    assert "Nothing was changed: `the tool edit is not allowed here`." in reading.answer
    assert "one\ntwo\n" == (shop / "a file.txt").read_text()


@pytest.mark.processes
def test_a_task_for_another_change_learns_the_form(shop: Path) -> None:
    """A task for another change is answered with the correct form."""
    assert '`replace "A" with "B" in FILE`: nothing was changed.' in read(shop, "fix the tax").answer


@pytest.mark.processes
def test_a_failed_change_is_handed_over_as_an_error(shop: Path) -> None:
    """In a structured result a failed change is an error."""
    reading = read(shop, 'replace "x" with "y" in a file.txt', "-e", "finalize.ts")
    name, args = reading.calls[-1]
    assert ("subagent_finalize", "ERROR") == (name, args["status"])
    assert "a file.txt: does not contain this text" == args["error"]


@pytest.mark.processes
def test_it_asks_before_it_changes_anything(shop: Path) -> None:
    """In rpc mode the call waits for permission, and is not made without it; a later message may request it again."""
    task = 'replace "two" with "zwei" in a file.txt'
    with talking(shop, "-e", "ask.ts", SUBDECK_ASKED_TOOLS="edit") as (say, hear):
        say(type="prompt", id="1", message=task)
        dialog = hear("extension_ui_request")
        assert '"oldText":"two"' in dialog["placeholder"]
        assert "one\ntwo\n" == (shop / "a file.txt").read_text()
        say(type="extension_ui_response", id=dialog["id"], value="deny: not now")
        assert "Denied: not now" == hear("tool_execution_end")["result"]["content"][0]["text"]
        hear("agent_settled")
        say(type="prompt", id="2", message=task)
        say(type="extension_ui_response", id=hear("extension_ui_request")["id"], value="allow")
        assert "patch" in hear("tool_execution_end")["result"]["details"]
    assert "one\nzwei\n" == (shop / "a file.txt").read_text()
