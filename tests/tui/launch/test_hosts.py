"""The launch dialog with hosts: the host and its required resources."""

from __future__ import annotations

from pathlib import Path

from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.config.settings import Settings
from subdeck.core.paths import Project
from subdeck.core.run.placement import HostState, HostStates, write_host_states
from subdeck.tui.launch._values import request_again
from subdeck.tui.widgets.form import Choice
from textual.widgets import Input

from ..fake_engine import FakeEngine, a_preset, a_run
from ..launch_dialog import request_of
from ..open_deck import opened
from .test_fields import dialog_on, problem_of


async def test_hosts_are_offered_where_there_are_some(project_dir: Path) -> None:
    """With configured hosts the dialog has a further runner, and for that a host and its resources."""
    async with opened(FakeEngine(presets=[a_preset()])) as deck:
        dialog = await dialog_on(deck)
        assert "hosts" not in dialog.query_one("#runner", Choice).words
        assert not dialog.query_one("#host-field").display
    engine = FakeEngine(presets=[a_preset()])
    engine.settings = Settings(hosts=HostsSettings(ssh=("me@h07",)))
    engine.project = Project(str(project_dir))
    Path(engine.project.runs).mkdir(parents=True, mode=0o700)
    write_host_states(engine.project, HostStates(at="", hosts=(HostState(name="h07"), HostState(name="h08"))))
    async with opened(engine) as deck:
        dialog = await dialog_on(deck)
        await deck.until(dialog._looked_up.is_set, "what is known of hosts")
        await deck.type("look around")
        dialog.query_one("#runner", Choice).put("hosts")
        await deck.until(lambda: dialog.query_one("#host-field").display, "the field of the host")
        dialog.query_one("#host").focus()
        await deck.press("down", "down")
        await deck.until(lambda: dialog.query_one("#host", Input).value == "h08", "the second host")
        dialog.query_one("#needs", Input).value = "gpu=1, mem=32"
        asked = request_of(dialog)
        assert ("hosts", "h08", {"gpu": 1.0, "mem": 32.0}) == (asked.runner, asked.host, asked.needs)
        dialog.query_one("#needs", Input).value = "gpu=many"
        await deck.until(
            lambda: "use LABEL=NUMBER, such as gpu=1" in problem_of(dialog, "needs"), "what is wrong with it"
        )
        dialog.query_one("#runner", Choice).put("process")
        asked = request_of(dialog)
        assert (None, None, None) == (asked.runner, asked.host, asked.needs)


async def test_the_host_of_a_preset() -> None:
    """The preset's host is shown in the fields, and is part of the request only if changed."""
    engine = FakeEngine(presets=[a_preset(runner="hosts", host="h01", needs={"gpu": 1.0})])
    async with opened(engine) as deck:
        dialog = await dialog_on(deck)
        await deck.until(lambda: dialog.query_one("#host-field").display, "the field of the host")
        assert "gpu=1" == dialog.query_one("#needs", Input).value
        asked = request_of(dialog)
        assert (None, None, None) == (asked.runner, asked.host, asked.needs)
        dialog.query_one("#host", Input).value = ""
        assert "" == request_of(dialog).host


def test_again_on_the_same_host() -> None:
    """A rerun requests the same as the run; a local run requests no host."""
    remote = a_run(1, "completed", meta_runner="hosts", meta_host="h01", meta_needs={"gpu": 1.0})
    again = request_again(remote)
    assert ("h01", {"gpu": 1.0}) == (again.host, again.needs)
    local = request_again(a_run(2, "completed"))
    assert (None, None) == (local.host, local.needs)
