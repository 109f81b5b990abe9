"""Vectors of a language model against the hidden states of transformers, however the prompts are cut into steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch

from headway import LLM, PoolingParams, SamplingParams
from headway.engine.admission import admit
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.pooling.pooling_admission import admit_reading
from headway.engine.sequence import Request
from headway.errors import ConfigError, ContextLengthError, HeadwayError, RequestError
from headway.telemetry.stats import RequestStats, StepStats
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import TinyModel

BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 128, "kv_cache_memory_bytes": 16 << 20}
WAYS: dict[str, dict[str, Any]] = {
    "prefix cache": {}, "chunks of 7": {"max_num_batched_tokens": 7}, "preempted": {"num_gpu_blocks_override": 9, "kv_cache_memory_bytes": None, "scheduler_reserve_full_isl": False, "max_num_batched_tokens": 32},
}  # fmt: skip
LENGTHS = (1, 16, 40, 90)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return complete_tiny_model("llama", tmp_path_factory.mktemp("pooling"))


@pytest.fixture(scope="module")
def llm(tiny: TinyModel) -> LLM:
    return LLM(str(tiny.folder), **BASE)


def prompts() -> list[list[int]]:
    return [[(length * 31 + 7 * k) % 150 + 5 for k in range(length)] for length in LENGTHS]


def hidden(tiny: TinyModel, tokens: list[int]) -> torch.Tensor:
    """[T, hidden], after the final norm."""
    with torch.no_grad():
        states: torch.Tensor = tiny.oracle.model(torch.tensor([tokens]), use_cache=False).last_hidden_state[0]
    return states


def unit(vectors: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)


def reading(llm: LLM, name: str, tokens: list[int], params: PoolingParams) -> Request:
    engine = llm._engine
    return admit_reading(name, tokens, params, engine.pooler, engine.limits, engine.core.scheduler.kv)


def writing(llm: LLM, name: str, tokens: list[int]) -> Request:
    engine = llm._engine
    return admit(name, tokens, SamplingParams(temperature=0, max_tokens=6, min_tokens=6), engine.limits, engine.tokenizer, engine.core.scheduler.kv)


@pytest.mark.parametrize("way", list(WAYS))
def test_read_and_written_prompts_share_steps(tiny: TinyModel, way: str) -> None:
    """Both come out as transformers has them, and nothing is left behind."""
    steps: list[StepStats] = []
    ended: list[RequestStats] = []
    llm = LLM(str(tiny.folder), observers=Observers(steps.append, ended.append), **(BASE | WAYS[way]))
    requests = [
        request
        for k, tokens in enumerate(prompts())
        for request in (
            writing(llm, f"w{k}", tokens),
            reading(llm, f"v{k}", tokens, PoolingParams("embed")),
            reading(llm, f"t{k}", tokens, PoolingParams("token_embed", use_activation=False)),
            reading(llm, f"l{k}", tokens, PoolingParams("label_logits", token_ids=(9, 4, 77))),
        )
    ]
    outputs = iter(llm._run(requests))
    for tokens in prompts():
        written, vector, rows, labels = (next(outputs) for _ in range(4))
        assert written.outputs[0].token_ids == tiny.greedy(tokens, 6)
        states, logits = hidden(tiny, tokens), tiny.logits(tokens)[-1]
        want = torch.cat([logits[[9, 4, 77]], logits.logsumexp(0, keepdim=True), logits.amax(0, keepdim=True)])
        for found, expected in ((vector, unit(states[-1])), (rows, states), (labels, want)):
            assert found.pooled is not None, found.error
            torch.testing.assert_close(found.pooled, expected, rtol=1e-4, atol=1e-4)
    pool = llm._engine.core.scheduler.kv.pool
    assert pool.num_free == pool.num_blocks - 1
    assert sorted(r.generation_tokens for r in ended) == [0] * 12 + [6] * 4
    assert {r.finish_reason for r in ended if not r.generation_tokens} == {"stop"}
    assert sum(s.generation_tokens for s in steps) == 24
    assert any(s.preemptions for s in steps) == (way == "preempted")
    assert way == "preempted" or any(s.prefix_hits for s in steps)


def test_mean_over_chunks(tiny: TinyModel) -> None:
    llm = LLM(str(tiny.folder), pooler_config={"pooling_type": "MEAN", "normalize": False}, **(BASE | {"max_num_batched_tokens": 11}))
    for _ in range(2):  # the second time the prefix is in the cache, and must not be taken from there
        for output, tokens in zip(llm.embed(prompts()), prompts(), strict=True):
            assert output.outputs is not None, output.error
            torch.testing.assert_close(torch.tensor(output.outputs.embedding), hidden(tiny, tokens).mean(0), rtol=1e-4, atol=1e-4)


def test_dimensions_are_cut_before_the_length(tiny: TinyModel, llm: LLM) -> None:
    [found] = llm.embed([prompts()[2]], pooling_params=PoolingParams("embed", dimensions=10))
    assert found.outputs is not None
    assert found.outputs.hidden_size == 10
    torch.testing.assert_close(torch.tensor(found.outputs.embedding), unit(hidden(tiny, prompts()[2])[-1][:10]), rtol=0, atol=1e-5)
    with pytest.raises(RequestError, match="vectors of this model have 64 numbers"):
        llm.embed("x", pooling_params=PoolingParams("embed", dimensions=65))


def test_score_is_the_cosine(tiny: TinyModel, llm: LLM) -> None:
    one, *others = (unit(hidden(tiny, tokens)[-1]) for tokens in prompts())
    found = llm.score([prompts()[0]], prompts()[1:])
    assert [o.outputs.score for o in found if o.outputs] == pytest.approx([float(one @ other) for other in others], abs=1e-4)
    pairs = llm.score(prompts()[:2], prompts()[2:])
    assert [o.outputs.score for o in pairs if o.outputs][1] == pytest.approx(float(others[0] @ others[2]), abs=1e-4)
    with pytest.raises(RequestError, match="2 texts against 3"):
        llm.score(prompts()[:2], prompts()[1:])


def test_what_cannot_be_read_is_refused(llm: LLM) -> None:
    assert llm.embed([[5] * 128])[0].outputs is not None  # a prompt may fill the context
    for error, prompt in ((ContextLengthError, [5] * 129), (RequestError, []), (RequestError, [160])):
        with pytest.raises(error):
            llm.embed([prompt] if prompt else [{"prompt_token_ids": []}])
    with pytest.raises(RequestError) as caught:
        llm.classify("x")
    assert caught.value.reason == "task_unsupported"
    for wrong in ({"task": "rerank"}, {"dimensions": 0}, {"task": "classify", "dimensions": 3}, {"task": "label_logits"}, {"token_ids": (1,)}):
        with pytest.raises(RequestError):
            PoolingParams(**wrong)  # type: ignore[arg-type]
    for config in ({"pooling_type": "CLS"}, {"use_activation": 1}, {"dimensions": 0}, {"colour": 1}):
        with pytest.raises(ConfigError, match="pooler-config"):
            EngineConfig("x", pooler_config=config)


def test_a_prompt_that_makes_no_finite_numbers_fails_alone(tiny: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = LLM(str(tiny.folder), **BASE)
    runner = llm._engine.core.runner
    forward = runner._forward

    def spoilt(batch: Any, kv: Any) -> torch.Tensor:
        out = forward(batch, kv).clone()
        last = batch.token_ids[batch.logits_rows] == 13
        out[last] = float("nan")
        return out

    monkeypatch.setattr(runner, "_forward", spoilt)
    good, bad = llm.embed([[5, 6, 7], [5, 6, 13]])
    assert good.outputs is not None
    assert bad.outputs is None
    assert bad.error is not None
    assert "not finite" in bad.error


def test_an_aborted_reading_frees_everything(tiny: TinyModel) -> None:
    asyncio.run(asyncio.wait_for(_abort_some(tiny), 60))


async def _abort_some(tiny: TinyModel) -> None:
    engine = AsyncEngine(EngineConfig(str(tiny.folder), **BASE))
    engine.start()
    await engine.ready()
    readings = [asyncio.create_task(_read(engine, f"r{i}")) for i in range(8)]
    await asyncio.sleep(0)
    for task in readings[::2]:
        task.cancel()
    found = await asyncio.gather(*readings, return_exceptions=True)
    assert [f for f in found if isinstance(f, HeadwayError)] == []
    while engine.status.requests:
        await asyncio.sleep(0.01)
    pool = engine.loaded.core.scheduler.kv.pool
    assert pool.num_free == pool.num_blocks - 1
    await engine.shutdown()


async def _read(engine: AsyncEngine, name: str) -> torch.Tensor:
    async for output in engine.encode([5] * 100, PoolingParams("embed"), name):
        assert output.pooled is not None
        return output.pooled
    raise AssertionError



def test_inputs_of_one_call_share_a_step(tiny: TinyModel) -> None:
    steps: list[StepStats] = []
    llm = LLM(str(tiny.folder), observers=Observers(steps.append), **(BASE | {"max_num_batched_tokens": 256}))
    llm.embed(prompts())
    assert [s.scheduled_tokens for s in steps if s.scheduled_tokens] == [sum(LENGTHS)]
