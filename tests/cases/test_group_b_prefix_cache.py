"""Group B, B02: a prefix-cache hit gives the same answer as a miss, also where layers see a window only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway import LLM, SamplingParams
from headway.engine.core import Observers
from headway.engine.outputs import RequestOutput
from headway.telemetry.stats import StepStats
from tests.engine.tiny_folder import complete_tiny_model

BLOCK = 16
LENGTHS = (1, 15, 16, 17, 31, 32, 33, 48)
SHARED = (16, 17, 32)
GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, logprobs=3)
# Full attention; a window of 16 in all layers; in some layers; in every second layer, with soft caps.
MODELS = ("smollm", "mistral", "qwen3", "gemma3")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefix")


def load(root: Path, name: str, **settings: Any) -> LLM:
    base = {"dtype": "float32", "block_size": BLOCK, "max_model_len": 128, "kv_cache_memory_bytes": 32 << 20}
    return LLM(str(complete_tiny_model(name, root).folder), **(base | settings))


def prompt(length: int, family: int) -> list[int]:
    return [5 + (i * i + 31 * family) % 150 for i in range(length)]


def ask(llm: LLM, tokens: list[int], how: SamplingParams = GREEDY) -> RequestOutput:
    return llm.generate({"prompt_token_ids": tokens}, how, use_tqdm=False)[0]


def check_equal(found: RequestOutput, want: RequestOutput) -> None:
    ours, theirs = found.outputs[0], want.outputs[0]
    assert ours.token_ids == theirs.token_ids
    assert ours.logprobs is not None
    assert theirs.logprobs is not None
    for row, other in zip(ours.logprobs, theirs.logprobs, strict=True):
        assert {t: e.logprob for t, e in row.items()} == pytest.approx({t: e.logprob for t, e in other.items()}, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_b02_four_times_in_a_row_and_after_eviction(root: Path, name: str) -> None:
    plain, caching = load(root, name, enable_prefix_caching=False), load(root, name, num_gpu_blocks_override=12)
    for _ in range(2):
        for family, length in enumerate(LENGTHS):
            want = ask(plain, prompt(length, family))
            for repeat in range(4):
                found = ask(caching, prompt(length, family))
                check_equal(found, want)
                assert found.num_cached_tokens == (0 if repeat == 0 else (length - 1) // BLOCK * BLOCK)
        for family in range(50, 54):  # 4 x 4 blocks of other prompts: whatever was cached is evicted
            ask(caching, prompt(60, family))


@pytest.mark.parametrize("name", MODELS)
def test_b02_prompts_that_share_a_beginning_only(root: Path, name: str) -> None:
    plain, caching = load(root, name, enable_prefix_caching=False), load(root, name)
    first = prompt(48, 1)
    ask(caching, first)
    for shared in SHARED:
        other = first[:shared] + [5 + (t + 1) % 150 for t in prompt(48 - shared, 2)]
        assert other[shared] != first[shared]
        found = ask(caching, other)
        check_equal(found, ask(plain, other))
        assert found.num_cached_tokens == shared // BLOCK * BLOCK, "only full blocks are shared"


def test_b02_a_fully_cached_prompt_computes_its_last_token_and_prompt_logprobs_compute_all(root: Path) -> None:
    steps: list[StepStats] = []
    llm = load(root, "smollm", observers=Observers(on_step=steps.append))
    ask(llm, prompt(48, 1))
    steps.clear()
    ask(llm, prompt(48, 1))
    assert steps[0].scheduled_tokens == 16
    assert steps[0].cached_prompt_tokens == 32
    steps.clear()
    scored = ask(llm, prompt(48, 1), SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0))
    assert steps[0].scheduled_tokens == 48
    assert scored.num_cached_tokens == 0
    assert scored.prompt_logprobs is not None
    assert len(scored.prompt_logprobs) == 48
