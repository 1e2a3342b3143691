"""The offline agent's work: its searches, its answers, and its limits."""

from __future__ import annotations

import ctypes
import os
import re
import socket
from pathlib import Path

import pytest

from .offline_reader import SHOP, read, write_tree

pytestmark = pytest.mark.processes

TASK = "Where are requests authenticated?"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "shop", SHOP)


def masked(stdout: bytes) -> bytes:
    """Remove the values that may differ between two equal runs."""
    stdout = re.sub(rb'"timestamp":("[^"]*"|\d+)', b"", stdout)
    return re.sub(rb'"id":"[0-9a-f]{32}"', b"", stdout)


def evidence(answer: str) -> list[tuple[str, int, str]]:
    """Return the answer's `path:line` claims, with the line each shows."""
    return [(path, int(number), line) for path, number, line in re.findall(r"^- `(.+):(\d+)` `(.*)`$", answer, re.M)]


def test_first_line_of_the_answer_says_that_no_model_was_used(shop: Path) -> None:
    """The answer begins with the line that no model was used."""
    expected = "No model was used: this is the built-in offline agent (offline/reader)."
    assert expected == read(shop, TASK).answer.splitlines()[0]


def test_evidence_names_the_lines_that_hold_it(shop: Path) -> None:
    """Each `path:line` in the answer is a line of that file."""
    claims = evidence(read(shop, TASK).answer)

    assert ("src/auth.py", 5, '"""Requests are authenticated here."""') in claims
    for path, number, line in claims:
        assert line == (shop / path).read_text().split("\n")[number - 1].strip()


def test_best_file_comes_first(shop: Path) -> None:
    """Code about all of the words outranks tests, prose and partial matches."""
    assert "src/auth.py" == evidence(read(shop, TASK).answer)[0][0]


def test_intent_is_said_before_anything_is_looked_at(shop: Path) -> None:
    """The first sentence states what the run searches for, before any tool call."""
    reading = read(shop, TASK)
    assert reading.said[0].startswith(f"I'm looking into this: {TASK}")
    assert reading.types.index("message_end") < reading.types.index("tool_execution_start")


def test_words_of_the_task_guide_the_search(shop: Path) -> None:
    """The agent searches for the task's own words, without their endings, and reads the best files."""
    calls = read(shop, TASK).calls
    assert ("grep", {"pattern": "request|authenticat", "path": "."}) in calls
    assert "src/auth.py" in [args["path"] for name, args in calls if name == "read"]


def test_a_file_that_the_task_names_is_read(shop: Path) -> None:
    """A path in the task is read, not searched for; a line number moves the window."""
    calls = read(shop, "Explain src/prices.py:2 please").calls
    assert "src/prices.py" in [args["path"] for name, args in calls if name == "read"]


def test_a_directory_that_the_task_names_bounds_the_search(shop: Path) -> None:
    """`in src/` limits the evidence to that directory."""
    paths = {path for path, _, _ in evidence(read(shop, "Where is the token checked in src/ ?").answer)}
    assert {"src/auth.py", "src/app.py"} == paths


def test_a_glob_lists_the_files(shop: Path) -> None:
    """A pattern in the task is answered with the matching names."""
    reading = read(shop, "list all test_*.py files")
    assert ("find", False, "tests/test_auth.py") in reading.results
    assert "`tests/test_auth.py`" in reading.answer


def test_a_quoted_text_is_taken_literally(shop: Path) -> None:
    """Quotes protect spaces, punctuation and endings."""
    reading = read(shop, 'Who says "sum(item.price for"?')
    assert [("src/prices.py", 2, "return sum(item.price for item in items)")] == evidence(reading.answer)


def test_a_task_without_words_gets_an_overview(shop: Path) -> None:
    """A task without names gets an overview from the directory's README and listing."""
    answer = read(shop, "What is this?").answer
    assert "`README.md:1` `# Shop`" in answer
    assert "In `.`: `README.md`, `src/`, `tests/`." in answer


def test_nothing_found_is_said(shop: Path) -> None:
    """An answer without evidence says that nothing was found, and names the words."""
    answer = read(shop, "Where is the frobnicator?").answer
    assert "No line of a file matches." in answer
    assert "Not found: `frobnicator`." in answer
    assert [] == evidence(answer)


def test_an_empty_directory_is_no_error(tmp_path: Path) -> None:
    """An empty directory gives an answer, not an error."""
    reading = read(tmp_path, TASK)
    assert 0 == reading.code
    assert "In `.`: nothing." in reading.answer


def test_a_change_is_refused_in_words(shop: Path) -> None:
    """A task to change files is answered that nothing was changed, and nothing was."""
    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    answer = read(shop, "Rename check_token to verify").answer
    assert "nothing was changed" in answer
    assert before == {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}


def test_two_runs_are_equal(shop: Path) -> None:
    """The same directory and task give the same output, except for times and the session's id."""
    assert masked(read(shop, TASK).stdout) == masked(read(shop, TASK).stdout)


def test_two_sessions_are_equal(shop: Path) -> None:
    """The entries' ids are counted, so that session files of equal runs are equal."""
    files = [shop.parent / name for name in ("one.jsonl", "two.jsonl")]
    for file in files:
        read(shop, TASK, "--session", str(file))
    one, two = (masked(file.read_bytes()) for file in files)
    assert one == two


def test_what_comes_before_a_task_is_not_searched_for(shop: Path) -> None:
    """A parent's conversation before the task does not change the search."""
    prompt = f"<parent-context>\nprices, items and totals\n</parent-context>\n\n{TASK}"
    assert read(shop, TASK).calls == read(shop, prompt).calls


@pytest.mark.parametrize("tools", ["read", "grep", "find,ls", "ls", "read,bash,subagent_finalize"])
def test_only_listed_tools_are_used(shop: Path, tools: str) -> None:
    """An allowlist limits the calls; unknown names in it are ignored."""
    reading = read(shop, TASK, "--tools", tools)
    assert {name for name, _ in reading.calls} <= set(tools.split(","))
    assert 0 == reading.code
    if "grep" not in tools:
        assert "do not search in files" in reading.answer


@pytest.mark.parametrize("flags", [("--no-tools",), ("--tools", "bash,edit"), ("--tools", "")])
def test_without_tools_nothing_is_read(shop: Path, flags: tuple[str, ...]) -> None:
    """Without an allowed tool the directory is not read, and the answer states that."""
    reading = read(shop, TASK, *flags)
    assert [] == reading.calls
    assert "nothing was read" in reading.answer
    assert "src/auth.py" not in reading.answer


def drop_override() -> None:
    """Make file modes apply to root: after exec the process lacks DAC_OVERRIDE and DAC_READ_SEARCH."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_what_cannot_be_opened_is_an_error_and_the_run_goes_on(shop: Path) -> None:
    """An unreadable file or directory is a failed tool or a note in the answer, never the end of the run."""
    (shop / "secret.py").write_text("token = 1\n")
    (shop / "secret.py").chmod(0)
    (shop / "closed").mkdir(mode=0)
    reading = read(shop, "Read secret.py and closed/ and find the token", preexec_fn=drop_override)
    assert 0 == reading.code
    assert ("read", True, "secret.py: Permission denied") in reading.results
    assert ("ls", True, "closed: Permission denied") in reading.results
    assert "secret.py: Permission denied" in reading.answer


def test_an_unreadable_place_in_a_search_is_named(shop: Path) -> None:
    """A search names the parts of the directory that it could not read."""
    (shop / "closed").mkdir(mode=0)
    (shop / "secret.py").touch(mode=0)
    reading = read(shop, TASK, preexec_fn=drop_override)
    assert "closed/: Permission denied" in reading.answer
    assert "secret.py: Permission denied" in reading.answer
    assert "src/auth.py" == evidence(reading.answer)[0][0]


def test_links_do_not_lead_out_or_around(shop: Path) -> None:
    """A link loop ends, and files outside the directory are not read, even if the task names them."""
    outside = shop.parent / "outside"
    outside.mkdir()
    (outside / "leak.py").write_text("authenticated requests leak\n")
    (shop / "loop").symlink_to(shop)
    (shop / "away").symlink_to(outside)
    (shop / "leak.py").symlink_to(outside / "leak.py")
    reading = read(shop, f"{TASK} See leak.py, away/leak.py, ../outside/leak.py and {outside}/leak.py")
    assert 0 == reading.code
    assert b"requests leak" not in reading.stdout
    assert not [path for path, _, _ in evidence(reading.answer) if path.startswith(("loop", "away", "leak"))]


def test_binary_huge_and_special_files_are_passed_over(shop: Path) -> None:
    """Only text of a sensible size is searched; a pipe or a socket is not opened."""
    (shop / "blob.bin").write_bytes(b"authenticated requests\0" * 3)
    (shop / "huge.txt").write_bytes(b"authenticated requests\n" * 50_000)
    os.mkfifo(shop / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(shop / "sock"))
        reading = read(shop, f"{TASK} Look at blob.bin, huge.txt and pipe")
    failed = {text for name, is_error, text in reading.results if is_error and name == "read"}
    assert {
        "blob.bin: a binary file",
        "huge.txt: not a regular file of at most 1024 KB",
        "pipe: not a regular file of at most 1024 KB",
    } == failed
    assert {"blob.bin", "huge.txt"}.isdisjoint(path for path, _, _ in evidence(reading.answer))


def test_packages_caches_runs_and_ignored_files_are_not_searched(shop: Path) -> None:
    """Evidence excludes installed packages, build output, run records and ignored files."""
    line = "requests are authenticated\n"
    hidden = (
        "node_modules/x.js",
        ".git/x",
        ".venv/x.py",
        ".pi/subagents/runs/r/prompt.md",
        ".pi/subagents/sessions/s.jsonl",
        ".pi/subagents/trash/r/prompt.md",
        "deep/.pi/subagents/active/r.md",
        "build/x.py",
        "deep/x.gen.py",
        "deep/local.py",
    )
    kept = ("keep.gen.py", "local.py", ".pi/subagents/scout.md", "deep/build.py")
    write_tree(shop, dict.fromkeys((*hidden, *kept), line))
    write_tree(shop, {".gitignore": "build/\n*.gen.py\n!keep.gen.py\n", "deep/.gitignore": "local.py\n"})
    calls = read(shop, "List *.[pjm]*")
    text = next(text for name, _, text in calls.results if name == "find")
    assert set(hidden).isdisjoint(text.splitlines())
    assert set(kept) <= set(text.splitlines())


def test_no_ignore_rule_breaks_the_search_or_takes_long(shop: Path) -> None:
    """An invalid ignore rule, and one that would take forever, are skipped; the others apply."""
    rules = ["!", "[", "\\", "*a" * 60 + "b", "**/a" * 30, "src/app.py"]
    write_tree(shop, {".gitignore": "\n".join(rules), "a" * 250: "token\n"})
    paths = {path for path, _, _ in evidence(read(shop, "Where is the token?").answer)}
    assert {"src/auth.py", "README.md", "a" * 250} == paths


def test_hostile_names_and_contents_stay_text(tmp_path: Path) -> None:
    """For any file name and content each event is one line, and the answer has no control character."""
    write_tree(
        tmp_path,
        {
            "a\x1b]0;x\x07token.py": "token = 1\n",
            "two\nlines_token.py": "token = 2\n",
            "sep\u2028token.py": "token = 3\n",
            "content.py": "token \x1b[31mred\x07 \u2028 ``` <b>\r\n",
            "latin.py": b"token caf\xe9\n",
        },
    )
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff_token.py"))).write_text("token = 5\n")
    reading = read(tmp_path, "Where is the token?")
    assert 0 == reading.code
    assert b"\x1b" not in reading.stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", reading.answer)
    assert r"two\nlines_token.py" in reading.answer
    assert r"bad\xff_token.py:1" in reading.answer
    assert "6 matching lines in 6 files" in reading.answer


def test_a_large_tree_is_bounded_work(tmp_path: Path) -> None:
    """Thousands of files give one bounded answer."""
    for number in range(50):
        directory = tmp_path / f"d{number:02d}"
        directory.mkdir()
        for file in range(100):
            (directory / f"f{file:02d}.py").write_text(f"def work_{file}():\n    return 'request'\n")
    reading = read(tmp_path, "Find the requests")
    assert 0 == reading.code
    assert "5000 matching lines in 5000 files" in reading.answer
    assert len(reading.answer) < 8_000
    assert max(len(line) for line in reading.stdout.split(b"\n")) < 200_000
