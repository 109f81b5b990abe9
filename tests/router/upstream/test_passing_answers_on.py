"""Answers and streams reach the caller as the backend sent them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.router.upstream.harness import Sender, document, model, pieces, run
from tests.router.upstream.scripted_backend import DONE, WHOLE, ScriptedBackend, answers, chunk, streams


def test_the_bytes_of_an_answer_are_those_of_the_backend() -> None:
    odd = json.dumps(WHOLE, indent=3).encode()

    async def work() -> None:
        async with ScriptedBackend([answers(odd)]) as backend:
            sender = Sender(document([model("m", backend.endpoint, provider_model_id="served")]))
            reply, _ = await sender.send()
            assert (reply.status, reply.raw, reply.streams) == (200, odd, False)
            assert backend.asked[0].path == "/v1/chat/completions"
            assert backend.asked[0].body["model"] == "served"
            await sender.close()

    run(work)


def test_a_connection_is_used_again() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            for _ in range(5):
                await sender.send()
            assert len(backend.asked) == 5
            assert backend.connections == 1
            await sender.close()

    run(work)


@pytest.mark.parametrize("cut", [1, 7, 60, 10_000])
def test_a_stream_is_passed_on_in_whole_events_however_it_is_cut(cut: int) -> None:
    wire = chunk("he") + b": keep-alive\n\n" + chunk("llo") + chunk("", "stop") + DONE
    parts = [wire[at : at + cut] for at in range(0, len(wire), cut)]

    async def work() -> None:
        async with ScriptedBackend([streams(*parts)]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send(stream=True)
            got = await pieces(reply)
            assert b"".join(got) == wire
            assert all(piece.endswith(b"\n\n") for piece in got)
            await sender.close()

    run(work)


def test_a_unix_socket_is_an_endpoint(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()], socket=str(tmp_path / "s")) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            reply, _ = await sender.send()
            assert json.loads(reply.raw or b"") == WHOLE
            await sender.close()

    run(work)
