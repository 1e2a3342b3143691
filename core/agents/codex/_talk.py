"""Requests to `codex app-server` for one run, as lines of JSON-RPC."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec import Struct

from ... import __version__
from ...run.environment import child_environment
from ...run.model import PromptMode, RunMeta
from ...run.outcome import FINALIZE_TOOL
from ...system.files import open_regular
from .._finalize_tool import DESCRIPTION, SCHEMA
from ..child import Start, existing, prompt_of
from .permissions import READ_ONLY, READ_ONLY_HERE, OwnSettings, permissions_of, project_paths, servers_config

EFFORTS = {"off": "none"}
"""Thinking levels that Codex names differently."""

UNHEARD = (
    "account/rateLimits/updated",
    "item/commandExecution/outputDelta",
    "item/fileChange/patchUpdated",
    "remoteControl/status/changed",
    "thread/readState/changed",
    "turn/diff/updated",
)
"""Notifications to turn off, because they are not used."""

_INITIALIZE, _CONFIG, _THREAD, _TURN = range(1, 5)
"""Ids of the requests, in order."""
FIRST_FREE = 5
"""First id for other requests."""

_FINALIZE = {"type": "function", "name": FINALIZE_TOOL, "description": DESCRIPTION, "inputSchema": SCHEMA}


def encoded(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode(message) + b"\n"


class Talk(Struct, frozen=True):
    """The requests of one run, in order; each follows the previous answer."""

    start: Start

    @property
    def _meta(self) -> RunMeta:
        return self.start.meta

    def initialize(self) -> bytes:
        client = {"name": "subdeck", "version": __version__}
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": UNHEARD}
        return request(_INITIALIZE, "initialize", {"clientInfo": client, "capabilities": capabilities})

    def next_request(self, result: dict[str, Any]) -> bytes:
        """Return the request that follows `initialize` or `config/read`, by the result of that."""
        if "config" in result:
            return self._open_thread(OwnSettings.of_answer(result))
        if "userAgent" not in result and "codexHome" not in result:
            return b""
        params = {"cwd": self._meta.cwd, "includeLayers": True}
        return encoded({"method": "initialized"}) + request(_CONFIG, "config/read", params)

    def warning(self, result: dict[str, Any]) -> str:
        """Return a warning for the user after `config/read`, unless the run already has it."""
        if "config" not in result or permissions_of(self._meta.tools).sandbox or READ_ONLY_HERE in self._meta.warnings:
            return ""
        return READ_ONLY_HERE if OwnSettings.of_answer(result).is_read_only(self._meta.cwd) else ""

    def _open_thread(self, own_settings: OwnSettings) -> bytes:
        """Begin or resume a thread."""
        params = thread_params(self.start, own_settings)
        if self.start.session_id:
            resumed = {"threadId": self.start.session_id, "excludeTurns": True, "cwd": self._meta.cwd}
            return request(_THREAD, "thread/resume", resumed | params)
        # A new thread uses its app-server's directory. If the directory were given, Codex (0.169) would trust it from
        # then on if the thread may write there.
        if not self._meta.keeps_session:
            params["ephemeral"] = True
        if self._meta.finalize:
            params["dynamicTools"] = [_FINALIZE]
        return request(_THREAD, "thread/start", params)

    def start_turn(self, thread: str) -> bytes:
        params: dict[str, Any] = {"threadId": thread, "input": [{"type": "text", "text": prompt_of(self.start)}]}
        if self._meta.thinking:
            params["effort"] = EFFORTS.get(self._meta.thinking, self._meta.thinking)
        return request(_TURN, "turn/start", params)


def message_params(thread: str, message_id: str, text: str) -> dict[str, Any]:
    """Return the parameters of a message; Codex repeats the id, if there is one."""
    params: dict[str, Any] = {"threadId": thread, "input": [{"type": "text", "text": text}]}
    return params | {"clientUserMessageId": message_id} if message_id else params


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return encoded({"id": number, "method": method, "params": params})


def thread_params(start: Start, own_settings: OwnSettings) -> dict[str, Any]:
    """Return the parameters to begin or resume a thread."""
    meta = start.meta
    permissions = permissions_of(meta.tools)
    params: dict[str, Any] = {
        "config": {
            **settings_of(meta, own_settings),
            **servers_config(meta.tools, own_settings.servers, child_environment(meta)),
        },
    }
    if meta.resolved_model:
        params["model"] = own_name(meta.resolved_model)
    if permissions.sandbox:
        params |= {"sandbox": permissions.sandbox, "approvalPolicy": "never", "approvalsReviewer": "user"}
    elif meta.project_resources is False:
        params["approvalsReviewer"] = "user"
    if asks_by_rules(meta):
        params |= {"approvalPolicy": "untrusted", "approvalsReviewer": "user"}
    if prompt := system_prompt(start):
        params["baseInstructions" if meta.prompt_mode == PromptMode.REPLACE else "developerInstructions"] = prompt
    return params


def asks_by_rules(meta: RunMeta) -> bool:
    """Whether Codex has to ask before it acts, because the run's rules decide."""
    if not meta.talk or meta.permissions is None:
        return False
    from ...permissions.rules import asked_tools  # few runs have rules

    return bool(asked_tools(meta.permissions))


def settings_of(meta: RunMeta, own_settings: OwnSettings) -> dict[str, Any]:
    """Return Codex settings for this run only, in addition to the user's."""
    config = permissions_of(meta.tools).config
    replaced = meta.prompt_mode == PromptMode.REPLACE and bool(meta.system_prompt_path)
    if meta.context_files is False or (meta.context_files is None and replaced):
        config["project_doc_max_bytes"] = 0
    if meta.project_resources is False:
        config["skills"] = {"include_instructions": False}
    if meta.project_resources is False or not own_settings.has_level(meta.cwd):
        config |= _untrusted(meta, own_settings)
    return config


def _untrusted(meta: RunMeta, own_settings: OwnSettings) -> dict[str, Any]:
    """Return settings that keep the project untrusted for this run, and change nothing else.

    Given any trust level, Codex may write in the project and asks before each command, unless other settings override
    that.
    """
    config: dict[str, Any] = {"projects": {path: {"trust_level": "untrusted"} for path in project_paths(meta.cwd)}}
    if permissions_of(meta.tools).sandbox:
        return config
    if own_settings.is_read_only(meta.cwd):
        config["sandbox_mode"] = READ_ONLY
    if not own_settings.has_approval:
        config["approval_policy"] = "on-request"
    return config


def own_name(model: str) -> str:
    """Return Codex's name of a model: without its provider."""
    provider, slash, name = model.partition("/")
    return name if slash and provider.lower() == "openai" else model


def system_prompt(start: Start) -> str:
    """Return the preset's prompt, with the instructions for a structured result; empty if there is none.

    Raises LaunchError if the file is missing.
    """
    if not start.meta.system_prompt_path:
        return ""
    path = existing(os.path.join(start.run_dir, start.meta.system_prompt_path), "start the run again")
    with open(open_regular(path)[0], "rb") as file:
        return file.read().decode("utf-8", "replace")
