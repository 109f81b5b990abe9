"""One streamed request to an OpenAI-compatible server, timed frame by frame."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from headway.bench.measures import Exchange
from headway.bench.prompts import Prompt
from headway.errors import ConfigError, NotBuiltError

ENDPOINTS = {"openai": "/v1/completions", "vllm": "/v1/completions", "openai-chat": "/v1/chat/completions"}
NOT_BUILT = ("openai-embeddings", "vllm-rerank", "vllm-pooling", "openai-audio", "infinity-embeddings", "tgi")
_LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go and what every one of them carries besides its prompt."""

    base_url: str
    backend: str
    model: str
    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)  # sampling, ignore_eos, --extra-body

    @property
    def url(self) -> str:
        return self.base_url.rstrip("/") + self.endpoint


def default_endpoint(backend: str) -> str:
    """The path that `backend` posts to. Raises NotBuiltError and ConfigError for backends that are not here."""
    if backend in NOT_BUILT:
        raise NotBuiltError(f"--backend {backend} is not built yet", param="backend", fix=f"Use one of {', '.join(ENDPOINTS)}.")
    if backend not in ENDPOINTS:
        raise ConfigError(f"There is no backend {backend!r}", param="backend", fix=f"Use one of {', '.join(ENDPOINTS)}.")
    return ENDPOINTS[backend]


def request_body(target: Target, prompt: Prompt) -> dict[str, Any]:
    """The JSON that asks for `prompt.output_len` tokens, streamed, with usage at the end."""
    asked: dict[str, Any] = {"prompt": prompt.text, "max_tokens": prompt.output_len}
    if target.backend == "openai-chat":
        asked = {"messages": [{"role": "user", "content": prompt.text}], "max_completion_tokens": prompt.output_len}
    return {"model": target.model, **asked, "stream": True, "stream_options": {"include_usage": True}, **target.body}


def session(concurrency: int | None = None, verify: bool = True) -> aiohttp.ClientSession:
    """A client without pool limits (or with `concurrency` connections) and without a total time limit.

    Proxy variables of the environment are not used: a benchmark talks to the server that was named.
    """
    connector = aiohttp.TCPConnector(limit=concurrency or 0, ssl=verify)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=60, sock_read=3600)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 20, trust_env=False)


async def exchange(client: aiohttp.ClientSession, target: Target, prompt: Prompt) -> Exchange:
    """Send one request and record it. What goes wrong with the server or the network is recorded, not raised.

    `output_tokens` stays 0 when the server sends no usage; the caller counts the text then.
    """
    record = Exchange(prompt_tokens=len(prompt.token_ids))
    pieces: list[str] = []
    last = record.start = time.perf_counter()
    try:
        async with client.post(target.url, json=request_body(target, prompt), headers=target.headers) as response:
            if response.status != 200:
                record.error = f"HTTP {response.status}: {(await response.text())[:_LONGEST_ERROR]}"
                return record
            async for data in events(response.content):
                now = time.perf_counter()
                frame = json.loads(data)
                if "error" in frame:
                    record.error = str(frame["error"])[:_LONGEST_ERROR]
                    return record
                usage = frame.get("usage") or {}
                record.output_tokens = usage.get("completion_tokens") or record.output_tokens
                record.prompt_tokens = usage.get("prompt_tokens") or record.prompt_tokens
                text = token_text(frame, first=not pieces)
                if text is None:
                    continue
                if pieces:
                    record.itls.append(now - last)
                else:
                    record.ttft = now - record.start
                pieces.append(text)
                last = now
        if not pieces:
            record.error = "the answer ended without a token"
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, UnicodeDecodeError) as error:
        record.error = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    finally:
        record.latency = last - record.start
        record.text = "".join(pieces)
    return record


async def events(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The data of each server-sent event up to [DONE]. Comment and other lines are passed over."""
    while line := await content.readline():
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        yield data


def token_text(frame: Mapping[str, Any], *, first: bool) -> str | None:
    """The text of a frame that carries a token, None for a frame that carries none.

    A token whose bytes do not yet form a character comes as an empty text and counts. Not tokens: the chat frame that
    only names the role, frames without choices, and a closing frame that only says why it ended (unless it is the
    first: then the model ended at once, and that was a token).
    """
    choices = frame.get("choices")
    if not choices:
        return None
    choice = choices[0]
    if "delta" in choice:
        delta = choice["delta"] or {}
        text = delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content") or ""
        role_only = "role" in delta and not text and not delta.get("tool_calls")
        if role_only and not choice.get("finish_reason"):
            return None
    else:
        text = choice.get("text") or ""
    closes = choice.get("finish_reason") is not None and not text and not choice.get("token_ids")
    return None if closes and not first else str(text)
