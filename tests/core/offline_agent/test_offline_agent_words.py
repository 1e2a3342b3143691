"""How the offline agent reads a task."""

from __future__ import annotations

import pytest
from subdeck.core.offline_agent._task import Task

pytestmark = pytest.mark.processes

HERE = {"README.md": "file", "Makefile": "file", "src": "directory", "src/app.py": "file"}


def understood(prompt: str) -> Task:
    return Task(prompt, lambda path: HERE.get(path.rstrip("/"), ""))


@pytest.mark.parametrize(
    ("task", "patterns"),
    [
        ("Where are requests authenticated?", ["request", "authenticat"]),
        ("authenticate authentication configuration", ["authenticat", "authentic", "configur"]),
        ("queries processes status class api", ["quer", "process", "status", "class", "api"]),
        ("What does `run_id` do in getUserById()?", ["run_id", "getUserById"]),
        ('Find "not found" errors', ["not found", "error"]),
        ("Who handles HTTP 404?", ["HTTP", "404", "handl"]),
        ("How does os.path.join work", ["os.path.join"]),
        ("Что делает токен", ["Что", "делает", "токен"]),
        ("it's the user's token", ["user", "token"]),
        ("session token token", ["token", "session"]),
        ("What is this project about?", []),
    ],
)
def test_words_to_look_for(task: str, patterns: list[str]) -> None:
    """Quoted texts and names from code come first, then meaningful words without their endings."""
    assert [pattern.lower() for pattern in patterns] == [term.pattern.lower() for term in understood(task).terms]


def test_paths_that_exist_are_named_not_searched() -> None:
    """Files, with a line if given, directories and globs are not search words."""
    task = understood("Compare src/app.py:12, `README.md`, Makefile and ./*.toml in src/.")
    assert {"src/app.py": 12, "README.md": 1, "Makefile": 1} == task.files
    assert (["src"], ["./*.toml"]) == ([*task.directories], [*task.globs])
    assert ["compar"] == [term.pattern for term in task.terms]


def test_a_file_that_is_not_there_is_looked_for_by_name() -> None:
    """A file name without a file becomes a search for the name and for mentions of it."""
    task = understood("Where is config.yaml?")
    assert (["config.yaml"], ["config.yaml"]) == ([*task.globs], [term.pattern for term in task.terms])


@pytest.mark.parametrize(
    ("task", "asks"), [("could you fix the parser", True), ("where do we fix up paths?", False), ("Add a flag", True)]
)
def test_a_change_is_told_from_a_question(task: str, asks: bool) -> None:
    """Only a task that begins with a verb of change requests one."""
    assert asks == understood(task).asks_for_change
