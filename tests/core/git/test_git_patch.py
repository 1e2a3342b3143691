"""Reading a patch: each file and line is as git wrote it, with any name and content."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from subdeck.core.git.names import worded
from subdeck.core.git.patch import NO_PAIR, read_patch

from tests.repositories import git, make_repository

pytestmark = pytest.mark.processes

HUNKS = b"""\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -3,5 +3,4 @@ class A:
 one
-two
-three
+2
 four
--- not a head
+++ nor this
\\ No newline at end of file
@@ -20 +19,0 @@
-last
"""


def test_lines_have_numbers_and_stand_against_each_other() -> None:
    """A line that looks like a file header is an ordinary line if the hunk counts it."""
    patch = read_patch(HUNKS)
    (file,) = patch.files
    assert (file.path, file.added, file.removed, file.what) == ("a.py", 2, 4, "modified")
    first, second = file.hunks
    assert (first.heading, second.begin, second.end) == (b"class A:", 13, 15)
    at = {line: number for number, line in enumerate(patch.lines)}
    assert [patch.old[at[line]] for line in (b" one", b"-two", b"-three", b"--- not a head")] == [3, 4, 5, 7]
    assert [patch.new[at[line]] for line in (b" one", b"+2", b" four", b"+++ nor this")] == [3, 4, 5, 6]
    assert patch.pairs[at[b"-two"]] == at[b"+2"] and patch.pairs[at[b"+2"]] == at[b"-two"]
    assert patch.pairs[at[b"-three"]] == NO_PAIR
    assert patch.pairs[at[b"--- not a head"]] == at[b"+++ nor this"]


NAMES = (
    b"plain",
    b"with space",
    b"tab\there",
    b"line\nhere",
    b'quote"',
    b"\xc3\xa4",
    b"\xff\xfe",
    b"a b/b a",
    b"-x",
    b":(glob)*",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_of_git(tmp_path: Path, name: bytes) -> None:
    """Paths are the same as elsewhere: for an added file, a renamed file, and a mode change only."""
    root = make_repository(tmp_path / "repository")
    path = os.path.join(os.fsencode(root), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(os.fsdecode(path)).write_text("".join(f"{number}\n" for number in range(30)))
    git(root, "add", "-A")
    (added,) = read_patch(_diff(root, "--cached")).files
    assert (added.path, added.what, added.added) == (worded(name), "added", 30)
    git(root, "commit", "-q", "-m", "more")
    os.chmod(path, 0o700)
    (mode,) = read_patch(_diff(root)).files
    assert (mode.path, mode.what, mode.hunks) == (worded(name), "mode 100644 → 100755", [])
    os.rename(path, path + b".moved")
    git(root, "add", "-A")
    (moved,) = read_patch(_diff(root, "--cached", "-M")).files
    assert (moved.path, moved.old_path) == (worded(name + b".moved"), worded(name))
    assert moved.what == "renamed, mode 100644 → 100755"


def test_a_binary_file_has_no_lines(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repository")
    (root / "b").write_bytes(bytes(range(256)))
    (root / "c").write_text("c\n")
    git(root, "add", "-A")
    binary, text = read_patch(_diff(root, "--cached", "--binary")).files
    assert (binary.path, binary.is_binary, binary.hunks) == ("b", True, [])
    assert (text.path, text.is_binary, text.added) == ("c", False, 1)


@given(st.binary(max_size=300))
def test_anything_can_be_read(content: bytes) -> None:
    """Text that is not a patch has no files; a torn patch has the files that are left."""
    for torn in (content, HUNKS + content, HUNKS[: len(content)]):
        patch = read_patch(torn)
        assert len(patch.old) == len(patch.new) == len(patch.pairs) == len(patch.lines)
        for file in patch.files:
            assert file.begin < file.end <= len(patch.lines)
            assert all(file.begin < hunk.begin < hunk.end <= file.end for hunk in file.hunks)


def _diff(root: Path, *options: str) -> bytes:
    return subprocess.run(("git", "diff", *options), cwd=root, check=True, capture_output=True).stdout
