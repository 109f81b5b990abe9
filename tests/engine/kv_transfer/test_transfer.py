"""Prefill in one engine, decoding in another: the answers are those of one engine, and nothing is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from headway.engine.llm import LLM
from headway.engine.outputs import RequestOutput
from headway.errors import ConfigError, EngineDeadError, RequestError
from headway.kernels.choice import engine_kernels
from tests.engine.kv_transfer.engines import BLOCK_BYTES, PROMPT, Started, run, until

TALKS = [[3 + (7 * talk + i * i) % 150 for i in range(40 + 3 * talk)] for talk in range(8)]


def told(output: RequestOutput) -> tuple[list[int], Any]:
    return output.outputs[0].token_ids, output.outputs[0].logprobs


def expected(folder: Path, prompts: list[list[int]], **config: Any) -> list[tuple[list[int], Any]]:
    """Of one engine that answers each prompt a second time, with the prefix in its cache; the tokens are the same the first time."""
    one = Started(folder, None, **config)
    answers = []
    for prompt in prompts:
        fresh, again = run(lambda p=prompt: one.ask(p)), run(lambda p=prompt: one.ask(p))  # type: ignore[misc]
        assert fresh.outputs[0].token_ids == again.outputs[0].token_ids
        answers.append(told(again))
    one.close()
    return answers


@pytest.mark.parametrize(
    ("dtype", "kept", "budget"), [("float32", "auto", 2048), ("float32", "int8", 2048), ("bfloat16", "auto", 2048), ("float32", "auto", 24)],
)  # fmt: skip
def test_tokens_and_logprobs_are_those_of_one_engine(folder: Path, dtype: str, kept: str, budget: int) -> None:
    if kept == "int8":
        assert engine_kernels(torch.float32).quantized_cache, "the compiled kernels read it"
    config: dict[str, Any] = {"dtype": dtype, "kv_cache_dtype": kept, "max_num_batched_tokens": budget, "max_num_seqs": 8}
    wanted = expected(folder, [PROMPT], **config)[0]
    producer, consumer = Started(folder, "kv_producer", **config), Started(folder, "kv_both", **config)

    async def both() -> RequestOutput:
        return await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT))

    answer = run(both)
    assert told(answer) == wanted
    assert answer.num_cached_tokens == 64, "all full blocks came"
    assert consumer.metric("vllm:prompt_tokens_by_source_total", source="external_kv_transfer") == 64
    assert consumer.metric("vllm:prompt_tokens_by_source_total", source="local_compute") == 6
    until(lambda: producer.held_blocks == 0)
    assert consumer.held_blocks == 0
    producer.close()
    consumer.close()


def test_many_at_once_in_pools_that_are_too_small(folder: Path) -> None:
    """Preemption at both ends, leases that make room for others: every answer is that of one engine."""
    wanted = [tokens for tokens, _ in expected(folder, TALKS)]
    small: dict[str, Any] = {"num_gpu_blocks_override": 10, "max_num_seqs": 4}
    producer, consumer = Started(folder, "kv_producer", **small), Started(folder, "kv_consumer", **small)

    async def talk(prompt: list[int]) -> list[int]:
        return (await consumer.ask(prompt, transfer=await producer.prefill(prompt))).outputs[0].token_ids

    async def all_talks() -> list[list[int]]:
        return await asyncio.gather(*(talk(prompt) for prompt in TALKS))

    assert run(all_talks) == wanted
    transfers = consumer.metric("headway:kv_transfers_total")
    assert transfers == len(TALKS), "each was pulled, or counted as one that could not be"
    assert consumer.outcome("pulled") > 0
    until(lambda: producer.held_blocks == 0 and consumer.held_blocks == 0)
    producer.close()
    consumer.close()


def test_only_what_is_missing_is_pulled(producer: Started, consumer: Started) -> None:
    """Both ends have a part of the prompt in their prefix cache."""

    async def rest() -> RequestOutput:
        await producer.ask(PROMPT[:40])
        await consumer.ask(PROMPT[:40])
        before = consumer.metric("headway:kv_transfer_bytes_total", direction="in")
        answer = await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT))
        assert consumer.metric("headway:kv_transfer_bytes_total", direction="in") - before == 2 * BLOCK_BYTES
        pulled = consumer.outcome("pulled")
        again = await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT))
        assert consumer.outcome("pulled") == pulled, "all of it is here"
        assert told(again) == told(answer)
        return answer

    assert run(rest).num_cached_tokens == 64


def test_several_answers_share_what_came(producer: Started, consumer: Started) -> None:
    async def three() -> RequestOutput:
        return await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT), n=3, temperature=1.0, seed=5)

    answer = run(three)
    assert len(answer.outputs) == 3
    assert answer.num_cached_tokens == 64
    assert consumer.held_blocks == 0


def test_a_prompt_of_less_than_a_block_has_nothing_to_keep(producer: Started) -> None:
    assert run(lambda: producer.ask(PROMPT[:15], 1, {"do_remote_decode": True})).kv_transfer_params is None


def test_blocks_of_another_prompt_are_no_use(producer: Started, consumer: Started) -> None:
    other = [5, *PROMPT[1:]]

    async def mixed_up() -> RequestOutput:
        return await consumer.ask(other, transfer=await producer.prefill(PROMPT))

    answer = run(mixed_up)
    assert answer.num_cached_tokens == 0
    assert consumer.outcome("prompt_differs") == 1
    assert answer.outputs[0].token_ids == run(lambda: producer.ask(other)).outputs[0].token_ids


def test_who_reads_no_cache_pulls_nothing(producer: Started, consumer: Started) -> None:
    before = consumer.metric("headway:kv_transfers_total")

    async def scored() -> RequestOutput:
        return await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT), prompt_logprobs=1)

    assert len(run(scored).prompt_logprobs or ()) == 70
    assert consumer.metric("headway:kv_transfers_total") == before


def test_roles_are_kept(folder: Path, producer: Started, consumer: Started) -> None:
    ordinary = Started(folder, None)
    source = {"do_remote_prefill": True, "remote_host": "127.0.0.1", "remote_port": 9, "remote_engine_id": "e", "remote_request_id": "r"}
    for started, transfer, message in (
        (ordinary, {"do_remote_decode": True}, "this server does not do"),
        (consumer, {"do_remote_decode": True}, "goes to a producer"),
        (producer, source, "goes to a consumer"),
    ):
        with pytest.raises(RequestError, match=message):
            run(lambda s=started, t=transfer: s.ask(PROMPT, transfer=t))  # type: ignore[misc]
    ordinary.close()


def test_leases_never_stop_a_prompt(folder: Path) -> None:
    """Half of the pool lies in leases, and a prompt needs more than the other half: the oldest lease makes room."""
    producer = Started(folder, "kv_producer", num_gpu_blocks_override=8)
    for first in (3, 4):
        run(lambda first=first: producer.prefill([first, *PROMPT[1:40]]))  # type: ignore[misc]
    assert producer.held_blocks == 4
    answer = run(lambda: producer.ask([9, *PROMPT[1:90]], 4))
    assert len(answer.outputs[0].token_ids) == 4
    assert producer.metric("headway:kv_transfer_lease_events_total", event="dropped") >= 1
    producer.close()
    assert producer.metric("headway:kv_transfer_leases") == 0


def test_a_port_that_is_taken_ends_the_start(folder: Path, producer: Started) -> None:
    transfer = producer.engine._transfer
    assert transfer is not None
    assert transfer._sender is not None
    with pytest.raises(EngineDeadError, match="cannot be listened on"):
        Started(folder, "kv_producer", {"kv_port": transfer._sender.port})
    with pytest.raises(ConfigError, match="is for servers"):
        LLM(str(folder), kv_transfer_config={"kv_connector": "HeadwayConnector", "kv_role": "kv_both"})
