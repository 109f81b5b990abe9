"""Rerankers against sentence-transformers' CrossEncoder, and exits against a plain numpy reading of the layout."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sentence_transformers import CrossEncoder
from transformers import AutoModel, AutoTokenizer

from headway.errors import ArtifactError, RequestError
from headway.runtime.tasks.fixtures import VARIANTS
from headway.wire.rerank import RerankRequest
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together, load
from tests.runtime.tasks.texts import TEXTS

BACKBONES = sorted({name for task, name in VARIANTS.values() if task == "rerank"})
QUERY = "How high is the Eiffel Tower?"


@pytest.mark.parametrize("backbone", BACKBONES)
def test_scores_of_every_backbone(task_models: TaskModels, backbone: str) -> None:
    oracle = CrossEncoder(str(task_models.folder(f"rerank-{backbone}")), device="cpu")
    expected = oracle.predict([(QUERY, text) for text in TEXTS], batch_size=2)
    model = task_models.load(f"rerank-{backbone}")
    request = RerankRequest(QUERY, TEXTS, return_documents=True)
    for body in (answer(model, "rerank", request), answer_together(model, "rerank", request)):
        results = body["results"]
        assert [result["index"] for result in results] == sorted(range(len(TEXTS)), key=lambda i: -expected[i])
        for result in results:
            assert abs(result["relevance_score"] - expected[result["index"]]) <= 1e-3
            assert abs(1 / (1 + math.exp(-result["logit"])) - result["relevance_score"]) < 1e-9
            assert result["document"] == TEXTS[result["index"]]
        assert body["meta"]["pair_scorer"] == {"layer": 3, "dimension": 64}
        assert body["usage"]["input_tokens"] == sum(result["input"]["tokens"] for result in results)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def exit_logit(folder: Path, layer: int, width: int, text: str) -> float:
    """The layout from its description alone: final-normed first state, cut, linear, GELU, linear."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = network(**tokenizer(QUERY, text, return_tensors="pt"), output_hidden_states=True).hidden_states
        normed = states[layer] if layer == 3 else network.final_norm(states[layer])
    first = normed[0, 0, :width].double().numpy()
    heads = load_file(folder / "classification_heads.safetensors")
    hidden = gelu(heads[f"{layer}.{width}.0.weight"] @ first + heads[f"{layer}.{width}.0.bias"])
    return float((heads[f"{layer}.{width}.3.weight"] @ hidden + heads[f"{layer}.{width}.3.bias"])[0])


def test_trained_exits(task_models: TaskModels) -> None:
    folder = task_models.folder("relevance-modernbert")
    model = task_models.load("relevance-modernbert")
    assert [(each.layer, each.dimension) for each in model.facts.rerank.exits] == [(3, 64), (3, 32), (2, 64), (2, 32)]
    for layer, width in ((3, 64), (3, 32), (2, 64), (2, 32)):
        body = answer_together(model, "rerank", RerankRequest(QUERY, TEXTS[:4], layer=layer, dimensions=width))
        assert body["meta"]["pair_scorer"] == {"layer": layer, "dimension": width}
        for result in body["results"]:
            assert abs(result["logit"] - exit_logit(folder, layer, width, TEXTS[result["index"]])) <= 1e-3


def test_the_models_file_chooses_exits(task_models: TaskModels) -> None:
    folder = task_models.folder("relevance-modernbert")
    model = load(folder, pair_scorer={"layer": 2, "dimension": 32}, pair_scorers=[{"layer": 2, "dimension": 32}])
    assert answer(model, "rerank", RerankRequest(QUERY, TEXTS[:1]))["meta"]["pair_scorer"] == {"layer": 2, "dimension": 32}
    with pytest.raises(RequestError, match="must be one of 2/32, found 3/64"):
        answer(model, "rerank", RerankRequest(QUERY, TEXTS, layer=3, dimensions=64))
    with pytest.raises(ArtifactError, match="heads for 3/64, 3/32, 2/64, 2/32"):
        load(folder, pair_scorer={"layer": 1, "dimension": 32})


def test_failed_pairs_come_last_and_top_n_counts_the_others(task_models: TaskModels) -> None:
    model = task_models.load("rerank-bert")
    documents = ("  ", "open the page", "word " * 600, "a tower", "")
    body = answer(model, "rerank", RerankRequest(QUERY, documents, top_n=1))
    assert [(each["index"], each.get("error")) for each in body["results"][1:]] == [
        (0, "invalid_input"), (2, "max_length_exceeded"), (4, "invalid_input"),
    ]  # fmt: skip
    assert body["results"][0]["index"] in (1, 3)
    assert "document 2 has " in body["results"][2]["message"]
    assert "the limit is 512" in body["results"][2]["message"]
    whole = answer(model, "rerank", RerankRequest(QUERY, documents))
    assert [each["index"] for each in whole["results"][:2]] == sorted((1, 3), key=lambda i: -next(r["logit"] for r in whole["results"] if r["index"] == i))


def test_equal_documents_keep_their_order(task_models: TaskModels) -> None:
    body = answer(task_models.load("rerank-bert"), "rerank", RerankRequest(QUERY, ("a tower",) * 5))
    assert [each["index"] for each in body["results"]] == [0, 1, 2, 3, 4]


def test_a_query_over_the_limit_fails_every_pair(task_models: TaskModels) -> None:
    body = answer(task_models.load("rerank-bert"), "rerank", RerankRequest("word " * 9000, ("a", "b")))
    assert [each["error"] for each in body["results"]] == ["max_length_exceeded"] * 2
    assert "has at least " in body["results"][0]["message"]
