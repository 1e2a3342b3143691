"""One prompt from its words to its answer."""

from __future__ import annotations

from .answer import write_answer
from .findings import Findings
from .intent import state_intent
from .plan import STEPS
from .session import Session
from .stream import Conversation, EventStream
from .task import understand
from .tools import Toolbox, visible_name
from .tree import Tree

_UNREADABLE_NAMED = 5


def answer_prompt(
    prompt: str, *, cwd: str, tools: tuple[str, ...], stream: EventStream, session: Session, hands_over: bool
) -> None:
    """Carry out the steps that the allowed tools permit, then answer, or hand the answer over to the tool for it."""
    tree = Tree(cwd)
    toolbox = Toolbox(tree, tools)
    task = understand(prompt, tree.kind)
    findings = Findings(task)
    earlier_turns = session.earlier_turns
    conversation = Conversation(stream, session, prompt)
    said_before = f"{state_intent(task.text)} "
    for step in STEPS:
        said, wanted = step(findings)
        calls = [call for call in wanted if call.name in toolbox]
        if not calls:
            continue
        outcomes = conversation.turn(said_before + said, calls, toolbox)
        said_before = ""
        for call, outcome in zip(calls, outcomes, strict=True):
            findings.add(call, outcome)
    answer = write_answer(findings, tools=tools, earlier_turns=earlier_turns, incomplete=_incomplete(tree))
    if hands_over:
        conversation.hand_over(answer)
    else:
        conversation.turn(answer, [], toolbox)
    conversation.end()


def _incomplete(tree: Tree) -> list[str]:
    """Say what a search could not see."""
    unreadable = [f"{visible_name(path) or '.'}: cannot be opened" for path in tree.unreadable[:_UNREADABLE_NAMED]]
    left = len(tree.unreadable) - len(unreadable)
    more = [f"{left} more files or directories that cannot be opened"] if left else []
    bound = ["The directory is larger than one search covers; what lies deepest was left out."] if tree.cut else []
    return unreadable + more + bound
