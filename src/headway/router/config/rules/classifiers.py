"""Rules about classifiers that somebody else serves."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document
from headway.router.config.rules.profiles import did_you_mean, profiles
from headway.router.deployments.specification import catalog_of


def external_classifiers(document: Document) -> Iterator[Diagnostic]:
    """A classifier rule with `model` names an external model with model_role classification and an address."""
    catalog = catalog_of(document)
    services = {each.name: each for each in (catalog.external if catalog else None) or () if each.name}
    for profile in profiles(document):
        signals = profile.routing.signals
        for index, rule in enumerate((signals.classifiers if signals else None) or ()):
            if rule.model is None or f"classifier.{rule.name}" in (profile.routing.model_bindings or {}):
                continue
            path = (*profile.path, "signals", "classifiers", index, "model")
            service = services.get(rule.model)
            if service is None:
                message = f'classifier "{rule.name}" asks external model "{rule.model}", which is not there'
                yield Diagnostic("external_unknown", message, path, did_you_mean(rule.model, services))
            elif service.model_role != "classification":
                message = f'classifier "{rule.name}" asks external model "{rule.model}", whose model_role is not classification'
                yield Diagnostic("external_unfit", message, path)
            elif service.llm_endpoint is None or not service.llm_endpoint.address or not service.llm_endpoint.port:
                message = f'classifier "{rule.name}" asks external model "{rule.model}", which has no llm_endpoint with address and port'
                yield Diagnostic("external_unfit", message, path)
