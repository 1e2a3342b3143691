"""git's settings: which of them an unknown checkout may say, and what is said in place of those that it may not.

What a repository's own settings name is run by git with this user's rights. There are two ways around that. In a
repository of ours (`snapshot.py`) only settings stand that are known to be harmless: `harmless`. Where the repository
itself has to be changed, everything in it that names a program is overridden: `overrides`; the user's own settings,
by which he has git-lfs, hold as ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

Setting = tuple[str, str]
"""A key, as `core.eol`, and its value."""

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
"""Said with every command, whatever anybody's settings are."""

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
"""What names a program, a file outside, or a place to fetch from, in the documentation of any git up to 2.52."""

_HARMLESS = re.compile(
    r"core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat|sparsecheckout"
    r"|sparsecheckoutcone|sharedrepository|protecthfs|protectntfs|checkroundtripencoding|longpaths)"
    r"|index\.(sparse|version)|extensions\.objectformat|diff\.(algorithm|renames|renamelimit)"
)
"""What changes nothing but how files are read, and is needed to read them as git itself would."""


class Entry(NamedTuple):
    scope: str
    """`system`, `global`, `local`, `worktree` or `command`."""
    key: str
    value: str

    @property
    def is_checkouts(self) -> bool:
        return self.scope in ("local", "worktree")


def parsed(listing: bytes) -> list[Entry]:
    """Parse what git answers to `LISTING`."""
    fields = os.fsdecode(listing).split("\0")
    entries: list[Entry] = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, has_value, value = setting.partition("\n")
        entries.append(Entry(scope, key, value if has_value else "true"))
    return entries


def overrides(entries: Iterable[Entry]) -> list[Setting]:
    """Return what is said in place of what a checkout's own settings would run: what the user says, or nothing."""
    entries = list(entries)
    users = {entry.key: entry.value for entry in entries if entry.scope in ("system", "global")}
    theirs = dict.fromkeys(e.key for e in entries if e.is_checkouts and _PROGRAMS.fullmatch(e.key.lower()))
    fixed = {key.lower() for key, _ in FIXED}
    return [(key, users.get(key, _nothing(key))) for key in theirs if key not in fixed]


def harmless(entries: Iterable[Entry]) -> list[Setting]:
    """Return the settings of user and checkout that a repository of ours takes over; the last one of a key holds."""
    return [(e.key, e.value) for e in entries if e.scope != "command" and _HARMLESS.fullmatch(e.key.lower())]


def unrun_filters(entries: Iterable[Entry]) -> list[str]:
    """Return the names of filters that a checkout's own settings have and the user's have not: they are not run."""
    entries = list(entries)
    named = [(entry, re.fullmatch(r"filter\.(.*)\.(?:clean|smudge|process)", entry.key)) for entry in entries]
    users = {found[1] for entry, found in named if found and not entry.is_checkouts}
    return sorted({found[1] for entry, found in named if found and entry.is_checkouts} - users)


def value_of(entries: Iterable[Entry], key: str, *, own: bool = False) -> str:
    """Return the value of a key that holds; with `own` only what the checkout says itself; empty where none does."""
    values = [entry.value for entry in entries if entry.key == key and (entry.is_checkouts or not own)]
    return values[-1] if values else ""


def _nothing(key: str) -> str:
    """Return the value that has git run nothing of the checkout's."""
    last = key.rpartition(".")[2]
    if last == "driver":
        return "false"  # the command: a merge by none would end well, and keep one side only
    if last in ("required", "cachetextconv", "promisor", "enabled"):
        return "false"
    return ""
