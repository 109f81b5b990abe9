"""Rules about classifiers."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document
from headway.router.config.rules.profiles import profiles


def external_classifiers(document: Document) -> Iterator[Diagnostic]:
    """`model` of a rule named a service of another kind; a binding takes its place."""
    for profile in profiles(document):
        signals, bound = profile.routing.signals, profile.routing.model_bindings or {}
        for index, rule in enumerate((signals.classifiers if signals else None) or ()):
            if rule.model is not None and f"classifier.{rule.name}" not in bound:
                message = f'classifier "{rule.name}" asks the service "{rule.model}", which is not supported by Headway'
                fix = f"Bind classifier.{rule.name} to a deployment, or leave model out: then the decision model is asked"
                yield Diagnostic("not_supported", message, (*profile.path, "signals", "classifiers", index, "model"), fix)
