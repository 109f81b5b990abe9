"""Embedders on causal decoders (Qwen3 style): the hidden state of the last token, prompts shared between texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from headway.artifacts.card import ModelCard
from headway.artifacts.model_cards import card_of_path
from headway.artifacts.tokenizer import load_tokenizer
from headway.errors import PackageError
from headway.models.backbone import plan_backbone
from headway.models.native import NativePlan
from headway.models.registry import ARCHITECTURES
from headway.quantization.stored_format import stored_format
from headway.runtime.decoder.loading import load_backbone
from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.family import ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.runtime.tasks.embeddings import READOUT, EmbeddingsPlanner, embedding_facts
from headway.runtime.tasks.limits import MAX_INPUTS, input_limit
from headway.runtime.tasks.lower_case import apply_lower_case
from headway.runtime.tasks.sentence_layout import MODULES, SentenceLayout, layout_files, read_sentence_layout
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.task_package import loaded_files

_UNSTATED: Final = 2048  # tokens, for configs that state no context


def is_decoder(package: Package) -> bool:
    """Whether this is an embedder whose encoder is a language model that runs here."""
    architectures = package.config.get("architectures")
    if not package.has(MODULES) or not isinstance(architectures, list) or len(architectures) != 1:
        return False
    name = str(architectures[0])
    return name in ARCHITECTURES or name.removesuffix("Model") + "ForCausalLM" in ARCHITECTURES


def describe_decoder(package: Package) -> ModelSpec:
    """Raises ArtifactError for packages that are damaged, or pool in another way than by the last token."""
    card, plan, _ = _open(package)
    return ModelSpec(
        ("embeddings",), plan.parameters, (*loaded_files(package, card.files), *layout_files(package)), _limit(package, card),
        dtypes=("float32", "bfloat16"), licence=package.licence, stored=stored_format(plan.card.tensors.values()),
    )  # fmt: skip


def load_decoder(package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
    """Raises what `load_backbone` raises."""
    card, _, layout = _open(package)
    trunk = load_backbone(
        card, placement.dtype, share=placement.enable_shared_context, max_tokens=spec.max_input_tokens, progress=progress
    )
    tokenizer = load_tokenizer(card)
    apply_lower_case(tokenizer, package)
    text = SequenceText(tokenizer, trunk.max_tokens, token_types=False)
    facts = ModelFacts(
        spec.parameters, placement.dtype, {"max_input_tokens": trunk.max_tokens, "max_inputs": MAX_INPUTS}, embedding=embedding_facts(layout)
    )
    return DecoderEmbedder(trunk, facts, EmbeddingsPlanner(layout, text, last_token_row), int(card.config["vocab_size"]))


def last_token_row(ids: tuple[int, ...], layer: int | None) -> Row:
    return Row(ids, READOUT, HiddenAt((len(ids) - 1,)))


class DecoderEmbedder(LoadedModel):
    """Outcomes: float32 [hidden]."""

    def __init__(self, trunk: DecoderTrunk, facts: ModelFacts, planner: EmbeddingsPlanner, vocab_size: int):
        self.facts = facts
        self.planners: Mapping[Surface, Planner] = {"embeddings": planner}
        self._trunk = trunk
        self._vocab_size = vocab_size

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return [found if isinstance(found, ItemFailure) else found[0] for found in self._trunk.read(rows)]

    def forget(self) -> None:
        self._trunk.forget()

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return [last_token_row(tuple(chance.randrange(self._vocab_size) for _ in range(length)), None)]

    @property
    def memory_bytes(self) -> int:
        return self._trunk.memory_bytes


def _open(package: Package) -> tuple[ModelCard, NativePlan, SentenceLayout]:
    card = card_of_path(package.path, package.reference, revision=package.revision, licence=package.licence)
    plan = plan_backbone(card, _limit(package, card))
    layout = read_sentence_layout(package, plan.config.hidden_size, plan.config.num_layers)
    if layout.pooling != "lasttoken" or len(layout.layers) > 1:
        raise PackageError(f"a decoder embeds by its last token after its last layer; {package.reference} asks for {layout.pooling} pooling"
                           f" at layers {', '.join(map(str, layout.layers))}", reason="unsupported_sentence_layout", param=MODULES)  # fmt: skip
    return card, plan, layout


def _limit(package: Package, card: ModelCard) -> int:
    return input_limit(package, card.context_length or _UNSTATED, is_embedder=True)
