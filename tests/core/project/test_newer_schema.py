"""Records of a newer subdeck are shown as such and never acted on."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.config.settings import Retention
from subdeck.core.delegation.parent import SessionWatch
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.project.diagnosis import DiagnosisReader, explain
from subdeck.core.project.follower import Update
from subdeck.core.project.session import SessionFile
from subdeck.core.run import artifacts, describe
from subdeck.core.run.model import SCHEMA_VERSION, LaunchedBy
from subdeck.core.run.snapshot import Counts, RunSnapshot
from subdeck.core.work import deletion

from tests.factories import make_finished, make_meta, make_run, open_engine, request, rewrite_meta

NOW = datetime.now(UTC)
NEWER = SCHEMA_VERSION + 1
SENTENCE = (
    f"written by a newer subdeck (schema {NEWER}, this one reads up to {SCHEMA_VERSION}): use that version for it"
)


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def rewrite(engine: Engine, run_id: str, name: str, **fields: Any) -> Path:
    """Turn a record into one of a newer schema, with unexpected `fields`."""
    path = Path(engine.project.run_dir(run_id), name)
    if name == paths.META:
        rewrite_meta(path.parent, **({"schemaVersion": NEWER} | fields))
        return path
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schemaVersion": NEWER} | fields))
    return path


def newer_open_run(engine: Engine, **fields: Any) -> RunSnapshot:
    """Make a run of a newer schema without a holder."""
    meta, lock = make_run(engine.project, make_meta(task="look", preset="scout", child_session_id="abc"))
    os.close(lock)
    rewrite(engine, meta.run_id, paths.META, **fields)
    (run,) = engine.snapshots()
    return run


@pytest.mark.parametrize("fields", [{}, {"task": ["of", "another", "form"]}])
def test_it_is_shown_as_such(engine: Engine, fields: dict[str, Any]) -> None:
    """State and activity of such a run name a newer subdeck, and nothing else is read from its record."""
    run = newer_open_run(engine, **fields)

    assert ("◇ newer", SENTENCE) == (describe.state(run), describe.doing(run))
    assert SENTENCE == explain(run, DiagnosisReader(engine.project, run.run_id).read(run), NOW)
    assert (SENTENCE, "", None) == (run.meta.task, run.meta.cwd, run.meta.child_session_id)


def test_it_is_not_finished(engine: Engine) -> None:
    """Such a run without a holder is not lost, and gets no result."""
    run = newer_open_run(engine)

    assert not run.has_ended
    assert not os.path.exists(os.path.join(engine.project.run_dir(run.run_id), paths.RESULT))


def test_it_is_not_stopped(engine: Engine) -> None:
    """Stopping it writes no stop request, and the error names the subdeck that can stop it."""
    run = newer_open_run(engine)

    with pytest.raises(SubdeckError, match="newer subdeck") as refused:
        engine.stop([run.run_id])
    assert "with the subdeck that launched it" in refused.value.hint
    assert not os.path.exists(os.path.join(engine.project.run_dir(run.run_id), paths.STOP))


def test_nothing_is_launched_from_it(engine: Engine) -> None:
    """Its answer, its conversation and its request cannot be used for a launch."""
    run = newer_open_run(engine)

    with pytest.raises(SubdeckError, match="newer subdeck"):
        engine.meta(run.run_id)
    with pytest.raises(SubdeckError, match="newer subdeck"):
        engine.attach_command(run.run_id)
    with pytest.raises(SubdeckError, match="no agent session"):
        engine.launch([request("answer ok", child_session="abc")], background=True)


def test_it_can_be_deleted(engine: Engine) -> None:
    """It can be deleted by name, and restored."""
    run = newer_open_run(engine)

    assert (run.run_id,) == engine.delete([run.run_id])
    assert () == engine.snapshots()
    assert (run.run_id,) == engine.restore([run.run_id])
    assert "◇ newer" == describe.state(engine.snapshots()[0])


def test_retention_leaves_it(engine: Engine) -> None:
    """The settings' retention rules apply only to runs that this version can read."""
    own, newer = make_finished(engine.project), make_finished(engine.project)
    rewrite(engine, newer.run_id, paths.META)

    _, cleaned = deletion.apply_retention(engine.project, Retention(keep=0), now=NOW.timestamp())
    assert (own.run_id,) == cleaned.moved


@pytest.mark.parametrize("fields", [{}, {"status": "evaporated"}, {"usage": "of another form"}])
def test_a_newer_result(engine: Engine, fields: dict[str, Any]) -> None:
    """A run with a newer result has ended, and its outcome is not shown."""
    meta = make_finished(engine.project)
    rewrite(engine, meta.run_id, paths.RESULT, **fields)
    (run,) = engine.snapshots()

    assert (True, "◇ newer", SENTENCE) == (run.has_ended, describe.state(run), describe.doing(run))
    result = artifacts.read_result(engine.project.run_dir(run.run_id))
    assert result and (SENTENCE, None) == (result.error_message, result.final_text)


def test_a_newer_end_is_left_to_be_told(engine: Engine) -> None:
    """A newer end is unknown here, so it is neither reported nor claimed."""
    meta = make_meta(background=True, launched_by=LaunchedBy("operator", "app"))
    SessionFile(engine.project, "operator").add_run(meta)
    make_finished(engine.project, meta)
    path = Path(engine.project.run_dir(meta.run_id), paths.RESULT)
    readable = path.read_bytes()
    rewrite(engine, meta.run_id, paths.RESULT)
    (run,) = engine.snapshots()

    assert (run.has_ended, (), False) == (True, engine.unseen(), engine.claim(run))
    update = Update((run,), (), (run,), Counts(), Counts(), complete=True, presets_changed=False)
    assert ["counts"] == [line["type"] for line in SessionWatch("operator", ()).take(update)]
    path.write_bytes(readable)
    (run,) = engine.unseen()
    assert engine.claim(run)


def test_records_of_this_schema_are_read(engine: Engine) -> None:
    """A run of the present schema is shown as usual."""
    make_finished(engine.project)

    assert ["✓ completed"] == [describe.state(run) for run in engine.snapshots()]


def test_a_source_of_presets_that_is_not_known(engine: Engine) -> None:
    """An unknown source of presets is kept as its name, and the rest of the record is read."""
    meta, lock = make_run(engine.project, make_meta(preset="scout"))
    os.close(lock)
    rewrite(engine, meta.run_id, paths.META, schemaVersion=SCHEMA_VERSION, presetSource="registry")
    read = engine.meta(meta.run_id)
    assert ("registry", "scout") == (read.preset_source, read.preset)
