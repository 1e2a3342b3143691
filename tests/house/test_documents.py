"""Links, anchors and command lines in the documents are right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from .reference import ROOT, documents
from .reference.commands import ROOT as SUBDECK
from .reference.keys import SCHEME_TABLE
from .reference.markdown import anchor

DOCUMENTS = {str(path.relative_to(ROOT)): path for path in documents()}
FENCE = re.compile(r"^(\s*)(```+|~~~+)(.*)$")
LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
SHELLS = ("", "sh", "bash", "shell", "console", "text")
"""Languages of blocks whose lines may be commands."""
USAGE = re.compile(r"[\[\]…|]|\.\.\.|<\w+>")
"""Signs of a synopsis that a command line does not have."""


def prose(text: str) -> str:
    """Return a document without its blocks of code."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        found = FENCE.match(line)
        if fence:
            fence = "" if found and found[2].startswith(fence) and not found[3].strip() else fence
        elif found:
            fence = found[2]
        else:
            lines.append(line)
    return "\n".join(lines)


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document, from its headings as GitHub makes them, and from its tags."""
    text = prose(path.read_text(encoding="utf-8"))
    found: set[str] = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.*?)(?: +#+)? *$", COMMENT.sub("", text), re.MULTILINE):
        name = anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        number = 0
        while (known := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(known)
    return found


def faults_of_links(path: Path, text: str) -> list[str]:
    """Return the local links of a document that lead nowhere."""
    shown = CODE.sub("", COMMENT.sub("", prose(text)))
    targets = [*LINK.findall(shown), *re.findall(r"^\[[^\]]+\]: +(\S+)", shown, re.MULTILINE)]
    targets += re.findall(r"<(?:img|a)\b[^>]*?(?:src|href)=\"([^\"]+)\"", shown)
    faults: list[str] = []
    for target in targets:
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        name, _, part = unquote(target).partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.is_relative_to(ROOT) or not file.exists():
            faults.append(f"{target}: there is no such file")
        elif part and file.suffix == ".md" and part not in anchors(file):
            faults.append(f"{target}: there is no such heading")
    return faults


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    """Every link to a file of the tree leads to one, and every anchor to a heading."""
    path = DOCUMENTS[name]
    assert faults_of_links(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[a](README.md)", 0),
        ("[a](nowhere.md)", 1),
        ("[a](README.md#nowhere-at-all)", 1),
        ("## A *b*, `c`\n[a](#a-b-c)", 0),
        ("[a](https://example.org/x#y)", 0),
        ("`[a](nowhere.md)`", 0),
        ("```\n[a](nowhere.md)\n```", 0),
        ('<img src="nowhere.svg">', 1),
        ("[a]: nowhere.md", 1),
        ("[a](../outside.md)", 1),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, text: str, faults: int) -> None:
    """Links in any form are checked, except those in code and to other places."""
    path = ROOT / "INVENTED.md"
    own = "a-b-c" in text
    assert len(faults_of_links(path, text.replace("(#a-b-c)", "(README.md)") if own else text)) == faults


# --- keys ------------------------------------------------------------------------------------------------------------

GUIDES = {name: path for name, path in DOCUMENTS.items() if path.parent == ROOT / "docs"}
TYPED_KEY = re.compile(r"(?<!Answer )`(?:[A-Za-z]|ctrl\+(?!p|c|b d)[^`]+)`(?!<!-- key:\w+ -->)")
"""A key that is not filled in; `Answer` is for a question of the command line."""


def typed_keys(text: str) -> list[str]:
    """Return the lines of a document with a key of the app that was typed by hand."""
    return [line for line in prose(SCHEME_TABLE.sub("", text)).splitlines() if TYPED_KEY.search(line)]


@pytest.mark.parametrize("name", GUIDES)
def test_keys_are_filled_in(name: str) -> None:
    """A guide takes each key from the action table, as in CONTRIBUTING.md: `{key:ACTION}`."""
    assert typed_keys(GUIDES[name].read_text(encoding="utf-8")) == []


def test_readme_has_few_keys() -> None:
    """Fifteen keys are enough to begin."""
    keys = set(re.findall(r"`([^`]+)`<!-- key:", (ROOT / "README.md").read_text()))
    assert len(keys) <= 15


@pytest.mark.parametrize(
    ("text", "faults"),
    [("press `x`", 1), ("press `ctrl+s`", 1), ("`x`<!-- key:stop -->", 0), ("Answer `y`.", 0), ("`--json`, `ls`", 0)],
)
def test_a_typed_key_is_found(text: str, faults: int) -> None:
    """Letters and keys with ctrl are found if they are not filled in."""
    assert len(typed_keys(text)) == faults


# --- command lines ---------------------------------------------------------------------------------------------------


def written_commands(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the commands of a document, and whether each is whole: lines of blocks are, code in sentences may name a
    command without its arguments.
    """
    fence, language, pending = "", "", ""
    for line in text.splitlines():
        found = FENCE.match(line)
        if not fence:
            if found:
                fence, language = found[2], found[3].strip().split(" ")[0]
            continue
        if found and found[2].startswith(fence) and not found[3].strip():
            fence, pending = "", ""
        elif language in SHELLS:
            joined = pending + line.strip().removeprefix("$ ")
            pending = joined[:-1] if joined.endswith("\\") else ""
            if not pending:
                yield joined, True
    for code in CODE.finditer(COMMENT.sub("", prose(text))):
        if re.match(r"(?:[A-Z_]+=\S* )*subdeck(?:\s|$)", code[2]):
            yield " ".join(code[2].split()), False


def calls(line: str) -> Iterator[list[str]]:
    """Yield the words behind each `subdeck` of a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    call: list[str] | None = None
    for number, word in enumerate((*words, ";")):
        ends = bool(re.fullmatch(r"[();<>|&]+", word))
        if ends and call is not None:
            yield call
            call = None
        elif call is not None:
            call.append(word)
        elif word.rpartition("/")[2] == "subdeck" and _begins(words[:number]):
            call = []


def _begins(before: list[str]) -> bool:
    """Return whether a word behind these is a command: it comes first, after a shell operator, or after another
    program.
    """
    if not before or re.fullmatch(r"[();<>|&]+|[A-Z_]+=.*|\$", before[-1]):
        return True
    return before[0] in ("ssh", "tmux", "watch", "time", "nohup", "env", "exec", "while", "until", "if")


def fault_of_call(words: list[str], *, is_whole: bool) -> str:
    """Parse a command without running it; return the error. Words in capitals stand for any value."""
    try:
        _parse(SUBDECK, "subdeck", words, None)
    except click.exceptions.Exit:
        return ""  # of --help and --version
    except click.MissingParameter as error:
        return error.format_message() if is_whole else ""
    except click.BadParameter as error:
        return "" if re.search(r'"[A-Z]+"', error.message) else error.format_message()
    except click.ClickException as error:
        return error.format_message()
    except Exception as error:
        return str(error)
    return ""


def _parse(command: click.Command, name: str, words: list[str], parent: click.Context | None) -> None:
    with command.make_context(name, list(words), parent=parent) as context:
        rest = [*context._protected_args, *context.args]
        if isinstance(command, click.Group) and rest and not rest[0].isupper():
            if rest[0] == "help":
                rest = [*rest[1:], "--help"]
            member, found, rest = command.resolve_command(context, rest)
            assert found is not None and member is not None
            _parse(found, member, rest, context)


def fault_of_synopsis(words: str) -> str:
    """Return the error of a synopsis: an unknown command or option in it."""
    command: click.Command = SUBDECK
    for word in words.split()[1:]:
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            context = click.Context(command, info_name="subdeck")
            if (member := command.get_command(context, word)) is None:
                return f"there is no command {word}"
            command = member
    options = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", words))
    unknown = named - options - {"--help", "-h"} - ({"--json"} if command is SUBDECK else set())
    return f"there is no option {', '.join(sorted(unknown))}" if unknown else ""


def faults_of_commands(text: str) -> list[str]:
    faults: list[str] = []
    for line, is_whole in written_commands(text):
        if "subdeck" not in line:
            continue
        if USAGE.search(line) and line.startswith("subdeck") and not re.search(r" \|\|? | …\"", line):
            faults += [f"{line}: {fault}"] if (fault := fault_of_synopsis(line)) else []
            continue
        for words in calls(line.partition(" # ")[0]):
            faults += [f"{line}: {fault}"] if (fault := fault_of_call(words, is_whole=is_whole)) else []
    return faults


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_line_parses(name: str) -> None:
    """The real parser accepts each subdeck command in a document."""
    if name == "CHANGELOG.md":
        pytest.skip("it names what was there before, too")
    assert faults_of_commands(DOCUMENTS[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("`subdeck run scout TASK`", 0),
        ("`subdeck run scout --nosuch TASK`", 1),
        ("`subdeck nosuch`", 1),
        ("`subdeck status [RUN...] [--nosuch]`", 1),
        ("`subdeck status [RUN...] [--all]`", 0),
        ("```sh\nsubdeck status --json | jq .runs && subdeck nosuch\n```", 1),
        ("```sh\nsubdeck wait \\\n  RUN --nosuch\n```", 1),
        ("```yaml\nsubdeck: nosuch\n```", 0),
        ("`subdeck hosts serve --nosuch`", 1),
        ("`subdeck help run`", 0),
        ("`subdeck --version`", 0),
        ("`subdeck wait`, `subdeck wait RUN --timeout S`", 0),
        ("```sh\nsubdeck wait\n```", 1),
        ("`subdeck wait RUN --timeout soon`", 1),
        ("```\n$ ssh h1 subdeck hosts nosuch\n```", 1),
    ],
)
def test_a_wrong_command_line_is_found(text: str, faults: int) -> None:
    """Commands in blocks, in sentences and in synopses are checked, each with its options."""
    assert len(faults_of_commands(text)) == faults
