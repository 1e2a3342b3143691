"""pi's model list, read with and without starting pi."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.agents.agent import AgentChoice
from subdeck.core.agents.choice import catalog_of, choose_agent
from subdeck.core.agents.pi._models import built_in_listing, cache_file, last_listing_of, list_key, models_json_listing
from subdeck.core.agents.pi.agent import AGENT, thinking_levels
from subdeck.core.config.settings import Settings
from subdeck.core.errors import AgentUnavailable
from subdeck.core.models.catalog import Listing, Model, Price

from tests.real.lab import EITHER_PI

TABLE = """\
provider  model         context  max-out  thinking  images
fake      org/llama:8b  128K     16.4K    yes       no    
fake      test          128K     16.4K    no        no    
"""  # noqa: W291 - as pi pads it
LISTED = (
    Model("fake", "org/llama:8b", "pi", True, context=128_000),
    Model("fake", "test", "pi", False, context=128_000),
)


@pytest.fixture
def agent_dir(home: Path) -> Path:
    path = home / ".pi" / "agent"
    path.mkdir(parents=True, exist_ok=True)
    return path


def program(path: Path, script: str) -> tuple[str, ...]:
    """Make a pi that is a shell script and counts its starts."""
    path.write_text(f'#!/bin/sh\necho started "$@" >> {path}.starts\n{script}\n')
    path.chmod(0o755)
    return (str(path),)


def refresh_models(command: tuple[str, ...]) -> tuple[Model, ...]:
    return tuple(AGENT.refresh(AgentChoice("pi", command, (), True)))


def cached_listing(command: tuple[str, ...]) -> Listing:
    listing = last_listing_of(AgentChoice("pi", command, (), True))
    assert "the list from pi --list-models" == listing.source
    return replace(listing, source="")


def starts(command: tuple[str, ...]) -> list[str]:
    file = Path(f"{command[0]}.starts")
    return file.read_text().splitlines() if file.exists() else []


def listing(tmp_path: Path, table: str = TABLE, *, stream: int = 1) -> tuple[str, ...]:
    (tmp_path / "table").write_text(table)
    return program(tmp_path / "pi", f"cat {tmp_path}/table >&{stream}")


@pytest.mark.processes
@pytest.mark.parametrize("stream", [1, 2])
def test_refreshing_starts_pi_once(tmp_path: Path, stream: int) -> None:
    """The table is read from either stream and cached, so later reads start nothing."""
    command = listing(tmp_path, stream=stream)

    assert LISTED == refresh_models(command)
    assert ["started --list-models"] == starts(command)
    for _ in range(3):
        assert Listing(LISTED, own=True, complete=True) == cached_listing(command)
    assert ["started --list-models"] == starts(command)
    assert 0o600 == os.stat(cache_file(command)).st_mode & 0o777


@pytest.mark.processes
def test_a_refused_start_keeps_the_older_list(tmp_path: Path) -> None:
    """If pi fails, the earlier list stays."""
    command = listing(tmp_path)
    refresh_models(command)
    program(tmp_path / "pi", "echo 'Error: \x1b[31mbad flag' >&2; exit 1")
    with pytest.raises(AgentUnavailable, match="pi could not list its models: Error: bad flag") as caught:
        refresh_models(command)

    assert f"{command[0]} --list-models" == caught.value.where
    assert LISTED == cached_listing(command).models


@pytest.mark.processes
@pytest.mark.parametrize("script", ["exit 3", "true", "echo hello", "kill -9 $$"])
def test_a_program_that_lists_nothing(tmp_path: Path, script: str) -> None:
    """Output without a table or pi's message for no models is an error."""
    with pytest.raises(AgentUnavailable, match="could not list its models"):
        refresh_models(program(tmp_path / "pi", script))


@pytest.mark.processes
def test_a_program_that_is_gone(tmp_path: Path) -> None:
    """A pi that cannot be started is an error."""
    with pytest.raises(AgentUnavailable, match="No such file"):
        refresh_models((str(tmp_path / "gone"),))


@pytest.mark.processes
def test_no_models_is_a_list(tmp_path: Path) -> None:
    """Without a key, pi prints a message: the list is empty and complete."""
    command = program(tmp_path / "pi", "echo 'No models available. Use /login to log into a provider.'")

    assert () == refresh_models(command)
    assert Listing((), own=True, complete=True) == cached_listing(command)


@pytest.mark.processes
@pytest.mark.parametrize("changed", ["pi", "models.json", "auth.json", "settings.json", "environment"])
def test_a_list_gets_out_of_date(
    tmp_path: Path, agent_dir: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """If pi, its files or the keys in the environment change, the models are still known, but maybe not all."""
    command = listing(tmp_path)
    refresh_models(command)
    if changed == "environment":
        monkeypatch.setenv("SOME_API_KEY", "secret")
    elif changed == "pi":
        os.utime(command[0], ns=(1, 1))
    else:
        (agent_dir / changed).write_text("{}")

    assert Listing(LISTED, own=True, complete=False) == cached_listing(command)
    assert "secret" not in str(list_key(command))


@pytest.mark.processes
@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"key": 1}'])
def test_a_broken_cache_is_no_list(tmp_path: Path, content: bytes) -> None:
    """The cache can be rebuilt, so a broken file is not an error."""
    command = listing(tmp_path)
    refresh_models(command)
    Path(cache_file(command)).write_bytes(content)

    assert Listing() == cached_listing(command)


@pytest.mark.processes
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that cannot save the list is an error with the directory."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(AgentUnavailable, match="cannot save the list of models") as caught:
        refresh_models(listing(tmp_path))

    assert paths.cache_dir() == caught.value.where


def test_models_json(agent_dir: Path) -> None:
    """The user's own models are read, despite comments and trailing commas, also from providers without models."""
    (agent_dir / "models.json").write_text(
        """{"providers": { // mine
          "fake": {"baseUrl": "http://127.0.0.1/v1",
            "models": [{"id": "a/b:8b", "reasoning": true,}, {"id": "c"}, {}, 5]},
          "anthropic": {"baseUrl": "http://x//y"},
        }}"""
    )

    assert (
        Listing((Model("fake", "a/b:8b", "models.json", True), Model("fake", "c", "models.json", False)))
        == models_json_listing()
    )


@pytest.mark.parametrize("content", ["[]", "{}", '{"providers": []}', '{"providers": {"x": 1}}'])
def test_a_strange_models_json(agent_dir: Path, content: str) -> None:
    """Other content has no models."""
    assert Listing() == models_json_listing()
    (agent_dir / "models.json").write_text(content)
    assert () == models_json_listing().models


@pytest.mark.parametrize(("content", "what"), [(b"{", "invalid JSON"), (b"\xff", "the file is not UTF-8 text")])
def test_a_broken_models_json(agent_dir: Path, content: bytes, what: str) -> None:
    """It is a problem with its path, because pi then drops all models of the file without a message."""
    (agent_dir / "models.json").write_bytes(content)

    assert models_json_listing().problem.startswith(f"{agent_dir}/models.json: {what}")


@pytest.fixture
def package(tmp_path: Path) -> tuple[str, ...]:
    """A pi as npm installs it, with the generated file of models."""
    scope = tmp_path / "node_modules" / "@scope"
    for name in ("pi-coding-agent", "pi-ai"):
        (scope / name / "dist").mkdir(parents=True)
    (scope / "pi-coding-agent" / "package.json").write_text('{"name": "@scope/pi-coding-agent", "version": "0.73.1"}')
    program(scope / "pi-coding-agent" / "dist" / "cli.js", "exit 99")
    models = "".join(
        f'        "{id_}": {{\n            id: "{id_}",\n            name: "N",\n            provider: "{provider}",\n'
        f'            reasoning: {thinks},\n            input: ["text"],\n            cost: {{\n'
        "                input: 1,\n                output: 2.5,\n            },\n        },\n"
        for provider, id_, thinks in (("anthropic", "haiku", "true"), ("router", "a/b:free", "false"))
    )
    (scope / "pi-ai" / "dist" / "models.generated.js").write_text(f"export const MODELS = {{\n{models}}};\n")
    return (str(scope / "pi-coding-agent" / "dist" / "cli.js"),)


def test_what_the_package_brings(package: tuple[str, ...]) -> None:
    """The models of pi's package are read from its file, without node."""
    price = Price(1, 2.5)
    haiku = Model("anthropic", "haiku", "built in", True, price=price)
    models = (haiku, Model("router", "a/b:free", "built in", False, price=price))
    assert Listing(models, own=True, source="the models that come with pi") == built_in_listing(package)
    assert [] == starts(package)


def test_what_a_newer_package_brings(package: tuple[str, ...]) -> None:
    """Since 0.87 each provider has a JSON file. Models that are not for chats are skipped."""
    ai = Path(package[0]).parents[2] / "pi-ai" / "dist"
    (ai / "models.generated.js").write_text('import { X } from "./providers/x.js";\n')
    data = ai / "providers" / "data"
    data.mkdir(parents=True)
    entry = {"id": "haiku", "provider": "anthropic", "reasoning": True, "cost": {"input": 1, "output": 5}}
    entry["contextWindow"] = 200_000
    free = {"id": "a/b:free", "provider": "router", "type": "chat", "reasoning": False}
    others = {kind: {"id": kind, "provider": "router", "type": kind} for kind in ("image", "classifier")}
    (data / "anthropic.json").write_text(json.dumps({"anthropic-messages": {"haiku": entry}}))
    (data / "router.json").write_text(json.dumps({"openai-completions": {"chat:a/b:free": free, **others}}))
    (data / "torn.json").write_text('{"openai-completions": {"x": {"id": "x", "prov')
    (data / ".manifest.json").write_text(json.dumps({"api": {"m": entry}}))

    haiku = Model("anthropic", "haiku", "built in", True, context=200_000, price=Price(1, 5))
    assert (haiku, Model("router", "a/b:free", "built in", False)) == built_in_listing(package).models
    assert [] == starts(package)


@pytest.mark.parametrize("content", [b"", b"\xff", b"export const M={a:{id:'a'}}", None])
def test_a_package_of_another_make(package: tuple[str, ...], content: bytes | None) -> None:
    """If the file is missing or has another format, the list is empty."""
    file = Path(package[0]).parents[2] / "pi-ai" / "dist" / "models.generated.js"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)

    assert Listing() == built_in_listing(package)


def test_the_order_of_the_catalog(package: tuple[str, ...], agent_dir: Path) -> None:
    """Models in the settings come first, then models.json, pi's list and its built-in models. Nothing is started."""
    (agent_dir / "models.json").write_text('{"providers": {"mine": {"models": [{"id": "haiku"}]}}}')
    choice = AgentChoice("pi", package, (), True)
    catalog = catalog_of(choice, Settings(models=("set/haiku", "@role", "bare")))

    assert catalog
    assert ["set/haiku", "mine/haiku", "anthropic/haiku"] == [model.ref for model in catalog.named("haiku")]
    assert (True, False) == (catalog.has_own_list, catalog.is_complete)
    assert [] == starts(package)


def test_the_offline_agent_has_no_catalog() -> None:
    """It accepts any model."""
    settings = Settings()

    assert catalog_of(choose_agent("offline", settings), settings) is None


@pytest.mark.parametrize(
    ("version", "highest"), [("0.73.1", "xhigh"), ("0.80.5", "xhigh"), ("0.80.6", "max"), ("1.5.2", "max"), ("", "max")]
)
def test_thinking_levels(version: str, highest: str) -> None:
    """Newer pi versions have one more level, and an unknown version has all."""
    assert highest == thinking_levels(version)[-1]


@pytest.mark.processes
def test_what_pi_makes_while_it_lists(tmp_path: Path, agent_dir: Path) -> None:
    """A file that pi creates during the first listing does not make the list outdated."""
    (tmp_path / "table").write_text(TABLE)
    command = program(tmp_path / "pi", f"touch {agent_dir}/auth.json; cat {tmp_path}/table")
    refresh_models(command)
    assert cached_listing(command).complete


@pytest.mark.processes
def test_a_node_that_is_too_old(tmp_path: Path) -> None:
    """If pi fails because of its Node.js, the error has the required and the installed version."""
    engines = {"node": ">=22.19.0"}
    (tmp_path / "package.json").write_text(
        json.dumps({"name": "@x/pi-coding-agent", "version": "1.5.2", "engines": engines})
    )
    (tmp_path / "bin").mkdir()
    script = "echo 'SyntaxError: no export named x' >&2; echo 'Node.js v20.20.2' >&2; exit 1"
    with pytest.raises(AgentUnavailable, match=r"requires node 22\.19\.0 or newer, but this is 20\.20\.2"):
        refresh_models(program(tmp_path / "bin" / "pi", script))


@EITHER_PI
@pytest.mark.pi
def test_the_real_pi(pi_executable: str, agent_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has the hundreds of models that come with pi, and those in your own settings."""
    monkeypatch.setenv("PI_OFFLINE", "1")
    config = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "sk-fake"}
    models = [{"id": "test"}, {"id": "org/llama:8b", "reasoning": True}]
    (agent_dir / "models.json").write_text(json.dumps({"providers": {"fake": {**config, "models": models}}}))
    built_in = built_in_listing((pi_executable,)).models

    assert len(built_in) > 500
    assert {"anthropic", "openai", "openrouter"} < {model.provider for model in built_in}
    assert LISTED == refresh_models((pi_executable,))
