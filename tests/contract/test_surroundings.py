"""Every kind of agent: its environment, and the user's files that no run changes."""

from __future__ import annotations

import pytest

from .kinds import Kind, each, scripted_talks
from .lab import Lab, environment_in, home_files

pytestmark = pytest.mark.processes

SETTINGS = {
    ".claude.json": "{}\n",
    ".claude/settings.json": '{"model": "mine"}\n',
    ".claude/CLAUDE.md": "Be brief.\n",
    ".codex/config.toml": 'model = "mine"\n',
    ".codex/AGENTS.md": "Be brief.\n",
    ".pi/agent/settings.json": '{"defaultModel": "mine"}\n',
    ".pi/agent/AGENTS.md": "Be brief.\n",
}


@each(scripted_talks)
def test_the_environment(lab: Lab, kind: Kind) -> None:
    """An agent gets the caller's environment, its run's variables, and the variables in its settings."""
    lab.settings(agents={"scripted": {"kind": kind.kind, "command": kind.command, "env": {"OF_AGENT": "1"}}})
    done, run = lab.run("environment seen", "say Done.", OF_CALLER="2")
    assert 0 == done.code, done
    seen = environment_in(lab.project / "seen")
    wanted = {"OF_CALLER": "2", "OF_AGENT": "1", "SUBDECK_RUN_ID": run.id, "PI_SUBAGENTS_CHILD": "1"}
    assert wanted.items() <= seen.items()
    assert str(lab.home) == seen["HOME"]


@each()
def test_settings_of_the_user_stay(lab: Lab, kind: Kind) -> None:
    """Runs in every form change no file of the agents, and add nothing but their conversations."""
    for name, text in SETTINGS.items():
        file = lab.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    rules = {"permissions": {"deny": [kind.asked_rule]}} if kind.talks else {}
    forms = (
        ({**rules, "structured_result": True}, "hand-over SUCCESS Done."),
        ({"interactive": False}, "say Done."),
    )
    for fields, script in forms:
        lab.preset(**fields)
        done, _ = lab.run(script)
        assert 0 == done.code, done
    after = home_files(lab.home)
    assert SETTINGS == {name: after.pop(name).decode() for name in SETTINGS}
    conversations = (".claude/projects/", ".codex/sessions/", ".scripted-acp/")
    assert [] == [name for name in after if not name.startswith(conversations)]
