"""Roles: where they are set, the models that they name, and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subdeck.core.agents.choice import with_role
from subdeck.core.config.settings import Settings
from subdeck.core.errors import ModelError
from subdeck.core.launch.model import ResolvedModel, inherits, resolve_model
from subdeck.core.models.resolvers import Available, Probe, RolesResolver, provider_roles

from tests.core.models.catalogs import catalog

KNOWN = catalog("anthropic/haiku", "openai/gpt", complete=True)


@pytest.fixture
def providers(home: Path) -> Path:
    path = home / ".pi" / "agent" / "providers.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def resolved(ref: str, **roles: str) -> ResolvedModel:
    return resolve_model(ref, None, Settings(roles=roles), catalog=KNOWN)


@pytest.mark.parametrize(
    ("target", "model", "thinking"),
    [
        ("anthropic/haiku", "anthropic/haiku", None),
        ("anthropic/haiku:high", "anthropic/haiku", "high"),
        ("gpt:low", "openai/gpt", "low"),
        (" anthropic/haiku ", "anthropic/haiku", None),
    ],
)
@pytest.mark.parametrize("key", ["fast", "@fast"])
def test_a_role_of_pi(providers: Path, key: str, target: str, model: str, thinking: str | None) -> None:
    """Roles are read from pi's providers.json, in any literal form."""
    providers.write_text(json.dumps({"roles": {key: target}, "other": [1]}))

    assert ResolvedModel("@fast", model, "call", thinking) == resolved("@fast")


def test_the_settings_go_first(providers: Path) -> None:
    """A role in the settings comes first, so a broken providers.json does not matter."""
    providers.write_text("{")

    assert "openai/gpt" == resolved("@fast", fast="openai/gpt").resolved


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("@other", 'the role points to another role, "@other"'),
        ("@fast", "the role points to itself"),
        ("", "the role points to nothing"),
        ("  ", "the role points to nothing"),
        ("haikuu", 'the model "haikuu" is not available: not in pi\'s list; did you mean anthropic/haiku?'),
        ("nobody/x", 'the model "nobody/x" is not available'),
        ("-x", 'the model "-x" begins with "-"'),
        ("a\nb", "contains a control character"),
    ],
)
def test_a_role_that_leads_nowhere(providers: Path, target: str, why: str) -> None:
    """A role that names another role, itself, nothing or an unknown model has its own error, with the place
    to fix it.
    """
    providers.write_text(json.dumps({"roles": {"fast": target, "other": "openai/gpt"}}))
    with pytest.raises(ModelError) as caught:
        resolved("@fast")

    assert caught.value.what.startswith('the model "@fast" cannot be resolved: ')
    assert why in caught.value.what
    for place in ('set "fast" under roles', "config.yaml", "providers.json"):
        assert place in caught.value.hint


def test_a_role_nobody_has_set(providers: Path) -> None:
    """An unknown role differs from a missing resolver, and its error lists the known roles."""
    providers.write_text(json.dumps({"roles": {"deep": "openai/gpt"}}))
    with pytest.raises(ModelError, match="unknown role; known: @deep, @wide"):
        resolved("@qqqq", wide="openai/gpt")
    probe = Probe("@qqqq")
    RolesResolver({}, KNOWN)(probe)

    assert Available(roles={"deep": "openai/gpt"}) == probe.available


def test_no_roles_at_all() -> None:
    """If no role is set, the built-in resolver does nothing."""
    probe = Probe("@fast")
    RolesResolver({}, KNOWN)(probe)

    assert (None, False) == (probe.error, probe.is_answered)
    with pytest.raises(ModelError, match="is a role, but no roles are configured here"):
        resolved("@fast")


def test_what_is_answered_or_literal_is_left_alone() -> None:
    """The resolver skips models that are already resolved, or that are not roles."""
    answered, literal = Probe("@fast", resolved="a/b"), Probe("anthropic/haiku")
    for probe in (answered, literal):
        RolesResolver({"fast": "openai/gpt"}, KNOWN)(probe)

    assert ("a/b", None) == (answered.resolved, literal.resolved)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "invalid JSON"),
        (b"", "invalid JSON"),
        (b"[]", '"roles" is not an object'),
        (b'{"roles": ["fast"]}', '"roles" is not an object'),
        (b'{"roles": {"fast": 5}}', 'the role "fast" is not a text'),
        (b'{"roles": {"fast": null}}', 'the role "fast" is not a text'),
        (b'{"roles": {"fast": "a/\xff"}}', "the file is not UTF-8 text"),
        (b'{"roles": {}}' + b" " * 1024 * 1024, "the file is too large"),
    ],
)
def test_a_broken_file(providers: Path, content: bytes, why: str) -> None:
    """A file that cannot be read is an error with its path, not an unknown role."""
    providers.write_bytes(content)
    with pytest.raises(ModelError, match=why):
        provider_roles()
    with pytest.raises(ModelError) as caught:
        resolved("@fast")

    assert why in caught.value.what
    assert str(providers) in caught.value.what


@pytest.mark.parametrize("content", ['{"providers": {}}', '{"roles": {}}'])
def test_a_file_without_roles(providers: Path, content: str) -> None:
    """A file without roles sets none."""
    assert {} == provider_roles()
    providers.write_text(content)
    assert {} == provider_roles()


def test_another_agent_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PI_CODING_AGENT_DIR` moves providers.json with pi's other files."""
    (tmp_path / "providers.json").write_text('{"roles": {"fast": "openai/gpt"}}')
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))

    assert {"fast": "openai/gpt"} == provider_roles()


@pytest.mark.parametrize(("parent", "model"), [("anthropic/haiku", "anthropic/haiku"), (None, "")])
@pytest.mark.parametrize("call", ["@fast", None])
def test_a_role_may_be_inherited(call: str | None, parent: str | None, model: str) -> None:
    """A role set to `inherit` is the parent's model. If that is unknown, the agent's own default is used."""
    settings = Settings(roles={"fast": "inherit"}, default_model="@fast")
    source = "call" if call else "default_model"
    expected = ResolvedModel("@fast", model, source, inherits=True)
    assert expected == resolve_model(call, None, settings, catalog=KNOWN, parent=parent)
    assert ("", True, False) == (with_role("@fast", settings), inherits("@fast", settings), inherits("@slow", settings))
