"""EngineArgs and AsyncLLM as programs written for vLLM use them."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import pytest

from headway.engine.outputs import RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError, EngineDeadError, NotBuiltError
from headway.shim.async_llm import AsyncLLM
from headway.shim.engine_args import AsyncEngineArgs, EngineArgs
from tests.e2e.tiny_model import tiny_model


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--own-option", default="x")
    return EngineArgs.add_cli_args(parser).parse_args(words)


def test_keywords_are_checked_like_those_of_llm() -> None:
    args = EngineArgs(model="m", max_model_len=128, gpu_memory_utilization=0.5)
    assert (args.model, args.max_model_len, args.create_engine_config().gpu_memory_utilization) == ("m", 128, 0.5)
    with pytest.raises(ConfigError, match="Did you mean 'max_model_len'"):
        EngineArgs(model="m", max_model_length=1)
    with pytest.raises(NotBuiltError, match="enable-expert-parallel"):
        EngineArgs(model="m", enable_expert_parallel=True)
    with pytest.raises(AttributeError):
        _ = args.nothing_of_that_name


def test_a_programs_own_parser() -> None:
    args = AsyncEngineArgs.from_cli_args(
        parsed("--model", "m", "--max-model-len", "4k", "-q", "awq", "--no-enable-prefix-caching", "--served-model-name", "a", "b")
    )
    assert isinstance(args, AsyncEngineArgs)
    assert (args.max_model_len, args.quantization, args.enable_prefix_caching) == (4000, "awq", False)
    assert args.served_model_name == ("a", "b")
    assert EngineArgs.from_cli_args(parsed()).create_engine_config() == EngineArgs().create_engine_config()


@pytest.mark.timeout(60)
def test_async_llm_generates_and_ends(tmp_path: Path) -> None:
    args = AsyncEngineArgs(model=str(tiny_model(tmp_path)), max_model_len=64, kv_cache_memory_bytes=1 << 20)
    llm = AsyncLLM.from_engine_args(args)

    async def ask(prompt: object, name: str) -> RequestOutput:
        last = None
        async for output in llm.generate(prompt, SamplingParams(temperature=0, max_tokens=4, ignore_eos=True), request_id=name):  # type: ignore[arg-type]
            last = output
        assert last is not None
        return last

    async def run() -> None:
        await llm.check_health()
        text = await ask("hello", "a")
        same = await ask({"prompt": "hello"}, "b")
        ids = await ask({"prompt_token_ids": text.prompt_token_ids}, "c")
        assert text.outputs[0].token_ids == same.outputs[0].token_ids == ids.outputs[0].token_ids
        assert (same.prompt, len(text.outputs[0].token_ids)) == ("hello", 4)

    asyncio.run(run())
    assert not llm.errored
    llm.shutdown()


@pytest.mark.timeout(60)
def test_async_llm_says_why_it_cannot_load(tmp_path: Path) -> None:
    with pytest.raises(EngineDeadError, match="nothing-here"):
        AsyncLLM.from_engine_args(AsyncEngineArgs(model=str(tmp_path / "nothing-here")))
