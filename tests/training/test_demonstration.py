"""Training, and what it is worth; transformers and numpy compute the answers once more from the files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from scipy.stats import binomtest
from transformers import AutoModel, AutoTokenizer

from headway.training.head_fit import fit_head
from headway.training.texts import TASKS, examples
from tests.training.trained import trained

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("task", TASKS)
def test_a_head_is_better_than_the_commonest_label_on_unseen_templates(task: str) -> None:
    result = trained()[1][task]
    right = round(result.accuracy * result.count)
    assert binomtest(right, result.count, result.majority, alternative="greater").pvalue < 0.001


@pytest.mark.parametrize("task", ["jailbreak", "domain"])
def test_the_package_holds_the_head_that_was_measured(task: str) -> None:
    place, results = trained()
    tensors = load_file(place / "sentence_heads.safetensors")
    tokenizer, model = AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place)
    held_out = examples(task, "held_out")
    states = []
    with torch.inference_mode():
        for example in held_out:
            states.append(model(**tokenizer(example.text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy())
    hidden = np.tanh(np.array(states) @ tensors[f"{task}.dense.weight"].T + tensors[f"{task}.dense.bias"])
    chosen = (hidden @ tensors[f"{task}.out.weight"].T + tensors[f"{task}.out.bias"]).argmax(1)
    labels = next(head["labels"] for head in json.loads((place / "sentence_heads.json").read_text())["heads"] if head["name"] == task)
    right = sum(labels[n] == example.label for n, example in zip(chosen, held_out, strict=True))
    assert right / len(held_out) == pytest.approx(results[task].accuracy)


def test_the_package_says_that_it_is_a_demonstration() -> None:
    place, results = trained()
    readme = (place / "README.md").read_text()
    assert "Demonstration" in readme
    assert "not fit to" in readme
    assert all(f"`{task}`" in readme for task in results)


def test_two_labels_keep_the_odds_of_one_logit() -> None:
    chance = np.random.default_rng(1)
    states: Any = chance.normal(size=(80, 4))
    labels = ["b" if state[0] + 0.1 * chance.normal() > 0 else "a" for state in states]
    head = fit_head(states, labels, list(range(80)), ("a", "b"))
    logits = head.logits(states)
    np.testing.assert_allclose(logits[:, 0], -logits[:, 1], atol=1e-5)
    assert np.mean([("a", "b")[n] == label for n, label in zip(logits.argmax(1), labels, strict=True)]) > 0.9
