"""logprob_token_ids: log-probabilities of tokens that the client names, beside the likeliest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cases.case_server import CaseServer, case_server
from tests.cases.tiny_model import save_tiny_model, tiny_engine
from tests.server.api import CHAT, COMPLETIONS

WANTED = [3, 200, 7]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return save_tiny_model(folder)


@pytest.fixture(scope="module")
def server(model: Any, folder: Path) -> Iterator[CaseServer]:
    with case_server(*tiny_engine(folder)) as running:
        yield running
        running.check_alive()


def test_they_equal_transformers(server: CaseServer, model: Any) -> None:
    body = {"prompt": [5, 6, 7], "max_tokens": 1, "temperature": 0, "logprobs": 1, "logprob_token_ids": WANTED, "return_tokens_as_token_ids": True}
    (top,) = server.post(COMPLETIONS, body).json()["choices"][0]["logprobs"]["top_logprobs"]
    with torch.no_grad():
        want = model(torch.tensor([[5, 6, 7]])).logits[0, -1, :258].log_softmax(-1)  # ids beyond the tokenizer's are never chosen
    assert set(top) == {f"token_id:{t}" for t in {*WANTED, int(want.argmax())}}
    for name, value in top.items():
        assert value == pytest.approx(float(want[int(name.removeprefix("token_id:"))]), abs=1e-4)


def test_a_chat_shows_them_behind_the_likeliest(server: CaseServer) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "temperature": 0, "logprobs": True, "top_logprobs": 2,
            "logprob_token_ids": WANTED, "return_tokens_as_token_ids": True}  # fmt: skip
    for entry in server.post(CHAT, body).json()["choices"][0]["logprobs"]["content"]:
        names = [top["token"] for top in entry["top_logprobs"]]
        assert len(names) == len(set(names))
        assert {f"token_id:{t}" for t in WANTED} <= set(names)
        assert len(names) <= 2 + len(WANTED)
        values = [top["logprob"] for top in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("extra", [{"logprobs": None}, {"logprob_token_ids": [999]}, {"logprob_token_ids": list(range(21))}, {"logprob_token_ids": ["a"]}])
def test_what_cannot_be_is_refused(server: CaseServer, extra: dict[str, Any]) -> None:
    response = server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 1, "logprobs": 1, "logprob_token_ids": WANTED, **extra})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"].startswith("logprob_token_ids")
