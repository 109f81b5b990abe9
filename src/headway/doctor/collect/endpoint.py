"""One OpenAI-compatible server from outside: health, models, and one tiny request, timed at the client and at the server.

The request asks for a few tokens of a fixed text. Its times at the server are the growth of the server's own histograms
during it, so they are only known when nothing else finished meanwhile.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from headway.doctor.collect.bounded_answer import Bounded, ask
from headway.doctor.collect.metrics import scrape
from headway.doctor.collect.transcript import Transcript
from headway.errors import DoctorError

_TOKENS: Final = 16
# An answer that is over so soon does not show whether its tokens come one by one; a longer one costs nothing then.
_SHORT_SECONDS: Final = 0.2
_MORE_TOKENS: Final = 128
_SAMPLES_AT_MOST: Final = 100
_SAMPLE_MEMBERS: Final = ("prompt", "messages", "tools", "cache_salt", "model", "prompt_logprobs")
_TEXT: Final = "Count from one to twenty in words."
_QUESTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/v1/completions": {"prompt": _TEXT},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": _TEXT}]},
}
_TERMS: Final = {"max_tokens": _TOKENS, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
_NO_SUCH_ROUTE: Final = (404, 405, 501)
_TIMED_OUT: Final = {httpx.ConnectTimeout: "no connection in time", httpx.ReadTimeout: "the connection was accepted, and no answer came in time"}
_BODY_CHARS: Final = 2000
_ERROR_CHARS: Final = 300
_MODELS_AT_MOST: Final = 100


def client_for(api_key: str | None, verify: bool = True, timeout: float = 60.0) -> httpx.Client:
    """`timeout`: seconds for one answer. Proxies of the environment are not used: a probe talks to the server that was named."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    limits = httpx.Timeout(timeout, connect=min(5.0, timeout))
    return httpx.Client(headers=headers, timeout=limits, trust_env=False, verify=verify, follow_redirects=False)


def ask_health(client: httpx.Client, url: str, transcript: Transcript) -> dict[str, Any]:
    """`health` (status, body) and `models` (ids), each None when it did not answer. Never raises for what the server does."""
    health = _get(client, f"{url}/health", transcript)
    models = None if health is None else _models(client, url, transcript)
    shown = None if health is None else {"status": health.status, "body": health.text[:_BODY_CHARS]}
    return {"url": url, "health": shown, "models": models}


def _get(client: httpx.Client, url: str, transcript: Transcript) -> Bounded | None:
    try:
        found = ask(client, url)
    except httpx.TimeoutException as error:
        # in words of our own: those of clients stand for limits that are too short, and this one is long
        transcript.say(f"GET {url}: {_TIMED_OUT.get(type(error), 'no answer in time')}")
        return None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        transcript.say(f"GET {url}: {type(error).__name__}: {error}")
        return None
    transcript.say(f'"GET {httpx.URL(url).path} HTTP/1.1" {found.status}')
    return found


def _models(client: httpx.Client, url: str, transcript: Transcript) -> list[str] | None:
    found = _get(client, f"{url}/v1/models", transcript)
    if found is None:
        return None
    if found.status != 200:
        transcript.say(f"Error code: {found.status} - {found.text[:_ERROR_CHARS]}")
        return None
    try:
        return [str(entry["id"]) for entry in found.json().get("data", [])][:_MODELS_AT_MOST]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def timed_request(client: httpx.Client, url: str, model: str, transcript: Transcript, server: str | None) -> dict[str, Any] | None:
    """One streamed answer as a row of `requests`; None when there was none (the transcript says how).

    `server`: the address whose /metrics belong to the server behind `url`; None leaves its times out.
    """
    before = histograms(client, server) if server is not None else {}
    refused: list[tuple[str, int, str]] = []
    for path, question in _QUESTIONS.items():
        body = {"model": model, **question, **_TERMS}
        streamed = _streamed(client, f"{url}{path}", body, transcript)
        if isinstance(streamed, _Streamed) and streamed.arrivals[-1] < _SHORT_SECONDS:
            before = histograms(client, server) if server is not None else {}
            longer = _streamed(client, f"{url}{path}", {**body, "max_tokens": _MORE_TOKENS}, transcript)
            streamed = longer if isinstance(longer, _Streamed) else streamed
        if isinstance(streamed, Bounded):
            refused.append((path, streamed.status, streamed.text))
            if streamed.status in _NO_SUCH_ROUTE or "does not support" in streamed.text:
                continue
            break
        if streamed is None:
            return None
        row = {"id": "probe", **_tokens(streamed.tail), **client_times(streamed.arrivals, streamed.sizes)}
        return row | server_times(before, histograms(client, server)) if server is not None else row
    path, status, text = refused[-1]
    if len(refused) == len(_QUESTIONS):
        transcript.say("the server has no route that generates text; no request was timed")
    else:
        transcript.say(f'"POST {path} HTTP/1.1" {status}\nError code: {status} - {text[:_ERROR_CHARS]}')
    return None


@dataclass(frozen=True, slots=True)
class _Streamed:
    """`arrivals`: seconds from the start to each piece; `sizes`: events in each; `tail`: the last bytes."""

    arrivals: list[float]
    sizes: list[int]
    tail: bytes


def _streamed(client: httpx.Client, url: str, body: Mapping[str, Any], transcript: Transcript) -> _Streamed | Bounded | None:
    """The answer, or the refusal; None when there was neither in time."""
    start = time.perf_counter()
    arrivals: list[float] = []
    sizes: list[int] = []
    tail = b""
    most = client.timeout.read or 60.0
    try:
        with client.stream("POST", url, json=dict(body)) as response:
            for piece in response.iter_bytes():
                arrivals.append(time.perf_counter() - start)
                sizes.append(piece.count(b"data:"))
                tail = (tail + piece)[-4096:]
                if arrivals[-1] > most:
                    raise httpx.ReadTimeout(f"the answer was not complete after {most:g} s", request=response.request)
    except httpx.TimeoutException:
        came = f"was not complete after {most:g} s: {len(arrivals)} pieces came" if arrivals else f"got no token within {most:g} s"
        transcript.say(f"the doctor's own request of {_TOKENS} tokens {came}")
        return None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        transcript.say(f"POST {url}: {type(error).__name__}: {error}")
        return None
    if response.status_code != 200:
        return Bounded(response.status_code, tail.decode("utf-8", "replace"))
    if not arrivals:
        transcript.say(f"POST {url}: the answer was empty")
        return None
    return _Streamed(arrivals, sizes, tail)


def _tokens(tail: bytes) -> dict[str, int]:
    """`prompt_tok` and `out_tok` from the usage at the end of a stream, where the server sends it."""
    found = {name: re.findall(rb'"' + name.encode() + rb'": ?(\d+)', tail) for name in ("prompt_tokens", "completion_tokens")}
    row = {"prompt_tok": int(found["prompt_tokens"][-1])} if found["prompt_tokens"] else {}
    return {**row, "out_tok": int(found["completion_tokens"][-1]) if found["completion_tokens"] else _TOKENS}


def others(before: Mapping[str, tuple[float, float]], after: Mapping[str, tuple[float, float]], own: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The requests of other people that ended between two scrapes, as one row of means; None without any.

    What the probes (`own`) added to each histogram is taken off. A probe whose time at the server is unknown had its first
    token there no later than at the client.
    """
    row: dict[str, Any] = {}
    number = 0.0
    for name, (column, factor) in _PHASES.items():
        if name not in after or column in row:
            continue
        mine = [value / factor for probe in own if isinstance(value := probe.get(column, probe.get(_AT_CLIENT.get(column, ""))), (int, float))]
        total, count = (now - then for now, then in zip(after[name], before.get(name, (0.0, 0.0)), strict=True))
        if name in _PER_REQUEST and count - len(own) >= 1 and len(mine) == len(own):
            number = count - len(own)
            row[column] = round((total - sum(mine)) / number * factor, 4)
    return {"id": f"mean of {number:.0f} other requests", **row} if row else None


def client_times(arrivals: Sequence[float], events: Sequence[int]) -> dict[str, float]:
    """From the arrival of each piece (seconds) and the events in it. `itl_cli_ms` is the time from the first piece to the
    last over the events after the first: near zero when a proxy delivers all at once."""
    after = sum(events) - 1
    return {
        "ttft_cli_s": round(arrivals[0], 4),
        "total_cli_s": round(arrivals[-1], 4),
        "itl_cli_ms": round((arrivals[-1] - arrivals[0]) / after * 1e3, 3) if after > 0 else 0.0,
        "pieces": len(arrivals),
        "events": sum(events),
    }


# histogram -> column of the row, factor to the column's unit
_PHASES: Final = {
    "request_prompt_tokens": ("prompt_tok", 1.0),
    "request_queue_time_seconds": ("queue_s", 1.0),
    "request_prefill_time_seconds": ("prefill_s", 1.0),
    "time_to_first_token_seconds": ("ttft_srv_s", 1.0),
    "inter_token_latency_seconds": ("itl_srv_ms", 1e3),
    "time_per_output_token_seconds": ("itl_srv_ms", 1e3),
}

_AT_CLIENT: Final = {"ttft_srv_s": "ttft_cli_s"}

# of these a request adds one observation
_PER_REQUEST: Final = ("request_prompt_tokens", "request_queue_time_seconds", "request_prefill_time_seconds", "time_to_first_token_seconds")


def server_times(before: Mapping[str, tuple[float, float]], after: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """What one request added to each histogram (sum, count) between two scrapes; where a second request ended meanwhile
    the times of either are unknown and left out. Of the time between tokens the mean over everything that ran."""
    row: dict[str, float] = {}
    for name, (column, factor) in _PHASES.items():
        if name not in after:
            continue
        total, count = (now - then for now, then in zip(after[name], before.get(name, (0.0, 0.0)), strict=True))
        if count > 0 and column not in row and (count == 1 or name not in _PER_REQUEST):
            row[column] = round(total / count * factor, 4)
    return row


def histograms(client: httpx.Client, url: str) -> dict[str, tuple[float, float]]:
    try:
        sample = scrape(client, url)
    except DoctorError:
        return {}
    found: dict[str, tuple[float, float]] = {}
    for name in _PHASES:
        sums = [value for key, value in sample.items() if key.split("{")[0].split(":")[-1] == f"{name}_sum"]
        counts = [value for key, value in sample.items() if key.split("{")[0].split(":")[-1] == f"{name}_count"]
        if counts:
            found[name] = (sum(sums), sum(counts))
    return found


def sample_requests(path: Path) -> list[dict[str, Any]]:
    """Rows of `requests` from a file of request bodies: what decides about the prefix cache, and nothing else.

    Raises DoctorError (`sample_unreadable`) for a line that is no JSON object.
    """
    rows: list[dict[str, Any]] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DoctorError(f"{path} cannot be read: {error}", reason="sample_unreadable", fix="Give a file of JSON lines.") from error
    for number, line in enumerate(lines[:_SAMPLES_AT_MOST], 1):
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise DoctorError(f"line {number} of {path} is no JSON object", reason="sample_unreadable", fix="One request body a line.")
        rows.append({"id": f"sample {number}", **{name: body[name] for name in _SAMPLE_MEMBERS if name in body}})
    return rows
