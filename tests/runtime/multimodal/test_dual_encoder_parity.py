"""CLIP and SigLIP against transformers: its models, its tokenizers, its image processors in their Pillow variants."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from headway.runtime.selfcheck.probe import probe
from headway.wire.embeddings import Media, Text
from tests.runtime.multimodal.multimodal_models import MultimodalModels, ask, ask_together, cosines, load, vectors
from tests.runtime.multimodal.pictures import encoded, picture, png

KINDS = ("clip", "siglip")
TEXTS = ("a photo of a cat", "Berlin at night, seen from above", "call Dana Wells", "a photo of a dog")
PALETTE = encoded(picture(60, 44, seed=7).quantize(32))
SHEER = encoded(picture(60, 44, seed=7).quantize(32), transparency=3)
IMAGES = (
    png(50, 40), png(33, 90, "RGBA", 1), png(32, 32, "L", 2), png(300, 31, seed=3), png(7, 9, seed=4), png(41, 40, "LA", 5), PALETTE, SHEER,
    encoded(picture(64, 48, seed=6), "JPEG", quality=80), encoded(picture(64, 48, seed=8), "WEBP", lossless=True),
    encoded(picture(64, 48, seed=9).convert("CMYK"), "JPEG"),
)  # fmt: skip
CLASSES = {
    "clip": (transformers.CLIPModel, transformers.CLIPImageProcessorPil), "siglip": (transformers.SiglipModel, transformers.SiglipImageProcessorPil),
}  # fmt: skip


def expected_texts(folder: Path, kind: str, texts: tuple[str, ...]) -> npt.NDArray[np.float64]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = CLASSES[kind][0].from_pretrained(folder).eval()
    with torch.inference_mode():
        if kind == "siglip":  # its processor fills texts up and gives no mask
            ids = tokenizer(list(texts), padding="max_length", max_length=64, return_tensors="pt")["input_ids"]
            return np.asarray(model.get_text_features(input_ids=ids).pooler_output.double().numpy())
        return np.asarray(model.get_text_features(**tokenizer(list(texts), padding=True, return_tensors="pt")).pooler_output.double().numpy())


def expected_images(folder: Path, kind: str, images: tuple[bytes, ...]) -> npt.NDArray[np.float64]:
    model_class, processor_class = CLASSES[kind]
    processor = processor_class.from_pretrained(folder)
    with torch.inference_mode():
        pixels = processor([Image.open(io.BytesIO(image)) for image in images], return_tensors="pt")["pixel_values"]
        return np.asarray(model_class.from_pretrained(folder).eval().get_image_features(pixels).pooler_output.double().numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_images_equal_transformers_in_any_company(models: MultimodalModels, kind: str) -> None:
    folder = models.folder(kind)
    model = models.load(kind)
    expected = np.concatenate([expected_texts(folder, kind, TEXTS), expected_images(folder, kind, IMAGES)])
    order = np.random.default_rng(1).permutation(len(expected))
    inputs: list[Any] = [*(Text(text) for text in TEXTS), *(Media("image", image) for image in IMAGES)]
    mixed = [inputs[n] for n in order]
    for body in (ask(model, *mixed), ask_together(model, *mixed)):
        assert cosines(vectors(body), expected[order]).min() >= 0.99999
        assert [entry["index"] for entry in body["data"]] == list(range(len(order)))
        assert "modality" not in body["meta"]["representation"]


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_a_fixture_differ_clearly(models: MultimodalModels, kind: str) -> None:
    """Else parity would say nothing."""
    model = models.load(kind)
    for inputs in ([Text(text) for text in TEXTS], [Media("image", image) for image in IMAGES[:5]]):
        found = vectors(ask(model, *inputs))
        likeness = found @ found.T - 2 * np.eye(len(found))
        assert likeness.max() < 0.9995


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_points_in_the_same_direction(models: MultimodalModels, kind: str) -> None:
    inputs = (*(Text(text) for text in TEXTS), *(Media("image", image) for image in IMAGES[:3]))
    narrow = load(models.folder(kind), "bfloat16")
    assert narrow.memory_bytes * 2 == models.load(kind).memory_bytes
    assert cosines(vectors(ask(narrow, *inputs)), vectors(ask(models.load(kind), *inputs))).min() >= 0.995


@pytest.mark.parametrize("kind", KINDS)
def test_the_probe_finds_that_company_changes_nothing(models: MultimodalModels, kind: str) -> None:
    found = probe(models.load(kind), batch_invariant=False)
    assert found.may_share
    assert found.rows == 12


def test_older_clip_configs_read_the_largest_token(models: MultimodalModels, tmp_path: Path) -> None:
    """`eos_token_id` 2 in a config means: the token with the largest number, wherever it is. And old exports store positions."""
    folder = tmp_path / "old"
    shutil.copytree(models.folder("clip"), folder)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["eos_token_id"] = 2
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    positions = {"text_model.embeddings.position_ids": torch.arange(77)[None], "vision_model.embeddings.position_ids": torch.arange(17)[None]}
    save_file(weights | positions, folder / "model.safetensors", metadata={"format": "pt"})
    expected = np.concatenate([expected_texts(folder, "clip", (text,)) for text in TEXTS])
    body = ask(load(folder), *(Text(text) for text in TEXTS))
    assert cosines(vectors(body), expected).min() >= 0.99999
