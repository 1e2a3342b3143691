"""`subdeck mcp` as the official Python client sees it, with a handshake and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import jsonschema
import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Interrupted, Message
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.command_line import write_preset
from tests.core.mcp.mcp_client import ERAS, TOOLS, connected, make_project
from tests.core.offline_agent.offline_reader import SHOP, write_tree
from tests.factories import write_settings

if TYPE_CHECKING:
    from mcp import Client

pytestmark = [pytest.mark.parametrize("era", ERAS), pytest.mark.processes]


@pytest.fixture
def project(project_dir: Path) -> Path:
    return make_project(project_dir)


async def progress_of(client: Client, name: str, arguments: dict[str, Any]) -> tuple[Any, list[tuple[float, str]]]:
    """Call a tool; return its result and its progress messages."""
    told: list[tuple[float, str]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))

    return await client.call_tool(name, arguments, progress_callback=tell), told


def runs_of(project: Path) -> tuple[RunSnapshot, ...]:
    return Engine.open(str(project)).snapshots()


async def seen(project: Path, what: str) -> None:
    """Wait until a file of the project exists."""
    while not (project / what).exists():
        await anyio.sleep(0.01)


async def test_four_tools(era: str, project: Path) -> None:
    """The client sees the four tools with titles and schemas for input and output."""
    async with connected(project, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert TOOLS == set(tools)
        assert "subdeck" == (client.server_info and client.server_info.name)
    for tool in tools.values():
        assert tool.title
        assert "scout" in (tools["subagent"].description or "")
        for schema in (tool.input_schema, tool.output_schema):
            assert schema
            jsonschema.Draft202012Validator.check_schema(schema)
            assert "object" == schema["type"]
    loaded = {name for name, tool in tools.items() if (tool.meta or {}).get("anthropic/alwaysLoad")}
    assert {"subagent", "background_agent"} == loaded


async def test_child_sees_no_tools(era: str, project: Path) -> None:
    """A server started by an agent provides no tools and no prompts."""
    from mcp.shared.exceptions import MCPError

    async with connected(project, era, PI_SUBAGENTS_CHILD="1") as client:
        assert [] == (await client.list_tools()).tools
        assert [] == (await client.list_prompts()).prompts
        with pytest.raises(MCPError):
            await client.call_tool("background_agent", {"preset": "scout", "task": "say hello"})
    assert () == runs_of(project)


async def test_offline_agent_needs_no_model(era: str, project_dir: Path) -> None:
    """Without pi and without a key the tools are listed, and the offline agent answers from the files."""
    write_preset(project_dir)
    (project_dir / "auth.py").write_text("def authenticate(request):\n    return request.token\n")
    async with connected(project_dir, era) as client:
        assert TOOLS == {tool.name for tool in (await client.list_tools()).tools}
        task = {"preset": "scout", "task": "where is authenticate?"}
        result, told = await progress_of(client, "subagent", task)
    assert not result.is_error
    assert "auth.py:1" in str(result.structured_content)
    assert any("authenticate" in text for _, text in told)
    assert [number for number, _ in told] == sorted({number for number, _ in told})


async def test_foreground_call(era: str, project: Path) -> None:
    """Answer, status and id are in the structured content; no timeline fills the model's context."""
    async with connected(project, era) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        call = {"preset": "scout", "task": "tool read\nanswer it is in a.py", "description": "find it"}
        result, told = await progress_of(client, "subagent", call)
    (run,) = runs_of(project)
    content = str(result.structured_content)
    assert not result.is_error
    assert all(said in content for said in ("it is in a.py", run.run_id, "completed"))
    assert "'entries'" not in content
    assert "it is in a.py" in result.content[0].text
    assert told
    jsonschema.validate(result.structured_content, schemas["subagent"] or {})
    assert ("mcp", False, "find it") == (run.meta.launched_by.kind, run.meta.background, run.meta.description)


async def test_parallel_tasks(era: str, project: Path) -> None:
    """Tasks run side by side, and a failed one does not hide the other."""
    tasks = [{"preset": "scout", "task": "answer the first"}, {"preset": "scout", "task": "error no such luck"}]
    async with connected(project, era) as client:
        result, _ = await progress_of(client, "subagent", {"tasks": tasks})
    content = str(result.structured_content)
    assert "the first" in content
    assert "no such luck" in content
    assert {"completed", "failed"} == {run.status for run in runs_of(project)}


async def test_background_run_outlives_the_server(era: str, project: Path) -> None:
    """A background call answers at once; status shows the run; it continues when the client has gone."""
    async with connected(project, era) as client:
        call = {"preset": "scout", "task": "touch begun\nwait-for go\nanswer made it"}
        started = await client.call_tool("background_agent", call)
        (run,) = runs_of(project)
        assert run.run_id in str(started.structured_content)
        await seen(project, "begun")
        status = await client.call_tool("background_agent_status", {})
        assert run.run_id in str(status.structured_content)
    assert ["running"] == [run.status for run in runs_of(project)]
    (project / "go").touch()
    engine = Engine.open(str(project))
    assert ["completed"] == [run.status for run in engine.wait([run.run_id], timeout=30)]


async def test_a_client_steers_its_run(era: str, project_dir: Path) -> None:
    """A client sees its run's question but may not answer it; it gives the run another task in the middle of a turn."""
    write_preset(project_dir)
    write_tree(project_dir, SHOP)
    async with connected(project_dir, era, SUBDECK_OFFLINE_PACE="0") as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        task = {"preset": "scout", "task": "Where is the token checked? Ask me which file."}
        started = await client.call_tool("background_agent", task)
        (run,) = runs_of(project_dir)
        status = await client.call_tool("background_agent_status", {"runId": run.run_id})
        while not (asked := (status.structured_content or {})["runs"][0]).get("requests"):
            status = await client.call_tool("background_agent_status", {"runId": run.run_id})
        assert ["has a question: Which file shall I read?"] == [request["asks"] for request in asked["requests"]]
        assert 1 == (status.structured_content or {})["counts"]["waiting"]
        steer = {"runId": run.run_id, "message": "Where is `total`?", "interrupt": True}
        sent = await client.call_tool("background_agent_send", steer)
    assert not (started.is_error or sent.is_error)
    jsonschema.validate(sent.structured_content, schemas["background_agent_send"] or {})
    jsonschema.validate(status.structured_content, schemas["background_agent_status"] or {})
    assert "delivered" == (sent.structured_content or {})["delivery"]
    engine = Engine.open(str(project_dir))
    engine.wait([run.run_id], timeout=30)
    assert "src/prices.py" in str(engine.result(run.run_id))
    said = [event for event in engine.events(run.run_id).read() if isinstance(event, Message | Interrupted)]
    assert {"the MCP client"} == {event.by for event in said}


async def test_sessions_are_apart(era: str, project: Path) -> None:
    """Two clients on one project do not see each other's background runs; the user sees which session has which."""
    async with connected(project, era) as one, connected(project, era) as other:
        for client in (one, other):
            await client.call_tool("background_agent", {"preset": "scout", "task": "answer yes"})
        everything = {"includeCompleted": True}
        shown = [str(await client.call_tool("background_agent_status", everything)) for client in (one, other)]
    runs = runs_of(project)
    Engine.open(str(project)).wait([run.run_id for run in runs], timeout=30)
    assert 2 == len({run.meta.launched_by.session for run in runs})
    assert all(run.meta.launched_by.session.startswith("mcp-") for run in runs)
    assert 2 == sum(run.run_id in text for run in runs for text in shown)


async def test_cancelled_call_stops_its_run(era: str, project: Path) -> None:
    """A cancelled call ends its run as aborted: cancelled; the server continues."""
    async with connected(project, era) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "subagent", {"preset": "scout", "task": "touch begun\nhang"})
            await seen(project, "begun")
            calls.cancel_scope.cancel()
        engine = Engine.open(str(project))
        (run,) = await anyio.to_thread.run_sync(lambda: engine.wait([runs_of(project)[0].run_id], timeout=30))
        assert ("aborted", "cancelled") == (run.status, run.reason)
        assert TOOLS == {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize(
    "arguments",
    [
        {"preset": "nobody", "task": "answer"},
        {"preset": "scout"},
        {"preset": "scout", "task": "answer", "colour": "red"},
        {"preset": "scout", "task": "answer", "model": "@nosuch"},
        {"chain": []},
    ],
    ids=lambda arguments: ",".join(arguments),
)
async def test_wrong_arguments(era: str, project: Path, arguments: dict[str, Any]) -> None:
    """Wrong arguments give a structured error, and nothing is started."""
    async with connected(project, era) as client:
        result = await client.call_tool("subagent", arguments)
    assert result.is_error
    assert (result.structured_content or {})["error"]["what"]
    assert () == runs_of(project)


async def test_unknown_tool(era: str, project: Path) -> None:
    """An unknown tool is an error of the protocol."""
    from mcp.shared.exceptions import MCPError

    async with connected(project, era) as client:
        with pytest.raises(MCPError, match="unknown tool chain"):
            await client.call_tool("chain", {})


async def test_presets_are_prompts(era: str, project: Path) -> None:
    """A preset chosen as a prompt in the client's menu asks the model to delegate the task to it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import TextContent

    async with connected(project, era) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert ("scout", "looks around") == (prompt.name, prompt.description)
        assert [("task", True)] == [(argument.name, argument.required) for argument in prompt.arguments or ()]
        filled = await client.get_prompt("scout", {"task": "look for {preset}"})
        with pytest.raises(MCPError, match="task"):
            await client.get_prompt("scout", {})
        with pytest.raises(MCPError, match="did you mean scout"):
            await client.get_prompt("scuot", {"task": "look"})
    (message,) = filled.messages
    assert isinstance(message.content, TextContent)
    assert "subagent with preset scout" in message.content.text
    assert message.content.text.endswith("look for {preset}")


class Told:
    """Receives notifications of changed lists, in either era."""

    def __init__(self) -> None:
        self.tools = anyio.Event()
        self.prompts = anyio.Event()

    async def handle(self, message: object) -> None:
        from mcp_types import PromptListChangedNotification, ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.tools.set()
        if isinstance(message, PromptListChangedNotification):
            self.prompts.set()

    async def listen(self, client: Client, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        from mcp.client.subscriptions import PromptsListChanged, ToolsListChanged

        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
            task_status.started()
            async for event in events:
                if isinstance(event, ToolsListChanged):
                    self.tools.set()
                if isinstance(event, PromptsListChanged):
                    self.prompts.set()

    async def follow(self, client: Client, era: str, tasks: anyio.abc.TaskGroup) -> None:
        if era == "legacy":
            assert client.server_capabilities.tools and client.server_capabilities.tools.list_changed
        else:
            await tasks.start(self.listen, client)


async def test_new_preset_is_told(era: str, project: Path) -> None:
    """A client that read the lists is notified of a new preset, and finds it in both."""
    told = Told()
    async with connected(project, era, handler=told.handle) as client, anyio.create_task_group() as tasks:
        await told.follow(client, era, tasks)
        assert "critic" not in str((await client.list_tools()).tools)
        assert 1 == len((await client.list_prompts()).prompts)
        write_preset(project, "critic")
        await told.tools.wait()
        await told.prompts.wait()
        assert "critic" in str((await client.list_tools()).tools)
        assert {"critic", "scout"} == {prompt.name for prompt in (await client.list_prompts()).prompts}
        tasks.cancel_scope.cancel()


async def test_new_model_is_told(era: str, project: Path) -> None:
    """A client is notified of a model added to the settings, and finds it in the description; prompts are unchanged."""
    told = Told()
    async with connected(project, era, handler=told.handle) as client, anyio.create_task_group() as tasks:
        await told.follow(client, era, tasks)
        assert "fake/other" not in str((await client.list_tools()).tools)
        await client.list_prompts()
        write_settings(models=["fake/puppet", "fake/other"])
        await told.tools.wait()
        assert "fake/other" in str((await client.list_tools()).tools)
        assert not told.prompts.is_set()
        tasks.cancel_scope.cancel()


LISTS = """\
echo asked >> {asked}
echo 'provider  model   context  max-out  thinking  images'
echo 'fake      listed  1K       1K       no        no'
"""


async def test_models_are_learned(era: str, project_dir: Path, tmp_path: Path) -> None:
    """If only the agent knows its models, it is asked for them once, not by each server."""
    write_preset(project_dir)
    asked = tmp_path / "asked"
    write_settings(["/bin/sh", "-c", LISTS.format(asked=asked)])
    for _ in range(2):
        async with connected(project_dir, era) as client:
            assert "fake/listed" in str((await client.list_tools()).tools)
    assert "asked\n" == asked.read_text()
