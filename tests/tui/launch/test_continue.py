"""Launching from an earlier run: its conversation as context, its session continued, its answer in the task."""

from __future__ import annotations

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.errors import UsageError
from subdeck.core.presets.catalog import PresetCatalog
from subdeck.core.run.model import AgentSession, PresetSource, Tools
from subdeck.core.spec.request import RunRequest
from subdeck.tui.launch._form import LaunchForm, Reuse
from subdeck.tui.launch._screen import LaunchScreen
from textual.widgets import Input, TextArea

from ...factories import make_result
from .. import launch_dialog
from ..fake_engine import FakeEngine, a_preset, a_run, run_id, some_events
from ..launch_dialog import request_of
from ..open_deck import Deck, opened

SESSION = "550e8400-e29b-41d4-a716-446655440000"
KEPT = {"meta_session_path": "/src/shop/one/child-session.jsonl", "meta_child_session_id": SESSION}
SHORT = run_id(1)[-6:]


async def dialog_of(deck: Deck, *keys: str) -> LaunchScreen:
    await deck.until(lambda: deck.main.presets.row_count, "the presets")
    return await launch_dialog.dialog_of(deck, *keys)


@pytest.mark.parametrize("status", ["running", "completed"])
async def test_with_this_runs_context(status: str) -> None:
    """`c` on a run opens the dialog of the highlighted preset, with the run's conversation before the task."""
    engine = FakeEngine(a_run(1, status, **KEPT), presets=[a_preset(), a_preset("reviewer")])
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await deck.press("1", "j", "2")
        await dialog_of(deck, ":with_context")
        await deck.until_text(f"Context  (•) the conversation of {SHORT}  ( ) none")
        assert "Launch reviewer" in deck.screen_text
        await deck.type("go on")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        path = KEPT["meta_session_path"]
        assert engine.launched == [RunRequest(task="go on", preset="reviewer", parent_session=path)]


async def test_context_can_be_turned_off() -> None:
    """Context is a choice in the form; without it the request has no parent session."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[a_preset()])
    async with opened(engine) as deck:
        dialog = await dialog_of(deck, ":with_context")
        dialog.query_one("#context").focus()
        await deck.press("right")
        await deck.until_text("(•) none")
        assert request_of(dialog).parent_session is None


@pytest.mark.parametrize("key", [":with_context", "s"])
async def test_a_run_without_a_conversation_says_so(key: str) -> None:
    """A run without a saved session offers neither context nor a follow-up."""
    async with opened(FakeEngine(a_run(1, "completed"), presets=[a_preset()])) as deck:
        await deck.press(key)
        await deck.until_text("this run has no saved conversation")
        assert not isinstance(deck.app.screen, LaunchScreen)


async def test_a_preset_that_takes_no_context() -> None:
    """With `inherit_context: false` the dialog explains that no context is passed."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[a_preset(inherit_context=False)])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, ":with_context")
        await deck.until_text("none (the preset sets inherit_context: false)")
        assert request_of(dialog).parent_session is None


def test_the_preset_decides_before_the_setting() -> None:
    """A preset's inherit_context overrides the setting; without it the setting applies."""
    run, off = a_run(1, "completed", **KEPT), Settings(inherit_context=False)
    wishing = LaunchForm(a_preset(inherit_context=True), off, "/", run=run, reuse=Reuse.CONTEXT)
    silent = LaunchForm(a_preset(), off, "/", run=run, reuse=Reuse.CONTEXT)
    assert (wishing.context_refusal, bool(wishing.context)) == (None, True)
    assert ("none (disabled by the setting parent_context.inherit)", None) == (silent.context_refusal, silent.context)


async def test_an_unreadable_conversation_is_said_before() -> None:
    """An unreadable session is reported in the dialog before anything is launched."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[a_preset()])
    engine.problems = (UsageError("it is no session of pi", where="/src/shop/one/child-session.jsonl"),)
    async with opened(engine, (80, 24)) as deck:
        await dialog_of(deck, ":with_context")
        await deck.until_text("it is no session of pi")


async def test_follow_up() -> None:
    """`s` continues the run's agent session: same preset, directory and agent, another task."""
    run = a_run(1, "completed", meta_cwd="/src/other", meta_requested_model="fake/big", meta_runner="tmux", **KEPT)
    engine = FakeEngine(run, presets=[a_preset("another"), a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "s")
        await deck.until_text(f"continues 550e8400… of run {SHORT}")
        assert "Follow up with repo-scout" in deck.screen_text
        assert "from that run" in deck.screen_text
        assert dialog.query_one("#cwd", Input).disabled
        await deck.type("and now?")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert engine.launched == [
            RunRequest(
                task="and now?",
                preset="repo-scout",
                model="fake/big",
                cwd="/src/other",
                agent="offline",
                runner="tmux",
                follow_up=run.run_id,
                child_session=SESSION,
            )
        ]


async def test_follow_up_by_an_id_that_the_agent_told() -> None:
    """`s` continues a conversation by the id that the agent reported, which is not in the meta."""
    run = a_run(1, "completed", meta_agent_session=AgentSession(), told_session=SESSION)
    engine = FakeEngine(run, presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        await dialog_of(deck, "s")
        await deck.until_text(f"continues 550e8400… of run {SHORT}")
        await deck.type("and now?")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert SESSION == engine.launched[0].child_session


async def test_a_conversation_that_the_agent_keeps_is_not_handed_over() -> None:
    """A conversation kept by its agent cannot be passed to another one; the refusal says what works instead."""
    run = a_run(1, "completed", meta_agent_session=AgentSession(), told_session=SESSION)
    async with opened(FakeEngine(run, presets=[a_preset()])) as deck:
        await deck.act("with_context")
        await deck.until_text("stores this run's conversation")


async def test_a_running_run_is_not_followed_up() -> None:
    """A running run without messages can only be followed up after its end, as the refusal says."""
    async with opened(FakeEngine(a_run(1, **KEPT), presets=[a_preset()])) as deck:
        await deck.press("s")
        await deck.until_text("takes no messages")


async def test_follow_up_without_its_preset() -> None:
    """A session continues only with its own preset; if that is missing, a toast says what to do."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[a_preset("another")])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count, "the presets")
        await deck.press("s")
        await deck.until_text('preset "repo-scout" is missing')


async def test_follow_up_of_an_ad_hoc_run() -> None:
    """Tools and prompt of a one-off run come from the run, because no file has them."""
    run = a_run(
        1,
        "completed",
        meta_preset="",
        meta_preset_source=PresetSource.ADHOC,
        meta_system_prompt="Be brief.",
        meta_tools=Tools("allow", ("read",)),
        **KEPT,
    )
    engine = FakeEngine(run, presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "s")
        dialog.query_one("#task", TextArea).text = "more"
        request = request_of(dialog)
        assert (request.preset, request.tools, request.prompt) == (None, ("read",), "Be brief.")
        assert (request.child_session, request.model) == (SESSION, "fake/test")


async def test_previous_stands_for_the_highlighted_runs_answer() -> None:
    """Once the task contains `{previous}`, the dialog names the run it stands for, and the request has that run."""
    engine = FakeEngine(a_run(1, "completed"), presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        assert "literal text" not in deck.screen_text
        assert request_of(dialog).previous is None
        dialog.query_one("#task", TextArea).text = "check {previous}"
        await deck.until_text(f"{{previous}} is the answer of {SHORT}")
        assert request_of(dialog).previous == run_id(1)
        dialog.query_one("#previous").focus()
        await deck.press("right")
        await deck.until_text("(•) literal text")
        assert request_of(dialog).previous is None


async def test_previous_without_an_answer_is_refused() -> None:
    """Once `{previous}` is typed, the dialog shows the engine's refusal for a run without an answer."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, "n")
        await deck.until_text("Tools")
        engine.problems = (UsageError("run 000001 has not finished yet, so {previous} has no value"),)
        dialog.query_one("#task", TextArea).text = "check {previous}"
        await deck.until_text("has not finished yet")
        engine.problems = ()
        dialog.query_one("#task", TextArea).text = "check"
        await deck.until(lambda: "has not finished yet" not in deck.screen_text, "the refusal to go")


async def test_nothing_stands_for_previous_without_a_run() -> None:
    """Without a highlighted run the task stays unchanged."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        dialog = await dialog_of(deck, "n")
        dialog.query_one("#task", TextArea).text = "check {previous}"
        await deck.until_text("check {previous}")
        assert request_of(dialog) == RunRequest(task="check {previous}", preset="repo-scout")


async def test_footer_names_what_a_key_does_here() -> None:
    """The footer names `a` attach only with a pane, and offers `s` only where it works."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), a_run(2, meta_runner="tmux"), presets=[a_preset()])
    async with opened(engine, (200, 50)) as deck:
        await deck.until_text("a attach")
        assert "s follow up" not in deck.screen_text
        await deck.press("j")
        await deck.until_text("a zoom")
        assert "s follow up" in deck.screen_text


async def test_dialogs_fit_with_everything_in_them() -> None:
    """At 80x24 nothing is cut off, even with every line of the dialog."""
    full = a_preset(
        description="words " * 100,
        warnings=("unknown: x",) * 9,
        thinking="high",
        structured_result=True,
        max_attempts=3,
    )
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[full])
    engine.problems = tuple(UsageError(f"problem {number}", hint="mend it") for number in range(4))
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_of(deck, ":with_context")
        dialog.query_one("#task", TextArea).text = "check {previous}"
        await deck.until_text("problem 1")
        await deck.until_text("is the answer of")
        region = dialog.query_one(".dialog").region
        assert dialog.region.contains_region(region)
        assert region.contains_region(dialog.query_one("#go").region)


async def test_a_preset_that_broke_meanwhile() -> None:
    """A follow-up uses the preset as it is when the key is pressed."""
    engine = FakeEngine(a_run(1, "completed", **KEPT), presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count == 1, "the preset")
        engine.catalog = PresetCatalog((a_preset("aaa"),), (), ())
        engine.tell(presets_changed=True)
        await deck.until(lambda: deck.main.presets.named("aaa"), "the new list")
        await deck.press("s")
        await deck.until_text("is missing or broken")


def of_one_conversation(engine: FakeEngine) -> None:
    """Give the first of two runs its own answer in its result."""
    result = make_result(run_id(1), final_text="The check is in auth.py.\nIt is called by two views.")
    engine.result = lambda name: result if name == run_id(1) else None


async def test_the_chain_of_a_conversation_is_one_text() -> None:
    """The transcript begins with the conversation's earlier runs, folded; expanded they show task and answer."""
    engine = FakeEngine(
        a_run(1, "completed", meta_task="where is the check?", message="The check is in auth.py.", **KEPT),
        a_run(2, "completed", meta_task="and who calls it?", **KEPT),
        a_run(3, "completed", meta_child_session_id="another", meta_session_path="/t"),
    )
    of_one_conversation(engine)
    engine.write(run_id(2), *some_events())
    async with opened(engine) as deck:
        deck.main.runs.select(run_id(2))
        await deck.until_text("▸ ✓ where is the check?  →  The check is in auth.py.")
        assert "10 events" in deck.screen_text
        assert deck.screen_text.index("where is the check?  →") < deck.screen_text.index("started")
        await deck.press("3", "g", "enter")
        await deck.until_text("It is called by two views.")
        await deck.press("e", "j", "y")
        await deck.press("enter")
        deck.main.runs.select(run_id(3))
        await deck.until(lambda: "where is the check?  →" not in deck.screen_text, "another run")


async def test_a_conversation_goes_on_in_place() -> None:
    """In a finished run's transcript `s` opens a line whose text launches the next run, which is shown there."""
    engine = FakeEngine(a_run(1, "completed", meta_task="where is the check?", **KEPT), presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.known.is_set(), "the presets")
        await deck.press("enter", "s")
        await deck.until_text("▸ follow up on repo-scout")
        await deck.type("and who calls it?")
        await deck.press("enter")
        await deck.until(lambda: engine.launched, "the next run")
        (request,) = engine.launched
        assert request.task == "and who calls it?"
        assert request.child_session == KEPT["meta_child_session_id"]
        await deck.until(lambda: deck.main.transcript.has_focus, "the transcript")
