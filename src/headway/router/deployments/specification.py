"""Specification: one deployment of the configuration, its defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headway.router.config.document.deployments import Admission, ModelDeployment, ModelInputBudget
from headway.router.config.document.document import Document
from headway.router.config.document.model_catalog import ModelCatalog

DEFAULT_DECISION_MODEL = "primary"
HAZARD = "hazard"
MODEL_RUNTIME: Literal["model_runtime"] = "model_runtime"

DEFAULT_DEPLOYMENTS: Mapping[str, ModelDeployment] = {
    DEFAULT_DECISION_MODEL: ModelDeployment(
        provider=MODEL_RUNTIME, artifact="vllm-sr/Vela-2.0-0.3B", revision="a3209a50dc3ebd7e3b7520440d8fba666000f4c4", device="cpu",
    ),
    HAZARD: ModelDeployment(
        provider=MODEL_RUNTIME, artifact="vllm-sr/Vela-1.0-Encoder-307M-Hazard", revision="5dd25f2cc3c98f338e6a79b667662d60f936a28d",
        device="cpu", input=ModelInputBudget(max_tokens=32768, overflow="reject"),
    ),
}  # fmt: skip
"""What is there when the configuration says nothing else; an entry of the same name replaces the whole of it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A worker that the router runs on `device`, or one at `endpoint` where the model is called `served_name`."""

    device: str = "auto"
    endpoint: str | None = None
    served_name: str = ""


@dataclass(frozen=True, slots=True)
class Specification:
    """`engine` are fields of the models file that were set; `overflow` None = as the model prefers (reject)."""

    name: str
    replicas: tuple[Replica, ...]
    artifact: str = ""
    revision: str | None = None
    public_name: str = ""
    max_tokens: int | None = None
    overflow: str | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    max_num_batched_tokens: int | None = None
    accept_licences: tuple[str, ...] = ()
    admission: Admission | None = None

    @property
    def managed(self) -> bool:
        return any(replica.endpoint is None for replica in self.replicas)

    @property
    def scan_budget(self) -> int | None:
        """Tokens that questions may have read in windows."""
        return self.max_tokens if self.overflow == "window" else None


def declared(document: Document) -> Mapping[str, ModelDeployment]:
    """All deployments by name, the default ones among them. `deployments: null` clears those, a null entry removes one."""
    catalog = catalog_of(document)
    if catalog is None or "deployments" not in catalog.model_fields_set:
        return DEFAULT_DEPLOYMENTS
    if catalog.deployments is None:
        return {}
    every = {**DEFAULT_DEPLOYMENTS, **catalog.deployments}
    return {name: deployment for name, deployment in every.items() if deployment is not None}


def specifications(document: Document) -> dict[str, Specification]:
    """Those of model runtimes, by name."""
    catalog = catalog_of(document)
    admission = (catalog.admission if catalog else None) or {}
    return {
        name: _specification(name, deployment, admission.get(name))
        for name, deployment in declared(document).items()
        if deployment.provider in (None, MODEL_RUNTIME)
    }


def default_decision_model(document: Document) -> str:
    """The deployment that questions go to which name none."""
    catalog = catalog_of(document)
    chosen = catalog.system.decision_model if catalog and catalog.system else None
    return chosen.deployment if chosen else DEFAULT_DECISION_MODEL


def catalog_of(document: Document) -> ModelCatalog | None:
    return document.global_.model_catalog if document.global_ else None


def _specification(name: str, deployment: ModelDeployment, admission: Admission | None) -> Specification:
    budget = deployment.input or ModelInputBudget()
    engine = {key: value for key in ("enable_shared_context", "batch_window_ms", "max_num_seqs") if (value := getattr(deployment, key)) is not None}
    return Specification(
        name=name,
        replicas=_replicas(name, deployment),
        artifact=deployment.artifact or "",
        revision=deployment.revision,
        public_name=deployment.public_name or ("" if (deployment.artifact or "").startswith("/") else deployment.artifact or ""),
        max_tokens=budget.max_tokens or None,
        overflow=budget.overflow,
        engine=engine,
        max_num_batched_tokens=deployment.max_num_batched_tokens,
        accept_licences=tuple(deployment.accept_licences),
        admission=admission,
    )


def _replicas(name: str, deployment: ModelDeployment) -> tuple[Replica, ...]:
    if deployment.replicas:
        return tuple(Replica(each.device or "auto", each.endpoint, each.served_name or name) for each in deployment.replicas)
    return (Replica(deployment.device or "auto", deployment.endpoint, deployment.served_name or name),)
