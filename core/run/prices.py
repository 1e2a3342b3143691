"""Token prices from the user's table, for agents that report none."""

from msgspec import Struct

from .enumerations import Cost

PER = 1_000_000
"""Number of tokens that a price is for."""


class Price(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Dollars per million tokens of the models that a name matches."""

    model: str
    """`provider/id` or the bare id; `*` stands for any characters."""
    input: Cost
    output: Cost
    cache_read: Cost | None = None
    """None: as `input`; the same for `cache_write`."""
    cache_write: Cost | None = None

    def of(self, fresh: int, output: int, cache_read: int, cache_write: int) -> float:
        """Return the cost of tokens; `fresh` are the uncached input tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (fresh * self.input + output * self.output + cache_read * read + cache_write * write) / PER

    def is_for(self, model: str) -> bool:
        """Return whether it is the price of a model, which may be written with or without its provider."""
        return self.model in (model, _bare(model)) or ("*" in self.model and self._matches(model))

    def _matches(self, model: str) -> bool:
        from re import escape, fullmatch  # loaded late: most tables have only names, and most runs no table

        pattern = ".*".join(map(escape, self.model.split("*")))
        return any(fullmatch(pattern, name) for name in (model, _bare(model)))


def dollars(amount: float) -> str:
    """`$0.52`, `$1,204.50`; below a cent with more places: `$0.0031`."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def price_of(model: str, prices: tuple[Price, ...]) -> Price | None:
    """Return the price of a model: an exact name first, then the first match with `*`."""
    matching = [price for price in prices if price.is_for(model)]
    return next((price for price in matching if "*" not in price.model), matching[0] if matching else None)


def _bare(model: str) -> str:
    """Return the id without its provider, which contains no slash."""
    return model.partition("/")[2] or model
