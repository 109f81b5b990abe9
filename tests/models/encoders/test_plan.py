"""What is known of an encoder before its weights are read: where it begins, what remains for heads, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.artifacts.model_cards import card_of_path
from headway.errors import ArtifactError, ConfigError, HeadwayError, NotBuiltError
from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_encoder
from headway.models.encoders.plan import plan_encoder
from headway.quantization.weight_reader import WeightReader
from tests.models.encoders.rows import random_rows
from tests.models.encoders.tiny_encoders import NATIVE, MakeEncoder

ROWS = random_rows((5, 9))


def rewritten(folder: Path, to: Path, tensors: dict[str, torch.Tensor], **config: Any) -> Path:
    """The checkpoint with other tensors, and fields of its config changed."""
    shutil.copytree(folder, to)
    save_file(tensors, to / "model.safetensors")
    old = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**old, **config}))
    return to


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("name", "prefix", "heads"),
    [
        ("bert", "bert.", {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"}),
        ("roberta", "roberta.", {"classifier.dense.weight", "classifier.dense.bias", "classifier.out_proj.weight", "classifier.out_proj.bias"}),
        ("distilbert", "distilbert.", {"pre_classifier.weight", "pre_classifier.bias", "classifier.weight", "classifier.bias"}),
        ("mpnet", "mpnet.", {"classifier.dense.weight", "classifier.dense.bias", "classifier.out_proj.weight", "classifier.out_proj.bias"}),
        ("deberta-v3", "deberta.", {"pooler.dense.weight", "pooler.dense.bias", "classifier.weight", "classifier.bias"}),
        ("modernbert", "model.", {"head.dense.weight", "head.norm.weight", "classifier.weight", "classifier.bias"}),
        ("electra", "electra.", {"classifier.dense.weight", "classifier.dense.bias", "classifier.out_proj.weight", "classifier.out_proj.bias"}),
    ],
)  # fmt: skip
def test_a_classifier_leaves_its_head(make: MakeEncoder, name: str, prefix: str, heads: set[str]) -> None:
    classifier = make(name, "ForSequenceClassification")
    plan = plan_encoder(card_of_path(classifier.folder, "tiny"))
    assert plan.prefix == prefix
    assert set(plan.remaining) == heads
    assert plan.parameters == plan.card.parameters - sum(plan.card.tensors[head].elements for head in heads)
    encoder = load_encoder(plan.card, torch.float32)
    with torch.no_grad():
        expected = classifier.model.base_model(torch.tensor([ROWS[1]])).last_hidden_state[0]
    assert (encoder.encode(pack([ROWS[1]])).last - expected).abs().max() <= 1e-4
    with WeightReader(plan.card) as reader:
        assert torch.equal(reader.tensor("classifier.bias" if "classifier.bias" in heads else "classifier.out_proj.bias"),
                           classifier.model.state_dict()["classifier.bias" if "classifier.bias" in heads else "classifier.out_proj.bias"])  # fmt: skip


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_two_encoders_need_a_prefix(make: MakeEncoder, tmp_path: Path, name: str) -> None:
    tiny = make(name)
    own = tensors_of(tiny.folder)
    both = {f"{side}.{each}": tensor + (0.1 if side == "score" else 0.0) for each, tensor in own.items() for side in ("choice", "score")}
    folder = rewritten(tiny.folder, tmp_path / "both", both)
    plan = plan_encoder(card_of_path(folder, "both"), "choice.")
    assert {each for each in plan.remaining if each.startswith("choice.")} == {f"choice.{each}" for each in own if "pooler" in each}
    found = load_encoder(folder, torch.float32, prefix="choice.").encode(pack(ROWS)).last
    assert (found[:5] - tiny.states(ROWS[0])[-1]).abs().max() <= 1e-4
    assert (load_encoder(folder, torch.float32, prefix="score.").encode(pack(ROWS)).last - found).abs().max() > 1e-2
    with pytest.raises(ArtifactError) as refused:
        plan_encoder(card_of_path(folder, "both"))
    assert refused.value.reason == ("ambiguous_encoder" if name == "bert" else "missing_tensor")


def test_gamma_and_beta(make: MakeEncoder, tmp_path: Path) -> None:
    tiny = make("bert")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors_of(tiny.folder).items()
    }
    folder = rewritten(tiny.folder, tmp_path / "old", old)
    found = load_encoder(folder, torch.float32).encode(pack(ROWS)).last
    assert (found[5:] - tiny.states(ROWS[1])[-1]).abs().max() <= 1e-4


@pytest.mark.parametrize(("name", "unused"), [("roberta", "embeddings.position_ids"), ("deberta-v3", "embeddings.position_embeddings.weight")])
def test_tensors_that_no_model_reads_do_not_remain(make: MakeEncoder, tmp_path: Path, name: str, unused: str) -> None:
    tiny = make(name)
    folder = rewritten(tiny.folder, tmp_path / "more", {**tensors_of(tiny.folder), unused: torch.ones(90, 3), "head": torch.ones(1)})
    assert set(plan_encoder(card_of_path(folder, "more")).remaining) - {"pooler.dense.weight", "pooler.dense.bias"} == {"head"}


@pytest.mark.parametrize("name", ["modernbert-biased", "mmbert-32k"])
def test_rotary_settings_as_transformers_4_wrote_them(make: MakeEncoder, tmp_path: Path, name: str) -> None:
    tiny = make(name)
    settings = NATIVE[name][1]
    old = {field: settings.get(field) for field in ("global_rope_theta", "local_rope_theta", "rope_scaling", "global_attn_every_n_layers")}
    folder = rewritten(tiny.folder, tmp_path / "old", tensors_of(tiny.folder), **old, rope_parameters=None, layer_types=None)
    row = random_rows((60,))[0]
    found = load_encoder(folder, torch.float32).encode(pack([row])).last
    assert (found - tiny.states(row)[-1]).abs().max() <= 1e-4


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("bert", lambda tensors: tensors.pop("encoder.layer.2.output.dense.bias"), "missing_tensor"),
        ("bert", lambda tensors: tensors.update({"embeddings.LayerNorm.weight": torch.ones(31)}), "tensor_shape"),
        ("modernbert", lambda tensors: tensors.pop("layers.4.mlp.Wo.weight"), "missing_tensor"),
        ("electra", lambda tensors: tensors.pop("encoder.layer.0.output.dense.weight"), "missing_tensor"),
        ("electra", lambda tensors: tensors.update({"embeddings.LayerNorm.weight": torch.ones(15)}), "tensor_shape"),
        ("bert", lambda tensors: tensors.update({"embeddings.LayerNorm.bias": torch.ones(32, dtype=torch.int32)}), "unsupported_tensor_type"),
    ],
)  # fmt: skip
def test_damaged_checkpoints(make: MakeEncoder, tmp_path: Path, name: str, change: Any, reason: str) -> None:
    tiny = make(name)
    tensors = tensors_of(tiny.folder)
    change(tensors)
    folder = rewritten(tiny.folder, tmp_path / "damaged", tensors)
    with pytest.raises(HeadwayError) as refused:
        plan_encoder(card_of_path(folder, "damaged"))
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("name", "config", "param"),
    [
        ("bert", {"num_attention_heads": 5}, "num_attention_heads"),
        ("bert", {"hidden_size": "wide"}, "hidden_size"),
        ("roberta", {"pad_token_id": 89}, "pad_token_id"),
        ("mpnet", {"max_position_embeddings": 2}, "max_position_embeddings"),
        ("deberta-v3", {"position_buckets": 1}, "position_buckets"),
        ("deberta-v3", {"position_buckets": 120}, "position_buckets"),
        ("deberta-v2", {"conv_kernel_size": 4}, "conv_kernel_size"),
        ("modernbert", {"layer_types": ["full_attention"]}, "layer_types"),
    ],
)
def test_configs_that_cannot_be(make: MakeEncoder, tmp_path: Path, name: str, config: dict[str, Any], param: str) -> None:
    tiny = make(name)
    folder = rewritten(tiny.folder, tmp_path / "odd", tensors_of(tiny.folder), **config)
    with pytest.raises(ArtifactError) as refused:
        plan_encoder(card_of_path(folder, "odd"))
    assert (refused.value.reason, refused.value.param) == ("invalid_model_config", param)


def test_dtypes_and_batch_invariance_that_are_not_there(make: MakeEncoder) -> None:
    with pytest.raises(ConfigError) as refused:
        load_encoder(make("bert").folder, torch.float16)
    assert refused.value.reason == "unsupported_dtype"
    for name in ("deberta-v3", "electra"):
        with pytest.raises(NotBuiltError, match="batch invariance"):
            load_encoder(make(name).folder, torch.float32, INVARIANT)


def test_progress_ends_at_the_bytes_of_the_encoder(make: MakeEncoder) -> None:
    seen: list[tuple[int, int]] = []
    encoder_only = make("modernbert")
    load_encoder(encoder_only.folder, torch.float32, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (seen[-1][1], 4 * sum(tensor.numel() for tensor in tensors_of(encoder_only.folder).values()))
