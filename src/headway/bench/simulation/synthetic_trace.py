"""Made-up traffic: gamma-distributed gaps at a constant rate or along a table of rates, lengths around a middle, shared beginnings."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass

from headway.bench.simulation.request_trace import MOST_REQUESTS, MOST_SECONDS, MOST_TOKENS, RequestTrace, request_trace
from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Traffic:
    """`rates`: (from second, requests per second) in rising order of seconds, the first at 0; one entry is a constant rate. `burstiness`: shape
    of the gamma distribution of the gaps, 1 = Poisson, less is burstier. Lengths are drawn evenly from middle x (1 - ratio) to
    middle x (1 + ratio). `prefixes` beginnings of `prefix_tokens` are used evenly, in front of the prompt; 0 = none."""

    requests: int
    rates: tuple[tuple[float, float], ...]
    prompt: int = 512
    output: int = 128
    burstiness: float = 1.0
    ratio: float = 0.5
    prefixes: int = 0
    prefix_tokens: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.requests <= MOST_REQUESTS:
            raise _wrong("requests", f"must be from 1 to {MOST_REQUESTS:,}, found {self.requests:,}")
        if not self.rates or self.rates[0][0] != 0 or any(not 0 < rate < float("inf") for _, rate in self.rates):
            raise _wrong("rate", f"needs rates over 0, the first from second 0 on, found {self.rates!r:.80}")
        if any(later[0] <= earlier[0] for earlier, later in zip(self.rates, self.rates[1:], strict=False)):
            raise _wrong("rate", "needs rising seconds")
        if not 0 < self.burstiness < float("inf") or not 0 <= self.ratio < 1:
            raise _wrong("burstiness", f"must be over 0, and the range ratio from 0 to below 1, found {self.burstiness} and {self.ratio}")
        if not (1 <= self.prompt <= MOST_TOKENS and 1 <= self.output <= MOST_TOKENS and 0 <= self.prefix_tokens <= MOST_TOKENS):
            raise _wrong("input_len", f"and output length must be from 1 to {MOST_TOKENS:,}, found {self.prompt} and {self.output}")
        if (self.prefixes > 0) != (self.prefix_tokens > 0) or self.prefixes < 0:
            raise _wrong("prefixes", "and prefix tokens go together")


def synthetic_trace(traffic: Traffic) -> RequestTrace:
    """The same traffic gives the same trace. Time is stretched by the rate at each moment: a process of rate 1 runs on the integral of the
    rates, so the table is met on average whatever the burstiness."""
    rng = random.Random(traffic.seed)
    arrivals: list[float] = []
    done = 0.0  # of the integral
    inverse = _Inverse(traffic.rates)
    for index in range(traffic.requests):
        if index:
            done += rng.gammavariate(traffic.burstiness, 1 / traffic.burstiness)
        arrivals.append(inverse(done))
    if arrivals[-1] > MOST_SECONDS:
        raise _wrong("rate", f"spreads the requests over {arrivals[-1]:,.0f} s, the limit is {MOST_SECONDS:,.0f}")
    prompts = [_around(traffic.prompt, traffic.ratio, rng) + traffic.prefix_tokens for _ in arrivals]
    outputs = [_around(traffic.output, traffic.ratio, rng) for _ in arrivals]
    if not traffic.prefixes:
        return request_trace(arrivals, prompts, outputs)
    prefixes = [rng.randrange(traffic.prefixes) for _ in arrivals]
    return request_trace(arrivals, prompts, outputs, prefixes, [traffic.prefix_tokens] * len(arrivals))


class _Inverse:
    """The second at which the integral of a table of rates reaches a value."""

    def __init__(self, rates: Sequence[tuple[float, float]]):
        self._starts = [start for start, _ in rates]
        self._rates = [rate for _, rate in rates]
        self._reached = [0.0]
        for i in range(1, len(rates)):
            self._reached.append(self._reached[-1] + self._rates[i - 1] * (self._starts[i] - self._starts[i - 1]))

    def __call__(self, value: float) -> float:
        i = bisect.bisect_right(self._reached, value) - 1
        return self._starts[i] + (value - self._reached[i]) / self._rates[i]


def _around(middle: int, ratio: float, rng: random.Random) -> int:
    return rng.randint(max(1, round(middle * (1 - ratio))), max(1, round(middle * (1 + ratio))))


def _wrong(param: str, what: str) -> ConfigError:
    return ConfigError(f"--{param.replace('_', '-')} {what}", param=param)
