"""What a shell would make of a command, told without one.

It is told twice. `simple_command` is for what is to be allowed: where anything but one command with its words could
come of a text, it is none. `possible_commands` is for what is to be refused: it leaves out nothing that the text says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ACTIVE_STAR, ACTIVE_MARK, ACTIVE_HOME = "\x01", "\x02", "\x03"
"""Stand for `*`, `?` and `~` that are not quoted: the shell puts other text in their place, and only arguments."""
_ACTIVE = {"*": ACTIVE_STAR, "?": ACTIVE_MARK, "~": ACTIVE_HOME}

ANYTHING = "\x04"
"""From here on anything may stand, in as many words as it likes."""
HOLE = "\x05"
"""Anything may stand here, within this word."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


RESERVED = _set(
    "if then else elif fi for while until do done case esac in function select time coproc repeat foreach end nocorrect"
    " noglob { } ! [[ ]] -"
)
"""Words that are none of a command's where they stand first."""

RUNS_CODE = _set(
    "eval . source trap alias exec command builtin fc bind complete compgen enable mapfile readarray emulate sched"
    " zmodload autoload"
)
"""Builtins that take arguments for commands, or change what later words mean."""

EVALUATES = _set("test [ printf let declare typeset local export readonly unset read getopts wait set")
"""Builtins that look for substitutions in arguments where these name elements of arrays."""

CARRIERS = _set(
    "sh bash dash zsh ksh ash fish busybox eval exec command builtin env sudo doas su nohup nice ionice time timeout"
    " xargs find fd parallel ssh watch strace ltrace script flock setsid stdbuf chroot unshare nsenter systemd-run"
    " coproc trap runuser taskset chrt caffeinate entr docker podman csh tcsh nu xonsh elvish pwsh powershell"
)
"""Programs and builtins that run what stands among their arguments."""

OTHER_SHELLS = _set("fish csh tcsh nu xonsh elvish pwsh powershell")
"""Shells that quote in other ways than sh: a text that one of them is given may run anything."""
_ASKS_SHELL = frozenset({"--version", "-v", "--help", "-h"})

_PIECE = re.compile(
    r"""(?P<plain>[A-Za-z0-9_@%+=:,./-]+)|(?P<active>[*?~])|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)\""""
    r"""|\\(?P<escaped>.)|(?P<blank>[ \t]+)"""
)
_ESCAPED = re.compile(r'\\([$`"\\])')
_MOST_NESTED = 4
"""Commands within words of commands that are looked at."""
_MOST_CARRIED = 500
"""Words among which commands are looked for."""


def simple_command(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that any shell runs as one command and nothing else; None for every other.

    `*`, `?` and `~` that are not quoted are the marks above. None of the words comes of a variable, and none sets one.
    """
    words = plain_words(text)
    if not words or not words[0] or "=" in words[0] or words[0] in RESERVED or not words[0].isprintable():
        return None
    if words[0] in EVALUATES and any("$" in word or "`" in word for word in words):
        return None
    return words


def plain_words(text: str) -> tuple[str, ...] | None:
    """Split a text without operators, substitutions and line breaks at its blanks; None where it has any of these."""
    text = text.strip(" \t")
    if not text.replace("\t", " ").isprintable():
        return None
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return None
        at = piece.end()
        kind, said = str(piece.lastgroup), piece[str(piece.lastgroup)]
        if kind == "blank":
            words += [] if word is None else [word]
            word = None
        elif kind == "active":
            word = (word or "") + _ACTIVE[said]
        else:
            word = (word or "") + (_ESCAPED.sub(r"\1", said) if kind == "double" else said)
    return (*words, word) if word is not None else tuple(words)


def possible_commands(text: str, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the words of everything in a text that a shell might run as a command, and of some that it would not.

    Programs that run others are followed into their arguments. What a variable or a substitution brings is ANYTHING, or
    a HOLE where it is quoted.
    """
    if depth >= _MOST_NESTED or any(mark in text for mark in (ANYTHING, HOLE, "\\`")):
        yield (ANYTHING,)
        return
    reader = _Reader(text)
    for words in reader.commands():
        yield from _with_carried(words, depth)
    if reader.is_open or "<<" in text:  # a quote within a text that is no command, as in a here-document
        for line in text.splitlines():
            for words in _Reader(line).commands():
                yield from _with_carried(words, depth)


def _with_carried(words: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield a command, without the variables that are set for it, and those that it carries among its arguments."""
    at = 0
    while at < len(words) and (words[at] in RESERVED or re.match(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", words[at])):
        at += 1
    words = words[at:]
    if not words:
        return
    yield words
    name = words[0].rpartition("/")[2]
    if name != words[0]:
        yield (name, *words[1:])
    if name not in CARRIERS:
        return
    if len(words) > _MOST_CARRIED or any(_is_read_otherwise(words, at) for at in range(len(words))):
        yield (ANYTHING,)
        return
    for position in range(1, len(words)):
        yield words[position:]
        if "/" in words[position]:
            yield (words[position].rpartition("/")[2], *words[position + 1 :])
        if re.search(r"[\s;&|()<>`$]", words[position]):
            yield from possible_commands(words[position], depth + 1)


def _is_read_otherwise(words: tuple[str, ...], at: int) -> bool:
    """Return whether the word may be a shell that quotes in other ways, and is given options: one may hold commands."""
    is_shell = words[at].rpartition("/")[2] in OTHER_SHELLS
    return is_shell and any(
        (word.startswith("-") and word not in _ASKS_SHELL) or ANYTHING in word or HOLE in word
        for word in words[at + 1 :]
    )


class _Reader:
    """Goes through a text as a shell does, but never stops at a fault."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[tuple[str, ...]] = []
        self._words: list[str] = []
        self._word: str | None = None
        self._is_quoted = False
        """Within double quotes."""
        self._is_target = False
        """Whether the word is that of a redirection."""
        self._outer: list[tuple[list[str], str | None, bool, str]] = []
        """What goes on after the substitution or subshell, and what ends it."""
        self.is_open = False
        """Whether a quote was not closed."""

    def commands(self) -> list[tuple[str, ...]]:
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "\\":
                self._escape()
            elif character == "$":
                self._expand()
            elif character == "`":
                self._backquote()
            elif self._is_quoted:
                self._in_quotes(character)
            else:
                self._unquoted(character)
        self.is_open = self.is_open or self._is_quoted
        self._end_command()
        for words, word, _, _ in reversed(self._outer):
            self._words, self._word = words, word
            self._end_command()
        return self._found

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _escape(self) -> None:
        following = self._next()
        if following == "\n":
            self._at += 1
        elif self._is_quoted and following not in ("$", '"', "\\"):
            self._add("\\")
        else:
            self._at += 1
            self._add(following)

    def _expand(self) -> None:
        following = self._next()
        if following == "(":
            self._at += 1
            self._add(HOLE if self._is_quoted else ANYTHING)
            self._begin(")")
        elif following == "'" and not self._is_quoted:
            self._add(ANYTHING)
            end = re.compile(r"'(?:[^'\\]|\\.)*'?", re.DOTALL).match(self._text, self._at)
            self._at = end.end() if end else self._at
        elif name := re.compile(r"[A-Za-z_]\w*|[0-9#?$!*-]").match(self._text, self._at):
            self._at = name.end()
            self._add(HOLE if self._is_quoted and name[0] != "*" else ANYTHING)
        elif following in ("{", "@", "["):
            self._at += 1
            self._add(ANYTHING)
        elif following != '"':
            self._add("$")

    def _backquote(self) -> None:
        if self._outer and self._outer[-1][3] == "`":
            self._resume()
        else:
            self._add(HOLE if self._is_quoted else ANYTHING)
            self._begin("`")

    def _in_quotes(self, character: str) -> None:
        if character == '"':
            self._is_quoted = False
        else:
            self._add(character)

    def _unquoted(self, character: str) -> None:
        if character == '"':
            self._is_quoted = True
            self._add("")
        elif character == "'":
            end = self._text.find("'", self._at)
            self.is_open = self.is_open or end < 0
            self._add(self._text[self._at : end if end >= 0 else None])
            self._at = end + 1 if end >= 0 else len(self._text)
        elif character == "#" and self._word is None:
            end = self._text.find("\n", self._at)
            comment = self._text[self._at : end if end >= 0 else None].replace("#", " ")
            self._at = end if end >= 0 else len(self._text)
            self._found += _Reader(comment).commands()  # it is one for most shells
        elif character in "<>" or (character == "&" and self._next() == ">"):
            self._redirect()
        elif character == "(":
            self._begin(")")
        elif character == ")" and self._outer and self._outer[-1][3] == ")":
            self._resume()
        elif character in ";&|\n)" or (character in "{}" and self._word is None and self._next() in ("", *" \t\n;")):
            self._end_command()
        elif character.isspace():
            self._end_word()
        elif character in "*?{" or (character == "[" and not self._is_test()):
            self._add(ANYTHING)
        else:
            self._add(character)

    def _is_test(self) -> bool:
        """Whether this bracket is a word of its own: a command."""
        return self._word is None and self._next() in ("", *" \t\n[")

    def _redirect(self) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        while self._next() in ("<", ">", "&", "|", "-") and self._next():
            self._at += 1
        if self._next() == "(":
            self._add(ANYTHING)
        else:
            self._is_target = True

    def _begin(self, end: str) -> None:
        """Go into a substitution or a subshell."""
        self._outer.append((self._words, self._word, self._is_quoted, end))
        self._words, self._word, self._is_quoted, self._is_target = [], None, False, False

    def _resume(self) -> None:
        self._end_command()
        self._words, self._word, self._is_quoted, _ = self._outer.pop()

    def _end_word(self) -> None:
        if self._word is not None and not self._is_target:
            self._words.append(self._word)
        self._is_target = self._is_target and self._word is None
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        self._is_target = False
        if self._words:
            self._found.append(tuple(self._words))
        self._words = []
