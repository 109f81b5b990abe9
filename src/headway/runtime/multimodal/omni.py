"""Omni packages in memory: four towers, and what makes one vector of their states.

    text:   the first token (Nano), or the last token cut to the dimension (Mini)
    image:  P pooled + p; Mini brings the pooled state to length 1 first
    audio:  S mean(speech states) + s + W (c - mean) / scale
            c = mean over windows of unit(linear2 relu(linear1 pooled)), brought to length 1

All vectors are brought to length 1. Source: VSR `families/multimodal_embedding/readout.py` (7033093).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, cast

import numpy as np
import torch
from torch.nn.functional import linear, normalize

from headway.artifacts.tokenizer import tokenizer_at
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_planned_encoder
from headway.quantization.weight_reader import WeightReader
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.multimodal.dual_encoder import refuse_larger_vocabulary
from headway.runtime.multimodal.image_decoding import without_alpha
from headway.runtime.multimodal.image_rows import IMAGE_READOUT, ImageReader
from headway.runtime.multimodal.model import MultimodalModel, multimodal_facts
from headway.runtime.multimodal.omni_package import CLAP, SPEECH, TEXT, OmniPackage
from headway.runtime.multimodal.readouts import Features, FloatArray, ImageReadout, MediaReadout, TextReadout
from headway.runtime.multimodal.sound_rows import SOUND_READOUT, SoundFeatures, SoundReader, sound_row
from headway.runtime.multimodal.tower import Progress, TowerPlan
from headway.runtime.row import Row
from headway.runtime.tasks.embeddings import READOUT, EmbeddingsPlanner
from headway.runtime.tasks.media import MediaReader
from headway.runtime.tasks.readouts import pool
from headway.runtime.tasks.sentence_layout import SentenceLayout
from headway.runtime.tasks.sequence_text import SequenceText

_FLOAT = torch.float32


def load_omni(found: OmniPackage, placement: Placement, progress: Progress) -> LoadedModel:
    """Raises ArtifactError: those of the towers' `load`, `tokenizer_invalid`, `invalid_package`."""
    variant, package = found.variant, found.package
    tokenizer = tokenizer_at(package.path / TEXT / "tokenizer.json")
    text_config = found.text.card.config
    refuse_larger_vocabulary(tokenizer, int(text_config["vocab_size"]))
    text = SequenceText(tokenizer, found.limit, token_types=False)
    sounds = SoundReader(package.json(f"{SPEECH}/preprocessor_config.json") or {}, package.json(f"{CLAP}/preprocessor_config.json") or {})
    with WeightReader(found.card) as reader:
        weights = {name: reader.tensor(source, _FLOAT) for name, source in found.readouts.items()}
    texts = TextReadout(_text_features(found, progress), int(text_config["vocab_size"]))
    # Each image and each sound alone: these towers are large, and more at once is not faster on a CPU.
    cost = int(found.image.config.image_size // found.image.config.patch_size) ** 2
    images = ImageReadout(_image_features(found, weights, progress), found.layout, cost, _FLOAT, together=1)
    readouts: dict[str, MediaReadout] = {READOUT: texts, IMAGE_READOUT: images, SOUND_READOUT: _sound_readout(found, weights, progress)}
    media: dict[str, MediaReader] = {"image": ImageReader(found.layout, cost, without_alpha), "audio": sounds}
    layout = SentenceLayout(
        variant.pooling, normalize=True, dimensions=(found.dimension,), layers=(int(text_config["num_hidden_layers"]),),
        prompts=variant.prompts, strip=variant.strip,
    )  # fmt: skip
    facts = multimodal_facts(found.parameters, placement.dtype, layout, text, media)
    return MultimodalModel(facts, EmbeddingsPlanner(layout, text, texts.row, media), readouts, 4 * found.parameters)


def _text_features(found: OmniPackage, progress: Progress) -> Features:
    if isinstance(found.text, TowerPlan):
        tower = found.text.load(_FLOAT, progress)
        return lambda ids: cast(torch.Tensor, tower(input_ids=ids, use_cache=False).last_hidden_state[:, -1])
    encoder = load_planned_encoder(found.text, _FLOAT, progress=progress)

    def features(ids: torch.Tensor) -> torch.Tensor:
        batch = pack(ids.tolist(), None)
        starts = batch.starts.tolist()
        return pool(encoder.encode(batch).last, list(pairwise(starts)), found.variant.pooling)

    return features


def _image_features(found: OmniPackage, weights: Mapping[str, torch.Tensor], progress: Progress) -> Features:
    tower = found.image.load(_FLOAT, progress)

    def features(pixels: torch.Tensor) -> torch.Tensor:
        pooled = tower(pixel_values=pixels).pooler_output
        if found.variant.unit_image:
            pooled = normalize(pooled, dim=-1)
        return linear(pooled, weights["image.weight"], weights["image.bias"])

    return features


def _sound_readout(found: OmniPackage, weights: Mapping[str, torch.Tensor], progress: Progress) -> SoundReadout:
    speech, clap = found.speech.load(_FLOAT, progress), found.clap.load(_FLOAT, progress)

    def features(heard: SoundFeatures) -> torch.Tensor:
        pooled = clap(input_features=torch.from_numpy(heard.windows)).pooler_output
        hidden = torch.relu(linear(pooled, weights["clap.linear1.weight"], weights["clap.linear1.bias"]))
        windows = normalize(linear(hidden, weights["clap.linear2.weight"], weights["clap.linear2.bias"]), dim=-1)
        whole = normalize(windows.mean(0), dim=-1)
        states = speech(torch.from_numpy(heard.speech)[None]).last_hidden_state[0]
        spoken = linear(states.mean(0), weights["speech.weight"], weights["speech.bias"])
        return spoken + linear((whole - weights["residual.mean"]) / weights["residual.scale"], weights["residual.weight"])

    config = found.speech.config
    return SoundReadout(features, (int(config.num_mel_bins), 2 * int(config.max_source_positions)))


@dataclass(frozen=True, slots=True)
class SoundReadout:
    """Each sound alone. `speech_shape`: bins and frames of its features."""

    features: Callable[[SoundFeatures], torch.Tensor]
    speech_shape: tuple[int, int]

    def read(self, rows: Sequence[Row]) -> list[FloatArray]:
        return [self.features(row.payload).float().numpy() for row in rows]

    def probe_row(self, chance: Random, length: int) -> Row:
        """Noise for one window."""
        source = np.random.default_rng(chance.getrandbits(32))
        speech: Any = source.standard_normal(self.speech_shape, np.float32)
        return sound_row(str(chance.random()), SoundFeatures(speech, 20 * source.standard_normal((1, 1, 1001, 64), np.float32)))
