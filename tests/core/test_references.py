"""Literal references against a catalog: which model is meant, what is passed on, what is refused."""

from __future__ import annotations

import pytest
from subdeck.core.errors import ModelError
from subdeck.core.models.catalog import Catalog, Listing, Literal, Model, read_literal, settings_listing

from tests.core.models import catalog

KNOWN = (
    "fake/test",
    "fake/llama:8b",
    "fake/x:high",
    "fake/org/model-x",
    "router/openai/gpt-oss",
    "openai/gpt",
    "other/test",
    "third/test",
)


@pytest.mark.parametrize(
    ("ref", "resolved", "thinking"),
    [
        ("fake/test", "fake/test", None),
        ("fake/test:low", "fake/test", "low"),
        ("fake/test:max", "fake/test", "max"),
        ("fake/llama:8b", "fake/llama:8b", None),
        ("fake/llama:8b:low", "fake/llama:8b", "low"),
        ("fake/x:high", "fake/x:high", None),
        ("fake/x:high:low", "fake/x:high", "low"),
        ("fake/org/model-x", "fake/org/model-x", None),
        ("fake/org/model-x:off", "fake/org/model-x", "off"),
        ("FAKE/test", "fake/test", None),
        ("gpt", "openai/gpt", None),
        ("gpt:high", "openai/gpt", "high"),
        ("llama:8b", "fake/llama:8b", None),
        ("llama:8b:minimal", "fake/llama:8b", "minimal"),
        ("org/model-x", "fake/org/model-x", None),
        ("openai/gpt-oss", "router/openai/gpt-oss", None),
        ("openai/gpt-oss:low", "router/openai/gpt-oss", "low"),
    ],
)
@pytest.mark.parametrize("complete", [False, True])
def test_forms(ref: str, resolved: str, thinking: str | None, complete: bool) -> None:
    """All forms, with `:` and `/` in the id too; a suffix is thinking unless the catalog has the id with it."""
    assert Literal(resolved, thinking) == read_literal(ref, catalog(*KNOWN, complete=complete))


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("a/b", Literal("a/b")),
        ("a/b:8b:low", Literal("a/b:8b", "low")),
        ("haiku", Literal("haiku")),
        ("haiku:high", Literal("haiku", "high")),
        (":high", Literal(":high")),
    ],
)
def test_without_a_catalog(ref: str, expected: Literal) -> None:
    """An agent without a list of models gets any id unseen."""
    assert expected == read_literal(ref, None)


def test_a_bare_id_of_several_providers() -> None:
    """The first in the order of the catalog counts, and the others are named."""
    found = read_literal("test:low", catalog(*KNOWN))

    assert ("fake/test", "low") == (found.resolved, found.thinking)
    assert ("test is fake/test here; it could be other/test, third/test too",) == found.notices


def test_an_unknown_bare_id() -> None:
    """It is refused with near ones and with the first twenty known ids, and with how to learn more of them."""
    many = catalog(*(f"p/model-{number:02}" for number in range(30)))
    with pytest.raises(ModelError) as caught:
        read_literal("modle-07", many)

    assert 'the model "modle-07" is not known here' == caught.value.what
    assert caught.value.hint.startswith("did you mean model-07")
    assert "model-19 …; refresh it" in caught.value.hint
    assert "model-25" not in caught.value.hint.partition("Known ids:")[2]
    assert caught.value.brief_hint == "did you mean p/model-07?"


def test_a_bare_id_where_nothing_is_known() -> None:
    """Without any known model the hint is to name the provider, or to fetch the list."""
    with pytest.raises(ModelError) as caught:
        read_literal("haiku", catalog(own=False))

    assert "write it as provider/id; refresh it" == caught.value.hint


@pytest.mark.parametrize("complete", [False, True])
def test_an_unknown_id_of_a_known_provider(complete: bool) -> None:
    """The agent runs it, or one that is alike: so do we, and say it with near ids."""
    found = read_literal("fake/tset:low", catalog(*KNOWN, complete=complete))
    (notice,) = found.notices

    assert ("fake/tset", "low") == (found.resolved, found.thinking)
    assert "fake/tset is not known to fake: the agent may take it as it is, or use a similar one" in notice
    assert "did you mean test" in notice
    assert ("refresh it" in notice) is not complete


def test_an_unknown_provider_of_a_complete_catalog() -> None:
    """The agent would not start with it, so it is refused before anything exists."""
    with pytest.raises(ModelError) as caught:
        read_literal("anthropc/opus", catalog("anthropic/opus", "openai/gpt", complete=True))

    assert 'the model "anthropc/opus" is of the provider "anthropc", which the agent does not know' == caught.value.what
    assert "did you mean anthropic?" == caught.value.hint


def test_an_unknown_provider_of_an_incomplete_catalog() -> None:
    """Where the agent may know more than we do it is passed on with a warning."""
    found = read_literal("mine/x", catalog(*KNOWN))

    assert Literal("mine/x", None, ("mine/x is not known here, nor is its provider; refresh it",)) == found


def test_where_nothing_of_the_agent_is_known() -> None:
    """Without any list of the agent there is nothing to find a model strange by, so nothing is said."""
    assert Literal("mine/x") == read_literal("mine/x", catalog(own=False))


def test_a_model_without_a_key() -> None:
    """A model that the agent brings along but does not list now is said to lack its key."""
    listings = [Listing((Model("p", "a", "pi"),), own=True, complete=True), Listing((Model("q", "b", "built in"),))]
    found = read_literal("q/b", Catalog([lambda: listings[0], lambda: listings[1]]))

    assert ("q/b is not in the list of models that the agent has now: its key may be missing",) == found.notices


def test_a_problem_of_the_catalog_is_part_of_the_hint() -> None:
    """Who named a model of a broken models.json learns that this is why."""
    broken = Catalog([lambda: Listing(problem="/a/models.json: it is not valid JSON")])
    with pytest.raises(ModelError) as caught:
        read_literal("mine", broken)

    assert "/a/models.json: it is not valid JSON" in caught.value.hint


def test_later_sources_are_read_only_when_needed() -> None:
    """A model that the first source knows costs no look at the others, and none is read twice."""
    read: list[str] = []

    def source(name: str, *models: Model) -> Listing:
        read.append(name)
        return Listing(models)

    both = Catalog([lambda: source("first", Model("a", "b", "x")), lambda: source("second", Model("a", "c", "x"))])
    read_literal("a/b", both)
    assert ["first"] == read
    read_literal("a/c", both)
    read_literal("a/b", both)
    assert ["first", "second"] == read


def test_models_of_the_settings() -> None:
    """What the settings offer is known, as far as it names a provider; order is kept and doubles are dropped."""
    known = Catalog(
        [lambda: settings_listing(["a/b", "bare", "@role/x", "c/d/e:8b"]), lambda: settings_listing(["a/b"])]
    )

    assert ["a/b", "c/d/e:8b"] == [model.ref for model in known.models()]
