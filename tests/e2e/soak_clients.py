"""Clients of a soak: each does one thing after another until the time is over, and says what was not as it must be."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
# Continued with wide margins between the two best tokens, so that rounding cannot change the answer.
FIXED = (
    "one two three four five six seven eight nine ten eleven",
    "Monday, Tuesday, Wednesday, Thursday,",
    "a b c d e f g h i j k l m n",
    "The capital of France is",
)
FIXED_TOKENS = 4
BAD: tuple[tuple[str, bytes, tuple[int, ...]], ...] = (
    (COMPLETIONS, b"{", (400,)),
    (COMPLETIONS, b'{"prompt": 7}', (400,)),
    (COMPLETIONS, b'{"prompt": "x", "temperature": -1}', (400,)),
    (COMPLETIONS, b'{"prompt": [999999999]}', (400,)),
    (COMPLETIONS, b'{"prompt": "x", "model": "nobody"}', (404,)),
    (COMPLETIONS, json.dumps({"prompt": [7] * 20000}).encode(), (400,)),
    (CHAT, b'{"messages": []}', (400,)),
    (CHAT, b'{"messages": [{"role": "wizard", "content": "x"}]}', (400,)),
    (CHAT, b"[" * 2000, (400,)),
    (CHAT, json.dumps({"messages": [{"role": "user", "content": "long " * 100_000}]}).encode(), (400,)),
)


@dataclass
class Soak:
    """`expected` are the answers to FIXED, asked alone before; `done` counts by kind; `wrong` holds sentences."""

    url: str
    seconds: float
    expected: dict[str, str]
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def run(self, clients: int) -> None:
        deadline = time.monotonic() + self.seconds
        timeout = aiohttp.ClientTimeout(total=300)
        async with aiohttp.ClientSession(self.url, timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(self._client(session, random.Random(i), deadline) for i in range(clients)))

    async def _client(self, session: aiohttp.ClientSession, chance: random.Random, deadline: float) -> None:
        kinds: list[Callable[[aiohttp.ClientSession, random.Random], Awaitable[str | None]]] = [
            self._fixed, self._fixed, self._counted, self._counted, self._several, self._leaves, self._leaves_whole, self._bad,
        ]  # fmt: skip
        while time.monotonic() < deadline:
            kind = chance.choice(kinds)
            name = kind.__name__.strip("_")
            try:
                problem = await kind(session, chance)
            except Exception as error:
                problem = repr(error)
            self.done[name] += 1
            if problem:
                self.wrong.append(f"{name}: {problem}")

    async def _fixed(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        prompt = chance.choice(FIXED)
        body = {"prompt": prompt, "max_tokens": FIXED_TOKENS, "temperature": 0}
        text = await (_streamed_text if chance.random() < 0.5 else _text)(session, body)
        return None if text == self.expected[prompt] else f"{prompt!r} -> {text!r}, alone {self.expected[prompt]!r}"

    async def _counted(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        """Lengths are those that were asked for, streamed or not."""
        size, tokens = chance.choice((3, 20, 100, 500)), chance.choice((1, 4, 12))
        prompt = [chance.randrange(1000, 20000) for _ in range(size)]
        body = {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0.8, "seed": chance.randrange(1000)}
        if chance.random() < 0.5:
            chunks = await _stream(session, COMPLETIONS, {**body, "stream_options": {"include_usage": True}})
            usage, finish = chunks[-1]["usage"], chunks[-2]["choices"][0]["finish_reason"]
        else:
            answer = await _post(session, COMPLETIONS, body)
            usage, finish = answer["usage"], answer["choices"][0]["finish_reason"]
        found = (usage["prompt_tokens"], usage["completion_tokens"], finish)
        return None if found == (size, tokens, "length") else f"{found} instead of {(size, tokens, 'length')}"

    async def _several(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        body = {"messages": [{"role": "user", "content": "Name a colour."}], "n": 3, "max_tokens": 4, "temperature": 1.0}
        answer = await _post(session, CHAT, body)
        indices = [choice["index"] for choice in answer["choices"]]
        ends = {choice["finish_reason"] for choice in answer["choices"]}
        ok = indices == [0, 1, 2] and ends <= {"stop", "length"} and answer["usage"]["completion_tokens"] <= 12
        return None if ok else str(answer)[:300]

    async def _leaves(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        body = {"prompt": "Once upon a time", "max_tokens": 1000, "ignore_eos": True, "stream": True}
        async with session.post(COMPLETIONS, json=body) as response:
            for _ in range(chance.randrange(4)):
                await response.content.readline()
            response.close()
        return None

    async def _leaves_whole(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        """While the answer is made, or even before."""
        size = chance.choice((5, 5, 1500))
        body = {"prompt": [chance.randrange(1000, 20000) for _ in range(size)], "max_tokens": 500, "ignore_eos": True}
        try:
            async with asyncio.timeout(chance.random() * 0.5), session.post(COMPLETIONS, json=body) as response:
                return f"an answer with status {response.status} came too soon"
        except TimeoutError:
            return None

    async def _bad(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        path, raw, statuses = chance.choice(BAD)
        async with session.post(path, data=raw, headers={"content-type": "application/json"}) as response:
            body = await response.json()
        ok = response.status in statuses and body["error"]["code"] == response.status
        return None if ok else f"{raw[:60]!r} -> {response.status} {body}"


async def _post(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with session.post(path, json=body) as response:
        value: dict[str, Any] = await response.json()
        assert response.status == 200, value
        return value


async def _stream(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with session.post(path, json={**body, "stream": True}) as response:
        text = await response.text()
        assert response.status == 200, text
    *events, done, end = text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def _text(session: aiohttp.ClientSession, body: dict[str, Any]) -> str:
    return str((await _post(session, COMPLETIONS, body))["choices"][0]["text"])


async def _streamed_text(session: aiohttp.ClientSession, body: dict[str, Any]) -> str:
    return "".join(chunk["choices"][0]["text"] for chunk in await _stream(session, COMPLETIONS, body))
