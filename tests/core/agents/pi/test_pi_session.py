"""Reading pi's session files: the active branch, compactions, and invalid files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.history import Message, Text, Thinking, ToolOutput, ToolUse
from subdeck.core.agents.pi import session as pi_branch
from subdeck.core.agents.pi.session import SessionFileError, open_history
from subdeck.core.system import line_file as backward

from ....replay import RECORDINGS
from .session_file import HEADER, SessionFile, line


@pytest.fixture
def session(tmp_path: Path) -> SessionFile:
    return SessionFile(tmp_path / "session.jsonl")


def turns(path: Path, recent_turns: int = 6) -> list[str]:
    """Return each turn as the texts of its messages, joined."""
    with open_history(str(path), recent_turns) as conversation:
        return [" ".join(text_of(message) for message in turn.messages) for turn in conversation.turns]


def text_of(message: Message) -> str:
    return "+".join(block.name if isinstance(block, ToolUse) else block.text for block in message.blocks)


def summary(path: Path, recent_turns: int = 6) -> str:
    with open_history(str(path), recent_turns) as conversation:
        return conversation.summary


def test_a_conversation_in_turns(session: SessionFile) -> None:
    """A turn is a user's message and everything up to the next one."""
    session.add("model_change", provider="fake", modelId="test")
    session.user("Fix it")
    session.assistant("I look.", tool="read")
    session.output("code")
    session.assistant("Fixed.")
    session.turn("Sure")

    assert ["Fix it I look.+read code Fixed.", "Sure? Sure!"] == turns(session.path)


def test_what_messages_hold(session: SessionFile) -> None:
    """Text, thinking, tool calls with arguments and tool output with its error are distinguished."""
    session.user("Fix it")
    session.assistant("I look.", thinking="Hm.", tool="read")
    session.output("No such file", is_error=True)

    with open_history(str(session.path), 6) as conversation:
        messages = list(conversation.turns[0].messages)

    assert [
        Message("user", (Text("Fix it"),)),
        Message("assistant", (Thinking("Hm."), Text("I look."), ToolUse("read", {"path": "src/app.py"}))),
        Message("tool", (ToolOutput("read", "No such file", is_error=True),)),
    ] == messages


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"type": "message", "message": {"role": "user", "content": "plain"}}, [Message("user", (Text("plain"),))]),
        (
            {"type": "message", "message": {"role": "user", "content": [{"type": "image", "data": "AAAA"}]}},
            [Message("user", (Text("[image]"),))],
        ),
        (
            {"type": "custom_message", "customType": "lab", "content": "told", "display": True},
            [Message("note", (Text("told"),))],
        ),
        ({"type": "message", "message": {"role": "custom", "content": "told"}}, [Message("note", (Text("told"),))]),
        (
            {"type": "branch_summary", "fromId": "x", "summary": "tried A"},
            [Message("branch summary", (Text("tried A"),))],
        ),
        (
            {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 2}},
            [Message("user", (Text("Ran `ls`"), ToolOutput("bash", "a", is_error=True)))],
        ),
        (
            {"type": "message", "message": {"role": "bashExecution", "command": "x", "excludeFromContext": True}},
            [Message("user", ())],
        ),
        ({"type": "message", "message": {"role": "system", "content": "You are"}}, []),
        ({"type": "custom", "customType": "lab", "data": {"role": "user"}}, []),
        ({"type": "label", "targetId": "x", "label": "here"}, []),
        ({"type": "from_the_future", "message": {"role": "user", "content": "x"}}, []),
    ],
)
def test_kinds_of_entries(session: SessionFile, entry: dict[str, Any], expected: list[Message]) -> None:
    """Messages that pi shows its model are kept with their role, and other entries are skipped."""
    session.add(**{"kind": entry.pop("type"), **entry})

    with open_history(str(session.path), 6) as conversation:
        assert expected == [message for turn in conversation.turns for message in turn.messages]


@pytest.mark.parametrize(("recent_turns", "expected"), [(1, ["c? c!"]), (2, ["b? b!", "c? c!"]), (0, [])])
def test_only_the_last_turns(session: SessionFile, recent_turns: int, expected: list[str]) -> None:
    """At most the requested number of turns is kept, each with its question."""
    for name in "abc":
        session.turn(name)

    assert expected == turns(session.path, recent_turns)


def test_no_turns_at_all(session: SessionFile) -> None:
    """With 0 turns, even an unanswered question is dropped."""
    session.user("a?")

    assert [] == turns(session.path, 0)


def test_questions_without_an_answer(session: SessionFile) -> None:
    """Messages of the user without an answer belong to the same turn as the next one."""
    session.turn("a")
    session.user("b?")
    session.user("and c?")
    session.assistant("b and c!")

    assert ["b? and c? b and c!"] == turns(session.path, 1)


def test_the_active_branch(session: SessionFile) -> None:
    """The tree is followed from its last line to its root, without other branches."""
    session.turn("root")
    fork = session.leaf
    session.turn("abandoned")
    session.leaf = fork
    session.turn("active")

    assert ["root? root!", "active? active!"] == turns(session.path)


def test_entries_whose_keys_are_in_another_order(session: SessionFile) -> None:
    """The branch includes entries written in another form than pi's."""
    session.turn("a")
    session.write(b' { "data":{}, "parentId":"00000002", "id":"own", "type":"custom" }\n')
    session.leaf = "own"
    session.write(line({"message": {"content": "b?", "role": "user"}, "id": "u", "parentId": "own", "type": "message"}))

    assert ["a? a!", "b?"] == turns(session.path)


def test_a_compacted_session(session: SessionFile) -> None:
    """The summary comes first, then the entries that the compaction kept, then the later ones."""
    session.turn("replaced")
    kept = session.user("kept?")
    session.assistant("kept!")
    session.add("compaction", summary="They talked.", firstKeptEntryId=kept, tokensBefore=9)
    session.turn("later")

    assert "They talked." == summary(session.path)
    assert ["kept? kept!", "later? later!"] == turns(session.path)


@pytest.mark.parametrize("first_kept", [None, "", "nowhere"])
def test_a_compaction_that_keeps_nothing(session: SessionFile, first_kept: str | None) -> None:
    """Without an entry to keep, the compaction replaces everything before it."""
    session.turn("replaced")
    session.add("compaction", summary="They talked.", firstKeptEntryId=first_kept)
    session.turn("later")

    assert ["later? later!"] == turns(session.path)


def test_the_latest_compaction_counts(session: SessionFile) -> None:
    """The later summary includes the earlier one."""
    session.turn("a")
    session.add("compaction", summary="first", firstKeptEntryId=None)
    session.turn("b")
    session.add("compaction", summary="second", firstKeptEntryId=None)
    session.turn("c")

    assert ("second", ["c? c!"]) == (summary(session.path), turns(session.path))


def test_a_compaction_that_keeps_more_than_the_one_before(session: SessionFile) -> None:
    """Only the latest compaction decides where the conversation starts."""
    kept = session.user("kept?")
    session.assistant("kept!")
    session.add("compaction", summary="first", firstKeptEntryId=None)
    session.turn("b")
    session.add("compaction", summary="second", firstKeptEntryId=kept)

    assert ("second", ["kept? kept!", "b? b!"]) == (summary(session.path), turns(session.path))


def test_a_compaction_far_back(session: SessionFile) -> None:
    """The summary is found even if more turns follow it than are kept."""
    session.turn("replaced")
    session.add("compaction", summary="They talked.", firstKeptEntryId=None)
    for name in "abc":
        session.turn(name)

    assert ("They talked.", ["c? c!"]) == (summary(session.path, 1), turns(session.path, 1))


def test_a_compaction_on_another_branch(session: SessionFile) -> None:
    """A compaction on another branch does not count."""
    session.turn("root")
    fork = session.leaf
    session.add("compaction", summary="elsewhere", firstKeptEntryId=None)
    session.leaf = fork
    session.turn("active")

    assert ("", ["active? active!"]) == (summary(session.path, 1), turns(session.path, 1))


def test_edits_of_the_context(session: SessionFile) -> None:
    """Removed messages are gone, edited ones have their new content, and the latest edit counts."""
    question = session.user("secret")
    gone = session.assistant("500")
    session.add("context_edit", targetId=gone, replacement=None)
    session.add("context_edit", targetId=question, replacement={"content": "first edit"})
    session.add("context_edit", targetId=question, replacement={"content": "harmless"})
    session.assistant("ok")

    assert ["harmless ok"] == turns(session.path)


@pytest.mark.parametrize(
    "torn",
    [
        b'{"type":"message","id":"x","parentId":"00000002","mess',
        b'{"type":"message","id":"x","parentId":"00000002","message":{"role":"user","content":[{"ty',
        b'{"type',
        b"\x00\xff",
        b"\n\n",
        line(HEADER).strip(),
    ],
)
@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_a_torn_last_line(session: SessionFile, torn: bytes, newline: bytes) -> None:
    """A line that a killed pi wrote only in part is skipped, and so is a repeated header."""
    session.turn("a")
    session.write(torn + newline)

    assert ["a? a!"] == turns(session.path)


def test_a_broken_line_in_the_middle(session: SessionFile) -> None:
    """Invalid lines do not end the branch."""
    session.turn("a")
    session.write(b"garbage\n[1]\nnull\n" + line(HEADER))
    session.turn("b")

    assert ["a? a!", "b? b!"] == turns(session.path)


def test_half_of_a_surrogate_pair(session: SessionFile) -> None:
    """Half a character, as JavaScript may write it, is read as a replacement character."""
    session.user("a?")
    session.write(
        rb'{"type":"message","id":"s","parentId":"00000001","message":{"role":"assistant",'
        rb'"content":[{"type":"text","text":"\ud83d"}]}}' + b"\n"
    )

    assert ["a? �"] == turns(session.path)


def test_a_file_of_version_1(tmp_path: Path) -> None:
    """Entries without ids are read in order."""
    session = SessionFile(tmp_path / "old.jsonl", {"type": "session", "id": "old", "timestamp": "", "cwd": "/"})
    for role, text in (("user", "a?"), ("assistant", "a!"), ("user", "b?")):
        session.write(line({"type": "message", "timestamp": "", "message": {"role": role, "content": text}}))

    assert ["a? a!", "b?"] == turns(session.path)


def test_a_session_that_just_began(session: SessionFile) -> None:
    """A file with only a header is a conversation without turns."""
    assert [] == turns(session.path)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("change", "anthropic/claude-haiku-4-5"),
        ("answer", "fake/org/model-x"),
    ],
)
def test_the_model_in_use(session: SessionFile, last: str, expected: str) -> None:
    """The parent's model comes from its last answer, or from a later change."""
    session.user("a?")
    session.assistant("a!", model="fake/org/model-x")
    if last == "change":
        session.add("model_change", provider="anthropic", modelId="claude-haiku-4-5")

    with open_history(str(session.path), 6) as conversation:
        assert expected == conversation.model


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ("0.73.1/c_edit_write", "Do the task. edit Successfully replaced 1 block(s) in src/app.py. write"),
        ("1.5.2/c_edit_write", "Do the task. edit Successfully replaced 1 block(s) in src/app.py. write"),
        (
            "1.5.2/g_thinking",
            "Do the task. Let me think about this carefully. First, look at the file.+I will read.+read",
        ),
        ("1.5.2/f_429_always_fast_settings", "Do the task."),
    ],
)
def test_recorded_sessions(recording: str, expected: str) -> None:
    """The files that pi wrote have one turn, without the failed tries that pi dropped from its context."""
    (turn,) = turns(RECORDINGS / recording / "session.jsonl")

    assert turn.startswith(expected)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"\n\n", "not a pi session file"),
        (b"garbage\n", "not a pi session file"),
        (bytes(range(256)) * 50, "not a pi session file"),
        (
            line({"type": "user", "sessionId": "5f", "uuid": "1", "message": {"role": "user"}}),
            "not a pi session file",
        ),
        (line({"type": "session_meta", "payload": {"id": "0199"}}), "not a pi session file"),
        (line({"type": "session", "version": "3", "id": "x"}), "not a pi session file"),
        (line({"type": "session"}), "not a pi session file"),
        (b'{"type":"session","id":"x"', "not a pi session file"),
        (b"[" * 100_000, "not a pi session file"),
    ],
)
def test_files_that_are_no_session(tmp_path: Path, content: bytes, what: str) -> None:
    """Garbage and other tools' files are refused, with the file's name and the expected kind of file."""
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)

    with pytest.raises(SessionFileError, match=what) as caught:
        turns(path)

    assert str(path) == caught.value.where
    assert ".jsonl file of a pi session" in caught.value.hint


def test_a_missing_file(tmp_path: Path) -> None:
    """The error names the missing file."""
    with pytest.raises(SessionFileError, match="does not exist") as caught:
        turns(tmp_path / "nowhere.jsonl")

    assert str(tmp_path / "nowhere.jsonl") == caught.value.where


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_what_is_not_a_file(tmp_path: Path, kind: str) -> None:
    """A directory or a pipe is refused at once, without waiting for a writer."""
    path = tmp_path / kind
    path.mkdir() if kind == "directory" else os.mkfifo(path)

    with pytest.raises(SessionFileError, match="not a file"):
        turns(path)


def test_a_name_that_no_file_can_have() -> None:
    """A NUL in the name is a regular error."""
    with pytest.raises(SessionFileError, match="cannot read the parent session"), open_history("a\0b", 6):
        pass


def test_a_big_session_is_not_held(session: SessionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last turns of a large session are decoded, even if lines cross chunks."""
    for number in range(100):
        session.user(f"{number}?")
        session.assistant(tool="read")
        session.output(f"{number}:" + "é" * 25_000)
    decoded = 0

    def counting(*arguments: Any) -> dict[str, Any] | None:
        nonlocal decoded
        decoded += 1
        return fields_of(*arguments)

    fields_of = pi_branch.fields_of
    monkeypatch.setattr("subdeck.core.agents.pi.session.fields_of", counting)
    monkeypatch.setattr(backward, "CHUNK", 70_001)

    assert session.path.stat().st_size > 5_000_000
    assert [f"{number}? read {number}:" + "é" * 25_000 for number in (98, 99)] == turns(session.path, 2)
    assert 8 == decoded  # six messages, one of them for the model, and the last line to check that it is complete


def test_a_line_too_long_to_decode(session: SessionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is too long is replaced by its size, and the branch continues."""
    monkeypatch.setattr(pi_branch, "LINE_LIMIT", 1024 * 1024)
    monkeypatch.setattr("subdeck.core.agents.pi.session.LINE_LIMIT", 1024 * 1024)
    session.user("a?")
    session.output("x" * 3 * 1024 * 1024)

    assert ["a? […message of 3 MB omitted…]"] == turns(session.path)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 4096])
def test_lines_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """With any chunk size, every line is found once, with its position and length."""
    monkeypatch.setattr(backward, "BLOCK", chunk)
    content = b"first\n\nsecond line\n" + b"y" * 600 + b"\nlast"
    path = tmp_path / "lines"
    path.write_bytes(content)

    with path.open("rb") as file:
        met = list(backward.lines_backward(file.fileno(), len(content)))

    assert [b"last", b"y" * 600, b"second line", b"first"] == [
        content[line.offset : line.offset + line.length] for line in met
    ]
    assert [b"last", b"y" * 512, b"second line", b"first"] == [line.head for line in met]


def test_a_session_whose_entries_are_numbers(session: SessionFile) -> None:
    """Entries with fields of the wrong type are skipped."""
    session.turn("a")
    session.write(json.dumps({"type": 1, "id": 2, "parentId": 3}).encode() + b"\n")

    assert ["a? a!"] == turns(session.path)
