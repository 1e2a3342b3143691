"""Untrusted text as one plain line."""

from __future__ import annotations

import re

from hypothesis import example, given, settings, strategies as st
from subdeck.core.text.plain import one_line, plain

TEXTS = st.text(
    st.sampled_from(["a", "ä", "汉", " ", "\n", "\t", "\r", "\x1b", "[", "m", "\u2028", "\u00a0"]), max_size=40
)


@settings(max_examples=500)
@given(TEXTS, st.integers(0, 20))
@example("aa ", 2)
def test_a_limit_cuts_what_would_be_the_whole_line(text: str, limit: int) -> None:
    """A limited line is the beginning of the unlimited one, however early it is cut."""
    whole = re.sub(r"\s+", " ", plain(text)).strip()
    assert whole == one_line(text)
    expected = whole if len(whole) <= limit else whole[: max(0, limit - 1)].rstrip() + "…"
    assert expected == one_line(text, limit)
