"""The one renderer of commands: their text, their JSON document, their exit code."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from subdeck.core.cli._command import Document, command, is_json
from subdeck.core.cli.output import Note, Output, Piece, render


class Sum(Document, frozen=True):
    """A document of these tests."""

    run_id: str
    total: int


def unprintable() -> Iterator[Piece]:
    raise OSError(28, "No space left on device")
    yield ""


def test_text_goes_to_both_streams_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines and lists of lines go to stdout, notes to stderr, and the document is not computed."""
    output = Output[Sum](lambda: pytest.fail("computed"), ["one", Note("beside"), ["two", "three"]], 3)
    assert 3 == render(output, as_json=False)
    assert ("one\ntwo\nthree\n", "beside\n") == capsys.readouterr()


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json only the document and the note are printed."""
    text = (pytest.fail("computed") for _ in "x")
    assert 0 == render(Output(Sum("r", 2), text, note="later"), as_json=True)
    assert ('{\n  "runId": "r",\n  "total": 2\n}\n', "later\n") == capsys.readouterr()


def test_a_code_may_depend_on_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A function for the exit code is called after printing."""
    printed: list[str] = []
    text = (printed.append("x") or "line" for _ in "x")
    assert 1 == render(Output(Sum("r", 2), text, lambda: len(printed)), as_json=False)


def test_only_finished_work_ignores_a_failed_output(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code of a command that is done stays, with the error on stderr; any other command fails."""
    assert 4 == render(Output(Sum("r", 2), unprintable(), 4, is_done=True), as_json=False)
    assert "No space left on device" in capsys.readouterr().err
    with pytest.raises(OSError, match="No space"):
        render(Output(Sum("r", 2), unprintable(), 4), as_json=False)


def test_a_command_knows_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    """--json is declared once, as the last option, and the function of the command does not get it."""

    @command("sum")
    @click.option("--start", type=int, default=1)
    def add(start: int) -> Output[Sum]:
        return Output(Sum("r", start + is_json()), "text")

    assert ["start", "as_json"] == [param.name for param in add.params]
    assert 0 == add.main(["--json"], standalone_mode=False)
    assert '"total": 2' in capsys.readouterr().out
