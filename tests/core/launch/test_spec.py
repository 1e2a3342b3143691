"""The fields of a run: their values from call, preset and settings, and the layer that decided each."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from subdeck.core.config.files import KEYS
from subdeck.core.config.settings import PermissionSettings, Settings
from subdeck.core.run.limits import LIMITS, Limits
from subdeck.core.run.model import Permissions, PromptMode, WorktreeFrom
from subdeck.core.spec.fields import Merge, RunSpec, table
from subdeck.core.spec.layers import Layer, origin_words, resolve

SET: dict[str, Any] = {
    "model": "a/b",
    "thinking": "low",
    "tools": ("read",),
    "denied_tools": ("bash",),
    "permissions": Permissions(deny=("bash(rm *)",)),
    "interactive": False,
    "reply_timeout": 5.0,
    "idle_timeout": 6.0,
    "prompt": "Look.",
    "prompt_mode": PromptMode.REPLACE,
    "context_files": False,
    "project_resources": False,
    "inherit_context": False,
    "structured_result": True,
    "max_attempts": 2,
    "sticky": True,
    "keeps_session": False,
    "check": "tests",
    "agent": "offline",
    "runner": "tmux",
    "host": "h1",
    "needs": {"gpu": 1.0},
    "worktree": WorktreeFrom.HEAD,
    "timeout": 60.0,
    "max_turns": 3,
    "budget": 0.5,
    "max_tokens": 1000,
    "stall": 9.0,
}
"""A value other than the default for each field."""


def test_every_field_is_tried_here() -> None:
    """Every field has a value in this file."""
    assert list(SET) == list(table())


def test_every_limit_is_described() -> None:
    """Each limit has an entry in the table that settings, presets and the app are made from."""
    assert sorted(Limits.__struct_fields__) == sorted(LIMITS)
    assert all(f"limits.{name}" in KEYS and Merge.LOWEST is table()[name].merge for name in LIMITS)


@pytest.mark.parametrize("name", SET)
def test_a_preset_decides(name: str) -> None:
    """A preset's value applies if the call has none, even over the settings."""
    spec = resolve(RunSpec(), RunSpec(**{name: SET[name]}), Settings())
    assert (SET[name], Layer.PRESET) == (getattr(spec, name), spec.origin(name))
    assert spec.is_asked(name)
    assert {table()[name].key or name: "preset"} == spec.decided


@pytest.mark.parametrize("name", SET)
def test_nobody_decides(name: str) -> None:
    """Without a value in any layer the default applies: the settings', if they have the field."""
    spec = resolve(RunSpec(), None, Settings())
    assert Layer.DEFAULT is spec.origin(name)
    assert {} == spec.decided


@pytest.mark.parametrize("name", [name for name, field in table().items() if field.setting])
def test_the_settings_decide(name: str) -> None:
    """A setting that differs from its default applies if neither call nor preset has a value."""
    settings = Settings()
    *section, key = table()[name].setting.split(".")
    if section:
        settings = structs.replace(settings, limits=Limits(**{key: SET[name]}))
    elif name == "permissions":
        settings = structs.replace(settings, permissions=PermissionSettings(deny=SET[name].deny))
    else:
        settings = structs.replace(settings, **{key: SET[name]})
    spec = resolve(RunSpec(), None, settings)
    assert (SET[name], Layer.SETTINGS) == (getattr(spec, name), spec.origin(name))
    assert not spec.is_asked(name)


def test_the_nearest_counts() -> None:
    """The call outranks the preset, and the preset the settings; blank texts are ignored."""
    settings = Settings(runner="tmux", agent="pi")
    spec = resolve(RunSpec(model="x/y", agent=" "), RunSpec(model="a/b", agent="claude"), settings)
    assert ("x/y", "claude", "tmux") == (spec.model, spec.agent, spec.runner)
    assert "call: model · preset: agent · settings: runner" == origin_words(spec.decided)


def test_what_a_preset_decides_alone() -> None:
    """A call's tools and prompt apply only without a preset."""
    call = RunSpec(tools=("read",), prompt="Look.")
    assert (None, "") == ((spec := resolve(call, RunSpec(), Settings())).tools, spec.prompt)
    assert (("read",), "Look.") == ((spec := resolve(call, None, Settings())).tools, spec.prompt)


def test_an_empty_text_that_says_something() -> None:
    """An empty text requests no check, or any host."""
    spec = resolve(RunSpec(check="", host=""), RunSpec(check="tests", host="h1"), Settings())
    assert ("", "", Layer.CALL) == (spec.check, spec.host, spec.origin("check"))


def test_a_call_may_raise_a_limit_but_not_above_the_settings() -> None:
    """A user's call may raise a preset's limit, a parent agent's may only lower it; the settings' always holds."""
    call, preset = RunSpec(budget=2.0), RunSpec(budget=1.0)
    assert (2.0, Layer.CALL) == ((spec := resolve(call, preset, Settings())).budget, spec.origin("budget"))
    spec = resolve(call, preset, Settings(), only_lowers=True)
    assert (1.0, Layer.PRESET) == (spec.budget, spec.origin("budget"))
    spec = resolve(call, preset, Settings(limits=Limits(budget=0.5)))
    assert (0.5, Layer.SETTINGS) == (spec.budget, spec.origin("budget"))
    assert ("budget 2 of the call is above the 0.5 of the settings, so the setting applies",) == spec.warnings


def test_rules_of_all_layers() -> None:
    """The rules of all layers apply, the settings' first."""
    settings = Settings(permissions=PermissionSettings(deny=("bash(sudo *)",)))
    spec = resolve(RunSpec(), RunSpec(permissions=Permissions(("read",), (), ("write",))), settings)
    assert Permissions(("read",), (), ("bash(sudo *)", "write")) == spec.permissions
    assert Merge.ALL is table()["permissions"].merge
