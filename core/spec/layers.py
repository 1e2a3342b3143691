"""Combines the layers of a run, which are the call, its preset and the settings, and records which one decided."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache, reduce
from typing import Any

from msgspec import structs

from ..config.settings import Settings
from ..run.model import Permissions
from ..text.plain import one_line
from .fields import Field, Merge, RunSpec, table


class Layer(StrEnum):
    """The layer that decided a field, as the overview shows it."""

    CALL = "call"
    PRESET = "preset"
    SETTINGS = "settings"
    DEFAULT = "default"
    """No layer: subdeck's own default."""


class ResolvedSpec(RunSpec, frozen=True, kw_only=True):
    """The fields that a run gets, before its agent changes any, such as an agent with its own model."""

    origins: Mapping[str, Layer] = {}
    """By field, if a layer set it."""
    warnings: tuple[str, ...] = ()
    """Sentences about parts of a preset that have no effect."""

    def origin(self, field: str) -> Layer:
        """Return the layer that decided a field."""
        return self.origins.get(field, Layer.DEFAULT)

    @property
    def decided(self) -> dict[str, str]:
        """The deciding layer of each decided field, by preset key, as a run's record keeps it."""
        return {
            table()[name].key or name: str(layer) for name, layer in self.origins.items() if layer is not Layer.DEFAULT
        }

    def is_asked(self, field: str) -> bool:
        """Whether the call or the preset decided a field."""
        return self.origin(field) in (Layer.CALL, Layer.PRESET)


def origin_words(decided: Mapping[str, str]) -> str:
    """Return which layer decided which fields, as `call: model · preset: tools, timeout`; empty if none did."""
    fields: dict[str, list[str]] = {}
    for key, layer in decided.items():
        fields.setdefault(one_line(layer, 20), []).append(one_line(key, 40))
    return " · ".join(f"{layer}: {', '.join(keys)}" for layer, keys in fields.items())


def resolve(call: RunSpec, preset: RunSpec | None, settings: Settings, *, only_lowers: bool = False) -> ResolvedSpec:
    """Combine the layers. With `only_lowers`, the call's limits count only below the preset's."""
    values: dict[str, Any] = {}
    origins: dict[str, Layer] = {}
    warnings: list[str] = []
    for name, field in table().items():
        layers = _layers(name, field, call, preset, settings)
        match field.merge:
            case Merge.NEAREST:
                merged = next(iter(layers.items()), None)
            case Merge.LOWEST:
                merged = _lowest(layers, only_lowers=only_lowers)
                if warning := _above(name, layers):
                    warnings.append(warning)
            case Merge.ALL:
                merged = _all(layers)
        if merged:
            origins[name], values[name] = merged
    return ResolvedSpec(origins=origins, warnings=tuple(warnings), **values)


def _layers(name: str, field: Field, call: RunSpec, preset: RunSpec | None, settings: Settings) -> dict[Layer, Any]:
    """Return each layer's value of a field, nearest first; layers without a value are left out."""
    default = _defaults()[name]
    values: dict[Layer, Any] = {}
    if not (field.is_of_preset and preset):
        values[Layer.CALL] = getattr(call, name)
    if preset:
        values[Layer.PRESET] = getattr(preset, name)
    values = {layer: value for layer, value in values.items() if value != default and not _is_left_out(field, value)}
    if field.setting:
        value, usual = (_at(field.setting, source) for source in (settings, _usual_settings()))
        if value is not None and not _is_left_out(field, value):
            values[Layer.SETTINGS if value != usual else Layer.DEFAULT] = value
    return values


def _is_left_out(field: Field, value: object) -> bool:
    return isinstance(value, str) and not field.takes_empty and not value.strip()


def _lowest(layers: Mapping[Layer, Any], *, only_lowers: bool) -> tuple[Layer, Any] | None:
    """Return the nearest value, or the settings' if that is lower."""
    asked = [(layer, layers[layer]) for layer in (Layer.CALL, Layer.PRESET) if layer in layers]
    if only_lowers:
        asked.sort(key=lambda each: each[1])
    caps = [(layer, value) for layer, value in layers.items() if layer not in (Layer.CALL, Layer.PRESET)]
    return min((*asked[:1], *caps), key=lambda each: each[1], default=None)


def _above(name: str, layers: Mapping[Layer, Any]) -> str:
    """Return a warning if a limit of the call or preset exceeds the setting; empty otherwise."""
    by, asked = next((each for each in layers.items() if each[0] in (Layer.CALL, Layer.PRESET)), (None, 0.0))
    cap = layers.get(Layer.SETTINGS, layers.get(Layer.DEFAULT))
    if by is None or cap is None or asked <= cap:
        return ""
    return f"{name} {asked:g} of the {by} is above the {cap:g} of the settings, so the setting applies"


def _all(layers: Mapping[Layer, Permissions]) -> tuple[Layer, Permissions] | None:
    """Combine the rules of all layers, the settings' first."""
    rules_by_layer = {layer: rules for layer, rules in layers.items() if any(structs.astuple(rules))}
    if not rules_by_layer:
        return None
    from ..permissions.rules import merged  # not needed by most runs

    return next(iter(rules_by_layer)), merged(*reversed(rules_by_layer.values())) or Permissions()


@cache
def _defaults() -> Mapping[str, Any]:
    return structs.asdict(RunSpec())


@cache
def _usual_settings() -> Settings:
    return Settings()


def _at(path: str, settings: Settings) -> Any:
    """Return the value at a path in the settings, such as `limits.timeout`."""
    return reduce(getattr, path.split("."), settings)
