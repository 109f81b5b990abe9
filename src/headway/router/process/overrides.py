"""Overrides: what the command line changes of a configuration, each time that it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected, has_errors
from headway.router.config.document.document import Document
from headway.router.config.load import check
from headway.router.deployments.specification import DEFAULT_DEPLOYMENTS, MODEL_RUNTIME, default_decision_model

ENGINE_FIELDS: Final = ("max_num_seqs", "max_num_batched_tokens", "batch_window_ms", "dtype", "enable_shared_context")
"""Fields of a deployment that have an option of their own."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """`model` replaces the artifact of the default judgment deployment, whose old revision is dropped. `engine` holds values of ENGINE_FIELDS.
    `replicas` independent workers run on `devices`, one each, or all on the only one. `engine_mode` serves System One alone."""

    model: str | None = None
    revision: str | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    platform: str | None = None
    replicas: int | None = None
    devices: tuple[str, ...] = ()
    algorithm: str | None = None
    engine_mode: bool | None = None

    @property
    def empty(self) -> bool:
        return self == Overrides()


def overridden(document: Document, overrides: Overrides) -> Document:
    """Raises ConfigRejected when the result is no valid configuration, ConfigError for options that do not fit each other."""
    if overrides.empty:
        return document
    plain = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if overrides.engine_mode is not None:
        _at(plain, "global", "router")["enabled"] = not overrides.engine_mode
    _override_deployment(plain, document, overrides)
    if overrides.algorithm is not None:
        for routing in (plain.get("routing") or {}, *((recipe.get("routing") or {}) for recipe in plain.get("recipes") or ())):
            for decision in routing.get("decisions") or ():
                if decision.get("modelRefs"):
                    decision["algorithm"] = {"type": overrides.algorithm}
    changed, diagnostics = check(plain, document.folder)
    if changed is None or has_errors(diagnostics):
        raise ConfigRejected("the configuration with the options of the command line", diagnostics)
    return changed


def _override_deployment(plain: dict[str, Any], document: Document, overrides: Overrides) -> None:
    if not any((overrides.model, overrides.revision, overrides.engine, overrides.replicas, overrides.devices)) and overrides.platform in (None, "auto"):
        return
    name = default_decision_model(document)
    deployments = _at(plain, "global", "model_catalog", "deployments")
    before = deployments.get(name)
    if before is None:
        known = DEFAULT_DEPLOYMENTS.get(name)
        before = known.model_dump(mode="json", by_alias=True, exclude_unset=True) if known else {}
    deployment = {"provider": MODEL_RUNTIME, **before}
    if overrides.model is not None and overrides.model != deployment.get("artifact"):
        deployment["artifact"] = overrides.model
        deployment.pop("revision", None)
        if Path(overrides.model).is_absolute():
            deployment.setdefault("public_name", Path(overrides.model).name)
    if overrides.revision is not None:
        deployment["revision"] = overrides.revision
    deployment.update(overrides.engine)
    _place(deployment, overrides)
    deployments[name] = deployment


def _place(deployment: dict[str, Any], overrides: Overrides) -> None:
    """Raises ConfigError: device ids are one, or one for each replica, and belong to a platform of GPUs."""
    platform, ids = overrides.platform or "auto", overrides.devices
    if ids and platform not in ("cuda", "rocm"):
        raise ConfigError("--device-ids needs --platform cuda or --platform rocm", param="device_ids")
    if len(set(ids)) != len(ids):
        raise ConfigError("--device-ids names a device twice", param="device_ids")
    if len(ids) > 1 and len(ids) != (overrides.replicas or 1):
        raise ConfigError(f"--device-ids names {len(ids)} devices for {overrides.replicas or 1} replicas", param="device_ids", fix="Give one, or one for each replica.")
    if platform == "cpu":
        devices = ["cpu"]
    else:
        devices = [f"{platform}:{each}" for each in ids] or ([platform] if platform != "auto" else [])
    if overrides.replicas is not None and overrides.replicas > 1:
        deployment.pop("device", None)
        named = devices or ["auto"]
        deployment["replicas"] = [{"device": named[at % len(named)]} for at in range(overrides.replicas)]
    elif devices:
        deployment.pop("replicas", None)
        deployment["device"] = devices[0]


def _at(plain: dict[str, Any], *names: str) -> dict[str, Any]:
    """The mapping there, made when it is missing."""
    for name in names:
        if plain.get(name) is None:
            plain[name] = {}
        plain = plain[name]
    return plain
