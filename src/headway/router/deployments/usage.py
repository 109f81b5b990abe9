"""Which deployments a configuration uses: only those are started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from headway.router.config.document.document import Document
from headway.router.deployments.specification import Specification, specifications


@runtime_checkable
class AsksModels(Protocol):
    """A signal, selector or plugin that asks deployments."""

    def deployments(self) -> frozenset[str]: ...


def asked_by(things: Iterable[object]) -> frozenset[str]:
    """What any of them asks; things that ask nothing are passed over."""
    return frozenset(name for thing in things if isinstance(thing, AsksModels) for name in thing.deployments())


def native_models(document: Document) -> Mapping[str, Specification]:
    """Public System One id -> deployment, for every deployment that has one."""
    return {each.public_name: each for each in specifications(document).values() if each.public_name}


def granted(document: Document) -> frozenset[str]:
    """Deployments that listeners grant to their clients, or that provider models pass questions to."""
    models = native_models(document)
    names = {name for listener in document.listeners or () for name in (listener.systemone.models if listener.systemone else None) or ()}
    passed_on = {model.deployment for model in (document.providers.models if document.providers else None) or () if model.deployment}
    return frozenset(models[name].name for name in names if name in models) | passed_on
