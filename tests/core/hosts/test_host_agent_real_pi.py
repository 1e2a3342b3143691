"""pi in a run on a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.model import ToolPolicy, Tools

from tests.core.hosts.hosting import Asking, host_meta, hosting
from tests.real.lab import EITHER_PI, PATIENCE, Lab
from tests.real.model_server import called, said

pytestmark = [pytest.mark.pi, EITHER_PI, pytest.mark.processes]


@pytest.mark.parametrize("talk", [False, True], ids=["one-way", "talking"])
async def test_pi_runs_on_a_host(pi: Lab, tmp_path: Path, talk: bool) -> None:
    """A host finds pi, takes messages during the run, and reports its conversation."""
    (pi.project / "note.txt").write_text("forty-two\n")
    async with hosting(tmp_path / "spool") as agent:
        pi.command(pi.program)  # the host's settings as well
        pi.script(called(("read", {"path": "note.txt"})), said("It says forty-two."))
        relay = Asking(agent)
        meta = host_meta(
            cwd=str(pi.project),
            agent="pi",
            agent_command=("/not/here/pi",),
            resolved_model="fake/test",
            tools=Tools(policy=ToolPolicy.ALLOW, resolved=("read",)),
            session_path="/operator/child-session.jsonl",
            child_session_id="0f0e0d0c-0000-4000-8000-000000000001",
            talk=talk,
            grace_seconds=5.0,
        )
        run_id = await relay.begin("Look.", meta=meta)
        result = await relay.pull_end(run_id, timeout=PATIENCE)
    assert ("completed", "It says forty-two.") == (result.status, result.final_text), relay.text(run_id, paths.STDERR)
    assert any("forty-two" in str(request["messages"]) for request in pi.requests[1:])
    assert "It says forty-two." in relay.text(run_id, paths.CHILD_SESSION)
