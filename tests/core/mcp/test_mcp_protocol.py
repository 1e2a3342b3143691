"""Answers of the MCP server, message by message, in every version of the protocol, without a client."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from subdeck.core.engine import Engine
from subdeck.core.mcp._connection import Outbox
from subdeck.core.mcp._protocol import HANDSHAKE_VERSIONS, VERSIONS
from subdeck.core.mcp.server import Server

from tests.core.command_line import write_preset
from tests.core.mcp.mcp_client import TOOLS, make_project

pytestmark = pytest.mark.processes

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}


class Client:
    """Sends lines to a server in this process, and reads its answers."""

    def __init__(self, project: Path) -> None:
        reading, self._writing = os.pipe()
        self._replies = os.fdopen(reading, "rb")
        self._outbox = Outbox(self._writing)
        self.server = Server("mcp-test", self._outbox, str(project))
        self._envelope: dict[str, Any] = {}
        self._is_closed = False

    def begin(self, version: str = "2025-11-25") -> Any:
        """Begin as a client of this version; return the server's description of itself."""
        if version in VERSIONS:
            self._envelope = {"_meta": ENVELOPE}
            return self.ask("server/discover")
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}}
        answer = self.ask("initialize", **about)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def line(self, line: bytes) -> None:
        self.server.take(line)

    def send(self, frame: Any) -> None:
        self.line(json.dumps(frame).encode())

    def ask(self, method: str, request_id: int | str = 1, **params: Any) -> Any:
        """Send a request, and return the answer: the next message."""
        self.send(self.request(method, request_id, **params))
        answer = self.next()
        assert ("2.0", request_id) == (answer["jsonrpc"], answer["id"])
        return answer

    def request(self, method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, **self._envelope}}

    def next(self) -> Any:
        return json.loads(self._replies.readline())

    def close(self) -> None:
        """Close the server as the end of stdin does, so that it watches no files of a later test."""
        self.server.close()
        self._outbox.flush()
        os.close(self._writing)
        self._is_closed = True

    def rest(self) -> list[Any]:
        """Close the server; return the rest of its output."""
        self.close()
        return [json.loads(line) for line in self._replies]

    def release(self) -> None:
        if not self._is_closed:
            self.close()
        self._replies.close()


@pytest.fixture
def connect(project_dir: Path) -> Iterator[Callable[[], Client]]:
    clients: list[Client] = []

    def connect() -> Client:
        clients.append(Client(make_project(project_dir)))
        return clients[-1]

    yield connect
    for client in clients:
        client.release()


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    return connect()


def test_versions_are_those_of_the_protocol() -> None:
    """Every version that the official client knows is served."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    assert (HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS) == (HANDSHAKE_VERSIONS, VERSIONS)


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, *VERSIONS])
def test_results_have_the_form_of_their_version(client: Client, version: str) -> None:
    """Every result matches the schema of its protocol version."""
    from mcp_types.methods import validate_server_result

    begun = client.begin(version)
    validate_server_result("server/discover" if version in VERSIONS else "initialize", version, begun["result"])
    requests: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tools/list", {}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "scout", "arguments": {"task": "look"}}),
        ("tools/call", {"name": "background_agent_status"}),
        ("tools/call", {"name": "background_agent", "arguments": {"preset": "nobody", "task": "look"}}),
    )
    for method, params in requests:
        result = client.ask(method, **params)["result"]
        validate_server_result(method, version, result)
        assert (version in VERSIONS) == ("resultType" in result)
    if version not in VERSIONS:
        assert {} == client.ask("ping")["result"]


@pytest.mark.parametrize(("asked", "given"), [*((version, version) for version in HANDSHAKE_VERSIONS), ("1", None)])
def test_the_handshake_comes_to_a_version(client: Client, asked: str, given: str | None) -> None:
    """Every known version is accepted; for an unknown one the newest with a handshake is offered."""
    assert (given or HANDSHAKE_VERSIONS[-1]) == client.begin(asked)["result"]["protocolVersion"]


def test_nothing_is_served_before_the_handshake(client: Client) -> None:
    """Before the handshake a ping is answered, and other requests are refused with a hint."""
    assert {} == client.ask("ping")["result"]
    assert "initialize" in client.ask("tools/list")["error"]["message"]
    assert -32601 == client.ask("server/discover")["error"]["code"]
    client.begin()
    assert TOOLS == {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}


def test_a_version_that_nobody_knows_is_refused(client: Client) -> None:
    """An unknown version is refused with the known ones; an incomplete envelope is refused with what is missing."""
    params = {"_meta": {**ENVELOPE, f"{META}protocolVersion": "2099-01-01"}}
    error = client.ask("tools/list", **params)["error"]
    assert (-32022, "2099-01-01", MODERN) == (error["code"], error["data"]["requested"], error["data"]["supported"][0])
    for meta in ({f"{META}protocolVersion": MODERN}, {**ENVELOPE, f"{META}protocolVersion": 7}):
        assert -32602 == client.ask("tools/list", _meta=meta)["error"]["code"]


def test_each_request_is_served_in_its_own_era(client: Client) -> None:
    """A client that tried `server/discover` can start again with a handshake; neither way spoils the other."""
    client.begin(MODERN)
    assert "resultType" in client.ask("tools/list")["result"]
    plain = Client.request(client, "tools/list") | {"params": {}}
    client.send(plain)
    assert "error" in client.next()
    client.send(plain | {"method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
    assert "2025-06-18" == client.next()["result"]["protocolVersion"]
    client.send(plain)
    assert "resultType" not in client.next()["result"]
    assert -32601 == client.ask("ping")["error"]["code"]  # the later versions have no ping


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"no json", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"7", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 3}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 123456789012345678901, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]}', -32602, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "resources/list"}', -32601, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call"}', -32602, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": 3}}', -32602, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"cursor": "2"}}', -32602, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "prompts/get", "params": {"name": "nobody"}}', -32602, "a"),
    ],
)
def test_what_is_wrong_is_said(client: Client, line: bytes, code: int, request_id: int | str | None) -> None:
    """An unusable line gets the error of its kind, with its id if that is readable."""
    client.begin()
    client.line(line)
    answer = client.next()
    assert (code, request_id) == (answer["error"]["code"], answer["id"])
    assert {} == client.ask("ping", "next")["result"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  \r",
        b'{"jsonrpc": "2.0", "method": "notifications/unheard"}',
        b'{"jsonrpc": "2.0", "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}',
        b'{"jsonrpc": "2.0", "id": 4, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "no"}}',
    ],
)
def test_what_asks_for_nothing_is_not_answered(client: Client, line: bytes) -> None:
    """Notifications, unexpected answers and blank lines get no answer."""
    client.begin()
    client.line(line)
    assert {} == client.ask("ping")["result"]


def test_a_line_above_the_limit_is_refused(client: Client) -> None:
    """A line that was too long to be kept is answered as unreadable."""
    client.server.take(None)
    assert (-32700, None) == ((answer := client.next())["error"]["code"], answer["id"])


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_batches_are_for_the_versions_that_have_them(client: Client, version: str) -> None:
    """Up to 2025-03-26 a batch is answered in one line; later versions refuse it."""
    client.begin(version)
    noted = {"jsonrpc": "2.0", "method": "notifications/unheard"}
    client.send([client.request("tools/list", 1), noted, client.request("ping", "two"), {"jsonrpc": "2.0", "id": 3}])
    answers = client.next()
    if version >= "2025-06-18":
        assert (-32600, None) == (answers["error"]["code"], answers["id"])
        return
    assert {1: "result", "two": "result", 3: "error"} == {
        answer["id"]: next(key for key in ("result", "error") if key in answer) for answer in answers
    }
    client.send([noted])
    client.send([])
    assert (-32600, None) == ((empty := client.next())["error"]["code"], empty["id"])


def test_a_cancelled_request_is_not_answered(client: Client, project_dir: Path) -> None:
    """A cancelled request is not answered; the next one is."""
    client.begin()
    task = {"preset": "scout", "task": "touch begun\nhang"}
    client.send(client.request("tools/call", 5, name="subagent", arguments=task, _meta={"progressToken": 5}))
    assert "notifications/progress" == client.next()["method"]
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    client.send(client.request("ping", 6))
    said = client.rest()
    assert 5 not in [frame.get("id") for frame in said]
    assert 6 in [frame.get("id") for frame in said]
    assert ["cancelled"] == [run.reason for run in Engine.open(str(project_dir)).snapshots()]


def test_progress_comes_before_its_result(client: Client) -> None:
    """A request with a token gets progress with growing numbers before its result; others get none."""
    client.begin()
    call = {"name": "subagent", "arguments": {"preset": "scout", "task": "answer yes"}}
    client.send(client.request("tools/call", 5, **call, _meta={"progressToken": "mine"}))
    said = [client.next()]
    while "id" not in said[-1]:
        said.append(client.next())
    *told, answer = said
    assert "yes" in str(answer["result"])
    assert ["mine"] * len(told) == [frame["params"]["progressToken"] for frame in told]
    assert told
    assert list(range(1, len(told) + 1)) == [frame["params"]["progress"] for frame in told]
    assert "yes" in str(client.ask("tools/call", 6, **call)["result"])


def test_a_subscription_is_told_what_it_asked_for(client: Client, project_dir: Path) -> None:
    """A change is sent to each subscription for it, under its id; a cancelled subscription ends."""
    client.begin(MODERN)
    for name, wanted in (("t", {"toolsListChanged": True, "resourcesListChanged": True}), ("none", {})):
        client.send(client.request("subscriptions/listen", name, notifications=wanted))
        acknowledged = client.next()["params"]
        assert {"toolsListChanged": True} if wanted else {} == acknowledged["notifications"]
        assert name == acknowledged["_meta"][f"{META}subscriptionId"]
    client.ask("tools/list")
    client.ask("prompts/list")
    write_preset(project_dir, "critic")
    told = client.next()
    assert ("notifications/tools/list_changed", "t") == (
        told["method"],
        told["params"]["_meta"][f"{META}subscriptionId"],
    )
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "none"}})
    (ended,) = client.rest()
    assert ("t", "t") == (ended["id"], ended["result"]["_meta"][f"{META}subscriptionId"])


def test_a_client_with_a_handshake_is_told_unasked(client: Client, project_dir: Path) -> None:
    """A client with a handshake is notified of changes in the lists it has read, and of no others."""
    client.begin()
    client.ask("prompts/list")
    write_preset(project_dir, "critic")
    assert {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"} == client.next()
    assert [] == client.rest()


def test_many_at_once(client: Client) -> None:
    """Requests that come faster than their answers are all answered, each once."""
    client.begin()
    replies: list[Any] = []
    reading = threading.Thread(target=lambda: replies.extend(client.next() for _ in range(200)))
    reading.start()
    for number in range(200):
        client.send(client.request(("tools/list", "prompts/list", "ping")[number % 3], number))
    reading.join(60)
    assert list(range(200)) == sorted(reply["id"] for reply in replies)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
METHODS = ("initialize", "ping", "server/discover", "tools/list", "prompts/get", "subscriptions/listen", "nothing")
FRAMES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={
        "id": st.integers(0, 9) | JSON,
        "method": st.sampled_from(METHODS) | JSON,
        "params": st.dictionaries(st.sampled_from(("_meta", "name", "arguments", "notifications")), JSON) | JSON,
    },
)


@settings(max_examples=100)
@given(frames=st.lists(FRAMES | JSON, max_size=5), version=st.sampled_from(HANDSHAKE_VERSIONS))
def test_no_line_ends_the_server(frames: list[Any], version: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any input gets only valid messages as replies, and the next request is answered."""
    client = Client(tmp_path_factory.mktemp("project"))
    try:
        client.begin(version)
        for frame in frames:
            client.send(frame)
        client.send(client.request("ping", "last"))
        replies = client.rest()
        assert all("2.0" == part["jsonrpc"] for part in replies if isinstance(part, dict))
        assert {} in [part["result"] for part in replies if isinstance(part, dict) and part.get("id") == "last"]
    finally:
        client.release()


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_claude_code_is_pointed_to_the_whole_task(client: Client, version: str) -> None:
    """Claude Code, which passes only the first word of a prompt, gets a text that does not treat it as the task."""
    about = {"name": "claude-code", "version": "2"}
    if version in VERSIONS:
        client.begin(version)
        params = {"_meta": ENVELOPE | {f"{META}clientInfo": about}}
    else:
        client.ask("initialize", protocolVersion=version, clientInfo=about)
        params = {}
    asked = client.request("prompts/get", name="scout", arguments={"task": "find"})
    asked["params"] |= params
    client.send(asked)
    (message,) = client.next()["result"]["messages"]
    assert "command-args" in message["content"]["text"]
