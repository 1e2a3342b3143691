"""Presets, models and settings on the command line: as written, as resolved, and their problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subdeck.core.config.files import example_settings
from subdeck.core.presets.fields import preset_schema

from tests.core.command_line import subdeck, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

TABLE = "provider  model  context  max-out  thinking  images\nfake      test   128K     16.4K    yes       no\n"


def write_config(home: Path, **settings: object) -> Path:
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
    return path


@pytest.fixture
def pi(home: Path, tmp_path: Path) -> Path:
    """A pi that only lists its models, and counts its starts."""
    (tmp_path / "table").write_text(TABLE)
    script = tmp_path / "pi"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/starts\ncat {tmp_path}/table\n')
    script.chmod(0o755)
    write_config(
        home, agent="pi", agents={"pi": {"command": [str(script)]}}, roles={"fast": "test:low", "bad": "@fast"}
    )
    return script


def starts(pi: Path) -> int:
    file = pi.with_name("starts")
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_the_schema(project_dir: Path) -> None:
    """Editors get the JSON Schema of the frontmatter as one document, even outside a project."""
    done = subdeck("presets", "--schema", cwd=project_dir)

    assert (0, preset_schema()) == (done.code, done.document)


def test_a_preset_as_resolved(project_dir: Path, pi: Path) -> None:
    """A preset is shown with the model of its role, its effective tools, its limits and its warnings."""
    subdeck("models", "--refresh", cwd=project_dir)
    write_preset(
        project_dir,
        extra='model: "@fast"\ndenied_tools: [bash, Edit]\nprompt_mode: replace\nstructured_result: true\n'
        "timeout: 10m\nmdl: x\n",
    )
    done = subdeck("presets", "scout", cwd=project_dir)

    assert 0 == done.code
    for line in (
        "Model:       @fast → fake/test",
        "Thinking:    low",
        "Tools:       read, edit, write, subagent_finalize (all but bash, Edit)",
        "Prompt:      replaces the agent's own",
        "Structured:  yes, at most 3 attempts",
        "Limits:      timeout 10:00",
        '! unknown key "mdl" is ignored; did you mean model?',
        "! Edit is denied, but the agent does not have it anyway; did you mean edit?",
    ):
        assert f"{line}\n" in done.out
    (whole,) = subdeck("presets", "scout", "--json", cwd=project_dir).document["presets"]
    assert ("@fast", ["bash", "Edit"], None) == (whole["model"], whole["deniedTools"], whole["tools"])
    assert ("fake/test", "low", []) == tuple(whole["resolved"][key] for key in ("model", "thinking", "problems"))


def test_a_preset_that_cannot_be_launched(project_dir: Path, pi: Path) -> None:
    """A preset is shown with the reason why it cannot run, and exit code 0."""
    write_preset(project_dir, extra='model: "@nobody"\n')
    done = subdeck("presets", "scout", cwd=project_dir)

    assert 0 == done.code
    assert "✗ " in done.out
    assert 'the model "@nobody" cannot be resolved: unknown role' in done.out


def test_models_are_asked_for_once_a_day(project_dir: Path, pi: Path) -> None:
    """The first listing starts pi. Then its list is cached, also for JSON."""
    first = subdeck("models", cwd=project_dir)
    assert (0, 1, "") == (first.code, starts(pi), first.err)
    assert "fake/test" in first.out
    again = subdeck("models", "--json", cwd=project_dir).document
    assert (True, 1) == (again["complete"], starts(pi))


def test_models_refreshed(project_dir: Path, pi: Path) -> None:
    """A refresh starts pi once. Then its list is cached, with the roles that use it."""
    refreshed = subdeck("models", "--refresh", cwd=project_dir)
    done = subdeck("models", "--json", cwd=project_dir)

    assert (0, 1, "") == (refreshed.code, starts(pi), refreshed.err)
    assert "fake/test" in refreshed.out
    model = {"model": "fake/test", "provider": "fake", "id": "test", "source": "pi", "thinking": True}
    assert [model] == done.document["models"]
    assert {"model": "test:low", "resolved": "fake/test", "thinking": "low", "error": None} == done.document["roles"][
        "fast"
    ]
    assert 'points to another role, "@fast"' in done.document["roles"]["bad"]["error"]
    assert (True, []) == (done.document["complete"], done.document["problems"])


def test_a_refresh_that_fails(project_dir: Path, pi: Path) -> None:
    """pi's error is printed, and the exit code shows that the refresh failed."""
    pi.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    done = subdeck("models", "--refresh", "--json", cwd=project_dir)

    assert (2, "pi could not list its models: broken") == (done.code, done.error["what"])


def test_models_of_the_offline_agent(project_dir: Path, home: Path) -> None:
    """It has no list: roles are shown, and a refresh is refused."""
    write_config(home, agent="offline", roles={"fast": "a/b"})
    done = subdeck("models", cwd=project_dir)

    assert (0, "@fast  a/b") == (done.code, done.out.strip())
    assert "accepts any model" in done.err
    assert 2 == subdeck("models", "--refresh", cwd=project_dir).code


def test_broken_files_of_pi_are_told(project_dir: Path, home: Path, pi: Path) -> None:
    """A broken models.json or providers.json is named, and the rest is listed."""
    agent_dir = home / ".pi" / "agent"
    agent_dir.mkdir(parents=True)
    for name in ("models.json", "providers.json"):
        (agent_dir / name).write_text("{")
    problems = subdeck("models", "--json", cwd=project_dir).document["problems"]

    assert [str(agent_dir / "models.json"), str(agent_dir / "providers.json")] == [
        problem.partition(": ")[0] for problem in problems
    ]


def test_the_example_of_settings(project_dir: Path) -> None:
    """The example is printed unchanged, for a redirect into a file."""
    done = subdeck("settings", "--example", cwd=project_dir)

    assert (0, example_settings()) == (done.code, done.out)


def test_settings_in_force(project_dir: Path, home: Path) -> None:
    """The effective settings are shown under their keys, with the paths of the files."""
    path = write_config(home, theme="nord", limits={"timeout": "10m"})
    document = subdeck("settings", "--json", cwd=project_dir).document
    shown = subdeck("settings", cwd=project_dir).out

    assert str(path) == document["files"]["user"]
    assert ("nord", 600, 64) == tuple(
        document["settings"][key] for key in ("theme", "limits.timeout", "logs.stdout_mb")
    )
    assert f"# user: {path}\n" in shown
    assert "config.yaml (does not exist)\n" in shown
    assert "limits.timeout: 600.0\n" in shown
