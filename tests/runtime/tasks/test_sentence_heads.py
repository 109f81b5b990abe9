"""Heads beside the vectors of an embedder; the oracle is transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from transformers import AutoModel, AutoTokenizer

from headway.errors import PackageError
from headway.runtime.tasks.sentence_heads import LAYOUT, WEIGHTS
from headway.wire.classify import ClassifyRequest, parse_classify
from headway.wire.embeddings import parse_embeddings
from tests.runtime.tasks.task_models import FAMILY, answer, answer_together, load

HEADS = [{"name": "topic", "labels": ["a", "b", "c"], "activation": "tanh"}, {"name": "mood", "labels": ["good", "bad"]}]
TEXTS = ["a first text", "another, longer text of more words"]


def weights(chance: np.random.Generator) -> dict[str, Any]:
    shapes = {"topic.dense.weight": (64, 64), "topic.dense.bias": (64,), "topic.out.weight": (3, 64), "topic.out.bias": (3,),
              "mood.out.weight": (2, 64), "mood.out.bias": (2,)}  # fmt: skip
    return {name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def package(folder: Path, heads: Any = HEADS, **change: Any) -> dict[str, Any]:
    """An embedder with heads; a tensor of `change` that is None is left out. Returns its tensors."""
    FAMILY.write_fixture(folder, "embedding-bert", 3)
    tensors = {name: tensor for name, tensor in (weights(np.random.default_rng(1)) | change).items() if tensor is not None}
    (folder / LAYOUT).write_text(json.dumps({"version": 1, "heads": heads}))
    save_file(tensors, folder / WEIGHTS)
    return tensors


def classify(**body: Any) -> ClassifyRequest:
    return parse_classify(body)


def pooled(folder: Path, text: str) -> Any:
    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.inference_mode():
        return AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0].mean(0).numpy()


def test_each_head_gives_its_distribution(tmp_path: Path) -> None:
    tensors = package(tmp_path)
    model = load(tmp_path)
    for head, labels in (("topic", ["a", "b", "c"]), ("mood", ["good", "bad"])):
        body = answer(model, "classify", classify(input=TEXTS, head=head))
        assert (body["head"], body["kind"], body["labels"]) == (head, "sequence", labels)
        for text, result in zip(TEXTS, body["results"], strict=True):
            state = pooled(tmp_path, text)
            if head == "topic":
                state = np.tanh(tensors["topic.dense.weight"] @ state + tensors["topic.dense.bias"])
            logits = tensors[f"{head}.out.weight"] @ state + tensors[f"{head}.out.bias"]
            wanted = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
            np.testing.assert_allclose(result["probabilities"], wanted, atol=1e-5)


def test_the_first_head_is_the_primary_one_and_vectors_are_served_as_before(tmp_path: Path) -> None:
    package(tmp_path / "heads")
    shutil.copytree(tmp_path / "heads", tmp_path / "plain", ignore=shutil.ignore_patterns("sentence_heads.*"))
    with_heads, plain = load(tmp_path / "heads"), load(tmp_path / "plain")
    assert answer(with_heads, "classify", classify(input="text"))["head"] == "topic"
    request = parse_embeddings({"input": TEXTS})
    assert answer(with_heads, "embeddings", request)["data"] == answer(plain, "embeddings", request)["data"]
    assert [head.name for head in with_heads.facts.heads] == ["topic", "mood"]
    assert plain.facts.heads == ()


def test_windows_read_a_long_text(tmp_path: Path) -> None:
    package(tmp_path)
    long = "word " * 900
    results = [answer(load(tmp_path), "classify", classify(input=long, options=options))["results"][0] for options in ({}, {"overflow": "window"})]
    assert results[0]["error"] == "max_length_exceeded"
    assert len(results[1]["windows"]) > 1


def test_heads_of_one_text_share_a_forward_pass(tmp_path: Path) -> None:
    package(tmp_path)
    model = load(tmp_path)
    request = classify(input=TEXTS, head="mood")
    alone = answer(model, "classify", request)["results"]
    together = answer_together(model, "classify", request, tuple(model.probe_rows(Random(1), 7)))["results"]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one["probabilities"], other["probabilities"], atol=1e-6)


@pytest.mark.parametrize(("heads", "message"), [
    ([], "1 to 64"), ([{"name": "a.b", "labels": ["x", "y"]}], "without dots"), ([{"name": "mood", "labels": ["x"]}], "two or more"),
    ([{"name": "mood", "labels": ["x", "x"]}], "different"), ([HEADS[1], HEADS[1]], "one name"), ([{**HEADS[1], "activation": "sine"}], "activation"),
    ([{**HEADS[1], "threshold": 0.5}], "nothing else"), ([HEADS[0]], "no place"), ([*HEADS, {"name": "new", "labels": ["x", "y"]}], "lack"),
    ([HEADS[0], {"name": "mood", "labels": ["x", "y", "z"]}], "shape"),
])  # fmt: skip
def test_layouts_that_do_not_fit_are_refused(tmp_path: Path, heads: Any, message: str) -> None:
    package(tmp_path, heads)
    with pytest.raises(PackageError, match=message):
        load(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    package(tmp_path)
    (tmp_path / LAYOUT).write_text(json.dumps({"version": 2, "heads": HEADS}))
    with pytest.raises(PackageError, match="version must be 1"):
        load(tmp_path)
