"""The first requests to an ACP agent, sent before the SDK is loaded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from subdeck.core.acp_bridge import _handshake
from subdeck.core.acp_bridge._handshake import Handshake, Refused
from subdeck.core.acp_bridge._options import OptionError, choose
from subdeck.core.acp_bridge._session_options import Wishes
from subdeck.core.agents.acp._programs import bridge_command

pytestmark = pytest.mark.processes

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
    """The output to stdout."""
    pieces: list[bytes] = []
    monkeypatch.setattr(_handshake, "write_out", pieces.append)
    return pieces


def opened(*answers: list[Any], resume: str = "", option: tuple[str, str] | None = None) -> Handshake:
    agent = Popen([sys.executable, "-I", "-S", "-c", AGENT, json.dumps(answers)], stdin=PIPE, stdout=PIPE, bufsize=0)
    try:
        begun = Handshake(agent)
        begun.begin([], resume, fills_forms=False)
        if option:
            choose(begun, *option)
        return begun
    finally:
        agent.communicate()


def test_a_session_is_begun(written: list[bytes]) -> None:
    """Other output of the agent is kept for the SDK, and everything is logged."""
    begun = opened([UPDATE, ABOUT], ["no JSON", {"result": {"sessionId": "s1"}}, UPDATE])
    assert {"sessionId": "s1"} == begun.session
    update = f"{json.dumps(UPDATE)}\n"
    assert begun.others.decode() in (f"{update}no JSON\n{update}", f"{update}no JSON\n")
    whole = b"".join(written)
    sent = [json.loads(line)["sent"]["method"] for line in whole.splitlines() if line.startswith(b'{"sent"')]
    assert ["initialize", "session/new"] == sent
    assert b"no JSON\n" in whole


def test_a_new_session_stands_for_another(written: list[bytes]) -> None:
    """If an agent loses sessions, a new one is opened and this is logged for the reader."""
    agent = Popen(
        [sys.executable, "-I", "-S", "-c", AGENT, json.dumps([[ABOUT], [{"result": {"sessionId": "s2"}}]])],
        stdin=PIPE,
        stdout=PIPE,
        bufsize=0,
    )
    begun = Handshake(agent)
    begun.begin([], "s1", fills_forms=False, reopens=True)
    agent.communicate()
    assert (True, {"sessionId": "s2"}) == (begun.is_reopened, begun.session)
    assert _handshake.REOPENED in written


def test_what_goes_before_a_task(tmp_path: Path) -> None:
    """The preset's prompt comes first, then the conversation of the earlier session."""
    before, earlier = tmp_path / "before", tmp_path / "earlier"
    before.write_text("Be brief.\n")
    earlier.write_text("User: Hi\n")
    wishes = Wishes([f"before={before}", f"earlier={earlier}"])
    assert "Be brief.\n\nLook." == wishes.whole("Look.")
    told = "<earlier-conversation>\nUser: Hi\n</earlier-conversation>"
    assert f"Be brief.\n\n{told}\n\nLook." == wishes.whole("Look.", is_reopened=True)
    assert "Look." == Wishes([]).whole("Look.", is_reopened=True)


def test_a_session_goes_on() -> None:
    """An agent with an empty answer keeps its id, and one that cannot load sessions is an error."""
    assert "s0" == opened([ABOUT], [{"result": None}], resume="s0").session["sessionId"]
    with pytest.raises(Refused, match="cannot continue an earlier session"):
        opened([{"result": {}}], resume="s0")


@pytest.mark.parametrize("error", [{"code": -32000, "message": "log in first"}, None, "log in first"])
def test_a_refusal(error: Any) -> None:
    """The error has the agent's message, or the name of the refused request."""
    with pytest.raises(Refused, match="log in first" if isinstance(error, dict) else "session/new"):
        opened([ABOUT], [{"error": error}])


def test_an_agent_that_ends() -> None:
    with pytest.raises(ConnectionError):
        opened([ABOUT])


MODES = {"availableModes": [{"id": "read-only"}, {"id": "auto"}]}
LEVELS = {"id": "effort", "type": "select", "category": "thought_level", "options": [{"value": "high"}]}
GROUPS = [{"options": [{"value": "p/small"}]}, {"options": [{"value": "large"}]}]
MODELS = {"id": "m", "type": "select", "category": "model", "options": GROUPS}


def chosen(category: str, wanted: str, session: dict[str, Any], *answers: dict[str, Any]) -> Handshake:
    """Open a session and choose one of its options."""
    return opened([ABOUT], [{"result": session}], *([answer] for answer in answers), option=(category, wanted))


@pytest.mark.parametrize(
    ("category", "wanted", "asked"),
    [
        ("model", "provider/large", ("session/set_config_option", {"configId": "m", "value": "large"})),
        ("model", "p/small", ("session/set_config_option", {"configId": "m", "value": "p/small"})),
        ("thought_level", "high", ("session/set_config_option", {"configId": "effort", "value": "high"})),
    ],
)
def test_an_option_is_chosen(
    written: list[bytes], category: str, wanted: str, asked: tuple[str, dict[str, str]]
) -> None:
    """An option is found with or without its provider, and the agent's answer has the options from then on."""
    session = {"sessionId": "s1", "modes": MODES, "configOptions": [LEVELS, MODELS, None, {"type": "select"}]}
    assert [] == chosen(category, wanted, session, {"result": {"configOptions": []}}).session["configOptions"]
    told = [json.loads(line)["sent"] for line in b"".join(written).splitlines() if line.startswith(b'{"sent"')]
    method, params = asked
    assert (told[-1]["method"], told[-1]["params"]) == (method, {"sessionId": "s1", **params})


def test_a_mode_is_chosen(written: list[bytes]) -> None:
    """The older protocol has modes that are not options."""
    chosen("mode", "auto", {"sessionId": "s1", "modes": MODES}, {"result": {}})
    told = json.loads(next(line for line in b"".join(written).splitlines() if b"set_mode" in line))
    assert {"sessionId": "s1", "modeId": "auto"} == told["sent"]["params"]


def test_a_model_is_chosen_in_the_older_form(written: list[bytes]) -> None:
    """gemini lists its models beside its modes. The error for an unknown model lists them."""
    models = {"availableModels": [{"modelId": "auto"}, {"modelId": "gemini-2.5-pro"}, 7]}
    chosen("model", "google/gemini-2.5-pro", {"sessionId": "s1", "models": models}, {"result": {}})
    told = json.loads(next(line for line in b"".join(written).splitlines() if b"set_model" in line))
    assert {"sessionId": "s1", "modelId": "gemini-2.5-pro"} == told["sent"]["params"]
    with pytest.raises(OptionError, match=re.escape('"other"; it has auto, gemini-2.5-pro')):
        chosen("model", "other", {"sessionId": "s1", "models": models})


def test_the_first_mode_that_there_is(written: list[bytes]) -> None:
    """The first mode in the list that the agent has is chosen."""
    chosen("mode", "plan,auto,read-only", {"sessionId": "s1", "modes": MODES}, {"result": {}})
    assert any(b'"modeId":"auto"' in line for line in written)


@pytest.mark.parametrize(
    ("category", "session", "why"),
    [
        ("model", {"configOptions": [MODELS]}, 'has no model "other"; it has p/small, large'),
        ("mode", {"modes": MODES}, 'has no mode "other"; it has read-only, auto'),
        ("thought_level", {"configOptions": [MODELS]}, "does not support choosing its thinking level"),
        ("model", {"configOptions": "none", "modes": []}, "does not support choosing its model"),
    ],
)
def test_an_option_that_is_not_offered(category: str, session: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=re.escape(why)):
        chosen(category, "other", {"sessionId": "s1", **session})


HASTY = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        result = {"sessionId": "s1"} if asked["method"] == "session/new" else {}
        if asked["method"] == "session/prompt":
            result = {"stopReason": "end_turn"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""An agent that answers each prompt at once, long before the SDK is loaded."""


@pytest.mark.parametrize(
    ("talk", "stdin", "prompts"),
    [
        (False, "Say hello.", 1),
        (True, '{"prompt":["Say hello."]}\n{"prompt":["And again."]}\n', 2),
        (True, '{"cancel":true}\n{"prompt":["Say hello."]}\n', 1),
        (True, "", 0),
    ],
)
def test_a_turn_begins_before_the_library_is_there(talk: bool, stdin: str, prompts: int) -> None:
    """The agent gets each prompt once, and none of its answers is missed."""
    command = bridge_command({"task": "lines"} if talk else {}, [sys.executable, "-I", "-S", "-c", HASTY])
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (0, "") == (done.returncode, done.stderr)
    sent = [line["sent"] for line in lines if "sent" in line]
    assert [message["params"] for message in sent if message.get("method") == "session/prompt"] == [
        {"sessionId": "s1"}
    ] * prompts
    assert len([line for line in lines if line.get("result", {}).get("stopReason") == "end_turn"]) == prompts
    assert talk == ({"bridge": "ready"} in lines)


def test_the_library_is_loaded_without_its_descriptions() -> None:
    """The slow half of loading the SDK is skipped, and messages are still read."""
    code = (
        "from subdeck.core.acp_bridge._sdk import prepare; prepare()\n"
        "from acp.schema import NewSessionResponse as Response\n"
        "print({field.description for field in Response.model_fields.values()})\n"
        "print(Response.model_validate({'sessionId': 's1'}).session_id)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert ("{None}\ns1\n", "") == (done.stdout, done.stderr)
