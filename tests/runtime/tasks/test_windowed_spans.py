"""Token heads in windows: which window speaks for a token, and that spans are decoded once over the whole text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from headway.runtime.row import Outcome, Row
from headway.wire.classify import ClassifyRequest, TextInput, WindowOption
from tests.runtime.tasks.planted_models import TAGS, Tagger
from tests.runtime.tasks.task_models import TaskModels, answer

TEXT = "Please call Dana Wells at 555-0142, or write to dana@example.test. She lives in Berlin. " * 12


class ByToken(Tagger):
    """Logits that follow from a token's id alone: context changes nothing."""

    def __init__(self, folder: Path):
        super().__init__(folder, {})

    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        self.seen += [self.content(row) for row in rows]
        return [np.stack([np.random.default_rng(token).normal(size=len(TAGS)) for token in row.token_ids]) for row in rows]


@pytest.mark.parametrize("overlap", [0, 5, 30])
def test_without_context_windows_find_the_spans_of_the_whole_text(task_models: TaskModels, overlap: int) -> None:
    for variant in ("token-bert", "token-roberta", "token-xlm-roberta"):
        model = ByToken(task_models.folder(variant))
        whole = answer(model, "classify", ClassifyRequest((TextInput(TEXT[:800]),), return_tokens=True))["results"][0]
        request = ClassifyRequest((TextInput(TEXT[:800]),), overflow="window", window=WindowOption(40, overlap), return_tokens=True)
        windowed = answer(model, "classify", request)["results"][0]
        assert len(windowed["windows"]) > 3
        assert len(whole["spans"]) > 20
        assert windowed["spans"] == whole["spans"]
        assert windowed["tokens"] == whole["tokens"]


def test_each_token_is_read_by_the_window_with_most_context(task_models: TaskModels) -> None:
    folder = task_models.folder("token-bert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForTokenClassification.from_pretrained(folder).eval()
    ids = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    request = ClassifyRequest((TextInput(TEXT),), overflow="window", window=WindowOption(66, 24), return_tokens=True)
    result = answer(task_models.load("token-bert"), "classify", request)["results"][0]
    laid = [(window["start"], window["end"]) for window in result["windows"]]
    assert len(laid) > 5
    shares = []
    for start, end in laid:
        row = torch.tensor([[tokenizer.cls_token_id, *ids[start:end], tokenizer.sep_token_id]])
        with torch.inference_mode():
            shares.append(network(row).logits[0, 1:-1].softmax(-1).numpy())
    assert len(result["tokens"]) == len(ids)
    differ = 0
    for place, token in enumerate(result["tokens"]):
        margins = [min(place - start, end - 1 - place) if start <= place < end else -1 for start, end in laid]
        chosen = margins.index(max(margins))
        seen = shares[chosen][place - laid[chosen][0]]
        assert abs(token["probability"] - seen.max()) <= 1e-3
        others = [shares[n][place - laid[n][0]].max() for n, margin in enumerate(margins) if margin >= 0 and n != chosen]
        differ += any(abs(other - seen.max()) > 1e-2 for other in others)
    assert differ > 5  # the choice of the window matters here
