"""Rules about prefix-aware placement: events without a reader, and a reader without events."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.catalog.providers import DEFAULT_PROVIDER
from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.providers import ProviderModel


def prefix_routing(document: Document) -> Iterator[Diagnostic]:
    for index, model in enumerate((document.providers.models if document.providers else None) or ()):
        yield from _model(model, ("providers", "models", index))


def _model(model: ProviderModel, path: Path) -> Iterator[Diagnostic]:
    refs = list(enumerate(model.backend_refs or ()))
    told = [(at, ref) for at, ref in refs if ref.kv_events is not None]
    if model.prefix_routing is None:
        for at, _ in told:
            message = f'a backend of model "{model.name}" has kv_events, which nobody reads'
            yield Diagnostic("prefix_routing_off", message, (*path, "backend_refs", at, "kv_events"), 'Add prefix_routing: {} to the model, or take kv_events out', severity="warning")
        return
    here = (*path, "prefix_routing")
    if not told:
        message = f'model "{model.name}" has prefix_routing, and none of its backends says where it publishes KV events'
        yield Diagnostic("prefix_routing_blind", message, here, "Give backend_refs kv_events: {endpoint: tcp://host:5557}, and their engines --kv-events-config")
    elif model.api_format not in (None, "openai"):
        message = f'model "{model.name}" has prefix_routing, which needs backends that speak chat completions, not {model.api_format}'
        yield Diagnostic("prefix_routing_blind", message, here, "Take prefix_routing out, or set api_format: openai")
    for at, ref in told:
        if ref.provider != DEFAULT_PROVIDER:
            message = f'a backend of model "{model.name}" has kv_events and provider {ref.provider}, which has no /tokenize to learn the tokens of a prompt from'
            yield Diagnostic("prefix_routing_blind", message, (*path, "backend_refs", at, "kv_events"), f"Set provider: {DEFAULT_PROVIDER}, or take kv_events out")
