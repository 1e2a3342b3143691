"""Rerun, at once or with edits, and presets made from one-off runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.engine import Engine
from subdeck.core.errors import LaunchError, PresetError, SubdeckError, UnknownRun
from subdeck.core.run.model import Limits, PresetSource, RunMeta, Tools
from subdeck.core.run.outcome import INSTRUCTION
from subdeck.core.spec.request import RunRequest
from subdeck.tui.launch._form import LaunchForm, Reuse
from subdeck.tui.launch._memory import LastValues, change_memory
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.launch._values import LaunchValues, asked_tools, request_again
from subdeck.tui.presets.draft import PROJECT, USER
from subdeck.tui.widgets.form import Choice
from textual.widgets import Input, TextArea

from ..fake_engine import FakeEngine, a_preset, a_run, run_id
from ..launch_dialog import dialog_of, request_of
from ..open_deck import Deck, opened
from .test_fields import GroupingEngine, problem_of

ADHOC = {
    "meta_preset": "",
    "meta_preset_source": PresetSource.ADHOC,
    "meta_system_prompt": "Be brief.",
    "meta_tools": Tools("allow", ("read", "grep")),
}


async def dialog_on(deck: Deck, key: str) -> LaunchScreen:
    await deck.until(lambda: deck.main.presets.row_count, "the preset")
    return await dialog_of(deck, key)


# --- with edits --------------------------------------------------------------------------------------------------


async def test_rerun_with_edits() -> None:
    """`R` opens the dialog with the run's whole request, and launches a rerun of that run."""
    run = a_run(
        1,
        "completed",
        meta_cwd="/src/other",
        meta_requested_model="fake/big:high",
        meta_runner="tmux",
        meta_task="find\nit",
        meta_description="finding",
    )
    engine = FakeEngine(run, presets=[a_preset("another"), a_preset()])
    change_memory(engine.project, lambda memory: memory.after_launch("repo-scout", "t", LastValues(model="b/c")))
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck, "R")
        await deck.until_text(f"Rerun repo-scout ({run.meta.short_id})")
        whole = RunRequest(
            task="find\nit",
            preset="repo-scout",
            model="fake/big:high",
            cwd="/src/other",
            runner="tmux",
            agent="offline",
            description="finding",
            rerun=run.run_id,
        )
        assert request_of(dialog) == whole
        assert "from that run" in deck.screen_text
        await deck.type(" now")
        dialog.query_one("#model", Input).value = ""
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        expected: dict[str, Any] = {
            "task": "find\nit now",
            "preset": "repo-scout",
            "cwd": "/src/other",
            "runner": "tmux",
        }
        assert engine.launched == [RunRequest(**expected, agent="offline", rerun=run.run_id)]


async def test_a_rerun_keeps_its_budget() -> None:
    """A run's own budget is in the fields and requested again, in a rerun at once too."""
    run = a_run(1, "completed", meta_limits=Limits(timeout=60, budget=0.5, max_tokens=2_000_000))
    assert (0.5, 2_000_000) == (request_again(run).budget, request_again(run).max_tokens)
    async with opened(FakeEngine(run)) as deck:
        dialog = await dialog_of(deck, "R")
        assert {"budget": "0.5", "max_tokens": "2000000"} == dialog._fields.values.limits
        assert (0.5, 2_000_000) == (request_of(dialog).budget, request_of(dialog).max_tokens)


async def test_rerun_of_an_ad_hoc_run_with_edits() -> None:
    """Tools and prompt of a one-off run come from the run, because no file has them."""
    engine = FakeEngine(a_run(1, "completed", **ADHOC), presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck, "R")
        await deck.until_text("Be brief.")
        request = request_of(dialog)
        assert (request.preset, request.tools, request.prompt) == (None, ("read", "grep"), "Be brief.")
        assert (request.rerun, request.task, request.model) == (run_id(1), "task 1", "fake/test")


async def test_rerun_with_edits_after_the_preset_went() -> None:
    """If the preset is missing, the dialog reports that and offers a one-off run with the recorded prompt."""
    prompt = f"You are a scout.\n\n{INSTRUCTION}"
    run = a_run(1, "completed", meta_system_prompt=prompt, meta_finalize=True, meta_tools=Tools("allow", ("read",)))
    engine = FakeEngine(run, presets=[a_preset("another")])
    async with opened(engine, (80, 24)) as deck:
        await dialog_on(deck, "R")
        await deck.until_text('! The preset "repo-scout" is missing or broken')
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        (request,) = engine.launched
        assert (request.preset, request.tools, request.prompt) == (None, ("read",), "You are a scout.")
        assert request.rerun == run.run_id


async def test_a_prompt_that_cannot_be_read() -> None:
    """If the run's files are missing, a toast reports it and the dialog still works."""
    engine = FakeEngine(a_run(1, "completed", **ADHOC), presets=[a_preset()])

    def gone(name: str) -> RunMeta:
        raise UnknownRun("meta.json is missing", where=name)

    engine.meta = gone  # type: ignore[method-assign]
    async with opened(engine) as deck:
        dialog = await dialog_on(deck, "R")
        said = "Cannot read that run's system prompt"
        await deck.until(lambda: any(said in toast for toast in deck.toasts), "a word about it")
        assert request_of(dialog).prompt == ""


async def test_a_task_that_had_the_word_keeps_it() -> None:
    """`{previous}` in a recorded task is literal; a newly typed one stands for that run's answer."""
    engine = FakeEngine(a_run(1, "completed", meta_task="what is {previous}?"), presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        dialog = await dialog_on(deck, "R")
        await deck.until_text("(•) literal text")
        assert request_of(dialog).previous is None
    form = LaunchForm(a_preset(), Settings(), "/", run=a_run(1, "completed"), reuse=Reuse.EVERYTHING)
    assert form.request(LaunchValues(task="check {previous}", runner="process")).previous == run_id(1)


def test_what_a_run_had_is_written_as_the_fields_have_it() -> None:
    """No tools has its own word, the agent's set is empty, and finalization's tool and line are left out."""
    written = [asked_tools(a_run(1, meta_tools=Tools("allow", tools)).meta) for tools in (None, (), ("read", "ls"))]
    assert written == ["", "none", "read ls"]
    form = LaunchForm(
        None, Settings(), "/", run=a_run(1, **ADHOC | {"meta_tools": Tools("allow", ())}), reuse=Reuse.EVERYTHING
    )
    assert form.request(form.first).tools == ()
    form.take_prompt("Look.")
    assert form.request(form.first).prompt == "Look."


def test_which_answer_is_meant_where_several_are_marked() -> None:
    """`{previous}` always means the highlighted run, and the dialog notes that if other runs are marked."""
    run = a_run(1, "completed")
    assert LaunchForm(None, Settings(), "/", run=run).previous.endswith(run.meta.short_id)
    assert LaunchForm(None, Settings(), "/", run=run, marked=2).previous.endswith("(highlighted, not selected)")


# --- at once -----------------------------------------------------------------------------------------------------


async def test_marked_runs_are_rerun_after_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked runs are rerun in one group; a run that cannot be launched is named and left out."""
    runs = (a_run(1, "completed"), a_run(2, "failed"), a_run(3, "completed", meta_preset="gone"))
    engine = GroupingEngine(*runs, presets=[a_preset()])

    def check(request: RunRequest) -> tuple[SubdeckError, ...]:
        return (PresetError('no preset "gone"'),) if request.preset == "gone" else ()

    engine.check = check  # type: ignore[method-assign]
    async with opened(engine, (80, 24)) as deck:
        monkeypatch.setattr(type(deck.main.runs), "targets", property(lambda _: runs))
        await deck.press("r")
        await deck.until_text("Rerun these runs?")
        await deck.until_text(f'! gone {run_id(3)[-6:]}: no preset "gone"')
        await deck.press("y")
        await deck.until(lambda: engine.calls, "the launch")
        assert [[request.rerun for request in requests] for requests in engine.calls] == [[run_id(1), run_id(2)]]


async def test_a_question_answered_no_reruns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancel launches none of them."""
    runs = (a_run(1, "completed"), a_run(2, "failed"))
    engine = GroupingEngine(*runs, presets=[a_preset()])
    async with opened(engine, (80, 24)) as deck:
        monkeypatch.setattr(type(deck.main.runs), "targets", property(lambda _: runs))
        await deck.press("r")
        await deck.until_text("Rerun these runs?")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.calls == []


# --- saved as a preset -------------------------------------------------------------------------------------------


def an_engine(project: Path) -> Engine:
    file = Path(os.environ["HOME"], ".config/subdeck/config.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"agent": "offline"}))
    return Engine.open(str(project), kind="app")


async def fill_in(deck: Deck, name: str, where: str = PROJECT, description: str = "Works.") -> LaunchScreen:
    dialog = await dialog_of(deck, "N")
    await deck.type("find it")
    dialog.query_one("#model", Input).value = "fake/test"
    dialog.query_one("#tools", Input).value = "read, grep"
    dialog.query_one("#prompt", TextArea).text = "Be brief."
    dialog.query_one("#save-name", Input).value = name
    dialog.query_one("#save-where", Choice).put(where)
    await deck.until_text("Purpose")
    dialog.query_one("#save-description", Input).value = description
    return dialog


@pytest.mark.parametrize("where", [PROJECT, USER])
async def test_an_ad_hoc_run_is_saved_and_launched_as_its_preset(project_dir: Path, where: str) -> None:
    """The preset has model, tools, prompt and budget, and the run is launched with that preset."""
    engine = an_engine(project_dir)
    place = project_dir / ".pi/subagents" if where == PROJECT else Path(os.environ["PI_CODING_AGENT_DIR"], "subagents")
    launched: list[RunRequest] = []
    engine.launch = lambda requests, *, background: launched.extend(requests) or (a_run(1),)  # type: ignore
    async with opened(engine, (80, 24)) as deck:  # type: ignore[arg-type]
        dialog = await fill_in(deck, "worker", where)
        dialog.query_one("#budget", Input).value = "0.50"
        await deck.press("ctrl+s")
        await deck.until(lambda: launched, "the launch")
        assert launched == [RunRequest(task="find it", preset="worker", model="fake/test", budget=0.5)]
        await deck.until(lambda: any("Saved the preset worker as" in toast for toast in deck.toasts), "the toast")
    saved = (place / "worker.md").read_text()
    assert (
        "name: worker\ndescription: Works.\nmodel: fake/test\nbudget: 0.5\ntools: [read, grep]\n---\nBe brief." in saved
    )


async def test_a_preset_is_saved_where_it_is_looked_for(project_dir: Path) -> None:
    """Below a directory with its own presets, "this project" means that directory."""
    place = project_dir / "api" / ".pi" / "subagents"
    place.mkdir(parents=True)
    (place / "other.md").write_text("---\nname: other\ndescription: Another.\n---\n")
    (project_dir / ".git").mkdir(exist_ok=True)
    engine = an_engine(project_dir / "api")
    engine.launch = lambda requests, *, background: (a_run(1),)  # type: ignore
    async with opened(engine, (80, 24)) as deck:  # type: ignore[arg-type]
        await fill_in(deck, "worker", PROJECT)
        await deck.press("ctrl+s")
        await deck.until(lambda: (place / "worker.md").exists(), "the file")


async def test_a_preset_is_never_replaced(project_dir: Path) -> None:
    """An existing preset name is a problem beside the field, and nothing is launched."""
    place = Path(os.environ["PI_CODING_AGENT_DIR"], "subagents")
    place.mkdir(parents=True)
    content = "---\nname: worker\ndescription: Mine.\n---\nMine.\n"
    (place / "mine.md").write_text(content)
    async with opened(an_engine(project_dir), (80, 24)) as deck:  # type: ignore[arg-type]
        dialog = await fill_in(deck, "worker")
        await deck.until(
            lambda: 'a preset "worker" already exists (global)' in problem_of(dialog, "save"), "the problem"
        )
        await deck.press("ctrl+s")
        await deck.until(lambda: dialog.focused is dialog.query_one("#save-name"), "the cursor in the field")
        assert len(deck.main.run_store) == 0
    assert (place / "mine.md").read_text() == content
    assert not (project_dir / ".pi/subagents/worker.md").exists()


async def test_a_preset_needs_a_description(project_dir: Path) -> None:
    """A preset needs a description, as the dialog says, because parents choose by it."""
    async with opened(an_engine(project_dir), (80, 24)) as deck:  # type: ignore[arg-type]
        dialog = await fill_in(deck, "worker", description=" ")
        await deck.until(lambda: "needs a description" in problem_of(dialog, "save"), "the problem")


@pytest.mark.parametrize("height", [24, 40])
async def test_the_cursor_moves_with_its_field(project_dir: Path, height: int) -> None:
    """The terminal's cursor stays in the focused field when a problem appears above it."""
    async with opened(an_engine(project_dir), (80, height)) as deck:  # type: ignore[arg-type]
        dialog = await fill_in(deck, "worker", description=" ")
        field = dialog.query_one("#save-description", Input)
        field.focus()
        await deck.until(lambda: "needs a description" in problem_of(dialog, "save"), "the problem")
        problem = dialog.query_one("#save-problem")

        def is_in_it() -> bool:
            return bool(problem.region) and deck.app.cursor_position == field.cursor_screen_offset

        await deck.until(is_in_it, "the cursor in it, below the problem", timeout=10)


async def test_a_second_try_saves_nothing_again(project_dir: Path) -> None:
    """If launching fails after the preset was saved, the next try launches that preset."""
    engine = an_engine(project_dir)
    calls: list[RunRequest] = []

    def launch(requests: tuple[RunRequest, ...], *, background: bool) -> tuple[object, ...]:
        calls.extend(requests)
        if len(calls) == 1:
            raise LaunchError("the disk is full")
        return (a_run(1),)

    engine.launch = launch  # type: ignore
    async with opened(engine, (80, 24)) as deck:  # type: ignore[arg-type]
        dialog = await fill_in(deck, "worker")
        await deck.press("ctrl+s")
        await deck.until_text("the disk is full")
        dialog.query_one("#model", Input).value = "fake/other"
        await deck.until(lambda: "the disk is full" not in deck.screen_text, "another check")
        assert problem_of(dialog, "save") == ""
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert [request.preset for request in calls] == ["worker", "worker"]
