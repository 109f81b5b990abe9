"""A profile between two steps: a trace that names what ran, and one at a time."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.operations.profile import ProfileRun
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError, HeadwayError
from tests.engine.tiny_folder import complete_tiny_model


def test_a_profile_of_the_engines_thread(tmp_path: Path) -> None:
    config = {"profiler": "torch", "torch_profiler_dir": str(tmp_path / "traces"), "torch_profiler_record_shapes": True}
    model = complete_tiny_model("smollm", tmp_path).folder

    async def body() -> None:
        engine = AsyncEngine(EngineConfig(str(model), max_model_len=64, num_gpu_blocks_override=8, dtype="float32", profiler_config=config))
        engine.start()
        await engine.ready()
        try:
            with pytest.raises(HeadwayError) as none:
                await engine.operations.stop_profile()
            assert none.value.reason == "profile_inactive"
            await engine.operations.start_profile()
            with pytest.raises(HeadwayError) as twice:
                await engine.operations.start_profile()
            assert twice.value.reason == "profile_active"
            async for _ in engine.generate([3, 4, 5], SamplingParams(temperature=0, max_tokens=4), "asked"):
                pass
            path = await engine.operations.stop_profile()
        finally:
            await engine.shutdown()
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        assert any(str(event.get("name", "")).startswith("aten::") for event in events)

    asyncio.run(asyncio.wait_for(body(), 60))


def test_configurations_that_cannot_be_used_are_refused() -> None:
    for config in ({"profiler": "cuda", "torch_profiler_dir": "x"}, {"profiler": "torch"}, {"folder": "x"}, {"torch_profiler_dir": 3}):
        with pytest.raises(ConfigError) as caught:
            EngineConfig("tiny", profiler_config=config)
        assert caught.value.param == "profiler_config"
    with pytest.raises(ConfigError) as disabled:
        ProfileRun({}).start()
    assert disabled.value.reason == "profiler_disabled"
