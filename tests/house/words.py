"""Wordings that no text for a user and no docstring may have: `python -m tests.house.words` prints where they occur.

Each pattern is bounded by words, and has a text that it refuses and one that it accepts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from .strings import ROOT, TREES, inventory


class Wording(Struct, frozen=True):
    pattern: str
    instead: str
    """What to write."""
    bad: str
    good: str
    is_for_users: bool = False
    """Whether docstrings may have it: in code, a child is a process."""


def _word(pattern: str, instead: str, bad: str, good: str, *, is_for_users: bool = False) -> Wording:
    return Wording(rf"(?<![\w-])(?:{pattern})(?![\w-])", instead, bad, good, is_for_users)


_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


WORDINGS: tuple[Wording, ...] = (
    # --- negated nouns ---
    _word(
        r"(?<!there )(?:is|are|was|were) no(?! longer| more)",
        "negate the verb",
        "x is no directory",
        "x is no longer there",
    ),
    _word(r"(?<!there )(?:is|are|was|were) none", "negate the verb", "a label that is none", "not a label"),
    _word(
        r"(?:is|are|was) nothing (?:that|which)", "negate the verb", "it is nothing that a host has", "nothing to undo"
    ),
    _word(r"(?:has|have) no way", "cannot", "it has no way to ask", "it cannot ask"),
    _word(r"there is no way", "cannot", "there is no way to ask", "stdin is not a terminal"),
    _word(r"needs? not", "does not have to", "a person needs not read it", "what it needs, not what it wants"),
    _word(
        r"nobody|for nobody", "name the actor, or negate the verb", "nobody is there to be asked", "no user can reply"
    ),
    # --- headless pronouns ---
    _word(r"whoever|whomever", "the user who, anyone who", "whoever has the key", "anyone with the key"),
    _word(r"whatever", "even if, any", "whatever is allowed", "even if it is allowed"),
    _word(r"as far as", "if, up to", "as far as it was written", "up to the last line"),
    _word(
        r"what (?:a|the) runs? (?:changed|did|has|have|left)",
        "name the noun: changes",
        "what a run changed",
        "a run's changes",
    ),
    _word(r"what (?:it|they|children|agents) asks?(?! for)", "its request", "what it asks", "its request"),
    _word(
        r"what (?:was|is) (?:done last|said next|asked(?= of| by|$))",
        "name the noun",
        "what was done last",
        "the last action",
    ),
    _word(
        r"of (?:ours|yours|theirs|(?:its|their|your|his) own)",
        "put the possessive first",
        "a worktree of its own",
        "its own worktree",
    ),
    # --- verbs ---
    _word(r"(?:go|goes|went|going|gone) on", "continue, run", "the run goes on", "move on to the next"),
    _word(r"stands? still", "pause", "limits stand still", "timers pause"),
    _word(
        r"says (?:so|not|nothing)|that is said|is said (?:so|next)",
        "print, warn, report",
        "it says so",
        "the agent says hello",
    ),
    _word(
        r"(?:takes?|took|taken) (?:it |this |that |them )?for",
        "treat as",
        "git takes it for a branch",
        "it takes 5 s for each",
    ),
    _word(r"(?:takes?|took|taken) (?:it |this |that |them |all of it )?back", "undo", "undo takes it back", "go back"),
    _word(
        r"(?:takes?|took|taken|taking) (?:\w+ )?over",
        "apply, open in the agent, trust",
        "take over changes",
        "apply changes",
    ),
    _word(
        r"(?:hand|hands|handed|handing) (?:it |back|over|in)",
        "return, give",
        "hand over a result",
        "a handover",
        is_for_users=True,
    ),
    _word(r"(?:give|gives|gave|given|giving) (?:\w+ )?up", "abandon, stop", "give up the run", "abandon the run"),
    _word(r"(?:bring|brings|brought) (?:\w+ )*back", "restore", "undo brings it back", "undo restores it"),
    _word(r"(?:leave|leaves) (?:\w+ )?out", "remove, omit", "leave it out", "it is left unchanged"),
    _word(r"mend|mends|mended|mending", "fix", "mend the file", "recommend"),
    _word(r"wish|wishes|wished", "request", "a wish to stop", "a stop request"),
    _word(r"(?<!subdeck )adopts?(?!\))|adopted", "trust", "adopt your runs", "trust your runs"),
    _word(r"deny with a word", "deny with a reason", "deny with a word", "deny with a reason"),
    _word(
        r"(?:hold|holds|release|releases) the queue|queue(?: is)? held",
        "pause, resume",
        "hold the queue",
        "pause the queue",
        is_for_users=True,
    ),
    # --- terms ---
    _word(r"child(?: agent)?|child agents|children", "agent", "a child agent", "the agent", is_for_users=True),
    _word(r"foreign", "untrusted", "a foreign run", "an untrusted run"),
    _word(r"(?:in|out of) reach", "online, unreachable", "a host out of reach", "an unreachable host"),
    _word(r"one-way", "non-interactive", "it runs one-way", "it is non-interactive", is_for_users=True),
    _word(r"ad hoc", "one-off", "run ad hoc", "a one-off run"),
    _word(r"operators?", "you, the user", "the operator", "the user", is_for_users=True),
    _word(r"blanks", "whitespace", "differs in blanks", "a blank line"),
    _word(r"in force", "effective", "settings in force", "effective settings"),
    # --- filler ---
    _word(r"anew", "again", "written anew", "written again"),
    _word(r"meanwhile", "drop it", "changed meanwhile", "changed"),
    _word(r"likewise", "drop it", "likewise", "like this"),
    Wording(r", too(?=[.;,:)]|$)", "also, or drop it", "and that one, too.", "too many, too large"),
    Wording(r"[,;] else(?!\w)", "otherwise, default", "the parent's, else its own", "nothing else"),
)

IN_DOCSTRINGS: tuple[Wording, ...] = (
    _word(r"child agents?", "agent", "the child agent", "the child process"),
    _word(r"have it go|let (?:it |them )?go(?: of)?|lets? go|letting go", "release", "let go of it", "release it"),
    _word(r"looks? (?:whether|if|what|at once)", "check", "look whether it runs", "check if it runs"),
    _word(
        r"(?:came|comes?|become|becomes|became) of (?:it|that|them|a|the|this)",
        "the result of",
        "what came of it",
        "its result",
    ),
    _word(r"the one (?:that|which|who)|those (?:that|which|who)|that which", "name the noun", "those that run", "runs"),
    _word(r"for as long as|so long as", "while", "for as long as it runs", "while it runs"),
    _word(
        r"(?:is|are) told|was told|told (?:of|that|to|about|by)",
        "report, notify",
        "it is told to end",
        "a stop request",
    ),
    _word(r"(?:it|is|was) said|said (?:to|of|by|in)", "message", "what is said to it", "a message to it"),
    _word(r"in one go|at one go", "at once", "in one go", "in one step"),
    _word(r"there(?:by|in|of)|wherein|whence|hence(?!forth)|thus", "drop it", "the end thereof", "its end"),
    _word(r"(?:makes?|made) (?:it |them )?fit", "prepare", "made fit to be shown", "made safe to show"),
    _word(r"puts? (?:right|aside)", "repair, move", "put right", "repaired"),
    _word(
        r"nothing of (?:it|the|a|this|them)|all of it|of which",
        "name the noun",
        "nothing of it is left",
        "none of the files is left",
    ),
    _word(r"ours|theirs|yours", "put the possessive first", "a file of ours", "our file"),
    _word(r"in the way", "conflicting, blocking", "what is in the way", "the conflicting file"),
    _word(r"comes? (?:along|with it)", "included", "what comes along", "what is included"),
    Wording(
        r"(?<![\w-])(?:at all|as well|(?<!left )alone)(?=[.,;:)]|$)", "drop it", "not read at all.", "alone in its pane"
    ),
    _word(r"by (?:itself|themselves)", "on its own", "it ends by itself", "it ends on its own"),
    _word(r"is (?:that|what) (?:of|which|a|the)", "name the noun", "it is that of the run", "it is the run's"),
    _word(r"than (?:that|what|this)", "name the noun", "older than that", "older than the run"),
)
"""Wordings that docstrings avoid besides those of texts for users."""

ALLOWED: dict[str, frozenset[str]] = {
    "core/config/host_settings.py": frozenset(
        (
            'lines of the form "agent: 15m" and "operator: 24h", or never,',
            "How long a run continues after losing contact: with the subdeck process on its host (agent), and with you"
            " (operator).",
        )
    ),
    "core/run/model.py": frozenset(("ad hoc",)),
}
"""Texts by file that keep such a wording for a reason, as data or as words that are fixed."""


def refused(text: str) -> list[str]:
    """Return the wordings in a text that a user should not read."""
    return [found[0] for wording in WORDINGS if (found := re.search(wording.pattern, text, re.IGNORECASE))]


def refused_in_docstring(text: str) -> list[str]:
    """Return the wordings in a docstring that its reader would have to read twice."""
    wordings = (*(each for each in WORDINGS if not each.is_for_users), *IN_DOCSTRINGS)
    return [found[0] for wording in wordings if (found := re.search(wording.pattern, text, re.IGNORECASE))]


def docstrings(source: str) -> Iterator[str]:
    """Iterate over the docstrings of a Python module, those of its fields and constants included."""
    for node in ast.walk(ast.parse(source)):
        body: list[ast.stmt] = node.body if isinstance(node, _WITH_DOCSTRINGS) else []
        for statement in body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text
                case _:
                    pass


def violations_in_docstrings() -> Iterator[tuple[str, str, list[str]]]:
    """Iterate over file, docstring and wordings of both trees."""
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.py")):
            for text in docstrings(path.read_text(encoding="utf-8")):
                if found := refused_in_docstring(text):
                    yield str(path.relative_to(ROOT)), text, found


def violations() -> Iterator[tuple[str, str, list[str]]]:
    """Iterate over file, text and wordings of all texts that no list allows."""
    for file, texts in inventory().items():
        yield from ((file, text, found) for text in texts if (found := _counted(file, text)))
    for file, lines in _pages():
        yield from ((file, line, found) for line in lines if (found := _counted(file, line)))


def _counted(file: str, text: str) -> list[str]:
    return [] if text in ALLOWED.get(file, ()) else refused(text)


def _pages() -> Iterator[tuple[str, Iterable[str]]]:
    """Iterate over the presets and prompts that come with subdeck."""
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.md")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    for where, what, words in (*violations(), *violations_in_docstrings()):
        print(f"{where}: {', '.join(words)}: {what!r}")
