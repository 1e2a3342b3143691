"""Say in one sentence what a task is about, before anything is looked at."""

from __future__ import annotations

import re

from ..text.plain import one_line

_LIMIT = 140
_POLITE = re.compile(r"(?:please|kindly|can you|could you|would you|i want you to|i need you to|hey|hi)[\s,]+", re.I)
_LOOK_FOR = re.compile(r"(?:find out|find|locate|search for|look for|list|show me|show|identify|tell me)\s+", re.I)
_LOOK_AT = re.compile(r"(?:explain|describe|summari[sz]e|review|inspect|examine|check|analy[sz]e|look at)\s+", re.I)
_WHERE_IS = re.compile(r"where (is|are|was|were) ((?:(?:the|a|an|our|my) )?[\w-]+) (\w+)", re.I)
_CHANGE = re.compile(
    r"(?:fix|add|implement|write|create|change|update|edit|remove|delete|rename|refactor|replace|move|make|build|install"
    r"|run|migrate|upgrade|convert|generate)\b",
    re.I,
)


def state_intent(task: str) -> str:
    """Turn the first sentence of a task into what is going to be done about it."""
    sentence = _first_sentence(task)
    if not sentence:
        return "The task is empty of words; I'm looking at what is here."
    if where := _WHERE_IS.fullmatch(sentence):
        return f"I'm looking for where {where[2]} {where[1]} {where[3]}."
    if match := _LOOK_FOR.match(sentence):
        return f"I'm looking for {sentence[match.end() :]}."
    if match := _LOOK_AT.match(sentence):
        return f"I'm looking at {sentence[match.end() :]}."
    if asks_for_change(task):
        return f"I only read; I'm looking for the places this is about: {sentence}."
    return f"I'm looking into this: {sentence}."


def asks_for_change(task: str) -> bool:
    """Return whether a task wants more than reading."""
    return _CHANGE.match(_first_sentence(task)) is not None


def _first_sentence(task: str) -> str:
    text = one_line(task, 600)
    while polite := _POLITE.match(text):
        text = text[polite.end() :]
    sentence = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
    return one_line(sentence, _LIMIT).rstrip(" .!?:")
