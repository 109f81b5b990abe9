"""The errors that are reported, measured once more in transformers: on what compressed layers really hand on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, CompressedTensorsConfig

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer
from headway.compression.calibration_text import texts_of_file, windows
from tests.compression.tiny_runs import LENGTH, SAMPLES, compressed
from tests.engine.tiny_folder import complete_tiny_model

PARTS = ("q_proj", "k_proj", "v_proj")


@pytest.mark.parametrize("method", ["gptq", "int4-g128"])
def test_error_of_queries_keys_and_values(method: str, tmp_path: Path) -> None:
    """A layer is fed with what the compressed layers before it make: only so can it make up for their errors."""
    model = complete_tiny_model("smollm", tmp_path)
    report = compressed(model.folder, method, tmp_path / "out")
    settings = CompressedTensorsConfig(dequantize=True)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32, attn_implementation="eager", quantization_config=settings).eval()
    before, after = (torch.cat([getattr(each.model.layers[2].self_attn, part).weight for part in PARTS]) for each in (model.oracle, theirs))
    [told] = [each["error"] for each in report.layers if each["module"] == "layers.2.attention.qkv"]
    if report.calibration is None:  # no texts: of the weights
        assert told == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-4)
        return
    tokenizer = load_tokenizer(inspect(str(model.folder)))
    tokens = windows(texts_of_file(tmp_path / "texts.txt", tokenizer), tokenizer, SAMPLES, LENGTH, "texts").tokens
    seen: list[torch.Tensor] = []
    theirs.model.layers[2].self_attn.q_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        theirs(tokens)
    [x] = seen
    assert told == pytest.approx(float((x @ (after - before).t()).norm() / (x @ before.t()).norm()), rel=1e-4)
