"""A scripted model runtime: real HTTP on a real socket, answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

Body = dict[str, Any]
Script = Callable[[Body], Awaitable[Any]]


def noul_card(name: str = "judge", **fields: Any) -> Body:
    """A model that answers questions."""
    return {
        "id": name, "surfaces": ["decisions"], "question_types": ["choice", "noul", "score", "set"], "heads": [], "embedding": None, "rerank": None,
        "limits": {"max_input_tokens": 512}, "model_sha256": "a" * 64, "ready": True, **fields,
    }  # fmt: skip


class FakeRuntime:
    """`posts` are (path, body, headers) in the order they came. `script` by path gives the body of an answer, or (status, body)."""

    def __init__(self, *cards: Body) -> None:
        self.cards = {card["id"]: card for card in cards}
        self.states: dict[str, tuple[str, str | None]] = dict.fromkeys(self.cards, ("ready", None))
        self.posts: list[tuple[str, Body]] = []
        self.headers: list[dict[str, str]] = []
        self.script: dict[str, Script] = {}
        self.api_version = "2.2.0"
        self.endpoint = ""
        self._runner: web.AppRunner | None = None
        self._where: tuple[str, int] | str = ("127.0.0.1", 0)

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/health", self._health)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/{path:.*}", self._post)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site: web.BaseSite
        if isinstance(self._where, str):
            site = web.UnixSite(self._runner, self._where)
            await site.start()
            self.endpoint = f"unix://{self._where}"
            return
        site = web.TCPSite(self._runner, *self._where)
        await site.start()
        port = self._runner.addresses[0][1]
        self._where = ("127.0.0.1", port)
        self.endpoint = f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _health(self, request: web.Request) -> web.Response:
        states = [state for state, _ in self.states.values()]
        status = "ready" if all(state == "ready" for state in states) else next(state for state in states if state != "ready")
        models = {name: {"status": state, "reason": reason} for name, (state, reason) in self.states.items()}
        body = {"api_version": self.api_version, "status": status, "reason": None, "model": None, "models": models}
        return web.json_response(body, status=200 if status == "ready" else 503)

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "api_version": self.api_version, "data": list(self.cards.values())})

    async def _post(self, request: web.Request) -> web.Response:
        raw = await request.read()
        body = orjson.loads(raw)
        self.posts.append((request.path, body))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        answer = await self.script[request.path](body)
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        timing = "parse;dur=0.1, tokenize;dur=0.2, queue;dur=0.3, forward;dur=1.0, post;dur=0.1, serialize;dur=0.1, total;dur=2.0"
        return web.Response(body=answer if isinstance(answer, bytes) else orjson.dumps(answer), status=status, headers={"Server-Timing": timing})


@asynccontextmanager
async def fake_runtime(*cards: Body, socket: Path | None = None) -> AsyncIterator[FakeRuntime]:
    runtime = FakeRuntime(*(cards or (noul_card(),)))
    if socket is not None:
        runtime._where = str(socket)
    runtime.script["/v1/decisions"] = answer_questions
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


async def answer_questions(body: Body) -> Body:
    """Each noul 0.75; of a choice the first key, of a score the middle, of a set the first label."""
    if "states" in body:
        return {"answers": {}, "states": {name: _part(part) for name, part in body["states"].items()}, "usage": {}}
    return {"model": body["model"], **_part(body), "usage": {"input_tokens": 3, "output_tokens": 0}}


def _part(part: Body) -> Body:
    answers: Body = {}
    sets: Body = {}
    for name, question in part["questions"].items():
        covered = {"input_coverage": "complete"} if question.get("require_full_input") else {}
        kind = question["type"]
        if kind == "noul":
            answers[name] = {"type": "noul", "noul": 0.75, **covered}
        elif kind == "choice":
            keys = list(question.get("criteria") or [option["key"] for option in question["choices"]])
            shares = {key: (0.6 if key == keys[0] else 0.4 / (len(keys) - 1)) for key in keys}
            answers[name] = {"type": "choice", "choice": keys[0], "probabilities": shares, "confidence": 0.5, **covered}
        elif kind == "score":
            count = len(question.get("criteria") or question["levels"])
            shares = {str(level): 1 / count for level in range(count)}
            answers[name] = {"type": "score", "score": (count - 1) / 2, "probabilities": shares, "confidence": 0.0, **covered}
        else:
            keys = list(question.get("criteria") or [option["key"] for option in question["labels"]])
            sets[name] = {"selected": keys[:1], "probabilities": {key: 0.9 if key == keys[0] else 0.1 for key in keys}}
            answers |= {f"{name}.{key}": {"type": "noul", "noul": sets[name]["probabilities"][key], **covered} for key in keys}
    return {"answers": answers, **({"sets": sets} if sets else {})}


async def never(body: Body) -> Body:
    await asyncio.sleep(3600)
    raise AssertionError
