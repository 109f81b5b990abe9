"""Rules about deployments of models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File

from headway.router.catalog.built_in_models import is_built_in
from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.deployments import ModelDeployment
from headway.router.config.document.document import Document
from headway.router.config.rules.profiles import did_you_mean
from headway.router.deployments.specification import catalog_of, declared

_PATH: Path = ("global", "model_catalog", "deployments")


def deployments(document: Document) -> Iterator[Diagnostic]:
    for name, deployment in declared(document).items():
        if not name or name != name.strip():
            yield Diagnostic("name_untrimmed", f'"{name}" is no name for a deployment: empty, or with spaces around it', (*_PATH, name))
        if _unpinned(deployment):
            message = f"{deployment.artifact} is no built-in model and has no revision: the runtime will refuse to load it"
            fix = "Set revision to the 40-hex commit, or give the absolute path of a local package"
            yield Diagnostic("revision_missing", message, (*_PATH, name), fix, severity="warning")
        elif _is_absent(deployment):
            message = f"{deployment.artifact} is not on this machine: a router here cannot load deployment {name}"
            yield Diagnostic("artifact_absent", message, (*_PATH, name, "artifact"), "Put the package there, or correct the path", severity="warning")


def _unpinned(deployment: ModelDeployment) -> bool:
    """Whether the router would run a Hub model that nobody has pinned."""
    artifact = deployment.artifact or ""
    return bool(artifact) and not (artifact.startswith("/") or _attached(deployment) or deployment.revision or is_built_in(artifact))


def _is_absent(deployment: ModelDeployment) -> bool:
    """Whether the router would run a local package that is not there."""
    artifact = deployment.artifact or ""
    return artifact.startswith("/") and not _attached(deployment) and not File(artifact).exists()


def _attached(deployment: ModelDeployment) -> bool:
    return bool(deployment.endpoint) or (deployment.replicas is not None and all(each.endpoint for each in deployment.replicas))


def admissions(document: Document) -> Iterator[Diagnostic]:
    catalog = catalog_of(document)
    for name in (catalog.admission if catalog else None) or {}:
        if name not in declared(document):
            path = ("global", "model_catalog", "admission", name)
            yield Diagnostic("deployment_unknown", f'admission is for deployment "{name}", which is not there', path, did_you_mean(name, declared(document)))
