"""Candidates: a decision's modelRefs with what is known of each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.config.document.decisions import Decision, ModelRef
from headway.router.config.document.model_cards import ModelCard
from headway.router.config.document.providers import ModelPricing, ProviderModel
from headway.router.signals.kind import Recipe


@dataclass(frozen=True, slots=True)
class Candidate:
    """`model` is the logical name. A modelRef that names a LoRA directly has it in `lora`."""

    ref: ModelRef
    model: str
    lora: str | None = None
    card: ModelCard | None = None
    pricing: ModelPricing | None = None

    @property
    def name(self) -> str:
        """What tells it from the other candidates: the LoRA, else the model."""
        return self.lora or self.model

    @property
    def description(self) -> str | None:
        """The LoRA's description, else the card's."""
        for adapter in (self.card and self.card.loras) or ():
            if adapter.name == self.lora and adapter.description:
                return adapter.description
        return self.card.description if self.card else None


def candidates_of(decision: Decision, recipe: Recipe) -> Sequence[Candidate]:
    """In declared order; each model (or LoRA) once."""
    document = recipe.document
    cards = {card.name: card for card in (document.routing and document.routing.modelCards) or ()}
    owners = {lora.name: card.name for card in cards.values() for lora in card.loras or ()}
    providers: dict[str | None, ProviderModel] = {
        model.name: model for model in (document.providers and document.providers.models) or ()
    }
    found: dict[tuple[str, str | None], Candidate] = {}
    for ref in decision.modelRefs or ():
        model, lora = ref.model or "", ref.lora_name
        if model not in providers and model in owners:
            model, lora = owners[model] or "", model
        provider = providers.get(model)
        found.setdefault(
            (model, lora), Candidate(ref, model, lora, cards.get(model), provider.pricing if provider else None)
        )
    return tuple(found.values())
