"""Numbers from people have bounds, checked when they are read, with a readable error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from subdeck.core import paths
from subdeck.core.config.files import KEYS
from subdeck.core.engine import Engine
from subdeck.core.errors import PresetError, SettingsError
from subdeck.core.presets.fields import FIELDS
from subdeck.core.run.describe import moment
from subdeck.tui.launch._values import LaunchValues

from tests.core.command_line import subdeck, write_preset
from tests.factories import make_finished, open_engine, run_to_end

pytestmark = pytest.mark.usefixtures("forked_commands")


def is_number(kind: Any) -> bool:
    return get_args(kind)[:1] in ((int,), (float,))


NUMBERS = [key for key, entry in KEYS.items() if is_number(entry.kind)]
PRESET_NUMBERS = [name for name, field in FIELDS.items() if is_number(field.kind)]
ABSURD = ("1e308", "99999999999999999999", "9" * 5000, "-1", "inf", "nan", "1e-400x", "0x10")
RANGE = re.compile(r"(from \d+ to [\d,]+|up to [\d,]+|at most [\d,]+h?)")


def settings_error(key: str, written: str, project_dir: Path) -> SettingsError | None:
    """Write one value to the user's settings, in line 2 or 3."""
    section, _, name = key.rpartition(".")
    file = Path(paths.user_settings_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# mine\n{section}:\n  {name}: {written}\n" if section else f"# mine\n{key}: {written}\n")
    try:
        Engine.open(str(project_dir))
    except SettingsError as error:
        return error
    return None


def test_there_are_numbers() -> None:
    """The tables of keys include the numbers tested here."""
    assert {"logs.stdout_mb", "limits.timeout", "max_parallel", "retention.days", "advanced.grace_seconds"} <= set(
        NUMBERS
    )
    assert [
        "reply_timeout",
        "idle_timeout",
        "max_attempts",
        "timeout",
        "max_turns",
        "budget",
        "max_tokens",
        "stall",
    ] == PRESET_NUMBERS


@pytest.mark.parametrize("key", NUMBERS)
def test_an_absurd_setting(key: str, project_dir: Path) -> None:
    """The error names setting, value, allowed range, file and line."""
    for written in ABSURD:
        error = settings_error(key, written, project_dir)
        assert error is not None, written
        line = 3 if "." in key else 2
        assert f"{paths.user_settings_file()}:{line}" == error.where
        assert error.what.startswith(f"{key}: ")
        assert f'found "{written[:50]}' in error.what
        assert RANGE.search(error.what), error.what


@pytest.mark.parametrize("field", PRESET_NUMBERS)
def test_an_absurd_number_in_a_preset(field: str, project_dir: Path) -> None:
    """The error of a preset does the same."""
    engine = open_engine(project_dir)
    for written in ABSURD:
        path = write_preset(project_dir, extra=f"{field}: {written}\n")
        with pytest.raises(PresetError) as caught:
            engine.presets().get("scout")
        assert f"{path}:4" in str(caught.value)
        assert RANGE.search(str(caught.value))


@pytest.mark.processes
def test_long_limits_hold(project_dir: Path) -> None:
    """A time limit beyond the kernel's longest wait works like any other."""
    engine = open_engine(project_dir, limits={"timeout": "600h", "stall": "8760h"}, logs={"stdout_mb": "1000000000"})
    assert "completed" == run_to_end(engine, "answer ok").status


@pytest.mark.processes
@pytest.mark.parametrize(
    "words",
    [
        ["clean", "--dry-run", "--older-than"],
        ["clean", "--dry-run", "--keep"],
        ["clean", "--dry-run", "--max-mb"],
        ["wait", "RUN", "--timeout"],
        ["replay", "nothing.jsonl", "--exit-code"],
    ],
    ids=lambda words: words[-1],
)
def test_an_absurd_option(words: list[str], project_dir: Path) -> None:
    """An invalid value is refused with the expected one, before anything is done."""
    run_id = make_finished(open_engine(project_dir).project).run_id
    given = [run_id if word == "RUN" else word for word in words]
    for written in ("1e308", "nan", "inf", "9" * 60):
        done = subdeck(*given, written, cwd=project_dir)
        assert 2 == done.code
        assert re.search(rf'subdeck: invalid {words[-1]} ".*": expected a', done.err), done.err


@pytest.mark.processes
@pytest.mark.parametrize("columns", ["²", "9" * 5000, "-5", "1e3", "0"])
def test_an_absurd_width(columns: str, project_dir: Path) -> None:
    """COLUMNS counts only if it is a valid width."""
    run_id = make_finished(open_engine(project_dir).project).run_id
    done = subdeck("status", cwd=project_dir, COLUMNS=columns)
    assert (0, "") == (done.code, done.err)
    assert run_id[-6:] in done.out


@pytest.mark.parametrize("iso", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-14:00", "x", "", "2026-13-01"])
def test_times_beyond_the_calendar(iso: str) -> None:
    """A time that cannot be converted to another zone is invalid."""
    assert moment(iso) is None


def test_copies() -> None:
    """A number of attempts with too many digits is invalid."""
    assert 0 == LaunchValues(copies="9" * 5000).count
