"""Notifications about runs on hosts: this machine's settings count, and its relay queues them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subdeck.core.alerts.pending import pending
from subdeck.core.alerts.spool import is_sending
from subdeck.core.paths import user_settings_file
from subdeck.core.run.model import Verdict

from tests.core.hosts.hosting import until
from tests.core.hosts.relaying import relaying
from tests.core.notify.receiver import receiving
from tests.core.offline_agent.offline_reader import SHOP, write_tree

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


async def test_a_request_of_a_run_on_a_host(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is notified once of a request and of the end of a run on a host, whose wrapper queues nothing."""
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    with receiving() as receiver:
        async with relaying(project_dir, tmp_path, 1) as there:
            file = Path(user_settings_file())
            settings = json.loads(file.read_text())
            file.write_text(json.dumps({**settings, "notifications": {"url": receiver.url, "dwell": "0s"}}))
            run_id = await there.start("Where is the token checked? Ask me which file.", agent="offline")
            seen = await there.see(run_id, lambda run: run.requests, "what it asks")
            await until(lambda: receiver.documents, "the request")
            there.engine.reply(run_id, seen.requests[0].id, Verdict.REPLY, "src/app.py")
            await there.end(run_id)
            await until(lambda: len(receiver.documents) == 2, "the end")
            await until(lambda: not pending() and not is_sending(), "the sender to finish")
    asked, ended = receiver.documents
    assert [f"{run_id}.{seen.requests[0].id}", f"{run_id}.end"] == [asked["id"], ended["id"]]
    assert "project" == asked["alerts"][0]["project"]
