"""Input for decoders: arbitrary JSON, and valid documents with some damage."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st

EXAMPLES = int(os.environ.get("SUBDECK_FUZZ_EXAMPLES", "100"))
"""The number of examples of each test; `make fuzz` sets more."""

fuzzed = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "",
        "\x1b[31m",
        "\x9b2J",
        "\u202e",
        "\0",
        "\ud800",
        "\udc80",
        "a\nb",
        "\u2028",
        "-1",
        "9" * 400,
        "2026-01-01T00:00:00Z",
    ]
)
NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**64, -(2**70), 10**400, 1e308, -1e308, 5e-324])
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)
"""Values that Python writes as JSON, including the invalid NaN, infinities and lone surrogates."""

DEEP = st.sampled_from([b"[", b'{"a":', b'{"message":', b'{"type":"tool_call","args":']).map(lambda part: part * 3000)


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@st.composite
def documents(draw: st.DrawFn, *right: Any) -> bytes:
    """Draw one of these values with a few fields replaced at any depth, maybe cut or damaged; or arbitrary bytes."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1:
        return draw(DEEP)
    if kind == 2:
        return dumped(draw(VALUES))
    value = json.loads(json.dumps(draw(st.sampled_from(right))))
    for _ in range(draw(st.integers(0, 3))):
        value = _changed(draw, value)
    content = draw(st.sampled_from([dumped, lambda value: json.dumps(value).encode()]))(value)
    match kind:
        case 3:
            return content[: draw(st.integers(0, len(content)))]
        case 4:
            at = draw(st.integers(0, max(0, len(content) - 1)))
            return content[:at] + draw(st.binary(min_size=1, max_size=3)) + content[at + 1 :]
        case _:
            return content


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """Replace one part of a value."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        name = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 5)) == 0:
            return {key: item for key, item in value.items() if key != name}
        return {**value, name: _changed(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _changed(draw, value[at]), *value[at + 1 :]]
    return draw(VALUES)
