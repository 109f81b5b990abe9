"""A real engine's events over a real socket: whoever follows them knows what its pool holds, and what it does is unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.llm import LLM
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError
from headway.telemetry.metrics import EngineMetrics
from tests.engine.kv_events.test_publisher import END, connected, free_address
from tests.engine.tiny_folder import complete_tiny_model

SMALL: dict[str, Any] = {"max_model_len": 96, "num_gpu_blocks_override": 12, "block_size": 16, "dtype": "float32"}
TALKS = [[3 + (7 * talk + i * i) % 150 for i in range(70)] for talk in range(4)]
GREEDY = SamplingParams(temperature=0, max_tokens=30, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("events")).folder


def followed(replay: str) -> dict[int, list[int]]:
    """The blocks that are held after all batches, as a consumer of vLLM's format reads them: hash -> tokens of the block."""
    held: dict[int, list[int]] = {}
    with connected(zmq.DEALER, replay) as asking:
        asking.send_multipart([b"", bytes(8)])
        while (frames := asking.recv_multipart())[1] != END:
            for kind, *fields in msgspec.msgpack.decode(frames[2])[1]:
                if kind == "AllBlocksCleared":
                    held.clear()
                elif kind == "BlockRemoved":
                    for each in fields[0]:
                        del held[each]
                else:
                    hashes, parent, tokens, size = fields[:4]
                    assert parent is None or parent in held or kind == "BlockStored"
                    for at, each in enumerate(hashes):
                        held[each] = tokens[at * size : (at + 1) * size]
    return held


def test_who_follows_knows_what_the_pool_holds(folder: Path) -> None:
    replay = free_address()
    metrics = EngineMetrics("tiny")
    told = {"enable_kv_cache_events": True, "endpoint": free_address(), "bind": True, "replay_endpoint": replay}
    llm = LLM(folder, kv_events_config=told, observers=Observers(metrics.on_step), **SMALL)
    try:
        answers = [llm.generate(talk, GREEDY, use_tqdm=False)[0].outputs[0].token_ids for talk in TALKS]
        assert answers == [LLM(folder, **SMALL).generate(talk, GREEDY, use_tqdm=False)[0].outputs[0].token_ids for talk in TALKS]
        pool = llm._engine.core.scheduler.kv.pool
        expected = {int.from_bytes(each[-8:], "big") for each in pool._by_hash}
        while set(held := followed(replay)) != expected:
            assert set(held) != expected
        whole = TALKS[-1] + answers[-1]
        assert sorted(held.values()) == sorted([whole[at : at + 16] for at in range(0, 80, 16)] + _older(held, whole))
        assert llm.reset_prefix_cache()
        while followed(replay):
            pass
        llm.generate(TALKS[0], GREEDY, use_tqdm=False)
        text = metrics.render().decode()
        counts = {line.split('outcome="')[1].split('"')[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("headway:kv_events_total")}
        assert counts["published"] > 10
        assert counts["dropped"] == 0
    finally:
        assert llm._engine.kv_events is not None
        llm._engine.kv_events.close()


def _older(held: dict[int, list[int]], newest: list[int]) -> list[list[int]]:
    """What is still held of the talks before: whole blocks of these, and nothing else."""
    mine = [newest[at : at + 16] for at in range(0, 80, 16)]
    older = [block for block in held.values() if block not in mine]
    starts = [talk[at : at + 16] for talk in TALKS for at in range(0, 64, 16)]
    assert sum(block in starts for block in older) > 0
    return older


def test_an_engine_without_events_has_nobody_who_observes(folder: Path) -> None:
    for config in ({}, {"enable_kv_cache_events": True, "publisher": "null"}, {"publisher": "zmq"}):
        llm = LLM(folder, kv_events_config=config, **SMALL)
        assert llm._engine.kv_events is None
        assert llm._engine.core.scheduler.kv.take_event_counts() is None
        assert llm._engine.core.scheduler.kv.pool.on_forget is None


def test_events_need_the_prefix_cache(folder: Path) -> None:
    with pytest.raises(ConfigError, match="events of the prefix cache, which is off"):
        EngineConfig(str(folder), enable_prefix_caching=False, kv_events_config={"enable_kv_cache_events": True})
