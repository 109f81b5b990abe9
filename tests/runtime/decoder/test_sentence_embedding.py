"""A decoder embedder against sentence-transformers: the last token's hidden state of a bare Qwen3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer
from headway.runtime.decoder.loading import load_backbone
from headway.runtime.row import Row
from tests.runtime.decoder.qwen3_embedder import END, QUERY_PROMPT, write_qwen3_embedder
from tests.runtime.decoder.trunks import hidden_row

TEXTS = ["the cat sat on the mat", "a", "what is a prefix cache good for, and when is it not?" * 3, "the cat sat on a mat", ""]


@pytest.mark.parametrize("share", [False, True])
def test_vectors_equal_those_of_sentence_transformers(tmp_path: Path, share: bool) -> None:
    folder = write_qwen3_embedder(tmp_path / "embedder")
    oracle = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    card = inspect(str(folder))
    trunk = load_backbone(card, "float32", share=share)
    tokenizer = load_tokenizer(card)
    for name, prompt in (("query", QUERY_PROMPT), ("document", "")):
        expected = oracle.encode(TEXTS, prompt_name=name, batch_size=2)
        rows: list[Row] = [hidden_row(tuple(tokenizer.encode(prompt + text))) for text in TEXTS]
        assert all(row.token_ids[-1] == END for row in rows)
        together = np.concatenate(trunk.read(rows))
        alone = np.concatenate([trunk.read([row])[0] for row in rows])
        for found in (together, alone):
            unit = found / np.linalg.norm(found, axis=1, keepdims=True)
            assert ((unit * expected).sum(1) >= 0.99999).all()
    # The prompt of queries is computed once for all texts of a forward pass.
    assert (trunk.counts.shared_tokens > 0) is share
