"""Calls of a stage: joined, split, late, cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headway.router.deployments.calls import Answered, Participant, Unanswered
from headway.router.deployments.card import cards_of
from headway.router.deployments.stage import RuntimeStage
from headway.router.metrics.registry import RouterMetrics
from headway.wire.strict_json import dumps
from tests.router.deployments.fake_runtime import answer_questions, fake_runtime, never, noul_card
from tests.router.deployments.setups import NOUL, attached, deployed, metrics, soon, until

CHOICE = {"type": "choice", "instructions": "Which?", "criteria": {"a": None, "b": None}}
SCORE = {"type": "score", "instructions": "How hard?", "levels": ["easy", "middle", "hard"]}
SET = {"type": "set", "instructions": "Which of these?", "labels": [{"key": "x"}, {"key": "y", "description": "why"}]}


async def asking(participant: Participant, *questions: Any, deployment: str = "judge", state: Any = "text", **more: Any) -> list[Any]:
    """One after the other, as a signal does."""
    try:
        return [await participant.decide(deployment, question, state, **more) for question in questions]
    finally:
        participant.leave()


@pytest.mark.parametrize("unix", [False, True])
def test_all_questions_for_a_deployment_leave_in_one_call(unix: bool, tmp_path: Path) -> None:
    async def run() -> None:
        async with fake_runtime(socket=tmp_path / "s" if unix else None) as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            stage = found.open(soon())
            one, two, silent = stage.join(), stage.join(), stage.join()
            jobs = [asyncio.create_task(asking(one, NOUL)), asyncio.create_task(asking(two, CHOICE))]
            await asyncio.sleep(0.02)
            assert runtime.posts == []  # one participant may still ask
            silent.leave()
            [noul], [choice] = await asyncio.gather(*jobs)
            assert noul.value["noul"] == 0.75
            assert choice.value["choice"] == "a"
            [(path, body)] = runtime.posts
            assert (path, body["model"], body["state"]) == ("/v1/decisions", "judge", "text")
            assert [question["type"] for question in body["questions"].values()] == ["noul", "choice"]
            assert 0 < body["options"]["deadline_ms"] <= 5000
            assert metrics(found).value("vsr_model_runtime_stage_decision_calls", "judge", "first") == 1
            assert metrics(found).value("vsr_model_runtime_requests", "judge", "ok") == 1
            assert metrics(found).value("vsr_model_runtime_server_seconds", "judge", "decisions", "forward") == 1
            assert metrics(found).value("vsr_model_runtime_transport_seconds", "judge", "decisions") == 1

    asyncio.run(run())


def test_a_second_question_of_a_signal_is_a_later_round() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            stage = found.open(soon())
            one, two = stage.join(), stage.join()
            await asyncio.gather(asking(one, NOUL, CHOICE), asking(two, SCORE, SET))
            assert [len(body["questions"]) for _, body in runtime.posts] == [2, 2]
            assert metrics(found).value("vsr_model_runtime_stage_decision_calls", "judge", "later") == 1

    asyncio.run(run())


def test_questions_about_different_states_share_one_call() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            stage = found.open(soon())
            one, two, three = stage.join(), stage.join(), stage.join()
            answers = await asyncio.gather(asking(one, NOUL), asking(two, CHOICE, state="other"), asking(three, SCORE, state="text"))
            [(_, body)] = runtime.posts
            assert {name: (part["state"], len(part["questions"])) for name, part in body["states"].items()} == {"s0": ("text", 2), "s1": ("other", 1)}
            assert [answer.value["type"] for [answer] in answers] == ["noul", "choice", "score"]

    asyncio.run(run())


def test_deployments_are_asked_side_by_side() -> None:
    async def run() -> None:
        async with fake_runtime(noul_card("a"), noul_card("b")) as runtime:
            both = {"a": attached(runtime.endpoint), "b": attached(runtime.endpoint)}
            async with deployed(both) as found:
                stage = found.open(soon())
                await asyncio.gather(asking(stage.join(), NOUL, deployment="a"), asking(stage.join(), NOUL, deployment="b"))
                assert {body["model"] for _, body in runtime.posts} == {"a", "b"}

    asyncio.run(run())


def test_full_coverage_must_be_proven() -> None:
    async def forgetful(body: Any) -> Any:
        answer = await answer_questions(body)
        for each in answer["answers"].values():
            each.pop("input_coverage", None)
        return answer

    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            for question in (NOUL, CHOICE, SCORE, SET):
                [proven] = await asking(found.open(soon()).join(), question, full=True)
                assert isinstance(proven, Answered)
                assert proven.read_all
            assert all(question["require_full_input"] for _, body in runtime.posts for question in body["questions"].values())
            runtime.script["/v1/decisions"] = forgetful
            for question in (NOUL, CHOICE, SCORE, SET):
                assert await asking(found.open(soon()).join(), question, full=True) == [Unanswered("input_coverage_unknown")]

    asyncio.run(run())


def test_a_truncated_view_is_asked_for_where_the_model_has_one() -> None:
    async def run() -> None:
        card = noul_card(limits={"max_input_tokens": 512, "truncate_tokens": 100, "max_scan_tokens": 4096})
        budget = {"max_tokens": 2000, "overflow": "window"}
        async with fake_runtime(card) as runtime, deployed({"judge": attached(runtime.endpoint, input=budget)}) as found:
            stage = found.open(soon())
            await asyncio.gather(asking(stage.join(), NOUL), asking(stage.join(), CHOICE, full=True))
            [(_, body)] = runtime.posts
            assert body["options"]["max_tokens"] == 2000
            short, whole = body["questions"].values()
            assert (short["overflow"], "require_full_input" in short) == ("truncate", False)
            assert (whole["require_full_input"], "overflow" in whole) == (True, False)

    asyncio.run(run())


def test_a_set_is_made_of_nouls_for_a_model_without_sets() -> None:
    async def run() -> None:
        async with fake_runtime(noul_card(question_types=["noul"])) as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            [answer] = await asking(found.open(soon()).join(), {**SET, "threshold": 0.7})
            assert answer.value == {"type": "set", "probabilities": {"x": 0.75, "y": 0.75}, "selected": ["x", "y"]}
            [(_, body)] = runtime.posts
            assert [question["type"] for question in body["questions"].values()] == ["noul", "noul"]
            assert "why" in list(body["questions"].values())[1]["instructions"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "full", "reason"),
    [
        ("max_length_exceeded", False, "input_limit"),
        ("scan_budget_exceeded", True, "scan_budget"),
        ("deadline_exceeded", False, "timeout"),
        ("deadline_exceeded", True, "deadline"),
        ("invalid_question", False, "rejected"),
        ("invalid_model_output", False, "invalid_model_output"),
        ("something_new", False, "failed"),
    ],
)
def test_one_failed_question_harms_no_other(code: str, full: bool, reason: str) -> None:
    async def partly(body: Any) -> Any:
        answer = await answer_questions(body)
        answer["answers"]["q0"] = {"type": "noul", "error": code}
        return answer

    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = partly
            stage = found.open(soon())
            [bad], [good] = await asyncio.gather(asking(stage.join(), NOUL, full=full), asking(stage.join(), CHOICE))
            assert bad == Unanswered(reason)
            assert good.value["choice"] == "a"
            assert metrics(found).value("vsr_model_runtime_unknown_answers", "judge", reason) == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (429, {"error": {"code": "overloaded"}}, "overloaded"),
        (503, {"error": {"code": "not_ready"}}, "unavailable"),
        (400, {"error": {"code": "invalid_request"}}, "rejected"),
        (422, {"error": {"code": "unsupported_surface"}}, "rejected"),
        (500, {"error": {"code": "internal_error"}}, "failed"),
        (200, b"no json", "failed"),
        (200, b"[]", "failed"),
        (200, {"answers": {}}, "missing_answer"),
        (200, {}, "missing_answer"),
    ],
)
def test_a_call_that_fails_leaves_its_questions_unanswered(status: int, body: Any, reason: str) -> None:
    async def refusing(_: Any) -> Any:
        return status, body

    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = refusing
            assert await asking(found.open(soon()).join(), NOUL) == [Unanswered(reason)]

    asyncio.run(run())


def test_who_is_late_gets_no_answer_and_the_call_ends() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = never
            assert await asking(found.open(soon()).join(), NOUL, timeout=0.05) == [Unanswered("timeout")]
            assert runtime.posts[0][1]["options"]["deadline_ms"] <= 50
            assert await asking(found.open(soon(0.05)).join(), NOUL) == [Unanswered("timeout")]
            [pool] = found.pools
            await until(lambda: pool.workers[0].in_flight == 0)
            assert pool.workers[0].admitted_bytes == 0
            assert pool.ready  # a late answer says nothing about the runtime

    asyncio.run(run())


def test_a_question_waits_with_its_own_timeout_until_it_is_sent_and_then_with_the_longest() -> None:
    async def slow(body: Any) -> Any:
        await asyncio.sleep(0.1)
        return await answer_questions(body)

    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = slow
            stage = found.open(soon())
            hasty, patient = await asyncio.gather(asking(stage.join(), NOUL, timeout=0.02), asking(stage.join(), NOUL, timeout=3))
            assert isinstance(hasty[0], Answered)
            assert isinstance(patient[0], Answered)
            stage = found.open(soon())
            alone, thinking = stage.join(), stage.join()
            assert await asking(alone, NOUL, timeout=0.02) == [Unanswered("timeout")]  # the other one never asks
            thinking.leave()
            assert len(runtime.posts) == 1

    asyncio.run(run())


def test_a_request_that_ends_takes_its_call_with_it() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            runtime.script["/v1/decisions"] = never
            stage = found.open(soon())
            jobs = [asyncio.create_task(asking(stage.join(), NOUL)) for _ in range(2)]
            await until(lambda: runtime.posts)
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await until(lambda: found.pools[0].workers[0].in_flight == 0)
            assert metrics(found).value("vsr_model_runtime_requests", "judge", "cancelled") == 1
            assert metrics(found).value("vsr_model_runtime_replica_requests", "judge", found.pools[0].workers[0].id, "canceled") == 1

    asyncio.run(run())


def test_what_is_not_there_is_said_at_once() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint), "away": attached("http://127.0.0.1:9")}, ready=False) as found:
            await until(lambda: found.callers["judge"].pool.ready)
            participant = found.open(soon()).join()
            assert await participant.decide("nobody", NOUL, "text") == Unanswered("unknown_deployment")
            assert await participant.decide("away", NOUL, "text") == Unanswered("unavailable")
            assert await participant.classify("away", ["a", "b"]) == [Unanswered("unavailable")] * 2
            assert await participant.embed("away", ["a"]) == Unanswered("unavailable")
            participant.leave()

    asyncio.run(run())


def test_a_text_that_no_json_can_carry_costs_only_its_own_call() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime, deployed({"judge": attached(runtime.endpoint)}) as found:
            assert await asking(found.open(soon()).join(), NOUL, state="\ud800") == [Unanswered("failed")]
            [good] = await asking(found.open(soon()).join(), NOUL)
            assert isinstance(good, Answered)

    asyncio.run(run())


class Scripted:
    """A target in this process; `gate` holds its answers back."""

    card = cards_of(dumps({"api_version": "2.2.0", "data": [noul_card()]}))["judge"]
    most_inputs = 10

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked: list[int] = []

    def fixed(self, surface: str) -> Any:
        return {}, {}

    async def ask(self, surface: str, fields: Any, options: Any, timeout: float) -> Any:
        self.asked.append(len(fields["questions"]))
        await self.gate.wait()
        return Answered(await answer_questions({"model": "judge", **fields}))

    def count_unanswered(self, reason: str) -> None:
        raise AssertionError(reason)


def test_who_was_answered_a_moment_ago_may_still_ask() -> None:
    """Between the last signal that parks and the departure, the answer of another one comes: its next question leaves with the others."""

    async def run() -> None:
        slow, fast = Scripted(), Scripted()
        fast.gate.set()
        stage = RuntimeStage({"slow": slow, "fast": fast}, RouterMetrics(), soon(), 0.002)
        one, two = stage.join(), stage.join()
        goes_on = asyncio.Event()

        async def first() -> None:
            await one.decide("slow", NOUL, "text")
            await one.decide("fast", NOUL, "text")
            one.leave()

        async def second() -> None:
            await two.decide("fast", NOUL, "text")
            await goes_on.wait()
            await two.decide("fast", NOUL, "text")
            two.leave()

        jobs = [asyncio.create_task(first()), asyncio.create_task(second())]
        await until(lambda: fast.asked and not two.waiting)
        goes_on.set()  # the second parks ...
        slow.gate.set()  # ... and in the same turn of the loop the first gets its answer
        await asyncio.gather(*jobs)
        assert (slow.asked, fast.asked) == ([1], [1, 2])

    asyncio.run(run())
