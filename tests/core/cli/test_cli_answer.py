"""`subdeck logs --answer`, and the code blocks of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.markdown import code_blocks
from subdeck.core.run.model import RunReason

from tests.core.command_line import subdeck
from tests.factories import make_finished, make_run

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

ANSWER = "Do this:\n\n```python\nif a:\n\tprint(1)\n```\nthen\n~~~\nmake ``` test\n~~~\nand \x1b[31mred\n"


@pytest.fixture
def project(project_dir: Path) -> paths.Project:
    return paths.Project(str(project_dir))


def test_answer_is_printed_as_it_was_written(project: paths.Project) -> None:
    """Piped output is unchanged, and the N-th code block is printed without its fences."""
    run_id = make_finished(project, final_text=ANSWER).run_id
    cwd = Path(project.root)
    assert (0, ANSWER, "") == subdeck("logs", "--answer", run_id[-6:], cwd=cwd)
    assert "if a:\n\tprint(1)\n" == subdeck("logs", "--answer", run_id, "--code", "1", cwd=cwd).out
    assert "make ``` test\n" == subdeck("logs", "--answer", run_id, "--code", "2", cwd=cwd).out
    assert "the answer has 2 code blocks" in subdeck("logs", "--answer", run_id, "--code", "3", cwd=cwd).err
    assert 2 == subdeck("logs", "--answer", run_id, "--code", "0", cwd=cwd).code


def test_answer_as_json(project: paths.Project) -> None:
    """The JSON document has the whole answer, and its code blocks."""
    run_id = make_finished(project, final_text=ANSWER, partial=True).run_id
    document = subdeck("logs", "--answer", run_id, "--json", cwd=Path(project.root)).document
    assert (run_id, "completed", "done", ANSWER, True, None) == tuple(
        document[key] for key in ("runId", "status", "reason", "answer", "partial", "error")
    )
    assert [
        {"language": "python", "text": "if a:\n\tprint(1)\n"},
        {"language": "", "text": "make ``` test\n"},
    ] == document["code"]


def test_run_without_an_answer_exits_with_1(project: paths.Project) -> None:
    """A failed run and an unfinished one are reported on stderr."""
    cwd = Path(project.root)
    failed = make_finished(project, reason=RunReason.MODEL_ERROR, final_text=None, error_message="401").run_id
    done = subdeck("logs", "--answer", failed, cwd=cwd)
    assert (1, "") == (done.code, done.out)
    assert "ended without an answer (failed: model_error)" in done.err
    document = subdeck("logs", "--answer", failed, "--json", cwd=cwd)
    assert (1, None, "401") == (document.code, document.document["answer"], document.document["error"])
    meta, lock = make_run(project)
    assert lock
    assert "has no answer yet" in subdeck("logs", "--answer", meta.run_id, cwd=cwd).err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--code", "1"], "--code requires --answer"),
        (["--answer", "--session"], "--answer and --session cannot be combined"),
        (["--answer", "-f"], "--answer prints one document and cannot follow a run"),
    ],
)
def test_an_answer_is_one_text(project_dir: Path, words: list[str], what: str) -> None:
    """An answer is of one run, which has ended, and only an answer has numbered code blocks."""
    error = subdeck("logs", "abcdef", *words, cwd=project_dir).err
    assert error.startswith(f"subdeck: {what}\n")


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code", []),
        ("```\na\n```", [("", "a\n")]),
        ("```sh title=x\na\n\nb\n```\n", [("sh", "a\n\nb\n")]),
        ("````md\n```\na\n```\n````", [("md", "```\na\n```\n")]),
        ("  ```c\n  a\n    b\n  ```", [("c", "a\n  b\n")]),
        ("```x``` inline\n```\nopen", [("", "open\n")]),
        ("```a\r\nb\r\n```\r\n", [("a", "b\n")]),
        ("```\n```", [("", "")]),
    ],
)
def test_code_blocks(text: str, blocks: list[tuple[str, str]]) -> None:
    """Fences follow markdown: longer ones contain shorter ones, and an open one runs to the end."""
    assert blocks == [tuple(block) for block in code_blocks(text)]
