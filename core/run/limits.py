"""Which limits end a run: a preset's own, as far as they are below those of the settings."""

from __future__ import annotations

from msgspec import structs

from .model import Limits


def effective_limits(preset: Limits, settings: Limits) -> tuple[Limits, tuple[str, ...]]:
    """Answer the lower of the two for each limit, and a sentence for each wish that has no effect."""
    values: dict[str, float | None] = {}
    warnings: list[str] = []
    for name, cap in structs.asdict(settings).items():
        wish = getattr(preset, name)
        if wish is not None and cap is not None and wish > cap:
            warnings.append(f"{name} {wish:g} of the preset is above the {cap:g} of the settings, which counts")
        values[name] = min((value for value in (wish, cap) if value is not None), default=None)
    return Limits(**values), tuple(warnings)  # pyright: ignore[reportArgumentType] - max_turns comes from max_turns
