"""Which runs are this user's, so that subdeck may act on them; the others are untrusted, and only displayed."""

from __future__ import annotations

import os
import stat

from msgspec import structs

from .. import paths
from ..errors import SubdeckError
from ..run import artifacts, signature
from ..run.model import RunMeta
from ..run.signature import Verifier
from ..system import files
from ..system.directory import opened


def is_own(run_dir: str, *, certain: bool = False) -> bool:
    """Return whether this user's subdeck made a run; check this before ending, finishing, continuing or cleaning up
    one.

    With `certain`, an unreadable record raises OSError: it may be this user's.
    """
    return artifacts.is_own(run_dir, Verifier(), certain=certain)


def why_foreign(run_dir: str) -> str:
    """Return a clause that explains why a run is not this user's."""
    try:
        with opened(run_dir) as directory:
            owner = directory.status(".").st_uid
    except OSError as error:
        return f"cannot use its directory: {error.strerror}"
    if not paths.is_own(owner):
        return f"it belongs to another user (uid {owner})"
    if fault := artifacts.fault_of(run_dir, paths.META):
        return fault
    if not signature.has_signature(artifacts.read_bytes(run_dir, paths.META)):
        return "it has no signature: an earlier subdeck or another program created it"
    try:
        if signature.read_key() is None:
            return f"no key to check its signature ({paths.key_file()})"
    except SubdeckError as error:
        return error.what
    return "its signature is not yours, or the run was changed or copied"


def check_own(project: paths.Project, run_id: str) -> None:
    """Raise SubdeckError for an untrusted run; call this before acting on a run. A run that is gone passes."""
    run_dir = project.run_dir(run_id)
    if not is_own(run_dir) and files.exists(run_dir):
        raise SubdeckError(
            f"run {run_id[-6:]} is not trusted: {why_foreign(run_dir)}",
            where=run_id,
            hint=f"if you trust it, run subdeck adopt {run_id[-6:]}; subdeck rm moves it to the trash",
            code="run.untrusted",
        )


def session_file(run_dir: str, meta: RunMeta) -> str | None:
    """Return the file with the conversation of a run; None if there is none.

    It must be in the run directory, or where sticky ones are: no other path in the record is trusted.
    """
    if meta.session_path is None:
        return None
    path = os.path.join(run_dir, paths.CHILD_SESSION)
    if meta.session_lock is not None:
        path = os.path.normpath(meta.session_path)
        if os.path.dirname(os.path.dirname(path)) != paths.shared_sessions():
            return None
    try:
        return path if stat.S_ISREG(os.lstat(path).st_mode) else None
    except OSError:
        return None


def adopt(project: paths.Project, run_id: str) -> None:
    """Sign a run as this user's, under the name of its directory. Raises SubdeckError if that is impossible.

    Its conversation is dropped unless it is the run's own or one of a sticky preset.
    """
    run_dir = project.run_dir(run_id)
    meta = _adoptable(run_dir, run_id)
    meta = structs.replace(meta, run_id=run_id, session_path=session_file(run_dir, meta))
    if meta.system_prompt is not None:
        meta = structs.replace(meta, system_prompt_path=os.path.join(run_dir, paths.SYSTEM_PROMPT))
    try:
        artifacts.seal_results(run_dir)  # first: with a signed record, an unsigned result would not count
        artifacts.rewrite_meta(run_dir, meta)
    except OSError as error:
        raise SubdeckError(f"cannot write its record: {error.strerror}", where=run_dir) from error
    ring(project)


def _adoptable(run_dir: str, run_id: str) -> RunMeta:
    """Return the record of a run whose directory and files belong to this user and are not links. Raises
    SubdeckError.
    """

    def refuse(what: str, hint: str = "subdeck rm moves it to the trash") -> SubdeckError:
        return SubdeckError(f"run {run_id[-6:]} cannot be trusted: {what}", where=run_dir, hint=hint)

    try:
        with opened(run_dir) as directory:
            if not paths.is_own(directory.status(".").st_uid):
                raise refuse(why_foreign(run_dir))
            for name, status in directory.entries():
                is_inbox = name in (paths.INBOX, paths.CLOSED_INBOX) and stat.S_ISDIR(status.st_mode)
                if not (is_inbox or stat.S_ISREG(status.st_mode)):
                    raise refuse(f"{name} is not a regular file")
                if not paths.is_own(status.st_uid):
                    raise refuse(f"{name} belongs to another user (uid {status.st_uid})")
                if status.st_nlink > 1 and not is_inbox:
                    raise refuse(f"{name} has another name (a hard link)")
    except OSError as error:
        raise refuse(error.strerror or str(error)) from error
    meta = artifacts.read_meta(run_dir)
    if meta is None:
        raise refuse(artifacts.fault_of(run_dir, paths.META))
    if meta.is_newer:
        raise refuse("a newer subdeck created it", "use that version to trust it")
    return meta


def ring(project: paths.Project) -> None:
    """Notify followers of the project: they see that the list of runs has changed."""
    try:
        with opened(project.runs) as runs:
            runs.touch(".")
    except OSError:
        return  # they find out at their next start
