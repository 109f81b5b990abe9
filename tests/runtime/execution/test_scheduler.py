"""The scheduler with its thread: passes, failures, deadlines, cancellation, rounds, the end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from headway.errors import HeadwayError, QueueFullError, RequestError, StepError
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.planned import Planned, begin, finish, submit
from headway.runtime.execution.scheduler import Scheduler
from headway.wire.embeddings import EmbeddingsRequest, Text
from tests.runtime.arithmetic_model import BREAKS, NOT_A_NUMBER, ArithmeticModel


@pytest.fixture
def device() -> Iterator[DeviceThread]:
    thread = DeviceThread()
    yield thread
    assert thread.close()


class Counted:
    def __init__(self) -> None:
        self.hits = self.misses = self.late = 0
        self.passes: list[tuple[int, int]] = []

    def on_forward(self, rows: int, tokens: int, seconds: float) -> None:
        self.passes.append((rows, tokens))

    def on_queued(self, seconds: float) -> None:
        assert seconds >= 0

    def on_cache(self, hits: int, misses: int) -> None:
        self.hits += hits
        self.misses += misses

    def on_late(self, rows: int) -> None:
        self.late += rows


def embeddings(model: ArithmeticModel, *texts: str) -> Any:
    return model.planners["embeddings"](EmbeddingsRequest(tuple(map(Text, texts))))


async def ask(scheduler: Scheduler, model: ArithmeticModel, *texts: str, deadline: float | None = None) -> Any:
    """What came for each text: its two numbers, or the code of its failure."""
    planned = await begin(embeddings(model, *texts))
    submit(scheduler, [planned], time.perf_counter(), [deadline])
    return found(await finish(scheduler, planned))


def found(body: dict[str, Any]) -> list[Any]:
    return [list(item["embedding"]) if "embedding" in item else item["error"] for item in body["data"]]


def values(*texts: str) -> list[Any]:
    return [[sum(map(ord, text)), len(text)] for text in texts]


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


async def entered(model: ArithmeticModel) -> None:
    assert await asyncio.to_thread(model.entered.wait, 10)


def test_requests_that_wait_together_share_a_pass(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> Any:
        model.gate.clear()
        first = asyncio.ensure_future(ask(scheduler, model, "first"))
        await entered(model)
        rest = [asyncio.ensure_future(ask(scheduler, model, text)) for text in ("ab", "c", "ab")]
        await asyncio.sleep(0.05)
        model.gate.set()
        return await asyncio.gather(first, *rest)

    assert run(main()) == [values("first"), values("ab"), values("c"), values("ab")]
    assert [len(rows) for rows in model.passes] == [1, 2]  # the second with both texts, "ab" once
    assert model.threads == {"device"}
    assert (scheduler.admission.jobs, scheduler.admission.tokens) == (0, 0)


def test_without_sharing_each_request_has_its_passes(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(share_forwards=False, result_cache_entries=0), device)

    async def main() -> Any:
        return await asyncio.gather(*(ask(scheduler, model, text, text + "x") for text in "abc"))

    assert run(main()) == [values(text, text + "x") for text in "abc"]
    assert [len(rows) for rows in model.passes] == [2, 2, 2]


def test_two_models_compute_on_one_thread(device: DeviceThread) -> None:
    models = [ArithmeticModel(), ArithmeticModel()]
    schedulers = [Scheduler(model, ExecutionSettings(), device) for model in models]

    async def main() -> Any:
        return await asyncio.gather(*(ask(s, m, "x") for s, m in zip(schedulers, models, strict=True)))

    assert run(main()) == [values("x")] * 2
    assert models[0].threads == models[1].threads == {"device"}


def test_a_model_that_needs_no_device_thread_runs_where_it_is_asked(device: DeviceThread) -> None:
    model = ArithmeticModel(rounds=2, uses_device_thread=False)
    scheduler = Scheduler(model, ExecutionSettings(), device)
    assert run(ask(scheduler, model, "x", "yy")) == values("x", "yy")
    assert model.threads == {threading.current_thread().name}


def test_such_a_model_never_runs_twice_at_once(device: DeviceThread) -> None:
    model = ArithmeticModel(uses_device_thread=False)
    scheduler = Scheduler(model, ExecutionSettings(result_cache_entries=0), device)
    inside, most = 0, 0
    forward = model.forward
    lock = threading.Lock()

    def watched(rows: Sequence[Any]) -> Any:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.001)
        outcomes = forward(rows)
        with lock:
            inside -= 1
        return outcomes

    model.forward = watched  # type: ignore[method-assign]
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(run(ask(scheduler, model, str(n))))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(answers) == sorted(values(str(n)) for n in range(16))
    assert most == 1


def test_a_failing_pass_fails_its_jobs_only_and_tells_the_log_no_text(
    device: DeviceThread, caplog: pytest.LogCaptureFixture
) -> None:
    model = ArithmeticModel()
    failures: list[BaseException] = []
    scheduler = Scheduler(model, ExecutionSettings(share_forwards=False), device, on_failure=failures.append)

    async def main() -> Any:
        return await asyncio.gather(
            ask(scheduler, model, "good"), ask(scheduler, model, BREAKS), ask(scheduler, model, "also good"), return_exceptions=True
        )

    with caplog.at_level(logging.DEBUG):
        good, bad, other = run(main())
    assert [good, other] == [values("good"), values("also good")]
    assert isinstance(bad, StepError)
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
    assert "ZeroDivisionError" in caplog.text
    assert "secret text" not in caplog.text
    assert scheduler.admission.jobs == 0
    assert run(ask(scheduler, model, "later")) == values("later")


def test_output_that_is_not_finite_is_the_failure_of_its_item(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)
    assert run(ask(scheduler, model, "a", NOT_A_NUMBER, "b")) == [*values("a"), "invalid_model_output", *values("b")]


def test_results_are_kept_and_equal_with_the_cache_on_and_off(device: DeviceThread) -> None:
    answers = []
    for entries, passes in ((0, 2), (100, 1)):
        model, counted = ArithmeticModel(), Counted()
        scheduler = Scheduler(model, ExecutionSettings(result_cache_entries=entries), device, counted)
        answers.append([run(ask(scheduler, model, "a", "b", "a")) for _ in range(2)])
        assert len(model.passes) == len(counted.passes) == passes
        assert counted.passes[0] == (2, 2)
        assert (counted.hits, counted.misses) == ((2, 2) if entries else (0, 0))
    assert answers[0] == answers[1]


def test_what_is_late_when_it_comes_is_not_computed(device: DeviceThread) -> None:
    model, counted = ArithmeticModel(), Counted()
    scheduler = Scheduler(model, ExecutionSettings(), device, counted)
    assert run(ask(scheduler, model, "a", "b", deadline=time.perf_counter())) == ["deadline_exceeded"] * 2
    assert model.passes == []
    assert counted.late == 2


def test_what_is_late_when_it_comes_does_not_wait_for_the_device(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> None:
        model.gate.clear()
        first = asyncio.ensure_future(ask(scheduler, model, "first"))
        await entered(model)
        assert await ask(scheduler, model, "late", deadline=time.perf_counter()) == ["deadline_exceeded"]
        assert not first.done()
        model.gate.set()
        await first

    run(main())


def test_a_deadline_ends_the_rest_of_a_job_between_passes(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(max_num_seqs=1), device)

    async def main() -> Any:
        model.gate.clear()
        asked = asyncio.ensure_future(ask(scheduler, model, "long", "x", deadline=time.perf_counter() + 0.2))
        await entered(model)
        await asyncio.sleep(0.25)
        model.gate.set()
        return await asked

    assert run(main()) == [*values("long"), "deadline_exceeded"]  # what was in a pass has its result


def test_who_leaves_the_queue_is_not_computed(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> Any:
        model.gate.clear()
        first = asyncio.ensure_future(ask(scheduler, model, "first"))
        await entered(model)
        second = asyncio.ensure_future(ask(scheduler, model, "second"))
        await asyncio.sleep(0.01)
        assert scheduler.admission.jobs == 2
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert (scheduler.admission.jobs, scheduler.admission.tokens) == (0, 0)
        model.gate.set()
        return await ask(scheduler, model, "third")

    assert run(main()) == values("third")
    assert [len(rows) for rows in model.passes] == [1, 1]


def test_a_full_queue_refuses_groups_but_no_later_round(device: DeviceThread) -> None:
    model = ArithmeticModel(rounds=3)
    scheduler = Scheduler(model, ExecutionSettings(max_queue=2, max_queued_tokens=10), device)

    async def main() -> None:
        model.gate.clear()
        first = asyncio.ensure_future(ask(scheduler, model, "123456789"))
        await entered(model)
        group = [await begin(embeddings(model, text)) for text in ("a", "b")]
        with pytest.raises(QueueFullError):
            submit(scheduler, group, 0.0, [None, None])
        assert (scheduler.admission.jobs, scheduler.admission.tokens) == (1, 9)
        model.gate.set()
        assert await first == values("123456789")
        assert await ask(scheduler, model, "x" * 500) == values("x" * 500)  # alone, over the limit
        assert (scheduler.admission.jobs, scheduler.admission.tokens) == (0, 0)

    run(main())
    assert len(model.passes) == 6


def test_a_request_that_is_wrong_fails_before_it_is_admitted(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> None:
        with pytest.raises(RequestError):
            await begin(model.planners["embeddings"](EmbeddingsRequest((Text("a"),), layer=3)))

    run(main())
    assert scheduler.admission.jobs == 0


def test_a_plan_that_asks_for_nothing_is_answered_at_once(device: DeviceThread) -> None:
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)
    assert run(ask(scheduler, model)) == []
    assert model.passes == []


def test_the_end_answers_what_waits_and_refuses_what_comes() -> None:
    device = DeviceThread()
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> None:
        model.gate.clear()
        running = asyncio.ensure_future(ask(scheduler, model, "running"))
        await entered(model)
        waiting = asyncio.ensure_future(ask(scheduler, model, "waiting"))
        await asyncio.sleep(0.01)
        closing = asyncio.ensure_future(asyncio.to_thread(device.close, 10.0))
        with pytest.raises(HeadwayError) as ended:
            await waiting
        assert ended.value.reason == "shutting_down"
        with pytest.raises(HeadwayError):
            await ask(scheduler, model, "too late")
        model.gate.set()
        assert await closing
        assert await running == values("running")

    run(main())
    assert model.passes == [[tuple(map(ord, "running"))]]


def test_a_pass_that_does_not_end_is_left_behind() -> None:
    device = DeviceThread()
    model = ArithmeticModel()
    scheduler = Scheduler(model, ExecutionSettings(), device)

    async def main() -> None:
        model.gate.clear()
        running = asyncio.ensure_future(ask(scheduler, model, "stuck"))
        await entered(model)
        assert not await asyncio.to_thread(device.close, 0.05)
        model.gate.set()
        await running

    run(main())


def test_work_of_others_runs_between_passes(device: DeviceThread) -> None:
    assert device.call(lambda: threading.current_thread().name) == "device"
    assert device.call(lambda: device.call(lambda: 3)) == 3
    with pytest.raises(ZeroDivisionError):
        device.call(lambda: 1 / 0)


def test_the_times_of_a_job_add_up(device: DeviceThread) -> None:
    model = ArithmeticModel(rounds=2)
    scheduler = Scheduler(model, ExecutionSettings(max_num_seqs=1), device)

    async def main() -> tuple[Planned, float]:
        began = time.perf_counter()
        planned = await begin(embeddings(model, "a", "bb", "ccc"))
        submit(scheduler, [planned], began, [None])
        await finish(scheduler, planned)
        return planned, time.perf_counter() - began

    planned, total = run(main())
    parts = [planned.tokenize_seconds, planned.queue_seconds, planned.forward_seconds, planned.post_seconds]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= total
    assert isinstance(planned.body, dict)
    assert np.array_equal(planned.body["data"][2]["embedding"], values("ccc")[0])
