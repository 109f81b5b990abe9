"""Overrides of rotary settings in the spelling of the configuration that they change.

transformers 4 writes `rope_theta` beside `rope_scaling`, transformers 5 one object `rope_parameters` with both. A value in
the other spelling would stand beside the one that is read and change nothing, or hide it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ConfigError

_NAMES: Final = ("rope_theta", "rope_scaling", "rope_parameters")
_LENGTH: Final = "original_max_position_embeddings"  # may stand in the configuration itself


def respelled(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`overrides`, with rotary settings where `config` keeps its own; what is no object stays as it is, to be refused later.

    Raises ConfigError (`hf_overrides_invalid`) for a value that would have no effect.
    """
    out = dict(overrides)
    inner, inner_overrides = config.get("text_config"), overrides.get("text_config")
    if isinstance(inner, Mapping) and isinstance(inner_overrides, Mapping):
        out["text_config"] = respelled(inner, inner_overrides)
    given: dict[str, Any] = {name: out[name] for name in _NAMES if name in out}
    if not given or any(not isinstance(given.get(name) or {}, Mapping) for name in _NAMES[1:]):
        return out
    place = "rope_parameters" if not config.get("rope_scaling") and isinstance(config.get("rope_parameters"), Mapping) else "rope_scaling"
    old: Mapping[str, Any] = config[place] if isinstance(config.get(place), Mapping) else {}
    if _by_layer(old) or _by_layer(given.get("rope_parameters") or {}):
        return _only_by_layer(out, given, old)
    settings = _settings(given, old)
    length = out.get(_LENGTH, config.get(_LENGTH))
    _check_effect(place, {_LENGTH: length, **old, **settings}, settings)
    rotary: dict[str, Any] = {}
    if place == "rope_scaling" and "rope_theta" in settings and "rope_theta" not in old:
        rotary["rope_theta"] = settings.pop("rope_theta")
    if settings:
        rotary[place] = settings
    return {**rotary, **{name: value for name, value in out.items() if name not in _NAMES}}


def _settings(given: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"rope_theta": given["rope_theta"]} if "rope_theta" in given else {}
    for name in _NAMES[1:]:
        if name not in given:
            continue
        if given[name] is None:  # no scaling; what is no part of a scaling stays
            settings |= {key: None for key in old if key not in ("rope_theta", "partial_rotary_factor")}
            settings |= {"rope_type": "default"}
            continue
        settings |= {"rope_type" if key == "type" else key: value for key, value in given[name].items()}
    return settings


def _check_effect(place: str, new: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    kind = new.get("rope_type") or new.get("type") or "default"
    if kind == "default" and settings.get("factor") is not None:
        raise _invalid(f"{place}.factor has no effect: rope_type is default", "Give rope_type, too: linear, dynamic, yarn or llama3.")
    if kind == "yarn" and settings and not any(new.get(name) for name in ("factor", _LENGTH)):
        raise _invalid(f"{place}: yarn without a factor has no effect", "Give factor: how many times longer texts become.")


def _by_layer(settings: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Mapping) for value in settings.values())


def _only_by_layer(out: dict[str, Any], given: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    if _by_layer(old) and (stray := [name for name in given if name != "rope_parameters"]):
        kinds = ", ".join(name for name, value in old.items() if isinstance(value, Mapping))
        raise _invalid(
            f"{stray[0]} has no effect: this model has rotary settings for each kind of layer ({kinds})",
            f'Override them there: {{"rope_parameters": {{"{kinds.split(", ")[0]}": {{...}}}}}}.',
        )
    return out


def _invalid(message: str, fix: str) -> ConfigError:
    return ConfigError(f"--hf-overrides: {message}", reason="hf_overrides_invalid", param="hf_overrides", fix=fix)
