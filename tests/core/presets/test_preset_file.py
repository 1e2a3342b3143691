"""One preset file: its fields, its faults, and file problems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.errors import ContentError
from subdeck.core.presets.file import Preset, PresetProblem, parse_preset, read_preset
from subdeck.core.run.model import PresetSource

HEAD = "name: scout\ndescription: Fast repo exploration\n"


def preset(fields: str = "", body: str = "Look.", source: PresetSource = PresetSource.PROJECT) -> Preset:
    return parse_preset(f"---\n{HEAD}{fields}---\n{body}", "/p/file.md", source)


def test_the_example_of_the_format() -> None:
    """Frontmatter gives name, description, model and tools; the body is the prompt."""
    text = """---
name: repo-scout
description: Fast repo exploration
model: github-copilot/gpt-4o
tools: read,grep,find,ls
---
You are a scout. Explore quickly, summarize clearly, and avoid implementation.
"""

    assert Preset(
        name="repo-scout",
        description="Fast repo exploration",
        source=PresetSource.GLOBAL,
        path="/p/repo-scout.md",
        model="github-copilot/gpt-4o",
        tools=("read", "grep", "find", "ls"),
        prompt="You are a scout. Explore quickly, summarize clearly, and avoid implementation.",
    ) == parse_preset(text, "/p/repo-scout.md", PresetSource.GLOBAL)


def test_only_what_is_required() -> None:
    """Without the optional fields the agent's own tools and no model are set."""
    plain = preset(body="")

    assert (None, None, None, None, "", ()) == (
        plain.model,
        plain.tools,
        plain.runner,
        plain.agent,
        plain.prompt,
        plain.warnings,
    )


@pytest.mark.parametrize("word", ["yes", "off", "12", "1e3", "null", "~", "2024-01-01", "#(touch x)", "'@x'", "Ünï 名"])
def test_scalars_are_text(word: str) -> None:
    """A name stays as typed, even if YAML would read it as another type, or if it looks like a command."""
    text = f"---\nname: {word if '#' not in word else repr(word)}\ndescription: {word!r}\n---\n"

    assert word.strip("'") == parse_preset(text, "/p/x.md", PresetSource.PROJECT).name


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("tools: read, grep", ("read", "grep")),
        ("tools: [read, grep]", ("read", "grep")),
        ("tools:\n  - read\n  - grep", ("read", "grep")),
        ("tools:\n- read", ("read",)),
        ("tools: []", ()),
        ("approved_tools: [read]", ("read",)),
        ("allowed_tools: read", ("read",)),
    ],
)
def test_tools(field: str, expected: tuple[str, ...]) -> None:
    """A list and a line with commas are equal, under each of the three names; an empty list means no tools."""
    assert expected == preset(f"{field}\n").tools


@pytest.mark.parametrize("blank", ["model:", "model: ''", "model: '  '", "runner:", "agent:"])
def test_blank_counts_as_absent(blank: str) -> None:
    """A blank field counts as absent."""
    read = preset(f"{blank}\n")

    assert (None, None, None) == (read.model, read.runner, read.agent)


def test_runner_and_agent() -> None:
    """A preset may choose by name a runner and an agent that the user has set up."""
    read = preset("runner: tmux\nagent: offline\n")

    assert ("tmux", "offline") == (read.runner, read.agent)


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ("\n\n  indented\n\nafter  \n\n\n", "  indented\n\nafter  "),
        ("one", "one"),
        (" \n\t\n", ""),
        ("", ""),
        ("a\n---\nb\n", "a\n---\nb"),
        ("[bold] {x} $(rm) %s\x1b[0m", "[bold] {x} $(rm) %s\x1b[0m"),
    ],
)
def test_the_body_is_the_prompt(body: str, prompt: str) -> None:
    """The prompt is the body exactly as written, except blank lines around it."""
    assert prompt == preset(body=body).prompt


def test_a_prompt_field_goes_before_the_body() -> None:
    """If `prompt` is set the body is ignored, with a warning."""
    read = preset("prompt: |\n  Be fast.\n  ---\n  Stop.\n", body="Not this.")

    assert "Be fast.\n---\nStop." == read.prompt
    assert ('the text below the frontmatter is ignored because "prompt" is set',) == read.warnings
    assert () == preset("prompt: x\n", body="").warnings


def test_blanks_in_quotes_do_not_matter() -> None:
    """Whitespace around a quoted value is dropped."""
    read = parse_preset('---\nname: " x "\ndescription: " d "\nmodel: " a/b "\n---\n', "/p/f.md", PresetSource.PROJECT)

    assert ("x", "d", "a/b") == (read.name, read.description, read.model)
    assert () == preset('sticky: " no "\n').warnings


def test_a_file_of_another_editor(tmp_path: Path) -> None:
    """A byte order mark, CR LF and whitespace after the dashes are accepted."""
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf---  \r\nname: scout\r\ndescription: d\r\ntools: read\r\n--- \r\nOne.\r\nTwo.\r\n")
    read = read_preset(str(path), PresetSource.PROJECT)

    assert isinstance(read, Preset)
    assert ("scout", ("read",), "One.\nTwo.") == (read.name, read.tools, read.prompt)


def test_a_file_of_a_preset_directory_needs_no_name() -> None:
    """In preset_dirs the file's stem is the name, and a file without frontmatter is all prompt."""
    named = parse_preset("---\nmodel: a/b\n---\nx", "/p/Explore.md", PresetSource.DIR)
    bare = parse_preset("\n# Explore\n\nBe fast.\n", "/p/Explore.md", PresetSource.DIR)

    assert ("Explore", "", "a/b", "x") == (named.name, named.description, named.model, named.prompt)
    assert ("Explore", None, "# Explore\n\nBe fast.") == (bare.name, bare.model, bare.prompt)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "the file has no frontmatter"),
        ("# Title\n---\nname: x\n---\n", 1, "the file has no frontmatter"),
        ("---\nname: x\ndescription: d\n", 1, "the frontmatter has no end"),
        ("---\nname: x\n----\n", 1, "the frontmatter has no end"),
        ("---\n---\nbody", None, "name is missing"),
        ("---\ndescription: d\n---\n", None, "name is missing"),
        ("---\nname: ' '\ndescription: d\n---\n", None, "name is missing"),
        ("---\nname: x\n---\n", None, "description is missing"),
        ("---\nname: x\ndescription:\n---\n", None, "description is missing"),
        ("---\n- name\n---\n", 2, 'expected lines of the form "key: value"'),
        (f"---\n{HEAD}name: y\n---\n", 4, '"name" appears twice, first on line 2'),
        (f"---\n{HEAD}model: a: b\n---\n", 4, "invalid YAML: mapping values"),
        (f"---\n{HEAD}model: [a]\n---\n", 4, "model: expected a text but found a list"),
        (f"---\n{HEAD}model: {{a: b}}\n---\n", 4, "model: expected a text but found keys below it"),
        ("---\nname: [x]\ndescription: d\n---\n", 2, "name: expected a text"),
        (f"---\n{HEAD}runner: screen\n---\n", 4, 'runner: expected process, tmux or hosts but found "screen"'),
        (f"---\n{HEAD}agent: /bin/sh -c x\n---\n", 4, "agent: expected the name of an agent"),
        (f"---\n{HEAD}tools:\n---\n", 4, "tools is empty"),
        (f"---\n{HEAD}tools: ','\n---\n", 4, "tools is empty"),
        (f"---\n{HEAD}tools: read, -bash\n---\n", 4, 'tools: "-bash" is not the name of a tool'),
        (f"---\n{HEAD}tools: [read, [x]]\n---\n", 4, "tools: expected the name of a tool but found a list"),
        (f"---\n{HEAD}tools: {{read: true}}\n---\n", 4, "tools: expected a list of tools but found keys below it"),
        (f"---\n{HEAD}tools: read\nallowed_tools: ls\n---\n", 5, "tools and allowed_tools mean the same thing"),
        (f"---\n{HEAD}x: &a b\n---\n", 4, "anchors and aliases"),
        ("---\nname: a/b\ndescription: d\n---\n", 2, "contains a path separator"),
        ("---\nname: ..\ndescription: d\n---\n", 2, "contains a path separator"),
        ("---\nname: 'a\\b'\ndescription: d\n---\n", 2, "contains a path separator"),
        (f"---\nname: {'n' * 65}\ndescription: d\n---\n", 2, "longer than 64 characters"),
        ('---\nname: "a\\nb"\ndescription: d\n---\n', 2, "line break"),
        ('---\nname: "a\\e[31mb"\ndescription: d\n---\n', 2, "invisible character"),
        ('---\nname: "a\\u202eb"\ndescription: d\n---\n', 2, "invisible character"),
        ('---\nname: "a\\0b"\ndescription: d\n---\n', 2, "NUL"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, line: int | None, what: str) -> None:
    """The error names the fault, and its line if there is one."""
    with pytest.raises(ContentError) as caught:
        parse_preset(text, "/p/x.md", PresetSource.PROJECT)

    assert line == caught.value.line
    assert what in f"{caught.value.what}"


@pytest.mark.parametrize("field", ["model: @fast", "tools: [@x]", "tools:\n  - read\n  - @x"])
def test_a_bare_role_gets_the_hint_to_quote_it(field: str) -> None:
    """YAML gives `@` no meaning, so the message shows how to write it."""
    with pytest.raises(ContentError) as caught:
        preset(f"{field}\n")

    assert f'put quotes around it: "{"@fast" if "fast" in field else "@x"}"' == caught.value.hint


def test_a_name_of_64_characters() -> None:
    """A name of 64 characters is allowed, counted in characters."""
    name = "名" * 64

    assert name == parse_preset(f"---\nname: {name}\ndescription: d\n---\n", "/p/x.md", PresetSource.PROJECT).name


@pytest.mark.parametrize(
    ("field", "warning"),
    [
        ("modle: x", 'unknown key "modle" is ignored; did you mean model'),
        ("allowed-tools: x", "did you mean allowed_tools"),
        ("qqqqq: x", 'unknown key "qqqqq" is ignored'),
        ("prompt-mode: replace", "did you mean prompt_mode"),
        ("deny_tools: [bash]", "did you mean denied_tools"),
        ("max_attempts: 5", '"max_attempts" has no effect without "structured_result: true"'),
    ],
)
def test_what_has_no_effect_is_a_warning(field: str, warning: str) -> None:
    """A key without effect is a warning."""
    (only,) = preset(f"{field}\n").warnings

    assert only.startswith(warning) or warning in only


def test_nothing_to_replace_with() -> None:
    """Replacing the agent's system prompt with an empty one is a warning."""
    (warning,) = preset("prompt_mode: replace\n", body="").warnings

    assert '"prompt_mode: replace" has no effect: there is no prompt' == warning


def problem(path: Path) -> PresetProblem:
    read = read_preset(str(path), PresetSource.GLOBAL)
    assert isinstance(read, PresetProblem)
    return read


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"---\nname: a\ndescription: \xff\n---\n", 3, "the file is not UTF-8 text; save it as UTF-8"),
        (b"---\nname: a\ndescription: d\n---\nx\x00y", 5, "the file contains a NUL character; remove that character"),
        (b"---\nname: a\n---\n" + b"x" * 5 * 1024 * 1024, None, "the file is too large: 5.0 MB (limit 1 MB)"),
        (b"---\nname: a\ndescription: d\nx: " + b"{a: " * 200_000 + b"\n---\n", 4, "the file is nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes, line: int | None, message: str) -> None:
    """An unreadable file is one problem with path, a line if there is one, and a way out."""
    path = tmp_path / "a.md"
    path.write_bytes(content)

    assert PresetProblem(path=str(path), message=message, line=line, source=PresetSource.GLOBAL, name="a") == problem(
        path
    )


def test_what_is_no_file(tmp_path: Path) -> None:
    """A directory, a dangling link and a fifo are problems, and reading does not block."""
    (tmp_path / "dir.md").mkdir()
    (tmp_path / "link.md").symlink_to("/nowhere/x.md")
    os.mkfifo(tmp_path / "fifo.md")

    assert "it is a directory, not a file" == problem(tmp_path / "dir.md").message
    assert "the file is a link to /nowhere/x.md, which does not exist" == problem(tmp_path / "link.md").message
    assert "it is a pipe, not a regular file" == problem(tmp_path / "fifo.md").message


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without read permission is a problem."""

    def denied(*_args: object, **_others: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)

    assert "cannot read the file: Permission denied" == problem(tmp_path / "a.md").message


def test_a_file_that_went_away(tmp_path: Path) -> None:
    """A file deleted between listing and reading counts as missing."""
    assert read_preset(str(tmp_path / "gone.md"), PresetSource.PROJECT) is None


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A file name that is not UTF-8 is a problem with a readable name, because no run record can hold it."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")
    Path(path).write_text(f"---\n{HEAD}---\n")
    read = read_preset(path, PresetSource.PROJECT)

    assert isinstance(read, PresetProblem)
    assert ("the file name is not UTF-8; rename it", f"{tmp_path}/\ufffd.md") == (read.message, read.path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\nname: scout\nmodel: @x\n---\n", "scout"),
        ("---\nname: 'my scout' # x\nmodel: @x\n---\n", "my scout"),
        ("---\nmodel: @x\n---\n", "a"),
        ("name: not-frontmatter\n", "a"),
        ("---\nname: scout\n---\n", "scout"),
    ],
)
def test_a_problem_is_called_like_its_preset(tmp_path: Path, text: str, name: str) -> None:
    """A broken file's problem has the preset's name if it can be read, or else the file's."""
    path = tmp_path / "a.md"
    path.write_text(text)

    assert name == problem(path).name


def test_the_message_is_one_plain_line(tmp_path: Path) -> None:
    """A message with text from a broken file cannot move the cursor or break a row."""
    path = tmp_path / "a.md"
    path.write_text('---\nname: "x\\e[2J\\ny/"\ndescription: d\n---\n')

    assert 'the name "x y/" contains a path separator; choose another name' == problem(path).message
