"""Greedy answers to prompts with images against transformers, however the work is cut up, and what does not go with images."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headway import LLM, SamplingParams
from headway.engine.admission import admit
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.images import step_images
from headway.engine.images.held_pixels import HeldPixels
from headway.engine.images.prompt_images import place_images
from headway.engine.request_terms import RequestTerms
from headway.engine.sequence import Request
from headway.errors import HeadwayError, QueueFullError, RequestError
from headway.models.vision.tile_layout import TiledImage
from headway.telemetry.stats import StepStats
from tests.models.vision.tiny_vision import TILE_ROWS, TOKENS, TinyVision, encoded, picture, tiny_vision

COUNT = 8
BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 256, "kv_cache_memory_bytes": 16 << 20}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"enable_prefix_caching": False},
    "prefix_cache": {},
    "chunks_of_7": {"max_num_batched_tokens": 7},
    "preempted": {"num_gpu_blocks_override": 130, "kv_cache_memory_bytes": None, "block_size": 2, "scheduler_reserve_full_isl": False, "max_num_batched_tokens": 32},
    "blocks_of_3": {"block_size": 3, "max_num_seqs": 3},
    "no_chunks": {"enable_chunked_prefill": False},
}
PROMPTS: tuple[tuple[str, tuple[Image.Image, ...]], ...] = (
    ("User:<image>What is this?<end_of_utterance>\nAssistant:", (picture(70, 50),)),
    ("User:<image>What is this?<end_of_utterance>\nAssistant:", (picture(70, 50, 3),)),  # the same tokens, another image
    ("User: Only a text.<end_of_utterance>\nAssistant:", ()),
    ("User: One<image>and two<image>.<end_of_utterance>\nAssistant:", (picture(90, 30, 1), picture(20, 20, 2))),
    ("User: One<image>and two<image>.<end_of_utterance>\nAssistant:", (picture(90, 30, 2), picture(20, 20, 1))),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyVision:
    return tiny_vision(tmp_path_factory.mktemp("vision"))


def request(llm: LLM, name: str, text: str, images: tuple[Image.Image, ...], params: SamplingParams) -> Request:
    engine = llm._engine
    reader = engine.images
    assert reader is not None
    tiled = [reader.layout.tiled(image) for image in images]
    ids = engine.tokenizer.encode(reader.expanded(text, tiled), False)
    placed = reader.placed(ids, tiled) if images else None
    return admit(name, ids, params, engine.limits, engine.tokenizer, engine.core.scheduler.kv, images=placed)


def answers(llm: LLM, name: str, **params: Any) -> list[list[list[int]]]:
    sampling = SamplingParams(**({"temperature": 0, "max_tokens": COUNT, "min_tokens": COUNT} | params))
    outputs = llm._run([request(llm, f"{name}-{i}", *prompt, sampling) for i, prompt in enumerate(PROMPTS)])
    assert all(output.error is None for output in outputs)
    return [[one.token_ids for one in output.outputs] for output in outputs]


def wanted(tiny: TinyVision) -> list[list[int]]:
    return [tiny.greedy(*prompt, COUNT) for prompt in PROMPTS]


@pytest.mark.parametrize("way", list(WAYS))
def test_greedy_equals_transformers(way: str, tiny: TinyVision) -> None:
    steps: list[StepStats] = []
    llm = LLM(str(tiny.folder), observers=Observers(on_step=steps.append), **(BASE | WAYS[way]))
    want = wanted(tiny)
    for name in ("first", "again"):
        assert [one for (one,) in answers(llm, name)] == want
    if way == "preempted":
        assert sum(s.preemptions for s in steps) > 0
    if way == "prefix_cache":
        assert sum(s.prefix_hits for s in steps) > 200
    if way == "plain":
        assert sum(s.prefix_hits for s in steps) == 0


def test_smolvlm_with_a_tied_head(tmp_path_factory: pytest.TempPathFactory) -> None:
    tied = tiny_vision(tmp_path_factory.mktemp("smolvlm"), "smolvlm", tied=True)
    assert [one for (one,) in answers(LLM(str(tied.folder), **BASE), "a")] == wanted(tied)


def test_several_answers_to_one_image(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **(BASE | {"max_num_batched_tokens": 40}))
    assert answers(llm, "n", n=3, temperature=1, top_k=1) == [[one] * 3 for one in wanted(tiny)]


def test_log_probabilities_of_the_prompt(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **BASE)
    text, images = PROMPTS[0]
    (output,) = llm._run([request(llm, "a", text, images, SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=1))])
    want = tiny.logprobs(text, images)
    assert output.prompt_logprobs is not None
    for i, row in enumerate(output.prompt_logprobs[1:], 1):
        assert row is not None
        assert next(iter(row.values())).logprob == pytest.approx(float(want[i - 1, output.prompt_token_ids[i]]), abs=1e-4)


def test_a_step_encodes_a_bounded_number_of_tiles(tiny: TinyVision, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = LLM(str(tiny.folder), **(BASE | {"max_num_batched_tokens": 64}))  # 64 // 16 patches: 4 tiles
    steps = llm._engine.core.runner._images
    assert steps is not None
    encoded: list[int] = []
    tower, step = llm._engine.core.runner.model.tower, llm._engine.core.step
    assert tower is not None
    encode = tower.encode

    def counted(pixels: Any) -> Any:
        encoded[-1] += len(pixels)
        return encode(pixels)

    def one_step() -> Any:
        encoded.append(0)
        return step()

    monkeypatch.setattr(tower, "encode", counted)
    monkeypatch.setattr(llm._engine.core, "step", one_step)
    answers(llm, "a")
    distinct = {tile.digest for prompt in PROMPTS if prompt[1] for tile in _placed(llm, prompt).tiles}
    assert sum(encoded) == len(distinct)
    assert max(encoded) <= 4
    encoded.clear()
    llm.reset_prefix_cache()
    answers(llm, "b")
    assert sum(encoded) == 0, "rows that are kept are not computed again"


def _placed(llm: LLM, prompt: tuple[str, tuple[Image.Image, ...]]) -> Any:
    return request(llm, "x", *prompt, SamplingParams()).images


def test_rows_that_had_to_go_are_computed_again(tiny: TinyVision, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_images, "KEPT_BYTES", 1)
    llm = LLM(str(tiny.folder), **(BASE | {"max_num_batched_tokens": 20}))
    assert [one for (one,) in answers(llm, "a")] == wanted(tiny)
    steps = llm._engine.core.runner._images
    assert steps is not None
    assert len(steps._rows) == step_images.AT_ONCE


def test_drafts_change_nothing(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **BASE, spec_method="ngram", spec_tokens=3)
    assert [one for (one,) in answers(llm, "a")] == wanted(tiny)


def test_a_failing_tower_fails_its_request_alone(tiny: TinyVision, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = LLM(str(tiny.folder), **BASE)
    tower = llm._engine.core.runner.model.tower
    assert tower is not None

    def fails(pixels: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(tower, "encode", fails)
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    bad, good = llm._run([request(llm, "a", *PROMPTS[0], params), request(llm, "b", *PROMPTS[2], params)])
    assert bad.error is not None
    assert good.outputs[0].token_ids == wanted(tiny)[2]
    monkeypatch.undo()
    assert [one for (one,) in answers(llm, "c")] == wanted(tiny)


def test_the_async_engine(tiny: TinyVision) -> None:
    async def run() -> list[int]:
        engine = AsyncEngine(EngineConfig(model=str(tiny.folder), **BASE))
        engine.start()
        await engine.ready()
        try:
            reader = engine.images
            assert reader is not None
            tiled = [reader.layout.tiled(image) for image in PROMPTS[0][1]]
            ids = engine.tokenizer.encode(reader.expanded(PROMPTS[0][0], tiled), False)
            params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
            outputs = [o async for o in engine.generate(ids, params, "a", RequestTerms(images=reader.placed(ids, tiled)))]
            return outputs[-1].outputs[0].token_ids
        finally:
            await engine.shutdown()

    assert asyncio.run(run()) == wanted(tiny)[0]


def test_blocks_differ_by_image_and_by_nothing_else(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **BASE)

    def hashes(number: int) -> list[bytes]:
        made = request(llm, "x", *PROMPTS[number], SamplingParams())
        return list(llm._engine.core.scheduler.kv.hashes(made.sequences[0].table, [], made.prompt_token_ids))

    one, other = hashes(0), hashes(1)
    assert one == hashes(0)
    assert not set(one) & set(other)


def test_pixels_that_are_held_are_bounded() -> None:
    held = HeldPixels(1000)
    token = TOKENS.index("<image>")
    tiled = [TiledImage(np.zeros((1, 3, 14, 14), np.uint8), 0, 0)]
    ids = [5, *[token] * TILE_ROWS, 6]
    first = held.hold(place_images(ids, token, TILE_ROWS, tiled))
    with pytest.raises(QueueFullError) as refused:
        held.hold(place_images(ids, token, TILE_ROWS, tiled))
    assert refused.value.reason == "images_full"
    del first
    assert held.held == 0
    assert held.hold(place_images(ids, token, TILE_ROWS, tiled)).nbytes == 588


@pytest.mark.parametrize("ids", [[3] * 3, [3] * 8, [3, 3, 5, 3, 3], []])
def test_tokens_that_are_no_image_are_refused(ids: list[int]) -> None:
    with pytest.raises(RequestError) as refused:
        place_images(ids, 3, 4, [TiledImage(np.zeros((1, 3, 2, 2), np.uint8), 0, 0)])
    assert refused.value.reason == "image_tokens_mismatch"


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"quantization": "fp8"}, "not_built"),
    ({"enable_lora": True}, "not_built"),
    ({"load_format": "dummy"}, "not_built"),
    ({"limit_mm_per_prompt": {"video": 1}}, "not_built"),
    ({"limit_mm_per_prompt": {"image": -1}}, "invalid_config"),
    ({"limit_mm_per_prompt": {"smell": 1}}, "invalid_config"),
    ({"mm_processor_kwargs": {"num_crops": 4}}, "not_built"),
    ({"mm_processor_kwargs": {"size": {"longest_edge": -4}}}, "invalid_mm_processor_kwargs"),
)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_settings_that_are_refused(number: int, tiny: TinyVision) -> None:
    settings, reason = REFUSED[number]
    with pytest.raises(HeadwayError) as refused:
        LLM(str(tiny.folder), **(BASE | settings))
    assert refused.value.reason == reason, refused.value.message


def test_the_image_processor_can_be_changed(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **BASE, mm_processor_kwargs={"do_image_splitting": False})
    assert len(_placed(llm, PROMPTS[0]).tiles) == 1


def _message(image: Image.Image, text: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(encoded(image)).decode()}"
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]}


def test_offline_chats(tiny: TinyVision) -> None:
    llm = LLM(str(tiny.folder), **BASE, limit_mm_per_prompt={"image": 1})
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    asked = [[_message(PROMPTS[0][1][0], "What is this?")], [{"role": "user", "content": "Only a text."}], [_message(PROMPTS[1][1][0], "What is this?")]]
    outputs = llm.chat(asked, params, use_tqdm=False)
    want = wanted(tiny)
    assert [output.outputs[0].token_ids for output in outputs] == [want[0], want[2], want[1]]
    reader = llm._engine.images
    assert reader is not None
    assert reader._held.held == 0, "pixels go with their requests"
    with pytest.raises(RequestError, match="at most 1"):
        llm.chat([_message(picture(4, 4), "a"), _message(picture(4, 4), "b")], params, use_tqdm=False)
    with pytest.raises(HeadwayError, match="multi_modal_data"):
        llm.generate({"prompt": "a", "multi_modal_data": {"image": picture(4, 4)}}, params, use_tqdm=False)
