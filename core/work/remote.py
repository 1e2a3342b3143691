"""The work of a run on another machine: it starts with a snapshot of the files, and returns as a branch.

The snapshot is recorded beside the work of runs, outside any checkout. The project's index, branches and HEAD stay
unchanged; subdeck's own references keep the run's objects until it returns.

The branch starts with the files of the launch, and has one commit. It is not checked out, and the user can merge it;
files, index and HEAD stay unchanged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..errors import LaunchError, SubdeckError
from ..git.configuration import ConfigEntry
from ..git.merges import commit
from ..git.packs import Intake, carrier_content, has_commit, result_content, write_commit
from ..git.program import Git, GitError
from ..git.repository import Repository, find
from ..git.snapshot import Store
from ..git.worktrees import branch as branch_of, cone, create_branches, fit
from ..run.describe import size_text
from ..run.model import RunMeta
from ..system import files, processes
from ..system.log import log_fault
from ..system.record import read_record as read_json
from ..text.plain import one_line
from .base import BRANCHES, MOST_TOLD
from .records import AWAY_FILE, Away, WorkRecord, read_away, read_record, write_away, write_record
from .source import usable

OWN_REFS = "refs/subdeck/runs"
"""One reference for each run on a host: its starting commit."""
CARRIERS = "refs/subdeck/carriers"
MOST_CARRIERS = 16
"""Snapshots to keep, so that the next one is sent as a difference."""
OLD_S = 14 * 24 * 3600.0
"""Seconds until they are deleted."""
_SENT = "sent.json"
PACKS = ".packs"
"""Packs for hosts, beside the work of the runs."""
_PATH = "or share the files with the hosts (hosts: {code: path})"
_FALSE = ("", "0", "false", "no", "off")
_WITHOUT_HEAD = "commit something first"


def repository_key(common_dir: str) -> str:
    """Return the name on hosts of a repository of this user and machine."""
    words = "\0".join((os.path.realpath(common_dir), processes.machine_id(), str(os.geteuid())))
    return paths.hex_digest(os.fsencode(words), 16)


class _Taken(Struct, frozen=True):
    """The common starting state of all runs launched in one repository."""

    repository: Repository
    tree: str
    carrier: str
    base: str
    notes: tuple[str, ...]
    """What is not sent, in sentences."""


def take(project: paths.Project, metas: Iterable[RunMeta], sparse: Sequence[str]) -> dict[str, RunMeta]:
    """Save the files to send with runs, once per repository; return the runs with warnings about them, by id.

    On LaunchError, `take_back` removes any remains.
    """
    try:
        cone(sparse)
    except SubdeckError as error:
        raise LaunchError(
            error.what, where=f"hosts.sparse: {error.where}", hint="such as sparse: [src, docs]"
        ) from error
    taken: dict[str, _Taken] = {}
    begun: dict[str, RunMeta] = {}
    references: dict[str, tuple[Repository, list[str]]] = {}
    try:
        for meta in metas:
            repository = sendable(meta.cwd)
            if repository.root not in taken:
                taken[repository.root] = _taken(project, repository)
            state = taken[repository.root]
            _write(project, meta, state, repository.prefix, sparse)
            lines = references.setdefault(repository.root, (repository, []))[1]
            lines.append(f"update {OWN_REFS}/{meta.run_id} {state.base}\n")
            begun[meta.run_id] = replace(meta, warnings=(*meta.warnings, *state.notes))
        for repository, lines in references.values():
            repository.git.run("update-ref", "--stdin", input="".join(lines).encode())
    except GitError as error:
        what = f"cannot send the files to a host: {error.what}"
        raise LaunchError(what, where=error.where, hint=error.hint) from error
    except OSError as error:
        what = f"cannot save the files for a host: {error.strerror or error}"
        raise LaunchError(what, where=str(error.filename or ""), hint="check disk space and permissions") from error
    return begun


def sendable(directory: str) -> Repository:
    """Return the repository whose files a run sends along. Raises LaunchError if there are none to send."""
    repository, where = find(directory), one_line(directory, 200)
    if repository is None:
        raise LaunchError(
            "cannot send its files to a host: not a git repository",
            where=where,
            hint=_PATH,
            code="git.not_a_repository",
        )
    if repository.trouble:
        raise LaunchError(
            f"cannot send its files to a host: {repository.trouble}",
            where=where,
            hint=_PATH,
            code="git.not_a_repository",
        )
    if repository.head is None:
        what = "cannot send its files to a host: its repository has no commit yet"
        raise LaunchError(what, where=where, hint=_WITHOUT_HEAD)
    if any(map(_says_partial, repository.git.configured())):
        what = "cannot send its files to a host: its repository is an incomplete partial clone"
        raise LaunchError(what, where=where, hint=_PATH, code="git.not_a_repository")
    return repository


def _says_partial(entry: ConfigEntry) -> bool:
    """Whether a setting marks a partial clone; only old versions write the first one."""
    is_remotes = entry.key.startswith("remote.") and entry.key.endswith(".promisor")
    return entry.key == "extensions.partialclone" or (is_remotes and entry.value.lower() not in _FALSE)


def _taken(project: paths.Project, repository: Repository) -> _Taken:
    works = paths.works_dir(project)
    store = Store(os.path.join(works, f".base-{paths.project_key(repository.root)}"), aside=(paths.state_file("work"),))
    snapshot = store.take(repository, into_repository=True)
    head = snapshot.head
    git = repository.git
    carrier = write_commit(git, carrier_content(snapshot.tree))
    if snapshot.tree == repository.tree:
        base = head
    else:
        message = "Snapshot of the files\n\nTaken by subdeck at the launch of runs on other machines."
        base = commit(git, snapshot.tree, [head], message)
    _remember(works, repository, carrier)
    notes = [
        f"{file.path} is not on the host: {file.why}{f' ({size_text(file.size)})' if file.size else ''}"
        for file in snapshot.skipped[:MOST_TOLD]
    ]
    if len(snapshot.skipped) > MOST_TOLD:
        notes.append(f"{len(snapshot.skipped) - MOST_TOLD} more files are not on the host")
    return _Taken(
        repository, snapshot.tree, carrier, base, (*notes, *filter(None, (snapshot.note,)), *_odd(repository))
    )


def _odd(repository: Repository) -> list[str]:
    """Describe what differs on a host from the local repository."""
    notes: list[str] = []
    if os.path.lexists(os.path.join(repository.root, ".gitmodules")):
        notes.append("its submodules are empty on the host")
    if b"filter=" in files.content(os.path.join(repository.root, ".gitattributes")):
        names = {e.key.split(".")[1] for e in repository.git.configured() if e.key.startswith("filter.")}
        filters = f" ({one_line(', '.join(sorted(names)), 80)})" if names else ""
        notes.append(f"filtered files{filters} are on the host as git stores them")
    return notes


def _write(project: paths.Project, meta: RunMeta, taken: _Taken, prefix: str, sparse: Sequence[str]) -> None:
    repository = taken.repository
    directory = paths.work_dir(project, meta.run_id)
    away = Away(
        run_id=meta.run_id,
        project=project.root,
        root=repository.root,
        common_dir=repository.common_dir,
        repository=repository_key(repository.common_dir),
        tree=taken.tree,
        carrier=taken.carrier,
        base=taken.base,
        head=repository.head or "",
        branch=f"{BRANCHES}/{fit(meta.preset or 'adhoc')}-{meta.short_id}",
        made_at=meta.created_at,
        prefix=prefix,
        sparse=tuple(dict.fromkeys([*sparse, *([prefix] if sparse and prefix else [])])),
    )
    write_away(directory, away)


def _remember(works: str, repository: Repository, carrier: str) -> None:
    """Keep this snapshot and earlier ones as a basis for the next difference. Raises GitError and OSError."""
    earlier = carriers(works, repository.common_dir)
    if earlier[:1] == (carrier,):
        return
    kept = tuple(dict.fromkeys([carrier, *earlier]))
    lines = [f"update {CARRIERS}/{carrier} {carrier}\n"]
    lines += [f"delete {CARRIERS}/{old_carrier}\n" for old_carrier in kept[MOST_CARRIERS:]]
    repository.git.run("update-ref", "--stdin", input="".join(lines).encode())
    files.write_whole(_sent_file(works, repository.common_dir), msgspec.json.encode(kept[:MOST_CARRIERS]))


def carriers(works: str, common_dir: str) -> tuple[str, ...]:
    """Return the last snapshots of a repository, newest first; it may no longer have them."""
    return read_json(_sent_file(works, common_dir), tuple[str, ...], ())


def sweep(project: paths.Project) -> None:
    """Delete the snapshots of a repository that were not sent for two weeks. Raises nothing."""
    works = paths.works_dir(project)
    for name in files.names(works):
        path = os.path.join(works, name)
        try:
            if not name.endswith(f"-{_SENT}") or os.stat(path).st_mtime > time.time() - OLD_S:
                continue
            repository = find(project.root)
            if repository is None or repository.trouble or _sent_file(works, repository.common_dir) != path:
                continue
            lines = [f"delete {CARRIERS}/{carrier}\n" for carrier in carriers(works, repository.common_dir)]
            repository.git.run("update-ref", "--stdin", input="".join(lines).encode())
            files.remove(path)
        except (GitError, OSError) as error:
            log_fault("deleting old snapshots", error)


def _sent_file(works: str, common_dir: str) -> str:
    return os.path.join(works, f".{repository_key(common_dir)}-{_SENT}")


def take_back(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove the data of runs that were never created. Raises nothing."""
    for run_id in run_ids:
        let_go(project, run_id)
        files.remove_tree(paths.work_dir(project, run_id))


def let_go(project: paths.Project, run_id: str) -> None:
    """Delete the reference to a run's starting state: it has returned, or is gone for good. Raises nothing."""
    directory = paths.work_dir(project, run_id)
    away = read_away(directory)
    if away is None:
        return
    repository = find(away.root)
    try:
        if repository is not None and not repository.trouble and repository.common_dir == away.common_dir:
            repository.git.run("update-ref", "-d", f"{OWN_REFS}/{run_id}")
    except (SubdeckError, OSError) as error:
        log_fault("deleting the snapshot of a run on a host", error)
        return
    files.remove(os.path.join(directory, AWAY_FILE))


# --- the result of a run on another machine --------------------------------------------------------------------------

MOST = 1024 * 1024 * 1024
"""Maximum bytes of a pack from a host."""
_NAMES = 9
"""How many names to try for a branch."""


class Back(Struct, frozen=True):
    base: str
    """Commit of the starting files."""
    branch: str = ""
    """Empty if nothing was changed."""


def unchanged(project: paths.Project, meta: RunMeta, host: str) -> Back:
    """Record that a run has returned without changes. Raises SubdeckError and OSError."""
    away = _away(project, meta)
    return _noted(project, meta, away, host, "")


def bring_back(project: paths.Project, meta: RunMeta, host: str, pack: IO[bytes], tree: str, commit_id: str) -> Back:
    """Create a branch from a host's files; if repeated, return the existing one. Raises SubdeckError and OSError.

    The files are untrusted: each object is checked, and the commit must be the one of the tree on the run's starting
    state.
    """
    away = _away(project, meta)
    repository = usable(away.root)
    if repository.common_dir != away.common_dir:
        raise SubdeckError("a different repository is there now", where=one_line(away.root))
    directory = paths.work_dir(project, meta.run_id)
    intake = Intake(repository.git_dir, repository.objects, os.path.join(directory, "apart"), directory=repository.root)
    try:
        intake.read(pack, MOST)
        if not has_commit(intake.git, commit_id, result_content(tree, away.carrier)):
            raise SubdeckError("the received files do not match the host's report", where=host)
        settled = Git(repository.root, settings=(("core.fsync", "all"),), patience=intake.git.patience)
        intake.keep(pack, settled)
    finally:
        intake.close()
    words = f"{one_line(meta.title, 40)} {meta.short_id}"
    name = _branch(repository, away, tree, f"Work of {words}\n\nDone on {one_line(host, 64)}.")
    return _noted(project, meta, away, host, name)


def _away(project: paths.Project, meta: RunMeta) -> Away:
    """Return a run's starting state, or the earlier record of a run that has returned. Raises SubdeckError."""
    away = read_away(paths.work_dir(project, meta.run_id))
    if away is None:
        raise SubdeckError("its starting files are no longer known", where=meta.run_id)
    return away


def _branch(repository: Repository, away: Away, tree: str, message: str) -> str:
    """Create the branch with its one commit; return its name. Raises GitError."""
    for name in (away.branch, *(f"{away.branch}-{number}" for number in range(2, _NAMES))):
        existing = branch_of(repository, name)
        if existing is None:
            new = commit(repository.git, tree, [away.base], message)
            create_branches(repository, {name: new})
            return name
        if _is_of(repository, existing.commit, tree, away.base):
            return name
    raise GitError(f"the branch {away.branch} already exists", where=repository.root)


def _is_of(repository: Repository, commit_id: str, tree: str, base: str) -> bool:
    """Whether a commit has this work, from a relay that was killed before it reported so."""
    fields = os.fsdecode(repository.git.run("log", "-1", "--format=%T %P", commit_id, "--")).split()
    return fields == [tree, base]


def _noted(project: paths.Project, meta: RunMeta, away: Away, host: str, name: str) -> Back:
    directory = paths.work_dir(project, meta.run_id)
    existing = read_record(directory)
    if existing is None or existing.branch != name:
        record = WorkRecord(
            run_id=meta.run_id,
            project=project.root,
            root=away.root,
            common_dir=away.common_dir,
            branch=name,
            base=away.base,
            made_at=meta.created_at,
            head=away.head,
            prefix=away.prefix,
            away=host,
        )
        write_record(directory, record)
    return Back(away.base, name)


def settle(project: paths.Project, run_id: str) -> None:
    """Release a run's starting state, now that its result exists and no further request comes. Raises nothing."""
    let_go(project, run_id)
