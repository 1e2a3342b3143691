"""A task's words: the paths it names, and terms to search for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ._replacement import replacement_of

MAX_TERMS = 6
MAX_NAMED = 4
_READ_CHARACTERS = 8000
"""Characters of the task that are analyzed."""
_LONGEST_NAME = 200

_BLOCK = re.compile(r"\s*(?:<parent-context\b.*?</parent-context>|<file .*?</file>)", re.DOTALL)
"""Blocks that other programs put before a task."""
_QUOTED = re.compile(r"""`([^`\n]{2,80})`|"([^"\n]{2,80})"|“([^”\n]{2,80})”|(?<!\w)'([^'\n]{2,80})'(?!\w)""")
_LINE_NUMBER = re.compile(r":(\d{1,7})(?:-\d+|:\d+)?$")
_FILE_NAME = re.compile(r"[\w.@+-]*\w\.[a-z]\w{0,5}", re.IGNORECASE)
_NAME = re.compile(r"\w[.:/>_-]+\w|_|\d{3}|[a-z][A-Z]|[A-Z]{2}|^--")
"""Forms that are rare in prose: `os.path`, `run_id`, `404`, `getUser`, `HTTP`, `--flag`."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_WORD_START = r"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"
_ENDING = re.compile(r"(?:(?<=.{5})ations?|(?<=.{3})(?:ings?|ie[sd]|e[sd]?|(?<!s|u|i)s))$")
_ASKS_BACK = re.compile(r"\bask me\b[^.?!\n]*", re.IGNORECASE)
_CHANGE = re.compile(
    r"(?:please |(?:can|could|would) you )*(?:fix|add|implement|write|create|change|update|edit|remove|delete|rename"
    r"|refactor|replace|move|make|build|install|run|migrate|upgrade|convert|generate)\b",
    re.IGNORECASE,
)
_STOP_WORDS = """
    about after all also an and any are as at be been before between both but by can code codebase could describe did do
    does done each every exactly explain file files find first for from function functions get give has have help here
    how if in into is it its just know like line lines list locate look main make many me mean most must my need no not
    of on one only or other our out part place places please project read related relevant repo repository review say
    says search see should show so some such take tell than that the their them then there these they thing this those
    to up us use used uses using was way we were what when where whether which who why will with work works would you
""".split()  # noqa: SIM905 - a list of strings would be four times as long


class Term(NamedTuple):
    """One term to search for."""

    pattern: str
    text: str
    """As written in the task."""
    is_word: bool = False
    """Whether it matches only at the start of a word, or of a part of a compound name."""

    def matches(self, line: str) -> bool:
        literal = f"(?i:{re.escape(self.pattern)})"
        return re.search(f"{_WORD_START}{literal}" if self.is_word else literal, line) is not None


class Task:
    """A task's contents: existing paths, globs, quoted texts, names from code, and meaningful words."""

    def __init__(self, prompt: str, kind: Callable[[str], str]) -> None:
        """`kind` returns `file`, `directory` or an empty text for a path."""
        while block := _BLOCK.match(prompt):
            prompt = prompt[block.end() :]
        self.replacement = replacement_of(prompt)
        """The change to make; None for any other task."""
        self.text = prompt[:_READ_CHARACTERS].strip()
        self.asks_for_change = _CHANGE.match(self.text) is not None
        self.asks_back = _ASKS_BACK.search(self.text) is not None
        """Whether the task wants to be asked which file to read."""
        self.files: dict[str, int] = {}
        """Existing files by path, each with the named line, or 1."""
        self.directories: dict[str, None] = {}
        self.globs: dict[str, None] = {}
        names: dict[str, Term] = {}
        words: Counter[str] = Counter()
        quoted = [match[0][1:-1] for match in _QUOTED.finditer(self.text)]
        unquoted = _QUOTED.sub(" ", _CHANGE.sub("", _ASKS_BACK.sub("", self.text), 1)).split()
        for token in [*quoted, *unquoted]:
            is_quoted = token in quoted
            name = token if is_quoted else token.strip(",;!?()[]{}<>\"'`“”‘’…").rstrip(".:").removesuffix("(")
            if len(name) > _LONGEST_NAME or not re.search(r"\w", name) or self._take_path(name, kind):
                continue
            if is_quoted or (_NAME.search(name) and "*" not in name):
                names.setdefault(name.lower(), Term(name.removesuffix("()"), name, not is_quoted and name[0].isalpha()))
            elif "*" not in name:
                words.update(word for word in _WORD.findall(name.lower()) if word not in _STOP_WORDS)
        stems = {_ENDING.sub("", word): word for word, _ in words.most_common()}
        self.terms = [*names.values(), *(Term(stem, word, word.isascii()) for stem, word in stems.items())][:MAX_TERMS]
        """Quoted texts and names from code first."""

    def _take_path(self, name: str, kind: Callable[[str], str]) -> bool:
        """Keep an existing path or a possible file name; return whether the name is fully handled."""
        path, line = _LINE_NUMBER.sub("", name), _LINE_NUMBER.search(name)
        path_kind = kind(path)
        if path_kind == "file" and len(self.files) < MAX_NAMED:
            self.files[path] = int(line[1]) if line else 1
            return True
        if path_kind == "directory" and re.search("[/.]", path) and len(self.directories) < MAX_NAMED:
            self.directories[path.rstrip("/")] = None
            return True
        if (_FILE_NAME.fullmatch(name) or "*" in name) and " " not in name and len(self.globs) < MAX_NAMED:
            self.globs[name.removeprefix("**/")] = None
        return False
