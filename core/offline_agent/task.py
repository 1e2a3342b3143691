"""The words of a task: what it names, and what to look for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ..text.plain import one_line

MAX_TERMS = 6
MAX_NAMED = 4
_READ_CHARACTERS = 8000
"""Of the task; what is longer is not looked at for words."""
_LONGEST_NAME = 200

_BLOCK = re.compile(r"\s*(?:<parent-context\b.*?</parent-context>|<file .*?</file>)", re.DOTALL)
"""What others put before a task: it is not the task."""
_QUOTED = re.compile(r"""`([^`\n]{2,80})`|"([^"\n]{2,80})"|“([^”\n]{2,80})”|(?<!\w)'([^'\n]{2,80})'(?!\w)""")
_LINE_NUMBER = re.compile(r":(\d{1,7})(?:-\d+|:\d+)?$")
_FILE_NAME = re.compile(r"[\w.@+-]*\w\.[a-z]\w{0,5}", re.IGNORECASE)
_NAME_FROM_CODE = re.compile(r"\w+(?:(?:\.|::|->)\w+)+|--[a-z][\w-]+|\d{3,}|(?=\w*_|\w+[A-Z]|[^\W\d]\w*\d)\w+")
"""What people do not write in prose: `os.path`, `--flag`, `404`, `run_id`, `getUser`, `HTTP`."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENDING = re.compile(r"(?:(?<=.{5})ations?|(?<=.{3})(?:ings?|ie[sd]|e[sd]?|(?<!s|u|i)s))$")
_CHANGE = re.compile(
    r"(?:please |(?:can|could|would) you )*(?:fix|add|implement|write|create|change|update|edit|remove|delete|rename"
    r"|refactor|replace|move|make|build|install|run|migrate|upgrade|convert|generate)\b",
    re.IGNORECASE,
)
_STOP = """
    about after all also an and any are as at be been before between both but by can code codebase could describe did do
    does done each every exactly exist exists explain file files find first for from function functions get gets give
    has have help here how if in include into is it its just know like line lines list locate look made main make makes
    many me mean means more most must my need no not of on one only or other our out over part parts place places please
    project read related relevant repo repository review say says search see should show shows so some such summarise
    summarize take tell than that the their them then there these they thing things this those through to up us use used
    uses using via want was way we were what when where whether which while who whom whose why will with without work
    works would you your
"""
_STOP_WORDS = frozenset(_STOP.split())


class Term(NamedTuple):
    """One thing to look for."""

    pattern: str
    said: str
    """As the task says it."""
    weight: int = 1
    is_word: bool = False
    """True when it matches only where a part of a name begins."""

    @property
    def beginning(self) -> str:
        """The four letters that code often shortens a long word to: `auth`, `conf`; empty for a short one."""
        return self.pattern[:4] if self.weight == 1 and len(self.pattern) > 6 else ""


class Task(NamedTuple):
    text: str
    terms: tuple[Term, ...]
    files: tuple[tuple[str, int], ...]
    """Paths of files that exist, each with the line that is named, or 1."""
    directories: tuple[str, ...]
    globs: tuple[str, ...]

    @property
    def names_nothing(self) -> bool:
        return not (self.terms or self.files or self.globs)

    @property
    def asks_for_change(self) -> bool:
        return _CHANGE.match(self.text) is not None


def understand(prompt: str, kind: Callable[[str], str]) -> Task:
    """Take a task apart: paths that exist, globs, quoted texts, names from code, and words that say something.

    `kind` returns `file`, `directory` or nothing for a path.
    """
    while block := _BLOCK.match(prompt):
        prompt = prompt[block.end() :]
    text = prompt[:_READ_CHARACTERS].strip()
    terms: dict[str, Term] = {}
    times: Counter[str] = Counter()
    files: dict[tuple[str, int], None] = {}
    directories: dict[str, None] = {}
    globs: dict[str, None] = {}

    def take(term: Term) -> None:
        key = term.pattern.lower()
        terms.setdefault(key, term)
        times[key] += 1

    quoted = [(match[0][1:-1], True) for match in _QUOTED.finditer(text)]
    words = _QUOTED.sub(" ", _CHANGE.sub("", text, 1)).split()
    for token, is_quoted in [*quoted, *((word, False) for word in words)]:
        name = token if is_quoted else token.strip(",;!?()[]{}<>\"'`“”‘’…").rstrip(".:").removesuffix("(")
        if len(name) > _LONGEST_NAME or not re.search(r"\w", name):
            continue
        path, line = _LINE_NUMBER.sub("", name), _LINE_NUMBER.search(name)
        found = kind(path)
        is_file_name = _FILE_NAME.fullmatch(name) is not None
        if found == "file":
            files[path, int(line[1]) if line else 1] = None
        elif found and re.search("[/.]", path):
            directories[path.rstrip("/")] = None
        elif is_quoted:
            take(Term(name.removesuffix("()"), name, 4))
        elif "*" in name:
            globs[name.removeprefix("**/")] = None
        elif is_file_name or _NAME_FROM_CODE.fullmatch(name) or "/" in name.strip("/"):
            globs.update({name: None} if is_file_name else {})
            take(Term(name, name, 3, name[0].isalpha()))
        else:
            for word in _WORD.findall(name.lower()):
                if word not in _STOP_WORDS:
                    take(Term(_ENDING.sub("", word), word, is_word=word.isascii()))
    ranked = sorted(terms, key=lambda key: (-terms[key].weight, -times[key]))
    return Task(
        text=one_line(text),
        terms=tuple(terms[key] for key in ranked[:MAX_TERMS]),
        files=tuple(files)[:MAX_NAMED],
        directories=tuple(directories)[:MAX_NAMED],
        globs=tuple(globs)[:MAX_NAMED],
    )
