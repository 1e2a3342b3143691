"""Read the settings for how a working tree's files are read, and compare them with earlier ones."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from ..system import files
from . import configuration
from .configuration import ConfigEntry, Setting
from .index import small_file
from .program import GitError
from .reading_rules import Reading
from .repository import Repository

INFO = ("exclude", "attributes", "sparse-checkout")
LISTS = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
"""Settings that name a file, and its default name in the user's git directory."""
_DEFAULTS: tuple[Setting, ...] = (
    ("core.filemode", "true"),
    ("core.symlinks", "true"),
    ("core.ignorecase", "false"),
    ("core.autocrlf", "false"),
    ("core.eol", "native"),
    ("core.sparsecheckout", "false"),
    ("core.ignorestat", "false"),
)
"""For unset keys: they may not be set later either."""
_CERTAIN: tuple[Setting, ...] = (("core.trustctime", "true"), ("core.checkstat", "default"))
"""For all snapshots but the first: only a file's status-change time cannot be set by the program that changes it."""
_GRAFTS = ("info/grafts", "objects/info/alternates")
_REPLACED = "refs/replace/"
_SAMPLE = ".sample"
_MOST_HOOKS = 200
_MOST_MODULES = 50
_FILE, _SETTING = "file ", "setting "


def read(repository: Repository) -> Reading:
    """Return how a repository is read now. Raises GitError."""
    entries = repository.git.configured()
    users = [entry for entry in entries if entry.scope in ("system", "global")]
    filters = [(entry.key, entry.value) for entry in users if entry.key.startswith("filter.")]
    hides_untracked = configuration.value_of(entries, "status.showuntrackedfiles", own=True) in ("no", "false")
    settings = [setting for setting in configuration.harmless(entries) if not setting[0].startswith("extensions.")]
    return Reading(
        settings=(*_DEFAULTS, *filters, *settings, ("status.showUntrackedFiles", "no" if hides_untracked else "all")),
        info={name: content for name in INFO if (content := small_file(_info_path(repository, name)))},
        lists={key: content for key in LISTS if (content := _list(repository, entries, key))},
        unrun=tuple(configuration.unrun_filters(entries)),
        prints=_prints(repository, entries),
        at_ns=time.time_ns(),
    )


def changed_settings(first: Reading, root: str, git_dir: str, common_dir: str) -> tuple[str, ...]:
    """Return the names of settings, hooks and lists that have changed: `core.filemode`, `info/exclude`.

    Works even if git can no longer use the repository.
    """
    repository = Repository(root, git_dir=git_dir or common_dir, common_dir=common_dir)
    try:
        entries = repository.git.configured()
    except GitError:
        entries = None
    now = _prints(repository, entries or ())
    names = {name for name in first.prints.keys() | now.keys() if first.prints.get(name) != now.get(name)}
    if entries is None:
        names = {name for name in names if not name.startswith(_SETTING)}
    elif any(name.startswith(_SETTING) for name in names):
        names -= {f"{_FILE}config", f"{_FILE}config.worktree"}
    return tuple(sorted(name.partition(" ")[2] for name in names))


def certain(reading: Reading) -> tuple[Setting, ...]:
    """Return the settings for a snapshot that has to find every change since the first."""
    return (*reading.settings, *_CERTAIN)


def _info_path(repository: Repository, name: str) -> str:
    above = repository.git_dir if name == "sparse-checkout" else repository.common_dir
    return os.path.join(above, "info", name)


def _list(repository: Repository, entries: Sequence[ConfigEntry], key: str) -> bytes:
    """Read a list named in the settings. The repository's own must be inside its working tree."""
    if value := configuration.value_of(entries, key, own=True):
        path = os.path.realpath(os.path.join(repository.root, os.path.expanduser(value)))
        if f"{path}/".startswith(f"{repository.root}/"):
            return small_file(path)
    users = [entry for entry in entries if not entry.is_checkouts]
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = configuration.value_of(users, key) or os.path.join(above, "git", LISTS[key])
    return small_file(os.path.realpath(os.path.join(repository.root, os.path.expanduser(path))))


def _prints(repository: Repository, entries: Iterable[ConfigEntry]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    hooks = ""
    for entry in entries:
        if entry.is_checkouts:
            values.setdefault(entry.key, []).append(entry.value)
            hooks = entry.value if entry.key == "core.hookspath" else hooks
    prints = {f"{_SETTING}{key}": _digest("\0".join(each).encode("utf-8", "replace")) for key, each in values.items()}
    for name, path in _files(repository, hooks):
        if print_ := _print(path):
            prints[f"{_FILE}{name}"] = print_
    for name in _replaced(repository.common_dir):
        prints[f"{_FILE}{name}"] = "-"
    return prints


def _files(repository: Repository, hooks: str) -> Iterator[tuple[str, str]]:
    """Yield the names and paths of the files to compare."""
    yield "config.worktree", os.path.join(repository.git_dir, "config.worktree")
    for name in INFO:
        yield f"info/{name}", _info_path(repository, name)
    for name in _GRAFTS:
        yield name, os.path.join(repository.common_dir, name)
    for prefix, above in (("", repository.common_dir), *_modules(repository.common_dir)):
        yield f"{prefix}config", os.path.join(above, "config")
        yield from _hooks(f"{prefix}hooks", os.path.join(above, "hooks"))
    if hooks:
        yield from _hooks(hooks, os.path.join(repository.root, os.path.expanduser(hooks)))


def _hooks(name: str, directory: str) -> Iterator[tuple[str, str]]:
    for hook in files.names(directory)[:_MOST_HOOKS]:
        if not hook.endswith(_SAMPLE):
            yield f"{name}/{hook}", os.path.join(directory, hook)


def _modules(common_dir: str) -> Iterator[tuple[str, str]]:
    """Yield the repositories of submodules inside another one."""
    remaining = _MOST_MODULES
    for directory, names, held in os.walk(os.path.join(common_dir, "modules")):
        if "config" in held and remaining:
            remaining -= 1
            names[:] = [name for name in names if name == "modules"]
            yield f"{os.path.relpath(directory, common_dir)}/", directory


def _replaced(common_dir: str) -> Iterator[str]:
    """Yield the references that make git replace one object with another."""
    for name in files.names(os.path.join(common_dir, _REPLACED)):
        yield f"{_REPLACED}{name}"
    packed = small_file(os.path.join(common_dir, "packed-refs"))
    for name in re.findall(rf" ({_REPLACED}[0-9a-f]+)$".encode(), packed, re.M):
        yield os.fsdecode(name)


def _print(path: str) -> str:
    """Return a file's fingerprint; empty if it is missing."""
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return f"link {_digest(os.fsencode(os.readlink(path)))} {_digest(small_file(os.path.realpath(path)))}"
    if kind != stat.S_IFREG:
        return f"kind {kind:o}"
    content = small_file(path)
    long = "" if len(content) == status.st_size else f" {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{status.st_mode & 0o111:o} {_digest(content)}{long}"


def _digest(content: bytes) -> str:
    try:
        from _blake2 import blake2b  # as in hashlib, without loading OpenSSL (9 ms)
    except ImportError:
        from hashlib import blake2b
    return blake2b(content, digest_size=16).hexdigest()
