"""The tower against transformers, where positions round as they do there, and checkpoints that are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.artifacts.inspect import inspect
from headway.artifacts.model_cards import card_of_path
from headway.capacity.card_shape import card_shape
from headway.errors import ArtifactError, HeadwayError, NotBuiltError
from headway.models.load import load_model
from headway.models.plan import plan_model
from headway.models.verdict import verdict
from headway.models.vision.tower import position_ids
from tests.models.vision.tiny_vision import TinyVision, picture, tiny_vision


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vision")


def _card(folder: Path) -> Any:
    return card_of_path(folder, str(folder))


@pytest.mark.parametrize("kind", ["idefics3", "smolvlm"])
def test_rows_equal_those_of_transformers(kind: str, root: Path) -> None:
    tiny = tiny_vision(root, kind)
    model = load_model(_card(tiny.folder), torch.float32)
    assert model.tower is not None
    given = tiny.inputs("<image><image>", [picture(70, 50), picture(20, 90, 1)])
    pixels = torch.cat(list(given["pixel_values"]))
    pixels = pixels[pixels.flatten(1).any(1)]
    with torch.no_grad():
        want = torch.cat(tiny.oracle.model.get_image_features(given["pixel_values"], given["pixel_attention_mask"]).pooler_output)
    assert torch.allclose(model.tower.encode(pixels).flatten(0, 1), want, atol=1e-4)


def test_bfloat16_is_near(root: Path) -> None:
    tiny = tiny_vision(root)
    exact, rounded = (load_model(_card(tiny.folder), dtype) for dtype in (torch.float32, torch.bfloat16))
    assert exact.tower is not None
    assert rounded.tower is not None
    pixels = tiny.inputs("<image>", [picture(70, 50)])["pixel_values"][0]
    found, want = rounded.tower.encode(pixels).float(), exact.tower.encode(pixels)
    assert torch.nn.functional.cosine_similarity(found.flatten(), want.flatten(), dim=0) > 0.999


def test_positions_round_as_in_transformers() -> None:
    from transformers import Idefics3VisionConfig
    from transformers.models.idefics3.modeling_idefics3 import Idefics3VisionEmbeddings

    for side in (*range(1, 70), 128):
        embeddings = Idefics3VisionEmbeddings(Idefics3VisionConfig(hidden_size=1, image_size=side, patch_size=1, num_channels=1))
        embeddings.position_embedding.weight.data = torch.arange(side * side, dtype=torch.float32)[:, None]
        embeddings.patch_embedding.weight.data.zero_()
        assert embeddings.patch_embedding.bias is not None
        embeddings.patch_embedding.bias.data.zero_()
        with torch.no_grad():
            want = embeddings(torch.zeros(1, 1, side, side), torch.ones(1, side, side, dtype=torch.bool))[0, :, 0]
        assert torch.equal(position_ids(side), want.long()), side


def test_inspect_tells_what_it_is(root: Path) -> None:
    tiny = tiny_vision(root)
    card = inspect(str(tiny.folder))
    assert card.architecture == "Idefics3ForConditionalGeneration"
    found = verdict(card)
    assert found.by == "native"
    assert found.images == "read: a SigLIP tower of 2 layers and 0.1 M parameters makes 4 tokens of each 32 x 32 pixels"
    assert card_shape(card).notes == ("0.1 M of the parameters read images; what images take beside them is not reckoned",)
    assert plan_model(card, 512).parameters == sum(p.numel() for p in tiny.oracle.parameters())


def _changed(tiny: TinyVision, folder: Path, config: dict[str, Any] | None = None, drop: str = "", add: str = "") -> Path:
    shutil.copytree(tiny.folder, folder)
    if config is not None:
        stored = json.loads((folder / "config.json").read_text())
        for path, value in config.items():
            *inside, name = path.split(".")
            place = stored
            for part in inside:
                place = place[part]
            place[name] = value
        (folder / "config.json").write_text(json.dumps(stored))
    if drop or add:
        tensors = load_file(folder / "model.safetensors")
        tensors.pop(drop, None)
        if add:
            tensors[add] = torch.zeros(2)
        save_file(tensors, folder / "model.safetensors")
    return folder


REFUSED: tuple[tuple[dict[str, Any], type[HeadwayError], str], ...] = (
    ({"config": {"text_config.model_type": "mamba"}}, NotBuiltError, "not_built"),
    ({"config": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}}, NotBuiltError, "not_built"),
    ({"config": {"vision_config.image_size": 33}}, ArtifactError, "invalid_model_config"),
    ({"config": {"vision_config.image_size": 64}}, ArtifactError, "tensor_shape"),
    ({"config": {"vision_config.num_attention_heads": 5}}, ArtifactError, "invalid_model_config"),
    ({"config": {"vision_config": None}}, ArtifactError, "invalid_model_config"),
    ({"config": {"text_config": []}}, ArtifactError, "invalid_model_config"),
    ({"config": {"scale_factor": 3}}, ArtifactError, "invalid_model_config"),
    ({"config": {"image_token_id": 10_000}}, ArtifactError, "invalid_model_config"),
    ({"drop": "model.vision_model.encoder.layers.1.mlp.fc1.bias"}, ArtifactError, "missing_tensor"),
    ({"drop": "model.connector.modality_projection.proj.weight"}, ArtifactError, "missing_tensor"),
    ({"drop": "model.text_model.norm.weight"}, ArtifactError, "missing_tensor"),
    ({"add": "model.perceiver.weight"}, ArtifactError, "unexpected_tensor"),
)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_checkpoints_that_are_refused(number: int, root: Path, tmp_path: Path) -> None:
    change, kind, reason = REFUSED[number]
    folder = _changed(tiny_vision(root), tmp_path / "changed", **change)
    with pytest.raises(kind) as refused:
        plan_model(_card(folder), 512)
    assert refused.value.reason == reason, refused.value.message
