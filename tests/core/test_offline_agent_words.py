"""The offline agent's reading of a task, and what of a directory it leaves out."""

from __future__ import annotations

import pytest
from subdeck.core.offline_agent.ignored import is_ignored, is_skipped, parse_rules
from subdeck.core.offline_agent.intent import asks_for_change, state_intent
from subdeck.core.offline_agent.task import Task, understand
from subdeck.core.offline_agent.words import short_form, stem

HERE = {"README.md": "file", "Makefile": "file", "src": "directory", "src/app.py": "file"}


def understood(prompt: str) -> Task:
    return understand(prompt, lambda path: HERE.get(path.rstrip("/"), ""))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("authenticated", "authenticat"),
        ("authenticate", "authenticat"),
        ("configuration", "configur"),
        ("requests", "request"),
        ("stopped", "stop"),
        ("running", "run"),
        ("processes", "process"),
        ("queries", "quer"),
        ("status", "status"),
        ("analysis", "analysis"),
        ("class", "class"),
        ("string", "str"),
        ("api", "api"),
    ],
)
def test_endings_are_cut(word: str, expected: str) -> None:
    """A stem begins all forms of its word, and stays long enough to mean something."""
    assert expected == stem(word)


def test_short_forms_are_those_of_code() -> None:
    """Any form of a word leads to how code abbreviates it."""
    assert ["auth", "auth", "db", "dep", ""] == [
        short_form(stem(word)) for word in ("authenticated", "authorization", "databases", "dependencies", "shop")
    ]


@pytest.mark.parametrize(
    ("task", "patterns"),
    [
        ("Where are requests authenticated?", ["request", "authenticat"]),
        ("What does `run_id` mean in getUserById()?", ["run_id", "getUserById", "mean"]),
        ('Find "not found" errors', ["not found", "error"]),
        ("Who handles HTTP 404?", ["HTTP", "404"]),
        ("How does os.path.join work", ["os.path.join", "work"]),
        ("Read the task", ["task"]),
        ("Что делает токен", ["Что", "делает", "токен"]),
        ("it's the user's token", ["user", "token"]),
        ("token token session token", ["token", "session"]),
        ("What is this project about?", []),
    ],
)
def test_words_to_look_for(task: str, patterns: list[str]) -> None:
    """Quoted texts and names from code first, then the words that say something, without their endings."""
    assert [pattern.lower() for pattern in patterns] == [term.pattern.lower() for term in understood(task).terms]


def test_paths_that_exist_are_named_not_searched() -> None:
    """Files, with a line where one is given, directories and globs are taken out of the words."""
    task = understood("Compare src/app.py:12, `README.md`, Makefile and ./*.toml in src/.")
    assert [("src/app.py", 12), ("README.md", 1), ("Makefile", 1)] == sorted(
        [(path, line) for path, line in task.files], key=lambda file: -file[1]
    )
    assert (("src",), ("./*.toml",)) == (task.directories, task.globs)
    assert ["compar"] == [term.pattern for term in task.terms]


def test_a_file_that_is_not_there_is_looked_for_by_name() -> None:
    """A file name without a file becomes a search for the name and for mentions of it."""
    task = understood("Where is config.yaml?")
    assert (("config.yaml",), ["config.yaml"]) == (task.globs, [term.pattern for term in task.terms])


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Where are requests authenticated?", "I'm looking for where requests are authenticated."),
        ("Please find the parser. Then stop.", "I'm looking for the parser."),
        ("Explain src/app.py", "I'm looking at src/app.py."),
        ("Add a flag", "I only read; I'm looking for the places this is about: Add a flag."),
        ("How does it end?", "I'm looking into this: How does it end."),
        ("?!", "The task is empty of words; I'm looking at what is here."),
        ("x " * 400, "I'm looking into this: " + ("x " * 70).rstrip()[: -0 or None][:139].rstrip() + "…."),
    ],
)
def test_intent_in_plain_words(task: str, expected: str) -> None:
    """The first sentence says what is going to be done, in the task's own words, on one line."""
    assert expected == state_intent(task)


def test_a_change_is_told_from_a_question() -> None:
    """Only a task that begins with the wish for a change asks for one."""
    assert asks_for_change("could you fix the parser")
    assert not asks_for_change("where do we fix up paths?")


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        ("build/", "build", True),
        ("build/", "deep/build", True),
        ("/build", "deep/build", False),
        ("*.log", "a/b.log", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("# note\n\n", "# note", False),
        ("doc/*.txt", "doc/a.txt", True),
        ("doc/*.txt", "doc/deep/a.txt", False),
        ("**/gen/**", "a/gen/b/c", True),
        ("a/**/z", "a/z", True),
        ("file[0-9].py", "file7.py", True),
        ("file[!0-9].py", "file7.py", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[", "[", True),
        ("*a" * 60, "a" * 250, True),
        ("*a" * 60 + "b", "a" * 250, False),
    ],
)
def test_gitignore_rules(rules: str, path: str, ignored: bool) -> None:
    """The common rules mean what they mean to git, and none takes long."""
    assert ignored == is_ignored(path, True, parse_rules(rules, ""))


def test_rules_of_an_inner_gitignore_bind_below_it() -> None:
    """A `.gitignore` in a directory says nothing about its neighbours."""
    rules = parse_rules("*.py\n", "src")
    assert [True, False] == [is_ignored(path, False, rules) for path in ("src/a.py", "lib/a.py")]


def test_directory_rules_leave_files_alone() -> None:
    """A rule with a slash at its end is about directories."""
    assert not is_ignored("build", False, parse_rules("build/", ""))


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("node_modules", True),
        ("web/node_modules", True),
        (".pi/subagents/runs", True),
        ("app/.pi/subagents/trash", True),
        (".pi/subagents", False),
        ("src", False),
        ("runs", False),
    ],
)
def test_directories_that_are_never_searched(path: str, skipped: bool) -> None:
    """Installed packages, caches and recorded runs are no evidence; presets are."""
    assert skipped == is_skipped(path)
