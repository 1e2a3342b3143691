"""Resolvers: their order, the winning answer, and the behaviour with and without the built-in roles."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.errors import ModelError
from subdeck.core.launch.model import ResolvedModel, resolve_model
from subdeck.core.models.resolvers import Available, Probe, Resolver, RolesResolver, ask, installed_resolvers

from tests.core.models.catalogs import catalog

KNOWN = catalog("anthropic/haiku", "openai/gpt", complete=True)
ROLES = RolesResolver({"fast": "anthropic/haiku:low"}, KNOWN)


def resolving(text: str, thinking: str | None = None) -> Resolver:
    def resolve(probe: Probe) -> None:
        if not probe.is_answered:
            probe.resolved = probe.model = text
            probe.thinking_level = thinking

    return resolve


def failing(error: str) -> Resolver:
    def resolve(probe: Probe) -> None:
        probe.error = error
        probe.available = Available(models=(error,))

    return resolve


def silent(probe: Probe) -> None:
    pass


@pytest.mark.parametrize(
    ("resolvers", "ref", "expected"),
    [
        ([ROLES], "@fast", ResolvedModel("@fast", "anthropic/haiku", "call", "low")),
        ([ROLES], "anthropic/haiku", ResolvedModel("anthropic/haiku", "anthropic/haiku", "call")),
        ([ROLES], "anthropic/haiku:high", ResolvedModel("anthropic/haiku:high", "anthropic/haiku", "call", "high")),
        ([ROLES], "haiku", ResolvedModel("haiku", "anthropic/haiku", "call")),
        ([ROLES, resolving("other/x")], "@fast", ResolvedModel("@fast", "anthropic/haiku", "call", "low")),
        ([ROLES, resolving("other/x")], "@slow", ResolvedModel("@slow", "other/x", "call")),
        ([ROLES, resolving("other/x")], "anthropic/haiku", ResolvedModel("anthropic/haiku", "other/x", "call")),
        ([ROLES, resolving("other/x")], "haiku", ResolvedModel("haiku", "other/x", "call")),
        ([], "@fast", 'the model "@fast" is a role, but no roles are configured here'),
        ([], "anthropic/haiku", ResolvedModel("anthropic/haiku", "anthropic/haiku", "call")),
        ([], "haiku", ResolvedModel("haiku", "anthropic/haiku", "call")),
        ([], "haikuu", 'the model "haikuu" is not available: not in pi\'s list'),
        ([silent], "@fast", 'the model "@fast" is a role, but no roles are configured here'),
        (
            [ROLES],
            "@fst",
            'the model "@fst" cannot be resolved: unknown role; did you mean @fast?; known: @fast',
        ),
    ],
)
def test_the_behaviour_matrix(resolvers: Sequence[Resolver], ref: str, expected: ResolvedModel | str) -> None:
    """With built-in roles, another package or none, only roles need a resolver: literals always work.

    An unknown role, an unknown model and a missing resolver give different errors.
    """
    if isinstance(expected, ResolvedModel):
        assert expected == resolve_model(ref, None, Settings(), catalog=KNOWN, resolvers=resolvers)
        return
    with pytest.raises(ModelError) as caught:
        resolve_model(ref, None, Settings(), catalog=KNOWN, resolvers=resolvers)

    assert expected == caught.value.what


def test_what_a_probe_carries() -> None:
    """A resolver sees and fills the fields of pi's resolvers, under their names."""
    probe = Probe("@fast", "a/b", "a/b", "high", {"ok": True}, None, Available({"fast": "a/b"}, ("a/b",)))
    fields = {"ref", "resolved", "model", "thinkingLevel", "auth", "error", "available"}

    assert fields == set(msgspec.to_builtins(probe)) - {"notices"}
    assert {"roles", "models"} == set(msgspec.to_builtins(probe)["available"])


def test_the_first_success_ends_the_asking() -> None:
    """A resolver after a successful one is not called."""
    asked: list[str] = []

    def late(probe: Probe) -> None:
        asked.append(probe.ref)

    assert "a/b" == ask("@x", [silent, resolving("a/b"), late]).resolved
    assert [] == asked


def test_the_first_error_sticks() -> None:
    """Of several errors the first is reported, with its resolver's known models."""
    probe = ask("@x", [failing("one"), failing("two")])

    assert ("one", Available(models=("one",)), False) == (probe.error, probe.available, probe.is_answered)


def test_a_success_after_an_error() -> None:
    """A role unknown to one resolver may be known to another."""
    probe = ask("@x", [failing("one"), resolving("a/b", "low")])

    assert ("a/b", "low", None) == (probe.resolved, probe.thinking_level, probe.error)


def test_an_error_of_a_resolver_keeps_the_catalog_out() -> None:
    """The catalog is used only if no resolver answered or refused, even for literals."""
    with pytest.raises(ModelError) as caught:
        resolve_model("haiku", None, Settings(), catalog=KNOWN, resolvers=[failing("not today")])

    assert 'the model "haiku" cannot be resolved: not today' == caught.value.what
    assert "known: not today" == caught.value.hint


def test_a_resolver_that_raises() -> None:
    """A crash in another package becomes an error with its name, and the next resolver is called."""

    def broken(probe: Probe) -> None:
        raise ValueError("oh\x1b[2J")

    assert "a/b" == ask("@x", [broken, resolving("a/b")]).resolved
    error = ask("@x", [broken]).error or ""
    assert "broken failed: ValueError: oh" in error
    assert "\x1b" not in error


class Opaque:
    """A model in another package's own type."""


@pytest.mark.parametrize(
    ("resolved", "model", "thinking", "expected"),
    [
        ("a/b", Opaque(), "high", "a/b"),
        ("a/b", None, None, "a/b"),
        (None, "a/b", None, "a/b"),
        (None, Opaque(), None, None),
        ("@other", "x", None, None),
        ("-x", "x", None, None),
        ("a\nb", "x", None, None),
        ("a/b", "x", "hard", None),
    ],
)
def test_what_a_resolver_may_answer(
    resolved: str | None, model: object, thinking: str | None, expected: str | None
) -> None:
    """An answer must be a valid model id; anything else is an error, never a program's argument."""

    def resolve(probe: Probe) -> None:
        probe.resolved, probe.model, probe.thinking_level = resolved, model, thinking

    if expected:
        assert expected == resolve_model("@x", None, Settings(), resolvers=[resolve]).resolved
    else:
        with pytest.raises(ModelError):
            resolve_model("@x", None, Settings(), resolvers=[resolve])


def test_a_missing_key_is_said() -> None:
    """A missing key known to a resolver is a notice, and the run can start."""

    def resolve(probe: Probe) -> None:
        probe.resolved, probe.auth = "a/b", {"ok": False, "error": "no key for a"}

    assert ("a/b: no key for a",) == resolve_model("@x", None, Settings(), resolvers=[resolve]).notices


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another package with a working resolver and one that cannot be loaded."""
    (tmp_path / "other_package.py").write_text("def resolve(probe):\n    probe.resolved = 'their/' + probe.ref[1:]\n")
    info = tmp_path / "other_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[subdeck.model_resolvers]\nbroken = not_a_module:resolve\ntheirs = other_package:resolve\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed_resolvers.cache_clear()
    yield
    installed_resolvers.cache_clear()
    sys.modules.pop("other_package", None)


@pytest.mark.usefixtures("installed")
def test_another_package_resolves() -> None:
    """An entry point of our group is called after the roles; one that cannot be loaded adds only its error."""
    settings = Settings(roles={"mine": "a/b"})

    assert "a/b" == resolve_model("@mine", None, settings).resolved
    assert "their/theirs" == resolve_model("@theirs", None, settings).resolved
    broken = ask("@x", installed_resolvers()[:1]).error or ""
    assert broken.startswith("cannot load the resolver broken: ")
