"""Attached runtimes: readiness, cards, caches, overload, several routers, embeddings and heads."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headway.router.deployments.calls import Answered, Distribution, FoundSpan, Unanswered
from headway.router.deployments.worker import MAX_IN_FLIGHT
from tests.router.deployments.fake_runtime import answer_questions, fake_runtime, never, noul_card
from tests.router.deployments.setups import NOUL, asking, attached, decide, deployed, metrics, soon, until


def task_card(**fields: Any) -> Any:
    heads = [
        {"name": "domain", "kind": "sequence", "labels": ["math", "law"], "inputs": ["text"]},
        {"name": "pii", "kind": "token", "labels": ["NAME"], "inputs": ["text"]},
    ]
    card = noul_card("tasks", surfaces=["classify", "embeddings", "rerank"], heads=heads, embedding={"dimensions": [2], "layers": [6]})
    return {**card, "limits": {"max_input_tokens": 512, "max_inputs": 3}, **fields}


def test_readiness_follows_the_runtime() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            [pool] = found.pools
            runtime.states["judge"] = ("loading", "resolving the model")
            await until(lambda: not pool.ready)
            assert (pool.state.state, pool.state.reason) == ("loading", "resolving the model")
            assert await decide(found) == Unanswered("unavailable")
            assert metrics(found).value("vsr_model_runtime_ready", "judge") == 0
            runtime.states["judge"] = ("ready", None)
            await until(lambda: pool.ready)
            await runtime.stop()
            await until(lambda: pool.state.state == "unreachable")
            await runtime.start()
            await until(lambda: pool.ready)
            assert (await decide(found)).value["noul"] == 0.75

    asyncio.run(run())


def test_a_model_of_another_name_is_missing() -> None:
    async def run() -> None:
        async with fake_runtime(noul_card("other")) as runtime:
            async with deployed({"judge": attached(runtime.endpoint)}, ready=False) as found:
                await until(lambda: found.pools[0].state.state == "missing")
                assert found.pools[0].state.reason == "the runtime does not serve judge; it serves other"
            async with deployed({"judge": attached(runtime.endpoint, served_name="other")}) as found:
                assert (await decide(found)).value["noul"] == 0.75

    asyncio.run(run())


def test_another_major_version_is_incompatible() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime:
            runtime.api_version = "3.0.0"
            async with deployed({"judge": attached(runtime.endpoint)}, ready=False) as found:
                await until(lambda: found.pools[0].state.state == "incompatible")
                assert "3.0.0" in found.pools[0].state.reason

    asyncio.run(run())


def test_an_older_runtime_gets_one_call_for_each_text() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime:
            runtime.api_version = "2.1.0"
            async with deployed({"judge": attached(runtime.endpoint)}) as found:
                stage = found.open(soon())
                one, two = stage.join(), stage.join()
                answers = await asyncio.gather(one.decide("judge", NOUL, "a"), two.decide("judge", NOUL, "b"))
                assert all(isinstance(answer, Answered) for answer in answers)
                assert sorted(body["state"] for _, body in runtime.posts) == ["a", "b"]
                one.leave()
                two.leave()

    asyncio.run(run())


def test_the_key_goes_with_every_call() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}, key="s3cret") as found:
            await decide(found)
            assert runtime.headers[0]["authorization"] == "Bearer s3cret"

    asyncio.run(run())


def test_answers_are_kept_until_readiness_changes() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}, cache=2) as found:
            for state in ("a", "a", "b", "c", "a"):
                await decide(found, state=state)
            assert [body["state"] for _, body in runtime.posts] == ["a", "b", "c", "a"]  # "a" was the oldest of two when "c" came
            assert metrics(found).value("vsr_model_runtime_result_cache", "judge", "hit") == 1
            assert metrics(found).value("vsr_model_runtime_result_cache", "judge", "miss") == 4
            runtime.states["judge"] = ("failed", "fault")
            await until(lambda: not found.pools[0].ready)
            runtime.states["judge"] = ("ready", None)
            await until(lambda: found.pools[0].ready)
            await decide(found, state="a")
            assert len(runtime.posts) == 5

    asyncio.run(run())


def test_incomplete_answers_are_not_kept() -> None:
    async def partly(body: Any) -> Any:
        answer = await answer_questions(body)
        answer["answers"]["q0"] = {"type": "noul", "error": "deadline_exceeded"}
        return answer

    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}, cache=10) as found:
            runtime.script["/v1/decisions"] = partly
            for _ in range(2):
                assert await decide(found) == Unanswered("timeout")
            assert len(runtime.posts) == 2

    asyncio.run(run())


def test_a_full_worker_refuses_more_at_once() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = never
            jobs = [asyncio.create_task(decide(found, state=str(number))) for number in range(MAX_IN_FLIGHT)]
            await until(lambda: found.pools[0].workers[0].in_flight == MAX_IN_FLIGHT)
            assert await decide(found) == Unanswered("overloaded")
            assert metrics(found).value("vsr_model_runtime_unknown_answers", "judge", "overloaded") == 1
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await until(lambda: found.pools[0].workers[0].in_flight == 0)

    asyncio.run(run())


def test_admission_bounds_concurrency_and_the_queue() -> None:
    running = most = 0

    async def counted(body: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return await answer_questions(body)

    async def run() -> None:
        admission = {"judge": {"max_concurrency": 2, "max_queue": 3}}
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}, admission=admission) as found:
            runtime.script["/v1/decisions"] = counted
            answers = await asyncio.gather(*(decide(found, state=str(number)) for number in range(8)))
            assert most == 2
            assert [isinstance(answer, Answered) for answer in answers] == [True] * 5 + [False] * 3
            assert answers[-1] == Unanswered("overloaded")

    asyncio.run(run())


def test_who_waits_too_long_in_the_queue_is_refused() -> None:
    async def run() -> None:
        admission = {"judge": {"max_concurrency": 1, "queue_timeout_ms": 20}}
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}, admission=admission) as found:
            runtime.script["/v1/decisions"] = never
            job = asyncio.create_task(decide(found, state="first"))
            await until(lambda: runtime.posts)
            assert await decide(found) == Unanswered("overloaded")
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
            runtime.script["/v1/decisions"] = answer_questions
            assert isinstance(await decide(found), Answered)  # the place is free again

    asyncio.run(run())


def test_two_routers_share_one_runtime() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as one, deployed({"judge": attached(runtime.endpoint)}) as two:
            answers = await asyncio.gather(*(decide(found, state=str(number)) for number in range(10) for found in (one, two)))
            assert all(isinstance(answer, Answered) for answer in answers)
            assert len(runtime.posts) == 20

    asyncio.run(run())


@pytest.mark.parametrize(
    ("binding", "reason"),
    [
        ({"contract": "label_distribution.v1", "head": "domain"}, None),
        ({"contract": "label_distribution.v1", "head": "topics"}, "the head topics, the model has domain, pii"),
        ({"contract": "label_distribution.v1", "head": "pii"}, "a head of kind sequence, pii is of kind token"),
        ({"contract": "decision.v1"}, "the surface decisions, the model serves classify, embeddings, rerank"),
    ],
)
def test_bindings_are_checked_against_the_card(binding: dict[str, Any], reason: str | None) -> None:
    async def run() -> None:
        bindings = {"domain_classifier": {"deployment": "tasks", **binding}}
        async with fake_runtime(task_card()) as runtime, deployed({"tasks": attached(runtime.endpoint)}, ready=False, bindings=bindings) as found:
            await until(lambda: found.pools[0].workers[0].state.ready)
            state = found.pools[0].state
            expected = "" if reason is None else f"a binding does not match the model: domain_classifier needs {reason}"
            assert (state.state, state.reason) == ("ready" if reason is None else "incompatible", expected)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("budget", "card", "fits"),
    [
        ({"max_tokens": 512}, task_card(), True),
        ({"max_tokens": 513}, task_card(), False),
        ({"max_tokens": 2000, "overflow": "window"}, task_card(limits={"max_input_tokens": 512, "max_scan_tokens": 4096}), True),
        ({"max_tokens": 5000, "overflow": "window"}, task_card(limits={"max_input_tokens": 512, "max_scan_tokens": 4096}), False),
        ({"max_tokens": 100, "overflow": "window"}, noul_card("tasks"), False),
        ({"overflow": "truncate"}, noul_card("tasks"), False),
    ],
)
def test_the_input_budget_is_checked_against_the_card(budget: dict[str, Any], card: Any, fits: bool) -> None:
    async def run() -> None:
        async with fake_runtime(card) as runtime, deployed({"tasks": attached(runtime.endpoint, input=budget)}, ready=False) as found:
            await until(lambda: found.pools[0].workers[0].state.ready)
            assert found.pools[0].ready is fits

    asyncio.run(run())


async def classified(body: Any) -> Any:
    if body.get("head") == "pii":
        results = [{"index": i, "spans": [{"label": "NAME", "start": 0, "end": 1, "text": text[:1], "probability": 0.9}]} for i, text in enumerate(body["input"])]
        return {"kind": "token", "labels": ["NAME"], "results": results}
    results: list[Any] = []
    for i, text in enumerate(body["input"]):
        failed = {"index": i, "error": "max_length_exceeded"}
        results.append(failed if text == "long" else {"index": i, "label": "math", "probabilities": [0.8, 0.2], "input": {"truncated": text == "cut"}})
    return {"kind": "sequence", "labels": ["math", "law"], "results": results}


def test_texts_for_one_head_share_calls_of_at_most_what_the_model_takes() -> None:
    async def run() -> None:
        async with fake_runtime(task_card()) as runtime, deployed({"tasks": attached(runtime.endpoint, input={"max_tokens": 300})}) as found:
            runtime.script["/v1/classify"] = classified
            stage = found.open(soon())
            one, two, three = stage.join(), stage.join(), stage.join()
            first, second, third = await asyncio.gather(
                one.classify("tasks", ["a", "long"], head="domain"),
                two.classify("tasks", ["cut", "b"], head="domain"),
                three.find_spans("tasks", ["Ann"], head="pii"),
            )
            assert first == [Answered(Distribution({"math": 0.8, "law": 0.2}), True, first[0].seconds), Unanswered("input_limit")]
            assert [answer.read_all for answer in second] == [False, True]
            assert third[0].value == [FoundSpan("NAME", 0, 1, 0.9, "A")]
            assert sorted((body.get("head"), len(body["input"])) for _, body in runtime.posts) == [("domain", 1), ("domain", 3), ("pii", 1)]
            assert all(body["options"]["max_tokens"] == 300 for _, body in runtime.posts)
            for participant in (one, two, three):
                participant.leave()

    asyncio.run(run())


Change = Callable[[Any], None]


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item.update(probabilities=[0.8, 0.3]),
        lambda item: item.update(probabilities=[1.2, -0.2]),
        lambda item: item.update(probabilities=[1.0]),
        lambda item: item.update(probabilities=["a", "b"]),
        lambda item: item.pop("probabilities"),
    ],
)
def test_distributions_that_cannot_be_are_no_answers(change: Change) -> None:
    async def wrong(body: Any) -> Any:
        answer = await classified(body)
        change(answer["results"][0])
        return answer

    async def run() -> None:
        async with fake_runtime(task_card()) as runtime, deployed({"tasks": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/classify"] = wrong
            with asking(found) as calls:
                bad, good = await calls.classify("tasks", ["a", "b"])
                assert bad == Unanswered("invalid_model_output")
                assert isinstance(good, Answered)

    asyncio.run(run())


def test_vectors_and_what_they_are_stored_under() -> None:
    async def embedded(body: Any) -> Any:
        assert body["encoding_format"] == "base64"
        usage = {"truncated": "long" in body["input"]}
        data = [{"index": i, "input": usage, "embedding": base64.b64encode(np.array([i, 0.5], "<f4").tobytes()).decode()} for i, _ in enumerate(body["input"])]
        meta = {"representation": {"model_sha256": "a" * 64, "layer": 6, "dimension": 2, "normalized": True}}
        return {"object": "list", "data": data, "meta": meta}

    async def run() -> None:
        async with fake_runtime(task_card()) as runtime, deployed({"tasks": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/embeddings"] = embedded
            with asking(found) as calls:
                answer = await calls.embed("tasks", ["a", {"image": "data:image/png;base64,AA=="}, "b", "c"])
                cut = await calls.embed("tasks", ["long"])
            assert not cut.read_all
            assert answer.value == [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5], [0.0, 0.5]]  # two calls: three inputs at most
            card = found.card("tasks")
            assert card is not None
            assert answer.representation == card.representation == f"{'a' * 64}/layer-6/2"
            assert answer.read_all
            assert runtime.posts[0][1]["input"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

    asyncio.run(run())


def test_relevance_of_documents() -> None:
    async def ranked(body: Any) -> Any:
        results = [{"index": i, "relevance_score": 1 / (1 + len(text))} for i, text in enumerate(body["documents"])]
        return {"results": sorted(results, key=lambda result: -result["relevance_score"])}

    async def run() -> None:
        async with fake_runtime(task_card()) as runtime, deployed({"tasks": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/rerank"] = ranked
            with asking(found) as calls:
                answers = await calls.rerank("tasks", "q", ["abc", "a"])
            assert [answer.value for answer in answers] == [0.25, 0.5]

    asyncio.run(run())
