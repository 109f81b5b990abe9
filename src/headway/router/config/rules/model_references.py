"""Rules about the models that decisions name."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.catalog.reasoning_families import REASONING_FAMILIES
from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.decisions import Decision, ModelRef
from headway.router.config.document.document import Document
from headway.router.config.document.model_cards import ModelCard
from headway.router.config.document.providers import ProviderModel
from headway.router.config.rules.profiles import decisions, did_you_mean, lora_names, model_cards, provider_models


def model_references(document: Document) -> Iterator[Diagnostic]:
    """Every modelRef names a provider model that answers chats (or a LoRA), with a LoRA that its card lists, and asks of its reasoning what
    the model can do. Without any provider model, a document describes somebody else's gateway, and names are free."""
    models = provider_models(document)
    if not models:
        return
    cards, loras = model_cards(document), lora_names(document)
    for _, path, decision in decisions(document):
        for index, ref in enumerate(decision.modelRefs or ()):
            place = (*path, "modelRefs", index)
            model = models.get(ref.model or "")
            if model is None and ref.model not in loras:
                message = f'decision "{decision.name}" names model "{ref.model}", which is not among providers.models'
                yield Diagnostic("model_undeclared", message, (*place, "model"), did_you_mean(ref.model, {*models, *loras}))
            elif model is not None:
                yield from _reference(decision, ref, model, cards.get(model.name), place)


def _reference(decision: Decision, ref: ModelRef, model: ProviderModel, card: ModelCard | None, place: Path) -> Iterator[Diagnostic]:
    if model.api_format == "systemone":
        message = f'decision "{decision.name}" names "{model.name}", a native model: it answers questions, not chats'
        yield Diagnostic("model_wrong_api", message, (*place, "model"))
    listed = [lora.name for lora in (card.loras if card else None) or ()]
    if ref.lora_name and ref.lora_name not in listed:
        message = f'decision "{decision.name}" names LoRA "{ref.lora_name}", which the card of "{model.name}" does not list'
        yield Diagnostic("lora_undeclared", message, (*place, "lora_name"), did_you_mean(ref.lora_name, listed))
    complaint = _reasoning_complaint(ref, model)
    if complaint is not None:
        yield Diagnostic("reasoning_refused", f'decision "{decision.name}", model "{model.name}": {complaint}', place)


def _reasoning_complaint(ref: ModelRef, model: ProviderModel) -> str | None:
    effort, mode, on = ref.reasoning_effort or "", ref.reasoning_mode or "", ref.use_reasoning is True
    given = model.reasoning
    if given is None or (given.family is not None and given.family not in REASONING_FAMILIES):
        return "reasoning_mode needs a reasoning family of the model" if mode and given is None else None
    family = REASONING_FAMILIES[given.family] if given.family is not None else None
    modes = family.modes if family else tuple(given.modes or ())
    levels = family.levels if family else tuple(given.levels or ())
    type_ = family.type if family else given.type
    can_be_off = (family.activation_parameter or family.disabled) if family else (given.activation_parameter or given.disabled)
    if mode and mode not in modes:
        return f'reasoning_mode "{mode}" is not one of {", ".join(modes) or "its modes: it has none"}'
    if mode and on != (mode != "disabled"):
        return f'reasoning_mode "{mode}" needs use_reasoning: {"false" if mode == "disabled" else "true"}'
    if not on:
        if not can_be_off and "disabled" not in modes:
            return "it always reasons; set use_reasoning: true"
        return "reasoning_effort needs use_reasoning: true" if effort else None
    if effort and type_ in ("reasoning_mode", "chat_template_kwargs"):
        return "it has modes, but no efforts; remove reasoning_effort"
    if effort and effort not in levels:
        return f'reasoning_effort "{effort}" is not one of {", ".join(levels)}'
    return None


def called_models(document: Document) -> Iterator[Diagnostic]:
    """A cascade calls the models itself, so each needs a backend even where no listener is configured."""
    models = provider_models(document)
    for _, path, decision in decisions(document):
        if decision.algorithm is None or decision.algorithm.type != "confidence":
            continue
        for index, ref in enumerate(decision.modelRefs or ()):
            model = models.get(ref.model or "")
            if model is not None and not model.backend_refs and not document.listeners:
                message = f'decision "{decision.name}" calls model "{model.name}", which has no backend'
                yield Diagnostic("backend_missing", message, (*path, "modelRefs", index), "Give it backend_refs")
