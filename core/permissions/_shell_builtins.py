"""Builtins and variables through which a shell runs text that does not look like a command."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from .shell_words import ACTIVE_HOME, ACTIVE_MARK, ACTIVE_STAR, ANYTHING, ARRAY, HOLE, NUMBER, word_set

_EVALUATES = word_set(
    "let fc bind complete compgen compopt enable emulate sched zmodload autoload zle zstyle vared print integer float"
    " nameref functions zparseopts zformat setopt unsetopt options coproc disable zcompile zpty ztcp zsystem compdef"
    " bindkey add-zsh-hook private"
)
"""Builtins whose arguments are code, or change the meaning of later text."""
_RUNS_ARGUMENTS = word_set("eval . source trap alias exec command builtin - noglob nocorrect")
"""Builtins whose arguments are commands."""
_NUMBERS_ALONE = word_set(
    "RANDOM SRANDOM SECONDS LINENO HISTCMD OPTIND BASHPID EPOCHSECONDS UID EUID GID EGID PPID SHLVL TMOUT HISTSIZE"
    " SAVEHIST MAILCHECK LOGCHECK KEYTIMEOUT FUNCNEST DIRSTACKSIZE LISTMAX"
)
"""Variables that are numbers in some shell: values assigned to them are arithmetic."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ACTIVE = re.compile(f"[{ACTIVE_STAR}{ACTIVE_MARK}{ACTIVE_HOME}]")
_DIGITS = re.compile(rf"[0-9{NUMBER}]+")
_UNARY = word_set("-a -b -c -d -e -f -g -h -k -n -p -r -s -t -u -w -x -z -G -L -N -O -S")
_STRINGS = word_set("= == != -nt -ot -ef")
_NUMBERS = word_set("-eq -ne -lt -le -gt -ge")
SET_OPTIONS = word_set(
    "allexport errexit errtrace functrace hashall monitor noclobber noexec noglob nounset pipefail verbose xtrace"
)


def is_evaluated(words: tuple[str, ...], *, is_text: bool = False) -> bool:
    """Return whether a command is a builtin that may treat one of its words as code.

    With `is_text`, the arguments of `eval` and similar builtins are checked elsewhere.
    """
    name, arguments = words[0], words[1:]
    if name == "[[":  # does not split the values of variables
        arguments = tuple(word.replace(ANYTHING, HOLE) for word in arguments)
    if name in _EVALUATES or (name in _RUNS_ARGUMENTS and not is_text):
        return True
    check = _CHECKS.get(name)
    return check is not None and not check(arguments)


def may_evaluate(words: tuple[str, ...]) -> bool:
    """Return whether a simple command is a builtin that may treat some of its words, or a file's name, as code."""
    return is_evaluated(tuple(_ACTIVE.sub(ANYTHING, word) for word in words))


def is_special(variable: str) -> bool:
    """Return whether a variable names programs, or changes what a shell or program runs."""
    is_other = variable in ("PATH", "path") or variable in _NUMBERS_ALONE
    return bool(_CHANGES.fullmatch(variable)) or names_program(variable) or is_other


def is_arithmetic(variable: str, value: str) -> bool:
    """Return whether a shell may evaluate an assigned value as arithmetic, and so run text in it."""
    return variable in _NUMBERS_ALONE and not _DIGITS.fullmatch(value)


def names_program(variable: str) -> bool:
    """Return whether a variable's value is a command that programs run."""
    return bool(_PROGRAM.fullmatch(variable)) and not _HARMLESS.fullmatch(variable)


def changes_commands(variable: str) -> bool:
    """Return whether a variable may make any command run another command or other code."""
    return bool(_CHANGES.fullmatch(variable)) and not _HARMLESS.fullmatch(variable)


SPECIAL_IN_TEXT = re.compile(
    r"(?<!\$)(?<!\$\{)\b(?:GIT_\w+|LD_\w+|DYLD_\w+|PATH|ENV|BASH_\w+|\w*(?:EDITOR|PAGER|VISUAL))="
)
"""Such a variable in text that a shell may split at whitespace and assign."""

_HARMLESS = re.compile(
    r"GIT_(?:AUTHOR|COMMITTER)_\w+|GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|TERMINAL_PROMPT|MERGE_AUTOEDIT|DISCOVERY_\w+)"
    r"|GIT_(?:OPTIONAL_LOCKS|LFS_\w+|TRACE\w*|CURL_VERBOSE|CEILING_DIRECTORIES|FLUSH|PAGER_IN_USE|REFLOG_ACTION)"
    r"|GIT_(?:NO_\w+|LITERAL_PATHSPECS|GLOB_PATHSPECS|NOGLOB_PATHSPECS|ICASE_PATHSPECS|ADVICE|OBJECT_DIRECTORY)"
)
_PROGRAM = re.compile(
    r"\w*(?:EDITOR|VISUAL|PAGER|BROWSER|ASKPASS|_COMMAND|_CMD|_SHELL|_WRAPPER|_RUNNER|_RSH|_SSH|_EXEC|_PROGRAM|_HELPER|_HOOK)"
    r"|SHELL|CC|CXX|CPP|LD|AR|AS|NM|FC|TERMINAL|GIT_\w+|READNULLCMD|NULLCMD|FCEDIT|HISTTIMEFORMAT|MAILER|OPENER"
)
_CHANGES = re.compile(
    r"LD_\w+|DYLD_\w+|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT\w*|RPROMPT|BASH_(?:FUNC|CMDS|ALIASES|LOADABLES)\w*"
    r"|ZDOTDIR|FPATH|fpath|CDPATH|MODULE_PATH|module_path|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|MFLAGS|PERL5OPT|PERL5DB|RUBYOPT"
    r"|LESSOPEN|LESSCLOSE|GIT_(?:CONFIG\w*|EXEC_PATH|TEMPLATE_DIR)|GCONV_PATH|\w+_functions|RSYNC_\w+|FIGNORE|EXECIGNORE"
    r"|GLOBIGNORE|aliases|functions|commands|galiases|saliases|dis_\w+|builtins|POSIXLY_CORRECT|MAILPATH|TRAP\w+"
)
ARRAY_IN_TEXT = re.compile(r"=\(|\s-\w*[aA]|\b(?:mapfile|readarray)\b")
"""An array in a text: values in brackets declared after it are evaluated."""


def _is_literal(*words: str) -> bool:
    return not any(mark in word for word in words for mark in (ANYTHING, HOLE, NUMBER))


def _are_names(words: tuple[str, ...]) -> bool:
    return all(_NAME.fullmatch(word) and not is_special(word) for word in words)


def _plain_test(arguments: tuple[str, ...]) -> bool:
    """Return whether a test has a form that evaluates nothing: `-v` does, and numbers are arithmetic in some shells."""
    if any(ANYTHING in word for word in arguments):
        return False
    parts: list[list[str]] = [[]]
    for word in arguments[:-1] if arguments[-1:] in (("]",), ("]]",)) else arguments:
        if word in ("-a", "-o") and len([word for word in parts[-1] if word != "!"]) > 1:
            parts.append([])
        else:
            parts[-1].append(word)
    return all(map(_plain_part, parts)) and (len(parts) == 1 or _is_literal(*arguments))


def _plain_part(words: list[str]) -> bool:
    while words and words[0] == "!":
        words = words[1:]
    match words:
        case [] | [_]:
            return True
        case [operator, operand]:
            return operator in _UNARY and (operator != "-t" or bool(_DIGITS.fullmatch(operand)))
        case [left, operator, right]:
            are_numbers = _DIGITS.fullmatch(left) and _DIGITS.fullmatch(right)
            return operator in _STRINGS or (operator in _NUMBERS and bool(are_numbers))
        case _:
            return False


def _plain_printf(arguments: tuple[str, ...]) -> bool:
    if arguments and arguments[0] == "--":
        arguments = arguments[1:]
    if not arguments:
        return True
    form, values = arguments[0], arguments[1:]
    if not _is_literal(form) or form.startswith("-"):
        return False
    form = form.replace("%%", "")
    kinds = re.findall(r"%[-+ #0]*\d*(?:\.\d*)?([A-Za-z])", form)
    if form.count("%") != len(kinds) or not set(kinds) <= set("sbcqdiouxXeEfFgG"):
        return False
    if set(kinds) <= set("sbcq"):
        return True
    are_plain = (
        kind in "sbcq" or re.fullmatch(rf"-?[0-9.{NUMBER}]*", value)
        for kind, value in zip(itertools.cycle(kinds), values, strict=False)
    )
    return not any(ANYTHING in value for value in values) and all(are_plain)


def _plain_read(arguments: tuple[str, ...]) -> bool:
    words = list(arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if re.fullmatch(r"-[res]*[pdtnNu]", option):
            if not words or ANYTHING in words[0] or (option[-1] not in "pd" and not _DIGITS.fullmatch(words[0])):
                return False
            words.pop(0)
        elif not re.fullmatch(r"-[resa]+|-t[0-9]+|-n[0-9]+|-u[0-9]|--", option):
            return False
    return _are_names(tuple(words))


def _plain_declaration(arguments: tuple[str, ...]) -> bool:
    is_array = False
    for word in arguments:
        if re.fullmatch(r"[-+][aAfFgpxrlu]+|--", word):
            is_array = is_array or "a" in word or "A" in word
            continue
        name = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(?:\+?=(.*))?$", word, re.DOTALL)
        if name is None or word.startswith("("):
            return False
        value = name[2] or ""
        if "=" in word and is_arithmetic(name[1], value):
            return False
        if value.startswith("(") or (is_array and value not in ("", ARRAY)):
            return False
    return True


def _plain_set(arguments: tuple[str, ...]) -> bool:
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word in ("--", "-"):
            return True
        if not re.fullmatch(r"[-+][abefhmnuvxCET]*o?", word):
            return not word.startswith(("-", "+")) and _is_literal(word)
        if word.endswith("o") and words and words.pop(0) not in SET_OPTIONS:
            return False
    return True


def _plain_shopt(arguments: tuple[str, ...]) -> bool:
    """Return whether the options of bash only change how words are read where the text is not understood anyway."""
    return all(re.fullmatch(r"-[supq]+|[a-z_]+", word) and "hist" not in word for word in arguments)


def _number_alone(arguments: tuple[str, ...]) -> bool:
    return not arguments or (len(arguments) == 1 and bool(_DIGITS.fullmatch(arguments[0])))


def _no_option(letters: str) -> Callable[[tuple[str, ...]], bool]:
    """Return the check for a builtin that evaluates only with certain options."""

    def check(arguments: tuple[str, ...]) -> bool:
        for word in arguments:
            if word == "--":
                return True
            if word.startswith((HOLE, ANYTHING)) or (word.startswith("-") and set(word) & {*letters, ANYTHING, HOLE}):
                return False
        return True

    return check


def _plain_hash(arguments: tuple[str, ...]) -> bool:
    return all(_is_literal(word) and "=" not in word and word in ("-r", word.lstrip("-")) for word in arguments)


def _plain_array(arguments: tuple[str, ...]) -> bool:
    return _are_names(tuple(word for word in arguments if word != "-t"))


def _plain_limits(arguments: tuple[str, ...]) -> bool:
    return all(re.fullmatch(rf"-[A-Za-z]+|[0-9{NUMBER}]+|unlimited|hard|soft", word) for word in arguments)


def _plain_unset(arguments: tuple[str, ...]) -> bool:
    return all(_NAME.fullmatch(word) or word in ("-v", "-f") for word in arguments)


_CHECKS: dict[str, Callable[[tuple[str, ...]], bool]] = {
    **dict.fromkeys(("test", "[", "[["), _plain_test),
    **dict.fromkeys(("declare", "typeset", "local", "export", "readonly"), _plain_declaration),
    **dict.fromkeys(("shift", "exit", "return", "break", "continue"), _number_alone),
    **dict.fromkeys(("mapfile", "readarray"), _plain_array),
    "printf": _plain_printf,
    "read": _plain_read,
    "set": _plain_set,
    "shopt": _plain_shopt,
    "unset": _plain_unset,
    "getopts": lambda words: len(words) > 1 and ANYTHING not in words[0] and _are_names(words[1:2]),
    "wait": _no_option("p"),
    "jobs": _no_option("x"),
    "hash": _plain_hash,
    "ulimit": _plain_limits,
    "umask": lambda words: _is_literal(*words),
}
