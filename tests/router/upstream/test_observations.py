"""What is observed of models: times, load, answers; kept across reloads, and told as metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headway.router.generation.services import Services
from headway.router.metrics.registry import RouterMetrics
from headway.router.upstream import metering
from headway.router.upstream.activity import ModelActivity
from headway.router.upstream.latencies import KEPT, LatencyBook
from tests.router.upstream.harness import Sender, document, model, pieces, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, hangs_up, never, streams


def test_a_stream_tells_its_first_token_and_the_time_of_each_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(metering.time, "monotonic", lambda: now[0])
    book, metrics = LatencyBook(), RouterMetrics()
    usage = b'data: {"choices": [], "usage": {"completion_tokens": 21}}\n\n'
    meter = metering.StreamMeter(now[0])
    for seconds, event in ((0.5, chunk("a")), (0.1, chunk("b")), (0.1, chunk("", "stop")), (0.3, usage), (0.0, DONE)):
        now[0] += seconds
        assert meter.read(event) == (0 if event == DONE else len(event))
    assert meter.done
    meter.report("m", book, metrics)
    assert book.percentile("m", "ttft", 50) == pytest.approx(0.5)
    assert book.percentile("m", "tpot", 50) == pytest.approx(0.2 / 20)  # three events, but 21 tokens by the backend's count
    assert book.percentile("m", "completion", 50) == pytest.approx(1.0)


def test_streams_are_observed_when_they_have_ended() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("a"), chunk("", "stop"), DONE)]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            await pieces(reply)
            assert sender.services.latencies.count("m", "ttft") == 1
            assert sender.services.metrics.value("llm_model_ttft_seconds", "m") == 1
            await sender.close()

    run(work)


def test_an_answer_in_one_piece_tells_no_first_token() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            await sender.send()
            book = sender.services.latencies
            assert book.percentile("m", "ttft", 50) is None
            assert (book.percentile("m", "tpot", 50) or 0) * 4 == book.percentile("m", "completion", 50)
            again = Sender(document([model("m", backend.endpoint)]), sender.services)
            await again.send()
            assert book.count("m", "completion") == 2
            await sender.close()

    run(work)


def test_a_stream_that_broke_off_tells_nothing() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("a"), stall=True)]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            await anext(reply.raw_chunks)  # type: ignore[arg-type]
            await reply.close()
            assert sender.services.latencies.count("m", "completion") == 0
            await sender.close()

    run(work)


def test_load_counts_requests_until_their_answer_has_ended() -> None:
    async def work() -> None:
        async with ScriptedBackend([never, streams(chunk("a"), stall=True), hangs_up]) as backend:
            services = Services(Path("/nonexistent"))
            sender = Sender(document([model("m", backend.endpoint, reliability={"retry_count": 0})]), services)
            waiting = asyncio.ensure_future(sender.send())
            while len(backend.asked) < 1:
                await asyncio.sleep(0.01)
            reply, _ = await sender.send(stream=True)
            assert services.activity.in_flight("m") == 2
            assert services.metrics.value("llm_model_inflight_requests", "m") == 2
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await reply.close()
            await reply.close()
            await asyncio.gather(sender.send(), return_exceptions=True)
            assert services.activity.in_flight("m") == 0
            assert services.metrics.value("llm_model_inflight_requests", "m") == 0
            assert services.activity.experience("m") == (1 + 1) / (2 + 2)  # the stream began, the last one failed; who left says nothing
            await sender.close()

    run(work)


def test_only_the_last_observations_count() -> None:
    book, activity = LatencyBook(), ModelActivity()
    for value in range(KEPT + 10):
        book.note("m", "ttft", float(value))
    assert book.percentile("m", "ttft", 1) == 12  # of 10..265: rank 3
    for _ in range(600):
        activity.note("m", True)
    for _ in range(500):
        activity.note("m", False)
    assert activity.experience("m") == 1 / 502
