"""Checks in the app: chosen at a launch, found by the filter, shown in the overview."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.presets.file import Preset
from subdeck.core.run.changes import CheckResult
from subdeck.core.run.model import PresetSource
from subdeck.core.run.need import has_failed
from subdeck.core.run.snapshot import Checking
from subdeck.tui.detail._facts import facts_rows
from subdeck.tui.launch._form import LaunchForm, Reuse
from subdeck.tui.launch._values import request_again
from subdeck.tui.runs.filter import Flags, parse_filter

from tests.factories import make_meta, make_result, make_snapshot

SETTINGS = Settings(checks={"tests": ("make", "test"), "types": ("tsc",)})


def preset(check: str | None) -> Preset:
    return Preset(name="p", description="d", source=PresetSource.PROJECT, path="/p.md", check=check)


@pytest.mark.parametrize(
    ("of_preset", "chosen", "asked"), [(None, "tests", "tests"), ("tests", "", ""), ("tests", "tests", None)]
)
def test_a_check_is_chosen(of_preset: str | None, chosen: str, asked: str | None) -> None:
    """Only a check that differs from the preset's is requested, including none."""
    form = LaunchForm(preset(of_preset), SETTINGS, "/")
    assert (("tests", "types"), of_preset or "") == (form.checks, form.first.check)
    values = type(form.first)(
        **{name: getattr(form.first, name) for name in form.first.__struct_fields__} | {"check": chosen}
    )
    assert asked == form.request(values).check


def test_a_rerun_has_the_check_of_its_run() -> None:
    """A rerun has its run's check; if that is missing in the settings, the field reports it."""
    run = make_snapshot(make_meta(check="gone"))
    form = LaunchForm(None, SETTINGS, "/", run=run, reuse=Reuse.EVERYTHING)
    assert ("gone", ("tests", "types", "gone")) == (form.first.check, form.checks)
    assert "gone" == request_again(run).check


def test_filter() -> None:
    """`check:` finds runs by their check's verdict, and a check that did not pass needs attention."""
    meta = make_meta(check="tests")
    runs = {
        "passed": make_snapshot(meta, check=CheckResult("tests", 0)),
        "failed": make_snapshot(meta, check=CheckResult("tests", note="it took longer than 10:00")),
        "running": make_snapshot(meta, status="running", checking=Checking("tests", "")),
        "none": make_snapshot(),
    }
    for word in runs:
        term = parse_filter(f"check:{word}")
        assert [word] == [name for name, run in runs.items() if term.passes(run, Flags(unseen=False, marked=False))]
    assert ["failed"] == [name for name, run in runs.items() if has_failed(run)]


def test_facts() -> None:
    """The verdict is shown with the end of the output."""
    meta = make_meta(check="tests")
    result = make_result(meta.run_id, check=CheckResult("tests", 2, 14.0, "2 failed"))
    rows, _ = facts_rows(make_snapshot(meta), meta, result, None, datetime.now(UTC), 80)
    text = "\n".join("".join(part[0] for part in row) for row in rows)
    assert "tests ✗ exit code 2 after 0:14" in text
    assert "2 failed" in text
