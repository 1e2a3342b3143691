"""git's settings: which ones an untrusted checkout may set, and what replaces the others.

git runs the programs named in a repository's own settings with this user's rights. There are two defenses. A repository
of subdeck's (`snapshot.py`) has only settings known to be harmless: `harmless`. Where the repository itself is changed,
every setting of it that names a program is overridden: `overrides`. The user's own settings, such as those for git-lfs,
still apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

Setting = tuple[str, str]
"""A key, such as `core.eol`, and its value."""

LISTING = ("config", "--list", "--includes", "--show-scope", "-z")

FIXED: tuple[Setting, ...] = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.safecrlf", "false"),
    ("core.quotePath", "false"),
    ("core.splitIndex", "false"),
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("credential.helper", ""),
    ("advice.detachedHead", "false"),
    ("color.ui", "false"),
    ("column.ui", "never"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("core.askPass", ""),
    ("init.templateDir", ""),
    ("rerere.enabled", "false"),
    ("branch.autoSetupMerge", "false"),
    ("branch.autoSetupRebase", "never"),
    ("worktree.guessRemote", "false"),
)
"""Passed with every command, overriding all other settings."""

_PROGRAMS = re.compile(
    r"filter\..*\.(clean|smudge|process|required)"
    r"|diff\.external|diff\..*\.(command|textconv|cachetextconv)"
    r"|merge\..*\.driver|merge\.(tool|guitool)|(merge|diff)tool\..*"
    r"|alias\..*|pager\..*|(man|browser)\..*\.(cmd|path)|(web|help)\.browser"
    r"|core\.(sshcommand|gitproxy|alternaterefscommand|attributesfile|excludesfile|virtualfilesystem)"
    r"|sequence\.editor|interactive\.difffilter|gpg\.program|gpg\..*\.program|gpg\.ssh\..*(command|file)"
    r"|credential\..*\.helper|remote\..*\.(uploadpack|receivepack|vcs|proxy|promisor)"
    r"|uploadpack\.packobjectshook|protocol\..*\.allow|submodule\..*\.update|trailer\..*\.(cmd|command)"
    r"|hook\..*\.(command|event|enabled)|tar\..*\.command|imap\.tunnel|instaweb\..*|guitool\..*|sendemail\..*"
    r"|mailmap\.(file|blob)"
    r"|lfs\.(extension|customtransfer)\..*|lfs\.(.*\.)?standalonetransferagent"
)
"""Settings that name a program, an outside file or a fetch source, per the documentation of git up to 2.52."""

_HARMLESS = re.compile(
    r"core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat|sparsecheckout"
    r"|sparsecheckoutcone|sharedrepository|protecthfs|protectntfs|checkroundtripencoding|longpaths)"
    r"|index\.(sparse|version)|extensions\.objectformat|diff\.(algorithm|renames|renamelimit)"
)
"""Settings that only change how files are read, needed to read them as git itself would."""


class ConfigEntry(NamedTuple):
    scope: str
    """`system`, `global`, `local`, `worktree` or `command`."""
    key: str
    value: str

    @property
    def is_checkouts(self) -> bool:
        return self.scope in ("local", "worktree")


def parsed(listing: bytes) -> list[ConfigEntry]:
    """Parse git's output for `LISTING`."""
    fields = os.fsdecode(listing).split("\0")
    entries: list[ConfigEntry] = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, has_value, value = setting.partition("\n")
        entries.append(ConfigEntry(scope, key, value if has_value else "true"))
    return entries


def overrides(entries: Iterable[ConfigEntry]) -> list[Setting]:
    """Return settings that override what a checkout's own settings would run: the user's values, or empty ones."""
    entries = list(entries)
    users = {entry.key: entry.value for entry in entries if entry.scope in ("system", "global")}
    theirs = dict.fromkeys(e.key for e in entries if e.is_checkouts and _PROGRAMS.fullmatch(e.key.lower()))
    fixed = {key.lower() for key, _ in FIXED}
    return [(key, users.get(key, _nothing(key))) for key in theirs if key not in fixed]


def harmless(entries: Iterable[ConfigEntry]) -> list[Setting]:
    """Return the user's and the checkout's settings for a repository of subdeck's; the last value of a key wins."""
    return [(e.key, e.value) for e in entries if e.scope != "command" and _HARMLESS.fullmatch(e.key.lower())]


def unrun_filters(entries: Iterable[ConfigEntry]) -> list[str]:
    """Return filters that only the checkout's settings define, not the user's: they are not run."""
    entries = list(entries)
    named = [(entry, re.fullmatch(r"filter\.(.*)\.(?:clean|smudge|process)", entry.key)) for entry in entries]
    users = {match[1] for entry, match in named if match and not entry.is_checkouts}
    return sorted({match[1] for entry, match in named if match and entry.is_checkouts} - users)


def value_of(entries: Iterable[ConfigEntry], key: str, *, own: bool = False) -> str:
    """Return the effective value of a key, or with `own` only the checkout's; empty if unset."""
    values = [entry.value for entry in entries if entry.key == key and (entry.is_checkouts or not own)]
    return values[-1] if values else ""


def _nothing(key: str) -> str:
    """Return a value that makes git run nothing from the checkout."""
    last = key.rpartition(".")[2]
    if last == "driver":
        return "false"  # as a command: with an empty driver the merge would succeed and keep one side only
    if last in ("required", "cachetextconv", "promisor", "enabled"):
        return "false"
    return ""
