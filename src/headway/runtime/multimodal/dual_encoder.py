"""CLIP and SigLIP packages as transformers saves them: a text tower and a vision tower that meet in one space.

Tensors and computations are those of `CLIPModel` and `SiglipModel` of transformers (5.24): vectors are those of
`get_text_features` and `get_image_features`, brought to length 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import torch

from headway.artifacts.model_cards import card_of_path
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.errors import PackageError
from headway.quantization.stored_format import stored_format
from headway.runtime.decoder.loading import DTYPES
from headway.runtime.family import ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.multimodal.image_decoding import on_white
from headway.runtime.multimodal.image_layout import FILE, ImageLayout, read_image_layout
from headway.runtime.multimodal.image_rows import IMAGE_READOUT, ImageReader
from headway.runtime.multimodal.model import MultimodalModel, multimodal_facts
from headway.runtime.multimodal.readouts import ImageReadout, MediaReadout, TextReadout
from headway.runtime.multimodal.tower import TowerPlan, plan_tower
from headway.runtime.package import Package
from headway.runtime.tasks.embeddings import READOUT, EmbeddingsPlanner
from headway.runtime.tasks.limits import input_limit
from headway.runtime.tasks.media import MediaReader
from headway.runtime.tasks.sentence_layout import SentenceLayout
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.task_package import loaded_files

Kind = Literal["clip", "siglip"]
CLASSES: Final[Mapping[Kind, str]] = {"clip": "CLIPModel", "siglip": "SiglipModel"}
_UNUSED: Final = re.compile(r"^logit_(scale|bias)$")  # of similarities, not of vectors


@dataclass(frozen=True, slots=True)
class DualEncoder:
    """A package that was looked into; no weight is read."""

    package: Package
    kind: Kind
    plan: TowerPlan
    layout: ImageLayout

    @property
    def positions(self) -> int:
        return int(self.plan.config.text_config.max_position_embeddings)

    @property
    def width(self) -> int:
        config = self.plan.config
        return int(config.projection_dim if self.kind == "clip" else config.vision_config.hidden_size)

    @property
    def image_cost(self) -> int:
        """Tokens of the vision tower."""
        vision = self.plan.config.vision_config
        return int(vision.image_size // vision.patch_size) ** 2 + (1 if self.kind == "clip" else 0)

    @property
    def limit(self) -> int:
        return input_limit(self.package, self.positions, is_embedder=False)

    def spec(self) -> ModelSpec:
        files = (*loaded_files(self.package, self.plan.card.files), FILE)
        return ModelSpec(("embeddings",), self.plan.parameters, files, self.limit, ("float32", "bfloat16"), licence=self.package.licence,
                         stored=stored_format(self.plan.card.tensors.values()))  # fmt: skip


def is_dual_encoder(package: Package) -> bool:
    config = package.config
    return config.get("model_type") in CLASSES and all(isinstance(config.get(part), dict) for part in ("text_config", "vision_config"))


def open_dual_encoder(package: Package) -> DualEncoder:
    """Raises ArtifactError: those of `plan_tower`, `missing_file`, `invalid_package`."""
    settings = package.json(FILE)
    if settings is None:
        raise PackageError(f"{package.path} lacks {FILE}, which says how images are prepared", reason="missing_file", param=FILE,
                           fix="Download the package again.")  # fmt: skip
    kind = cast(Kind, package.config["model_type"])
    card = card_of_path(package.path, package.reference, revision=package.revision, licence=package.licence)
    plan = plan_tower(card, _finder(kind), unused=_UNUSED)
    text, vision = plan.config.text_config, plan.config.vision_config
    if kind == "siglip" and text.projection_size != vision.hidden_size:
        raise PackageError(f"config.json: text_config.projection_size is {text.projection_size}, vision_config.hidden_size {vision.hidden_size}:"
                           " texts and images have no space in common", reason="invalid_package", param="config.json")  # fmt: skip
    return DualEncoder(package, kind, plan, read_image_layout(settings, kind, int(vision.image_size)))


def load_dual_encoder(found: DualEncoder, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
    dtype = DTYPES[placement.dtype]
    tokenizer = load_tokenizer(found.plan.card)
    refuse_larger_vocabulary(tokenizer, int(found.plan.config.text_config.vocab_size))
    text = SequenceText(tokenizer, found.limit, token_types=False)
    model = found.plan.load(dtype, progress)
    config = model.config.text_config
    texts = TextReadout(lambda ids: cast(torch.Tensor, model.get_text_features(input_ids=ids).pooler_output), int(config.vocab_size))
    if found.kind == "siglip":
        texts = TextReadout(texts.features, texts.vocab_size, padded_to=found.positions, padding=_padding(tokenizer, config))
    images = ImageReadout(
        lambda pixels: cast(torch.Tensor, model.get_image_features(pixel_values=pixels).pooler_output), found.layout, found.image_cost, dtype
    )
    readouts: dict[str, MediaReadout] = {READOUT: texts, IMAGE_READOUT: images}
    media: dict[str, MediaReader] = {"image": ImageReader(found.layout, found.image_cost, on_white)}
    layout = SentenceLayout("lasttoken", normalize=True, dimensions=(found.width,), layers=(int(config.num_hidden_layers),))
    facts = multimodal_facts(found.plan.parameters, placement.dtype, layout, text, media)
    planner = EmbeddingsPlanner(layout, text, texts.row, media)
    return MultimodalModel(facts, planner, readouts, found.plan.parameters * dtype.itemsize)


def refuse_larger_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Raises PackageError: a token without an embedding would fail the pass of all that run with it."""
    if tokenizer.vocab_size > vocab_size:
        raise PackageError(f"the tokenizer has {tokenizer.vocab_size} tokens, the model embeddings for {vocab_size}", reason="tokenizer_invalid",
                           param="vocab_size", fix="Check that the tokenizer belongs to these weights.")  # fmt: skip


def _padding(tokenizer: Tokenizer, config: Any) -> int:
    """SigLIP was trained on texts filled up to all its positions, and reads the last one."""
    name = tokenizer.special_tokens.get("pad_token")
    own = None if name is None else tokenizer.backend.token_to_id(name)
    return int(config.pad_token_id if own is None else own)


def _finder(kind: Kind) -> Callable[[], Any]:
    def find() -> Any:
        import transformers  # seconds; other families never need it

        return getattr(transformers, CLASSES[kind])

    return find
