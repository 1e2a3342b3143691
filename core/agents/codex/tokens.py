"""The tokens of this run alone: Codex counts over a whole conversation, that of earlier runs included."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..json_lines import count


class Tokens(Struct, frozen=True):
    """Sums as Codex gives them: what was read from a cache is part of the input."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Tokens:
        """Read them from either stream, or from a conversation that Codex keeps."""
        return cls(
            input=_count(fields, "inputTokens", "input_tokens"),
            cached=_count(fields, "cachedInputTokens", "cached_input_tokens"),
            cache_write=_count(fields, "cacheWriteInputTokens", "cache_write_input_tokens"),
            output=_count(fields, "outputTokens", "output_tokens"),
        )

    def since(self, earlier: Tokens) -> Tokens | None:
        """Return what was added; None where it became less, as it does when Codex counts anew."""
        added = Tokens(
            self.input - earlier.input,
            self.cached - earlier.cached,
            self.cache_write - earlier.cache_write,
            self.output - earlier.output,
        )
        return added if min(added.input, added.cached, added.cache_write, added.output) >= 0 else None

    @property
    def uncached(self) -> int:
        return max(0, self.input - self.cached)


def _count(fields: dict[str, Any], name: str, other: str) -> int:
    return count(fields.get(name, fields.get(other)))
