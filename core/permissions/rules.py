"""What an agent may do, must ask for, or must not do: rules like `bash(git *)` and `edit(src/**)`, and their decisions.

An allow pattern covers only what certainly matches: one command, files below the run's directory. Deny and ask rules
may cover more: in case of doubt a rule matches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from msgspec import Struct

from ..errors import UsageError
from ..run.events import CUT, Request
from ..run.model import Permissions, RequestKind, Verdict
from ..run.requests import is_marked
from ..text.plain import one_line
from ..text.visible import is_hiding_name
from ._protected_paths import UNCLEAR, Guard, guard_of_change
from .path_patterns import fits, may_touch, places, surely_below
from .path_readings import ANY_PROGRAM, PathRules, Reading, read_as
from .shell_words import ACTIVE_STAR, RESERVED, plain_words, simple_command

EDITING = ("edit", "write")
"""Equivalent in rules, because either can change a file. They also cover `NotebookEdit` and similar tools."""
_EDITORS = frozenset({*EDITING, "NotebookEdit", "MultiEdit", "apply_patch"})
_RUNNERS = frozenset({"bash", "Monitor"})
"""Tools that run commands, so that rules for `bash` apply. `Monitor` without a command opens a connection instead."""
READING = ("read", "grep", "find", "ls")
LOOKS_INTO = frozenset({"grep", "find", "ls"})
"""Tools that read everything below a given directory."""
EXACTLY = "="
"""Before a command in a rule: exactly this text."""

MOST_PATHS = 100
"""Most paths of a request; if there are as many, others may be missing."""
LONGEST_RULE = 1000
"""Characters."""
_RULE = re.compile(r"(\*|[A-Za-z0-9_][A-Za-z0-9_.:-]*\*?)(?:\((.*)\))?", re.DOTALL)


class Rule(Struct, frozen=True):
    """A rule as written."""

    text: str
    tool: str
    """A tool's name, or a prefix of names followed by `*`."""
    pattern: str | None = None
    """Pattern of the command or paths; None for every call."""

    def names(self, tool: str) -> bool:
        """Return whether it applies to a tool."""
        if self.tool.endswith("*"):
            return tool.startswith(self.tool[:-1])
        return (
            tool == self.tool
            or (self.tool in EDITING and tool in _EDITORS)
            or (self.tool == "bash" and tool in _RUNNERS)
        )


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises UsageError that says what is wrong with it."""
    text = text.strip()
    match = _RULE.fullmatch(text)
    if match is None or len(text) > LONGEST_RULE or is_hiding_name(text):
        raise _wrong(
            text,
            "is not a valid rule",
            "write a tool with an optional pattern: bash(git *), edit(src/**), mcp__github__*",
        )
    tool, pattern = match[1], match[2]
    if tool.lower() in ("bash", *EDITING, *READING) and tool != tool.lower():
        raise _wrong(text, f"uses an unknown tool name: use {tool.lower()}, for every agent", "")
    if pattern is None:
        return Rule(text, tool)
    pattern = pattern.strip()
    if not pattern:
        raise _wrong(text, "has empty brackets", f"write {tool} to match every call")
    if tool == "bash":
        _check_command(text, pattern)
    elif tool in (*EDITING, *READING):
        if ".." in pattern.split("/"):
            raise _wrong(text, 'contains ".." in its path', "write the path relative to the run's directory")
    else:
        raise _wrong(
            text,
            f"has a pattern, which {tool} does not support",
            f"write {tool}; only bash and file tools take patterns",
        )
    return Rule(text, tool, pattern)


def checked_rules(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the rules without duplicates. Raises UsageError for the first invalid one."""
    return tuple(dict.fromkeys(parse_rule(text).text for text in texts))


def merged(*several: Permissions) -> Permissions | None:
    """Combine rules; return None if there are none."""
    lists = (
        tuple(dict.fromkeys(rule for rules in several for rule in getattr(rules, name)))
        for name in Permissions.__struct_fields__
    )
    permissions = Permissions(*lists)
    return permissions if permissions != Permissions() else None


def asked_tools(permissions: Permissions | None) -> tuple[str, ...]:
    """Return the tools of ask and deny rules, whose every call must be decided here.

    A name may end with `*`, for all names with that prefix.
    """
    texts = (*permissions.ask, *permissions.deny) if permissions else ()
    return tuple(dict.fromkeys(name for text in texts for name in _names_of(parse_rule(text))))


def guarded_tools(permissions: Permissions | None) -> tuple[str, ...]:
    """Return the tools whose every call must be decided here if the agent never asks on its own: `asked_tools` and,
    in a run with rules, the tools that change files, because some files are protected.
    """
    return tuple(dict.fromkeys((*asked_tools(permissions), *EDITING))) if permissions else ()


def denied_tools(permissions: Permissions | None, offered: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tools denied with any arguments, including equivalent tools in `offered` with another name."""
    rules = [parse_rule(text) for text in (permissions.deny if permissions else ())]
    whole = [rule for rule in rules if rule.pattern is None and not rule.tool.endswith("*")]
    named = (name for rule in whole for name in _names_of(rule))
    equivalents = (name for name in offered if any(rule.names(name) for rule in whole))
    return tuple(dict.fromkeys((*named, *equivalents)))


def _names_of(rule: Rule) -> tuple[str, ...]:
    return EDITING if rule.tool in EDITING else (rule.tool,)


class Policy:
    """The rules of one run."""

    def __init__(self, permissions: Permissions | None, cwd: str, path_rules: PathRules = ANY_PROGRAM) -> None:
        rules = permissions or Permissions()
        self._cwd = cwd
        self._path_rules = path_rules
        self._deny, self._ask = _read(rules.deny, is_bound=True), _read(rules.ask, is_bound=True)
        self._allow = _read(rules.allow, is_bound=False)
        self._of_run: list[Rule] = []

    def decide(self, request: Request) -> tuple[Verdict | None, str]:
        """Return the verdict on a request and the rule behind it: deny before ask before allow.

        None with a rule: it asks. None without one: no rule matches. A built-in rule asks about changing a protected
        file, unless a user rule names the file. No rule allows a request with invisible characters or missing parts.
        """
        if request.kind is not RequestKind.PERMISSION:
            return None, ""
        for rule in self._deny:
            if self._may_match(rule, request):
                return Verdict.DENY, rule.text
        guard = self._guard(request)
        may_allow = not (is_marked(request) or request.missing)
        for rule in self._of_run if may_allow and not guard.why else ():
            if self._matches(rule, request):
                return Verdict.ALLOW, rule.text
        for rule in self._ask:
            if self._may_match(rule, request):
                return None, rule.text
        for rule in self._allow if may_allow else ():
            if self._matches(rule, request) and guard.lets(rule.pattern, self._cwd):
                return Verdict.ALLOW, rule.text
        return None, guard.why

    def allow_in_run(self, rule: str) -> None:
        """Allow a rule from `run_rule` until the run ends; deny rules still apply."""
        self._of_run.append(parse_rule(rule))

    def way(self, request: Request) -> tuple[str, frozenset[tuple[str, ...]]]:
        """Return a request's guard and where its paths lead, which differ after a link has changed."""
        try:
            targets = frozenset(parts for reading in self._readings(request) for parts in places(reading))
        except (OSError, ValueError):
            targets = frozenset[tuple[str, ...]]()
        return self._guard(request).why, targets

    def run_rule(self, request: Request) -> str:
        """Return a rule that would allow a request and similar ones: this command, files below the run's directory, or
        the tool. Empty if no rule would.
        """
        if request.kind is not RequestKind.PERMISSION or not request.tool_name or is_marked(request):
            return ""
        written = self._written_rule(request)
        try:
            rule = parse_rule(written)
        except UsageError:
            return ""
        return rule.text if self._matches(rule, request) and not self._guard(request).why else ""

    def _written_rule(self, request: Request) -> str:
        tool = request.tool_name
        if tool in _RUNNERS:
            words = simple_command(request.command) or ()
            is_plain = words and all(re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", word) for word in words)
            return f"bash({' '.join(words)})" if is_plain else f"bash({EXACTLY}{request.command})"
        if tool not in _EDITORS and tool not in READING:
            return tool
        word = EDITING[0] if tool in _EDITORS else tool
        if surely_below("**", self._readings(request), self._cwd):
            return f"{word}(**)"
        path = request.paths[0] if len(request.paths) == 1 else ""
        return f"{word}({path})" if os.path.isabs(path) and not re.search(r"[*?]", path) else ""

    def _readings(self, request: Request) -> tuple[Reading, ...]:
        """Return what the agent's tool may open for each path; empty if a path cannot be read."""
        directory = os.path.join(self._cwd, request.cwd)
        paths = request.paths or ((".",) if request.tool_name in LOOKS_INTO else ())
        try:
            return tuple(self._path_rules.read(request.tool_name, path, directory) for path in paths)
        except (OSError, ValueError):
            return ()

    def _guard(self, request: Request) -> Guard:
        """Return the guard that limits allow rules."""
        if request.tool_name in _EDITORS:
            readings = self._readings(request) if len(request.paths) < MOST_PATHS else ()
            return guard_of_change(readings, self._cwd, self._path_rules.settings)
        bounds = (*self._deny, *self._ask) if request.tool_name in READING else ()
        is_bound = any(rule.pattern is not None and rule.names(request.tool_name) for rule in bounds)
        return UNCLEAR if is_bound and not all(each.is_certain for each in self._readings(request)) else Guard()

    def _matches(self, rule: Rule, request: Request) -> bool:
        """Return whether a rule certainly covers the whole request."""
        if not request.tool_name or not rule.names(request.tool_name):
            return False
        if rule.pattern is None:
            return True
        if request.command.endswith(CUT) or len(request.paths) >= MOST_PATHS:
            return False
        if rule.tool == "bash":
            return self._is_made_here(request) and _is_command(rule.pattern, request.command)
        return bool(request.paths) and surely_below(rule.pattern, self._readings(request), self._cwd)

    def _is_made_here(self, request: Request) -> bool:
        """Return whether a command runs in the run's directory or below."""
        try:
            return surely_below("**", [read_as([request.cwd or "."], self._cwd)], self._cwd)
        except ValueError:
            return False

    def _may_match(self, rule: Rule, request: Request) -> bool:
        """Return whether a rule may cover any part of a request."""
        if not rule.names(request.tool_name):
            return False
        if rule.pattern is None:
            return True
        if rule.tool == "bash":
            if request.tool_name != "bash" and not request.command:
                return False
            is_whole = request.command.strip() and not request.command.endswith(CUT)
            return not is_whole or _may_be_command(rule.pattern, request.command)
        readings, looks_into = self._readings(request), request.tool_name in LOOKS_INTO
        is_whole = 0 < len(readings) < MOST_PATHS
        return not is_whole or may_touch(rule.pattern, readings, self._cwd, looks_into=looks_into)


def _read(texts: Iterable[str], *, is_bound: bool) -> list[Rule]:
    """Read a record's rules; one that this version does not understand bounds every call and allows none."""
    rules: list[Rule] = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except UsageError:
            rules += [Rule(text, "*")] if is_bound else []
    return rules


def _wrong(text: str, what: str, hint: str) -> UsageError:
    return UsageError(f'"{one_line(text, 60)}" {what}', where="permissions", hint=hint)


# --- commands --------------------------------------------------------------------------------------------------------


def _check_command(text: str, pattern: str) -> None:
    if pattern.startswith(EXACTLY):
        return
    words = plain_words(pattern)
    if words is None:
        what = "has more than one command in its brackets"
        raise _wrong(text, what, "write bash(git *), or bash(=…) for exactly this text")
    first = words[0] if words else ""
    if "=" in first or first in RESERVED or not first.replace(ACTIVE_STAR, "*").isprintable():
        what = "begins with text that cannot begin a command"
        raise _wrong(text, what, "write a program name or its full path, without variables before it")
    if any(word.endswith(f":{ACTIVE_STAR}") for word in words):
        raise _wrong(text, "ends with :*", "write a space before the *, as in bash(git *)")


def _is_command(pattern: str, command: str) -> bool:
    """Return whether a text is one command that a pattern covers."""
    if pattern.startswith(EXACTLY):
        return command.strip(" \t") == pattern.removeprefix(EXACTLY).strip(" \t")
    from ._shell_builtins import may_evaluate  # only runs with rules for bash need it

    words, pattern_words = simple_command(command), plain_words(pattern) or ()
    if words is None or (any(ACTIVE_STAR in word for word in pattern_words) and may_evaluate(words)):
        return False
    return fits(pattern_words, words)


def _may_be_command(pattern: str, command: str) -> bool:
    """Return whether a pattern may cover any command that a shell runs for a text."""
    if pattern.startswith(EXACTLY):
        return command.strip() == pattern.removeprefix(EXACTLY).strip()
    from ._shell_programs import possible_commands  # for the same reason

    pattern_words = plain_words(pattern) or ()
    name = pattern_words[0] if pattern_words else ""
    names = {name, name.rpartition("/")[2] or name}
    forms = {(form, *pattern_words[1:]) for form in names | {name.lower() for name in names}}
    return any(fits(form, words) for words in possible_commands(command) for form in forms)
