"""How requests name files and directories: relative to the run, so that no outside file looks like an inside one."""

from __future__ import annotations

import pytest
from subdeck.core.run.events import Request
from subdeck.core.run.model import RequestKind
from subdeck.core.run.requests import place_in_worktree, request_line, request_text, shown_path, subject_of

TREE = "/home/me/.local/state/subdeck/work/0123456789abcdef/20260101-000000-abcdef/tree"
OTHER = TREE.replace("abcdef/tree", "abcdee/tree")


def edit(*paths: str, cwd: str = "") -> Request:
    title = "wants to change a file"
    return Request(id="q1", kind=RequestKind.PERMISSION, title=title, tool_name="edit", paths=paths, cwd=cwd)


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        (f"{TREE}/src/a.py", TREE, "src/a.py"),
        (f"{TREE}/web/a.py", f"{TREE}/api", "../web/a.py"),
        (TREE, TREE, "."),
        ("/src/shop/a.py", "/src/shop", "a.py"),
        ("src/a.py", TREE, "src/a.py"),
        (f"{OTHER}/src/a.py", TREE, f"{OTHER}/src/a.py"),
        (f"{TREE}-2/a.py", TREE, f"{TREE}-2/a.py"),
        (f"{TREE}/../tree/a.py", TREE, f"{TREE}/../tree/a.py"),
        (f"{TREE}//etc/passwd", TREE, f"{TREE}//etc/passwd"),
        ("/etc/passwd", TREE, "/etc/passwd"),
        ("/etc/passwd", "/", "/etc/passwd"),
        ("/etc/passwd", "", "/etc/passwd"),
    ],
)
def test_paths_are_seen_from_the_run(path: str, cwd: str, expected: str) -> None:
    """Only a path that is certainly inside the run's directory or worktree is shortened."""
    assert expected == shown_path(path, cwd)


def test_a_request_names_the_worktree() -> None:
    """The line, the text and the subject of a decision show paths and directory relative to the worktree."""
    request = edit(f"{TREE}/src/a.py", cwd=f"{TREE}/src")
    assert "wants to change a file: src/a.py" == request_line(request, cwd=TREE)
    assert "src/a.py" == subject_of(request, cwd=TREE)
    assert "wants to change a file\n  src/a.py\n  in src in its worktree" == request_text(request, TREE)
    assert "its worktree" == place_in_worktree(edit("a"), TREE)
    assert "" == place_in_worktree(edit("a"), "/src/shop") == place_in_worktree(edit("a", cwd="/etc"), TREE)


def test_a_command_is_never_rewritten() -> None:
    """A command is shown exactly as it would be run, with unshortened paths."""
    command = f"rm -rf {TREE}/build"
    request = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", command=command)
    assert command in request_line(request, cwd=TREE) and command in request_text(request, TREE)


def test_without_the_directory_of_the_run_it_is_exact() -> None:
    """A run's markdown and log have the agent's exact paths."""
    assert f"wants to change a file\n  {TREE}/a.py" == request_text(edit(f"{TREE}/a.py"))
