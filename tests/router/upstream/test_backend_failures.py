"""Backends that fail in every way: what is tried again, what is not, and what the client is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time

import pytest

from headway.errors import HeadwayError
from headway.router.upstream.errors import NoBackendError, UpstreamError, UpstreamTimeoutError
from tests.router.upstream.harness import Sender, document, free_port, model, pieces, run
from tests.router.upstream.scripted_backend import (
    DONE,
    ScriptedBackend,
    answers,
    chunk,
    hangs_up,
    never,
    streams,
    trickles,
)

SECRET = "sk-very-secret"


def test_a_refused_connection_goes_to_the_other_backend_without_any_setting() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as good:
            sender = Sender(document([model("m", f"127.0.0.1:{free_port()}", good.endpoint)]))
            for _ in range(4):
                reply, context = await sender.send()
                assert reply.status == 200
            assert len(good.asked) == 4
            assert any(attempt == "m/b0: connect_failed" for attempt in context.attempts) or context.attempts == ["m/b1: ok"]
            await sender.close()

    run(work)


def test_the_log_tells_once_that_a_backend_fails_and_once_that_it_answers_again(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        answered = [answers({"error": {"message": "down"}}, 503)] * 3 + [answers()]
        async with ScriptedBackend(answered) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            for _ in range(5):
                await sender.send()
            await sender.close()

    with caplog.at_level("INFO", logger="headway.router.upstream.asking"):
        run(work)
    assert [record.getMessage() for record in caplog.records] == [
        "backend m/b0 answered with status 503; further failures are only counted, in vsr_upstream_attempts",
        "backend m/b0 answers again",
    ]


def test_without_retries_an_answer_is_never_asked_for_again() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"error": {"message": "busy"}}, 503)]) as bad, ScriptedBackend([answers()]) as good:
            sender = Sender(document([model("m", bad.endpoint, good.endpoint)]))
            reply, context = await sender.send()
            assert (reply.status, context.attempts) == (503, ["m/b0: status_503"])
            assert good.asked == []
            await sender.close()

    run(work)


def test_503_twice_then_200_with_two_retries_and_not_with_one() -> None:
    script = [answers(b"{}", 503), answers(b"{}", 503), answers()]

    async def work(retries: int) -> tuple[int, int]:
        async with ScriptedBackend(script) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"retry_count": retries})]))
            reply, _ = await sender.send()
            await sender.close()
            return reply.status, len(backend.asked)

    assert run(lambda: work(2)) == (200, 3)
    assert run(lambda: work(1)) == (503, 2)


def test_a_status_that_is_named_is_tried_again_whatever_it_is() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", 418)]) as odd, ScriptedBackend([answers()]) as good:
            settings = {"retry_count": 1, "retriable_status_codes": [418], "consecutive_5xx": 1}
            sender = Sender(document([model("m", odd.endpoint, good.endpoint, reliability=settings)]))
            reply, context = await sender.send()
            assert (reply.status, context.attempts) == (200, ["m/b0: status_418", "m/b1: ok"])
            assert sender.services.metrics.value("vsr_upstream_ejections", "m", "m/b0") == 0  # it is no 5xx
            await sender.close()

    run(work)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 500])
def test_what_another_try_would_not_mend_is_not_tried_again(status: int) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"error": {"message": "no", "code": status}}, status)]) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"retry_count": 3})]))
            reply, _ = await sender.send()
            assert (reply.status, len(backend.asked)) == (status, 1)
            assert json.loads(reply.raw or b"")["error"]["message"] == "no"
            await sender.close()

    run(work)


def test_429_is_asked_again_after_the_time_it_names() -> None:
    times: list[float] = []

    async def work() -> None:
        busy = answers(b"{}", 429, headers={"retry-after": "0.3"})
        async with ScriptedBackend([busy, answers()]) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"retry_count": 1})]))
            began = time.monotonic()
            reply, _ = await sender.send()
            times.append(time.monotonic() - began)
            assert (reply.status, len(backend.asked)) == (200, 2)
            await sender.close()

    run(work)
    assert times[0] >= 0.3  # not sooner; how much later is the machine's business


@pytest.mark.parametrize("reliability", [{"retry_after_max": "1s"}, {"total_timeout": "2s", "retry_after_max": "60s"}])
def test_a_wait_that_is_too_long_ends_with_the_backends_429(reliability: dict[str, str]) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", 429, headers={"retry-after": "30"}), answers()]) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"retry_count": 1, **reliability})]))
            reply, _ = await sender.send()
            assert (reply.status, reply.headers["retry-after"], len(backend.asked)) == (429, "30", 1)
            await sender.close()

    run(work)


def test_a_backend_that_accepts_and_never_answers_ends_at_its_first_byte_timeout() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"first_byte_timeout": "100ms", "retry_count": 3})]))
            with pytest.raises(UpstreamTimeoutError, match='"m/b0" did not begin to answer'):
                await sender.send()
            assert len(backend.asked) == 1
            await _until(lambda: backend.gone == 1)
            await sender.close()

    run(work)


def test_a_connection_that_is_never_accepted_ends_at_its_own_timeout() -> None:
    async def work() -> None:
        with contextlib.ExitStack() as stack:
            full = stack.enter_context(socket.socket())
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(4):  # more than the queue of the kernel takes
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            endpoint = f"127.0.0.1:{full.getsockname()[1]}"
            async with ScriptedBackend([answers()]) as good:
                times = {"connect_timeout": "100ms", "first_byte_timeout": "60s"}
                sender = Sender(document([model("m", endpoint, reliability=times), model("n", endpoint, good.endpoint, reliability=times)]))
                with pytest.raises(UpstreamTimeoutError, match='"m/b0" did not accept a connection in time'):
                    await sender.send()
                reply, context = await sender.send("n")
                assert (reply.status, context.attempts) == (200, ["n/b0: connect_timeout", "n/b1: ok"])  # nothing was sent: it is safe
                await sender.close()

    run(work)


def test_a_try_that_is_too_slow_is_given_up_for_another_one() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as stuck, ScriptedBackend([answers()]) as good:
            sender = Sender(document([model("m", stuck.endpoint, good.endpoint, reliability={"per_try_timeout": "100ms", "retry_count": 1})]))
            reply, context = await sender.send()
            assert reply.status == 200
            assert context.attempts == ["m/b0: first_byte_timeout", "m/b1: ok"]
            await sender.close()

    run(work)


def test_the_total_timeout_bounds_all_tries_and_the_reading_of_the_answer() -> None:
    async def work() -> None:
        slow = {"total_timeout": "300ms"}
        async with ScriptedBackend([trickles]) as backend, ScriptedBackend([answers(b"{}", 503)]) as failing:
            sender = Sender(document([model("m", backend.endpoint, reliability=slow)]))
            with pytest.raises(UpstreamTimeoutError, match="in the time that all tries have"):
                await sender.send()
            await sender.close()
            often = {"total_timeout": "250ms", "retry_count": 5, "retry_back_off_base": "100ms", "retry_back_off_max": "100ms"}
            sender = Sender(document([model("m", failing.endpoint, reliability=often)]))
            reply, _ = await sender.send()
            assert reply.status == 503
            assert len(failing.asked) <= 5
            await sender.close()

    run(work)


def test_a_connection_that_closes_before_the_answer_is_opened_again_once() -> None:
    async def work(first: list[object]) -> int:
        async with ScriptedBackend([*first, answers()]) as backend:  # type: ignore[list-item]
            sender = Sender(document([model("m", backend.endpoint)]))
            try:
                return (await sender.send())[0].status
            finally:
                await sender.close()

    assert run(lambda: work([hangs_up])) == 200
    with pytest.raises(UpstreamError, match="closed the connection before it answered"):
        run(lambda: work([hangs_up, hangs_up]))


def test_a_stream_that_stalls_ends_with_an_error_after_what_was_sent() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("a"), chunk("b"), stall=True)]) as backend:
            sender = Sender(document([model("m", backend.endpoint, reliability={"idle_timeout": "100ms", "retry_count": 3})]))
            reply, context = await sender.send(stream=True)
            got, error = await _until_error(reply)
            assert got == chunk("a") + chunk("b")
            assert isinstance(error, UpstreamTimeoutError)
            assert "stopped sending" in error.message
            assert context.attempts == ["m/b0: ok", "m/b0: idle_timeout"]
            assert len(backend.asked) == 1
            await sender.close()

    run(work)


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        (streams(chunk("a"), break_off=True), chunk("a")),
        (streams(chunk("a"), chunk("b")[:20], break_off=True), chunk("a")),
        (streams(chunk("a")), chunk("a")),
        (streams(chunk("a"), b"data: {half\n\n", DONE), chunk("a")),
    ],
    ids=["breaks off", "breaks off inside an event", "ends without a finish", "sends what is no JSON"],
)
def test_a_broken_stream_never_looks_complete(script: object, kept: bytes) -> None:
    async def work() -> None:
        async with ScriptedBackend([script]) as backend:  # type: ignore[list-item]
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            got, error = await _until_error(reply)
            assert got == kept
            assert isinstance(error, UpstreamError)
            assert backend.endpoint not in error.message
            assert '"m/b0"' in error.message
            await sender.close()

    run(work)


def test_a_finished_stream_without_done_gets_one() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("a"), chunk("", "stop"))]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            assert b"".join(await pieces(reply)) == chunk("a") + chunk("", "stop") + DONE
            await sender.close()

    run(work)


def test_a_stream_that_dies_before_its_first_event_is_asked_for_again() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(break_off=True)]) as bad, ScriptedBackend([streams(chunk("a", "stop"), DONE)]) as good:
            sender = Sender(document([model("m", bad.endpoint, good.endpoint, reliability={"retry_count": 1})]))
            reply, context = await sender.send(stream=True)
            assert b"".join(await pieces(reply)) == chunk("a", "stop") + DONE
            assert context.attempts == ["m/b0: closed", "m/b1: ok"]
            await sender.close()

    run(work)


def test_an_answer_that_is_no_json_is_no_200() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b'{"choices": [')]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            with pytest.raises(UpstreamError, match='"m/b0" sent an answer that is not valid JSON'):
                await sender.send()
            await sender.close()

    run(work)


def test_errors_and_traces_hold_neither_address_nor_key() -> None:
    async def work() -> None:
        port = free_port()
        refs = [{"name": "b0", "endpoint": f"127.0.0.1:{port}", "api_key": SECRET}]
        sender = Sender(document([{"name": "m", "backend_refs": refs}]))
        context = sender.context()
        with pytest.raises(UpstreamError) as caught:
            await sender.upstreams.send(context)
        told = caught.value.message + repr(context.attempts) + repr(sender.upstreams.models["m"].target)
        assert str(caught.value.__cause__) == "None"
        assert SECRET not in told
        assert str(port) not in caught.value.message + repr(context.attempts)
        await sender.close()

    run(work)


def test_a_redirect_is_an_error_and_not_followed() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as other:
            location = {"location": f"http://{other.endpoint}/v1/chat/completions"}
            async with ScriptedBackend([answers(b"", 307, headers=location)]) as backend:
                sender = Sender(document([model("m", backend.endpoint)]))
                with pytest.raises(UpstreamError, match="redirect"):
                    await sender.send()
                assert other.asked == []
                await sender.close()

    run(work)


def test_a_model_without_weights_has_no_backend() -> None:
    async def work() -> None:
        refs = [{"endpoint": "127.0.0.1:1", "weight": 0}]
        sender = Sender(document([{"name": "m", "backend_refs": refs}]))
        with pytest.raises(NoBackendError, match="no backend that takes requests"):
            await sender.send()

    run(work)


def test_cancelling_a_request_ends_the_backends_work() -> None:
    async def work() -> None:
        async with ScriptedBackend([never, streams(chunk("a"), stall=True)]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            task = asyncio.ensure_future(sender.send())
            await _until(lambda: len(backend.asked) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await _until(lambda: backend.gone == 1)
            reply, _ = await sender.send(stream=True)
            await reply.close()  # nobody began to read
            await _until(lambda: backend.gone == 2)
            assert sender.upstreams.models["m"].pool.in_flight == 0
            await sender.close()

    run(work)


def test_a_slow_reader_stops_the_backend() -> None:
    """Backpressure: while nobody reads, the backend can send no more than the buffers on the way hold."""
    sent = [0]

    async def floods(asked: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        event = chunk("x" * 65536)
        for _ in range(2000):
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await writer.drain()
            sent[0] += len(event)

    async def work() -> None:
        async with ScriptedBackend([floods]) as backend:  # type: ignore[list-item]
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            before = -1
            while sent[0] != before:  # until the backend stands still
                before = sent[0]
                await asyncio.sleep(0.2)
            assert sent[0] < 40 * 1024 * 1024
            assert len(await anext(reply.raw_chunks)) > 0  # type: ignore[arg-type]
            await reply.close()
            await sender.close()

    run(work)


async def _until_error(reply: object) -> tuple[bytes, HeadwayError | None]:
    got = b""
    try:
        async for piece in reply.raw_chunks:  # type: ignore[attr-defined]
            got += piece
    except HeadwayError as error:
        return got, error
    return got, None


async def _until(condition: object) -> None:
    while not condition():  # type: ignore[operator]
        await asyncio.sleep(0.01)
