"""The launching side of Codex."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ... import __version__
from ...errors import UsageError
from ...models.catalog import LEVELS, Catalog, Listing, Model, split_thinking
from ...run.model import Permissions, PromptMode
from ...system import files
from ...text.decoder import UNDECODABLE
from ...text.plain import one_line
from .._json_lines import decode, items, mapping, string
from .._model_source import REFRESH, AsksForModels, refused
from ..agent import Agent, AgentChoice, Naming, Wanted
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json
from ._program import KEYS, app_server_problem, codex_version, find_codex, found_credentials, home_in, may_talk
from .permissions import (
    READ_ONLY_HERE,
    TOOL_NAMES,
    OwnSettings,
    advice,
    denied_in_part,
    fault_of_rule,
    permissions_of,
    rules_advice,
)

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule

NAMES = ("gpt-", "codex-")
"""Prefixes of its model ids, listed or not."""


class CodexAgent(AsksForModels):
    program = "codex"

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        return find_codex(command, name)

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        return AgentChoice(
            name,
            tuple(command),
            TOOL_NAMES,
            False,
            default_tools=TOOL_NAMES,
            excludes=True,
            leaves_servers=True,
            tells_price=False,
            levels=LEVELS[:-1],
            version=codex_version(command),
            kind="codex",
            env=env,
            naming=Naming.TAKEN,
            has_default_model=True,
            talks=may_talk(command),
        )

    def credentials(self, choice: AgentChoice) -> tuple[str, ...]:
        return found_credentials({**os.environ, **choice.env})

    def login(self, choice: AgentChoice) -> Login:
        environment = {**os.environ, **choice.env}
        return codex_login(environment, home_in(environment))

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return not provider or (provider.lower() == PROVIDER and bool(self.credentials(choice)))

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        provider, slash, _ = wanted.model.partition("/")
        if slash and provider.lower() != PROVIDER:
            raise UsageError(
                f'{choice.name} has no models from the provider "{one_line(provider, 40)}"',
                where=wanted.where or "model",
                hint=f"use {PROVIDER}/id, which Codex gets from the provider in its settings, or choose another agent",
            )
        if fault := denied_in_part(wanted.tools):
            field = "permissions.deny" if wanted.permissions and wanted.permissions.deny else "denied_tools"
            raise wanted.refused(
                field,
                f"{choice.name} cannot turn off {', '.join(wanted.tools.excluded)}: {fault}",
                "list its tools (read, grep, find, ls: it writes nothing), deny edit and write together "
                "or web_search, or choose another agent",
            )
        return (
            *advice(wanted.tools),
            *_of_trust(choice, wanted),
            *rules_advice(wanted.permissions),
            *_of_resources(wanted),
            *_of_exec(choice, wanted),
        )

    def fault_of_rule(self, rule: Rule) -> str:
        return fault_of_rule(rule)

    def offers(self, choice: AgentChoice, model: str) -> bool:
        provider, slash, _ = model.partition("/")
        if slash:
            return provider.lower() == PROVIDER
        name = split_thinking(model)[0]
        return (
            not name or name.startswith(NAMES) or any(name == listed.id for listed in self.last_listing(choice).models)
        )

    def ask(self, choice: AgentChoice, timeout: float) -> Sequence[Model]:
        return asked_models(choice, timeout)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return Catalog(
            (lambda: first, lambda: self.last_listing(choice)), refresh=REFRESH.format(choice.name), bare=PROVIDER
        )


def _of_trust(choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
    if not wanted.cwd or permissions_of(wanted.tools).sandbox:
        return ()
    own_settings = OwnSettings.of_files(home_in({**os.environ, **choice.env}), wanted.cwd)
    return (READ_ONLY_HERE,) if own_settings.is_read_only(wanted.cwd) else ()


def _of_resources(wanted: Wanted) -> tuple[str, ...]:
    if wanted.project_resources is not False:
        return ()
    return ("project_resources: codex also ignores your own skills and the project's AGENTS.md",)


def _of_exec(choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
    """Return the differences without the app-server. Raises UsageError for features that `codex exec` lacks."""
    problem = app_server_problem(choice.command)
    if not problem:
        return ()
    rules = wanted.permissions or Permissions()
    has_to_ask = bool(rules.ask) or any("(" in rule for rule in rules.deny)
    fields = {
        "structured_result": wanted.finalize,
        "max_turns": wanted.max_turns is not None,
        "permissions": has_to_ask,
    }
    for field, is_wanted in fields.items():
        if is_wanted:
            raise UsageError(
                f"{choice.name} does not support {field}: {problem}",
                where=wanted.where or field,
                hint=f"install a newer codex, choose another agent, or remove {field}",
            )
    notes = [f"using codex exec, which shows no text until a message is complete: {problem}"]
    if wanted.has_prompt and wanted.prompt_mode != PromptMode.REPLACE:
        notes.append("prompt: codex exec supports no extra system prompt, so the prompt is put before the task")
    return tuple(notes)


AGENT: Agent = CodexAgent()


# --- login -----------------------------------------------------------------------------------------------------------

_OUT = Login(LoginState.OUT, hint="run codex login")


def codex_login(environment: Mapping[str, str], home: str) -> Login:
    """Return whether it is logged in: by a key, a login file, or its settings' provider."""
    config = _config(os.path.join(home, "config.toml"))
    if config is None:
        return UNKNOWN
    provider = string(config.get("model_provider")) or "openai"
    if provider != "openai":
        return _at(mapping(mapping(config.get("model_providers")).get(provider)), environment)
    if key := next((name for name in KEYS if environment.get(name)), ""):
        return Login(LoginState.IN, key)
    login = read_json(os.path.join(home, "auth.json"))
    if login is None:
        return UNKNOWN
    tokens = mapping(login.get("tokens"))
    if string(login.get("OPENAI_API_KEY")) or string(tokens.get("refresh_token")) or string(tokens.get("access_token")):
        return LOGGED_IN
    is_in_keyring = string(config.get("cli_auth_credentials_store")) in ("keyring", "auto")
    return UNKNOWN if is_in_keyring else _OUT


def _at(provider: Mapping[str, object], environment: Mapping[str, str]) -> Login:
    """Return the login state of a provider in the settings, which may need no key."""
    key = string(provider.get("env_key"))
    if not key:
        return UNKNOWN
    return Login(LoginState.IN, key) if environment.get(key) else Login(LoginState.OUT, hint=f"set {key}")


def _config(path: str) -> dict[str, Any] | None:
    """Return the settings; empty if there is no file, None if it is unreadable."""
    import tomllib  # only login checks read TOML

    try:
        return tomllib.loads(files.read(path).decode("utf-8", "replace"))
    except FileNotFoundError:
        return {}
    except (OSError, *UNDECODABLE):
        return None


# --- models ----------------------------------------------------------------------------------------------------------

PROVIDER = "openai"

_ASKED = 2
"""The request's id."""
_MOST = 500
"""Maximum models to list."""


def asked_models(choice: AgentChoice, timeout: float) -> Sequence[Model]:
    """Start Codex and return its models. Raises AgentUnavailable, and the errors of `ask`."""
    from .._query import ask  # most listings of models start no agent

    command = (*choice.command, "app-server")
    answer = ask(command, timeout=timeout, env=choice.env, words=b"".join(_requests()), is_answer=_is_answer)
    for line in answer.stdout.splitlines():
        if _is_answer(line):
            fields = mapping(decode(line))
            if "error" in fields:
                raise refused(choice, string(mapping(fields["error"]).get("message")) or "it answered with an error")
            return tuple(_parsed_models(mapping(fields.get("result")).get("data"), choice.name))
    last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise refused(choice, last or f"it ended with exit code {answer.code}")


def _requests() -> Iterator[bytes]:
    client = {"name": "subdeck", "version": __version__}
    messages: tuple[dict[str, Any], ...] = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
        {"method": "initialized"},
        {"id": _ASKED, "method": "model/list", "params": {"limit": _MOST}},
    )
    for message in messages:
        yield msgspec.json.encode(message) + b"\n"


def _is_answer(line: bytes) -> bool:
    fields = mapping(decode(line))
    return fields.get("id") == _ASKED and ("result" in fields or "error" in fields)


def _parsed_models(models: object, source: str) -> Iterator[Model]:
    for model in map(mapping, items(models)):
        name = one_line(string(model.get("model")) or string(model.get("id")))
        if name and model.get("hidden") is not True:
            yield Model(PROVIDER, name, source, bool(items(model.get("supportedReasoningEfforts"))))
