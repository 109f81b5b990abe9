"""Every rule that looks at more than one field, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headway.router.config.diagnostics import Diagnostic, has_errors
from headway.router.config.document.document import Document
from headway.router.config.rules.actions import actions, annotation_sizes
from headway.router.config.rules.algorithms import algorithms
from headway.router.config.rules.backend_addresses import backend_addresses
from headway.router.config.rules.bindings import bindings
from headway.router.config.rules.classifiers import external_classifiers
from headway.router.config.rules.compilation import compiled_decisions, compiled_signals
from headway.router.config.rules.deployments import admissions, deployments
from headway.router.config.rules.keys import listener_keys, opened_models
from headway.router.config.rules.listeners import listener_addresses, listener_trust, native_grants
from headway.router.config.rules.management import management_exposure
from headway.router.config.rules.model_references import called_models, model_references
from headway.router.config.rules.names import repeated_names
from headway.router.config.rules.plugin_configurations import plugin_configurations
from headway.router.config.rules.prefix_routing import prefix_routing
from headway.router.config.rules.projections import projections
from headway.router.config.rules.providers import card_owners, default_model, provider_backends
from headway.router.config.rules.recipes import entrypoints, recipe_names
from headway.router.config.rules.rule_tree import condition_references
from headway.router.config.rules.systemone import model_choosers, question_deployments

Rule = Callable[[Document], Iterator[Diagnostic]]

ALWAYS: Sequence[Rule] = (listener_addresses, listener_trust, native_grants, listener_keys, management_exposure, deployments, admissions)
"""Of the parts that Engine mode has too."""

ROUTING: Sequence[Rule] = (
    repeated_names,
    recipe_names,
    entrypoints,
    provider_backends,
    backend_addresses,
    prefix_routing,
    default_model,
    card_owners,
    model_references,
    called_models,
    opened_models,
    condition_references,
    algorithms,
    model_choosers,
    question_deployments,
    bindings,
    external_classifiers,
    projections,
    plugin_configurations,
    actions,
    annotation_sizes,
)
"""Of the parts that are dormant in Engine mode (`global.router.enabled: false`)."""


def cross_field(document: Document) -> list[Diagnostic]:
    """What all rules find, in the order of the table. What is otherwise right is compiled too."""
    router = document.global_.router if document.global_ else None
    routes = router is None or router.enabled is not False
    found = [diagnostic for rule in ALWAYS for diagnostic in rule(document)]
    if routes:
        found += [diagnostic for rule in ROUTING for diagnostic in rule(document)]
        if not has_errors(found):
            found += [*compiled_signals(document), *compiled_decisions(document)]
    return found
