"""A project that the user doesn't trust in Codex stays untrusted, and otherwise works as without a level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.codex import permissions
from subdeck.core.agents.codex._talk import Talk, settings_of, thread_params
from subdeck.core.agents.codex.permissions import OwnSettings, project_paths
from subdeck.core.run.model import AgentSession, Tools

from .codex_lines import start

UNTRUSTED = {"trust_level": "untrusted"}
TRUSTED = {"trust_level": "trusted"}
WRITERS = Tools(policy="allow", resolved=("bash", "edit"))


def layer(kind: str, **config: Any) -> dict[str, Any]:
    return {"name": {"type": kind}, "config": config}


def answer(*layers: dict[str, Any], **config: Any) -> OwnSettings:
    return OwnSettings.of_answer({"config": config, "layers": list(layers)})


@pytest.mark.parametrize("tools", [Tools(), WRITERS], ids=["own", "writers"])
def test_a_project_without_a_level_is_untrusted(tmp_path: Path, tools: Tools) -> None:
    params = thread_params(start(tmp_path, tools=tools), OwnSettings())
    assert {"/srv/shop": UNTRUSTED} == params["config"]["projects"]


@pytest.mark.parametrize("level", ["trusted", "untrusted"])
def test_what_the_user_says_of_a_project_holds(tmp_path: Path, level: str) -> None:
    """Its directories have the same level."""
    (tmp_path / ".git").mkdir()
    own = OwnSettings(projects={str(tmp_path): {"trust_level": level}})
    assert {} == settings_of(start(tmp_path, cwd=str(tmp_path / "below")).meta, own)


def test_project_resources_false_beats_the_trust_of_the_user(tmp_path: Path) -> None:
    own = OwnSettings(projects={"/srv/shop": TRUSTED})
    config = settings_of(start(tmp_path, project_resources=False).meta, own)
    assert {"/srv/shop": UNTRUSTED} == config["projects"]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, {"sandbox_mode": "read-only", "approval_policy": "on-request"}),
        ({"sandbox_mode": "workspace-write"}, {"approval_policy": "on-request"}),
        ({"default_permissions": ":workspace"}, {"approval_policy": "on-request"}),
        ({"approval_policy": "never"}, {"sandbox_mode": "read-only"}),
        ({"profile": "p", "profiles": {"p": {"sandbox_mode": "read-only", "approval_policy": "never"}}}, {}),
        ({"profiles": {"p": {"sandbox_mode": "read-only"}}, "approval_policy": "never"}, {"sandbox_mode": "read-only"}),
    ],
)
def test_untrusted_grants_nothing(tmp_path: Path, settings: dict[str, Any], kept: dict[str, str]) -> None:
    """Codex can write to any project with a trust level, so the defaults without a level are set with it."""
    config = settings_of(start(tmp_path).meta, answer(**settings))
    assert kept == {name: config[name] for name in ("sandbox_mode", "approval_policy") if name in config}


def test_a_project_cannot_trust_itself() -> None:
    """Trust in a project's own settings layer does not count."""
    own = answer(layer("project", projects={"/srv/shop": TRUSTED}), layer("user"), projects={"/srv/shop": TRUSTED})
    assert not own.has_level("/srv/shop")
    assert answer(layer("user", projects={"/srv/shop": TRUSTED})).has_level("/srv/shop")


def test_a_new_thread_does_not_name_its_directory(tmp_path: Path) -> None:
    """Codex would trust the named directory. A resumed thread may come from another one."""
    (tmp_path / "prompt.md").write_text("Look.")
    result = {"config": {}}
    new = Talk(start(tmp_path)).next_request(result)
    assert b'"thread/start"' in new
    assert b'"cwd"' not in new
    resumed = Talk(start(tmp_path, "t-0", agent_session=AgentSession(resume="t-0"))).next_request(result)
    assert b'"cwd":"/srv/shop"' in resumed


def test_the_directories_of_a_project(tmp_path: Path) -> None:
    """The directory, the repository and the main checkout of a worktree, also by their real paths."""
    main, tree, link = tmp_path / "main", tmp_path / "tree", tmp_path / "link"
    (main / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (main / "below").mkdir()
    (tree / "below").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    link.symlink_to(main)
    assert {str(main / "below"), str(main)} == set(project_paths(str(main / "below")))
    assert {str(tree / "below"), str(tree), str(main)} == set(project_paths(str(tree / "below")))
    assert {str(link / "below"), str(link), str(main / "below"), str(main)} == set(project_paths(str(link / "below")))


def test_the_files_that_codex_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers also come from directories above the project, but trust only from the user's own files."""
    monkeypatch.setattr(permissions, "SYSTEM_SETTINGS", str(tmp_path / "system.toml"))
    (tmp_path / "system.toml").write_text('sandbox_mode = "read-only"\n[projects."/a"]\ntrust_level = "trusted"\n')
    for directory, text in (
        ("home", '[projects."/b"]\ntrust_level = "trusted"\n[mcp_servers.mine]\ncommand = "m"\n'),
        ("shop/.codex", '[projects."/c"]\ntrust_level = "trusted"\n[mcp_servers.shop]\ncommand = "s"\n'),
        ("shop/below/.codex", "not toml = = ="),
    ):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "config.toml").write_text(text)
    own = OwnSettings.of_files(str(tmp_path / "home"), str(tmp_path / "shop" / "below"))
    assert {"mine", "shop"} == set(own.servers)
    assert ([True, True, False], True) == ([own.has_level(path) for path in ("/a", "/b", "/c")], own.has_sandbox)


@pytest.mark.parametrize(
    ("own", "tools", "warns"),
    [
        ({}, Tools(), True),
        ({}, WRITERS, False),
        ({"sandbox_mode": "read-only"}, Tools(), False),
    ],
)
def test_read_only_is_not_silent(tmp_path: Path, own: dict[str, Any], tools: Tools, warns: bool) -> None:
    """A run warns that Codex cannot write there, unless it was launched with that warning."""
    result = {"config": own}
    assert warns is bool(Talk(start(tmp_path, tools=tools)).warning(result))
    started = start(tmp_path, tools=tools, warnings=(permissions.READ_ONLY_HERE,))
    assert "" == Talk(started).warning(result)
