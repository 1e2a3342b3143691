"""The words of a task: what it names, and what to look for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..text.plain import one_line
from .words import STOP_WORDS, WEAK_WORDS, short_form, stem

MAX_TERMS = 6
MAX_NAMED = 4
_READ_CHARACTERS = 8000
"""Of the task; what is longer is not looked at for words."""

_BLOCKS = {"<parent-context": "</parent-context>", "<file ": "</file>"}
"""What others put before a task: it is not the task."""
_QUOTED = re.compile(r"""`([^`\n]{2,80})`|"([^"\n]{2,80})"|“([^”\n]{2,80})”|(?<!\w)'([^'\n]{2,80})'(?!\w)""")
_POSITION = re.compile(r":(\d{1,7})(?:-\d+|:\d+)?$")
_FILE_NAME = re.compile(
    r"[\w.@+-]*\w\.(?:bash|c|cc|cfg|conf|cpp|cs|css|csv|dart|ex|exs|go|h|hpp|hs|html?|ini|ipynb|java|jsx?|json[5cl]?|kt|lock"
    r"|log|lua|mdx?|mjs|mts|php|pl|proto|py|pyi|r|rb|rs|rst|scala|sh|sql|svelte|svg|swift|tcss|tex|tf|toml|tsx?|txt|vue|xml"
    r"|ya?ml|zig)",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\w+(?:(?:\.|::|->)\w+)+|--[a-z][\w-]+")
_WORD = re.compile(r"[^\W\d_]{2,}")

_LONGEST_NAME = 200
_WEAK_WEIGHT = 0.3

Kind = Callable[[str], str]
"""Answers `file`, `directory` or nothing for a path."""


class Term(NamedTuple):
    """One thing to look for."""

    pattern: str
    said: str
    """As the task says it."""
    weight: float
    word: bool = False
    """True when it matches only where a part of a name begins."""
    short: str = ""
    """How code abbreviates it."""


class NamedPath(NamedTuple):
    path: str
    line: int = 1


class Task(NamedTuple):
    text: str
    terms: tuple[Term, ...]
    files: tuple[NamedPath, ...]
    directories: tuple[str, ...]
    globs: tuple[str, ...]

    @property
    def names_nothing(self) -> bool:
        return not (self.terms or self.files or self.globs)

    def mentions(self, *words: str) -> bool:
        """Return whether one of the words begins a word of the task."""
        return re.search(rf"\b(?:{'|'.join(words)})", self.text, re.IGNORECASE) is not None


def understand(prompt: str, kind: Kind) -> Task:
    """Take a task apart: paths that exist, globs, quoted texts, names from code, and content words."""
    text = _without_blocks(prompt)[:_READ_CHARACTERS]
    parts = _Parts(kind)
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group)
        if not parts.take_path(quoted):
            parts.add(Term(quoted.removesuffix("()"), quoted, 4.0))
    for position, token in enumerate(_QUOTED.sub(" ", text).split()):
        if position or token.lower() not in WEAK_WORDS:
            parts.take(token)
    return Task(
        text=one_line(text),
        terms=parts.best_terms(),
        files=tuple(parts.files)[:MAX_NAMED],
        directories=tuple(parts.directories)[:MAX_NAMED],
        globs=tuple(parts.globs)[:MAX_NAMED],
    )


class _Parts:
    """Collects the parts of one task; dicts keep the order in which they came."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._terms: dict[str, tuple[Term, int]] = {}
        self.files: dict[NamedPath, None] = {}
        self.directories: dict[str, None] = {}
        self.globs: dict[str, None] = {}

    def take(self, token: str) -> None:
        bare = token.strip(",;!?()[]{}<>\"'`“”‘’…").rstrip(".:")
        if not bare or len(bare) > _LONGEST_NAME or self.take_path(bare):
            return
        if "*" in bare and re.search(r"[\w.]", bare):
            self.globs[bare.removeprefix("**/")] = None
        elif _FILE_NAME.fullmatch(bare):
            self.globs[bare] = None
            self.add(Term(bare, bare, 3.0))
        elif _is_name_from_code(bare) or "/" in bare.strip("/"):
            self.add(Term(bare, bare, 3.0, word=re.match(r"[A-Za-z]", bare) is not None))
        else:
            for word in _WORD.findall(bare):
                self._take_word(word.lower())

    def take_path(self, text: str) -> bool:
        """Take a path that exists below the working directory; a directory counts only with a slash or a dot."""
        position = _POSITION.search(text)
        path = text[: position.start()] if position else text
        found = self._kind(path) if len(path) <= _LONGEST_NAME and path.strip("./") else ""
        if found == "directory" and not re.search(r"[/.]", path):
            return False
        if found == "file":
            self.files[NamedPath(path, int(position[1]) if position else 1)] = None
        elif found:
            self.directories[path.rstrip("/")] = None
        return bool(found)

    def _take_word(self, word: str) -> None:
        if word in STOP_WORDS:
            return
        pattern = stem(word) if word.isascii() else word
        weight = _WEAK_WEIGHT if word in WEAK_WORDS else 1.0
        self.add(Term(pattern, word, weight, word.isascii(), short_form(pattern)))

    def add(self, term: Term) -> None:
        key = term.pattern.lower()
        first, times = self._terms.get(key, (term, 0))
        self._terms[key] = (first, times + 1)

    def best_terms(self) -> tuple[Term, ...]:
        """Return the terms that say most: heaviest, then most often said, then first said."""
        ranked = sorted(self._terms.values(), key=lambda entry: (-entry[0].weight, -entry[1]))
        terms = [term for term, _ in ranked]
        strong = [term for term in terms if term.weight > _WEAK_WEIGHT]
        if len(strong) > 1 or self.files or self.globs:
            terms = strong
        return tuple(terms[:MAX_TERMS])


def _without_blocks(prompt: str) -> str:
    text = prompt.strip()
    while closing := next((end for start, end in _BLOCKS.items() if text.startswith(start)), None):
        _, found, after = text.partition(closing)
        if not found:
            break
        text = after.strip()
    return text


def _is_name_from_code(token: str) -> bool:
    """Return whether a token is written as people do not write words: `run_id`, `getUser`, `HTTP`, `os.path`, `404`."""
    if not re.fullmatch(r"\w+", token):
        return _DOTTED.fullmatch(token) is not None
    if token.isdigit():
        return len(token) >= 3
    return "_" in token or any(letter.isupper() for letter in token[1:]) or any(letter.isdigit() for letter in token)
