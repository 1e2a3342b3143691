"""The reply page with real agents: they ask, and are answered from a browser."""

from __future__ import annotations

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.real.lab import Lab
from tests.real.model_server import call, called, said

from ..conversed import decisions, wait_for_request
from .browsing import serving

BY = "the user on Phone at 127.0.0.1"
REASON = "Not yet."


def denied_then_allowed(engine: Engine, run: RunSnapshot, shown: str) -> None:
    """Deny the first request with a reason and allow the second one, on pages that show what is asked."""
    with serving(engine) as browser:
        browser.pair()
        for number, (verdict, fields) in enumerate((("deny", {"reason": REASON}), ("allow", {})), 1):
            request = wait_for_request(engine, run, number)
            page = browser.get(f"/run/{run.run_id}/{request.id}")
            assert shown in page.document.text("pre")
            assert "Reply sent" == browser.press(page, verdict, **fields).heading
    assert [(Verdict.DENY, BY), (Verdict.ALLOW, BY)] == [(one.verdict, one.by) for one in decisions(engine, run)]


@pytest.mark.pi
def test_pi(pi: Lab) -> None:
    """pi gets a denial with its reason, and then carries out what was allowed."""
    pi.preset("permissions: {ask: [write]}")
    write = called(("write", {"path": "made.txt", "content": "new\n"}))
    pi.script(write, write, said("Done."))
    run = pi.start("Write.")
    denied_then_allowed(pi.engine, run, "+ new")
    assert "done" == pi.wait(run).reason
    assert "new\n" == (pi.project / "made.txt").read_text()
    assert REASON in str(pi.requests[-1])


@pytest.mark.agents
def test_claude(claude: Lab) -> None:
    """Claude Code gets a denial with its reason, and then carries out what was allowed."""
    place = claude.project / "made.txt"
    write = call("Write", file_path=str(place), content="new\n")
    claude.script(write, write, said("Done."))
    run = claude.start()
    denied_then_allowed(claude.engine, run, "+ new")
    assert "done" == claude.wait(run).reason
    assert "new\n" == place.read_text()
    assert REASON in str(claude.requests[-1])


@pytest.mark.agents
def test_codex(codex: Lab) -> None:
    """Codex gets a denial with its reason, and then carries out what was allowed."""
    codex.configure(settings='approval_policy = "on-request"\nsandbox_mode = "read-only"')
    codex.preset()
    write = call(
        "exec_command", cmd="echo new > made.txt", sandbox_permissions="require_escalated", justification="Needed."
    )
    codex.script(write, write, said("Done."))
    run = codex.start()
    denied_then_allowed(codex.engine, run, "echo new > made.txt")
    assert "done" == codex.wait(run).reason
    assert "new\n" == (codex.project / "made.txt").read_text()
    assert REASON in str(codex.requests[-1])
