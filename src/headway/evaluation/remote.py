"""A running server that speaks the API of OpenAI: its scores of requests, through the log-probabilities of an echoed prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import httpx
import numpy as np

from headway.errors import HeadwayError
from headway.evaluation.measuring import NotNumbersError, OnTokens
from headway.evaluation.scoring import Numbers, ScoringRequest

_REQUEST_TOKENS: Final = 4096
"""Tokens of one call, so that the server can batch and no answer grows large."""
_SECONDS: Final = httpx.Timeout(600.0, connect=10.0)
LOWEST: Final = -9999.0
"""What servers write for minus infinity."""


class RemoteModel:
    """A server. `name` is the model that is asked for. Close it, or use it as a context manager."""

    def __init__(self, url: str, name: str | None, api_key: str | None):
        """Raises HeadwayError (`no_server`, `refused`)."""
        self.url = url.rstrip("/").removesuffix("/v1")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=_SECONDS, trust_env=False)
        self._listed = self._ask("GET", "/v1/models", None).get("data") or [{}]
        self.name = name or str(self._listed[0].get("id"))

    def __enter__(self) -> RemoteModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    @property
    def longest(self) -> int | None:
        """Tokens of a sequence, where the server tells."""
        found = next((each.get("max_model_len") for each in self._listed if each.get("id") == self.name), None)
        return found if isinstance(found, int) else None

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """By the server's tokenizer. Raises HeadwayError."""
        answer = self._ask("POST", "/tokenize", {"model": self.name, "prompt": text, "add_special_tokens": special})
        tokens = answer.get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise self._wrong("/tokenize gave no list of token ids", "Name the model's tokenizer with --tokenizer.")
        return tokens

    def logprobs_of(self, requests: Sequence[ScoringRequest], done: OnTokens) -> Iterator[Numbers]:
        """Of each request, in order. Raises HeadwayError (`prompt_logprobs_missing` where the server does not score prompts), NotNumbersError."""
        for group in _groups(requests):
            # One token is asked for and not used: not every server allows none.
            body = {
                "model": self.name, "prompt": [list(request.tokens) for request in group], "echo": True, "logprobs": 1, "max_tokens": 1,
                "temperature": 0, "add_special_tokens": False,
            }  # fmt: skip
            choices = self._ask("POST", "/v1/completions", body).get("choices")
            if not isinstance(choices, list) or len(choices) != len(group):
                raise self._wrong(f"{len(group)} prompts got {len(choices) if isinstance(choices, list) else 'no'} answers", "Is it an OpenAI server?")
            for request, choice in zip(group, sorted(choices, key=lambda each: each.get("index", 0)), strict=True):
                yield self._logprobs(request, choice.get("logprobs"))
                done(len(request.tokens))

    def _logprobs(self, request: ScoringRequest, logprobs: Any) -> Numbers:
        listed = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
        if not isinstance(listed, list) or len(listed) < len(request.tokens):
            raise HeadwayError(
                f"{self.url} does not give the log-probabilities of a prompt (`echo` with `logprobs`), which scores are made of",
                reason="prompt_logprobs_missing", param="base_url", fix="Evaluate the checkpoint itself: `headway eval MODEL`.",
            )  # fmt: skip
        own = listed[request.start : len(request.tokens)]
        if any(not isinstance(value, int | float) for value in own):
            raise NotNumbersError(f"{self.url} gave log-probabilities that are not numbers")
        values = np.array(own, dtype=np.float64)
        values[values <= LOWEST] = -np.inf
        return values

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, json=body)
            value = response.json()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HeadwayError(
                f"No answer from {self.url} ({type(error).__name__})", reason="no_server", param="base_url", fix="Start it, or correct --base-url."
            ) from None
        except ValueError:
            raise self._wrong(f"{path} answered {response.status_code} without JSON", "Is it an OpenAI server?") from None
        if response.status_code != 200 or not isinstance(value, dict):
            said = value.get("error") if isinstance(value, dict) else None
            message = said.get("message") if isinstance(said, dict) else said
            raise self._wrong(f"{path} answered {response.status_code}: {str(message)[:300]}")
        return value

    def _wrong(self, what: str, fix: str | None = None) -> HeadwayError:
        return HeadwayError(f"{self.url}: {what}", reason="refused", param="base_url", fix=fix)


def _groups(requests: Sequence[ScoringRequest]) -> Iterator[list[ScoringRequest]]:
    group: list[ScoringRequest] = []
    tokens = 0
    for request in requests:
        if group and tokens + len(request.tokens) > _REQUEST_TOKENS:
            yield group
            group, tokens = [], 0
        group.append(request)
        tokens += len(request.tokens)
    if group:
        yield group
