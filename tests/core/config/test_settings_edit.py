"""One entry is added to a settings file, and the rest is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.config.edit import add_to_settings, with_entry
from subdeck.core.errors import ContentError, SettingsError
from subdeck.core.paths import user_settings_file

ROLE = ("roles", "fast", "inherit")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "roles:\n  fast: inherit\n"),
        ("# mine\n", "# mine\n\nroles:\n  fast: inherit\n"),
        ("theme: nord  # dark", "theme: nord  # dark\n\nroles:\n  fast: inherit\n"),
        ("roles:\n", "roles:\n  fast: inherit\n"),
        ("roles:  # none yet\ntheme: nord\n", "roles:  # none yet\n  fast: inherit\ntheme: nord\n"),
        ("roles: {}\n", "roles:\n  fast: inherit\n"),
        ("roles: ~\n", "roles:\n  fast: inherit\n"),
        ("roles: {deep: a/b} # two\n", "roles: {fast: inherit, deep: a/b} # two\n"),
        (
            "roles:\n    # big\n    deep: a/b  # best\n\ntheme: nord\n",
            "roles:\n    # big\n    fast: inherit\n    deep: a/b  # best\n\ntheme: nord\n",
        ),
    ],
)
def test_an_entry_is_added(before: str, after: str) -> None:
    """Comments, order and indentation stay, in any form of the section."""
    assert after == with_entry(before, *ROLE)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("theme: nord\nroles: {fast: a/b}\n", 2, "roles.fast is already set"),
        ("roles: [a]\n", 1, "cannot add to roles in its present form"),
        ("roles:\n  {deep:\n     a/b}\n", 1, "cannot add to roles in its present form"),
        ("a: b: c\n", 1, "invalid YAML"),
    ],
)
def test_what_cannot_be_added(text: str, line: int, what: str) -> None:
    """A name that is already set, or a text that cannot be changed safely, is an error with its line."""
    with pytest.raises(ContentError, match=what) as caught:
        with_entry(text, *ROLE)
    assert line == caught.value.line


def test_the_file_of_the_user(home: Path) -> None:
    """A missing file is created. A link, line ends and a byte order mark stay."""
    path = Path(user_settings_file())
    add_to_settings("checks", "make-test", "[make, test]")
    assert "checks:\n  make-test: [make, test]\n" == path.read_text()
    real = home / "dotfiles.yaml"
    real.write_bytes(b"\xef\xbb\xbftheme: nord\r\n")
    path.unlink()
    path.symlink_to(real)
    add_to_settings(*ROLE)
    assert path.is_symlink()
    assert b"\xef\xbb\xbftheme: nord\r\n\r\nroles:\r\n  fast: inherit\r\n" == real.read_bytes()
    with pytest.raises(SettingsError, match=r"roles\.fast is already set") as caught:
        add_to_settings(*ROLE)
    assert f"{path}:4" == caught.value.where
