"""Embedders against sentence-transformers: every backbone, alone and batched, prompts, dimensions, exits, token ids."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from headway.artifacts.resolve import resolve
from headway.kernels.integer_reference import reference_integers
from headway.kernels.torch_backend import TORCH
from headway.runtime.family import Dtype
from headway.runtime.package import Package
from headway.runtime.tasks.fixtures import VARIANTS
from headway.wire.embeddings import EmbeddingsRequest, Text, TokenIds
from tests.runtime.tasks.task_models import FAMILY, TaskModels, answer, answer_together, load
from tests.runtime.tasks.texts import TEXTS

BACKBONES = sorted({name for task, name in VARIANTS.values() if task == "embedding"})
LONG = "The cafeteria opens at eight, write to Dana. " * 120


def vectors(body: dict) -> np.ndarray:
    return np.array([entry["embedding"] for entry in body["data"]])


def cosines(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return (found * expected).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_vectors_of_every_backbone(task_models: TaskModels, backbone: str) -> None:
    oracle = SentenceTransformer(str(task_models.folder(f"embedding-{backbone}")), device="cpu")
    model = task_models.load(f"embedding-{backbone}")
    texts = [*TEXTS, LONG]
    for kind in ("query", "document"):
        expected = np.stack([oracle.encode(text, prompt_name=kind) for text in texts])
        request = EmbeddingsRequest(tuple(Text(text) for text in texts), input_type=kind, overflow="truncate")
        for body in (answer(model, "embeddings", request), answer_together(model, "embeddings", request)):
            found = vectors(body)
            assert cosines(found, expected).min() >= 0.99999
            assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5
            assert [entry["input"]["truncated"] for entry in body["data"]] == [False] * len(TEXTS) + [True]
    # Texts are told apart at all: the comparison above could not fail otherwise.
    assert (expected @ expected.T)[~np.eye(len(texts), dtype=bool)].min() < 0.97


@pytest.mark.e2e
def test_minilm_equals_sentence_transformers() -> None:
    folder = resolve("all-minilm-l6-v2")
    oracle = SentenceTransformer(str(folder), device="cpu")
    model = load(folder)
    texts = [*TEXTS, "A long story. " * 300]
    expected = oracle.encode(texts, batch_size=len(texts))
    request = EmbeddingsRequest(tuple(Text(text) for text in texts), overflow="truncate")
    for body in (answer(model, "embeddings", request), answer_together(model, "embeddings", request)):
        assert cosines(vectors(body), expected).min() >= 0.99999
        used = body["data"][-1]["input"]
        assert used == {"tokens": used["tokens"], "processed_tokens": 256, "truncated": True, "tokens_lower_bound": True}


@pytest.mark.e2e
def test_minilm_in_bfloat16_and_int8_points_in_the_same_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.models.encoders.load.default_kernels", lambda dtype: replace(TORCH, integers=reference_integers(32)))
    folder = resolve("all-minilm-l6-v2")
    request = EmbeddingsRequest(tuple(Text(text) for text in TEXTS))
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16", "int8")
    models = [load(folder, dtype) for dtype in dtypes]
    wide, narrow, integers = (vectors(answer(model, "embeddings", request)) for model in models)
    assert cosines(wide, narrow).min() >= 0.999
    assert 0.999 <= cosines(wide, integers).min() < cosines(wide, narrow).min()
    sizes = [model.memory_bytes for model in models]
    assert sizes[0] > 1.9 * sizes[1] > 2.2 * sizes[2]
    assert [model.facts.dtype for model in models] == list(dtypes)


def test_int8_is_offered_where_our_own_layers_compute(task_models: TaskModels) -> None:
    for backbone, dtypes in (("bert", ("float32", "bfloat16", "int8")), ("electra", ("float32", "bfloat16"))):
        folder = task_models.folder(f"embedding-{backbone}")
        assert FAMILY.describe(Package(str(folder), folder)).dtypes == dtypes


def test_dimensions_are_cut_before_they_are_normalized(task_models: TaskModels) -> None:
    folder = task_models.folder("nested-modernbert")
    model = task_models.load("nested-modernbert")
    for size in (16, 32, 64):
        oracle = SentenceTransformer(str(folder), device="cpu", truncate_dim=size)
        expected = oracle.encode(list(TEXTS), normalize_embeddings=True)
        body = answer(model, "embeddings", EmbeddingsRequest(tuple(Text(text) for text in TEXTS), dimensions=size))
        assert vectors(body).shape == (len(TEXTS), size)
        assert cosines(vectors(body), expected).min() >= 0.99999
        assert np.abs(np.linalg.norm(vectors(body), axis=1) - 1).max() < 1e-5
        assert body["meta"]["representation"] == {"layer": 3, "dimension": size, "normalized": True}


def test_exits_are_hidden_states_as_they_are_between_layers(task_models: TaskModels) -> None:
    """`intermediate_normalization: none`: only the last layer has the final norm, as in the hidden states of transformers."""
    folder = task_models.folder("nested-modernbert")
    model = task_models.load("nested-modernbert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModel.from_pretrained(folder).eval()
    for text in TEXTS:
        with torch.inference_mode():
            states = network(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        for layer in (1, 2, 3):
            expected = states[layer][0].mean(0).double().numpy()
            body = answer(model, "embeddings", EmbeddingsRequest((Text(text),), layer=layer))
            assert cosines(vectors(body), expected[None]).min() >= 0.99999
            assert body["meta"]["representation"]["layer"] == layer


def test_rows_of_different_exits_share_a_pass(task_models: TaskModels) -> None:
    model = task_models.load("nested-modernbert")
    rows = [next(model.planners["embeddings"](EmbeddingsRequest((Text(text),), layer=layer)))[0] for text in TEXTS for layer in (1, 3)]
    together = model.forward(rows)
    alone = [model.forward([row])[0] for row in rows]
    assert all(np.abs(a - b).max() <= 1e-5 for a, b in zip(together, alone, strict=True))


def test_token_ids_read_as_their_text(task_models: TaskModels) -> None:
    for variant in ("embedding-bert", "embedding-roberta"):
        model = task_models.load(variant)
        tokenizer = AutoTokenizer.from_pretrained(task_models.folder(variant))
        ids = [tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]
        by_text = answer(model, "embeddings", EmbeddingsRequest(tuple(Text(text) for text in TEXTS)))
        by_ids = answer(model, "embeddings", EmbeddingsRequest(tuple(TokenIds(each) for each in ids)))
        assert by_ids["data"] == by_text["data"]


@pytest.mark.parametrize("variant", ["embedding-roberta", "embedding-xlm-roberta", "embedding-qwen3"])
def test_texts_are_lowered_if_the_package_says_so(task_models: TaskModels, tmp_path: Path, variant: str) -> None:
    folder = tmp_path / "package"
    shutil.copytree(task_models.folder(variant), folder)
    path = folder / "sentence_bert_config.json"
    path.write_text(path.read_text().replace('"do_lower_case": false', '"do_lower_case": true'))
    expected = SentenceTransformer(str(folder), device="cpu").encode(list(TEXTS))
    request = EmbeddingsRequest(tuple(Text(text) for text in TEXTS))
    assert cosines(vectors(answer(load(folder), "embeddings", request)), expected).min() >= 0.99999
    assert cosines(vectors(answer(task_models.load(variant), "embeddings", request)), expected).min() < 0.999
