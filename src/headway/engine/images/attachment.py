"""What a model that reads images adds to an engine."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headway.artifacts.card import ModelCard
from headway.capacity.byte_text import byte_text
from headway.engine.config import EngineConfig
from headway.engine.images.limits import images_per_prompt
from headway.engine.images.step_images import AT_ONCE, KEPT_BYTES, StepImages, with_given_rows
from headway.engine.images.tile_budget import TileBudget
from headway.errors import ConfigError, NotBuiltError
from headway.models.causal_lm import CausalLM
from headway.models.held_bytes import held_bytes
from headway.models.plan import ModelPlan
from headway.models.recorded_forward import Forward
from headway.models.vision.plan import VISION_LANGUAGE, VisionLanguagePlan

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader

_log = logging.getLogger(__name__)
_PASSES: Final = 20  # numbers of the hidden size that a pass of the tower holds for each patch, those of the feed-forward apart


@dataclass(frozen=True, slots=True)
class Images:
    """`reader` goes to whoever takes requests, `steps` and `forward` to the model runner, `budget` to the scheduler."""

    reader: ImageReader
    steps: StepImages
    budget: TileBudget

    def forward(self, without: Forward, plain: Forward) -> Forward:
        return with_given_rows(without, plain)


def image_bytes(plan: ModelPlan, itemsize: int) -> int:
    """Memory beside the weights: rows that are kept, and one pass of the tower. 0 for models that read text alone."""
    if not isinstance(plan, VisionLanguagePlan):
        return 0
    vision = plan.vision
    width = _PASSES * vision.hidden_size + vision.intermediate_size
    return KEPT_BYTES + AT_ONCE * vision.patches * width * itemsize


def make_images(config: EngineConfig, card: ModelCard, plan: ModelPlan, model: CausalLM) -> Images | None:
    """None for models that read text alone. Raises ArtifactError, ConfigError, NotBuiltError."""
    if not isinstance(plan, VisionLanguagePlan) or model.tower is None:
        return None
    from headway.engine.images.reader import ImageReader  # these import Pillow, which nobody else needs
    from headway.models.vision.tile_layout import read_tile_layout

    vision = plan.vision
    layout = read_tile_layout(card.path, vision.image_size, config.mm_processor_kwargs)
    steps = StepImages(model.tower, layout)
    budget = TileBudget(config.max_num_batched_tokens // vision.patches, steps)
    most = images_per_prompt(config.limit_mm_per_prompt)
    _log.info(
        "Images: up to %d in a prompt, each up to %d tiles of %d tokens; %d tile(s) in a step; tower %s, kept rows up to %s",
        most, layout.most_tiles, vision.rows, budget.most, byte_text(held_bytes(model.tower)), byte_text(KEPT_BYTES),
    )  # fmt: skip
    return Images(ImageReader(layout, vision.rows, plan.image_token_id, most), steps, budget)


def check_images(config: EngineConfig, card: ModelCard) -> None:
    """Before weights are read. Raises NotBuiltError for what does not go with a model that reads images, ConfigError for settings of images
    without such a model."""
    if card.architecture not in VISION_LANGUAGE:
        if config.mm_processor_kwargs:
            raise ConfigError(
                f"--mm-processor-kwargs is for models that read images, and {card.architecture} reads text", param="mm_processor_kwargs",
                fix="Leave it out.",
            )  # fmt: skip
        return
    for name, asked in (
        ("tensor_parallel_size", config.tensor_parallel_size > 1), ("pipeline_parallel_size", config.pipeline_parallel_size > 1),
        ("enable_lora", config.enable_lora), ("load_format", config.load_format == "dummy"),
    ):  # fmt: skip
        if asked:
            raise NotBuiltError(
                f"--{name.replace('_', '-')} is not built for models that read images ({card.architecture})", param=name, fix="Leave it out."
            )
