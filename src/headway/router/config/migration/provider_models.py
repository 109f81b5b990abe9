"""Layouts of providers in 0.1 to 0.4."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from headway.router.catalog.reasoning_families import REASONING_FAMILIES
from headway.router.config.diagnostics import Path
from headway.router.config.migration.flat_layout import CARD_KEYS, named
from headway.router.config.migration.tree import Mapping, Tree, items, mapping_of, remove, texts

_PROVIDERS: Final[Path] = ("providers",)
_DEFAULTS: Final[Path] = ("providers", "defaults")
_TARGET_KEYS: Final = ("provider_model_id", "pricing", "api_format", "external_model_ids")


def migrate_providers(tree: Tree) -> None:
    providers = tree.mapping("providers")
    if providers is None:
        return
    for key in ("default_model", "default_reasoning_effort", "reasoning_families"):
        tree.move(providers, key, _PROVIDERS, (*_DEFAULTS, key))
    tree.move(providers, "external_models", _PROVIDERS, ("global", "model_catalog", "external"))
    _targets(tree, providers)
    defaults = tree.mapping("providers", "defaults")
    tree.rename(defaults, "default_model", "model", _DEFAULTS)
    tree.rename(defaults, "default_reasoning_effort", "reasoning_effort", _DEFAULTS)
    families = defaults.get("reasoning_families") if defaults is not None else None
    for index, model in enumerate(items(providers.get("models"))):
        path = (*_PROVIDERS, "models", index)
        _access(tree, model, path)
        _endpoints(tree, model, path)
        _card(tree, model, path)
        _reasoning(tree, model, path, families)
        for at, ref in enumerate(items(model.get("backend_refs"))):
            tree.rename(ref, "type", "provider", (*path, "backend_refs", at))
        if model.get("api_format") == "anthropic" and not model.get("backend_refs"):
            model["backend_refs"] = CommentedSeq([CommentedMap(provider="anthropic")])
            tree.done((*path, "backend_refs"), "the address of the provider anthropic, which was implied")
    tree.drop(defaults, "reasoning_families", _DEFAULTS, "each model describes its own")
    _cards(tree)


def _access(tree: Tree, model: Mapping, path: Path) -> None:
    access = model.get("access")
    if isinstance(access, MutableMapping):
        for key, value in access.items():
            model.setdefault(key, value)
        tree.drop(model, "access", path, "its fields stand in the model itself")


def _endpoints(tree: Tree, model: Mapping, path: Path) -> None:
    endpoints = model.get("endpoints")
    if not isinstance(endpoints, list):
        tree.drop(model, "endpoints", path, "it lists nothing")
    elif not model.get("backend_refs"):
        for endpoint in items(endpoints):
            if model.get("access_key"):
                endpoint.setdefault("api_key", model["access_key"])
        tree.rename(model, "endpoints", "backend_refs", path)
    else:
        tree.drop(model, "endpoints", path, "backend_refs is there already")
    tree.drop(model, "access_key", path, "it stands in the backends as api_key")


def _card(tree: Tree, model: Mapping, path: Path) -> None:
    """What describes a model, and not its address, belongs into its card."""
    found = {key: model[key] for key in CARD_KEYS if key in model}
    if not found:
        return
    routing = tree.made("routing")
    if not isinstance(routing.get("modelCards"), list):
        routing["modelCards"] = CommentedSeq()
    card = named(routing["modelCards"], str(model.get("name")))
    for key, value in found.items():
        if value not in (None, "", []):
            card.setdefault(key, value)
        remove(model, key)
        tree.done((*path, key), "moved to the model's card in routing.modelCards")


def _reasoning(tree: Tree, model: Mapping, path: Path, families: Any) -> None:
    family = model.get("reasoning_family")
    if "reasoning_family" not in model:
        return
    definition = mapping_of(families, family)
    if "reasoning" not in model and family:
        if definition is not None:
            model["reasoning"] = _written_out(definition)
        elif isinstance(family, str) and family in REASONING_FAMILIES:
            model["reasoning"] = CommentedMap(family=family)
        else:
            tree.open((*path, "reasoning_family"), f'"{family}" is defined nowhere; describe the model\'s reasoning')
    remove(model, "reasoning_family")
    tree.done((*path, "reasoning_family"), "is written reasoning now")


def _written_out(definition: Mapping) -> CommentedMap:
    """Earlier families could always be switched off, and efforts were the three of OpenAI."""
    found = CommentedMap(definition)
    found.setdefault("modes", ["enabled", "disabled"])
    found.setdefault("default_mode", "enabled")
    if found.get("type") in ("reasoning_effort", "top_level_reasoning_effort"):
        found.setdefault("levels", ["low", "medium", "high"])
    return found


def _targets(tree: Tree, providers: Mapping) -> None:
    """`model_targets`, `backends` and `auth_profiles` of the first v0.3 drafts."""
    targets, backends, profiles = (providers.get(key) for key in ("model_targets", "backends", "auth_profiles"))
    if isinstance(targets, MutableMapping):
        if not isinstance(providers.get("models"), list):
            providers["models"] = CommentedSeq()
        for name, target in targets.items():
            if not isinstance(target, MutableMapping):
                continue
            model = named(providers["models"], str(name))
            model.update({key: target[key] for key in _TARGET_KEYS if target.get(key) is not None and key not in model})
            refs = [_target_backend(each, backends, profiles, target) for each in texts(target.get("backend_refs"))]
            if any(refs) and "backend_refs" not in model:
                model["backend_refs"] = CommentedSeq([ref for ref in refs if ref is not None])
    for key in ("model_targets", "backends", "auth_profiles"):
        if key in providers:
            remove(providers, key)
            tree.done((*_PROVIDERS, key), "moved to providers.models[].backend_refs")


def _target_backend(name: str, backends: Any, profiles: Any, target: Mapping) -> CommentedMap | None:
    backend = mapping_of(backends, name)
    if backend is None:
        return None
    found = CommentedMap({"name": name, **backend})
    profile = mapping_of(profiles, target.get("auth_ref"))
    if profile is not None:
        for key in ("api_key", "api_key_env"):
            if profile.get(key):
                found.setdefault(key, profile[key])
    return found


def _cards(tree: Tree) -> None:
    """Ratings have no place; evaluations are not built."""
    routing = tree.mapping("routing")
    for index, card in enumerate(items(routing.get("modelCards") if routing is not None else None)):
        path: Path = ("routing", "modelCards", index)
        tree.drop(card, "quality_score", path, "qualities are not rated by hand any more")
        tree.drop(card, "evaluations", path, "evaluation catalogues are not built here")
