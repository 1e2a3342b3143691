"""Codex's program: its path, its files, and its command as an agent.

The app-server is marked as experimental, so its protocol description is checked once per version of the program.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ... import paths
from ...paths import hex_digest
from ...run.environment import child_environment, own_variables
from ...system import files
from ...system.record import read_record
from ...text.decoder import UNDECODABLE, decode
from ...text.plain import one_line
from .._json_lines import mapping
from ..child import Command, Start, existing
from ..program import own_or_installed, package, package_dir

PACKAGE = "codex"
"""Its name on npm, without the scope."""

_INSTALL = "install it (npm install -g @openai/codex)"
KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")


def find_codex(command: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable with a way out."""
    return own_or_installed(command, name, kind="codex", install=_INSTALL)


def codex_version(command: Sequence[str]) -> str | None:
    """Return the version from the package.json above the program; None if there is none."""
    directory = package_dir(command, PACKAGE)
    return (package(directory).version or None) if directory else None


def home() -> str:
    """Return the directory of Codex's login, settings and conversations; subdeck never moves it."""
    return home_in({**os.environ, **own_variables(os.environ)})


def home_in(environment: Mapping[str, str]) -> str:
    """Return that directory for an agent with this environment."""
    return environment.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")


def found_credentials(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return credentials without starting it: keys, a login file, and a settings file, which may name a provider that
    needs neither.
    """
    keys = tuple(name for name in KEYS if environment.get(name))
    files = (os.path.join(home_in(environment), name) for name in ("auth.json", "config.toml"))
    return (*keys, *filter(os.path.isfile, files))


def app_server_command(start: Start) -> Command:
    """Return the app-server's command; its requests come on stdin."""
    meta = start.meta
    if meta.system_prompt_path:
        existing(os.path.join(start.run_dir, meta.system_prompt_path), "start the run again")
    existing(start.prompt_path, "start the run again")
    return Command((*meta.agent_command, "app-server"), child_environment(meta), pipe=True)


# --- the protocol ----------------------------------------------------------------------------------------------------

TIMEOUT_S = 30
_ASKED = 2
"""Version of the checks below; verdicts of earlier versions are ignored."""

_USED: dict[str, tuple[str, ...]] = {
    "ThreadStartParams": (
        "cwd",
        "model",
        "approvalPolicy",
        "approvalsReviewer",
        "sandbox",
        "developerInstructions",
        "baseInstructions",
        "config",
        "ephemeral",
        "dynamicTools",
    ),
    "ThreadResumeParams": ("threadId", "cwd", "model", "approvalPolicy", "sandbox", "developerInstructions", "config"),
    "TurnStartParams": ("threadId", "input", "effort"),
    "TurnCompletedNotification": ("threadId", "turn"),
    "AgentMessageDeltaNotification": ("threadId", "itemId", "delta"),
    "ItemStartedNotification": ("threadId", "item"),
    "ItemCompletedNotification": ("threadId", "item"),
    "ThreadTokenUsageUpdatedNotification": ("threadId", "turnId", "tokenUsage"),
    "ErrorNotification": ("error", "willRetry"),
    "ConfigReadParams": ("cwd",),
    "DynamicToolCallParams": ("tool", "arguments"),
    "DynamicToolCallResponse": ("contentItems", "success"),
}
"""Names in the protocol that `_talk.py` and `_app_stream.py` use."""

_SPOKEN: dict[str, tuple[str, ...]] = {
    "TurnStartParams": ("clientUserMessageId",),
    "TurnSteerParams": ("threadId", "expectedTurnId", "input", "clientUserMessageId"),
    "TurnInterruptParams": ("threadId", "turnId"),
    "CommandExecutionRequestApprovalParams": ("itemId", "command", "cwd", "turnId"),
    "FileChangeRequestApprovalParams": ("itemId", "turnId"),
    "ServerRequestResolvedNotification": ("requestId",),
}
"""Further names that `_conversation.py` uses."""


class Verdict(Struct, frozen=True):
    """The check's result for one state of a program."""

    key: str
    problem: str = ""
    """Why its app-server is unusable; empty if it is usable."""
    one_way: str = ""
    """Why its runs cannot accept messages; empty if they can."""


def app_server_problem(command: Sequence[str]) -> str:
    """Return why runs cannot use the program's app-server; empty if they can."""
    return _verdict(command).problem


def talk_problem(command: Sequence[str]) -> str:
    """Return why the program's runs cannot accept messages; empty if they can."""
    verdict = _verdict(command)
    return verdict.problem or verdict.one_way


def _verdict(command: Sequence[str]) -> Verdict:
    key = _key(command)
    file = _cache_file(command)
    if cached := _cached(file, key):
        return cached
    import tempfile  # only if the verdict is not cached

    try:
        with tempfile.TemporaryDirectory(prefix="subdeck-codex-") as directory:
            problem = _generated(command, directory) or _missing(directory, _USED)
            verdict = Verdict(key, problem, "" if problem else _missing(directory, _SPOKEN))
    except OSError as error:
        return Verdict(key, f"cannot write its protocol description: {error.strerror}")
    _keep(file, verdict)
    return verdict


def may_talk(command: Sequence[str]) -> bool:
    """Whether its runs accept messages, without starting it; true if unknown."""
    verdict = _cached(_cache_file(command), _key(command))
    return verdict is None or not (verdict.problem or verdict.one_way)


def _cached(file: str, key: str) -> Verdict | None:
    verdict = read_record(file, Verdict)
    return verdict if verdict and verdict.key == key else None


def _key(command: Sequence[str]) -> str:
    """Return a key for the program's version: npm gives all files the same date."""
    program = os.path.realpath(command[0]) if command else ""
    try:
        status = os.stat(program)
    except OSError:
        return program
    return f"{_ASKED} {program} {status.st_mtime_ns} {status.st_size} {codex_version(command) or ''}"


def _cache_file(command: Sequence[str]) -> str:
    name = hex_digest("\0".join(command).encode("utf-8", "surrogateescape"), 16)
    return os.path.join(paths.cache_dir(), f"codex-{name}.json")


def _keep(file: str, verdict: Verdict) -> None:
    try:
        files.make_private_directory(paths.cache_dir())
        files.write_whole(file, msgspec.json.encode(verdict))
    except OSError:
        pass  # it is checked again


def _generated(command: Sequence[str], directory: str) -> str:
    """Make the program describe its protocol; return why it failed, or empty."""
    import subprocess

    words = [*command, "app-server", "generate-json-schema", "--experimental", "--out", directory]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, cwd=directory, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not describe its app-server within {TIMEOUT_S} seconds"
    except OSError as error:
        return f"cannot start it: {error.strerror}"
    if done.returncode:
        last_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"its app-server does not describe its protocol: {one_line(last_line, 200)}"
    return ""


def _missing(directory: str, used: Mapping[str, tuple[str, ...]]) -> str:
    """Return the first name that the protocol lacks; empty if all are present."""
    schemas = dict(_schemas(directory, used))
    for name, fields in used.items():
        properties = mapping(schemas.get(name, {}).get("properties"))
        if lacking := [field for field in fields if field not in properties]:
            return f"its app-server does not know {name}.{lacking[0]}"
    return ""


def _schemas(directory: str, titles: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (directory, *(os.path.join(directory, name) for name in files.names(directory))):
        for title in titles:
            try:
                schema = decode(files.read(os.path.join(part, f"{title}.json")))
            except (OSError, *UNDECODABLE):
                continue
            yield title, mapping(schema)
