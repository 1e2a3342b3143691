"""Literal references against a catalog: the resolved model, warnings, refusals."""

from __future__ import annotations

import pytest
from subdeck.core.errors import ModelError
from subdeck.core.models.catalog import Catalog, Listing, Literal, Model, read_literal, settings_listing

from tests.core.models.catalogs import catalog

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
    """All forms work, with `:` and `/` in the id; a suffix is thinking unless the catalog has the id with it."""
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
    """An agent without a list of models gets any id unchecked."""
    assert expected == read_literal(ref, None)


def test_a_bare_id_of_several_providers() -> None:
    """The first provider in the catalog's order is used, and the others are named."""
    found = read_literal("test:low", catalog(*KNOWN))

    assert ("fake/test", "low") == (found.resolved, found.thinking)
    assert ("test means fake/test here; it could also be other/test, third/test",) == found.notices


def test_an_unknown_bare_id() -> None:
    """An unknown bare id is refused with similar ones, the first twenty known ones, and how to refresh the list."""
    many = catalog(*(f"p/model-{number:02}" for number in range(30)))
    with pytest.raises(ModelError) as caught:
        read_literal("modle-07", many)

    assert 'the model "modle-07" is not available: not in pi\'s list' == caught.value.what
    assert caught.value.hint.startswith("did you mean p/model-07")
    assert "p/model-19 …; refresh it" in caught.value.hint
    assert "p/model-25" not in caught.value.hint.partition("known:")[2]
    assert caught.value.brief_hint == "did you mean p/model-07?"


def test_a_bare_id_where_nothing_is_known() -> None:
    """Without any known model the hint is to name the provider, or to fetch the list."""
    with pytest.raises(ModelError) as caught:
        read_literal("haiku", catalog(own=False))

    assert "write it as provider/id; refresh it" == caught.value.hint


@pytest.mark.parametrize("ref", ["fake/tset:low", "fke/test", "tset", "nobody/zzz", "fake/zzz"])
def test_an_unknown_model_of_a_complete_list(ref: str) -> None:
    """A model missing in a complete list is refused before anything exists, even if its provider is known.

    The error names the list, similar or known models, and how to use the model anyway.
    """
    with pytest.raises(ModelError) as caught:
        read_literal(ref, catalog(*KNOWN, complete=True))

    written = ref.removesuffix(":low")
    assert f'the model "{written}" is not available: not in pi\'s list' == caught.value.what
    near = "did you mean fake/test" if "zzz" not in ref else "known: fake/test, fake/llama:8b"
    assert caught.value.hint.startswith(near)
    assert ("add it to models in " in caught.value.hint) is ("/" in ref)
    assert "refresh it" not in caught.value.hint


@pytest.mark.parametrize("ref", ["fake/tset", "fke/test", "fake/zzz"])
def test_an_unknown_model_of_a_list_that_may_lack_it(ref: str) -> None:
    """A model missing in an incomplete list is passed on with a warning that names the list and similar models."""
    found = read_literal(f"{ref}:low", catalog(*KNOWN))

    assert (ref, "low") == (found.resolved, found.thinking)
    (notice,) = found.notices
    assert notice.startswith(f"{ref} is not in pi's list: the agent may refuse it, or use a similar one; ")
    assert ("did you mean fake/test" if "zzz" not in ref else "known: fake/test") in notice
    assert notice.endswith("refresh it")


def test_a_model_of_another_machine() -> None:
    """A model for another machine is not checked against the complete list of this one."""
    known = catalog(*KNOWN, complete=True)
    known.is_of_this_machine = False
    assert "mine/x" == read_literal("mine/x", known).resolved


def test_where_nothing_of_the_agent_is_known() -> None:
    """Without any list of the agent an unknown model gets no warning."""
    assert Literal("mine/x") == read_literal("mine/x", catalog(own=False))


def test_a_model_without_a_key() -> None:
    """A built-in model that the agent's complete list lacks cannot be used: its key may be missing."""
    listings = [Listing((Model("p", "a", "pi"),), own=True, complete=True), Listing((Model("q", "b", "built in"),))]
    with pytest.raises(ModelError) as caught:
        read_literal("q/b", Catalog([lambda: listings[0], lambda: listings[1]]))
    assert caught.value.what.endswith("; its key may be missing")
    assert Literal("q/b") == read_literal("q/b", Catalog([lambda: listings[1]]))


def test_the_case_of_a_model() -> None:
    """A model is found in any case; if several differ only in case, the exact one is used."""
    known = catalog("fake/Test", "fake/test", "other/Big")
    assert ["fake/test", "fake/Test", "other/Big", "other/Big"] == [
        read_literal(ref, known).resolved for ref in ("fake/test", "FAKE/Test", "OTHER/big", "big")
    ]


def test_the_agent_is_asked_once_before_a_model_is_unknown() -> None:
    """An unknown model has the agent asked once for its list; a model still missing is refused without asking again."""
    told = [Listing((Model("p", "a", "pi"),), own=True, complete=True)]
    asked: list[str] = []

    def ask() -> bool:
        asked.append("asked")
        told[0] = Listing((Model("p", "a", "pi"), Model("p", "b", "pi")), own=True, complete=True)
        return True

    def known() -> Catalog:
        made = Catalog([lambda: told[0]])
        made.ask_again = ask
        return made

    assert "p/a" == read_literal("p/a", known()).resolved
    assert [] == asked
    fresh = known()
    assert "p/b" == read_literal("p/b", fresh).resolved
    with pytest.raises(ModelError):
        read_literal("p/c", fresh)
    assert ["asked"] == asked


def test_a_problem_of_the_catalog_is_part_of_the_hint() -> None:
    """A broken models.json is named in the hint for an unknown model."""
    broken = Catalog([lambda: Listing(problem="/a/models.json: invalid JSON")])
    with pytest.raises(ModelError) as caught:
        read_literal("mine", broken)

    assert "/a/models.json: invalid JSON" in caught.value.hint


def test_later_sources_are_read_only_when_needed() -> None:
    """A model of the first source needs no other source, and no source is read twice."""
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
    """Models of the settings with a provider are known, in their order and without duplicates."""
    known = Catalog(
        [lambda: settings_listing(["a/b", "bare", "@role/x", "c/d/e:8b"]), lambda: settings_listing(["a/b"])]
    )

    assert ["a/b", "c/d/e:8b"] == [model.ref for model in known.models()]
