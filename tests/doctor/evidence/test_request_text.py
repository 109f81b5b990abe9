"""Users' words are no events, wherever a program prints them; what stands beside them is."""

from __future__ import annotations

import json

import pytest

from headway.doctor.evidence.log.request_text import without_request_text
from headway.doctor.evidence.log.scan import read_text
from headway.doctor.evidence.sight import sight

OOM = sight("CUDA out of memory")
AFTER = sight("prompt_logprobs", pattern=r"prompt_logprobs=(?P<n>\d+)")
WORDS = "why do I see torch.OutOfMemoryError: CUDA out of memory?"


def seen(text: str) -> list[int]:
    return [hit.line.number for hit in read_text("log.txt", text.encode(), (OOM, AFTER)).hits(OOM)]


def record(message: str) -> str:
    return f"(APIServer pid=6) INFO 11-29 09:14:03 [logger.py:39] {message}\n"


@pytest.mark.parametrize(
    "text",
    [
        record(f"Received request chatcmpl-1: prompt: '{WORDS}', params: SamplingParams(n=1), lora_request: None."),
        record(f'Received request chatcmpl-1: prompt: "it\'s {WORDS}", params: SamplingParams(n=1)'),
        record(f"Received request chatcmpl-1: prompt: 'a 'quoted' {WORDS} 'word'', params: SamplingParams(n=1)"),
        record(f"Generated response chatcmpl-1 (streaming delta): output: '{WORDS}', output_token_ids: [1], finish_reason: stop"),
        record(f"Receive: obj=GenerateReqInput(rid='1', text='{WORDS}', sampling_params={{}})"),
        record(f"messages=[{{'role': 'user', 'content': '{WORDS}'}}]"),
        json.dumps({"messages": [{"role": "user", "content": WORDS}]}) + "\n",
        "request: " + json.dumps({"prompt": f'a "b" {WORDS}', "n_predict": 7}) + "\n",
        record("request body: " + json.dumps({"messages": [{"role": "user", "content": WORDS}]})),
        record("payload " + json.dumps(json.dumps({"messages": [{"role": "user", "content": f'a "b" {WORDS}'}]}))),
        json.dumps({"level": "info", "msg": "request", "prompt": WORDS}) + "\n",
        json.dumps({"level": "info", "msg": "request", "messages": [{"content": WORDS}]}) + "\n",
        json.dumps({"log": record(f"Received request c-1: prompt: '{WORDS}', params: SamplingParams(n=1)"), "stream": "stderr"}) + "\n",
        record(f"Received request chatcmpl-1: prompt: 'first line\n{WORDS}\nlast line', params: SamplingParams(n=1)"),
        f"$ curl http://x/v1/chat/completions -d '{{\n  \"messages\": [{{\"role\": \"user\", \"content\": \"{WORDS}\"}}]\n}}'\n",
        record("Received request chatcmpl-1: prompt: '" + "padding " * 20_000 + WORDS + " padding" * 20_000 + "', params: SamplingParams(n=1)"),
    ],
)
def test_words_of_users_are_no_events(text: str) -> None:
    assert "CUDA out of memory" in text
    assert seen(text + record("ok")) == []


@pytest.mark.parametrize(
    "text",
    [
        record("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        record(f"Received request chatcmpl-1: prompt: '{WORDS}', params: SamplingParams(n=1)") + "torch.OutOfMemoryError: CUDA out of memory. Tried\n",
        record("Received request chatcmpl-1: prompt: 'hello', params: SamplingParams(n=1) failed: CUDA out of memory"),
        record("Received request chatcmpl-1: prompt: 'first\nsecond', params: SamplingParams(n=1)") + record("CUDA out of memory"),
        json.dumps({"level": "error", "msg": "CUDA out of memory", "prompt": "hello"}) + "\n",
    ],
)
def test_events_beside_them_are_seen(text: str) -> None:
    assert len(seen(text)) == 1


def test_a_bare_line_after_a_prompt_that_ended_is_an_event() -> None:
    text = record("Received request chatcmpl-1: prompt: 'first\nsecond', params: SamplingParams(n=1)") + "CUDA out of memory\n"
    assert seen(text) == [3]


def test_parameters_behind_a_prompt_stay() -> None:
    text = record(f"Received request cmpl-1: prompt: '{WORDS}', params: SamplingParams(n=1, prompt_logprobs=5)")
    hits = read_text("log.txt", text.encode(), (AFTER,)).hits(AFTER)
    assert [hit["n"] for hit in hits] == ["5"]
    assert "CUDA" not in hits[0].quote().text


@pytest.mark.parametrize("text", ["'content-type': 'text/plain'", "max_tokens=5", "KeyError: 'layers.0.input_layernorm'", "context length 5"])
def test_other_lines_stay_as_they_are(text: str) -> None:
    assert without_request_text(text) == text


@pytest.mark.parametrize("text", ["prompt: '" + "a\\" * 50_000, '"content": "' + '\\"' * 50_000, "text='" + "'" * 50_000, "output: " * 20_000])
def test_it_ends_soon_on_what_does_not_close(text: str) -> None:
    without_request_text(text)
