"""pi's program, version and tools, found without starting it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subdeck.core.agents.pi.program import (
    BUILTIN_TOOLS,
    DEFAULT_TOOLS,
    builtin_tools,
    find_pi,
    is_since,
    pi_version,
)
from subdeck.core.errors import AgentUnavailable


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pi as npm installs it: a link in a bin directory on PATH, package.json two levels above the script."""
    package = tmp_path / "lib" / "node_modules" / "@scope" / "pi-coding-agent"
    (package / "dist" / "bundle").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@scope/pi-coding-agent", "version": "9.8.7", "bin": {}}))
    script = package / "dist" / "bundle" / "cli.js"
    script.write_text("#!/bin/sh\nexit 99\n")
    script.chmod(0o755)
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "pi"
    link.symlink_to(script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return link


def test_on_path(installed: Path) -> None:
    """pi is found on PATH, with the version from its package."""
    command = find_pi()
    assert (str(installed),) == command
    assert "9.8.7" == pi_version(command)


def test_named(installed: Path) -> None:
    """A configured command is used unchanged, with its arguments."""
    assert (str(installed), "--offline") == find_pi((str(installed), "--offline"))


def test_relative_to_home(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading tilde is the home directory."""
    monkeypatch.setenv("HOME", str(installed.parent.parent))
    assert (str(installed),) == find_pi(("~/bin/pi",))


def test_version_behind_an_interpreter(installed: Path) -> None:
    """For `node cli.js`, the version comes from the script's package."""
    assert "9.8.7" == pi_version(("node", str(installed.resolve())))
    assert "9.8.7" == pi_version(("/usr/bin/env", str(installed)))


def test_version_of_something_else(tmp_path: Path) -> None:
    """A program outside a pi package has no version."""
    (tmp_path / "package.json").write_text('{"name": "other", "version": "1.0.0"}')
    (tmp_path / "pi").write_text("")
    assert pi_version((str(tmp_path / "pi"),)) is None
    assert pi_version(("pi",)) is None
    assert pi_version(()) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"name": 5}'])
def test_unreadable_package(installed: Path, content: bytes) -> None:
    """With a broken package.json, the version is unknown."""
    (installed.resolve().parents[2] / "package.json").write_bytes(content)
    assert pi_version((str(installed),)) is None


def test_not_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing pi is an error with the setting and the command that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentUnavailable) as caught:
        find_pi()
    assert "pi is not on PATH" == caught.value.what
    assert "npm install -g @earendil-works/pi-coding-agent" in caught.value.hint
    assert "with node before 22.19: @mariozechner/pi-coding-agent" in caught.value.hint
    assert "agents.pi.command" in caught.value.hint


def test_missing_program(tmp_path: Path) -> None:
    """A missing configured program is named in the error."""
    with pytest.raises(AgentUnavailable) as caught:
        find_pi((str(tmp_path / "pi"),))
    assert str(tmp_path / "pi") == caught.value.where
    with pytest.raises(AgentUnavailable):
        find_pi((str(tmp_path),))


def test_not_executable(tmp_path: Path) -> None:
    """If a program cannot be executed, the hint is the command that fixes it."""
    program = tmp_path / "pi"
    program.write_text("")
    with pytest.raises(AgentUnavailable) as caught:
        find_pi((str(program),))
    assert f"chmod +x {program}" == caught.value.hint


def test_empty_command() -> None:
    """An empty command is an error and is not executed."""
    with pytest.raises(AgentUnavailable, match="the command is empty"):
        find_pi(())


def test_tools() -> None:
    """pi has four tools by default and three more."""
    assert ("read", "bash", "edit", "write") == DEFAULT_TOOLS
    assert {"grep", "find", "ls"} == set(BUILTIN_TOOLS) - set(DEFAULT_TOOLS)


@pytest.mark.pi
def test_real_pi(pi_executable: str) -> None:
    """pi's version is read without Node.js."""
    assert "0.73.1" == pi_version(find_pi((pi_executable,)))


@pytest.mark.parametrize(("version", "has"), [("0.73.1", False), ("0.87.1", False), ("0.99.0", True), (None, True)])
def test_tools_by_version(version: str | None, has: bool) -> None:
    """The tools that pi 1.x adds are known. An unknown version may have them."""
    assert has is ({"codemode", "tool_search"} <= set(builtin_tools(version)))
    assert set(BUILTIN_TOOLS) <= set(builtin_tools(version))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.76.9", False),
        ("0.77.0", True),
        ("0.77", True),
        ("1.5.2", True),
        ("0.78.0-rc.1", True),
        ("x", None),
        (None, None),
    ],
)
def test_versions(version: str | None, expected: bool | None) -> None:
    """Versions are compared by number. Without a number, the answer is unknown."""
    assert expected is is_since(version, (0, 77))
