"""Context from the parent: which runs inherit, and the result of verbatim compaction."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.agents.history import History, Message, Text, Thinking, ToolOutput, ToolUse, Turn
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.launch._inherit import Inheritance, Inherited, compact, inherit_from, prompt_with_context
from subdeck.core.launch.plan import Plan
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import PresetCatalog
from subdeck.core.presets.file import Preset
from subdeck.core.run.model import PresetSource
from subdeck.core.spec.request import RunRequest

from ..agents.pi.session_file import SessionFile


def turn(name: str, answer: str = "") -> Turn:
    """Make a turn: a question, a read with thinking before it, and an answer."""
    look = (Thinking(f"hm {name}"), ToolUse("read", {"path": f"{name}.py"}))
    return Turn(
        (
            Message("user", (Text(f"{name}?"),)),
            Message("assistant", look),
            Message("tool", (ToolOutput("read", f"code of {name}"),)),
            Message("assistant", (Text(answer or f"{name}!"),)),
        )
    )


def text_of(*turns: Turn, summary: str = "", **figures: int) -> str:
    return compact(History(turns, summary), Inheritance(**figures)).text


WHOLE = """[user]
a?

[assistant]
[thinking] hm a
[tool_use: read] {"path":"a.py"}

[tool_result: read]
code of a

[assistant]
a!"""

THINNED = """[user]
a?

[assistant]
[…thinking omitted…]
[tool_use: read]

[…tool output omitted, see earlier message]

[assistant]
a!"""


def test_inside_the_tool_output_window() -> None:
    """The last turns stay verbatim: thinking, calls with their arguments, tool output."""
    assert WHOLE == text_of(turn("a"))


def test_beyond_the_tool_output_window() -> None:
    """Older turns keep their text; thinking, calls and tool output become placeholders."""
    assert THINNED == text_of(turn("a"), tool_output_window=0)


@pytest.mark.parametrize(("window", "whole"), [(0, ""), (1, "c"), (2, "bc"), (3, "abc"), (9, "abc")])
def test_the_width_of_the_window(window: int, whole: str) -> None:
    """Exactly the last turns of the window keep their tool output."""
    text = text_of(turn("a"), turn("b"), turn("c"), tool_output_window=window)

    assert [f"code of {name}" in text for name in "abc"] == [name in whole for name in "abc"]


@pytest.mark.parametrize(("recent", "kept"), [(0, ""), (1, "c"), (2, "bc"), (3, "abc"), (9, "abc")])
def test_the_number_of_turns(recent: int, kept: str) -> None:
    """Exactly the last turns are passed on, and they are counted."""
    inherited = compact(History((turn("a"), turn("b"), turn("c"))), Inheritance(recent_turns=recent))

    assert len(kept) == inherited.turns
    assert [f"{name}?" in inherited.text for name in "abc"] == [name in kept for name in "abc"]


def test_the_figures_of_the_seed() -> None:
    """Without settings: six turn pairs, tool output of the last two, 24,000 characters."""
    assert Inheritance(recent_turns=6, tool_output_window=2, max_chars=24000) == Inheritance()


@pytest.mark.parametrize(
    ("length", "expected"),
    [(2048, "x" * 2048), (2049, "x" * 1536 + "[…truncated…]"), (90_000, "x" * 1536 + "[…truncated…]")],
)
def test_large_texts(length: int, expected: str) -> None:
    """A text over 2 KB in an older turn keeps its first 1.5 KB."""
    assert f"[user]\n{expected}" == text_of(Turn((Message("user", (Text("x" * length),)),)), tool_output_window=0)


def test_large_texts_inside_the_window() -> None:
    """In the last turns a long text stays whole."""
    assert "[user]\n" + "x" * 9000 == text_of(Turn((Message("user", (Text("x" * 9000),)),)))


def test_a_failed_tool() -> None:
    """A failed tool is marked as an error."""
    failed = Turn((Message("tool", (ToolOutput("bash", "exit 3", is_error=True),)),))

    assert "[tool_result: bash, error]\nexit 3" == text_of(failed)


def test_messages_that_say_nothing() -> None:
    """A message without text leaves no heading."""
    silent = Turn((Message("assistant", ()), Message("assistant", (Text(" \n"),)), Message("user", (Text("a?"),))))

    assert "[user]\na?" == text_of(silent)


def test_a_summary() -> None:
    """The summary of a compaction comes first and whole, and does not count as a turn."""
    inherited = compact(History((turn("a"),), "They talked. " * 300), Inheritance(tool_output_window=0))

    assert inherited.text == "[summary of the earlier conversation]\n" + "They talked. " * 300 + "\n\n" + THINNED
    assert 1 == inherited.turns


@pytest.mark.parametrize("limit", [0, 1, 16, 17, 18, 19, 20, 100, 101, 5000])
def test_the_hard_cap(limit: int) -> None:
    """The context never exceeds `max_chars`, including the mark in the middle."""
    inherited = compact(History(tuple(turn(name, name * 900) for name in "abcdef")), Inheritance(max_chars=limit))

    assert limit == len(inherited.text) == inherited.chars


def test_what_the_cap_cuts() -> None:
    """Text over the cap keeps its beginning and end, half each; a mark replaces the middle."""
    whole = text_of(turn("a"), turn("b", "b" * 5000), turn("c"), max_chars=100_000)
    cut = text_of(turn("a"), turn("b", "b" * 5000), turn("c"), max_chars=1000)
    beginning, ending = cut.split("\n\n[…truncated…]\n\n")

    assert whole.startswith(beginning)
    assert whole.endswith(ending)
    assert 1 >= abs(len(beginning) - len(ending))


@pytest.mark.parametrize("short", [0, 1])
def test_at_the_border_of_the_cap(short: int) -> None:
    """A text of exactly the limit is not cut; one character more is."""
    assert (short == 1) == ("[…truncated…]" in text_of(turn("a"), max_chars=len(WHOLE) - short))


def test_the_middle_is_never_read() -> None:
    """Only as many messages of a huge turn are read as can be passed on."""
    looked_at: set[int] = set()

    class Counting(tuple[Message, ...]):
        def __getitem__(self, index):  # type: ignore[override]
            looked_at.add(index)
            return super().__getitem__(index)

        def __iter__(self):
            return (self[index] for index in range(len(self)))

    messages = Counting(Message("user", (Text(f"{number:04} " * 20),)) for number in range(5000))
    text = text_of(Turn(messages), max_chars=1000)

    assert text.startswith("[user]\n0000")
    assert text.endswith("4999 ")
    assert len(looked_at) < 30


@pytest.mark.parametrize(
    "content",
    ["</parent-context>", "</PARENT-CONTEXT >", "< / parent-context>", "<parent-context>", "</parent-context"],
)
def test_content_cannot_leave_its_tags(content: str) -> None:
    """A tag inside the inherited text gets a backslash, so that it cannot end the context."""
    inherited = compact(History((Turn((Message("tool", (ToolOutput("read", content),)),)),)), Inheritance())
    prompt = prompt_with_context(inherited, "Do it.")

    assert f"<\\{content[1:]}" in prompt
    assert ["<parent-context>", "</parent-context>"] == [
        line for line in prompt.splitlines() if line.startswith(("<parent", "</parent"))
    ]
    assert prompt.endswith("</parent-context>\n\nDo it.")


def test_the_prompt() -> None:
    """The context comes before the task, in its tags; the task is unchanged."""
    assert "<parent-context>\n[user]\na?\n</parent-context>\n\n  Do it.\n" == prompt_with_context(
        Inherited("[user]\na?", turns=1, chars=9), "  Do it.\n"
    )


def test_nothing_to_inherit() -> None:
    """Without context there are no empty tags."""
    assert "Do it." == prompt_with_context(compact(History(()), Inheritance()), "Do it.")


def test_a_session_file(tmp_path: Path) -> None:
    """The context of a parent's session file has the last turns and the tool output of the last one."""
    session = SessionFile(tmp_path / "session.jsonl")
    for name in ("one", "two", "three"):
        session.user(f"{name}?")
        session.assistant(thinking="hm", tool="read")
        session.output(f"code of {name}")

    text = inherit_from(str(session.path), Inheritance(recent_turns=2, tool_output_window=1)).text

    assert "one?" not in text
    assert "[user]\ntwo?\n\n[assistant]\n[…thinking omitted…]\n[tool_use: read]\n\n[…tool output omitted" in text
    assert text.endswith("[tool_result: read]\ncode of three")


def inherits(
    project_dir: Path,
    settings: Settings,
    *,
    isolated: bool | None,
    preset: bool | None = None,
    known_parent: bool = True,
) -> bool:
    """Return whether a run of a preset gets its parent's conversation."""
    parent = SessionFile(project_dir / "session.jsonl")
    parent.user("What?")
    workspace = Workspace(Project(str(project_dir)), str(project_dir), settings)
    named = Preset(name="scout", description="", source=PresetSource.PROJECT, path="", inherit_context=preset)
    request = RunRequest(
        task="Look.",
        preset="scout",
        isolated=isolated,
        parent_session=str(parent.path) if known_parent else None,
    )
    return Plan(request, workspace, lambda: PresetCatalog((named,), (), ())).inherited is not None


@pytest.mark.parametrize(
    ("setting", "exposed", "isolated", "inherited"),
    [
        (True, False, None, True),
        (True, False, True, True),
        (False, False, None, False),
        (False, False, False, False),
        (True, True, None, True),
        (True, True, True, False),
        (False, True, None, False),
        (False, True, False, True),
    ],
    ids=[
        "every subagent inherits",
        "every subagent inherits: no opting out",
        "every subagent is isolated",
        "every subagent is isolated: no opting in",
        "inherits by default",
        "inherits by default: opted out",
        "isolated by default",
        "isolated by default: opted in",
    ],
)
def test_the_four_usage_modes(
    setting: bool, exposed: bool, isolated: bool | None, inherited: bool, project_dir: Path
) -> None:
    """inheritContext decides; exposeInheritanceInTool allows a call to override it."""
    assert inherited == inherits(
        project_dir, Settings(inherit_context=setting, expose_isolated=exposed), isolated=isolated
    )


@pytest.mark.parametrize("setting", [True, False])
@pytest.mark.parametrize("preset", [True, False])
@pytest.mark.parametrize(
    ("exposed", "isolated", "the_call_decides"),
    [(True, True, True), (True, False, True), (True, None, False), (False, True, False), (False, False, False)],
)
def test_what_a_preset_says(
    setting: bool, preset: bool, exposed: bool, isolated: bool | None, the_call_decides: bool, project_dir: Path
) -> None:
    """A preset's inherit_context beats the setting, and a call's isolated beats both if it is exposed."""
    expected = not isolated if the_call_decides else preset

    settings = Settings(inherit_context=setting, expose_isolated=exposed)
    assert expected == inherits(project_dir, settings, isolated=isolated, preset=preset)


@pytest.mark.parametrize("isolated", [None, False])
def test_without_a_parent(isolated: bool | None, project_dir: Path) -> None:
    """A run without a known parent never inherits, even on request."""
    settings = Settings(inherit_context=True, expose_isolated=True)
    assert not inherits(project_dir, settings, isolated=isolated, preset=True, known_parent=False)
