"""TaskPackage: what a package is for, found out from its JSON files and headers before a weight is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from headway.artifacts.card import TensorInfo
from headway.artifacts.model_cards import card_of_path
from headway.artifacts.quantization_claim import SIDE_FILES
from headway.errors import PackageError
from headway.models.checkpoint_tensors import refuse_missing, refuse_unexpected
from headway.models.encoders.plan import EncoderPlan, plan_encoder
from headway.quantization.stored_as import StoredFormat
from headway.quantization.stored_format import stored_format
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.tasks import operating_point, sentence_heads
from headway.runtime.tasks.backbones import BACKBONES, HeadNames
from headway.runtime.tasks.limits import input_limit
from headway.runtime.tasks.sentence_layout import MODULES, layout_files

Task: TypeAlias = Literal["sequence", "token", "embedding", "relevance"]
RELEVANCE_LAYOUT: Final = "matryoshka_config.json"
RELEVANCE_HEADS: Final = "classification_heads.safetensors"
_TOKENIZER_FILES: Final = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
    "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model",
)  # fmt: skip
# Parts of a checkpoint that a task does not use: poolers, and the heads that the encoder was trained with before.
_UNUSED: Final = re.compile(r"(^|\.)pooler\.|^(cls|lm_head|decoder|vocab_|mask_predictions|lm_predictions|discriminator_|generator_)|^head\.(dense|norm)")


@dataclass(frozen=True, slots=True)
class TaskPackage:
    """`head` names the tensors of a classifier; `scorers` are heads in a file of their own: those of a reranker with trained exits, or
    classifiers on an embedder. `parameters` and `files` count what is loaded, nothing else; `left_out` are tensors that are not."""

    package: Package
    task: Task
    plan: EncoderPlan
    head: HeadNames | None
    scorers: PackageTensors | None
    parameters: int
    files: tuple[str, ...]
    left_out: frozenset[str]

    @property
    def config(self) -> Mapping[str, Any]:
        return self.plan.card.config

    @property
    def stored(self) -> StoredFormat:
        """Of what is loaded: the encoder and the head."""
        return stored_format(each for name, each in self.plan.card.tensors.items() if name not in self.left_out)

    @property
    def limit(self) -> int:
        """The most tokens in a sequence, special ones included."""
        return input_limit(self.package, self.plan.max_positions, self.task == "embedding")


def task_of(package: Package) -> Task | None:
    """By names of files and config.json alone; None for other packages."""
    architectures = package.config.get("architectures")
    if not isinstance(architectures, list) or len(architectures) != 1 or not isinstance(architectures[0], str):
        return None
    if package.has(RELEVANCE_LAYOUT) and package.has(RELEVANCE_HEADS):
        return "relevance"
    if package.config.get("model_type") in BACKBONES:
        if architectures[0].endswith("ForSequenceClassification"):
            return "sequence"
        if architectures[0].endswith("ForTokenClassification"):
            return "token"
    return "embedding" if package.has(MODULES) and not architectures[0].endswith("Classification") else None


def open_task(package: Package) -> TaskPackage:
    """Check everything that headers and JSON files tell.

    Raises ArtifactError: `missing_tensor`, `unexpected_tensor`, those of `plan_encoder` and of the weight files.
    """
    task = task_of(package)
    if task is None:
        raise PackageError(f"{package.reference} is no task model: config.json names no classifier and there is no {MODULES}",
                           reason="no_task", param="model", fix="Choose a package that docs/families.md describes.")  # fmt: skip
    card = card_of_path(package.path, package.reference, revision=package.revision, licence=package.licence)
    plan = plan_encoder(card)
    head = None
    if task in ("sequence", "token"):
        backbone = BACKBONES[card.model_type]
        head = backbone.sequence if task == "sequence" else backbone.token
    own = _head_tensors(plan, head)
    refuse_unexpected(card, [name for name in plan.remaining if name not in own and not _UNUSED.search(name)])
    scorers = _scorers(package, task)
    parameters = plan.parameters + sum(info.elements for info in own.values()) + (scorers.parameters if scorers else 0)
    layout = layout_files(package) if task == "embedding" else ()
    left_out = frozenset(plan.remaining) - own.keys()
    return TaskPackage(package, task, plan, head, scorers, parameters, (*loaded_files(package, card.files), *layout), left_out)


def _scorers(package: Package, task: Task) -> PackageTensors | None:
    if task == "relevance":
        return PackageTensors(package.path, [RELEVANCE_HEADS])
    return PackageTensors(package.path, [sentence_heads.WEIGHTS]) if task == "embedding" and package.has(sentence_heads.LAYOUT) else None


def _head_tensors(plan: EncoderPlan, head: HeadNames | None) -> dict[str, TensorInfo]:
    """The tensors of a head; weights must be there, biases may be."""
    if head is None:
        return {}
    names = head.tensors(plan.prefix)
    refuse_missing(plan.card, [f"{name}.weight" for name in names if f"{name}.weight" not in plan.card.tensors])
    wanted = [f"{name}.{part}" for name in names for part in ("weight", "bias")]
    return {name: plan.card.tensors[name] for name in wanted if name in plan.card.tensors}


def loaded_files(package: Package, weights: Collection[Path]) -> tuple[str, ...]:
    """Relative names of the files of a package that its task reads."""
    names = ["config.json", *SIDE_FILES, *_TOKENIZER_FILES, operating_point.FILE, RELEVANCE_LAYOUT, RELEVANCE_HEADS, sentence_heads.LAYOUT, sentence_heads.WEIGHTS]
    return (*(name for name in names if package.has(name)), *(path.relative_to(package.path).as_posix() for path in weights))
