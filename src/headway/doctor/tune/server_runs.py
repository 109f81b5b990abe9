"""Real runs: a server with the flags of a setting, a load on it, and what came of it."""

from __future__ import annotations

import asyncio
import shlex
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from headway.bench.arrivals import Arrivals
from headway.bench.measures import Exchange, meets, percentile, summarize
from headway.bench.openai_client import Target, default_endpoint
from headway.bench.prompts import Prompt, PromptTokenizer
from headway.bench.serve import LoadPlan, first_model, run_load
from headway.doctor.tune.outcome import Outcome
from headway.doctor.tune.setting import Goal, Setting, flags
from headway.host.child_process import Child

_STOP_SECONDS: Final = 20.0
_PERCENT: Final = 95.0


@dataclass(frozen=True, slots=True)
class Load:
    """Prompts sent with `concurrency` at a time, after `warmups` that do not count. `goals_ms`: the promises.

    `prompts(k)` are those of the k-th run of a setting: other ones in each run, so that no run finds its prompts in the
    prefix cache of the one before, and the same for every setting.
    """

    prompts: Callable[[int], Sequence[Prompt]]
    concurrency: int
    warmups: int
    goals_ms: Mapping[str, float]


class ServerRuns:
    """`command`: words that start a server for the model; flags and the port are added. One server runs at a time and is
    kept while its setting is asked for again. `said` is called with a sentence for each thing that takes time."""

    def __init__(
        self, command: Sequence[str], goal: Goal, load: Load, tokenizer: PromptTokenizer, ready_seconds: float, said: Callable[[str], None] = lambda text: None
    ):  # fmt: skip
        self._command, self._goal, self._load = tuple(command), goal, load
        self._tokenizer, self._ready_seconds, self._said = tokenizer, ready_seconds, said
        self._child: Child | None = None
        self._setting: Setting | None = None
        self._url = ""
        self._runs: Counter[Setting] = Counter()
        self.starts = 0

    def skip(self, setting: Setting) -> None:
        """A run of `setting` was taken from a record."""
        self._runs[setting] += 1

    def run(self, setting: Setting) -> tuple[Outcome, dict[str, Any]]:
        """One run. The first of each server is preceded by warm-up requests."""
        warmups = 0
        if self._setting != setting or self._child is None or self._child.exit_code is not None:
            self.close()
            if failure := self._start(setting):
                return Outcome(float("-inf"), 0.0, failure), {"failure": failure}
            warmups = self._load.warmups
        self._said(f"measuring {shlex.join(flags(setting)) or 'defaults'}")
        exchanges, seconds = asyncio.run(self._drive(warmups, self._load.prompts(self._runs[setting])))
        self._runs[setting] += 1
        return outcome_of(exchanges, seconds, self._goal, self._load.goals_ms), details_of(exchanges, seconds)

    def close(self) -> None:
        if self._child is not None:
            self._child.stop(_STOP_SECONDS)
        self._child = self._setting = None

    def _start(self, setting: Setting) -> str:
        """"" when it is ready, else why it is not."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._said(f"starting with {shlex.join(flags(setting)) or 'defaults'}")
        self.starts += 1
        self._child = Child("tuned server", [*self._command, *flags(setting), "--host", "127.0.0.1", "--port", str(port)])
        self._setting, self._url = setting, f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + self._ready_seconds
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while time.monotonic() < deadline:
                if self._child.exit_code is not None:
                    return "; ".join(self._child.last_lines()[-2:])[-300:] or f"exit status {self._child.exit_code}"
                try:
                    if client.get(f"{self._url}/health").status_code == 200:
                        return ""
                except httpx.HTTPError:
                    pass  # not listening yet
                time.sleep(0.1)
        self.close()
        return f"not ready within {self._ready_seconds:.0f} s"

    async def _drive(self, warmups: int, prompts: Sequence[Prompt]) -> tuple[list[Exchange], float]:
        model = await first_model(self._url, {}, 30.0)
        body = {"ignore_eos": True, "temperature": 0}
        target = Target(self._url, "openai", model, default_endpoint("openai"), body=body)
        plan = LoadPlan(Arrivals(), max_concurrency=self._load.concurrency, warmups=warmups, ready_timeout=0)
        return await run_load(target, prompts, plan, self._tokenizer)


def outcome_of(exchanges: Sequence[Exchange], seconds: float, goal: Goal, goals_ms: Mapping[str, float]) -> Outcome:
    """Tokens/s made, or the mean time to first token or between tokens with its sign turned (seconds)."""
    good = [exchange for exchange in exchanges if exchange.ok]
    failed = next((exchange.error for exchange in exchanges if not exchange.ok), "")
    if failed or not good:
        return Outcome(float("-inf"), 0.0, f"{len(exchanges) - len(good)} of {len(exchanges)} requests failed: {failed}"[:300])
    met = sum(meets(exchange, goals_ms) for exchange in good) / len(good) if goals_ms else 1.0
    if goal == "throughput":
        return Outcome(sum(exchange.output_tokens for exchange in good) / seconds, met)
    values = [exchange.ttft for exchange in good] if goal == "ttft" else [gap for exchange in good for gap in exchange.itls]
    return Outcome(-sum(values) / len(values), met) if values else Outcome(float("-inf"), 0.0, "answers of one token have no gaps")


def details_of(exchanges: Sequence[Exchange], seconds: float) -> dict[str, Any]:
    """What the picture and the record show beside the score."""
    good = [exchange for exchange in exchanges if exchange.ok]
    if not good:
        return {"failure": "no request succeeded"}
    summary = summarize(exchanges, seconds, (_PERCENT,), {})
    gaps = [gap for exchange in good for gap in exchange.itls]
    return {
        "tokens_per_s": round(summary.output_throughput, 2),
        "requests_per_s": round(summary.request_throughput, 3),
        "ttft_p95_ms": round(percentile([exchange.ttft for exchange in good], _PERCENT) * 1e3, 2),
        "itl_p95_ms": round(percentile(gaps, _PERCENT) * 1e3, 2) if gaps else None,
    }
