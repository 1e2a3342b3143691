"""The models that pi knows: models.json, its last own list, what its package brings; and pi asked for a new list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from ... import paths
from ...config.yaml_tree import read_text
from ...errors import AgentUnavailable, ContentError
from ...models.catalog import Listing, Model
from ...paths import hex_digest
from ...system import files
from ...text.decoding import UNDECODABLE, decode, why
from ...text.plain import one_line, plain
from ..json_lines import items, mapping
from .program import node_problem, package_dir

GENERATED = "dist/models.generated.js"
"""Has the models up to 0.86."""
DATA = "dist/providers/data"
"""Has them since 0.87: a file of JSON for each provider."""
GENERATED_LIMIT = 8 * 1024 * 1024
"""Bytes of a file."""

TIMEOUT_S = 120

_NONE = "No models available"
# Compiled at their first use, by `re.search`: few launches come to one of them.
_HEADER = r"(?m)^provider +model +.*$"
_BUILT_IN = (
    r'\n {12}id: "((?:[^"\\\n]|\\.)*)",\n(?: {12}[^\n]*\n)*? {12}provider: "([^"\\\n]*)",'
    r"(?:\n {12,}[^\n]*)*?\n {12}reasoning: (true|false),"
)
_JSON_COMMENT = r'"(?:\\.|[^"\\])*"|//[^\n]*'
_TRAILING_COMMA = r'"(?:\\.|[^"\\])*"|,(\s*[}\]])'


class _BuiltIn(Struct):
    """A model in a file of `DATA`; those that are not for chats draw pictures or classify."""

    id: str
    provider: str
    type: str = "chat"
    reasoning: bool = False


class CachedList(Struct, frozen=True):
    """What `pi --list-models` said, and what that depends on."""

    key: dict[str, str]
    models: tuple[Model, ...]


def list_key(command: Sequence[str]) -> dict[str, str]:
    """Return what pi's list of models depends on: its program, its files, the names of the keys in the environment."""
    agent_dir = paths.agent_dir()
    files = [part for part in command if os.sep in part]
    files += [os.path.join(agent_dir, name) for name in ("models.json", "auth.json", "settings.json")]
    return {
        "command": "\0".join(command),
        **{path: _changed_at(path) for path in files},
        "environment": " ".join(sorted(name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")))),
    }


def cached_listing(command: Sequence[str]) -> Listing:
    """Return pi's last own list; an outdated one still names models, but is not complete."""
    try:
        cached = decode(files.read(cache_file(command)), CachedList)
    except (OSError, *UNDECODABLE):
        return Listing()
    return Listing(cached.models, own=True, complete=cached.key == list_key(command))


def cache_file(command: Sequence[str]) -> str:
    """Return the file for a command and the agent directory in use."""
    name = hex_digest("\0".join((*command, paths.agent_dir())).encode("utf-8", "surrogateescape"), 16)
    return os.path.join(paths.cache_dir(), f"models-{name}.json")


def models_json_listing() -> Listing:
    """Read the models that the user has set up in pi's `models.json`, with its comments and trailing commas."""
    path = os.path.join(paths.agent_dir(), "models.json")
    try:
        text = read_text(path)
        document = decode(_without_comments(text))
    except FileNotFoundError:
        return Listing()
    except ContentError as error:
        return Listing(problem=f"{path}: {error.what}")
    except UNDECODABLE as error:
        return Listing(problem=f"{path}: {why(error)}")
    providers = mapping(mapping(document).get("providers"))
    models = [
        Model(provider, model_id, "models.json", thinks=mapping(entry).get("reasoning") is True)
        for provider, config in providers.items()
        for entry in items(mapping(config).get("models"))
        if isinstance(model_id := mapping(entry).get("id"), str) and model_id
    ]
    return Listing(tuple(models), tuple(providers))


def built_in_listing(command: Sequence[str]) -> Listing:
    """Read the models that pi's package brings along, where it has them in files of their own.

    The files are made by pi's build and no interface of it; where they look different, nothing is known from here.
    """
    package = package_dir(command)
    if not package:
        return Listing()
    scope = os.path.dirname(package)
    for place in (f"{scope}/pi-ai", f"{package}/node_modules/{os.path.basename(scope)}/pi-ai"):
        if models := tuple(_of_providers(os.path.join(place, DATA))) or tuple(
            _generated(os.path.join(place, GENERATED))
        ):
            return Listing(models, own=True)
    return Listing()


def _of_providers(directory: str) -> Iterator[Model]:
    for name in sorted(files.names(directory)):
        if name.startswith(".") or not name.endswith(".json"):
            continue
        try:
            with open(os.path.join(directory, name), "rb") as file:
                by_api = decode(file.read(GENERATED_LIMIT), dict[str, dict[str, _BuiltIn]])
        except (OSError, *UNDECODABLE):
            continue
        for model in (model for models in by_api.values() for model in models.values()):
            if model.type == "chat" and model.id and model.provider:
                yield Model(model.provider, model.id, "built in", model.reasoning)


def _generated(path: str) -> Iterator[Model]:
    try:
        with open(path, encoding="utf-8") as file:
            found = re.findall(_BUILT_IN, file.read(GENERATED_LIMIT))
    except (OSError, UnicodeDecodeError):
        return
    yield from (Model(provider, id_, "built in", thinks == "true") for id_, provider, thinks in found)


def _without_comments(text: str) -> str:
    """Drop what pi drops before it parses."""
    text = re.sub(_JSON_COMMENT, lambda found: found[0] if found[0][0] == '"' else "", text)
    return re.sub(_TRAILING_COMMA, lambda found: found[1] or found[0], text)


def _changed_at(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


def refresh_models(command: Sequence[str]) -> tuple[Model, ...]:
    """Start pi once, keep and return what it lists. Raises AgentUnavailable with what pi said instead."""
    models = tuple(_table(_asked(command)))
    try:
        files.make_private_directory(paths.cache_dir())
        # pi makes its auth.json while it lists, so what the list depends on is looked at when it is there
        files.write_whole(cache_file(command), msgspec.json.encode(CachedList(list_key(command), models)))
    except OSError as error:
        raise AgentUnavailable(
            f"the list of models cannot be kept: {error.strerror}", where=paths.cache_dir(), hint="check its rights"
        ) from error
    return models


def _asked(command: Sequence[str]) -> str:
    import subprocess  # most who ask for models do not start pi

    try:
        answer = subprocess.run(
            [*command, "--list-models"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            cwd=os.path.expanduser("~"),
            env={**os.environ, "PI_SKIP_VERSION_CHECK": "1"},
        )
    except subprocess.TimeoutExpired:
        raise _refused(command, f"it said nothing for {TIMEOUT_S} seconds") from None
    except OSError as error:
        raise _refused(command, str(error.strerror)) from error
    # Which of the two has the table depends on the version, and on whether there is a terminal.
    said = plain(f"{answer.stdout.decode(errors='replace')}\n{answer.stderr.decode(errors='replace')}")
    if answer.returncode != 0 or not (_NONE in said or re.search(_HEADER, said)):
        why = node_problem(command, said) or one_line(said, 400)
        raise _refused(command, why or f"it ended with exit code {answer.returncode}")
    return said


def _table(said: str) -> Iterator[Model]:
    header = re.search(_HEADER, said)
    if header is None:
        return
    titles = header[0].split()
    for line in said[header.end() :].split("\n"):
        cells = line.split()
        if len(cells) == len(titles):
            row = dict(zip(titles, cells, strict=True))
            yield Model(row["provider"], row["model"], "pi", thinks=row.get("thinking") == "yes")


def _refused(command: Sequence[str], what: str) -> AgentUnavailable:
    return AgentUnavailable(
        f"pi could not list its models: {what}", where=f"{' '.join(command)} --list-models", hint="try that command"
    )
