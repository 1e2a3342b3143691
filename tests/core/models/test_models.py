"""Models: which layer names one, what is refused, and what the agent gets."""

from __future__ import annotations

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.errors import ModelError
from subdeck.core.launch.model import ResolvedModel, resolve_model
from subdeck.core.models.resolvers import Probe
from subdeck.core.presets.file import Preset
from subdeck.core.run.model import PresetSource

from tests.core.models.catalogs import catalog


def preset(model: str | None, thinking: str | None = None) -> Preset:
    return Preset(
        name="scout", description="d", source=PresetSource.PROJECT, path="/p/scout.md", model=model, thinking=thinking
    )


@pytest.mark.parametrize(
    ("call", "of_preset", "default", "expected"),
    [
        ("a/call", "a/preset", "a/default", ResolvedModel("a/call", "a/call", "call")),
        (None, "a/preset", "a/default", ResolvedModel("a/preset", "a/preset", "preset")),
        (None, None, "a/default", ResolvedModel("a/default", "a/default", "default_model")),
        ("", "a/preset", None, ResolvedModel("a/preset", "a/preset", "preset")),
        (" \t", "  ", "a/default", ResolvedModel("a/default", "a/default", "default_model")),
        (" a/call ", None, None, ResolvedModel("a/call", "a/call", "call")),
        ("a/call", "a/preset", "inherit", ResolvedModel("a/call", "a/call", "call")),
    ],
)
def test_the_nearest_model_counts(
    call: str | None, of_preset: str | None, default: str | None, expected: ResolvedModel
) -> None:
    """The call outranks the preset, the preset default_model; blank counts as absent."""
    assert expected == resolve_model(call, preset(of_preset), Settings(default_model=default))


def test_no_model_names_all_three_places() -> None:
    """Without any model the error names the call, the preset with its file, and default_model."""
    with pytest.raises(ModelError) as caught:
        resolve_model(None, preset(None), Settings())

    assert 'the call sets none, the preset "scout" sets none, and default_model is not set' in caught.value.what
    assert "/p/scout.md" == caught.value.where
    for place in ("--model", "model: provider/id", "default_model in", "subdeck/config.yaml"):
        assert place in caught.value.hint
    assert "choose one here" == caught.value.brief_hint


def test_an_ad_hoc_run_without_a_model() -> None:
    """Without a preset the error does not mention a preset file."""
    with pytest.raises(
        ModelError, match="no model: the call sets none, the run has no preset, and default_model"
    ) as caught:
        resolve_model("", None, Settings())

    assert "" == caught.value.where


@pytest.mark.parametrize(
    ("parent", "resolved"), [("anthropic/opus", "anthropic/opus"), (None, ""), ("  ", ""), (" a/b ", "a/b")]
)
def test_the_default_may_be_the_parents(parent: str | None, resolved: str) -> None:
    """`default_model: inherit` is the parent's model, or the agent's default if that is unknown."""
    model = resolve_model(None, preset(None), Settings(default_model="inherit"), parent=parent)

    assert ResolvedModel("inherit", resolved, "default_model", inherits=True) == model


@pytest.mark.parametrize(("parent", "resolved"), [("a/b", "a/b"), (None, "")])
def test_a_preset_may_take_the_parents(parent: str | None, resolved: str) -> None:
    """`model: inherit` in a preset outranks the setting `default_model`, and needs no parent."""
    model = resolve_model(None, preset("inherit"), Settings(default_model="c/d"), parent=parent)

    assert ResolvedModel("inherit", resolved, "preset", inherits=True) == model


def test_a_call_does_not_inherit() -> None:
    """A call cannot request `inherit`."""
    with pytest.raises(ModelError, match="works only in presets and in the setting default_model"):
        resolve_model("inherit", preset(None), Settings(), parent="a/b")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (None, ResolvedModel("", "offline/reader", "agent")),
        ("never/heard-of", ResolvedModel("never/heard-of", "offline/reader", "call")),
        ("haiku", ResolvedModel("haiku", "offline/reader", "call")),
        ("x/y:high", ResolvedModel("x/y:high", "offline/reader", "call", "high")),
        ("@fast", ResolvedModel("@fast", "offline/reader", "call", "low")),
        ("@bare", ResolvedModel("@bare", "offline/reader", "call")),
    ],
)
def test_the_offline_agent_uses_no_model(call: str | None, expected: ResolvedModel) -> None:
    """The offline agent needs no model, accepts any literal id, and resolves it to the model it reports."""
    settings = Settings(roles={"fast": "a/b:low", "bare": "never-seen"})

    assert expected == resolve_model(call, None, settings, "offline/reader", catalog=catalog("a/b"))


def test_the_offline_agent_asks_nobody_for_a_literal() -> None:
    """A resolver's refusal of a literal does not stop the offline agent."""

    def refuse(probe: Probe) -> None:
        probe.error = "no"

    assert "offline/reader" == resolve_model("a/b", None, Settings(), "offline/reader", resolvers=[refuse]).resolved


@pytest.mark.parametrize("own_model", ["", "offline/reader"])
@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("@fast", 'the model "@fast" is a role, but no roles are configured here'),
        ("@", "is a role"),
        ("-h", 'begins with "-"'),
        ("a/b\x00", "control character"),
        ("a/b\nc", "control character or a line break"),
        ("a\x1b[31m/b", 'the model "a/b" contains a control character'),
        ("a/b\udc80", "control character"),
        ("/b", "has nothing before or after its /"),
        ("a/", "has nothing before or after its /"),
        ("a/:", "has nothing before or after its /"),
    ],
)
def test_what_cannot_be_a_model(own_model: str, model: str, why: str) -> None:
    """An unknown role or an invalid id is refused for every agent, without echoing control characters."""
    with pytest.raises(ModelError) as caught:
        resolve_model(model, None, Settings(), own_model)

    assert why in caught.value.what
    assert "provider/id" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "of_preset", "default", "where"),
    [
        ("@x", None, None, "the model of this call (tool-call argument)"),
        (None, "@x", None, "/p/scout.md"),
        (None, None, "@x", "the setting default_model"),
    ],
)
def test_an_error_names_where_the_model_came_from(
    call: str | None, of_preset: str | None, default: str | None, where: str
) -> None:
    """The error names the file, setting or argument to change."""
    with pytest.raises(ModelError) as caught:
        resolve_model(call, preset(of_preset), Settings(default_model=default))

    assert where == caught.value.where


@pytest.mark.parametrize(
    ("model", "of_preset", "expected"),
    [
        ("a/b", None, None),
        ("a/b", "high", "high"),
        ("a/b:low", "high", "low"),
        ("a/b:off", "high", "off"),
        ("@deep", "low", "xhigh"),
        ("@plain", "low", "low"),
    ],
)
def test_a_suffix_goes_before_the_preset(model: str, of_preset: str | None, expected: str | None) -> None:
    """A thinking level in the suffix of the reference or its role outranks the preset's."""
    settings = Settings(roles={"deep": "a/b:xhigh", "plain": "a/b"})

    assert expected == resolve_model(model, preset(None, of_preset), settings).thinking


@pytest.mark.parametrize("model", ["a/b:max", "a/b"])
def test_more_thinking_than_the_agent_knows(model: str) -> None:
    """A thinking level above the agent's highest is lowered to it, with a notice."""
    resolved = resolve_model(model, preset(None, "max"), Settings(), levels=("off", "high", "xhigh"))

    assert "xhigh" == resolved.thinking
    assert ('thinking "max" is above this agent\'s highest level: using "xhigh"',) == resolved.notices
