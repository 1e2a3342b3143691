"""The words of a shell and the characters between them, if bash, dash and zsh read them in the same way."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator

from msgspec import Struct

from .shell_words import ANYTHING, HOLE, NUMBER, SPLIT, word_set


class NotUnderstood(Exception):
    """A shell may understand a text differently from its reading here."""


class Word(Struct, frozen=True):
    """One word of a command."""

    value: str
    """The word after quote removal, with the marks of `shell_words` for expansions."""
    raw: str
    """The word as written."""


class Command(Struct, frozen=True):
    """A simple command: a name with arguments, and the variables set for it or by it."""

    words: tuple[Word, ...]
    assigned: tuple[tuple[str, Word], ...] = ()


UNKNOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that are not understood even within quotes."""
_LITERAL = re.compile(r"(?:[A-Za-z0-9_@%+=:,./^\]-]|(?![\x00-\x7f])\w)+")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&?|;&|;\||&>>|&>|<<<|<<-|<<|<&|<>|>>|>&|>\||[;&|\n()<>]")
REDIRECTIONS = word_set("&>> &> <<< <<- << <& <> >> >& >| < >")
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SPLITS = ANYTHING + SPLIT
_VARIABLE = re.compile(rf"\$(?:{NAME}(?![^\x00-\x7f])|[0-9@*?$!-]|#(?![\w{{\[]))(?!\[)")
_SAFE = r"[A-Za-z0-9_./@+,:% -]"
_BRACED = re.compile(
    rf"\$\{{(?:#?{NAME}|[0-9#?@*]|{NAME}\[[0-9@*]+\]|#{NAME}\[[@*]\]|{NAME}:(?: -)?[0-9]+(?::[0-9]+)?"
    rf"|(?:{NAME}|[0-9]+)(?::?[-+?]|##?|%%?|//?|\^\^?|,,?)(?:{_SAFE}|[*?])*)\}}"
)
_ARITHMETIC = re.compile(r"\$\(\([0-9 +*/%()<>=!&|-]*\)\)")
_ANSI = re.compile(r"""\$'(?:[^'\\]|\\[abefnrtvx0-9uU"?])*'""")
_DOLLAR_IN_QUOTES = re.compile(r"""\$(?=[ \t\n"./|),;%&<>\]}]|$)""")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')


class Lexer:
    """Reads words. Each method advances `_at` past the text that it reads."""

    def __init__(self, text: str, settled: frozenset[str], commands: list[Command]) -> None:
        self._text = text
        self._at: int = 0
        self._settled = settled
        """Variables that are one word."""
        self._heredocs: list[tuple[str, bool, bool]] = []
        """Delimiter, whether it is quoted, and whether tabs are stripped."""
        self.commands: list[Command] = commands

    @abstractmethod
    def _substitution(self) -> None:
        """Read commands up to the closing bracket."""

    @abstractmethod
    def _program_within(self, text: str) -> None:
        """Read a part of this text as a separate program."""

    # --- words -------------------------------------------------------------------------------------------------------

    def _word(self) -> Word:
        begin = self._at
        value = ""
        while self._at < len(self._text):
            if literal := _LITERAL.match(self._text, self._at):
                value += literal[0] if self._at > begin or literal[0][0] != "=" else ANYTHING
                self._at = literal.end()
                continue
            character = self._text[self._at]
            if character in " \t\n;&|()<>" and not (self._at == begin and self._is_process(self._operator())):
                break
            value += self._piece(character, begin)
        raw = self._text[begin : self._at]
        if not raw or raw in ("{", "}") or ("\n" in raw and self._heredocs):
            raise NotUnderstood
        return Word(raw if raw in ("=", "==") else value, raw)

    def _piece(self, character: str, begin: int) -> str:  # noqa: C901 - one branch for each character
        is_first = self._at == begin
        if character == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise NotUnderstood
            piece = self._text[self._at + 1 : end]
            self._at = end + 1
            return piece
        if character == '"':
            self._at += 1
            return self._quoted()
        if character == "$":
            return self._expansion(is_quoted=False)
        if character == "`":
            self._backquoted()
            return _SPLITS
        if character in "<>":
            self._at += 2
            self._substitution()
            return HOLE
        if character == "\\":
            self._at += 2
            escaped = self._text[self._at - 1 : self._at]
            if escaped in ("", "\n"):
                raise NotUnderstood
            return escaped
        self._at += 1
        if character == "{" and self._text.startswith("}", self._at):
            self._at += 1
            return "{}"
        if character == "~":
            return HOLE if is_first or self._text[self._at - 2] in ":=" else character
        if character == "#" and not is_first:
            return character
        if character == "!":
            is_whole = self._text[self._at : self._at + 1] in ("", *" \t\n;&|)")
            return character if not is_first or is_whole else ANYTHING
        if character == "[" and is_first and re.compile(r"\[?(?=[ \t]|$)").match(self._text, self._at):
            return character
        if character in "*?[{}":
            return ANYTHING
        raise NotUnderstood

    def _quoted(self, *, is_heredoc: bool = False) -> str:
        """Read up to the closing quote, or a here-document to its end."""
        value = ""
        while self._at < len(self._text):
            if plain := _PLAIN_IN_QUOTES.match(self._text, self._at):
                value += plain[0]
                self._at = plain.end()
                continue
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                if not is_heredoc:
                    return value
                value += character
            elif character == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                self._at += 2
                value += "" if escaped == "\n" else escaped if escaped in '$`"\\' else character + escaped
            elif character == "$":
                value += self._expansion(is_quoted=True)
            else:
                self._backquoted()
                value += HOLE
        if is_heredoc:
            return value
        raise NotUnderstood

    def _expansion(self, *, is_quoted: bool) -> str:
        text, at = self._text, self._at
        if text.startswith("$((", at):
            self._take(_ARITHMETIC)
            return NUMBER
        if text.startswith("$(", at):
            self._at += 2
            self._substitution()
            return HOLE if is_quoted else _SPLITS
        if braced := _BRACED.match(text, at):
            self._at = braced.end()
            is_many = re.search(r"[@*]\]?\}$", braced[0]) and not braced[0].startswith("${#")
            is_settled = braced[0][2:-1] in self._settled
            return HOLE if (is_quoted or is_settled) and not is_many else _SPLITS
        if variable := _VARIABLE.match(text, at):
            self._at = variable.end()
            if text.startswith("\\\n", self._at):
                raise NotUnderstood  # the name continues in the next line
            name = variable[0][1:]
            if name in ("#", "?", "$", "!"):
                return NUMBER
            return HOLE if name not in ("@", "*") and (is_quoted or name in self._settled) else _SPLITS
        if not is_quoted and (escaped := _ANSI.match(text, at)):
            self._at = escaped.end()
            return HOLE
        if dollar := _DOLLAR_IN_QUOTES.match(text, at):
            if not is_quoted and text[at + 1 : at + 2] not in ("", *" \t\n|),;&"):
                raise NotUnderstood
            self._at = dollar.end()
            return "$"
        raise NotUnderstood

    def _backquoted(self) -> None:
        end = self._text.find("`", self._at + 1)
        inner = self._text[self._at + 1 : end]
        if end < 0 or "\\" in inner:
            raise NotUnderstood
        self._at = end + 1
        self._program_within(inner)

    # --- characters --------------------------------------------------------------------------------------------------

    def _blanks(self) -> None:
        """Skip whitespace, continued lines, and a comment."""
        begin = self._at
        blanks = _BLANKS.match(self._text, begin)
        self._at = blanks.end() if blanks else begin
        around = self._text[max(begin - 1, 0) : begin] + self._text[self._at : self._at + 1]
        if (
            self._at > begin
            and self._text[begin : self._at].strip("\\\n") == ""
            and re.fullmatch(r"[^\w\s]{2}", around)
        ):
            raise NotUnderstood  # a continued line within an operator
        if self._text.startswith("#", self._at) and self._is_at_word():
            end = self._text.find("\n", self._at)
            comment = self._text[self._at : end if end >= 0 else len(self._text)]
            self._at += len(comment)
            self.commands += _commented(comment)

    def _is_at_word(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in " \t\n;&|()"

    def _end_word(self) -> None:
        """Require that a word ends here."""
        behind = re.compile(r"(?:\\\n)*").match(self._text, self._at)
        at = behind.end() if behind else self._at
        if at < len(self._text) and self._text[at] not in " \t\n;&|)<>":
            raise NotUnderstood
        if at > self._at and self._text[at : at + 1] not in (" ", "\t"):
            raise NotUnderstood

    def _operator(self) -> str:
        operator = _OPERATOR.match(self._text, self._at)
        return operator[0] if operator else ""

    def _is_process(self, operator: str) -> bool:
        return operator in ("<", ">") and self._text.startswith("(", self._at + 1)

    def _peeked(self, words: frozenset[str]) -> str:
        """Return the word here if it is one of `words`, unquoted and whole."""
        word = re.compile(r"[^ \t\n;&|()<>]*").match(self._text, self._at)
        return word[0] if word and word[0] in words else ""

    def _take(self, expected: re.Pattern[str]) -> str:
        match = expected.match(self._text, self._at)
        if match is None:
            raise NotUnderstood
        self._at = match.end()
        return match[0]


def _commented(comment: str) -> Iterator[Command]:
    """Yield the commands that a comment would run in interactive zsh, which reads it as code."""
    for part in re.split(r"[;&|()`]+", comment)[1:]:
        words = tuple(Word(word, word) for word in part.replace("#", " ").split())
        if words:
            yield Command(words)
