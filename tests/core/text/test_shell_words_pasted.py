"""Commands printed for pasting mean the same in every shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from subdeck.core.text.shell import shell_word, shell_words

WORDS = [
    "plain", "/a/b-c_d.e,f:g@h+i=j%k", "", "a b", "it's", "\\", "a\\", "a\\'b", "'\\''", "\\\\", "a\\\\b", "\\'",
    '"$x"', "`id`", "$(id)", "~", "~root", "=ls", "%self", "*", "?", "[a]", "{a,b}", "a;b", "a&b", "a|b", "a>b", "#a",
    "!x", "^x", "-n", "(a)", "two\nlines", "a\tb", "é’", "a\\ b", "'", "''", "\\n",
]  # fmt: skip
SHELLS = ["sh", "bash", "dash", "zsh", "fish"]


def as_fish(text: str) -> list[str]:
    """Return the words of a command by fish's documented rules: in single quotes a backslash escapes itself and a
    quote, and outside of quotes any character that is not a letter.
    """
    part = r"'(?:\\[\\']|[^'])*'|\\\W|[\w./,:@+=%-]"
    words: list[str] = []
    for word in re.findall(rf"(?:{part})+", text):
        read = [
            re.sub(r"\\([\\'])", r"\1", each[1:-1]) if each[0] == "'" else each.removeprefix("\\") or "\\"
            for each in re.findall(part, word)
        ]
        words.append("".join(read))
    return words


@pytest.mark.processes
@pytest.mark.parametrize("shell", SHELLS)
def test_a_word_is_one_word(shell: str) -> None:
    """A shell passes on exactly the text, with any content."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    code = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))"
    command = shell_words([sys.executable, "-c", code, *WORDS])
    done = subprocess.run([program, "-c", command], capture_output=True, text=True, timeout=20)
    assert (WORDS, "") == (done.stdout.split("\0"), done.stderr)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_by_the_rules_of_fish(word: str) -> None:
    """The rules of fish are checked even without fish."""
    assert [word] == as_fish(shell_word(word))
    assert ["cd", word, "x"] == as_fish(shell_words(["cd", word, "x"]))


def test_plain_words_stay_as_they_are() -> None:
    """A word that needs no quotes has none."""
    assert "git -C /a/b-c status" == shell_words(["git", "-C", "/a/b-c", "status"])
