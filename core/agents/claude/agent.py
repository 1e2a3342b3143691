"""The launching side of Claude Code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...errors import UsageError
from ...models.catalog import Catalog, Listing, Model, split_thinking
from ...run.tool_policy import SERVER_TOOLS
from ...text.plain import one_line
from .._json_lines import amount, decode, items, mapping, string
from .._model_source import REFRESH, AsksForModels, price_in, refused
from ..agent import Agent, AgentChoice, Naming, Wanted
from ..login import LOGGED_IN, UNKNOWN, Login, LoginState, read_json
from ..program import is_since
from .program import OURS, SETTLED, TOOLS, claude_version, find_claude, home, reads_context_files

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from ...permissions.rules import Rule

NAMES = ("claude-",)
"""Prefixes of its model ids, listed or not."""

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

OWN_TOOLS = (
    *("Read", "Edit", "Write", "Bash", "Grep", "Glob", "NotebookEdit", "Skill", "ToolSearch", "WebFetch", "WebSearch"),
    *("Monitor", "TaskCreate", "TaskGet", "TaskList", "TaskStop", "TaskUpdate", "Workflow"),
)
"""Its own tool names, which a preset may use beside subdeck's."""

TALKS_SINCE = (2,)
"""The first version known to repeat each message as it reads it, under the given id."""

DEFAULT_TOOLS = ("read", "bash", "edit", "write")


class ClaudeAgent(AsksForModels):
    program = "claude"

    def find(self, name: str, command: Sequence[str]) -> tuple[str, ...]:
        return find_claude(command, name)

    def choose(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> AgentChoice:
        version = claude_version(command)
        return AgentChoice(
            name,
            tuple(command),
            (*TOOLS, *OWN_TOOLS),
            True,
            default_tools=DEFAULT_TOOLS,
            levels=LEVELS,
            version=version,
            excludes=True,
            kind="claude",
            env=env,
            naming=Naming.GIVEN,
            has_default_model=True,
            talks=is_since(version, TALKS_SINCE) is not False,
        )

    def credentials(self, choice: AgentChoice) -> tuple[str, ...]:
        environment = {**os.environ, **choice.env}
        login = os.path.join(home(environment), CREDENTIALS)
        keys = tuple(name for name in KEYS if environment.get(name))
        return (*keys, *((login,) if os.path.exists(login) else ()))

    def login(self, choice: AgentChoice) -> Login:
        return claude_login({**os.environ, **choice.env})

    def serves(self, choice: AgentChoice, provider: str) -> bool:
        return not provider or (provider.lower() == PROVIDER and bool(self.credentials(choice)))

    def settle(self, choice: AgentChoice, wanted: Wanted) -> tuple[str, ...]:
        _check(choice, wanted)
        return tuple(_advice(wanted))

    def fault_of_rule(self, rule: Rule) -> str:
        if rule.tool in OURS:
            return f"its {rule.tool} is called {OURS[rule.tool]} here"
        if rule.tool == "ls":
            return "it lists directories with its find tool"
        return ""

    def offers(self, choice: AgentChoice, model: str) -> bool:
        provider, slash, _ = model.partition("/")
        if slash:
            return provider.lower() == PROVIDER
        name = split_thinking(model)[0]
        return not name or name.startswith(NAMES) or any(name == listed.id for listed in self._listing(choice).models)

    def ask(self, choice: AgentChoice, timeout: float) -> Sequence[Model]:
        return asked_models(choice, timeout)

    def listings(self, choice: AgentChoice) -> Iterator[Listing]:
        yield self._listing(choice)

    def catalog(self, choice: AgentChoice, first: Listing) -> Catalog | None:
        return Catalog(
            (lambda: first, lambda: self._listing(choice)), refresh=REFRESH.format(choice.name), bare=PROVIDER
        )

    def _listing(self, choice: AgentChoice) -> Listing:
        """Return its listed models and its permanent aliases."""
        listing = self.last_listing(choice)
        names = {model.id for model in listing.models}
        aliases = (Model(PROVIDER, alias, choice.name) for alias in ALIASES if alias not in names)
        return replace(listing, models=(*listing.models, *aliases))


def _check(choice: AgentChoice, wanted: Wanted) -> None:
    """Refuse requirements that this agent cannot meet and must not drop. Raises UsageError."""
    provider, slash, _ = wanted.model.partition("/")
    if slash and provider.lower() != PROVIDER:
        raise UsageError(
            f"the agent {choice.name} has no models from {provider}, only from {PROVIDER}",
            where=wanted.where or "model",
            hint="use a model such as anthropic/claude-sonnet-4-5 or sonnet, or choose another agent",
        )
    foreign = [name for name in (*(wanted.tools.resolved or ()), *wanted.tools.excluded) if name in SERVER_TOOLS]
    if foreign:
        raise UsageError(
            f"the agent {choice.name} has no tool like {', '.join(foreign)}",
            where=wanted.where or "tools",
            hint="remove it from the list, or choose the agent pi",
        )


def _advice(wanted: Wanted) -> Iterator[str]:
    if wanted.thinking == "minimal":
        yield 'thinking "minimal" is below Claude Code\'s lowest level: using "low"'
    if wanted.thinking not in (None, "off"):
        yield f'thinking "{wanted.thinking}" is a hint for Claude Code: models without thinking levels ignore it'
    listed = wanted.tools.resolved or ()
    if "find" in listed or "ls" in listed:
        yield "find and ls are one tool of Claude Code, Glob"
    reads_context = reads_context_files(wanted.prompt_mode, wanted.has_prompt, wanted.context_files)
    if not reads_context:
        why = "context_files: false" if wanted.context_files is False else "prompt_mode: replace"
        yield f"{why}: Claude Code also ignores your own settings, hooks and plugins"
    elif wanted.project_resources is False:
        yield "project_resources: false: Claude Code also ignores the project's CLAUDE.md"


AGENT: Agent = ClaudeAgent()


# --- login -----------------------------------------------------------------------------------------------------------

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK")
CREDENTIALS = ".credentials.json"
_CLOUDS = ("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Variables that select another service, whose login is not checked."""
_STATE = ".claude.json"
_SETTINGS = "settings.json"
_OUT = Login(LoginState.OUT, hint="run claude, then /login")


def claude_login(environment: Mapping[str, str]) -> Login:
    """Return whether it is logged in: by a key, an unexpired login, or its settings."""
    if key := next((name for name in KEYS if environment.get(name)), ""):
        return Login(LoginState.IN, key)
    directory = home(environment)
    credentials, settings = read_json(f"{directory}/{CREDENTIALS}"), read_json(f"{directory}/{_SETTINGS}")
    if credentials and _is_valid(mapping(credentials.get("claudeAiOauth"))):
        return LOGGED_IN
    state = read_json(_state_file(environment))
    if state and string(state.get("primaryApiKey")):
        return LOGGED_IN
    set_here = mapping((settings or {}).get("env"))
    if key := next((name for name in KEYS if set_here.get(name)), ""):
        return Login(LoginState.IN, key)
    is_elsewhere = any(environment.get(name) or set_here.get(name) for name in _CLOUDS) or (settings or {}).get(
        "apiKeyHelper"
    )
    has_account = not credentials and bool(state and state.get("oauthAccount"))
    """An account without credentials in a file; they may be in a keychain."""
    return UNKNOWN if None in (credentials, settings, state) or is_elsewhere or has_account else _OUT


def _is_valid(login: Mapping[str, object]) -> bool:
    """Whether a login is usable: its token has not expired or can be renewed."""
    if string(login.get("refreshToken")):
        return True
    expires = amount(login.get("expiresAt"))
    return bool(string(login.get("accessToken"))) and (not expires or time.time() * 1000 < expires)


def _state_file(environment: Mapping[str, str]) -> str:
    """Return the file that stores its account."""
    return os.path.join(environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", ""), _STATE)


# --- models ----------------------------------------------------------------------------------------------------------

PROVIDER = "anthropic"

ALIASES = ("sonnet", "opus", "haiku", "opusplan", "default")
"""Models by Claude Code's aliases; each means the newest model of its kind."""

_QUESTION = b'{"type":"control_request","request_id":"models","request":{"subtype":"initialize"}}\n'
_FLAGS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--no-session-persistence", "--strict-mcp-config", "--setting-sources", ""),
)
"""No task is sent, so no model runs; without settings, no hooks or servers are started."""

_WITHOUT_KEY = {"ANTHROPIC_API_KEY": ""}
"""With a key it first contacts the provider, and without a network answers only after 18 seconds."""


def asked_models(choice: AgentChoice, timeout: float) -> Sequence[Model]:
    """Start Claude Code and return its models. Raises AgentUnavailable, and the errors of `ask`."""
    from .._query import ask  # most listings of models start no agent

    answer = ask(
        (*choice.command, *_FLAGS),
        timeout=timeout,
        env={**choice.env, **SETTLED, **_WITHOUT_KEY},
        words=_QUESTION,
        is_answer=_is_answer,
    )
    for line in answer.stdout.splitlines():
        if _is_answer(line):
            response = mapping(mapping(decode(line)).get("response"))
            if models := tuple(_parsed_models(mapping(response.get("response")).get("models"), choice.name)):
                return models
            raise refused(choice, string(response.get("error")) or "it listed none")
    last = answer.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise refused(choice, last or f"it ended with exit code {answer.code}")


def _is_answer(line: bytes) -> bool:
    return b'"control_response"' in line


def _parsed_models(models: object, source: str) -> Iterator[Model]:
    for model in map(mapping, items(models)):
        name = one_line(string(model.get("value")))
        if name:
            stands_for = one_line(string(model.get("resolvedModel")))
            yield Model(
                PROVIDER,
                name,
                source,
                model.get("supportsEffort") is True,
                stands_for=stands_for if stands_for != name else "",
                price=price_in(string(model.get("description"))),
            )
