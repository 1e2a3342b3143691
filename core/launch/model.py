"""Resolves the model of a run: which layer set it, and what the agent is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from msgspec import Struct

from ..agents.choice import with_role
from ..config.settings import Settings
from ..errors import ModelError
from ..models.catalog import INHERIT, LEVELS, Catalog, check_text, offered_level, read_literal, unusable
from ..models.resolvers import PROVIDERS, Probe, Resolver, RolesResolver, ask, installed_resolvers, provider_roles
from ..paths import agent_dir, user_settings_file
from ..presets.file import Preset
from ..run.model import PresetSource
from ..text.plain import one_line


class ResolvedModel(Struct, frozen=True):
    requested: str
    """As written; empty if it is not set and the agent needs none."""
    resolved: str
    """`provider/id` without thinking; empty if the agent is given none."""
    source: str
    """`call`, `preset`, `default_model`, or `agent` if it is not set."""
    thinking: str | None = None
    notices: tuple[str, ...] = ()
    """Notes for the user, although it worked."""
    inherits: bool = False
    """Whether it is the parent's model, or the agent's default if that is unknown."""


class _Reference(Struct, frozen=True):
    text: str
    source: str
    where: str
    """File, setting or argument that it came from, for a person."""
    preset_source: PresetSource | None = None
    """Source of the preset that it came from."""


def resolve_model(
    call: str | None,
    preset: Preset | None,
    settings: Settings,
    own_model: str = "",
    *,
    has_default: bool = False,
    catalog: Catalog | None = None,
    resolvers: Sequence[Resolver] | None = None,
    levels: Sequence[str] = LEVELS,
    parent: str | None = None,
    is_offered: Callable[[str], bool] = lambda model: True,
) -> ResolvedModel:
    """Resolve the model of the call, or the preset's, or the settings'; blank counts as absent.

    The settings' model is dropped with a notice if the agent does not have it (`is_offered`) and has a default: it was
    meant for another agent.

    `own_model` is the id for an agent that uses no model, `has_default` says whether the agent has a default model,
    `catalog` lists its known models (None: any id is accepted), `resolvers` are tried before the catalog (None: roles,
    then those of other packages), `levels` are its thinking levels, `parent` is the model of a known parent. Raises
    ModelError, which names the place of an unresolvable model, or all three places if none sets one.
    """
    used_catalog = None if own_model else catalog
    if resolvers is None:
        resolvers = (RolesResolver(settings.roles, used_catalog), *installed_resolvers())
    reference = _chosen(call, preset, settings)
    if reference is None:
        model = ResolvedModel("", own_model, "agent") if own_model or has_default else _missing(preset)
    elif reference.source != "call" and reference.text == INHERIT:
        model = _inherited(reference, parent)
    elif _is_for_others(reference.text, reference, settings, has_default, is_offered):
        model = _own_default(reference, reference.text)
    else:
        takes_any = own_model and not reference.text.startswith("@")
        model = _resolved(reference, used_catalog, () if takes_any else resolvers)
        if model.inherits:
            model = _inherited(reference, parent)
    if (
        reference
        and not model.inherits
        and _is_for_others(model.resolved, reference, settings, has_default, is_offered)
    ):
        model = _own_default(reference, model.resolved)
    return _finished(model, preset, own_model, levels)


def _inherited(reference: _Reference, parent: str | None) -> ResolvedModel:
    return ResolvedModel(reference.text, (parent or "").strip(), reference.source, inherits=True)


def _is_for_others(
    model: str, reference: _Reference, settings: Settings, has_default: bool, is_offered: Callable[[str], bool]
) -> bool:
    """Return whether a model comes only from the settings and is not this agent's, which has a default."""
    return has_default and reference.source == "default_model" and not is_offered(with_role(model, settings))


def _own_default(reference: _Reference, model: str) -> ResolvedModel:
    named = reference.text if model == reference.text else f"{reference.text} ({model})"
    notice = f"default_model {one_line(named, 120)} is not a model of this agent, which uses its own default"
    return ResolvedModel("", "", "agent", notices=(notice,))


def wanted_model(call: str | None, preset: Preset | None, settings: Settings) -> str | None:
    """Return the model set for a run, with its role resolved from the settings, for the choice of an agent; None if not
    set.
    """
    named = (call or "").strip() or ((preset and preset.model) or "").strip()
    return None if not named else "" if named == INHERIT else with_role(named, settings)


def _chosen(call: str | None, preset: Preset | None, settings: Settings) -> _Reference | None:
    candidates = (
        _Reference((call or "").strip(), "call", "the model of this call (tool-call argument)"),
        _Reference(
            *(((preset and preset.model) or "").strip(), "preset", preset.path if preset else ""),
            preset.source if preset else None,
        ),
        _Reference((settings.default_model or "").strip(), "default_model", "the setting default_model"),
    )
    return next((candidate for candidate in candidates if candidate.text), None)


def _missing(preset: Preset | None) -> NoReturn:
    of_preset = f'the preset "{one_line(preset.name)}" sets none' if preset else "the run has no preset"
    raise ModelError(
        f"no model: the call sets none, {of_preset}, and default_model is not set",
        where=preset.path if preset else "",
        hint='choose one for this run (--model), add "model: provider/id" to the preset,'
        f" or set default_model in {user_settings_file()}",
        brief_hint="choose one here",
        code="model.missing",
    )


def _resolved(reference: _Reference, catalog: Catalog | None, resolvers: Sequence[Resolver]) -> ResolvedModel:
    try:
        check_text(reference.text)
        if reference.text == INHERIT:
            hint = "remove the model, or write it as provider/id"
            raise unusable(INHERIT, "works only in presets and in the setting default_model", hint)
        probe = ask(reference.text, resolvers)
        if probe.is_answered:
            return _answered(reference, probe)
        if probe.error:
            raise unusable(reference.text, f"cannot be resolved: {probe.error}", _missed(reference, probe))
        if reference.text.startswith("@"):
            raise unusable(reference.text, "is a role, but no roles are configured here", _role_hint(reference))
        literal = read_literal(reference.text, catalog)
    except ModelError as error:
        where, hint, brief_hint = reference.where, error.hint, error.brief_hint
        code = "model.invalid_role" if reference.text.startswith("@") else error.code
        raise ModelError(error.what, where=where, hint=hint, brief_hint=brief_hint, code=code) from error
    return ResolvedModel(reference.text, literal.resolved, reference.source, literal.thinking, literal.notices)


def _answered(reference: _Reference, probe: Probe) -> ResolvedModel:
    """Accept a resolver's answer if it is a usable model."""
    resolved = (probe.resolved or "").strip()
    level = probe.thinking_level
    if resolved == INHERIT:
        return ResolvedModel(reference.text, "", reference.source, inherits=True)
    if not resolved or resolved.startswith("@") or (level is not None and level not in LEVELS):
        raise unusable(
            reference.text,
            f'was resolved to "{one_line(resolved, 80)}" with thinking "{one_line(str(level), 20)}", '
            "which is not a model",
            "a resolver must set resolved to provider/id, and thinkingLevel to one of " + ", ".join(LEVELS),
        )
    check_text(resolved)
    auth = probe.auth or {}
    trouble = f"{resolved}: {one_line(str(auth.get('error') or 'its key is missing'), 200)}"
    notices = (*probe.notices, trouble) if auth.get("ok") is False else probe.notices
    return ResolvedModel(reference.text, resolved, reference.source, level, notices)


def _missed(reference: _Reference, probe: Probe) -> str:
    if reference.text.startswith("@"):
        return _role_hint(reference)
    models = (probe.available and probe.available.models) or ()
    some = f"known: {', '.join(models[:20])}" if models else "use one of the agent's models, as provider/id"
    return one_line(some, 1000)


def _role_hint(reference: _Reference) -> str:
    role = one_line(reference.text[1:], 40) or "fast"
    if reference.preset_source is PresetSource.BUNDLED:
        alternative = 'copy the preset with "model: inherit" (press b in the app)'
    elif reference.preset_source is not None:
        alternative = 'write "model: inherit" in the preset'
    else:
        alternative = "write the model as provider/id"
    return (
        f'set "{role}" under roles in {user_settings_file()} or in {agent_dir()}/{PROVIDERS}, '
        f"either to inherit ({role}: inherit) or to a model; or {alternative}"
    )


def _finished(model: ResolvedModel, preset: Preset | None, own_model: str, levels: Sequence[str]) -> ResolvedModel:
    """Set the thinking level, and the model id of an agent that uses no model."""
    asked_level = model.thinking or (preset.thinking if preset else None)
    level = asked_level and offered_level(asked_level, levels)
    notices = model.notices
    if asked_level != level:
        notices = (*notices, f'thinking "{asked_level}" is above this agent\'s highest level: using "{level}"')
    resolved = own_model or model.resolved
    return ResolvedModel(model.requested, resolved, model.source, level, notices, inherits=model.inherits)


def inherits(text: str | None, settings: Settings) -> bool:
    """Return whether a reference means the parent's model, directly or as a role."""
    name = (text or "").strip()
    return name == INHERIT or (name.startswith("@") and known_roles(settings).get(name, "").strip() == INHERIT)


def known_roles(settings: Settings) -> dict[str, str]:
    """Return the models of all configured roles, by `@name`; skip unreadable sources."""
    try:
        roles = {**provider_roles(), **settings.roles}
    except ModelError:
        roles = settings.roles
    return {f"@{name}": roles[name] for name in sorted(roles)}
