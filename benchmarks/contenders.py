"""What is compared: the engine in this process, a server over HTTP (ours or a peer's), transformers' generate."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import urlsplit

from quiet import listener

from headway.bench.arrivals import Arrivals
from headway.bench.measures import Exchange
from headway.bench.openai_client import Target, exchange, session
from headway.bench.prompts import Prompt, PromptTokenizer
from headway.bench.serve import LoadPlan, run_load

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Failed(Exception):
    """A contender did not do what was measured."""


class InProcess:
    """`headway.LLM` in this process, with at most `concurrency` sequences at once, as the others have."""

    def __init__(self, model: str, dtype: str, concurrency: int):
        from headway import LLM

        self.llm = LLM(model, dtype=dtype, max_num_seqs=concurrency, disable_log_stats=True)

    def tokens_per_second(self, prompts: Sequence[Prompt]) -> float:
        start = time.perf_counter()
        outputs = self._generate(prompts)
        elapsed = time.perf_counter() - start
        counts = [len(output.outputs[0].token_ids) for output in outputs]
        if counts != [prompt.output_len for prompt in prompts]:
            raise Failed("the engine did not generate the tokens that were asked for")
        return sum(counts) / elapsed

    def first_token_seconds(self, prompt: Prompt) -> float:
        start = time.perf_counter()
        self._generate([prompt])
        return time.perf_counter() - start

    def _generate(self, prompts: Sequence[Prompt]) -> list[Any]:
        from headway import SamplingParams

        params = [SamplingParams(temperature=0, ignore_eos=True, max_tokens=prompt.output_len) for prompt in prompts]
        return self.llm.generate([{"prompt_token_ids": list(p.token_ids)} for p in prompts], params, use_tqdm=False)


@dataclass(frozen=True)
class Exchanges:
    """Requests that were all answered, and the seconds that all of them took together."""

    records: Sequence[Exchange]
    duration: float

    @property
    def output_tokens_per_second(self) -> float:
        return sum(record.output_tokens for record in self.records) / self.duration


@dataclass(frozen=True)
class OverHttp:
    """A running OpenAI-compatible server, asked through streamed completions, the client on the same machine."""

    url: str
    model: str
    tokenizer: PromptTokenizer
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        body = {"temperature": 0, "ignore_eos": True, **self.body}
        return Target(self.url, "openai", self.model, "/v1/completions", body=body)

    @property
    def pid(self) -> int | None:
        return listener(urlsplit(self.url).port or 80)

    def tokens_per_second(self, prompts: Sequence[Prompt], concurrency: int | None = None) -> float:
        return self.exchanges(prompts, concurrency).output_tokens_per_second

    def exchanges(self, prompts: Sequence[Prompt], concurrency: int | None = None) -> Exchanges:
        plan = LoadPlan(Arrivals(), max_concurrency=concurrency, ready_timeout=0)
        done, duration = asyncio.run(run_load(self.target, prompts, plan, self.tokenizer))
        self._check(done)
        if [record.output_tokens for record in done] != [prompt.output_len for prompt in prompts]:
            raise Failed(f"{self.url} did not generate the tokens that were asked for")
        return Exchanges(done, duration)

    def first_token_seconds(self, prompt: Prompt) -> float:
        async def one() -> Exchange:
            async with session() as client:
                return await exchange(client, self.target, prompt)

        record = asyncio.run(one())
        self._check([record])
        return record.ttft

    def _check(self, done: Sequence[Exchange]) -> None:
        errors = {record.error for record in done if record.error}
        if errors:
            raise Failed(f"{self.url}: {errors.pop()}")


class Transformers:
    """transformers' generate, greedy, in static batches."""

    def __init__(self, model: str, dtype: str):
        import torch

        from headway.bench.transformers_backend import TransformersModel

        self.model = TransformersModel(model, getattr(torch, dtype))

    def tokens_per_second(self, prompts: Sequence[Prompt], batch_size: int) -> float:
        return self.model.generate(prompts, batch_size).output_tokens_per_second


@contextlib.contextmanager
def headway_server(model: str, dtype: str, *flags: str) -> Iterator[tuple[str, int, float]]:
    """`headway serve` on a free port: its address, its process id, the seconds from its start to the first answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "headway.cli.main", "serve", model, "--dtype", dtype, "--port", str(port)]
    command += ["--served-model-name", "bench", "--disable-log-stats", *flags]
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            url = f"http://127.0.0.1:{port}"
            yield url, process.pid, _first_answer(url, process, log) - start
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _first_answer(url: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> float:
    """When one token had come back. Raises Failed when the server ends before, or after ten minutes."""
    body = b'{"model": "bench", "prompt": "Hi", "max_tokens": 1, "temperature": 0}'
    deadline = time.perf_counter() + 600
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            log.seek(0)
            raise Failed(f"headway serve ended with {process.returncode}: {log.read()[-2000:].decode(errors='replace')}")
        request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
        try:
            _direct.open(request, timeout=60).read()
            return time.perf_counter()
        except urllib.error.HTTPError as error:
            if error.code != 503:  # 503 is "still loading"
                raise Failed(f"headway serve answered {error.code}: {error.read()[:500].decode(errors='replace')}") from error
        except OSError:
            pass  # not listening yet
        time.sleep(0.02)
    raise Failed("headway serve gave no answer in ten minutes")
