"""Words against a pattern of words, in which `*` stands for anything; the parts of a path are such words, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .shell_words import ACTIVE_STAR, ANYTHING, HOLE

_LONGEST_WORD = 512
"""Characters of a word with holes that is compared with a pattern; a longer one is taken to match."""


def fits(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Tell whether the words may be those of a pattern; without ANYTHING and HOLE in them they certainly are.

    A star that is a word of its own stands for any words, one within a word for any text. The words are gone through
    once, with all the places of the pattern at which they may be.
    """
    places = _with_empty(pattern, {0}, ACTIVE_STAR)
    for word in words:
        ahead = [place for place in places if place < len(pattern)]
        if ANYTHING in word:
            before = word[: word.index(ANYTHING)]
            return not before or any(_fits_word(pattern[place], before + HOLE) for place in ahead)
        after = {
            place if pattern[place] == ACTIVE_STAR else place + 1 for place in ahead if _fits_word(pattern[place], word)
        }
        places = _with_empty(pattern, after, ACTIVE_STAR)
        if not places:
            return False
    return len(pattern) in places


def _fits_word(pattern: str, word: str) -> bool:
    if pattern == ACTIVE_STAR:
        return True
    if HOLE in word:
        return _overlap(pattern, word)
    if ACTIVE_STAR not in pattern:
        return pattern == word
    first, *middle, last = pattern.split(ACTIVE_STAR)
    if len(word) < len(first) + len(last) or not (word.startswith(first) and word.endswith(last)):
        return False
    at, end = len(first), len(word) - len(last)
    for part in middle:
        at = word.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _overlap(pattern: str, word: str) -> bool:
    """Tell whether some text fits both: the stars of the one and the holes of the other stand for any."""
    if len(word) > _LONGEST_WORD:
        return True
    places = _with_empty(word, {0}, HOLE)
    for character in pattern:
        if character == ACTIVE_STAR:
            places = set(range(min(places, default=len(word) + 1), len(word) + 1))
            continue
        ahead = [place for place in places if place < len(word) and word[place] in (character, HOLE)]
        places = _with_empty(word, {place if word[place] == HOLE else place + 1 for place in ahead}, HOLE)
    return len(word) in places


def _with_empty(parts: Sequence[str], places: Iterable[int], mark: str) -> set[int]:
    """Add the places behind parts that may stand for nothing."""
    found = set(places)
    for place in sorted(found):
        while place < len(parts) and parts[place] == mark:
            place += 1
            found.add(place)
    return found
