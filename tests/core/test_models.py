"""Models: who may name one, what is refused, and what the agent is told."""

from __future__ import annotations

import pytest
from subdeck.core.errors import ModelError
from subdeck.core.models import ResolvedModel, resolve_model
from subdeck.core.preset_file import Preset
from subdeck.core.runs import PresetSource
from subdeck.core.settings import Settings


def preset(model: str | None) -> Preset:
    return Preset(name="scout", description="d", source=PresetSource.PROJECT, path="/p/scout.md", model=model)


@pytest.mark.parametrize(
    ("call", "of_preset", "default", "expected"),
    [
        ("a/call", "a/preset", "a/default", ResolvedModel("a/call", "a/call", "call")),
        (None, "a/preset", "a/default", ResolvedModel("a/preset", "a/preset", "preset")),
        (None, None, "a/default", ResolvedModel("a/default", "a/default", "default_model")),
        ("", "a/preset", None, ResolvedModel("a/preset", "a/preset", "preset")),
        (" \t", "  ", "a/default", ResolvedModel("a/default", "a/default", "default_model")),
        (" a/call ", None, None, ResolvedModel("a/call", "a/call", "call")),
        ("fake/org/llama:8b:high", None, None, ResolvedModel(*["fake/org/llama:8b:high"] * 2, "call")),
        ("haiku", None, None, ResolvedModel("haiku", "haiku", "call")),
    ],
)
def test_the_nearest_model_counts(
    call: str | None, of_preset: str | None, default: str | None, expected: ResolvedModel
) -> None:
    """The call goes before the preset, the preset before default_model, and blank counts as absent."""
    assert expected == resolve_model(call, preset(of_preset), Settings(default_model=default), "pi")


def test_no_model_names_all_three_places() -> None:
    """Without any model the error names the call, the preset with its file, and default_model."""
    with pytest.raises(ModelError) as caught:
        resolve_model(None, preset(None), Settings(), "pi")

    assert 'the call names none, the preset "scout" names none, and default_model is not set' in caught.value.what
    assert "/p/scout.md" == caught.value.where
    for place in ("--model", "model: provider/id", "default_model in", "subdeck/config.yaml"):
        assert place in caught.value.hint


def test_an_ad_hoc_run_without_a_model() -> None:
    """Where there is no preset the error does not speak of its file."""
    with pytest.raises(
        ModelError, match="no model: the call names none, there is no preset, and default_model"
    ) as caught:
        resolve_model("", None, Settings(), "pi")

    assert "" == caught.value.where


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (None, ResolvedModel("", "offline/reader", "agent")),
        ("never/heard-of", ResolvedModel("never/heard-of", "offline/reader", "call")),
    ],
)
def test_the_offline_agent_uses_no_model(call: str | None, expected: ResolvedModel) -> None:
    """It needs none and takes any literal id, and what it resolves to is what it will report."""
    assert expected == resolve_model(call, None, Settings(), "offline")


@pytest.mark.parametrize("agent", ["pi", "offline"])
@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("@fast", 'the model "@fast" names a role, and no role of that name is known'),
        ("@", "names a role"),
        ("inherit", "no parent is known"),
        ("-h", 'begins with "-"'),
        ("a/b\x00", "control character"),
        ("a/b\nc", "control character or a line break"),
        ("a\x1b[31m/b", 'the model "a/b" has a control character'),
        ("a/b\udc80", "control character"),
    ],
)
def test_what_cannot_be_a_model(agent: str, model: str, why: str) -> None:
    """A role nobody knows and a text that is no id are refused, by every agent, without echoing control characters."""
    with pytest.raises(ModelError) as caught:
        resolve_model(model, None, Settings(), agent)

    assert why in caught.value.what
    assert "provider/id" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "of_preset", "default", "where"),
    [
        ("@x", None, None, "the model of this call"),
        (None, "@x", None, "/p/scout.md"),
        (None, None, "@x", "the setting default_model"),
    ],
)
def test_an_error_names_where_the_model_came_from(
    call: str | None, of_preset: str | None, default: str | None, where: str
) -> None:
    """Who reads the error knows which file, setting or argument to change."""
    with pytest.raises(ModelError) as caught:
        resolve_model(call, preset(of_preset), Settings(default_model=default), "pi")

    assert where == caught.value.where
