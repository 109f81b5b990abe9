"""How a model's reasoning is asked for on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.errors import ConfigError
from headway.router.catalog.reasoning_families import REASONING_FAMILIES, TYPES, ReasoningFamily
from headway.router.config.document.providers import ProviderModel

_CLIENT_FIELDS = ("reasoning_effort", "reasoning", "thinking")
_CHAT_TEMPLATE = "chat_template_kwargs"


def with_reasoning(body: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """`body` with these fields in the place of the caller's own effort; other arguments of its chat template stay. `body` is not changed."""
    found = {key: value for key, value in body.items() if key not in _CLIENT_FIELDS}
    given = body.get(_CHAT_TEMPLATE)
    if _CHAT_TEMPLATE in fields and isinstance(given, Mapping):
        fields = {**fields, _CHAT_TEMPLATE: {**given, **fields[_CHAT_TEMPLATE]}}
    return found | fields


def parameters_of(fields: Mapping[str, Any]) -> list[str]:
    """The names of what is set, those inside the chat template's arguments by themselves."""
    return [*fields.get(_CHAT_TEMPLATE, ()), *(name for name in fields if name != _CHAT_TEMPLATE)]


def reasoning_fields(
    family: ReasoningFamily, transport: str | None, on: bool | None, mode: str | None, effort: str | None, default: str | None
) -> dict[str, Any]:
    """What a request for the reasoning that a modelRef asks for has in its body.

    `transport` is the backend's way (see Provider.reasoning), None for servers that render the chat template themselves. `on` False switches
    reasoning off where the family can be switched; a family that always reasons is left as it is. `default` is the effort of
    `providers.defaults`, which counts when the family has such a level.
    """
    mode = _mode(family, mode or (None if on is None else "enabled" if on else "disabled"))
    if mode is None:
        return {}
    level = family.disabled if mode == "disabled" else next((each for each in (effort, default, family.default) if each in family.levels), None)
    if transport is None and family.type == "top_level_reasoning_effort":
        transport = "top_level_effort"
    if transport is not None:
        return _TRANSPORTS[transport](mode, level)
    return {_CHAT_TEMPLATE: _template(family, mode, level)}


def _mode(family: ReasoningFamily, wanted: str | None) -> str | None:
    """`enabled` means `adaptive` for families that only have that; None for a mode that the family does not have."""
    if wanted == "enabled" and "enabled" not in family.modes and "adaptive" in family.modes:
        return "adaptive"
    return wanted if wanted in family.modes else None


def _template(family: ReasoningFamily, mode: str, level: str | None) -> dict[str, Any]:
    on = mode != "disabled"
    if family.type == "chat_template_kwargs":
        return {family.parameter: on}
    if family.type == "reasoning_mode":
        return {family.parameter: mode}
    found: dict[str, Any] = {family.activation_parameter: on} if family.activation_parameter else {}
    flags = {flag: True for effort, flag in family.effort_flags if effort == level}
    return found | ({family.parameter: level} if level is not None else {}) | flags


def _effort(mode: str, level: str | None) -> dict[str, Any]:
    return {"reasoning_effort": level} if level is not None else {}


def _thinking(mode: str, level: str | None) -> dict[str, Any]:
    return {"thinking": {"type": mode}}


_TRANSPORTS: Mapping[str, Callable[[str, str | None], dict[str, Any]]] = {
    "top_level_effort": _effort,
    "reasoning_object": lambda mode, level: {"reasoning": {"effort": level} if level is not None else {"enabled": mode != "disabled"}},
    "thinking_object": _thinking,
    "deepseek_thinking": lambda mode, level: {**_thinking(mode, level), **_effort(mode, level)},
    "output_config_effort": lambda mode, level: {**_thinking(mode, level), **_effort(mode, level)},  # the effort goes on to output_config
}


def family_of(model: ProviderModel) -> ReasoningFamily | None:
    """The family that a provider model names or spells out. Raises ConfigError for one that does not exist."""
    given = model.reasoning
    if given is None:
        return None
    if given.family is not None:
        if given.family not in REASONING_FAMILIES:
            raise ConfigError(f'reasoning family "{given.family}" of model "{model.name}" is not known')
        return REASONING_FAMILIES[given.family]
    if given.type not in TYPES or not given.parameter:
        raise ConfigError(f'reasoning of model "{model.name}" needs a family, or type (one of {", ".join(TYPES)}) and parameter')
    return ReasoningFamily(
        model.name,
        given.type,
        given.parameter,
        tuple(given.levels or ()),
        given.default,
        tuple(given.modes or ("enabled", "disabled")),
        given.default_mode or "enabled",
        given.disabled,
        given.activation_parameter,
        tuple((given.effort_flags or {}).items()),
    )
