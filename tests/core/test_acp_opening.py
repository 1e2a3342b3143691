"""The first words to an agent of the Agent Client Protocol, said before the SDK is there."""

from __future__ import annotations

import json
import subprocess
import sys
from subprocess import PIPE, Popen
from typing import Any

import pytest
from subdeck.core.acp_bridge import opening
from subdeck.core.acp_bridge.opening import Opening, Refused

AGENT = """\
import json, sys
for answers in json.loads(sys.argv[1]):
    asked = json.loads(sys.stdin.readline())
    for answer in answers:
        if isinstance(answer, dict) and "id" not in answer and "method" not in answer:
            answer = {"id": asked["id"], **answer}
        print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)
"""
ABOUT = {"result": {"agentCapabilities": {"loadSession": True}}}
UPDATE = {"method": "session/update", "params": {"update": {}}}


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What goes to stdout."""
    pieces: list[bytes] = []
    monkeypatch.setattr(opening, "write_out", pieces.append)
    return pieces


def opened(*answers: list[Any], resume: str = "") -> Opening:
    agent = Popen([sys.executable, "-I", "-S", "-c", AGENT, json.dumps(answers)], stdin=PIPE, stdout=PIPE, bufsize=0)
    try:
        begun = Opening(agent, [], resume, fills_forms=False)
        begun.wait()
        return begun
    finally:
        agent.communicate()


def test_a_session_is_begun(written: list[bytes]) -> None:
    """What the agent says beside its answers is kept for the SDK, and everything is written down."""
    begun = opened([UPDATE, ABOUT], ["no JSON", {"result": {"sessionId": "s1"}}, UPDATE])
    assert {"sessionId": "s1"} == begun.session
    update = f"{json.dumps(UPDATE)}\n"
    assert begun.others.decode() in (f"{update}no JSON\n{update}", f"{update}no JSON\n")
    whole = b"".join(written)
    sent = [json.loads(line)["sent"]["method"] for line in whole.splitlines() if line.startswith(b'{"sent"')]
    assert ["initialize", "session/new"] == sent
    assert b"no JSON\n" in whole


def test_a_session_goes_on() -> None:
    """An agent that answers with nothing keeps the id that it was given; one that cannot load a session is asked no
    more.
    """
    assert "s0" == opened([ABOUT], [{"result": None}], resume="s0").session["sessionId"]
    assert {} == opened([{"result": {}}], resume="s0").session


@pytest.mark.parametrize("error", [{"code": -32000, "message": "log in first"}, None, "log in first"])
def test_a_refusal(error: Any) -> None:
    """The agent's own words are told, or what it was that it refused."""
    with pytest.raises(Refused, match="log in first" if isinstance(error, dict) else "session/new"):
        opened([ABOUT], [{"error": error}])


def test_an_agent_that_ends() -> None:
    with pytest.raises(ConnectionError):
        opened([ABOUT])


def test_the_library_is_loaded_without_its_descriptions() -> None:
    """What takes half of its time to load is left out, and its messages are read all the same."""
    code = (
        "from subdeck.core.acp_bridge.sdk import prepare; prepare()\n"
        "from acp.schema import NewSessionResponse as Response\n"
        "print({field.description for field in Response.model_fields.values()})\n"
        "print(Response.model_validate({'sessionId': 's1'}).session_id)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert ("{None}\ns1\n", "") == (done.stdout, done.stderr)
