"""Names that have to be there once only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.signals import Signals
from headway.router.config.rules.profiles import profiles


def repeated_names(document: Document) -> Iterator[Diagnostic]:
    """Listeners, provider models, model cards, knowledge bases; in each recipe decisions and the rules of a kind."""
    providers, routing, settings = document.providers, document.routing, document.global_
    catalog = settings.model_catalog if settings else None
    yield from _repeated(document.listeners, ("listeners",), "listener")
    yield from _repeated(providers.models if providers else None, ("providers", "models"), "provider model")
    yield from _repeated(routing.modelCards if routing else None, ("routing", "modelCards"), "model card")
    yield from _repeated(catalog.kbs if catalog else None, ("global", "model_catalog", "kbs"), "knowledge base")
    for profile in profiles(document):
        yield from _repeated(profile.routing.decisions, (*profile.path, "decisions"), "decision")
        if profile.routing.signals is not None:
            for collection in Signals.model_fields:
                rules = getattr(profile.routing.signals, collection)
                yield from _repeated(rules, (*profile.path, "signals", collection), f"rule of {collection}")


def _repeated(items: Iterable[Any] | None, path: Path, what: str) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index, item in enumerate(items or ()):
        if not item.name:
            continue
        if item.name in first:
            yield Diagnostic("name_repeated", f'{what} "{item.name}" stands there twice (first as item {first[item.name]})', (*path, index, "name"))
        first.setdefault(item.name, index)
