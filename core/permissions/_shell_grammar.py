"""A strict grammar of the shell: it accepts only text that bash, dash and zsh read in the same way.

A command is understood only if each of its characters is. Text that may mean different things to these shells raises
NotUnderstood, and the caller must assume that it can run anything.
"""

from __future__ import annotations

import re

from ._shell_lexer import NAME, REDIRECTIONS, UNKNOWN, Command, Lexer, NotUnderstood, Word
from .shell_words import ARRAY, HOLE, RESERVED, UNEXPECTED, without_quotes, word_set

LONGEST = 1_000_000
"""Most characters of a text."""
_DEEPEST = 40
"""Levels of commands and substitutions."""
_SEPARATORS = frozenset(("&&", "||", "|&", "|", ";", "&", "\n"))
_ASSIGNMENT = re.compile(rf"({NAME})\+?=")
_DELIMITER = re.compile(r"'([A-Za-z0-9_.-]+)'|\"([A-Za-z0-9_.-]+)\"|\\([A-Za-z0-9_]+)|([A-Za-z0-9_]+)")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n")
_FUNCTION = re.compile(r"\([ \t]*\)")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]*")
_DECLARES = word_set("declare typeset local export readonly")
_SETTLED = ("HOME", "USER", "TMPDIR")
"""Variables that are one word, unless the text sets them."""


def commands_in(text: str, *, is_nested: bool = False) -> tuple[Command, ...]:
    """Return a text's commands in order.

    Raises NotUnderstood. `is_nested` means that the text is within another one, which may have set any variable.
    """
    if len(text) > LONGEST or UNKNOWN.search(text):
        raise NotUnderstood
    bare = without_quotes(text)
    is_unsettled = is_nested or "IFS" in bare
    settled = () if is_unsettled else [name for name in _SETTLED if not re.search(rf"(?<![\w${{]){name}\b", bare)]
    parser = _Parser(text, frozenset(settled), [])
    parser.program()
    return tuple(parser.commands)


class _Parser(Lexer):
    """Reads commands by recursive descent."""

    _depth = 0

    def program(self) -> None:
        self._list(frozenset())
        if self._at < len(self._text) or self._heredocs:
            raise NotUnderstood

    # --- lists and compound commands ---------------------------------------------------------------------------------

    def _list(self, ends: frozenset[str]) -> str:
        """Read commands up to a word or operator of `ends`; consume and return it, or "" at the end."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotUnderstood
        while True:
            self._blanks()
            if self._at == len(self._text):
                break
            end = self._end_of(ends)
            if end:
                self._at += len(end)
                self._depth -= 1
                return end
            if self._operator() in _SEPARATORS:
                self._separator()
            else:
                self._command()
                self._blanks()
                after = self._operator()
                if self._at < len(self._text) and after not in _SEPARATORS and after not in ends:
                    raise NotUnderstood
        if ends:
            raise NotUnderstood
        self._depth -= 1
        return ""

    def _end_of(self, ends: frozenset[str]) -> str:
        operator = self._operator()
        return operator if operator in ends else self._peeked(ends)

    def _separator(self) -> None:
        operator = self._operator()
        self._at += len(operator)
        if operator == "\n":
            self._read_heredocs()

    def _command(self) -> None:
        """Read one command, simple or compound, with its redirections."""
        if self._operator() == "(":
            if self._text.startswith("((", self._at):
                raise NotUnderstood
            self._at += 1
            self._list(frozenset((")",)))
            self._redirections()
            return
        word = self._peeked(RESERVED)
        if not word:
            self._simple()
            return
        if word in UNEXPECTED:
            raise NotUnderstood
        self._at += len(word)
        if word == "!":
            self._following()
        elif word == "time":
            self._timed()
        else:
            self._compound(word)
            self._redirections()

    def _compound(self, word: str) -> None:
        if word == "{":
            self._list(frozenset("}"))
        elif word == "if":
            end = "elif"
            while end == "elif":
                self._list(frozenset(("then",)))
                end = self._list(frozenset(("elif", "else", "fi")))
            if end == "else":
                self._list(frozenset(("fi",)))
        elif word in ("while", "until"):
            self._list(frozenset(("do",)))
            self._list(frozenset(("done",)))
        elif word == "for":
            self._for()
        elif word == "case":
            self._case()
        elif word == "function":
            self._blanks()
            self._take(_FUNCTION_NAME)
            self._blanks()
            if self._operator() == "(":
                self._take(_FUNCTION)
            self._following()
        else:
            self._test()

    def _following(self) -> None:
        """Read the command after a prefix word."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotUnderstood
        self._lines()
        if self._operator() not in ("", "(", *REDIRECTIONS) or self._at == len(self._text):
            raise NotUnderstood
        self._command()
        self._depth -= 1

    def _timed(self) -> None:
        """Read the command after `time`: a reserved word in bash, a program in dash."""
        self._blanks()
        if self._peeked(frozenset(("-p",))):
            self._at += 2
            self._blanks()
        if self._text.startswith("-", self._at):
            self._simple((Word("time", "time"),))
        elif self._at < len(self._text) and self._operator() in ("", "(", *REDIRECTIONS):
            self._following()

    def _for(self) -> None:
        self._blanks()
        name = self._take(re.compile(NAME))
        self._lines()
        values: list[Word] = []
        if self._peeked(frozenset(("in",))):
            self._at += 2
            self._blanks()
            while not self._operator() and self._at < len(self._text):
                values.append(self._word())
                self._blanks()
        # As if a command set it: a value may be unsafe for a special variable.
        self.commands += [Command((), ((name, value),)) for value in values]
        if self._operator() in (";", "\n"):
            self._separator()
        self._lines()
        if not self._peeked(frozenset(("do",))):
            raise NotUnderstood
        self._at += 2
        self._list(frozenset(("done",)))

    def _case(self) -> None:
        self._blanks()
        self._word()
        self._lines()
        if not self._peeked(frozenset(("in",))):
            raise NotUnderstood
        self._at += 2
        while True:
            self._lines()
            if self._peeked(frozenset(("esac",))):
                self._at += 4
                return
            if self._operator() == "(":
                self._at += 1
                self._blanks()
            while True:
                self._word()
                self._blanks()
                operator = self._operator()
                if operator not in ("|", ")"):
                    raise NotUnderstood
                self._at += 1
                if operator == ")":
                    break
                self._blanks()
            if self._list(frozenset((";;", "esac"))) == "esac":
                return

    def _test(self) -> None:
        """Read `[[ … ]]`. Dash treats the text after `&&` and `||` as commands, so it is also one here."""
        group: list[Word] = []
        groups = [group]
        while True:
            self._blanks()
            operator = self._operator()
            if operator in ("&&", "||"):
                self._at += 2
                group = []
                groups.append(group)
            elif operator or self._at == len(self._text):
                raise NotUnderstood
            else:
                word = self._word()
                if word.raw == "]]":
                    break
                group.append(word)
        for number, words in enumerate(groups):
            self.commands.append(Command((Word("[[", "[["), *words)))
            if number and words:
                self.commands.append(Command((*words, Word("]]", "]]"))))

    # --- simple commands ---------------------------------------------------------------------------------------------

    def _simple(self, words: tuple[Word, ...] = ()) -> None:
        command_words = list(words)
        assigned: list[tuple[str, Word]] = []
        is_behind_both = False
        """Whether `&>` was read: dash ends the command at its `&`."""
        while self._at < len(self._text):
            operator = self._operator()
            if operator in REDIRECTIONS and not self._is_process(operator):
                is_behind_both = is_behind_both or operator.startswith("&>")
                self._redirection(operator)
            elif operator and not self._is_process(operator):
                break
            elif is_behind_both:
                raise NotUnderstood
            else:
                begin = self._at
                word = self._word()
                if self._text.startswith("(", self._at):
                    if self._is_function(word, command_words, assigned, begin):
                        return
                    word = self._array(word, command_words)
                if self._is_number_of_redirection(word, begin):
                    self._blanks()
                    continue
                name = _ASSIGNMENT.match(word.raw)
                if name and not command_words:
                    assigned.append((name[1], _part(word, name.end(), is_added="+" in name[0])))
                elif not command_words and re.match(r"\w+(?:\[|\+?=)", word.raw):  # zsh has more names of variables
                    raise NotUnderstood
                else:
                    command_words.append(word)
            self._blanks()
        self.commands.append(Command(tuple(command_words), tuple(assigned)))

    def _is_function(self, word: Word, words: list[Word], assigned: list[tuple[str, Word]], begin: int) -> bool:
        if words or assigned or not _FUNCTION_NAME.fullmatch(word.raw) or self._text[begin : self._at] != word.raw:
            return False
        self._take(_FUNCTION)
        self._following()
        return True

    def _array(self, word: Word, words: list[Word]) -> Word:
        """Read the elements of an assigned array; anything else before a bracket is not understood."""
        name = _ASSIGNMENT.fullmatch(word.raw)
        if name is None or (words and words[0].value not in _DECLARES):
            raise NotUnderstood
        begin = self._at
        self._at += 1
        while True:
            self._lines()
            if self._operator() == ")":
                break
            if self._operator() or self._text.startswith("[", self._at):
                raise NotUnderstood
            self._word()
        self._at += 1
        self._end_word()
        return Word(word.value + ARRAY, word.raw + self._text[begin : self._at])

    def _is_number_of_redirection(self, word: Word, begin: int) -> bool:
        if self._text[self._at : self._at + 1] not in ("<", ">") or begin == self._at:
            return False
        if re.fullmatch(r"[0-9]", word.raw):
            return True
        if re.fullmatch(r"[0-9]+|\{\w*\}", word.raw) or self._text[self._at + 1 : self._at + 2] == "(":
            raise NotUnderstood
        return False

    def _redirections(self) -> None:
        """Read the redirections after a compound command."""
        self._blanks()
        while self._at < len(self._text):
            if number := re.compile(r"[0-9](?=[<>])").match(self._text, self._at):
                self._at = number.end()
            operator = self._operator()
            if operator not in REDIRECTIONS:
                return
            self._redirection(operator)
            self._blanks()

    def _redirection(self, operator: str) -> None:
        self._at += len(operator)
        following = self._text[self._at : self._at + 1]
        if following in ("!", "|", "&") and following:
            raise NotUnderstood  # zsh has more operators
        self._blanks()
        if operator in ("<<", "<<-"):
            self._heredoc(operator)
            return
        if self._at == len(self._text) or (self._operator() and not self._is_process(self._operator())):
            raise NotUnderstood
        target = self._word()
        if operator in ("<&", ">&") and not re.fullmatch(r"[0-9]|-|[^-0-9].*", target.raw, re.DOTALL):
            raise NotUnderstood  # `>&-x` ends at the `-` for bash
        if self._text.startswith("(", self._at):
            raise NotUnderstood

    def _heredoc(self, operator: str) -> None:
        delimiter = self._take(_DELIMITER)
        self._end_word()
        self._heredocs.append((delimiter.strip("'\"\\"), delimiter[0] in "'\"\\", operator == "<<-"))

    def _read_heredocs(self) -> None:
        for delimiter, is_quoted, is_stripped in self._heredocs:
            begin = self._at
            tabs = r"\t*" if is_stripped else ""
            end = re.compile(rf"^{tabs}{re.escape(delimiter)}$", re.MULTILINE).search(self._text, begin)
            if end is None:
                raise NotUnderstood
            body = self._text[begin : end.start()]
            self._at = min(end.end() + 1, len(self._text))
            if not is_quoted and re.search(r"[$`\\]", body):
                if _CONTINUED.search(body):
                    raise NotUnderstood
                self._inner(body)._quoted(is_heredoc=True)
        self._heredocs = []

    def _lines(self) -> None:
        """Skip whitespace and line breaks."""
        self._blanks()
        while self._text.startswith("\n", self._at):
            self._separator()
            self._blanks()

    def _substitution(self) -> None:
        """Read commands up to the closing bracket."""
        if self._heredocs and "\n" in self._text[self._at :].split(")")[0]:
            raise NotUnderstood
        outer, self._heredocs = self._heredocs, []
        begin = self._at
        self._list(frozenset((")",)))
        if self._heredocs or (outer and "\n" in self._text[begin : self._at]):
            raise NotUnderstood
        self._heredocs = outer

    def _inner(self, text: str) -> _Parser:
        """Return a parser of a part of this text that adds to the same commands."""
        parser = _Parser(text, self._settled, self.commands)
        parser._depth = self._depth + 1
        return parser

    def _program_within(self, text: str) -> None:
        self._inner(text).program()


def _part(word: Word, begin: int, *, is_added: bool) -> Word:
    """Return a word without its beginning, which has no quotes or expansions; `+=` adds it to an unknown value."""
    return Word(HOLE * is_added + word.value[begin:], word.raw[begin:])
