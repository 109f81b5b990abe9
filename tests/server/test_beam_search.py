"""use_beam_search over HTTP, on a tiny model behind a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway import LLM, BeamSearchParams
from headway.engine.async_engine import AsyncEngine
from tests.cases.case_server import CaseServer, case_server
from tests.cases.tiny_model import EOS, save_tiny_model, tiny_engine
from tests.server.api import CHAT, COMPLETIONS

BEAMS: dict[str, Any] = {"use_beam_search": True, "n": 3, "max_tokens": 6, "temperature": 0}
PROMPT = "Say something"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    save_tiny_model(path)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[CaseServer]:
    with case_server(*tiny_engine(folder, max_num_seqs=32, max_num_queued_reqs=4)) as running:
        yield running
        running.check_alive()


def test_a_completion_has_the_beams_that_llm_finds(server: CaseServer, folder: Path) -> None:
    llm = LLM(str(folder), dtype="float32", max_model_len=64, kv_cache_memory_bytes=4 << 20)
    ids = llm._engine.tokenizer.encode(PROMPT)
    for penalty in (1.0, 4.0):
        for ignore in (False, True):
            body = {**BEAMS, "length_penalty": penalty, "ignore_eos": ignore, "logprobs": 2, "return_token_ids": True}
            answer = server.post(COMPLETIONS, {"prompt": PROMPT, **body}).json()
            (want,) = llm.beam_search(PROMPT, BeamSearchParams(3, 6, ignore_eos=ignore, length_penalty=penalty))
            assert [c["index"] for c in answer["choices"]] == [0, 1, 2]
            for choice, beam in zip(answer["choices"], want.sequences, strict=True):
                tokens = beam.tokens[len(ids) :]
                if beam.finish_reason == "stop":
                    assert tokens.pop() == EOS
                assert choice["token_ids"] == tokens
                assert (choice["finish_reason"], choice["stop_reason"]) == (beam.finish_reason, None)
                assert len(choice["logprobs"]["tokens"]) == len(tokens)
                assert sum(choice["logprobs"]["token_logprobs"]) <= 0
                assert all(1 <= len(top) <= 3 for top in choice["logprobs"]["top_logprobs"])
            usage = answer["usage"]
            assert usage["prompt_tokens"] == len(ids)
            assert usage["completion_tokens"] == sum(len(c["token_ids"]) for c in answer["choices"])


def test_the_end_token_is_shown_on_request(server: CaseServer) -> None:
    found = []
    for include in (False, True):
        body = {**BEAMS, "n": 8, "max_tokens": 20, "length_penalty": -3.0, "include_stop_str_in_output": include, "return_token_ids": True}
        choices = server.post(COMPLETIONS, {"prompt": PROMPT, **body}).json()["choices"]
        found.append([c["token_ids"] for c in choices if c["finish_reason"] == "stop"])
    assert found[0], "no beam ended"
    assert found[1] == [[*tokens, EOS] for tokens in found[0]]


def test_several_prompts_and_chats(server: CaseServer) -> None:
    alone = [server.post(COMPLETIONS, {"prompt": p, **BEAMS}).json()["choices"] for p in ("ab", "cde")]
    both = server.post(COMPLETIONS, {"prompt": ["ab", "cde"], **BEAMS}).json()["choices"]
    assert [c["text"] for c in both] == [c["text"] for choices in alone for c in choices]
    chat = server.post(CHAT, {"messages": [{"role": "user", "content": "x"}], **BEAMS, "logprobs": True, "top_logprobs": 1})
    choices = chat.json()["choices"]
    assert len(choices) == 3
    assert len({c["message"]["content"] for c in choices}) > 1
    assert all(len(entry["top_logprobs"]) == 1 for c in choices for entry in c["logprobs"]["content"])


@pytest.mark.parametrize(
    ("param", "extra"),
    [
        ("stream", {"stream": True}), ("stop", {"stop": "x"}), ("stop_token_ids", {"stop_token_ids": [1]}), ("min_tokens", {"min_tokens": 1}),
        ("top_p", {"top_p": 0.5}), ("top_k", {"top_k": 3}), ("presence_penalty", {"presence_penalty": 1}), ("logit_bias", {"logit_bias": {"1": 1}}),
        ("prompt_logprobs", {"prompt_logprobs": 1}), ("echo", {"echo": True, "logprobs": 1}), ("bad_words", {"bad_words": ["a"]}),
        ("n", {"n": 33}), ("n", {"n": 0}), ("max_tokens", {"max_tokens": 0, "echo": True}), ("logprob_token_ids", {"logprob_token_ids": [1]}),
        ("length_penalty", {"use_beam_search": False, "n": 1, "length_penalty": 2.0}),
    ],
)  # fmt: skip
def test_what_beam_search_does_not_know_is_refused(server: CaseServer, param: str, extra: dict[str, Any]) -> None:
    response = server.post(COMPLETIONS, {"prompt": PROMPT, **BEAMS, **extra})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param


def test_a_client_that_leaves_ends_all_beams(server: CaseServer) -> None:
    engine: AsyncEngine = server.engine
    runner = engine.loaded.core.runner
    original, begun = runner.execute, threading.Event()

    def slow(plan: Any) -> Any:
        begun.set()
        time.sleep(0.02)
        return original(plan)

    runner.execute = slow  # type: ignore[method-assign]
    try:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.live.url + COMPLETIONS, json={"prompt": PROMPT, **BEAMS, "max_tokens": 40, "ignore_eos": True}, timeout=0.3, trust_env=False)
        assert begun.is_set()
        server.until_empty()
        steps = engine.status.steps
        time.sleep(0.1)
        assert engine.status.steps == steps
    finally:
        runner.execute = original  # type: ignore[method-assign]


def test_a_full_queue_refuses_a_new_search_and_never_one_that_runs(server: CaseServer) -> None:
    """The limit is four waiting requests; a search of 16 beams puts more than that into the queue in each later round."""
    response = server.post(COMPLETIONS, {"prompt": PROMPT, **BEAMS, "n": 16})
    assert response.status_code == 200, response.text
    assert len(response.json()["choices"]) == 16
