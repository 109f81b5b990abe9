"""Rules about plugins of decisions."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.cache_plugin import ResponseCachePlugin
from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.document.plugins import RAGPlugin, ShadowDispatchPlugin
from headway.router.config.rules.profiles import Profile, decisions, did_you_mean, lora_names, provider_models
from headway.router.config.schema_errors import schema_diagnostics
from headway.router.plugins.response_cache.plugin import personalizing
from headway.router.plugins.table import PLUGINS

_CONFIGURATIONS = {kind.type: kind.configuration for kind in PLUGINS}


def plugin_configurations(document: Document) -> Iterator[Diagnostic]:
    """Each type once, with the settings of its type."""
    for profile, path, decision in decisions(document):
        seen: set[str] = set()
        for index, entry in enumerate(decision.plugins or ()):
            place = (*path, "plugins", index)
            if entry.type in seen:
                message = f'decision "{decision.name}" has the plugin {entry.type} twice'
                yield Diagnostic("plugin_repeated", message, place, "Merge the two entries")
            seen.add(entry.type)
            described = _CONFIGURATIONS.get(entry.type)
            if described is None:
                yield Diagnostic("not_supported", f"the plugin {entry.type} is not supported by Headway", place)
                continue
            try:
                settings = described.model_validate(entry.configuration)
            except ValidationError as error:
                yield from schema_diagnostics(error, entry.configuration, root=described, above=(*place, "configuration"))
                continue
            if isinstance(settings, RAGPlugin):
                yield from _reranker(settings, profile, place)
            elif isinstance(settings, ShadowDispatchPlugin):
                yield from _shadow(settings, document, place)
            elif isinstance(settings, ResponseCachePlugin):
                yield from _cache(settings, decision, place)


def _reranker(settings: RAGPlugin, profile: Profile, place: Path) -> Iterator[Diagnostic]:
    if settings.enabled and settings.rerank is not None and "rag.reranker" not in (profile.routing.model_bindings or {}):
        message = "rerank needs a model of its recipe"
        yield Diagnostic("binding_missing", message, (*place, "configuration", "rerank"), "Bind rag.reranker in the recipe's model_bindings")


def _cache(settings: ResponseCachePlugin, decision: Decision, place: Path) -> Iterator[Diagnostic]:
    changed_by = personalizing(decision)
    if settings.enabled and settings.personalized.mode == "disabled" and changed_by:
        message = f'response_cache of decision "{decision.name}" is off, since {" and ".join(changed_by)} changes its requests'
        fix = "Set personalized: {mode: exact}, take the plugin out, or say enabled: false"
        yield Diagnostic("cache_off", message, (*place, "configuration"), fix, severity="warning")


def _shadow(settings: ShadowDispatchPlugin, document: Document, place: Path) -> Iterator[Diagnostic]:
    known = {*provider_models(document), *lora_names(document)}
    if settings.enabled and settings.model not in known:
        message = f'copies go to model "{settings.model}", which is not among providers.models'
        yield Diagnostic("model_undeclared", message, (*place, "configuration", "model"), did_you_mean(settings.model, known))
