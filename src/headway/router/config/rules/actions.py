"""Rules about what a matched decision does."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document
from headway.router.config.rules.profiles import decisions, leaves

_MOST_ANNOTATIONS, _MOST_ANNOTATION_BYTES = 32, 4096


def actions(document: Document) -> Iterator[Diagnostic]:
    """A hand-off is for requests that a jailbreak signal has looked at."""
    for _, path, decision in decisions(document):
        if decision.action is not None and all(leaf.type != "jailbreak" for _, leaf in leaves(decision.rules, ())):
            message = f'decision "{decision.name}" hands requests off without a condition on a jailbreak signal'
            yield Diagnostic("action_unguarded", message, (*path, "action"), "Add a condition of type jailbreak to its rules")


def annotation_sizes(document: Document) -> Iterator[Diagnostic]:
    """They travel with every trace, so they are few and small."""
    for _, path, decision in decisions(document):
        noted = decision.annotations
        if noted is not None and (len(noted) > _MOST_ANNOTATIONS or len(orjson.dumps(noted)) > _MOST_ANNOTATION_BYTES):
            message = f'decision "{decision.name}" has more than {_MOST_ANNOTATIONS} annotations, or more than {_MOST_ANNOTATION_BYTES} bytes of them'
            yield Diagnostic("annotations_too_large", message, (*path, "annotations"))
