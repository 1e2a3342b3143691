"""A working tree on a host, used by one run after another: prepared for each, and examined when it has finished.

git works here with a private directory beside the tree. The run's own repository in the tree is created for each run,
and nothing that a run does to it affects others.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence

from msgspec import Struct

from ...errors import SubdeckError
from ...git.index import LARGE, Skipped, Snapshot, Taking, beginnings
from ...git.packs import result_content, write_commit, write_pack
from ...git.program import Git, GitError
from ...git.repository import Repository
from ...git.worktrees import cone, inside, remove_files
from ...system import files
from ...text.plain import one_line
from ..protocol import Code
from ._cache import Cache, write_settings

TREE = "tree"
PATIENCE_S = 900.0
MOST_FILE = 512 * 1024 * 1024
"""Most bytes returned of one file, and of all files."""
BRANCH = "main"
"""The run's checked-out branch."""


class Left(Struct, frozen=True, omit_defaults=True):
    """The changes of a run."""

    tree: str = ""
    """Empty if nothing was changed."""
    commit: str = ""
    size: int = 0
    """Size of the pack in bytes."""
    skipped: tuple[str, ...] = ()
    """Sentences about files that are not in it."""


class Slot:
    def __init__(self, cache: Cache, directory: str) -> None:
        self._cache = cache
        self.directory = directory
        self.tree = os.path.join(directory, TREE)
        self._ours = os.path.join(directory, "ours")
        self._index = os.path.join(self._ours, "index")
        self._sparse = os.path.join(self._ours, "info", "sparse-checkout")

    @property
    def carrier(self) -> str:
        """The snapshot that it was last prepared for; empty for none."""
        return files.content(os.path.join(self._ours, "HEAD")).decode("ascii", "replace").strip()

    def ready(self, code: Code) -> str:
        """Reset the tree to the snapshot, even a broken one; return the run's working directory.

        Raises SubdeckError and OSError.
        """
        patterns = cone(code.sparse)
        try:
            if not self._is_sound(patterns):
                raise GitError("its content has changed")
            self._reset(code, patterns)
        except GitError:
            self._begin_anew()
            self._reset(code, patterns)
        self._give_repository(code, patterns)
        return self.working_directory(code)

    def _is_sound(self, patterns: bytes) -> bool:
        """Return whether the tree is this user's, with the index and these sparse directories."""
        try:
            status = os.lstat(self.tree)
        except FileNotFoundError:
            return False
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        return is_ours and files.exists(self._index) and files.content(self._sparse) == patterns

    def _begin_anew(self) -> None:
        remove_files(self.tree)
        files.remove_tree(self._ours)
        files.make_private_directory(self.tree)

    def _reset(self, code: Code, patterns: bytes) -> None:
        """Reset the files to a snapshot and remove all others. Raises GitError and OSError."""
        for name in ("index.lock", "HEAD.lock", "taken", "taken.lock"):
            files.remove(os.path.join(self._ours, name))
        files.remove_tree(os.path.join(self._ours, "objects"))
        sparse = ("\tsparseCheckout = true", "\tsparseCheckoutCone = true") if patterns else ()
        quiet = ("\tlogAllRefUpdates = false",)
        write_settings(self._ours, self._cache.object_format, bare=False, more=(*quiet, *sparse))
        files.write_whole(os.path.join(self._ours, "objects/info/alternates"), os.fsencode(self._cache.objects) + b"\n")
        files.write_whole(self._sparse, patterns)
        files.write_whole(os.path.join(self._ours, "HEAD"), f"{code.carrier}\n".encode())
        remove_files(os.path.join(self.tree, ".git"))
        git = self._git(self._index)
        git.run("clean", "-ffdxq")
        git.run("reset", "--hard", "--quiet", "--no-recurse-submodules", code.carrier)
        git.run("clean", "-ffdxq")
        if git.run("status", "--porcelain", "-z", "--no-renames", "--ignored", "--untracked-files=all").strip(b"\0"):
            raise GitError("existing files cannot be removed", where=self.tree)

    def _git(self, index: str, alternates: Sequence[str] = ()) -> Git:
        """Return git for the tree, with all configured filters disabled: files are exactly git's content."""
        asked = Git("/", is_own=True).configured()
        filters = sorted({entry.key.rpartition(".")[0] for entry in asked if entry.key.startswith("filter.")})
        unrun = [(f"{name}.{what}", "") for name in filters for what in ("clean", "smudge", "process")]
        return Git(
            self.tree,
            git_dir=self._ours,
            work_tree=self.tree,
            index=index,
            alternates=alternates,
            settings=(
                *unrun,
                *((f"{name}.required", "false") for name in filters),
                ("core.autocrlf", "false"),
                ("core.fsync", "none"),
                ("core.bigFileThreshold", str(LARGE)),
                ("checkout.workers", "0"),
                ("index.threads", "0"),
                ("status.showUntrackedFiles", "all"),
            ),
            is_own=True,
            patience=PATIENCE_S,
        )

    def _give_repository(self, code: Code, patterns: bytes) -> None:
        """Create the run's repository: a branch with one commit, and the original files. Raises OSError."""
        git_dir = os.path.join(self.tree, ".git")
        sparse = ("\tsparseCheckout = true", "\tsparseCheckoutCone = true") if patterns else ()
        write_settings(git_dir, self._cache.object_format, bare=False, more=sparse)
        files.write_whole(os.path.join(git_dir, "objects/info/alternates"), os.fsencode(self._cache.objects) + b"\n")
        if patterns:
            files.write_whole(os.path.join(git_dir, "info/sparse-checkout"), patterns)
        files.write_whole(os.path.join(git_dir, "refs/heads", BRANCH), f"{code.carrier}\n".encode())
        shutil.copy2(self._index, os.path.join(git_dir, "index"))
        files.write_whole(os.path.join(git_dir, "HEAD"), f"ref: refs/heads/{BRANCH}\n".encode())

    def working_directory(self, code: Code) -> str:
        """Return the run's working directory; create it if the snapshot lacks it, as with empty or ignored
        directories.
        """
        if not code.subdirectory:
            return self.tree
        subdirectory = inside(code.subdirectory)
        directory = self.tree
        for part in subdirectory.split("/"):
            directory = os.path.join(directory, part)
            if os.path.islink(directory):
                raise SubdeckError("the run's directory is a link out of the snapshot", where=subdirectory)
        files.make_private_directory(directory)
        return directory

    def left(self, code: Code, pack: str) -> Left:
        """Find a run's changes, also uncommitted ones; if there are any, write a pack of what the operator lacks.
        Raises GitError and OSError.
        """
        index = os.path.join(self._ours, "taken")
        files.remove(index)
        git = self._git(index, alternates=(os.path.join(self.tree, ".git", "objects"),))
        repository = Repository(
            self.tree,
            git_dir=os.path.join(self.tree, ".git"),
            common_dir=self._ours,
            head=code.carrier,
            tree=code.tree,
            object_format=self._cache.object_format,
        )
        fault: GitError | None = None
        for _ in beginnings(git, repository, index):
            try:
                return self._packed(git, Taking(git, repository, MOST_FILE).snapshot(), code, pack)
            except GitError as error:  # the run's repository has a broken index or broken objects
                fault = fault or error
        raise fault or GitError("git cannot create an index", where=self.tree)

    def _packed(self, git: Git, taken: Snapshot, code: Code, pack: str) -> Left:
        skipped = (*map(_words, taken.skipped), *([taken.note] if taken.note else ()))
        if taken.tree == code.tree:
            return Left(skipped=skipped)
        commit = write_commit(git, result_content(taken.tree, code.carrier))
        descriptor = files.open_private(pack, os.O_RDWR | os.O_TRUNC)
        with open(descriptor, "w+b") as file:
            size = write_pack(git, file, commit, code.carrier)
            os.fsync(descriptor)
        return Left(taken.tree, commit, size, skipped)


def _words(skipped: Skipped) -> str:
    return f"{one_line(skipped.path, 200)} stays on the host: {one_line(skipped.why, 120)}"
