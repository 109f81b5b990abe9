"""Speculation in a whole engine on tiny models in float32: transformers says what is right for greedy requests, the same engine without
speculation what is right for seeded ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headway import LLM, SamplingParams
from headway.engine.core import Observers
from headway.engine.thinking.marks import ThinkingMarks
from headway.errors import ConfigError
from headway.telemetry.metrics import EngineMetrics
from headway.telemetry.stats import StepStats
from tests.cases.tiny_model import save_tiny_model
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import TinyModel

COUNT = 40
BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 160, "kv_cache_memory_bytes": 64 << 20}
WAYS: dict[str, dict[str, Any]] = {
    "prefix_cache": {},
    "chunks_of_7": {"max_num_batched_tokens": 7, "enable_prefix_caching": False},
    "preempted": {"num_gpu_blocks_override": 14, "kv_cache_memory_bytes": None},
    "batch_invariant": {"batch_invariant": True},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("speculation")


@pytest.fixture(scope="module")
def tiny(root: Path) -> TinyModel:
    return complete_tiny_model("smollm", root)


@pytest.fixture(scope="module")
def methods(root: Path, tiny: TinyModel) -> dict[str, dict[str, Any]]:
    """The model drafting for itself is always right, another one hardly ever."""
    return {
        "ngram": {"method": "ngram", "prompt_lookup_min": 1, "prompt_lookup_max": 3},
        "suffix": {"method": "suffix", "num_speculative_tokens": 6},
        "itself": {"model": str(tiny.folder), "num_speculative_tokens": 4},
        "other": {"model": str(complete_tiny_model("mistral", root).folder), "num_speculative_tokens": 2},
    }


def prompts() -> list[dict[str, list[int]]]:
    return [{"prompt_token_ids": [(length * 31 + 7 * k) % 40 + 5 for k in range(length)]} for length in (3, 17, 40, 90)]


def engine(tiny: TinyModel, steps: list[StepStats], speculation: dict[str, Any], **settings: Any) -> LLM:
    config = {"adaptive": False, **speculation} if speculation else {}
    return LLM(str(tiny.folder), observers=Observers(on_step=steps.append), speculative_config=config, **(BASE | settings))


@pytest.mark.parametrize(
    ("method", "way"), [*(("itself", way) for way in WAYS), ("ngram", "prefix_cache"), ("ngram", "preempted"), ("suffix", "chunks_of_7"), ("other", "prefix_cache")]
)
def test_greedy_equals_transformers(tiny: TinyModel, methods: dict[str, dict[str, Any]], method: str, way: str) -> None:
    steps: list[StepStats] = []
    llm = engine(tiny, steps, methods[method], **WAYS[way])
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    want = [tiny.greedy(p["prompt_token_ids"], COUNT) for p in prompts()]
    for _ in range(2):
        assert [o.outputs[0].token_ids for o in llm.generate(prompts(), params, use_tqdm=False)] == want
    proposed, accepted = (sum(d[i] for s in steps for d in s.drafts) for i in (0, 1))
    assert proposed > (10 if way == "chunks_of_7" else 100)  # a step of 7 leaves few tokens to drafts
    assert accepted > (0 if method != "itself" else 0.8 * proposed)
    if way == "preempted":
        assert sum(s.preemptions for s in steps) > 0
    scheduler = llm._engine.core.scheduler
    if method in ("itself", "other"):
        pool = scheduler.drafter._proposer._kv.pool
        assert pool.num_free == pool.num_blocks - 1, "the draft model's cache lost blocks"


def test_seeded_requests_repeat_themselves(tiny: TinyModel, methods: dict[str, dict[str, Any]]) -> None:
    params = [
        SamplingParams(temperature=0.3, seed=3, max_tokens=COUNT, repetition_penalty=1.1, logprobs=2),
        SamplingParams(temperature=0.2, max_tokens=COUNT, top_p=0.9, frequency_penalty=0.2, n=2),
        SamplingParams(temperature=0.7, seed=4, max_tokens=COUNT, min_p=0.1, stop=["e"]),
        SamplingParams(temperature=0, max_tokens=COUNT, presence_penalty=0.5, bad_words=["ab"]),
    ]
    found = {}
    for method in ("", "itself", "ngram"):
        steps: list[StepStats] = []
        llm = engine(tiny, steps, methods[method] if method else {})
        outputs = llm.generate(prompts(), params, use_tqdm=False)
        found[method] = [(c.text, c.token_ids, c.finish_reason, c.stop_reason) for o in outputs for c in o.outputs]
        rows = [row for o in outputs for c in o.outputs for row in c.logprobs or ()]
        found[method, "logprobs"] = [sorted((t, round(p.logprob, 3), p.rank) for t, p in row.items()) for row in rows]
        accepted = sum(a for s in steps for _, a in s.drafts)
        assert accepted > 50 if method == "itself" else (accepted > 0) == bool(method)
    assert found["itself"] == found["ngram"] == found[""]
    assert found["itself", "logprobs"] == found["ngram", "logprobs"] == found["", "logprobs"]


@pytest.mark.long
def test_answers_with_a_form_and_budgets_for_reasoning_stay_the_same(tiny: TinyModel, methods: dict[str, dict[str, Any]]) -> None:
    """Each row is masked and forced as if the drafts before it were the answer."""
    marks = ThinkingMarks("ab", "cd", opens=True)
    params = [
        SamplingParams(temperature=0.7, seed=3, max_tokens=COUNT, structured_outputs={"regex": "(red|green|blue){3,9}"}),
        SamplingParams(temperature=0, max_tokens=COUNT, structured_outputs={"json": {"type": "array", "items": {"enum": ["one", "two"]}}}),
        SamplingParams(temperature=0.7, seed=4, max_tokens=COUNT, thinking_token_budget=9, thinking_marks=marks),
        SamplingParams(temperature=0.7, seed=5, max_tokens=COUNT),
    ]
    found = {}
    for method in ("", "itself", "ngram"):
        steps: list[StepStats] = []
        outputs = engine(tiny, steps, methods[method] if method else {}).generate(prompts(), params, use_tqdm=False)
        found[method] = [(o.outputs[0].text, o.outputs[0].token_ids, o.outputs[0].finish_reason) for o in outputs]
        assert sum(a for s in steps for _, a in s.drafts) > (10 if method == "itself" else 0 if method else -1)
    assert found["itself"] == found["ngram"] == found[""]
    assert re.fullmatch("(red|green|blue)(, ?(red|green|blue)?)*.*", found[""][0][0])
    assert "cd" in found[""][2][0]


def test_costs_are_measured_and_counted_by_the_metrics(tiny: TinyModel, methods: dict[str, dict[str, Any]]) -> None:
    metrics = EngineMetrics("tiny", max_model_len=160)
    llm = LLM(str(tiny.folder), observers=Observers(on_step=metrics.on_step), speculative_config=methods["itself"], **BASE)
    costs = llm._engine.core.scheduler.drafter.costs
    assert costs.round > 0
    assert (costs.step.tokens[0], costs.step.tokens[-1]) == (1, 64)
    assert (costs.step.seconds > 0).all()
    llm._engine.core.scheduler.drafter.costs = None  # what pays here is chance
    llm.generate(prompts(), SamplingParams(temperature=0, max_tokens=COUNT), use_tqdm=False)
    lines = dict(line.rsplit(" ", 1) for line in metrics.render().decode().splitlines() if "spec" in line and not line.startswith("#"))
    label = '{engine="0",model_name="tiny"}'
    drafts, tokens, accepted = (float(lines[f"vllm:spec_decode_{name}_total{label}"]) for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"))
    places = [float(v) for k, v in lines.items() if k.startswith("vllm:spec_decode_num_accepted_tokens_per_pos_total")]
    assert drafts > 4
    assert drafts < tokens <= 4 * drafts
    assert sum(places) == accepted > 0.8 * tokens
    assert lines['headway:speculation_active{model_name="tiny"}'] == "1.0"


def test_a_draft_model_with_another_vocabulary_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    with pytest.raises(ConfigError, match="another vocabulary") as found:
        LLM(str(tiny.folder), spec_model=str(tmp_path), **BASE)
    assert found.value.reason == "draft_vocabulary"
