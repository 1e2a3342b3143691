"""The tokens of this run alone: Codex counts over a whole conversation, that of earlier runs included."""

from __future__ import annotations

from collections.abc import Callable
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
    def of(cls, fields: dict[str, Any], read: Callable[[object], int] = count) -> Tokens:
        """Read them from either stream, or from a conversation that Codex keeps."""

        def told(name: str, other: str) -> int:
            return read(fields.get(name, fields.get(other)))

        return cls(
            input=told("inputTokens", "input_tokens"),
            cached=told("cachedInputTokens", "cached_input_tokens"),
            cache_write=told("cacheWriteInputTokens", "cache_write_input_tokens"),
            output=told("outputTokens", "output_tokens"),
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
