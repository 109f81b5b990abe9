"""Rules about provider models: the backends that requests are sent to."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.catalog.providers import PROVIDERS
from headway.router.catalog.reasoning_families import REASONING_FAMILIES
from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.providers import BackendRef, ProviderModel
from headway.router.config.document.resting_models import resting_models
from headway.router.config.rules.listeners import public_names
from headway.router.config.rules.profiles import did_you_mean, lora_names, model_cards, provider_models
from headway.router.deployments.specification import declared


def provider_backends(document: Document) -> Iterator[Diagnostic]:
    """A model that a listener can be asked for needs an address; providers and families are known by their ids."""
    resting = resting_models(document)
    for index, model in enumerate((document.providers.models if document.providers else None) or ()):
        path: Path = ("providers", "models", index)
        if model.api_format == "systemone":
            yield from _native(model, path, document)
        elif model.deployment is not None:
            message = f'model "{model.name}" has a deployment, which is for native models only'
            yield Diagnostic("model_incoherent", message, (*path, "deployment"), "Set api_format: systemone, or give backend_refs instead")
        elif not model.backend_refs and (document.listeners or not _described(model)):
            message = f'model "{model.name}" has no backend'
            yield Diagnostic("backend_missing", message, (*path, "backend_refs"), "Give backend_refs with an endpoint or base_url")
        elif model.name in resting:
            message = f'every backend of model "{model.name}" has weight 0, so it takes no requests'
            yield Diagnostic("model_resting", message, (*path, "backend_refs"), "Give one a weight of at least 1, or take the model out", severity="warning")
        for at, ref in enumerate(model.backend_refs or ()):
            yield from _backend(ref, (*path, "backend_refs", at), model.name)
        for at, ref in enumerate(model.prefill_refs or ()):
            yield from _backend(ref, (*path, "prefill_refs", at), model.name)
        if model.prefill_refs and model.api_format not in (None, "openai"):
            message = f'model "{model.name}" has prefill_refs, which backends with api_format openai only can take over from'
            yield Diagnostic("model_incoherent", message, (*path, "prefill_refs"), "Leave them out")
        family = model.reasoning.family if model.reasoning else None
        if family is not None and family not in REASONING_FAMILIES:
            message = f'"{family}" is no reasoning family that is known'
            yield Diagnostic("family_unknown", message, (*path, "reasoning", "family"), did_you_mean(family, REASONING_FAMILIES))


def _described(model: ProviderModel) -> bool:
    """Whether a model without backends says anything else, for a gateway in front of it."""
    return any((model.reasoning, model.provider_model_id, model.api_format, model.external_model_ids, model.pricing, model.reliability))


def _backend(ref: BackendRef, path: Path, model: str) -> Iterator[Diagnostic]:
    provider = PROVIDERS.get(ref.provider)
    if provider is None:
        message = f'"{ref.provider}" is no provider that is known'
        yield Diagnostic("provider_unknown", message, (*path, "provider"), did_you_mean(ref.provider, PROVIDERS))
    elif not ref.endpoint and not ref.base_url and not provider.base_url:
        yield Diagnostic("address_missing", f'a backend of model "{model}" has no address', path, "Give it endpoint (host:port) or base_url")


def _native(model: ProviderModel, path: Path, document: Document) -> Iterator[Diagnostic]:
    if model.deployment is None:
        if not model.backend_refs:
            yield Diagnostic("backend_missing", f'native model "{model.name}" has no deployment and no backend_refs', path, "Name its deployment")
        return
    if model.backend_refs or model.provider_model_id or model.external_model_ids:
        message = f'native model "{model.name}" is its deployment; it has no backend_refs, provider_model_id or external_model_ids'
        yield Diagnostic("model_incoherent", message, path)
    deployment = declared(document).get(model.deployment)
    if deployment is None:
        message = f'"{model.deployment}" is no deployment'
        yield Diagnostic("deployment_unknown", message, (*path, "deployment"), did_you_mean(model.deployment, declared(document)))
    if any(owner != model.deployment for owner in public_names(document).get(model.name, ())):
        yield Diagnostic("name_ambiguous", f'"{model.name}" is the public name of another deployment', (*path, "name"))


def default_model(document: Document) -> Iterator[Diagnostic]:
    """It exists, and it answers chats."""
    defaults = document.providers.defaults if document.providers else None
    name = defaults.model if defaults else None
    if not name:
        return
    path: Path = ("providers", "defaults", "model")
    models = provider_models(document)
    if name in models:
        if models[name].api_format == "systemone":
            yield Diagnostic("model_wrong_api", f'the default model "{name}" is native: it answers questions, not chats', path)
    elif name not in lora_names(document) and (models or name not in model_cards(document)):
        known = {*models, *lora_names(document)}
        yield Diagnostic("model_undeclared", f'the default model "{name}" is not among providers.models', path, did_you_mean(name, known))


def card_owners(document: Document) -> Iterator[Diagnostic]:
    """A card describes a provider model or a LoRA; a card without one is a misspelt name."""
    models = provider_models(document)
    if not models:
        return
    known = {*models, *lora_names(document)}
    for index, name in enumerate(model_cards(document)):
        if name not in known:
            message = f'model card "{name}" describes no provider model'
            yield Diagnostic("model_undeclared", message, ("routing", "modelCards", index, "name"), did_you_mean(name, known))
