"""Omni packages: each tower in the class of transformers that it comes from, put together as docs/families.md describes."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from torch.nn.functional import normalize
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from headway.errors import ArtifactError, RequestError
from headway.runtime.multimodal.resampling import resampled
from headway.runtime.selfcheck.probe import probe
from headway.wire.embeddings import Media, Text
from tests.runtime.multimodal.multimodal_models import MultimodalModels, ask, ask_together, cosines, load, vectors
from tests.runtime.multimodal.pictures import png
from tests.runtime.multimodal.sounds import tones, wav
from tests.runtime.multimodal.test_sounds import by_definition

VARIANTS = ("omni-nano", "omni-mini")
TEXTS = ("a photo of a cat", "  Berlin at night, seen from above \n", "call Dana Wells")
IMAGES = (png(50, 40), png(33, 90, "RGBA", 1), png(32, 32, "L", 2))
PARTS = {
    "omni-nano": ("text_encoder.encoder.", "image_encoder.vision_encoder.", "audio_encoder.encoder.", "image_encoder.projection.", "audio_encoder.projection."),
    "omni-mini": ("text_model.0.model.", "image_model.vision_model.", "audio_model.", "image_proj.", "audio_proj."),
}  # fmt: skip


Samples: TypeAlias = npt.NDArray[np.float64]


class Oracle:
    """Double precision where it is cheap."""

    def __init__(self, folder: Path, variant: str):
        self.variant = variant
        self.folder = folder
        self.weights = load_file(folder / "model.safetensors")
        text, image, speech, self.image_projection, self.speech_projection = PARTS[variant]
        text_class = transformers.BertModel if variant == "omni-nano" else transformers.Qwen3Model
        self.text = self._tower(text_class(transformers.AutoConfig.from_pretrained(folder / "components/text")), text)
        vision = json.loads((folder / "components/image/config.json").read_text())["vision_config"]
        self.image = self._tower(transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**vision)), image)
        self.speech = self._tower(WhisperEncoder(transformers.AutoConfig.from_pretrained(folder / "components/audio")), speech)
        clap = json.loads((folder / "components/audio_clap/config.json").read_text())["audio_config"]
        self.clap = self._tower(transformers.ClapAudioModelWithProjection(transformers.ClapAudioConfig(**clap)), "audio_residual.clap.")

    def _tower(self, model: Any, prefix: str) -> Any:
        own = {name.removeprefix(prefix): value for name, value in self.weights.items() if name.startswith(prefix)}
        missing, extra = model.load_state_dict(own, strict=False)
        assert not extra
        assert all(name.endswith(("relative_position_index", "num_batches_tracked", "position_ids")) for name in missing)
        return model.double().eval()

    def _linear(self, prefix: str, vector: torch.Tensor) -> torch.Tensor:
        return self.weights[f"{prefix}weight"].double() @ vector + self.weights[f"{prefix}bias"].double()

    @torch.inference_mode()
    def of_text(self, text: str) -> npt.NDArray[np.float64]:
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(self.folder / "components/text/tokenizer.json"))
        states = self.text(torch.tensor([tokenizer.backend_tokenizer.encode(text).ids])).last_hidden_state[0]
        return np.asarray((states[0] if self.variant == "omni-nano" else normalize(states[-1], dim=0)[:24]).numpy())

    @torch.inference_mode()
    def of_image(self, data: bytes) -> npt.NDArray[np.float64]:
        processor = transformers.SiglipImageProcessorPil.from_pretrained(self.folder / "components/image")
        pixels = processor(Image.open(io.BytesIO(data)).convert("RGB"), return_tensors="pt")["pixel_values"].double()
        pooled = self.image(pixels).pooler_output[0]
        return np.asarray(self._linear(self.image_projection, pooled if self.variant == "omni-nano" else normalize(pooled, dim=0)).numpy())

    @torch.inference_mode()
    def of_sound(
        self, samples: Samples, rate: int, starts: tuple[float, ...], resample: Callable[[Samples, int, int], Samples] = by_definition
    ) -> npt.NDArray[np.float64]:
        """`starts`: where the windows of ten seconds begin, in seconds."""
        speech, wide = (np.mean([resample(channel, rate, new) if rate != new else channel for channel in samples.T], axis=0) for new in (16_000, 48_000))
        heard = transformers.WhisperFeatureExtractor.from_pretrained(self.folder / "components/audio")(speech, sampling_rate=16_000, return_tensors="pt")
        spoken = self._linear(self.speech_projection, self.speech(heard["input_features"].double()).last_hidden_state[0].mean(0))
        extractor = transformers.ClapFeatureExtractor.from_pretrained(self.folder / "components/audio_clap")
        parts = [wide[round(start * 48_000) :][:480_000] for start in starts]
        windows = extractor(parts, sampling_rate=48_000, return_tensors="pt")["input_features"].double()
        whole = normalize(normalize(self.clap(windows).audio_embeds, dim=1).mean(0), dim=0)
        weight, mean, scale = (self.weights[f"audio_residual.{name}"].double() for name in ("weight", "mean", "scale"))
        return np.asarray((spoken + weight @ ((whole - mean) / scale)).numpy())


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_modality_equals_its_parts(models: MultimodalModels, variant: str) -> None:
    oracle = Oracle(models.folder(variant), variant)
    model = models.load(variant)
    sounds = [(tones(44_100, 0.05, 2), 44_100), (tones(16_000, 0.4, seed=2), 16_000)]
    expected = [
        *(oracle.of_text(text.strip() if variant == "omni-mini" else text) for text in TEXTS), *(oracle.of_image(data) for data in IMAGES),
        *(oracle.of_sound(samples, rate, (0.0,)) for samples, rate in sounds),
    ]  # fmt: skip
    inputs = [
        *(Text(text) for text in TEXTS), *(Media("image", data) for data in IMAGES),
        *(Media("audio", wav(samples, rate, "f32")) for samples, rate in sounds),
    ]  # fmt: skip
    for body in (ask(model, *inputs), ask_together(model, *inputs)):
        assert cosines(vectors(body), np.array(expected)).min() >= 0.99999


@pytest.mark.parametrize("variant", VARIANTS)
def test_long_sounds_are_heard_in_three_windows(models: MultimodalModels, variant: str) -> None:
    oracle = Oracle(models.folder(variant), variant)
    samples = np.concatenate([tones(16_000, 8, seed=1), 0.01 * tones(16_000, 9, seed=2), tones(16_000, 8, seed=3) ** 3])

    def resample(signal: Samples, old: int, new: int) -> Samples:  # which test_sounds compares with the definition
        return np.asarray(resampled(torch.from_numpy(signal)[None].float(), old, new)[0].double().numpy())

    expected, first = (oracle.of_sound(samples, 16_000, starts, resample) for starts in ((0.0, 7.5, 15.0), (0.0,)))
    found = vectors(ask(models.load(variant), Media("audio", wav(samples, 16_000, "f32"))))
    assert cosines(found, expected[None]).min() >= 0.99999
    assert cosines(found, first[None]).max() < 0.9999


def test_mini_has_prompts(models: MultimodalModels) -> None:
    oracle = Oracle(models.folder("omni-mini"), "omni-mini")
    prompt = "Instruct: Given a search query, retrieve relevant passages that answer the query.\nQuery:"
    body = ask(models.load("omni-mini"), Text(" a cat "), input_type="query")
    assert cosines(vectors(body), oracle.of_text(prompt + " a cat")[None]).min() >= 0.99999
    with pytest.raises(RequestError, match="this model has no prompts"):
        ask(models.load("omni-nano"), Text("a cat"), input_type="query")


@pytest.mark.parametrize("variant", VARIANTS)
def test_company_changes_nothing(models: MultimodalModels, variant: str) -> None:
    found = probe(models.load(variant), batch_invariant=False)
    assert found.may_share
    assert found.rows == 18


def test_what_answers_and_cards_say(models: MultimodalModels) -> None:
    facts = models.load("omni-nano").facts
    assert facts.modalities == ("text", "image", "audio")
    assert (facts.limits["max_audio_inputs"], facts.limits["audio_max_seconds"], facts.limits["max_input_tokens"]) == (155, 30, 512)
    body = ask(models.load("omni-nano"), Media("audio", b"not a sound"), Media("audio", wav(tones(8_000, 0.1), 8_000)))
    assert body["data"][0] == {"object": "embedding", "index": 0, "error": "invalid_input", "message": "input 0 is no WAV file"}
    assert body["data"][1]["input"]["tokens"] == 1600
    assert body["meta"]["representation"]["modality"] == "audio"


@pytest.mark.parametrize(
    ("file", "fields", "reason", "message"),
    [
        ("config.json", {"variant": "maxi"}, "unsupported_layout", "known: nano, mini"),
        ("config.json", {"format_version": 10}, "layout_not_published", "layout not published: format_version is 10 and not 9"),
        ("config.json", {"audio_pooling": "max"}, "layout_not_published", "audio_pooling is 'max'"),
        ("config.json", {"embedding_dim": 16}, "tensor_shape", "image_encoder.projection"),
        ("config.json", {"max_text_length": 0}, "invalid_package", "max_text_length"),
        ("components/text/config.json", {"model_type": "roberta"}, "invalid_package", "of model_type bert"),
        ("components/image/config.json", {"vision_config": None}, "invalid_package", "has no vision_config"),
        ("components/audio/config.json", {"encoder_layers": 2}, "missing_tensor", "audio_encoder.encoder.layers.1"),
        ("components/audio_clap/preprocessor_config.json", {"truncation": "fusion"}, "invalid_package", "rand_trunc"),
        ("components/audio/preprocessor_config.json", {"sampling_rate": 8000}, "invalid_package", "16000 Hz"),
        ("components/image/preprocessor_config.json", {"size": 64}, "invalid_package", "32 x 32"),
    ],
)  # fmt: skip
def test_packages_that_differ_are_refused(
    models: MultimodalModels, tmp_path: Path, file: str, fields: dict[str, object], reason: str, message: str
) -> None:
    folder = tmp_path / "package"
    shutil.copytree(models.folder("omni-nano"), folder)
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(ArtifactError, match=message) as refused:
        load(folder)
    assert refused.value.reason == reason


def test_files_and_tensors_are_all_there_and_no_more(models: MultimodalModels, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(models.folder("omni-mini"), folder)
    weights = load_file(folder / "model.safetensors")
    for changed, reason in (
        ({**weights, "fusion.weight": torch.zeros(2)}, "unexpected_tensor"),
        ({name: value for name, value in weights.items() if name != "audio_residual.scale"}, "missing_tensor"),
        ({**weights, "image_model.vision_model.extra": torch.zeros(2)}, "unexpected_tensor"),
    ):
        save_file(changed, folder / "model.safetensors")
        with pytest.raises(ArtifactError) as refused:
            load(folder)
        assert refused.value.reason == reason
    (folder / "components/audio/config.json").unlink()
    with pytest.raises(ArtifactError, match=r"lacks components/audio/config\.json"):
        load(folder)
