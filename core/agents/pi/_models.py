"""pi's models: models.json, its saved list, its package's models; and refreshing the list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ... import paths
from ...config.yaml_tree import read_text
from ...errors import ContentError
from ...models.catalog import BUILT_IN, Listing, Model, Price
from ...system import files
from ...system.record import read_record
from ...text.decoder import UNDECODABLE, decode, why
from ...text.plain import one_line, plain
from .._json_lines import amount, count, items, mapping
from .._model_source import program_key, refused
from ..agent import AgentChoice
from ..model_list import ModelList, changed_at, list_file
from .program import node_problem, package_dir

GENERATED = "dist/models.generated.js"
"""Has the models up to pi 0.86."""
DATA = "dist/providers/data"
"""Has the models since 0.87: a JSON file for each provider."""
GENERATED_LIMIT = 8 * 1024 * 1024
"""Maximum bytes of a file."""

_NONE = "No models available"
# Compiled on first use, by `re.search`; few launches need them.
_HEADER = r"(?m)^provider +model +.*$"
_BUILT_IN = (
    r'\n {12}id: "((?:[^"\\\n]|\\.)*)",\n(?: {12}[^\n]*\n)*? {12}provider: "([^"\\\n]*)",'
    r"(?:\n {12,}[^\n]*)*?\n {12}reasoning: (true|false),"
    r"(?:\n {12}input: [^\n]*\n {12}cost: \{\n {16}input: ([0-9.]{1,12}),\n {16}output: ([0-9.]{1,12}),)?"
)
_JSON_COMMENT = r'"(?:\\.|[^"\\])*"|//[^\n]*'
_TRAILING_COMMA = r'"(?:\\.|[^"\\])*"|,(\s*[}\]])'


class _BuiltIn(Struct, rename="camel"):
    """A model in a file of `DATA`; other types than chat draw pictures or classify."""

    id: str
    provider: str
    type: str = "chat"
    reasoning: bool = False
    cost: Any = None
    context_window: Any = None


def list_key(command: Sequence[str]) -> dict[str, str]:
    """Return the state that pi's list depends on: its program, its files, the names of the keys in the environment."""
    agent_dir = paths.agent_dir()
    files = [part for part in command if os.sep in part]
    files += [os.path.join(agent_dir, name) for name in ("models.json", "auth.json", "settings.json")]
    return {
        "command": "\0".join(command),
        **{path: changed_at(path) for path in files},
        "environment": " ".join(sorted(name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")))),
    }


def pi_list(choice: AgentChoice) -> ModelList:
    """Return pi's saved list, for the current agent directory."""
    return ModelList(cache_file(choice.command), list_key(choice.command), program_key(choice))


def last_listing_of(choice: AgentChoice) -> Listing:
    """Return pi's saved list; an outdated one still names models, but is not complete."""
    saved_list = pi_list(choice)
    kept = saved_list.kept()
    source = f"the list from {choice.name} --list-models"
    return Listing(kept.models, own=bool(kept.key), complete=kept.key == saved_list.key, source=source)


def cache_file(command: Sequence[str]) -> str:
    """Return the list's file for a command and the current agent directory."""
    return list_file(*command, paths.agent_dir())


def models_json_listing() -> Listing:
    """Read the user's models from pi's `models.json`, which may have comments and trailing commas."""
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
        Model(
            provider,
            model_id,
            "models.json",
            thinks=mapping(entry).get("reasoning") is True,
            context=_context(mapping(entry).get("contextWindow")),
            price=_price(mapping(entry).get("cost")),
        )
        for provider, config in providers.items()
        for entry in items(mapping(config).get("models"))
        if isinstance(model_id := mapping(entry).get("id"), str) and model_id
    ]
    return Listing(tuple(models))


def built_in_listing(command: Sequence[str]) -> Listing:
    """Read the models from pi's package, if it has them in separate files.

    These files come from pi's build and are not an interface; if their form differs, the result is empty.
    """
    package = package_dir(command)
    if not package:
        return Listing()
    scope = os.path.dirname(package)
    for directory in (f"{scope}/pi-ai", f"{package}/node_modules/{os.path.basename(scope)}/pi-ai"):
        if models := tuple(_of_providers(os.path.join(directory, DATA))) or tuple(
            _generated(os.path.join(directory, GENERATED))
        ):
            return Listing(models, own=True, source="the models that come with pi")
    return Listing()


def _of_providers(directory: str) -> Iterator[Model]:
    for name in sorted(files.names(directory)):
        if name.startswith(".") or not name.endswith(".json"):
            continue
        path = os.path.join(directory, name)
        by_api = read_record(path, dict[str, dict[str, _BuiltIn]], {}, follow=True, largest=GENERATED_LIMIT)
        for model in (model for models in by_api.values() for model in models.values()):
            if model.type == "chat" and model.id and model.provider:
                yield Model(
                    model.provider,
                    model.id,
                    BUILT_IN,
                    model.reasoning,
                    context=_context(model.context_window),
                    price=_price(model.cost),
                )


def _generated(path: str) -> Iterator[Model]:
    try:
        with open(path, encoding="utf-8") as file:
            rows = re.findall(_BUILT_IN, file.read(GENERATED_LIMIT))
    except (OSError, UnicodeDecodeError):
        return
    for name, provider, thinks, *cost in rows:
        numbers = {name: float(number) for name, number in zip(("input", "output"), cost, strict=True) if number}
        yield Model(provider, name, BUILT_IN, thinks == "true", price=_price(numbers))


def _context(tokens: object) -> int | None:
    return count(tokens) or None


def _price(cost: object) -> Price | None:
    """Return pi's price; None for zero, which may also mean an unknown price."""
    price = Price(amount(mapping(cost).get("input")), amount(mapping(cost).get("output")))
    return price if price.input or price.output else None


def _without_comments(text: str) -> str:
    """Drop comments and trailing commas, as pi does."""
    text = re.sub(_JSON_COMMENT, lambda match: match[0] if match[0][0] == '"' else "", text)
    return re.sub(_TRAILING_COMMA, lambda match: match[1] or match[0], text)


def asked_models(choice: AgentChoice, timeout: float) -> tuple[Model, ...]:
    """Start pi and return the models it lists. Raises AgentUnavailable with pi's message, and the errors of `ask`."""
    return tuple(_table(_asked(choice, timeout)))


def _asked(choice: AgentChoice, timeout: float) -> str:
    from .._query import ask  # most listings of models start no agent

    answer = ask((*choice.command, "--list-models"), timeout=timeout, env={**choice.env, "PI_SKIP_VERSION_CHECK": "1"})
    # The stream with the table depends on the version, and on whether there is a terminal.
    output = plain(f"{answer.stdout.decode(errors='replace')}\n{answer.stderr.decode(errors='replace')}")
    if answer.code != 0 or not (_NONE in output or re.search(_HEADER, output)):
        why = node_problem(choice.command, output) or one_line(output, 400)
        raise refused(choice, why or f"it ended with exit code {answer.code}", "--list-models")
    return output


def _table(output: str) -> Iterator[Model]:
    header = re.search(_HEADER, output)
    if header is None:
        return
    titles = header[0].split()
    for line in output[header.end() :].split("\n"):
        cells = line.split()
        if len(cells) == len(titles):
            row = dict(zip(titles, cells, strict=True))
            thinks, context = row.get("thinking") == "yes", _tokens(row.get("context", ""))
            yield Model(row["provider"], row["model"], "pi", thinks, context=context)


def _tokens(written: str) -> int | None:
    """Parse `128K` or `1.5M`."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([KM]?)", written)
    return round(float(match[1]) * {"": 1, "K": 1000, "M": 1_000_000}[match[2]]) if match else None
