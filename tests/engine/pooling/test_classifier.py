"""Checkpoints with a classification head, against transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, LlamaConfig, Qwen2Config

from headway import LLM, SamplingParams
from headway.errors import ArtifactError, ConfigError, RequestError
from tests.engine.tiny_folder import write_byte_tokenizer
from tests.models.tiny_models import randomize
from tests.models.tiny_sizes import SIZES

BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 128, "kv_cache_memory_bytes": 16 << 20}
PROMPTS = [[(length * 31 + 7 * k) % 150 + 5 for k in range(length)] for length in (1, 20, 90)]
KINDS = {"LlamaForSequenceClassification": (LlamaConfig, 3), "Qwen2ForSequenceClassification": (Qwen2Config, 1)}


def write(folder: Path, name: str, **fields: Any) -> Any:
    made, classes = KINDS[name]
    config = made(**SIZES, num_hidden_layers=2, num_labels=classes, **fields)
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager").eval()
    randomize(model)
    model.save_pretrained(folder)
    write_byte_tokenizer(folder)
    return model


@pytest.mark.parametrize("name", list(KINDS))
def test_probabilities_equal_transformers(tmp_path: Path, name: str) -> None:
    oracle = write(tmp_path, name)
    llm = LLM(str(tmp_path), max_num_batched_tokens=16, **BASE)
    for output, tokens in zip(llm.classify(PROMPTS), PROMPTS, strict=True):
        with torch.no_grad():
            logits = oracle(torch.tensor([tokens])).logits[0]
        want = torch.sigmoid(logits) if len(logits) == 1 else torch.softmax(logits, -1)
        assert output.outputs is not None, output.error
        torch.testing.assert_close(torch.tensor(output.outputs.probs), want, rtol=0, atol=1e-4)
    with pytest.raises(RequestError) as caught:
        llm.generate("x", SamplingParams(max_tokens=1), use_tqdm=False)
    assert caught.value.reason == "task_unsupported"
    assert llm.embed([PROMPTS[0]])[0].outputs is not None


def test_flags_that_contradict_the_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, "LlamaForSequenceClassification", id2label={0: "good", 1: "bad", 2: "ugly"})
    for flags, reason in (({"runner": "generate"}, "runner_conflict"),):
        with pytest.raises(ConfigError) as caught:
            LLM(str(tmp_path), **flags, **BASE)  # type: ignore[arg-type]
        assert caught.value.reason == reason
    llm = LLM(str(tmp_path), runner="pooling", convert="embed", **BASE)
    with pytest.raises(RequestError, match="no classification head"):
        llm.classify("x")
    assert LLM(str(tmp_path), runner="pooling", convert="classify", **BASE)._engine.pooler.labels == ("good", "bad", "ugly")
    with pytest.raises(ArtifactError, match="4 classes"):
        LLM(str(tmp_path), hf_overrides={"id2label": {str(i): "x" for i in range(4)}}, **BASE)
