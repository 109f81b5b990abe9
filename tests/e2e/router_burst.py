"""Bursts of requests of every kind for a router, each checked."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "writes", "python", "code", "about", "taxes"]
BAD: tuple[bytes, ...] = (
    b"{",
    b"[]",
    b"\xff\xfe",
    b'{"model": "vllm-sr/auto"}',
    b'{"model": "vllm-sr/auto", "messages": "x"}',
    b'{"messages": [{"role": "user", "content": "no model"}]}',
    b'{"model": "nobody", "messages": [{"role": "user", "content": "x"}]}',
    b"[" * 5000,
)
FAILING = (400, 404, 422, 500, 501)  # statuses that are never tried again


@dataclass
class Burst:
    """`rate` requests a second for `busy` seconds, then `pause` seconds of nothing, over and over. `wrong` holds sentences."""

    url: str
    rate: int = 500
    busy: float = 10.0
    pause: float = 2.0
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    late: float = 0.0  # seconds by which the sender fell behind, at most

    async def run(self, seconds: float) -> None:
        loop, chance = asyncio.get_running_loop(), random.Random(7)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(self.url, timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
            running: set[asyncio.Task[None]] = set()
            end = loop.time() + seconds
            while (now := loop.time()) < end:
                for number in range(int(self.rate * self.busy)):
                    due = now + number / self.rate
                    if (wait := due - loop.time()) > 0:
                        await asyncio.sleep(wait)
                    self.late = max(self.late, -wait)
                    task = asyncio.create_task(self._one(session, chance))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await asyncio.sleep(self.pause)
            await asyncio.gather(*running)

    async def _one(self, session: aiohttp.ClientSession, chance: random.Random) -> None:
        kinds: tuple[tuple[int, Callable[[aiohttp.ClientSession, random.Random], Awaitable[str | None]]], ...] = (
            (10, self._plain), (5, self._stream), (2, self._messages), (2, self._responses), (2, self._bad), (1, self._fails), (1, self._cut), (1, self._leaves),
        )  # fmt: skip
        kind = chance.choices([each for _, each in kinds], [weight for weight, _ in kinds])[0]
        name = kind.__name__.strip("_")
        try:
            problem = await kind(session, chance)
        except Exception as error:
            problem = repr(error)
        self.done[name] += 1
        if problem and len(self.wrong) < 100:
            self.wrong.append(f"{name}: {problem}")

    async def _plain(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        text = sentence(chance)
        async with session.post(CHAT, json=chat(text)) as answer:
            body = await answer.json()
            if answer.status != 200:
                return f"{answer.status} {body}"
            model = answer.headers["x-vsr-selected-model"]
        told = body["choices"][0]["message"]["content"]
        wanted = "large" if "python" in text else "small"
        return None if (told, model) == (text, wanted) else f"{text!r} -> {told!r} by {model}"

    async def _stream(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        text = sentence(chance)
        async with session.post(CHAT, json=chat(text, stream=True)) as answer:
            events = [line[6:] for line in (await answer.text()).split("\n\n") if line.startswith("data: ")]
        if events[-1:] != ["[DONE]"]:
            return f"ends with {events[-1:]}"
        told = "".join(json.loads(each)["choices"][0]["delta"].get("content", "") for each in events[:-1])
        return None if told == text else f"{text!r} -> {told!r}"

    async def _messages(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        text = sentence(chance)
        body = {"model": "vllm-sr/auto", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
        async with session.post(MESSAGES, json=body) as answer:
            told = await answer.json()
        return None if told.get("content") == [{"type": "text", "text": text}] else f"{answer.status} {told}"

    async def _responses(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        text = sentence(chance)
        async with session.post(RESPONSES, json={"model": "vllm-sr/auto", "input": text, "store": False}) as answer:
            told = await answer.json()
        if answer.status != 200:
            return f"{answer.status} {told}"
        return None if told["output"][0]["content"][0]["text"] == text else f"{text!r} -> {told['output']}"

    async def _bad(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        raw = chance.choice(BAD)
        async with session.post(CHAT, data=raw, headers={"content-type": "application/json"}) as answer:
            body = await answer.json()
        return None if answer.status == 400 and body["error"]["message"] else f"{raw[:40]!r} -> {answer.status} {body}"

    async def _fails(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        status = chance.choice(FAILING)
        async with session.post(CHAT, json=chat(f"fail {status}")) as answer:
            body = await answer.json()
        return None if answer.status == status and "as you asked" in body["error"]["message"] else f"{status} -> {answer.status} {body}"

    async def _cut(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        """A backend that breaks off is told of in the stream; it is not made to look complete."""
        async with session.post(CHAT, json=chat("cut " + sentence(chance), stream=True)) as answer:
            text = await answer.text()
        return None if '"error"' in text and "[DONE]" not in text.split('"error"')[0] else f"{answer.status} {text[-200:]!r}"

    async def _leaves(self, session: aiohttp.ClientSession, chance: random.Random) -> str | None:
        async with session.post(CHAT, json=chat(sentence(chance), stream=True)) as answer:
            await answer.content.readany()
            answer.close()
        return None


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}], **more}


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.choice((3, 8, 25))))
