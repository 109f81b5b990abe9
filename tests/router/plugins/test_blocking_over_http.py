"""An answer that is held back, as clients see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.router.listener.live_front import AUTO, HELLO, LiveFront, decision, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, streams

PLUGIN = {"type": "response_jailbreak", "configuration": {"enabled": True}}


@pytest.mark.parametrize("stream", [False, True])
def test_clients_get_a_plain_403(tmp_path: Path, stream: bool) -> None:
    """No deployment runs here, so nobody can judge the answer: the guard fails closed."""

    async def work() -> None:
        script: Any = streams(chunk("evil"), chunk("", "stop") + DONE) if stream else answers()
        routing = {"decisions": [decision("d", plugins=[PLUGIN])]}
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            with pytest.raises(openai.PermissionDeniedError) as caught:
                await front.openai().chat.completions.create(model=AUTO, messages=HELLO, stream=stream)
            answer = caught.value.response
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-vsr-response-path"] == "blocked"
            assert caught.value.body["reason"] == "response_blocked"  # type: ignore[index]
            with pytest.raises(anthropic.PermissionDeniedError):
                await front.anthropic().messages.create(model=AUTO, max_tokens=9, messages=HELLO, stream=stream)

    run(work)
