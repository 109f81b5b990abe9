"""What the fallback refuses and why, before weights are read where that is possible; and what it checks when they are."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.torch_backend import TORCH
from headway.models.fallback import planned as fallback_module
from headway.models.fallback.model import FallbackModel
from headway.models.fallback.planned import plan_fallback
from headway.models.load import load_model
from tests.models.automatic_configs import config_of
from tests.models.fallback_models import fallback_model
from tests.models.runs import in_chunks
from tests.models.tiny_models import SIZES, TinyModel, make_tiny_model

Fallback = Callable[[str], TinyModel]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fallback")


@pytest.fixture(scope="module")
def gemma(root: Path) -> TinyModel:
    return fallback_model("gemma", root)


@pytest.fixture
def card(gemma: TinyModel) -> ModelCard:
    return inspect(str(gemma.folder))


def card_of(card: ModelCard, architecture: str, config: transformers.PreTrainedConfig) -> ModelCard:
    """As if a checkpoint of this architecture was there: nothing that is refused early may look at its tensors."""
    spelled = json.loads(config.to_json_string(use_diff=False))
    return replace(card, architecture=architecture, model_type=config.model_type, config=spelled)


@pytest.mark.parametrize(
    ("architecture", "model_type", "reason"),
    [
        ("BartForCausalLM", "bart", "does not let its attention be exchanged"),
        ("BloomForCausalLM", "bloom", "does not let its attention be exchanged"),  # ALiBi
        ("MambaForCausalLM", "mamba", "recurrent state"),
        ("RwkvForCausalLM", "rwkv", "recurrent state"),
        ("Qwen3NextForCausalLM", "qwen3_next", "recurrent state|linear_attention"),
        ("JambaForCausalLM", "jamba", "recurrent state|beside keys and values"),
        ("GptOssForCausalLM", "gpt_oss", "attention sinks"),
        ("DeepseekV32ForCausalLM", "deepseek_v32", "sparse attention"),
        ("Llama4ForCausalLM", "llama4_text", "attention mask"),
        ("BertLMHeadModel", "bert", "neither causal nor a window"),
        ("XLNetLMHeadModel", "xlnet", "does not let its attention be exchanged"),
    ],
)
def test_what_cannot_run_is_refused_without_reading_weights(
    card: ModelCard, architecture: str, model_type: str, reason: str
) -> None:
    with pytest.raises(ArtifactError, match=reason) as caught:
        plan_fallback(card_of(card, architecture, config_of(model_type)), 200)
    assert caught.value.reason == "unsupported_architecture"
    assert architecture in caught.value.message


def test_encoder_decoder_models_and_models_of_other_kinds(card: ModelCard) -> None:
    config = {**card.config, "is_encoder_decoder": True}
    for changed, reason in [
        (replace(card, architecture="T5ForConditionalGeneration", model_type="t5"), "no causal language model"),
        (replace(card, architecture="BertForSequenceClassification", model_type="bert"), "no causal language model"),
        (replace(card, config=config), "encoder-decoder"),
    ]:
        with pytest.raises(ArtifactError, match=reason) as caught:
            plan_fallback(changed, 200)
        assert caught.value.reason == "unsupported_architecture"


def test_unknown_architectures_name_the_installed_transformers_and_the_nearest(card: ModelCard) -> None:
    with pytest.raises(ArtifactError) as caught:
        load_model(replace(card, architecture="GemmaXForCausalLM"), torch.float32)
    assert caught.value.reason == "unsupported_architecture"
    for part in (f"transformers {transformers.__version__}", "GemmaForCausalLM", "newer transformers may know it"):
        assert part in caught.value.message


def test_code_of_the_repository_is_never_the_answer(card: ModelCard) -> None:
    config = {**card.config, "auto_map": {"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}}
    with pytest.raises(ArtifactError, match=r"auto_map.*never run"):
        load_model(replace(card, architecture="OwnForCausalLM", config=config), torch.float32)
    # With a class in transformers the code is not needed.
    assert isinstance(load_model(replace(card, config=config), torch.float32), FallbackModel)


def test_gguf_and_quantized_checkpoints(card: ModelCard, tiny: Fallback) -> None:
    with pytest.raises(NotBuiltError, match="GGUF"):
        plan_fallback(replace(card, format="gguf"), 200)
    mixtral = inspect(str(tiny("mixtral").folder))
    with pytest.raises(NotBuiltError, match="GGUF files of architecture MixtralForCausalLM"):
        load_model(replace(mixtral, format="gguf"), torch.float32)
    with pytest.raises(ArtifactError, match="says awq, but no tensor ends in"):
        plan_fallback(replace(card, quantization={"quant_method": "awq"}), 200)
    with pytest.raises(NotBuiltError, match="exl2"):
        plan_fallback(replace(card, quantization={"quant_method": "exl2"}), 200)


def test_a_config_that_transformers_does_not_take(card: ModelCard) -> None:
    for config in ({**card.config, "num_hidden_layers": "many"}, {**card.config, "vocab_size": -1}):
        with pytest.raises(ArtifactError) as caught:
            load_model(replace(card, config=config), torch.float32)
        assert caught.value.reason in ("invalid_model_config", "unsupported_architecture")


def test_chunked_attention_is_fine_where_no_text_is_longer_than_a_chunk(card: ModelCard) -> None:
    config = config_of("llama4_text")
    config.attention_chunk_size = 64
    with pytest.raises(ArtifactError, match="attention mask"):
        plan_fallback(card_of(card, "Llama4ForCausalLM", config), 65)


# ---- weights -------------------------------------------------------------------------------------------------------


def changed_folder(gemma: TinyModel, to: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> ModelCard:
    tensors = load_file(gemma.folder / "model.safetensors")
    change(tensors)
    to.mkdir()
    save_file(tensors, to / "model.safetensors", metadata={"format": "pt"})
    (to / "config.json").write_text((gemma.folder / "config.json").read_text())
    return inspect(str(to))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.pop("model.layers.1.mlp.up_proj.weight"), "missing_tensor"),
        (lambda t: t.update({"model.norm.weight": torch.ones(63)}), "tensor_shape"),
        (lambda t: t.update({"model.layers.1.mlp.up_proj.bias": torch.ones(96)}), "unexpected_tensor"),
    ],
)
def test_tensors_that_are_missing_of_another_shape_or_left_over(
    gemma: TinyModel, tmp_path: Path, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    with pytest.raises(ArtifactError) as caught:
        load_model(changed_folder(gemma, tmp_path / "changed", change), torch.float32)
    assert caught.value.reason == reason
    assert "model." in caught.value.message


def test_progress_is_told_and_the_log_says_that_transformers_runs_it(card: ModelCard, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[int, int]] = []
    with caplog.at_level(logging.WARNING):
        load_model(card, torch.float32, progress=lambda done, total: seen.append((done, total)))
    assert [r.getMessage() for r in caplog.records if "run by transformers" in r.getMessage()] == [
        "GemmaForCausalLM is run by transformers (the fallback), which is slower than a native implementation"
    ]
    assert seen[-1] == (card.weight_bytes, card.weight_bytes)
    assert len({done for done, _ in seen}) > 5


# ---- the self-check ------------------------------------------------------------------------------------------------


class TokenShift(torch.nn.Module):
    """State beside keys and values: each token also sees half of the one before it, in whatever is computed at once."""

    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x + torch.nn.functional.pad(x[:, :-1], (0, 0, 1, 0)))


def test_state_beside_keys_and_values_is_found(card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, original = plan_fallback(card, 200), fallback_module.load_weights

    def shifted(*arguments: Any) -> Any:
        model = original(*arguments)
        model.model.layers[1].mlp = TokenShift(model.model.layers[1].mlp)
        return model

    monkeypatch.setattr(fallback_module, "load_weights", shifted)
    for dtype in (torch.float32, torch.bfloat16):
        with pytest.raises(ArtifactError, match="beside keys and values") as caught:
            plan.load(dtype, TORCH, lambda done, total: None)
        assert caught.value.reason == "unsupported_architecture"


def test_attention_of_its_own_is_found(card: ModelCard) -> None:
    plan = plan_fallback(card, 200)
    calls = tuple(replace(call, scale=call.scale * 1.5) for call in plan.needs.calls)
    with pytest.raises(ArtifactError, match="differ from transformers"):
        replace(plan, needs=replace(plan.needs, calls=calls)).load(torch.float32, TORCH, lambda done, total: None)


def test_windows_come_from_the_masks(root: Path) -> None:
    """The self-check is shorter than real windows, so they are read from the mask: Cohere 2 has one on three of four layers."""
    card = inspect(str(fallback_model("cohere2", root).folder))
    plan = plan_fallback(card, 200)
    assert [call.window for call in plan.needs.calls] == [16, 16, 16, None]
    assert [call.window for call in plan_fallback(card, 16).needs.calls] == [None] * 4


# ---- frequencies that follow the length of a text --------------------------------------------------------------------


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "dynamic", "rope_theta": 1e3, "factor": 4.0},
        {"rope_type": "longrope", "rope_theta": 1e4, "factor": 4.0, "short_factor": [1.0] * 8, "long_factor": [2.0 + i for i in range(8)],
         "original_max_position_embeddings": 32},
    ],
)  # fmt: skip
def test_frequencies_are_those_of_the_longest_text(root: Path, rope: dict[str, Any]) -> None:
    config = transformers.SmolLM3Config(**{**SIZES, "max_position_embeddings": 64}, num_hidden_layers=3, rope_parameters=rope, no_rope_layers=[1, 1, 1])
    model = make_tiny_model(f"smollm3-{rope['rope_type']}", config, root)
    text = torch.randint(3, 160, (100,), generator=torch.Generator().manual_seed(0)).tolist()
    loaded = load_model(inspect(str(model.folder)), torch.float32, context_length=100)
    for size in (100, 9):
        assert (in_chunks(loaded, text, size) - model.logits(text)).abs().max() <= 2e-4
