"""Generated documents are current and complete."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from subdeck.core.cli.main import COMMANDS

from .reference import GENERATED, REWRITE, ROOT, documents, keys, markdown, recording, shapes, wanted
from .reference.commands import Explained, commands
from .reference.json_documents import recorded


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_what_is_generated_is_current() -> None:
    """Every generated file, and every key in another document, matches the code."""
    outdated = [_name(path) for path, text in wanted() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert outdated == [], f"out of date: {REWRITE}"


def test_a_key_is_filled_in() -> None:
    """A placeholder becomes the key of its action, and is filled in again when the key changes."""
    filled = keys.filled_in("press {key:launch} or `x`<!-- key:launch -->, not `{key:launch}`")
    assert filled == "press `n`<!-- key:launch --> or `n`<!-- key:launch -->, not `{key:launch}`"
    assert keys.filled_in(filled) == filled


@pytest.mark.parametrize("path", [path for path in documents() if path.name != "CONTRIBUTING.md"], ids=_name)
def test_no_placeholder_is_left(path: Path) -> None:
    """A key that was written in backticks, so that it is not filled in, is found."""
    assert re.findall(r"\{key:\w+\}", path.read_text(encoding="utf-8")) == []


def test_a_key_in_a_table_is_one_cell() -> None:
    """A key that would end a cell is escaped in a row, and nowhere else."""
    assert keys.filled_in("| {key:pipe} | x |\n{key:pipe}") == "| `\\|`<!-- key:pipe --> | x |\n`|`<!-- key:pipe -->"


def test_a_table_of_some_keys_is_filled_in() -> None:
    """A table has a row for each action that its marker names, in that order."""
    text = "<!-- keys: quit launch -->\n<!-- /keys -->"
    filled = keys.filled_in(text)
    assert [line[:5] for line in filled.splitlines()[3:5]] == ["| `q`", "| `n`"]
    assert keys.filled_in(filled) == filled


def test_unknown_actions_are_refused() -> None:
    """A key of an unknown action is an error, not an empty text."""
    with pytest.raises(KeyError):
        keys.filled_in("{key:nosuchaction}")


@pytest.mark.processes
def test_the_man_page_has_no_fault() -> None:
    """groff formats the page without a warning, and shows the hyphens of options as typed."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed here")
    command = ["groff", "-man", "-ww", "-K", "utf8", "-T", "utf8", str(ROOT / "docs/man/subdeck.1")]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert (0, "") == (shown.returncode, shown.stderr)
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown.stdout)
    assert "--max-tokens N" in plain
    assert "subdeck hosts serve [OPTIONS]" in plain


@pytest.mark.parametrize("text", ["a | b", "`a|b`", "a *b* <c>", "a \\ b"])
def test_text_is_shown_as_it_is(text: str) -> None:
    """Signs with a meaning in markdown are escaped outside code."""
    shown = markdown.text(text)
    assert shown.replace("\\*", "*").replace("\\<", "<").replace("\\>", ">").replace("\\\\", "\\") == text


def test_every_command_has_its_document() -> None:
    """The reference of JSON documents names every command."""
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^## subdeck ([\w-]+)", page, re.MULTILINE)) | set(re.findall(r"[`,] ?([\w-]+)", page))
    assert set(COMMANDS) - listed == set()


@pytest.mark.parametrize("command", [*commands()][1:], ids=lambda command: command.words)
def test_a_document_matches_its_class(command: Explained) -> None:
    """Recorded documents have only fields that their class declares, with the declared types."""
    rows = shapes.rows(shape) if (shape := shapes.of(command)) else []
    declared = [(re.escape(path.strip("`")).replace("NAME", r'("[^"]*"|\w+)'), kinds) for path, kinds, _ in rows]
    names = [(re.compile(pattern), kinds) for pattern, kinds in declared]
    free = [re.compile(rf"{pattern}[.\[]") for pattern, _ in declared if _is_last(pattern, declared)]
    for call in recorded().get(command.words.removeprefix("subdeck "), []) if shape else ():
        for path, kind in recording.fields(call["document"]):
            matching = [kinds for name, kinds in names if name.fullmatch(path)]
            is_declared = any(kind in kinds.split(" (")[0].split(" or ") for kinds in matching)
            assert is_declared or any(pattern.match(path) for pattern in free), (path, kind)


def _is_last(pattern: str, declared: list[tuple[str, str]]) -> bool:
    """Whether a field has no declared fields in it, such as a dict of anything."""
    return not any(other.startswith((f"{pattern}\\.", f"{pattern}\\[")) for other, _ in declared)


def test_nothing_of_this_machine_is_in_a_document() -> None:
    """Recorded examples name the places of an invented machine."""
    for path in documents():
        if str(path.relative_to(ROOT)) in GENERATED:
            text = path.read_text(encoding="utf-8")
            assert str(ROOT) not in text and "/sd-" not in text, path
            assert str(Path.home()) not in text.replace("/home/me", ""), path
