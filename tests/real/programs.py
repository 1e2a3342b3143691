"""The programs that are real agents: how each is configured, in a private home, to use its model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

from subdeck.core.agents._finalize_tool import CLAUDE_NAME
from subdeck.core.run.outcome import FINALIZE_TOOL

from tests.house.set_up import ACP_HOME

from .model_server import Turn, called, said

NO_RETRIES = {"retry": {"enabled": False, "provider": {"maxRetries": 0}}}
"""Settings of pi."""

CODEX_CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
{settings}
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "{key}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = {retries}
{tables}
"""


class Program:
    """One kind of agent."""

    name: str
    """Also its kind in the settings."""
    model: str
    """The model that answers; empty for the one in its settings."""
    shell_tool: tuple[str, str]
    """Its tool that runs a command, and the argument with the command."""
    entry: ClassVar[dict[str, str]] = {}
    """Its entry in the settings beside its command and environment."""
    repeats = True
    """Whether its model repeats the last answer for requests beyond the script; otherwise they fail."""
    besides: tuple[Turn, ...] = ()
    """Further requests to its model, with answers."""

    def configure(self, home: Path, url: str) -> dict[str, str]:
        """Configure it for the model server at this address; return the environment that its children need."""
        raise NotImplementedError

    def shell(self, command: str, text: str = "", **turn: Any) -> Turn:
        """A turn of its model that runs a command."""
        tool, argument = self.shell_tool
        return called((tool, {argument: command}), text=text, **turn)


class Pi(Program):
    name, model = "pi", "fake/test"
    shell_tool = ("bash", "command")

    def configure(self, home: Path, url: str, **more: Any) -> dict[str, str]:
        self.write(home / ".pi" / "agent", url, **more)
        return {}

    def write(
        self, directory: Path, url: str, *, models: tuple[dict[str, Any], ...] = (), copilot: bool = False
    ) -> None:
        """Write its settings; with more models than `test`, and with GitHub Copilot if the same server also acts as
        that.
        """
        directory.mkdir(parents=True, exist_ok=True)
        known = [{"id": "test", "contextWindow": 10_000_000}, *models]
        fake = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "sk-fake", "models": known}
        providers: dict[str, Any] = {"fake": fake}
        if copilot:
            providers["github-copilot"] = {"baseUrl": f"{url}/v1"}
            key = {"type": "api_key", "key": "sk-copilot"}
            (directory / "auth.json").write_text(json.dumps({"github-copilot": key}))
        (directory / "models.json").write_text(json.dumps({"providers": providers}))
        (directory / "settings.json").write_text(json.dumps(NO_RETRIES))


class ClaudeCode(Program):
    name, model = "claude", "anthropic/claude-sonnet-4-5"
    repeats = False
    shell_tool = ("Bash", "command")

    def configure(self, home: Path, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-fake",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }


class Codex(Program):
    name, model = "codex", "openai/mock-model"
    shell_tool = ("exec_command", "cmd")

    def configure(
        self, home: Path, url: str, *, settings: str = "", tables: str = "", retries: int = 0, key: str = "MOCK_KEY"
    ) -> dict[str, str]:
        """Write its settings, with more of them, and with more tables; `key` is the variable of its key."""
        file = home / ".codex" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CODEX_CONFIG.format(url=url, settings=settings, tables=tables, retries=retries, key=key))
        return {key: "sk-fake"}


class Acp(Program):
    """One of the two behind its adapter to the Agent Client Protocol."""

    name, model, entry = "other", "", {"kind": "acp"}
    # Codex has another model find a title, without tools, once a turn has taken some time.
    besides = (said("A title", when={"tools": False}),)

    def __init__(self, behind: Program, program: str) -> None:
        """`program` is the agent itself, which the adapter starts."""
        self.behind, self._program = behind, program
        self.shell_tool = behind.shell_tool

    @property
    def adapter(self) -> str:
        name = {"claude": "claude-agent-acp", "codex": "codex-acp"}[self.behind.name]
        return str(ACP_HOME / "node_modules" / ".bin" / name)

    def configure(self, home: Path, url: str) -> dict[str, str]:
        environment = {"PATH": os.environ["PATH"], **self.behind.configure(home, url)}
        if self.behind.name == "claude":
            return environment | {"CLAUDE_CODE_EXECUTABLE": self._program, "CLAUDE_CODE_MAX_RETRIES": "0"}
        return environment | {"CODEX_PATH": self._program, "CODEX_HOME": str(home / ".codex")}

    def finalize(self, **arguments: str) -> Turn:
        """A turn of the model that sends its structured result."""
        is_claude = self.behind.name == "claude"
        space = {} if is_claude else {"namespace": "mcp__subdeck"}
        name = CLAUDE_NAME if is_claude else FINALIZE_TOOL
        return {"steps": [{"tool_calls": [{"name": name, "arguments": arguments, **space}]}]}


PI, CLAUDE, CODEX = Pi(), ClaudeCode(), Codex()
