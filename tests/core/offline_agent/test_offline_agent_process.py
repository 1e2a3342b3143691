"""The offline agent as a process: pi's flags, stream, session file, exit codes and signals."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.offline_agent._answer import FILES_READ

from .offline_reader import COMMAND, SHOP, environment, read, talking, write_tree

pytestmark = pytest.mark.processes

TASK = "Where are requests authenticated?"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "shop", SHOP)


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def roles(path: Path) -> list[str]:
    return [entry["message"]["role"] for entry in entries(path) if entry["type"] == "message"]


def test_stream_has_pis_order(shop: Path) -> None:
    """The stream has a header, a user message, turns with calls and results, and a successful end."""
    reading = read(shop, TASK)
    types = [name for name in reading.types if name != "message_update"]
    assert ["session", "agent_start", "turn_start", "message_start", "message_end"] == types[:5]
    assert ["message_start", "message_end", "turn_end", "agent_end", "agent_settled"] == types[-5:]
    assert types.count("tool_execution_start") == types.count("tool_execution_end") == len(reading.calls)
    assert types.count("turn_start") == types.count("turn_end") == len(reading.said)
    assert reading.events[-2]["willRetry"] is False
    assert {"type": "agent_settled", "aborted": False} == reading.events[-1]


def test_assistant_messages_cost_nothing_and_name_the_reader(shop: Path) -> None:
    """Usage is zero, the model is offline/reader, and only the last message stops."""
    messages = [
        event["message"]
        for event in read(shop, TASK, "--model", "anthropic/claude-haiku-4-5").events
        if event["type"] == "message_end" and event["message"]["role"] == "assistant"
    ]
    assert {("offline", "reader")} == {(message["provider"], message["model"]) for message in messages}
    assert {0} == {message["usage"]["totalTokens"] for message in messages}
    assert ["toolUse"] * (len(messages) - 1) + ["stop"] == [message["stopReason"] for message in messages]


def test_text_comes_in_small_pieces(shop: Path) -> None:
    """A message's deltas are short, come one per event, and add up to its text."""
    reading = read(shop, TASK)
    updates = [event["assistantMessageEvent"] for event in reading.events if event["type"] == "message_update"]
    deltas = [update["delta"] for update in updates if update["type"] == "text_delta"]
    assert max(map(len, deltas)) <= 24
    assert "".join(reading.said) == "".join(deltas)


@pytest.mark.parametrize("flags", [(), ("--thinking", "high", "-nc", "-e", "/no/such/extension.ts")])
def test_pis_flags_are_accepted(shop: Path, flags: tuple[str, ...]) -> None:
    """Flags that mean nothing without a model are accepted and ignored."""
    prompts = ("--append-system-prompt", "You are a scout.", "--system-prompt", "/no/such/file", "--model", "a/b:high")
    reading = read(shop, TASK, *flags, *prompts)
    assert (0, "") == (reading.code, reading.stderr)
    assert "src/auth.py:5" in reading.answer


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--bogus",), 2, "error: unrecognized arguments: --bogus"),
        (("--model",), 2, "error: argument --model: expected one argument"),
        (("--mode", "text"), 2, "error: argument --mode: invalid choice: 'text'"),
        (("a message",), 2, "error: unrecognized arguments: a message"),
        (("--session", "README.md/x.jsonl"), 1, "Error: cannot open session README.md/x.jsonl: "),
    ],
)
def test_a_wrong_command_line_fails_before_the_stream(
    shop: Path, flags: tuple[str, ...], code: int, message: str
) -> None:
    """A wrong command line gives an exit code and a reason on stderr, and nothing on stdout."""
    reading = read(shop, TASK, *flags)
    assert (code, b"") == (reading.code, reading.stdout)
    assert message in reading.stderr


def test_json_mode_must_be_asked_for(shop: Path) -> None:
    """Without `--mode` the agent fails: pi's default mode is text, which the agent does not have."""
    reading = read(shop, TASK, mode=())
    assert 2 == reading.code
    assert "the following arguments are required: --mode" in reading.stderr


def test_help_needs_no_prompt(shop: Path) -> None:
    """The help needs no prompt, and names the flags that have an effect."""
    reading = read(shop, "", "--help", mode=())
    assert 0 == reading.code
    assert b"--no-tools" in reading.stdout


@pytest.mark.parametrize("prompt", ["", " \n\n "])
def test_no_prompt_gives_the_header_only(shop: Path, prompt: str) -> None:
    """An empty prompt gives exit code 0 and one session line, as in pi."""
    reading = read(shop, prompt)
    assert (0, ["session"]) == (reading.code, reading.types)


@pytest.mark.parametrize(
    "prompt",
    [
        "- where is check_token?",
        "@README.md and check_token",
        "$(rm -rf ~) `id` check_token",
        "check_token %s {0} [bold]",
    ],
)
def test_any_first_character_is_text_on_stdin(shop: Path, prompt: str) -> None:
    """A prompt on stdin is never read as a flag or a file argument, and is stored unchanged."""
    reading = read(shop, prompt)
    assert 0 == reading.code
    user = next(event["message"] for event in reading.events if event["type"] == "message_end")
    assert prompt == user["content"][0]["text"]
    assert "src/auth.py:4" in reading.answer


@pytest.mark.parametrize(
    "prompt",
    [
        b"\xff\xfe token \x00 \x1b[31m",
        "token\u2028 \u202e token".encode(),
        b"token " * 60_000,
        b"<file " * 50_000,
        b"a_" * 100_000,
        b"*a" * 90 + b" token",
        b"a/" * 5_000,
    ],
)
def test_hostile_prompts_get_an_answer(shop: Path, prompt: bytes) -> None:
    """No prompt breaks the stream, emits control characters, or takes forever."""
    reading = read(shop, prompt)
    assert (0, "") == (reading.code, reading.stderr)
    assert "agent_settled" == reading.types[-1]
    assert b"\x1b" not in reading.stdout
    assert reading.answer.startswith("No model was used")
    assert max(map(len, reading.said)) < 4_000


def test_session_is_written_in_pis_form(shop: Path, tmp_path: Path) -> None:
    """A session has a header, then entries chained to their parents; missing directories are made."""
    path = tmp_path / "deep" / "er" / "child-session.jsonl"
    reading = read(shop, TASK, "--session", str(path))
    header, *rest = entries(path)
    assert ("session", 3, str(shop)) == (header["type"], header["version"], header["cwd"])
    assert reading.events[0]["id"] == header["id"]
    assert [None, *(entry["id"] for entry in rest[:-1])] == [entry["parentId"] for entry in rest]
    assert ["user", "assistant"] == [roles(path)[0], roles(path)[-1]]
    assert 0o600 == path.stat().st_mode & 0o777


def test_session_goes_on(shop: Path, tmp_path: Path) -> None:
    """A continued session keeps id and history, adds the new turn, and streams only that turn."""
    path = tmp_path / "s.jsonl"
    first = read(shop, TASK, "--session", str(path))
    before = path.read_bytes()
    second = read(shop, "Where is total?", "--session", str(path))
    assert first.events[0]["id"] == second.events[0]["id"]
    assert path.read_bytes().startswith(before)
    assert 2 == roles(path).count("user")
    everything = entries(path)
    assert len({entry["id"] for entry in everything}) == len(everything)
    assert everything[1:-1] == [
        entry for entry in everything[1:] if entry["id"] in {e.get("parentId") for e in everything}
    ]
    assert "This session holds 1 earlier task" in second.answer
    assert "earlier task" not in first.answer
    assert TASK not in second.stdout.decode()


def test_a_torn_last_line_costs_that_line_only(shop: Path, tmp_path: Path) -> None:
    """A half-written last line is skipped, and the next entry starts on its own line."""
    path = tmp_path / "s.jsonl"
    read(shop, TASK, "--session", str(path))
    path.write_bytes(path.read_bytes()[:-40])
    assert 0 == read(shop, "Where is total?", "--session", str(path)).code
    torn = [line for line in path.read_bytes().strip().split(b"\n") if not line.endswith(b"}")]
    assert 1 == len(torn)
    path.write_bytes(path.read_bytes().replace(torn[0] + b"\n", b""))
    assert ["user", "user"] == [role for role in roles(path) if role == "user"]


@pytest.mark.parametrize("content", [b"hello\n", b'{"type":"message"}\n', b"[1]\n", b"\x00\xff"])
def test_a_file_that_is_no_session_is_left_alone(shop: Path, tmp_path: Path, content: bytes) -> None:
    """A file that is not a session is an error, and stays unchanged."""
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    reading = read(shop, TASK, "--session", str(path))
    assert (1, b"") == (reading.code, reading.stdout)
    assert "not a valid pi session" in reading.stderr
    assert content == path.read_bytes()


def test_nothing_is_written_without_a_session(shop: Path) -> None:
    """`--no-session`, and an empty prompt, leave no file anywhere."""
    before = sorted(shop.parent.rglob("*"))
    read(shop, TASK, "--no-session", "--session", str(shop.parent / "s.jsonl"))
    read(shop, "", "--session", str(shop.parent / "s.jsonl"))
    assert before == sorted(shop.parent.rglob("*"))


def held_up(cwd: Path) -> subprocess.Popen[bytes]:
    """Start a run whose output exceeds a pipe: it stops in the middle of a line until somebody reads."""
    prompt = cwd.parent / "prompt.md"
    prompt.write_bytes(b"token " * 60_000)
    with prompt.open("rb") as stdin:
        child = subprocess.Popen(
            [*COMMAND, "--mode", "json", "--no-session"],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=environment(),
        )
    assert child.stdout is not None
    assert b'{"type":"session"' == child.stdout.read(17)
    return child


@pytest.mark.parametrize("pace", ["soon", ""])
def test_a_pace_that_is_not_a_number_is_ignored(shop: Path, pace: str) -> None:
    """An invalid pace is ignored, and the agent answers."""
    argv = (*COMMAND, "--mode", "json", "--no-session")
    env = environment(SUBDECK_OFFLINE_PACE=pace)
    ended = subprocess.run(argv, input=b"src", cwd=shop, env=env, capture_output=True, timeout=60)
    assert (0, b"") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -2)])
def test_a_signal_ends_the_stream_where_it_is(shop: Path, number: signal.Signals, code: int) -> None:
    """A signal ends the stream without closing events, and gives the signal's exit code, as in pi."""
    child = held_up(shop)
    child.send_signal(number)
    rest, complaint = child.communicate(timeout=30)
    assert (code, b"") == (child.returncode, complaint)
    assert b"message_end" not in rest


def test_a_reader_that_goes_away_ends_it(shop: Path) -> None:
    """A closed pipe gives exit code 1 and one line on stderr."""
    child = held_up(shop)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert b"Error: write EPIPE\n" == child.stderr.read()
    assert 1 == child.wait(timeout=30)
    child.stderr.close()


def test_it_starts_with_little(shop: Path) -> None:
    """For a quick start the agent loads only itself and plain text helpers of subdeck, and no slow modules."""
    code = "import sys, subdeck.core.offline_agent.__main__; print(*sys.modules)"
    loaded = subprocess.run([*COMMAND[:3], "-c", code], capture_output=True, text=True, cwd=shop).stdout.split()
    ours = {name for name in loaded if name.startswith("subdeck.") and "offline_agent" not in name}
    assert {"subdeck.core", "subdeck.core.text", "subdeck.core.text.plain"} == ours
    assert {"msgspec", "asyncio", "subprocess"}.isdisjoint(loaded)


def test_it_asks_leave_where_it_is_told_to(shop: Path) -> None:
    """With subdeck's extension each call of a listed tool waits for permission; a denial has its reason."""
    with talking(shop, "-e", "/x/ask.ts", SUBDECK_ASKED_TOOLS="re*") as (say, hear):
        say(type="prompt", id="p", message=TASK)
        asked = hear("extension_ui_request")
        about = json.loads(asked["placeholder"])
        assert ("input", "subdeck: may this tool be called?", "read") == (
            asked["method"],
            asked["title"],
            about["tool"],
        )
        say(type="extension_ui_response", id=asked["id"], value="allow")
        allowed = hear("tool_execution_end")
        assert (about["id"], False) == (allowed["toolCallId"], allowed["isError"])
        denied = hear("extension_ui_request")
        say(type="extension_ui_response", id=denied["id"], value="deny: not that one")
        assert "Denied: not that one" == hear("tool_execution_end")["result"]["content"][0]["text"]
        for _ in range(FILES_READ - 2):
            say(type="extension_ui_response", id=hear("extension_ui_request")["id"], cancelled=True)
            assert "Denied." == hear("tool_execution_end")["result"]["content"][0]["text"]
        hear("agent_settled")


def test_commands_are_answered_as_pi_answers_them(shop: Path) -> None:
    """An unknown command gets an error; a prompt during a turn is refused unless it says how to queue it."""
    with talking(shop) as (say, hear):
        say(type="get_state", id="s")
        assert not hear("response")["data"]["isStreaming"]
        say(type="dance", id="d")
        assert "Unknown command: dance" == hear("response")["error"]
        say(type="steer", id="q", message="later")
        assert "queued" == hear("response")["data"]["disposition"]
        say(type="clear_queue", id="c")
        assert ["later"] == hear("response")["data"]["steering"]
        say(type="prompt", id="p1", message=f"{TASK} Ask me which file.")
        assert hear("response")["success"]
        hear("extension_ui_request")
        say(type="prompt", id="p2", message=TASK)
        assert not hear("response")["success"]
        say(type="abort", id="a")
        assert hear("agent_settled")["aborted"]
        assert "a" == hear("response")["id"]
